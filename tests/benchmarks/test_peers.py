"""The benchmark against peers: its problems, runs, bookkeeping and report. Peers are optional."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import peers
import pytest
from support.runs import run_of as _run
from versus import board, players, problems, report, runs
from versus.players import Player
from versus.roster import PLAYERS
from versus.runs import Run, Task

from partita.experiments.store import RunStore
from partita.problems import get
from partita.problems.rkhs import spread_points


class _Fake(Player):
    """Plays one point for ever."""

    name = "fake"
    title = "Fake"
    packages = ("numpy",)
    module = "numpy"
    at: float = 0.25

    def __init__(self, setting: players.Setting) -> None:
        self.dim = setting.dim
        self.steps = 0

    def ask(self) -> np.ndarray:
        return np.full(self.dim, self.at)

    def tell(self, x: np.ndarray, y: float) -> None:
        self.steps += 1

    def recommend(self) -> np.ndarray:
        return np.full(self.dim, 0.5)


class _Breaks(_Fake):
    def tell(self, x: np.ndarray, y: float) -> None:
        super().tell(x, y)
        if self.steps == 20:
            raise RuntimeError("a\nmatrix | is singular")


class _Slow(_Fake):
    def ask(self) -> np.ndarray:
        end = time.process_time() + 0.02
        while time.process_time() < end:
            pass
        return super().ask()


class _Hangs(_Fake):
    def recommend(self) -> np.ndarray:
        time.sleep(60)
        raise AssertionError


class _Strays(_Fake):
    at = 1.5


def _play(player: type[Player], budget: int = 30, time_limit: float = 60.0, **task: Any) -> Run:
    chosen = {"seed": 0, "noise": "tenth", "problem": "branin", "player": "fake", "key": ""} | task
    return runs.play(Task(budget, **chosen), time_limit, player)


def _board(*made: Run) -> board.Board:
    return board.Board({run.task: run for run in made})


# Problems


@pytest.mark.parametrize("name", problems.NAMES)
def test_what_is_said_of_a_problem_is_true(name: str) -> None:
    tenth, whole = (problems.build(name, noise, seed=1) for noise in ("tenth", "whole"))
    assert (tenth.best, tenth.mean, tenth.function) == (whole.best, whole.mean, whole.function)
    values = tenth.function(spread_points(tenth.dim))
    assert values.max() <= tenth.best
    assert tenth.mean == pytest.approx(values.mean())
    if name in problems.SYNTHETIC:
        spread = values.max() - values.min()
        assert tenth.half_width == 1.0
        assert spread / 2 <= whole.half_width <= 0.75 * spread
    else:
        assert tenth.best == 1.0
        assert values.min() >= -1.0
        assert (tenth.half_width, whole.half_width) == (0.1, 1.0)


@pytest.mark.parametrize("dim", [2, 5])
def test_ackley_is_moved_and_keeps_its_scale(dim: int) -> None:
    function = problems.shifted_ackley(dim)
    optimum = np.array(problems.ACKLEY_OPTIMUM[:dim])
    assert function(optimum[None, :])[0] == pytest.approx(1.0, abs=1e-12)
    assert function(optimum[None, :] + 0.01)[0] < 0.95
    assert abs(optimum - 0.5).min() > 0.05
    # The least value, −1, is at the far end of every side, close to the corner.
    ackley = get("ackley", dim)
    inwards = (ackley.domain.upper - ackley.worst) / (ackley.domain.upper - ackley.domain.lower)
    longer = 2.0 * np.maximum(optimum, 1 - optimum)  # the usual side in units of this one
    corner = np.where(optimum > 0.5, inwards * longer, 1.0 - inwards * longer)
    assert function(corner[None, :])[0] == pytest.approx(-1.0, abs=1e-12)


def test_seeds_draw_synthetic_functions_and_leave_the_others() -> None:
    x = np.array([[0.3, 0.4]])
    f, g = (problems.build("rkhs-2", "tenth", seed).function(x) for seed in (0, 1))
    assert f != g
    f, g = (problems.build("camel", "tenth", seed).function(x) for seed in (0, 1))
    assert f == g


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match="'sphere' is unknown"):
        problems.build("sphere", "tenth", 0)
    with pytest.raises(ValueError, match="'half' is unknown"):
        problems.build("branin", "half", 0)


# Runs


def test_a_run_measures_against_the_best_value() -> None:
    run = _play(_Fake, budget=250)
    problem = problems.build("branin", "tenth", 0)
    lost = 1.0 - problem.function(np.full((1, 2), 0.25))[0]
    answer = 1.0 - problem.function(np.full((1, 2), 0.5))[0]
    assert run.status == "done"
    assert run.regret_at(200) == pytest.approx(lost / (1.0 - problem.mean))
    assert run.simple_at(250) == pytest.approx(answer / (1.0 - problem.mean))
    assert list(run.marks) == [100, 200, 250]
    assert run.regret_at(251) is None
    assert run.simple_at(150) is None
    assert run.seconds_at(250) == pytest.approx(run.seconds[225:].mean(), rel=1e-4)
    assert run.seconds_at(251) is None


def test_the_same_seed_gives_the_same_run() -> None:
    first, again, other = (
        _play(PLAYERS["partita-told"], 40, seed=seed, problem="rkhs-2") for seed in (0, 0, 1)
    )
    assert np.array_equal(first.regret, again.regret)
    assert not np.array_equal(first.regret, other.regret)


def test_a_failure_is_recorded_with_its_error() -> None:
    run = _play(_Breaks)
    assert (run.status, run.steps) == ("failed", 19)
    assert run.error == "RuntimeError: a matrix | is singular (tell)"


def test_a_point_outside_the_cube_is_a_failure() -> None:
    run = _play(_Strays)
    assert run.status == "failed"
    assert "not a point of the unit cube" in run.error


def test_a_slow_player_is_stopped_and_asked_for_its_answer() -> None:
    run = _play(_Slow, budget=1_000, time_limit=0.3)
    assert run.status == "stopped"
    assert 5 < run.steps < 30
    assert list(run.marks) == [run.steps]


def test_a_step_that_never_ends_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    at_most = runs.at_most
    monkeypatch.setattr(runs, "at_most", lambda _: at_most(0.3))
    monkeypatch.setattr(runs, "_warm_up", lambda *_: None)
    begin = time.monotonic()
    run = _play(_Hangs)
    assert time.monotonic() - begin < 10
    assert (run.status, run.steps) == ("stopped", 30)


# Who plays


def test_every_player_is_described() -> None:
    assert len(PLAYERS) == 21
    for name, player in PLAYERS.items():
        assert player.name == name
        assert player.settings
        assert player.title


def test_the_key_follows_version_settings_and_code(monkeypatch: pytest.MonkeyPatch) -> None:
    told = PLAYERS["partita-told"]
    before = told.key()
    monkeypatch.setattr(told, "settings", "other")
    assert told.key() != before
    monkeypatch.undo()
    assert told.key() == before
    monkeypatch.setattr(players, "source_digest", lambda _: "other")
    assert told.key() != before
    monkeypatch.undo()
    reached = players.sources("partita.policies.pi_gp_ts")
    assert {"partita.gp._loops", "partita.policies.base", "partita.model.kernels"} <= reached.keys()
    assert "partita.policies.baselines.hoo" not in reached


CHEAP = ("optuna-tpe", "optuna-cmaes", "cmaes", "nevergrad-tbpsa", "pyxab-hoo", "pyxab-hct")


@pytest.mark.parametrize("name", CHEAP)
def test_a_peer_plays_and_repeats_itself(name: str) -> None:
    player = PLAYERS[name]
    if player.missing():
        pytest.skip(player.missing() or "")
    if name == "optuna-cmaes":
        pytest.importorskip("cmaes")
    first, again = (_play(player, 120, problem="rkhs-2") for _ in range(2))
    assert (first.status, first.error) == ("done", "")
    assert np.array_equal(first.regret, again.regret)
    assert np.array_equal(first.simple, again.simple)


def test_asking_for_the_answer_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    often = [_play(PLAYERS[name], 40).regret for name in ("partita-told", "uniform")]
    monkeypatch.setattr(runs, "MARKS", tuple(range(1, 40)))
    for name, regret in zip(("partita-told", "uniform"), often, strict=True):
        assert np.array_equal(_play(PLAYERS[name], 40).regret, regret)


# The plan and the store


def test_only_players_told_the_budget_play_each_budget() -> None:
    names, budgets = ("uniform", "partita-told", "optuna-gp"), [200, 1_000, 5_000]
    tasks = runs.plan(names, ["branin"], ["tenth"], budgets, seeds=2)
    played = {name: sorted({t.budget for t in tasks if t.player == name}) for name in names}
    assert played == {"uniform": [5_000], "partita-told": budgets, "optuna-gp": [1_000]}
    assert len(tasks) == 2 + 6 + 2
    tasks = runs.plan(["optuna-gp"], ["branin"], ["tenth"], budgets, seeds=1, beyond=True)
    assert [task.budget for task in tasks] == [5_000]


def test_a_run_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    kept = runs.kept_in(tmp_path / "new")
    run = _run("uniform", 0.5, key=PLAYERS["uniform"].key(), status="stopped")
    assert kept.load(run.task) is None
    kept.save(run)
    back = kept.load(run.task)
    assert back is not None
    for name in Run.__dataclass_fields__:
        assert np.array_equal(getattr(back, name), getattr(run, name)), name
    assert list(runs.newest(kept)) == [run.task]
    assert not runs.newest(RunStore(kept.folder, Run, "another format"))
    next(kept.folder.glob("*.npz")).write_bytes(b"half a file")
    assert kept.load(run.task) is None
    assert not runs.newest(kept)


def test_runs_of_another_version_are_made_again_but_shown(tmp_path: Path) -> None:
    kept = runs.kept_in(tmp_path)
    old = _run("uniform", 0.5)
    kept.save(old)
    (task,) = runs.plan(["uniform"], ["branin"], ["tenth"], [10], seeds=1)
    assert task == old.task
    assert kept.load(task) is None
    assert "1, 1 of them by earlier code" in report.tables(board.Board(runs.newest(kept)))
    longer = _run("uniform", 0.4, budget=50, key=task.key)
    kept.save(longer)
    assert list(runs.newest(kept)) == [longer.task]  # which answers for the shorter one, too


def test_which_runs_are_enough() -> None:
    done, stopped, failed = (
        _run("uniform", 0.5, status=status) for status in ("done", "stopped", "failed")
    )
    for run in (done, stopped, failed):
        assert runs.enough(run, 60.0)
        assert runs.enough(run, 61.0) == (run is not stopped)
        assert runs.enough(run, 60.0, again=True) == (run is not failed)


# The report


def test_a_longer_run_answers_for_a_budget_unless_the_player_was_told() -> None:
    shown = _board(
        _run("uniform", 0.5, 20), _run("partita-told", 0.5, 20), _run("optuna-tpe", 0.2, 10)
    )
    column = shown.column("regret_at", "branin", "tenth", 10)
    assert column["uniform"].mean == pytest.approx(0.5)
    assert column["optuna-tpe"].mean == pytest.approx(0.2)
    assert not column["partita-told"].complete


def test_first_and_level() -> None:
    made = [
        _run(player, value, seed=seed)
        for player, values in {
            "uniform": (0.30, 0.50, 0.40),
            "cmaes": (0.32, 0.49, 0.42),  # level: behind by 0.01 ± 0.01
            "optuna-tpe": (0.33, 0.53, 0.43),  # behind by 0.03, each time
            "partita-told": (0.1, 0.1, 0.1),  # not ranked
        }.items()
        for seed, value in enumerate(values)
    ]
    ranking = board.rank(_board(*made).column("regret_at", "branin", "tenth", 10))
    assert ranking == ("uniform", frozenset({"cmaes"}))
    text = report.tables(_board(*made))
    assert "**0.40**" in text
    assert "≈ 0.41" in text
    assert "| 0.43 " in text


def test_a_player_that_has_not_played_every_seed_is_not_ranked() -> None:
    shown = _board(_run("uniform", 0.9), _run("uniform", 0.7, seed=1), _run("cmaes", 0.1))
    column = shown.column("regret_at", "branin", "tenth", 10)
    assert board.rank(column) == ("uniform", frozenset())
    text = report.tables(shown)
    assert "| cmaes, CMA       | 0.10 (1 of 2 seeds) |" in text  # without a count of firsts


def test_a_mean_of_some_seeds_is_over_those_that_every_problem_has() -> None:
    whole = board.Cell(values={0: 0.2, 1: 0.4})
    half = board.Cell(values={0: 0.6}, missing=1)
    other = board.Cell(values={1: 0.6}, missing=1)
    assert report.mean_text([whole, whole]) == "0.30"
    assert report.mean_text([whole, half]) == "0.40 (1 of 2 seeds)"
    assert report.mean_text([half, other]) == "–"
    assert report.mean_text([whole, other, board.Cell(missing=2)]) == "0.30 (1 of 3)"
    assert report.mean_text([half, board.Cell(stopped=[7], missing=1)]) == "–"


def test_failed_and_stopped_runs_are_shown_and_not_ranked() -> None:
    shown = _board(
        _run("uniform", 0.9),
        _run("cmaes", 0.1, status="failed", error="ValueError: a | b", steps=4),
        _run("optuna-tpe", 0.1, status="stopped", steps=7),
    )
    column = shown.column("regret_at", "branin", "tenth", 10)
    assert board.rank(column) == ("uniform", frozenset())
    text = report.tables(shown)
    assert "| failed " in text
    assert "| to 7 " in text
    assert "`ValueError: a \\| b`" in text
    assert "Branin (1)" in text


def test_the_mean_says_over_how_many_problems() -> None:
    shown = _board(_run("uniform", 0.8), _run("uniform", 0.6, problem="camel"), _run("cmaes", 0.4))
    text = report.tables(shown)
    assert "0.70; 1 + 0" in text
    assert "0.40 (1 of 2); 1 + 0" in text


@pytest.mark.parametrize(
    ("seconds", "text"), [(3.5e-5, "35 µs"), (1.24e-3, "1.2 ms"), (2.0, "2.0 s"), (np.nan, "–")]
)
def test_durations(seconds: float, text: str) -> None:
    assert report.duration(seconds) == text


def test_the_docs_page_has_the_marks() -> None:
    page = (Path(__file__).parents[2] / "docs" / "peers.md").read_text(encoding="utf-8")
    made = report.page(page, "new\n")
    begin, end = (report.MARK.format("peers", word) for word in ("begin", "end"))
    assert made.startswith(page[: page.index(begin)])
    assert f"{begin}\n\nnew\n\n{end}" in made
    assert report.page(made, "new\n") == made
    with pytest.raises(ValueError, match="has no"):
        report.page("nothing", "new")


# The command


def test_the_command_runs_resumes_and_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    command = "--players uniform --problems branin rkhs-1 --noise tenth --budgets 20 --seeds 2"
    arguments = [*command.split(), "--out", str(tmp_path)]
    assert peers.main(arguments) == 0
    assert "4 runs, 4 to be made" in capsys.readouterr().out
    assert (tmp_path / "peers.png").read_bytes().startswith(b"\x89PNG")
    assert "uniform sampling" in (tmp_path / "report.md").read_text(encoding="utf-8")
    assert peers.main(["run", *arguments]) == 0
    assert "4 runs, 0 to be made" in capsys.readouterr().out
    only = ["--problems", "rkhs-1", "--budgets", "20", "--seeds", "1"]
    assert peers.main(["report", *only, "--out", str(tmp_path)]) == 0
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "1 seed; at most" in text
    assert "Branin" not in text


def test_ctrl_c_keeps_what_is_finished(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    play = runs.play

    def interrupted(task: Task, time_limit: float) -> Run:
        if task.seed == 1:
            raise KeyboardInterrupt
        return play(task, time_limit)

    monkeypatch.setattr(runs, "play", interrupted)
    words = "run --players uniform --problems branin --noise tenth --budgets 20 --seeds 2 --out"
    assert peers.main([*words.split(), str(tmp_path)]) == 130
    assert "the same command goes on" in capsys.readouterr().err
    monkeypatch.undo()
    assert peers.main([*words.split(), str(tmp_path)]) == 0
    assert "2 runs, 1 to be made" in capsys.readouterr().out


def test_a_player_whose_library_is_missing_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PLAYERS["skopt"], "module", "no_such_module")
    assert peers.main(["run", "--players", "skopt", "--out", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    assert "skopt is left out: scikit-optimize is not installed" in captured.err
    assert "0 runs" in captured.out


def test_a_report_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="holds no runs"):
        peers.main(["report", "--out", str(tmp_path)])
