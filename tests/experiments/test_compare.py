"""`partita compare`, `partita policies` and `partita problems`."""

import math
import sys

import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor

import partita as pt
from partita.commands import main as cli
from partita.errors import InvalidInput
from partita.experiments import PolicySpec, ProblemSpec, Task, compare, figures, run, run_many
from partita.experiments.specs import policy_for
from partita.experiments.trace import PolicyFailed
from partita.policies.named import read_policy


def compare_(*arguments):
    return cli.main(["compare", *map(str, arguments), "--jobs", "1"])


SMALL = ("--side", 6, "--horizon", 30, "--runs", 2, "--problems", "synthetic-1d", "branin")


def rows_of(text):
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_the_table_by_hand(tmp_path, capsys):
    assert compare_(*SMALL, "--policies", "pi-gp-ucb", "uniform", "--out", tmp_path / "out") == 0
    rows = rows_of(capsys.readouterr().out)
    assert [row[:2] for row in rows] == [
        ["synthetic, d = 1", "π-GP-UCB"],
        ["synthetic, d = 1", "uniform sampling"],
        ["Branin", "π-GP-UCB"],
        ["Branin", "uniform sampling"],
    ]
    problem = ProblemSpec("branin", 2, 6, 0.1, 1.0)
    traces = [run(PolicySpec("pi-gp-ucb"), problem, 30, seed) for seed in range(2)]
    values = pt.problems.get("branin").on_grid(6)
    lost = [np.mean(1.0 - values[t.choices]) / (1.0 - values.mean()) for t in traces]
    mean, half = np.mean(lost), 12.7062047 * np.std(lost, ddof=1) / math.sqrt(2)
    digits = 2 if half >= 0.0095 else 3
    assert rows[2][2] == f"{mean:.{digits}f} ± {half:.{digits}f}"
    simple = np.mean([t.simple_regret / t.uniform_regret for t in traces])
    assert float(rows[2][3].split(" ± ")[0]) == pytest.approx(simple, abs=0.0051)
    assert rows[2][4].split()[1] in {"µs", "ms"}
    for name in ("compare.md", "compare.png", "compare.svg"):
        assert (tmp_path / "out" / name).stat().st_size > 500
    svg = (tmp_path / "out" / "compare.svg").read_text()
    assert "Branin" in svg


def test_the_recommended_points_regret():
    problem = ProblemSpec("synthetic", 1, 8)
    trace = run(PolicySpec("pi-gp-ucb"), problem, 200, 3)
    built = problem.build(3)
    policy = policy_for(PolicySpec("pi-gp-ucb"), built, 200, 3)
    noise = np.random.default_rng([3, 1]).uniform(-1, 1, 200)
    for t, arm in enumerate(trace.choices):
        x = policy.ask()
        np.testing.assert_array_equal(x, built.domain.points[arm])
        policy.tell(x, float(built.values[arm]) + float(noise[t]))
    (arm,) = built.domain.index_of(policy.recommend().x[None, :])
    assert trace.simple_regret == built.values.max() - built.values[arm]


@pytest.fixture
def undrawn(monkeypatch):
    """No figure: others look at it."""
    monkeypatch.setattr(figures, "comparison", lambda *_: {})


@pytest.mark.usefixtures("undrawn")
def test_runs_are_kept(tmp_path, made, capsys):
    command = (*SMALL, "--policies", "uniform", "hoo", "--out", tmp_path)
    assert compare_(*command) == 0
    assert len(made) == 8
    assert compare_(*command) == 0
    assert len(made) == 8
    assert compare_(*command, "--policies", "uniform", "soo") == 0
    assert len(made) == 12
    capsys.readouterr()


def test_on_a_box(tmp_path, capsys):
    assert (
        compare_(
            *("--box", "--horizon", 20, "--runs", 1, "--out", tmp_path),
            *("--policies", "pi-gp-ucb", "gp-ucb", "--problems", "branin", "synthetic-2d"),
        )
        == 0
    )
    out = capsys.readouterr().out
    assert "on the unit box" in out
    rows = rows_of(out)
    assert rows[1][2:] == ["needs a finite domain", "", ""]
    assert float(rows[0][2]) > 0


