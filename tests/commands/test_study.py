"""`partita create`, `ask`, `tell`, `cancel`, `show`, `export`: what they print and refuse."""

import csv
import io
import json
import shlex
import subprocess
import sys

import numpy as np
import pytest
from support.studies import PLANE, is_sound, play

import partita as pt
from partita.study import Study
from partita.study.export import export

PARAMS = ["--param", "lr:1e-4:1e-1:log", "--param", "depth:1:12:int", "--param", "kind:a,b c"]


def test_a_study_from_the_shell_is_the_study_of_python(run, path):
    settings = ["--direction", "maximize", "--seed", 3, "--evals", 50, "--expire-after", 1000]
    assert run("create", path, *PARAMS, *settings) == (0, "", "")
    space = {"lr": (1e-4, 1e-1, "log"), "depth": (1, 12, "int"), "kind": ["a", "b c"]}
    twin = pt.Optimizer(space, direction="maximize", seed=3, n_evals=50)
    for i in range(6):
        expected = twin.ask()
        code, out, err = run("ask", path, *(["--json"] if i % 2 else []))
        assert (code, err) == (0, "")
        if i % 2:
            assert json.loads(out) == {"number": i, "params": expected.params}
        else:
            number, *words = shlex.split(out)
            found = dict(word.split("=", 1) for word in words)
            assert number == str(i)
            assert found == {name: str(value) for name, value in expected.params.items()}
        assert run("tell", path, i, f"-{i}.5e-1") == (0, "", "")  # no option, though it looks so
        twin.tell(expected, -(i + 0.5) / 10)
    study = Study.open(path)
    assert study.n_told == 6
    assert study.settings.expire_after == 1000.0
    assert study.recommend()[2:] == twin.recommend()[2:]


def test_ask_gives_several_and_cancel_gives_one_up(run, path):
    run("create", path, "--param", "x:0:1", "--policy", "uniform")
    code, out, _ = run("ask", path, "--count", 3)
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == ["0", "1", "2"]
    assert run("cancel", path, 1) == (0, "", "")
    study = Study.open(path)
    assert (study.n_pending, study.n_failed) == (2, 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tell", "FILE", 9, 1], "there is no trial 9"),
        (["tell", "FILE", 0, 1], "already has a value"),
        (["tell", "FILE", 1, "nan"], "give a finite number"),
        (["tell", "FILE", 1, "-inf"], "give a finite number"),
        (["tell", "FILE", 1, "abc"], "abc was given; give one number"),
        (["tell", "FILE", 1], "nothing was given"),
        (["tell", "FILE", 1, 2, 3], "2 3 was given"),
        (["cancel", "FILE", 0], "already has a value"),
        (["create", "FILE", *PARAMS], "is already a study"),
        (["ask", "FILE", "--count", 0], "at least 1"),
        (["ask", "NONE"], "there is no study"),
        (["show", "NONE"], "there is no study"),
        (["create", "NONE"], "no parameters"),
        (["create", "NONE", "--param", "x:1:0"], "x"),
        (["create", "NONE", "--param", "x:0:1", "--policy", "mine:Policy"], "is not stored"),
        (["create", "NONE", "--param", "x:0:1", "--kernel", "soft"], "NU:LENGTHSCALE"),
        (["export", "FILE", "table.xls"], ".csv or .parquet"),
        (["export", "FILE", "no/table.csv"], "there is no folder"),
        (["show", "FILE", "--plot", "figure.txt"], ".png"),
    ],
)
def test_mistakes_are_a_line_and_change_nothing(run, path, arguments, words):
    study = Study.open(path, PLANE, policy="uniform")
    study.tell(study.ask(), 0.5)
    study.ask()
    before = study._store.rows("SELECT * FROM events")
    none = path.with_name("none.db")
    given = [{"FILE": path, "NONE": none}.get(word, word) for word in arguments]
    code, out, err = run(*given)
    assert (code, out) == (2, "")
    assert err.startswith("partita: ")
    assert err.count("\n") == 1
    assert words in err
    assert study._store.rows("SELECT * FROM events") == before
    assert not none.exists()


KNOWN = {"norm_bound": 5.0, "noise": pt.Gaussian(0.1), "kernel": pt.Matern(1.5, 0.3)}


