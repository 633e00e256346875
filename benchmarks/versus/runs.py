"""Runs of players: which are wanted, how one is made (timed, stopped, failures recorded), kept."""

from __future__ import annotations

import json
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import metadata
from pathlib import Path

import numpy as np

from partita.experiments.play import TimeUp, at_most, steps
from partita.experiments.specs import Problem
from partita.experiments.store import RunStore, file_name

from . import problems
from .players import Player, Setting
from .roster import PLAYERS

#: Steps after which the player is asked for its answer, besides the last.
MARKS = (100, 200, 500, 1_000, 2_000, 5_000, 10_000)
#: Steps of the untimed run that loads and compiles what a player needs.
_WARM_STEPS = 14
#: Of the files that runs are kept in.
FORMAT = "peers 2"


@dataclass(frozen=True, order=True)
class Task:
    """A run to be made. `key` is what its player is now: `Player.key`."""

    budget: int
    seed: int
    noise: str
    problem: str
    player: str
    key: str = field(compare=False)

    def as_json(self) -> str:
        """The task as text."""
        return json.dumps(asdict(self), sort_keys=True)

    def file_name(self) -> str:
        """A readable name that no other task has, nor the same one of another player's key."""
        words = f"{self.player}_{self.problem}_{self.noise}_T{self.budget}_seed{self.seed:02d}"
        return file_name(words, self)

    @property
    def met(self) -> tuple[str, str, str, int]:
        """Who plays what, for however long."""
        return self.player, self.problem, self.noise, self.seed


