"""`--std`: values whose noise is known, from the shell."""

import csv
import io
import json

import pytest
from support.studies import PLANE

from partita.commands import main as cli
from partita.commands.printed import ProgramFailed, last_pair
from partita.commands.program import Program, read_template
from partita.study import Study

ON_X = ["--param", "x:0:1"]
#: Prints x and a tenth of it.
PAIR = ["awk", 'BEGIN {{ x = {x}; print "loss", x, "+-", x / 10 }}']


# -- tell ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ["FILE", 0, "-1.5e-1", "--std", "0.25"],
        ["FILE", 0, "-1.5e-1", "--std=0.25"],
        ["FILE", 0, "--std", "0.25", "-1.5e-1"],
        ["--std", "0.25", "FILE", 0, "-1.5e-1"],
    ],
)
def test_tell_takes_it_wherever_it_stands(run, path, words):
    study = Study.open(path, PLANE)
    study.ask()
    given = [path if word == "FILE" else word for word in words]
    assert run("tell", *given) == (0, "", "")
    assert (study.trials[0].value, study.trials[0].std) == (-0.15, 0.25)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["1", "--std", "-0.1"], "std=-0.1: give the standard deviation"),
        (["1", "--std=-1e-3"], "std=-0.001: give the standard deviation"),
        (["1", "--std", "nan"], "std=nan: give"),
        (["1", "--std", "inf"], "std=inf: give"),
        (["1", "--std", "wide"], "--std: wide was given; give one number of at least 0"),
        (["1", "--std"], "--std: nothing was given"),
        (["1", "--std="], "--std: nothing was given"),
        (["1", "--std", "0.1", "--std", "0.2"], "Give it once"),
        (["--std", "0.1"], "give one number, followed by --std S"),
        (["1", "0.1"], "1 0.1 was given; give one number, followed by --std S"),
    ],
)
def test_mistakes_are_a_line_and_change_nothing(run, path, words, message):
    study = Study.open(path, PLANE)
    study.ask()
    code, out, err = run("tell", path, 0, *words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert (study.n_told, study.n_pending) == (0, 1)


def test_a_policy_without_a_use_for_it_refuses(run, path):
    study = Study.open(path, PLANE, policy="uniform")
    study.ask()
    code, _, err = run("tell", path, 0, 1.0, "--std", 0.1)
    assert code == 2
    assert "UniformSampling does not use the noise of single values. Leave std out" in err
    assert (study.n_told, study.n_pending) == (0, 1)
    assert run("tell", path, 0, 1.0)[0] == 0


def test_help_names_it(capsys):
    for command in ("tell", "minimize", "maximize"):
        with pytest.raises(SystemExit):
            cli.main([command, "--help"])
        assert "--std" in capsys.readouterr().out


# -- show and export -------------------------------------------------------------------------------


def test_show_and_export_have_it_if_any_was_given(run, path):
    study = Study.open(path, PLANE)
    study.tell(study.ask(), 1.0)
    assert "noise" not in run("show", path)[1]
    assert json.loads(run("show", path, "--json")[1])["known_noise"] is None
    assert "std" not in run("export", path, "-")[1]
    study.tell(study.ask(), 2.0, std=0.5)
    assert "\nnoise known for 1 of them: standard deviation 0.5\n" in run("show", path)[1]
    study.tell(study.ask(), 3.0, std=0)
    assert "\nnoise known for 2 of them: standard deviation 0 to 0.5\n" in run("show", path)[1]
    shown = json.loads(run("show", path, "--json")[1])
    assert shown["known_noise"] == {"values": 2, "least": 0.0, "greatest": 0.5}
    rows = list(csv.DictReader(io.StringIO(run("export", path, "-")[1])))
    assert [row["std"] for row in rows] == ["", "0.5", "0.0"]


# -- programs --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("0.5 0.1", (0.5, 0.1)),
        ("epoch 3\nloss -0.5\nstd 0\n", (-0.5, 0.0)),
        ("accuracy 93% ± 2%", (93.0, 2.0)),
        ("1 2 3", (2.0, 3.0)),
    ],
)
def test_the_last_two_numbers_count(text, pair):
    assert last_pair(text) == pair


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "printed nothing"),
        ("done", "printed no number, but 'done'"),
        ("loss 0.5", "printed one number, 0.5, but --std needs two: the value, then its standard"),
        ("nan 0.1", "the value, the second to last number it printed, is nan"),
        (
            "0.5 -0.1",
            "the standard deviation, the last number it printed, is -0.1, but must be a finite",
        ),
        ("0.5 inf", "the standard deviation, the last number it printed, is inf"),
    ],
)
def test_fewer_or_others_are_a_failure(text, message):
    with pytest.raises(ProgramFailed, match=message):
        last_pair(text)


def test_a_program_gives_a_pair_and_its_failure_knows_its_command():
    program = Program(read_template(["echo", "{x}", "0.5"], ["x"]), std=True)
    assert program(x=0.25) == (0.25, 0.5)
    with pytest.raises(ProgramFailed, match=r"is -0\.5") as caught:
        Program(read_template(["echo", "{x}", "-0.5"], ["x"]), std=True)(x=0.25)
    assert caught.value.command == ("echo", "0.25", "-0.5")


@pytest.mark.parametrize("jobs", [1, 2])
def test_minimize_reads_both(run, path, jobs):
    settings = ["--std", "--evals", 15, "--jobs", jobs, "--study", path, "--json"]
    code, out, err = run("minimize", *ON_X, *settings, "--", *PAIR)
    assert (code, err) == (0, "")
    assert json.loads(out)["evaluations"] == 15
    trials = Study.open(path).trials.finished
    assert len(trials) == 15
    for trial in trials:
        x = trial.params["x"]
        assert (trial.value, trial.std) == pytest.approx((x, x / 10), rel=1e-4, abs=1e-5)


def test_without_the_option_the_last_number_is_the_value(run, path):
    settings = ["--evals", 3, "--study", path, "--quiet"]
    assert run("minimize", *ON_X, *settings, "--", *PAIR)[0] == 0
    for trial in Study.open(path).trials:
        assert trial.std is None
        assert trial.value == pytest.approx(trial.params["x"] / 10, rel=1e-4, abs=1e-5)


def test_a_program_that_prints_one_number_fails_and_says_so(run):
    code, out, err = run("minimize", *ON_X, "--std", "--evals", 5, "--", "echo", "{x}")
    assert (code, out) == (1, "")
    assert "every evaluation failed. The first: printed one number" in err
    assert "but --std needs two" in err


def test_a_policy_without_a_use_for_it_is_refused_before_anything_runs(run, path, tmp_path):
    log = tmp_path / "log"
    program = ["sh", "-c", 'echo ran >>"$0"; echo 1 {x}', log]
    settings = ["--std", "--policy", "uniform", "--evals", 5, "--study", path]
    code, out, err = run("minimize", *ON_X, *settings, "--", *program)
    assert (code, out) == (2, "")
    assert "--std: UniformSampling does not use the noise of single values. Leave --std out" in err
    assert not log.exists()
    assert not path.exists()


def test_a_study_with_such_a_policy_is_left_as_it_was(run, path):
    Study.open(path, {"x": (0.0, 1.0)}, policy="uniform")
    settings = ["--std", "--evals", 5, "--study", path]
    code, _, err = run("minimize", *ON_X, *settings, "--", *PAIR)
    assert code == 2
    assert "UniformSampling does not use the noise of single values" in err
    study = Study.open(path)
    assert (study.n_told, study.n_pending) == (0, 0)