def test_show_tells_all_that_is_known(run, path):
    study = Study.open(path, PLANE, direction="maximize", n_evals=50, expire_after=1e6, **KNOWN)
    code, out, _ = run("show", path)
    assert code == 0
    assert "no values yet" in out
    play(study, 45)
    waiting = study.ask()
    study.cancel(study.ask())
    code, out, err = run("show", path, "--json")
    assert (code, err) == (0, "")
    shown = json.loads(out, parse_constant=pytest.fail)
    best = study.recommend()
    assert shown["params"] == best.params.tolist()
    assert (shown["value"], shown["lower"], shown["upper"]) == best[2:]
    assert shown["certificate"] == study.certificate()
    assert (shown["evaluations"], shown["pending"], shown["failed"]) == (45, 1, 1)
    assert shown["guarantee"] == "proven"
    assert [row["evaluations"] for row in shown["progress"]] == [20, 40, 45]
    assert [row["number"] for row in shown["waiting"]] == [waiting.number]
    values = [row["value"] for row in shown["best"]]
    assert len(values) == 5
    assert shown["best"][0]["params"] == shown["params"]  # the answer is first
    known = study.predict([row["params"] for row in shown["best"]])
    np.testing.assert_allclose(values, known.mean)
    worth = (known.mean - known.std)[1:].tolist()
    assert worth == sorted(worth, reverse=True)
    assert shown["seed"] == 0
    played = sum(cell["evaluations"] for cell in shown["cells"])
    assert played >= 45
    code, out, _ = run("show", path)
    assert code == 0
    assert "45 evaluations, 1 pending, 1 failed" in out
    assert f"certificate {shown['certificate']:.4g}" in out
    assert "cells of the unit cube with most evaluations" in out


def test_show_draws(run, path, tmp_path):
    pytest.importorskip("matplotlib")
    study = Study.open(path, PLANE)
    image = tmp_path / "figure.png"
    code, _, err = run("show", path, "--plot", image)
    assert code == 2
    assert "nothing to draw" in err
    play(study, 25)
    code, _, err = run("show", path, "--plot", image)
    assert code == 0
    assert str(image) in err
    assert image.read_bytes().startswith(b"\x89PNG")


def played(path, monkeypatch):
    study = Study.open(path, {"n": (1, 5, "int"), "value": (0.0, 1.0), "mixed": [1, "a", None]})
    first, second, third, _ = (study.ask() for _ in range(4))
    study.tell(second, -1.5)
    study.tell(first, 0.1)
    study.cancel(third)
    study.add({"n": 2, "value": 0.5, "mixed": "a"}, 7.0)
    return study


def test_export_as_csv(run, path, monkeypatch):
    study = played(path, monkeypatch)
    code, out, err = run("export", path, "-")
    assert (code, err) == (0, "")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert list(rows[0]) == [
        "number", "state", "value", "asked", "ended", "n", "param_value", "mixed"
    ]  # fmt: skip
    assert [row["state"] for row in rows] == [
        "finished", "finished", "failed", "pending", "finished"
    ]  # fmt: skip
    assert [row["value"] for row in rows] == ["0.1", "-1.5", "", "", "7.0"]
    assert [float(row["param_value"]) for row in rows] == [p["value"] for p in study.trials.params]
    assert rows[1]["asked"] <= rows[1]["ended"] <= rows[0]["ended"]
    assert rows[3]["ended"] == ""
    target = path.with_name("table.csv")
    assert run("export", path, target) == (0, "", "")
    assert target.read_text() == out


def test_export_as_parquet(run, path, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    study = played(path, monkeypatch)
    target = path.with_name("table.parquet")
    assert run("export", path, target) == (0, "", "")
    table = parquet.read_table(target).to_pydict()
    assert table["number"] == [0, 1, 2, 3, 4]
    assert table["value"] == [0.1, -1.5, None, None, 7.0]
    assert table["n"] == [p["n"] for p in study.trials.params]
    assert table["param_value"] == [p["value"] for p in study.trials.params]
    words = [None if p["mixed"] is None else str(p["mixed"]) for p in study.trials.params]
    assert table["mixed"] == words
    assert table["asked"][1].utcoffset().total_seconds() == 0


def test_parquet_without_its_package(run, path, monkeypatch):
    study = played(path, monkeypatch)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    code, _, err = run("export", path, path.with_name("table.parquet"))
    assert code == 2
    assert "pyarrow is needed for this" in err
    assert study.n_told == 3
    assert not path.with_name("table.parquet").exists()


def test_an_array_has_columns_by_place(run, path, tmp_path):
    study = Study.open(path, PLANE, policy="uniform")
    play(study, 2)
    number, *words = run("ask", path)[1].split()
    assert (number, [word.partition("=")[0] for word in words]) == ("2", ["x0", "x1"])
    assert [float(word.partition("=")[2]) for word in words] == study.trials.params[2].tolist()
    export(study, tmp_path / "table.csv")
    rows = list(csv.DictReader((tmp_path / "table.csv").open()))
    assert [[float(row["x0"]), float(row["x1"])] for row in rows] == study.trials.params.tolist()


def test_two_shells_at_once(path):
    """Real processes of the command itself."""
    Study.open(path, {"x": (0.0, 1.0)}, policy="uniform")
    command = [sys.executable, "-m", "partita", "ask", str(path), "--count", "5"]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    numbers = [line.split()[0] for p in running for line in p.communicate()[0].splitlines()]
    assert [p.returncode for p in running] == [0, 0]
    assert sorted(map(int, numbers)) == list(range(10))
    assert is_sound(path)
