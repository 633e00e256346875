"""Conditional parameters on the command line: `--param model=svm/C:...`, programs, studies."""

import csv
import json
import sys

import pytest

from partita.commands.main import main
from partita.commands.params import names_of, read_params, read_point
from partita.commands.program import read_template
from partita.errors import InvalidInput
from partita.space import as_space

MODELS = [
    "model:svm,forest,mean",
    "scale:bool",
    "model=svm/C:1e-3:1e3:log",
    "model=svm/kernel:rbf,linear",
    "model=svm/kernel=rbf/gamma:0:1",
    "model=svm,forest/tol:0:1",
    "model=forest/trees:10:500:int",
    "scale=true/by:1:2",
]


def test_a_path_of_choices_stands_before_the_name():
    assert read_params(MODELS) == {
        "model": {
            "svm": {
                "C": (1e-3, 1000, "log"),
                "kernel": {"rbf": {"gamma": (0, 1)}, "linear": {}},
                "tol": (0, 1),
            },
            "forest": {"tol": (0, 1), "trees": (10, 500, "int")},
            "mean": {},
        },
        "scale": {False: {}, True: {"by": (1, 2)}},
    }
    names = names_of(read_params(MODELS))
    assert list(names) == ["model", "scale", "C", "kernel", "tol", "gamma", "trees", "by"]
    assert [name for name, always in names.items() if always] == ["model", "scale"]


def test_starting_points_have_what_is_active():
    params = read_params(MODELS)
    text = "model=svm,scale=false,C=1,kernel=linear,tol=0.5"
    point = read_point(text, params)
    assert point == {"model": "svm", "C": 1.0, "kernel": "linear", "tol": 0.5, "scale": False}
    as_space(params).encode(point)
    with pytest.raises(InvalidInput, match="gamma is not there with these choices"):
        read_point(f"{text},gamma=0.1", params)
    with pytest.raises(InvalidInput, match="by is missing"):
        read_point("model=mean,scale=true", params)
    with pytest.raises(InvalidInput, match="give one of 'svm', 'forest', 'mean'"):
        as_space(params).encode(read_point("model=tree,scale=false", params))


@pytest.mark.parametrize(
    ("texts", "why"),
    [
        (["m=a/x:0:1"], "there is no choice called m before it. Give --param m:a,OTHER first"),
        (["m:0:1", "m=a/x:0:1"], "there is no choice called m before it"),
        (["m:a,b", "m=c/x:0:1"], "'c' is not a choice of m. Give one of a, b"),
        (["m:bool", "m=1/x:0:1"], "'1' is not a choice of m. Give one of false, true"),
        (["m:a,b", "m=a/x:0:1", "m=a,b/x:0:1"], "x is already given"),
        (["m:a,b", "m=a/:0:1"], "'' is not a name"),
    ],
)
def test_what_cannot_be_meant_is_refused(texts, why):
    with pytest.raises(InvalidInput) as refused:
        read_params(texts)
    assert why in str(refused.value)


def test_arguments_of_what_is_not_active_are_left_out():
    names = ["model", "C", "trees"]
    words = ["env", "-v", "{model}", "--C", "{C}", "--trees={trees}", "x{C}y", "--last"]
    template = read_template(words, names, ["model"])
    assert template.fill({"model": "svm", "C": 0.5}) == [
        *("env", "-v", "svm", "--C", "0.5", "x0.5y", "--last")
    ]
    assert template.fill({"model": "forest", "trees": 3}) == [
        *("env", "-v", "forest", "--trees=3", "--last")
    ]
    with pytest.raises(InvalidInput, match="the program itself cannot depend on a parameter"):
        read_template(["{C}", "{model}", "{trees}"], names, ["model"])


PROGRAM = """
import sys
given = dict(word[2:].split("=") for word in sys.argv[1:])
assert sorted(given) in (["C", "model"], ["model", "trees"]), given
print(float(given["C"]) / 10 if "C" in given else abs(int(given["trees"]) - 40) / 400 + 0.3)
"""


def test_a_run_and_its_answer(capsys):
    code = main(
        [
            *("minimize", "--param", "model:svm,forest", "--param", "model=svm/C:1:10"),
            *("--param", "model=forest/trees:10:500:int", "--evals", "14", "--json"),
            *("--x0", "model=forest,trees=40", "--", sys.executable, "-c", PROGRAM),
            *("--model={model}", "--C={C}", "--trees={trees}"),
        ]
    )
    assert code == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["params"].keys() == {"model", "C"}
    assert shown["command"][-2:] == ["--model=svm", f"--C={shown['params']['C']!r}"]


def test_a_study_through_the_commands(tmp_path, capsys):
    file = str(tmp_path / "tune.db")
    params = [word for text in MODELS for word in ("--param", text)]
    assert main(["create", file, *params]) == 0
    for number in range(8):
        assert main(["ask", file]) == 0
        words = capsys.readouterr().out.split()
        assert words[0] == str(number)
        given = dict(word.split("=") for word in words[1:])
        assert ("trees" in given) == (given["model"] == "forest")
        assert ("gamma" in given) == (given.get("kernel") == "rbf")
        assert main(["tell", file, str(number), str(0.1 * number)]) == 0
    assert main(["show", file]) == 0
    assert "gamma   0 to 1 (if kernel is 'rbf')" in capsys.readouterr().out
    table = tmp_path / "trials.csv"
    assert main(["export", file, str(table)]) == 0
    with table.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == 8
    for row in rows:
        assert (row["trees"] == "") == (row["model"] != "forest")
        assert (row["C"] == "") == (row["model"] != "svm")