def test_values_on_a_box_are_the_functions():
    problem = ProblemSpec("branin", 2, noise=0.1, norm_bound=1.0, continuous=True).build(0)
    f = pt.problems.get("branin")
    points = np.random.default_rng(0).random((50, 2))
    np.testing.assert_array_equal(problem.function(points), f.unit(points))
    assert problem.best == 1.0
    dense = f.unit(np.random.default_rng(1).random((200_000, 2)))
    assert problem.mean == pytest.approx(dense.mean(), abs=5 * dense.std() / math.sqrt(200_000))
    synthetic = ProblemSpec("synthetic", 2, continuous=True).build(5)
    axis = np.linspace(0, 1, 201)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    highest = synthetic.function(grid).max()
    assert highest <= synthetic.best <= highest + 0.01


OWN = """
import numpy as np
import partita as pt


class Corner(pt.UniformSampling):
    def _propose(self):
        return 0, self.domain.points[0].copy()


class Broken(pt.UniformSampling):
    def _propose(self):
        raise RuntimeError("no idea what to play")


class Duck:
    def __init__(self, domain, seed=0):
        self.domain, self.best = domain, None

    def ask(self):
        return self.domain.points[1].copy()

    def tell(self, x, y):
        self.best = x

    def recommend(self):
        return pt.Recommendation(self.best, 0.0, 0.0, 0.0)
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_policies_b.py").write_text(OWN)
    yield
    sys.modules.pop("own_policies_b", None)


@pytest.mark.usefixtures("own", "undrawn")
def test_a_policy_of_ones_own(tmp_path, capsys):
    names = ("own_policies_b:Corner", "own_policies_b:Duck")
    assert compare_(*SMALL, "--policies", *names, "--out", tmp_path / "out") == 0
    rows = rows_of(capsys.readouterr().out)
    values = pt.problems.get("branin").on_grid(6)
    for row, arm in ((rows[2], 0), (rows[3], 1)):
        fraction = (1 - values[arm]) / (1 - values.mean())
        assert row[2] == f"{fraction:.3f} ± 0.000"
        assert row[3] == f"{fraction:.3f} ± 0.000"


@pytest.mark.usefixtures("own")
def test_a_policy_that_fails_is_named(tmp_path, capsys):
    policies = ("uniform", "own_policies_b:Broken")
    assert compare_(*SMALL, "--policies", *policies, "--out", tmp_path / "out") == 2
    error = capsys.readouterr().err
    assert "own_policies_b:Broken failed on" in error
    assert "at step 1: RuntimeError: no idea what to play" in error
    assert error.count("\n") == 1
    with pytest.raises(PolicyFailed):
        run(PolicySpec("own_policies_b:Broken"), ProblemSpec("synthetic", 1, 6), 5, 0)


@pytest.mark.usefixtures("own")
def test_ones_own_policy_is_run_again_once_its_file_changed(tmp_path):
    task = Task(PolicySpec("own_policies_b:Corner"), ProblemSpec("synthetic", 1, 6), 5, 0)
    before = task.file_name()
    (tmp_path / "own_policies_b.py").write_text(OWN + "\n# changed\n")
    assert task.file_name() != before


@pytest.mark.usefixtures("own")
def test_ones_own_policy_in_other_processes():
    get_reusable_executor().shutdown(wait=True)  # new ones start in the folder that we are in
    problem, policy = ProblemSpec("synthetic", 1, 6), PolicySpec("own_policies_b:Corner")
    traces = run_many([Task(policy, problem, 5, seed) for seed in range(2)], jobs=2)
    assert [trace.choices.tolist() for trace in traces] == [[0] * 5] * 2
    get_reusable_executor().shutdown(wait=True)


def test_settings_in_brackets():
    assert read_policy("hoo") == PolicySpec("hoo")
    found = read_policy("pi-gp-ucb[tightening=true, alpha=2,delta=0.05,width=mixture]")
    assert found.settings == (
        ("tightening", True),
        ("alpha", 2),
        ("delta", 0.05),
        ("width", "mixture"),
    )
    assert compare.label(found).startswith("π-GP-UCB [tightening=True, alpha=2")
    problem = ProblemSpec("synthetic", 1, 6).build(0)
    policy = policy_for(found, problem, 10, 0)
    assert (policy.alpha, policy.delta) == (2.0, 0.05)


@pytest.mark.parametrize(
    ("text", "name", "dim", "side"),
    [
        ("synthetic", "synthetic", 2, 30),
        ("synthetic-3d", "synthetic", 3, 16),
        ("branin", "branin", 2, 30),
        ("hartmann6", "hartmann6", 6, 4),
        ("ackley-5d", "ackley", 5, 5),
        ("levy-9d", "levy", 9, 2),
    ],
)
def test_problems_by_name(text, name, dim, side):
    found = compare.read_problem(text)
    assert (found.name, found.dim, found.side) == (name, dim, side)
    assert found.noise == (1.0 if name == "synthetic" else 0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--policies", "ucb"), "policy 'ucb' is unknown"),
        (("--policies", "hoo[nu1"), "give a name, or name[setting=value,...]"),
        (("--policies", "hoo[nu1]"), "'nu1' is not a setting=value"),
        (("--policies", "hoo[colour=1]"), "HOO has no setting colour"),
        (("--problems", "mountain"), "problem 'mountain' is unknown: give synthetic"),
        (("--problems", "branin-3d"), "Branin has 2 dimensions"),
        (("--problems", "synthetic-0d"), "dim"),
        (("--runs", "0"), "--runs 0"),
        (("--horizon", "0"), "--horizon 0"),
        (("--side", "1"), "--side 1"),
        (("--noise", "-1"), "noise"),
        (("--norm-bound", "0"), "norm_bound"),
        (("--box", "--side", "5"), "a box has no arms"),
        (("--backend", "threads"), "backend 'threads' is unknown"),
    ],
)
def test_bad_input(arguments, message, tmp_path, capsys):
    out = tmp_path / "out"
    base = () if "--problems" in arguments or "--box" in arguments else ("--problems", "synthetic")
    command = ["compare", *base, *arguments, "--out", str(out), "--jobs", "1"]
    assert cli.main(command) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert not (out / "compare.md").exists()


def test_plans_need_something_to_compare():
    with pytest.raises(InvalidInput, match="at least one"):
        compare.Plan((), (ProblemSpec("synthetic"),))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (2.34e-6, "2.3 µs"),
        (1.23e-5, "12 µs"),
        (9.996e-4, "1.0 ms"),
        (0.0123, "12.3 ms"),
        (1, "1.0 s"),
    ],
)
def test_times_of_a_step(seconds, text):
    assert compare.step_time(seconds) == text


def test_every_policy_can_be_compared(tmp_path, capsys):
    from partita.policies import registry

    names = registry.names()
    command = ("--side", 5, "--horizon", 12, "--runs", 1, "--problems", "branin")
    assert compare_(*command, "--policies", *names, "--out", tmp_path) == 0
    rows = rows_of(capsys.readouterr().out)
    assert [row[1] for row in rows] == [registry.get(name).title for name in names]
    assert all(float(row[2]) >= 0 for row in rows)


@pytest.mark.parametrize(
    ("command", "first", "known"),
    [("policies", "gp-ucb", "pi-gp-ucb"), ("problems", "synthetic", "hartmann6")],
)
def test_lists(command, first, known, capsys):
    assert cli.main([command]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[0] == first
    names = [line.split()[0] for line in lines]
    assert known in names
    assert len(set(names)) == len(names)
    assert all(len(line.split()) > 3 for line in lines)
