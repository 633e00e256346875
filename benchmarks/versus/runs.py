"""One run of a player, and many of them: timed, stopped when its time is up, failures recorded."""

from __future__ import annotations

import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import numpy as np

from . import problems
from .players import Player, Setting
from .problems import Problem
from .roster import PLAYERS

#: Steps after which the player is asked for its answer, besides the last.
MARKS = (100, 200, 500, 1_000, 2_000, 5_000, 10_000)
#: Distinguishes the noise's random numbers from the function's, which share the seed.
_NOISE_STREAM = 1
#: Steps of the untimed run that loads and compiles what a player needs.
_WARM_STEPS = 14


@dataclass(frozen=True, order=True)
class Task:
    """A run to be made."""

    budget: int
    seed: int
    noise: str
    problem: str
    player: str

    def file_name(self, key: str) -> str:
        """Where it is kept, by what its player was (`Player.key`)."""
        parts = (self.player, self.problem, self.noise, str(self.budget), str(self.seed), key)
        return "--".join(parts) + ".npz"

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
    key : what the player was, `Player.key`
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
    key: str

    @property
    def steps(self) -> int:
        """Steps that were made."""
        return len(self.regret)

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


class TimeUp(BaseException):
    """A single step took more than the run's time; a BaseException, so that no peer catches it."""


def play(task: Task, time_limit: float, player: type[Player] | None = None) -> Run:
    """Make a run. The seed decides the function, the noise and what the player draws."""
    cls = PLAYERS[task.player] if player is None else player
    problem = problems.build(task.problem, task.noise, task.seed)
    _warm_up(cls, problem.dim)
    setting = Setting(problem.dim, task.budget, task.seed, problem)
    log = _Log(problem, task.budget)
    status, error = "done", ""
    with _alarm(2 * time_limit + 60):
        try:
            log.play(lambda: cls(setting), _noise(task, problem), time_limit)
            status = "done" if log.steps == task.budget else "stopped"
        except TimeUp:
            status = "stopped"
        except Exception as caught:
            status, error = "failed", _line(caught)
    return Run(
        task=task,
        status=status,
        error=error,
        regret=log.regret[: log.steps],
        seconds=log.seconds[: log.steps],
        marks=np.array(log.marks, dtype=np.int32),
        simple=np.array(log.simple),
        uniform_regret=problem.uniform_regret,
        setup_seconds=log.setup_seconds,
        time_limit=time_limit,
        versions=", ".join(versions(cls)),
        key=cls.key(),
    )


class _Log:
    """A run in the making."""

    def __init__(self, problem: Problem, budget: int) -> None:
        self._problem = problem
        self._budget = budget
        self.regret = np.empty(budget, np.float32)
        self.seconds = np.empty(budget, np.float32)
        self.marks: list[int] = []
        self.simple: list[float] = []
        self.setup_seconds = 0.0
        self.steps = 0

    def play(self, make: Callable[[], Player], noise: np.ndarray, time_limit: float) -> None:
        clock = time.process_time
        begin = clock()
        player = make()
        self.setup_seconds = spent = clock() - begin
        while self.steps < self._budget and spent < time_limit:
            begin = clock()
            x = player.ask()
            asked = clock() - begin
            value = self._value(x)
            begin = clock()
            player.tell(x, value + float(noise[self.steps]))
            took = asked + clock() - begin
            spent += took
            self.seconds[self.steps] = took
            self.regret[self.steps] = self._problem.best - value
            self.steps += 1
            if self.steps in MARKS or self.steps == self._budget:
                self._mark(player)
        if self.steps < self._budget and self.steps not in self.marks:
            self._mark(player)

    def _mark(self, player: Player) -> None:
        self.simple.append(self._problem.best - self._value(player.recommend()))
        self.marks.append(self.steps)

    def _value(self, x: np.ndarray) -> float:
        """f at a point of the cube; anything else is the player's failure."""
        dim = self._problem.dim
        if np.shape(x) != (dim,) or not np.all(np.abs(np.asarray(x) - 0.5) <= 0.5 + 1e-9):
            raise ValueError(f"the player chose {x!r}, which is no point of the unit cube")
        return float(self._problem.function(np.clip(x, 0.0, 1.0)[None, :])[0])


def versions(cls: type[Player]) -> Iterator[str]:
    """A player's libraries with their versions."""
    from importlib import metadata

    for package in cls.packages:
        try:
            yield f"{package} {metadata.version(package)}"
        except metadata.PackageNotFoundError:
            yield f"{package} (not installed)"


def _noise(task: Task, problem: Problem) -> np.ndarray:
    random = np.random.default_rng([task.seed, _NOISE_STREAM])
    return random.uniform(-problem.half_width, problem.half_width, task.budget)


def _line(error: Exception) -> str:
    """An error in a line, with the place in the library where it rose."""
    frames = traceback.extract_tb(error.__traceback__)
    text = " ".join(str(error).split())
    where = f" ({frames[-1].name})" if frames else ""
    return f"{type(error).__name__}: {text[:200]}{where}"


@cache
def _warm_up(cls: type[Player], dim: int) -> None:
    """A few untimed steps; what goes wrong in them will go wrong in the run as well."""
    problem = problems.build(next(n for n, d in problems.DIMS.items() if d == dim), "tenth", 0)
    log = _Log(problem, _WARM_STEPS)
    task = Task(_WARM_STEPS, 0, "tenth", problem.name, cls.name)
    try:
        log.play(lambda: cls(Setting(dim, 1_000, 0, problem)), _noise(task, problem), 10.0)
    except Exception:
        return


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise `TimeUp` after so many seconds of wall time, where signals can."""
    usable = hasattr(signal, "SIGALRM") and threading.current_thread() is threading.main_thread()
    if not usable:
        yield
        return

    def ring(*_: object) -> None:
        raise TimeUp

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
