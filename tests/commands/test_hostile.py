"""Studies of a stranger on the command line: what reaches the terminal, a shell, a spreadsheet."""

import csv
import io
import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from support.studies import PLANE, change, play

from partita._text import HIDDEN, printable, printable_lines
from partita.errors import InvalidInput
from partita.space import Space
from partita.study import Study
from partita.study.export import write_csv

#: Clears the screen, sets a title, in 8 bits, and writes from right to left.
ESCAPES = ("\x1b[2Jx", "\x1b]0;title\x07", "\x9b31mred", "a\u202eb", "line\nbreak", "a\rb", "nul\0")


def test_hidden_characters_are_written_as_in_json():
    for text in ESCAPES:
        assert HIDDEN.search(printable(text)) is None
        assert json.loads(f'"{printable(text)}"') == text
    assert printable("größe 名前 naïve\u200d🙂") == "größe 名前 naïve\u200d🙂"
    assert printable_lines("a\x1b\nb") == "a\\u001b\nb"


@pytest.mark.parametrize("name", [*ESCAPES, "", 3, None, "x" * 201, "\ud800"])
def test_names_that_steer_a_terminal_are_refused(name, tmp_path):
    with pytest.raises(InvalidInput, match="parameter"):
        Space({name: (0.0, 1.0)})
    with pytest.raises(InvalidInput, match="parameter"):
        Study.open(tmp_path / "tune.db", {name: (0.0, 1.0)})
    assert not (tmp_path / "tune.db").exists()


def test_ordinary_names_are_not_refused():
    names = ("größe", "learning rate", "名前", "x" * 200, "a-b", "می\u200cخواهم", "-S")
    assert Space(dict.fromkeys(names, (0.0, 1.0))).names == names


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_choices_of_a_stranger_do_not_steer_the_terminal(run, path, options):
    with Study.open(path, {"kind": list(ESCAPES), "x": (0.0, 1.0)}, policy="uniform") as study:
        for number, kind in enumerate(ESCAPES):
            study.add({"kind": kind, "x": 0.5}, -float(number))
            study.expect({"kind": kind, "x": 0.25})
    code, out, err = run("show", path, *options)
    assert (code, err) == (0, "")
    assert not HIDDEN.search(out.replace("\n", ""))
    if options:
        assert {row["params"]["kind"] for row in json.loads(out)["waiting"]} == set(ESCAPES)
    else:
        assert "kind = nul\\u0000" in out


def test_errors_are_escaped(run, tmp_path):
    code, out, err = run("show", tmp_path / "\x1b[31mred.db")
    assert (code, out) == (2, "")
    assert "\\u001b[31mred.db" in err
    assert "\x1b" not in err


@pytest.mark.parametrize(
    "space",
    [
        {"-Sprogram": (0.0, 1.0)},
        {"a=b": (0.0, 1.0)},
        {"kind": ["a\n1 b=$(touch owned)\n2 c", "d"]},
        {"kind": ["\x1b[2J", "d"]},
    ],
)
def test_words_that_a_shell_would_misread_are_refused_before_a_trial_begins(run, path, space):
    Study.open(path, space, policy="uniform").close()
    code, out, err = run("ask", path)
    assert (code, out) == (2, "")
    assert "give --json" in err
    assert Study.open(path).n_pending == 0
    code, out, _ = run("ask", path, "--json")
    assert code == 0
    assert json.loads(out)["params"].keys() == space.keys()
    assert len(out.splitlines()) == 1


def recipe():
    """The loop for a shell that the guide shows."""
    text = (Path(__file__).parents[2] / "docs" / "studies.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```shell\n(partita ask .*?while.*?)```", text, re.DOTALL)
    return block