@dataclass(frozen=True, eq=False)
class Run:
    """What happened.

    Attributes
    ----------
    status : "done", "stopped" (its time was up) or "failed"
    error : the error of a run that failed, a line
    regret : (n,) float32, f* − f(x_t) without noise, for the n steps that were made
    seconds : (n,) float32, processor time of a step's ask and tell
    marks, simple : (k,), steps, and f* − f(x̂) of the player's answer x̂ after each
    uniform_regret : f* − mean f
    setup_seconds : time to make the player
    time_limit : in seconds
    versions : of the player's libraries, such as "optuna 5.0.0"
    """

    task: Task
    status: str
    error: str
    regret: np.ndarray
    seconds: np.ndarray
    marks: np.ndarray
    simple: np.ndarray
    uniform_regret: float
    setup_seconds: float
    time_limit: float
    versions: str

    @property
    def steps(self) -> int:
        """Steps that were made."""
        return len(self.regret)

    @property
    def total_seconds(self) -> float:
        """Processor time of the player."""
        return self.setup_seconds + float(self.seconds.sum())

    def regret_at(self, budget: int) -> float | None:
        """R_t/(t (f* − mean f)) at t = budget, None if it was not reached."""
        if self.steps < budget:
            return None
        return float(self.regret[:budget].mean(dtype=np.float64) / self.uniform_regret)

    def simple_at(self, budget: int) -> float | None:
        """(f* − f(x̂))/(f* − mean f) of the answer at t = budget, None if there was none."""
        place = np.flatnonzero(self.marks == budget)
        return float(self.simple[place[0]] / self.uniform_regret) if len(place) else None

    def seconds_at(self, t: int) -> float | None:
        """Mean time of a step over the last tenth before t, None if t was not reached."""
        if self.steps < t:
            return None
        return float(self.seconds[t - max(1, t // 10) : t].mean(dtype=np.float64))


# -- which runs -----------------------------------------------------------------------------------


def plan(
    players: Iterable[str],
    names: Sequence[str],
    noises: Sequence[str],
    budgets: Sequence[int],
    seeds: int,
    beyond: bool = False,
) -> list[Task]:
    """The runs that answer for every budget.

    One run at the largest budget tells about the smaller ones, unless the player is told its
    budget. `beyond` lets players try budgets larger than they usually follow.
    """
    tasks = []
    for name in players:
        player = PLAYERS[name]
        most = None if beyond else player.follows
        reached = sorted(b for b in set(budgets) if most is None or b <= most)
        for budget in reached if player.told_budget else reached[-1:]:
            tasks += [
                Task(budget, seed, noise, problem, name, player.key())
                for seed in range(seeds)
                for noise in noises
                for problem in names
            ]
    return sorted(tasks)


def enough(run: Run, time_limit: float, again: bool = False) -> bool:
    """Whether a run will do: not if a shorter limit stopped it, or if it failed and `again`."""
    if run.status == "failed":
        return not again
    return run.status != "stopped" or run.time_limit >= time_limit


def kept_in(folder: str | Path) -> RunStore[Run]:
    """The runs that a folder keeps."""
    return RunStore(folder, Run, FORMAT)


def newest(store: RunStore[Run]) -> dict[Task, Run]:
    """The newest run of every task.

    One by an earlier version is left out where the player as it is now has played the same
    function and noise: its longer runs answer for the shorter ones of before.
    """
    runs = {run.task: run for run in store.all(lambda text: Task(**json.loads(text)))}
    now = {name: cls.key() for name, cls in PLAYERS.items() if cls.missing() is None}
    played = {run.task.met for run in runs.values() if run.task.key == now.get(run.task.player)}
    return {
        task: run
        for task, run in runs.items()
        if task.met not in played or run.task.key == now[task.player]
    }


# -- one run --------------------------------------------------------------------------------------


def play(task: Task, time_limit: float, player: type[Player] | None = None) -> Run:
    """Make a run. The seed decides the function, the noise and what the player draws."""
    cls = PLAYERS[task.player] if player is None else player
    problem = problems.build(task.problem, task.noise, task.seed)
    log = _Log(problem, task.budget)
    status, error = "done", ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the libraries have to say
        _warm_up(cls, problem.dim)
        with at_most(2 * time_limit + 60):  # in wall time, for a step that never ends
            try:
                setting = Setting(problem.dim, task.budget, task.seed, problem)
                log.play(lambda: cls(setting), task.seed, time_limit)
                status = "done" if log.steps == task.budget else "stopped"
            except TimeUp:
                status = "stopped"
            except Exception as caught:
                status, error = "failed", _line(caught)
    return Run(
        task=task,
        status=status,
        error=error,
        regret=np.array(log.regret, np.float32),
        seconds=np.array(log.seconds, np.float32),
        marks=np.array(log.marks, np.int32),
        simple=np.array(log.simple, float),
        uniform_regret=problem.uniform_regret,
        setup_seconds=log.setup_seconds,
        time_limit=time_limit,
        versions=", ".join(versions(cls)),
    )


class _Log:
    """A run in the making."""

    def __init__(self, problem: Problem, budget: int) -> None:
        self._problem = problem
        self._budget = budget
        self.regret: list[float] = []
        self.seconds: list[float] = []
        self.marks: list[int] = []
        self.simple: list[float] = []
        self.setup_seconds = 0.0

    @property
    def steps(self) -> int:
        return len(self.regret)

    def play(self, make: Callable[[], Player], seed: int, time_limit: float) -> None:
        noise = problems.noise(self._problem, seed, self._budget)
        clock = time.process_time
        begin = clock()
        player = make()
        self.setup_seconds = spent = clock() - begin
        budget = self._budget if spent < time_limit else 0
        for step in steps(player, self._value, noise, budget, clock):
            self.regret.append(self._problem.best - step.value)
            self.seconds.append(step.seconds)
            spent += step.seconds
            if self.steps in MARKS or self.steps == self._budget:
                self._mark(player)
            if spent >= time_limit:
                break
        if self.steps < self._budget and self.steps not in self.marks:
            self._mark(player)

    def _mark(self, player: Player) -> None:
        self.simple.append(self._problem.best - self._value(player.recommend()))
        self.marks.append(self.steps)

    def _value(self, x: np.ndarray) -> float:
        """f at a point of the cube; anything else is the player's failure."""
        dim = self._problem.dim
        if np.shape(x) != (dim,) or not np.all(np.abs(np.asarray(x) - 0.5) <= 0.5 + 1e-9):
            raise ValueError(f"the player chose {x!r}, which is not a point of the unit cube")
        return float(self._problem.function(np.clip(x, 0.0, 1.0)[None, :])[0])


def versions(cls: type[Player]) -> Iterator[str]:
    """A player's libraries with their versions."""
    for package in cls.packages:
        try:
            yield f"{package} {metadata.version(package)}"
        except metadata.PackageNotFoundError:
            yield f"{package} (not installed)"


def _line(error: Exception) -> str:
    """An error in a line, with the place in the library where it rose."""
    frames = traceback.extract_tb(error.__traceback__)
    text = " ".join(str(error).split())
    where = f" ({frames[-1].name})" if frames else ""
    return f"{type(error).__name__}: {text[:200]}{where}"


@cache
def _warm_up(cls: type[Player], dim: int) -> None:
    """A few untimed steps; what goes wrong in them will go wrong in the run as well."""
    problem = problems.any_of(dim)
    setting = Setting(dim, 1_000, 0, problem)
    try:
        _Log(problem, _WARM_STEPS).play(lambda: cls(setting), 0, 10.0)
    except Exception:
        return
