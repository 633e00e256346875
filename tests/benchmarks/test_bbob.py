"""The benchmark on BBOB's noisy functions: what is said of them, who plays, and the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import bbob_noisy
import bounds
import numpy as np
import pytest
from support.runs import run_of
from versus import bbob, bbob_report, problems, report, runs
from versus.bbob import CAUCHY, FUNCTIONS
from versus.board import Board, rank
from versus.players import Setting
from versus.roster import BBOB, PLAYERS
from versus.runs import Run, Task

pytest.importorskip("cma")
DRAWS = 20_000


def _play(player: str, budget: int, problem: str = "f107-2", seed: int = 0) -> Run:
    return runs.play(Task(budget, seed, bbob.OWN, problem, player, ""), 60.0)


def _run(player: str, value: float, number: int = 101, **facts: Any) -> Run:
    facts = {"problem": bbob.name(number, 2), "noise": bbob.OWN} | facts
    return run_of(player, value, **facts)


# The functions


@pytest.mark.parametrize("number", FUNCTIONS)
def test_the_best_value_is_that_of_the_optimum(number: int) -> None:
    problem = problems.build(bbob.name(number, 5), bbob.OWN, 1)
    optimum = (np.asarray(problem.source.xopt) / bbob.SIDE + 1) / 2
    assert problem.function(optimum[None, :])[0] == pytest.approx(problem.best, abs=1e-9)
    values = problem.function(np.random.default_rng(0).random((500, 5)))
    assert values.max() < problem.best
    assert np.mean(problem.best - values <= problem.uniform_regret) == pytest.approx(0.5, abs=0.1)


def test_seeds_are_instances() -> None:
    import cma.bbobbenchmarks as source

    x = np.array([[1.0, -2.0]])
    f, best = source.instantiate(113, iinstance=3)
    problem = bbob.build("f113-2", 2)
    assert problem.best == -best
    assert problem.function((x / 5 + 1) / 2)[0] == -f._evalfull(x)[1][0]
    assert problem.function((x / 5 + 1) / 2)[0] != bbob.build("f113-2", 1).function((x / 5 + 1) / 2)


@pytest.mark.parametrize("number", FUNCTIONS)
def test_noise_is_that_of_bbob_and_leaves_the_global_state_alone(number: int) -> None:
    import cma.bbobbenchmarks as source

    x = np.array([[1.5, -2.5, 0.5, 3.0, -1.0]])
    problem = bbob.build(bbob.name(number, 5), 0)
    value = float(problem.function((x / 5 + 1) / 2)[0])
    before = np.random.get_state()[1]  # noqa: NPY002
    noisy = problem.noise(np.random.default_rng(3))
    first = [noisy(value) for _ in range(4)]
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002
    random = np.random.default_rng(3)
    source._randn, source._rand = random.standard_normal, random.random
    f, _ = source.instantiate(number, iinstance=1)
    assert first == pytest.approx([-f._evalfull(x)[0][0] for _ in range(4)])
    assert len(set(first)) > 1 or number in CAUCHY


@pytest.mark.parametrize("dim", [2, 5, 20])
@pytest.mark.parametrize("number", [101, 102, 107, 108, 103, 109])
def test_what_values_are_on_average(number: int, dim: int) -> None:
    problem = bbob.build(bbob.name(number, dim), 0)
    excess = np.array([0.5, 30.0])
    told = problem.expected(problem.best - excess)
    noisy = problem.noise(np.random.default_rng(5))
    for value, mean in zip(problem.best - excess, told, strict=True):
        drawn = np.array([noisy(value) for _ in range(DRAWS)])
        if number in CAUCHY:
            assert mean == pytest.approx(np.median(drawn))
            continue
        error = drawn.std() / np.sqrt(DRAWS)
        assert abs(mean - drawn.mean()) < 4 * error
        assert number in (101, 102) or abs(value - drawn.mean()) > 20 * error  # f is not it
    assert problem.expected(np.array([problem.best]))[0] == problem.best


def test_severe_gaussian_noise_adds_two_thirds() -> None:
    problem = bbob.build("f107-5", 0)
    assert problem.best - problem.expected(problem.best - np.array([2.0]))[0] == pytest.approx(
        2 * np.exp(0.5)
    )


# Who plays

CHEAP = ("pycma", "pycma-noise", "cmaes-restarts", "uniform")


@pytest.mark.parametrize("name", CHEAP)
def test_answers_and_repetitions_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if PLAYERS[name].missing():
        pytest.skip(PLAYERS[name].missing() or "")
    plain = _play(name, 300)
    assert (plain.status, plain.error) == ("done", "")
    monkeypatch.setattr(runs, "MARKS", tuple(range(1, 300)))
    often = _play(name, 300)
    assert np.array_equal(plain.regret, often.regret)
    assert plain.simple[-1] == often.simple[-1]
    assert not np.array_equal(plain.regret, _play(name, 300, seed=1).regret)


def _searched(name: str, function: Any, budget: int) -> Any:
    """A player after a search for the least value."""
    player = PLAYERS[name](Setting(2, budget, 0, bbob.build("f101-2", 0)))
    for _ in range(budget):
        x = player.ask()
        player.tell(x, -function(x))
    return player


@pytest.mark.parametrize("name", ["pycma", "cmaes-restarts"])
def test_restarts_double_the_population_and_keep_the_best(name: str) -> None:
    if PLAYERS[name].missing():
        pytest.skip(PLAYERS[name].missing() or "")
    cls = PLAYERS[name]
    factors: list[int] = []
    start = cls._start

    def counted(self: Any, mean: np.ndarray, factor: int, seed: int) -> Any:
        factors.append(factor)
        if len(factors) == 1:
            assert np.array_equal(mean, [0.5, 0.5])
        return start(self, mean, factor, seed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cls, "_start", counted)
        player = _searched(name, lambda x: float(((x - 0.4) ** 2).sum()), 4_000)
    assert factors[:3] == [1, 2, 4]
    assert player.recommend() == pytest.approx([0.4, 0.4], abs=1e-3)


def test_the_noise_handler_is_told_every_value_and_evaluates_again() -> None:
    import cma

    random = np.random.default_rng(1)
    told: list[float] = []

    def noise(_: np.ndarray) -> float:
        told.append(float(random.normal()))
        return told[-1]

    player = _searched("pycma-noise", noise, 1_000)
    handler = player._handler
    assert isinstance(handler, cma.NoiseHandler)
    assert handler.evaluations > 2  # of pure noise it wants more and more values
    # Every value that it compares is a median of values it was told.
    times = int(handler.evaluations)
    assert set(handler.fitre) <= _medians(told, times) | _medians(told, times - 1)


def _medians(told: list[float], times: int) -> set[float]:
    return {float(np.median(told[i : i + times])) for i in range(len(told) - times + 1)}


# The plan


def test_slow_players_play_less() -> None:
    pytest.importorskip("nevergrad")
    options = bbob_noisy._options(["run"])
    tasks = bbob_noisy.plan(["uniform", "nevergrad-tbpsa", "optuna-tpe"], options)
    by_player = {p: [t for t in tasks if t.player == p] for p in {t.player for t in tasks}}
    assert len(by_player["uniform"]) == 30 * 3 * 3
    assert len(by_player["nevergrad-tbpsa"]) == 3 * 30 * 3 * 3
    slow = by_player["optuna-tpe"]
    assert len(slow) == 9 * 3
    assert {(task.budget, task.seed) for task in slow} == {(2_000, 0)}


def test_all_players_are_known() -> None:
    assert set(BBOB) <= PLAYERS.keys()


# The report


def test_means_are_geometric_with_a_floor() -> None:
    assert bbob_report.geometric_mean([0.01, 1.0]) == pytest.approx(0.1)
    assert bbob_report.geometric_mean([0.0, 1.0]) == pytest.approx(0.01)


def test_level_is_within_a_tenth_or_below_the_floor() -> None:
    made = [_run("uniform", 0.1), _run("pycma", 0.109), _run("cmaes-restarts", 0.111)]
    shown = Board({run.task: run for run in made}, None, bbob_report.LOGARITHMIC)
    column = shown.column("simple_at", "f101-2", bbob.OWN, 10)
    assert rank(column) == ("uniform", frozenset({"pycma"}))
    tiny = [_run("uniform", 1e-9), _run("pycma", 1e-5), _run("cmaes-restarts", 4e-4)]
    shown = Board({run.task: run for run in tiny}, None, bbob_report.LOGARITHMIC)
    column = shown.column("simple_at", "f101-2", bbob.OWN, 10)
    ranking = rank(column)
    assert {ranking.first, *ranking.level} == {"uniform", "pycma"}
    for player in ("uniform", "pycma"):
        assert report.cell_text(column[player], player, ranking) == "**0.0001**"
        assert report.count_text(player, [column[player]], [ranking]) == "1"


def test_targets_are_reached_once_by_the_best_play() -> None:
    parts = bbob_report.reached(np.array([100.0, 10.0, 0.01, 5.0, 0.0]))
    assert parts == pytest.approx([0.0, 1 / 31, 16 / 31, 16 / 31, 1.0])


def test_players_are_compared_on_functions_and_instances_that_all_have() -> None:
    made = [_run("uniform", 0.5, n, seed=s) for n in (101, 102) for s in (0, 1)]
    made += [_run("pycma", 0.1, n, seed=s) for n in (101, 102) for s in (0, 1)][:-1]
    made += [_run("cmaes-restarts", 0.2, 101)]
    shown = bbob_report.compared({run.task: run for run in made}, 2, 10)
    assert shown.players == ["pycma", "uniform"]
    assert (shown.seeds, len(shown.runs)) == (1, 4)
    text = bbob_report.tables(
        {run.task: run for run in made},
        bbob_report.all_columns({run.task: run for run in made}, [10]),
        bbob_report.all_columns({run.task: run for run in made}, [10], ["f101-2"]),
    )
    assert "2 functions, 1 instance" in text
    assert "## With the slow optimisers" in text


def test_the_docs_page_has_the_marks() -> None:
    page = (Path(__file__).parents[2] / "docs" / "bbob.md").read_text(encoding="utf-8")
    assert "new table" in report.page(page, "new table\n", "bbob_noisy")


def test_the_command_runs_resumes_and_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    words = "--players uniform --functions 101 109 --dims 2 --budget 500 --instances 2 --out"
    arguments = [*words.split(), str(tmp_path)]
    assert bbob_noisy.main(arguments) == 0
    assert "4 runs, 4 to be made" in capsys.readouterr().out
    assert (tmp_path / "bbob.png").read_bytes().startswith(b"\x89PNG")
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "\n2 functions, 2 instances.\n" in text
    assert bbob_noisy.main(["run", *arguments]) == 0
    assert "4 runs, 0 to be made" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="holds no runs"):
        bbob_noisy.main(["report", *arguments, "--players", "pycma"])


# Bounds


def test_bounds_are_compared_with_the_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "CHECKPOINTS", (30,))
    held = bounds.run("f101-2", bbob.OWN, 0, 30)[0]
    monkeypatch.setattr(bbob.NoisyFunction, "expected", lambda self, values: values - 1e6)
    moved = bounds.run("f101-2", bbob.OWN, 0, 30)[0]
    assert held.answer
    assert not moved.answer
    assert moved.anywhere == 0
    assert bounds.label("f101-5", bbob.OWN) == "f101, d = 5"