def test_the_recipe_of_the_guide_runs_nothing_that_a_file_names(run, path, tmp_path):
    """Names become arguments of the program, not variables of its environment, nor options."""
    kinds = ["$(touch owned)", "`touch owned`", "; touch owned", "' touch owned '", "a b", "*"]
    space = {"LD_PRELOAD": kinds, "PATH": ["/nowhere", "/else"], "BASH_ENV": ["a", "b"]}
    Study.open(path, space, policy="uniform").close()
    asked = []
    for _ in range(8):
        code, out, _ = run("ask", path)
        assert code == 0
        asked.append(out)
    (tmp_path / "trials").write_text("".join(asked))
    (tmp_path / "train.sh").write_text('#!/bin/sh\nprintf "%s\\n" "$@" >> seen\necho 1.5\n')
    (tmp_path / "partita").write_text(
        '#!/bin/sh\n[ "$1" != ask ] || cat trials\necho "$@" >> told\n'
    )
    for name in ("train.sh", "partita"):
        (tmp_path / name).chmod(0o755)
    script = recipe().replace("partita ", "./partita ")
    subprocess.run(["sh", "-c", script], cwd=tmp_path, check=True, timeout=60)
    assert not (tmp_path / "owned").exists()
    told = [line.split() for line in (tmp_path / "told").read_text().splitlines()]
    assert [line for line in told if line[0] == "tell"] == [
        ["tell", "tune.db", str(number), "1.5"] for number in range(8)
    ]
    seen = (tmp_path / "seen").read_text().splitlines()
    assert seen == [word for line in asked for word in shlex.split(line)[1:]]


# -- spreadsheets ------------------------------------------------------------------------------

FORMULAS = [
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(1)",
    "\t=1",
    "\r=1",
    "＝1",
    "'=1",
    "-",
    "plain",
]


def test_no_cell_of_csv_is_a_formula_and_all_can_be_read_back(path):
    space = {"=kind": FORMULAS, "sign": ["-1", "+1", "1e-3"], "x": (-1.0, 1.0)}
    with Study.open(path, space, policy="uniform") as study:
        for i, kind in enumerate(FORMULAS):
            study.add({"=kind": kind, "sign": space["sign"][i % 3], "x": -0.5}, -1.5)
        out = io.StringIO(newline="")
        write_csv(study, out)
    header, *rows = csv.reader(io.StringIO(out.getvalue(), newline=""))
    number = re.compile(r"[+-]?\d+(\.\d*)?(e[+-]?\d+)?")
    for cell in (cell for row in (header, *rows) for cell in row):
        assert cell[:1] not in tuple("=+-@\t\r＝") or number.fullmatch(cell)
    kinds = [dict(zip(header, row, strict=True))["'=kind"] for row in rows]
    assert [kind.removeprefix("'") for kind in kinds] == FORMULAS
    assert [row[header.index("sign")] for row in rows[:3]] == ["-1", "+1", "1e-3"]
    assert {row[header.index("value")] for row in rows} == {"-1.5"}


# -- check -------------------------------------------------------------------------------------


def test_check_says_what_is_wrong_and_saves_what_is_not(run, path, tmp_path):
    with Study.open(path, PLANE, policy="uniform") as study:
        play(study, 5)
    code, out, err = run("check", path)
    assert (code, err) == (0, "")
    assert out.splitlines() == [f"{path}: 10 events, 5 values", f"{path}: all is well"]
    change(path, "UPDATE events SET value = 7 WHERE seq = 6")
    assert run("show", path)[0] == 2
    new = tmp_path / "new.db"
    code, out, err = run("check", path, "--save", new)
    assert (code, err) == (1, "")
    assert f"{path}: event 6 of the log: its checksum differs" in out
    assert f"{new}: lost: event 6: its checksum differs" in out
    assert out.endswith(f"{new}: 9 events saved, 4 of them values\n")
    assert run("check", new)[0] == 0
    assert run("check", path, "--save", new)[0] == 2
    assert run("check", tmp_path / "no.db")[0] == 2
    (tmp_path / "text").write_text("words\n" * 1000)
    code, out, _ = run("check", tmp_path / "text")
    assert code == 1
    assert "is not a database" in out
