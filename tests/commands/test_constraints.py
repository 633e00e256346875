"""`--constraint`: programs that print several values, and studies from the shell."""

import json
import sys

import pytest

from partita.commands.named import named_values
from partita.commands.printed import ProgramFailed
from partita.commands.program import Program, read_template

ON_X = ["--param", "x:0:1"]
PRINTS = (
    "import sys; x = float(sys.argv[1]); print('epoch 3'); print('gain=%r' % x); "
    "print('cost = %r' % x**2)"
)
PROGRAM = ["--", sys.executable, "-c", PRINTS, "{x}"]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("loss=0.3\ncost=9", {"loss": 0.3, "cost": 9.0}),
        (" loss = -1e-3 \r\nnoise\nloss=2\n", {"loss": 2.0}),
        ("a=b\nx==3\nloss=1 cost=2\n=3\n3=4\nval.loss=5", {"val.loss": 5.0}),
        ("", {}),
    ],
)
def test_lines_of_names_and_values(text, values):
    assert named_values(text) == values


def test_minimize_keeps_to_it(run, path):
    code, out, _ = run(
        *("maximize", *ON_X, "--constraint", "cost <= 0.25", "--evals", 14, "--json"),
        *("--study", path, *PROGRAM),
    )
    assert code == 0
    found = json.loads(out)
    assert 0.4 < found["params"]["x"] <= 0.5001
    assert found["constraints"]["cost"]["constraint"] == "cost <= 0.25"
    assert found["constraints"]["cost"]["probability"] >= 0.9
    code, out, _ = run("show", path)
    assert code == 0
    assert "cost <= 0.25 with probability" in out
    table = path.with_name("trials.csv")
    assert run("export", path, table)[0] == 0
    assert "cost" in table.read_text().splitlines()[0].split(",")


def test_the_text_says_what_is_known(run):
    code, out, _ = run("maximize", *ON_X, "--constraint", "cost <= -1", "--evals", 5, *PROGRAM)
    assert code == 1
    assert "cost <= -1 with probability" in out
    assert "No point evaluated is feasible with probability 0.9" in out


def test_a_program_that_prints_other_names_is_noticed_at_once(run):
    code, _, err = run("minimize", *ON_X, "--constraint", "time <= 1", "--evals", 50, *PROGRAM)
    assert code == 1
    assert "ended at its first evaluation" in err
    assert "has no 'time': give name=value for each, such as objective=... time=..." in err


def test_a_program_without_names_fails_and_says_so():
    template = read_template([sys.executable, "-c", "print(3, {x})"], ["x"])
    with pytest.raises(ProgramFailed, match=r"printed no line such as loss=0\.3, but '3 1'"):
        Program(template, named=True)(x=1)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--constraint", "cost"], "'cost' is not understood"),
        (["--constraint", "x <= 1"], "about x, a parameter"),
        (["--constraint", "cost <= 1", "--std"], "Leave --std out"),
        (["--constraint", "cost <= 1", "--policy", "uniform"], "UniformSampling has no model"),
    ],
)
def test_mistakes_are_refused_before_anything_runs(run, words, message):
    code, _, err = run("minimize", *ON_X, *words, "--evals", 5, *PROGRAM)
    assert code == 2
    assert message in err


def test_ask_and_tell(run, path):
    assert run("create", path, *ON_X, "--constraint", "cost <= 0.25")[0] == 0
    run("ask", path)
    for words, message in (
        ([1.0], "the value is 1.0: give name=value for each, such as objective=... cost=..."),
        (["loss=1"], "has no 'cost'"),
        (["loss=1", "cost=dear"], "dear is not a number"),
        (["loss=1", "loss=2"], "loss is there already"),
        (["loss=1", "2"], "with constraints, name=value for each"),
    ):
        code, _, err = run("tell", path, 0, *words)
        assert code == 2
        assert message in err
    assert run("tell", path, 0, "loss=1", "cost=-2e-1")[0] == 0
    run("ask", path)
    assert run("cancel", path, 1, "--failed")[0] == 0
    code, out, _ = run("show", path, "--json")
    shown = json.loads(out)
    assert (shown["evaluations"], shown["failed"]) == (1, 1)
    assert shown["constraints"]["cost"]["mean"] is None
    assert "not known yet: cost <= 0.25" in run("show", path)[1]
