"""One run: a pure function of policy, problem, horizon and seed, but for the time it takes."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from partita._threads import one_thread
from partita._types import FloatArray
from partita._version import __version__
from partita.errors import PartitaError, TheoryWarning
from partita.model.domains import Grid
from partita.policies.base import Policy
from partita.policies.named import PolicySpec
from partita.policies.ucb import UCBPolicy

from .cost import expected_cost
from .parallel import Watcher, run_all
from .play import added, steps
from .specs import SYNTHETIC, Problem, ProblemSpec, Task, policy_for
from .store import RunStore

SmallFloats = npt.NDArray[np.float32]
SmallInts = npt.NDArray[np.int32]

#: The largest number of records of cells and information gain in a run.
SAMPLES = 200
#: Distinguishes the noise's random numbers from the function's, which share the seed.
NOISE_STREAM = 1


class PolicyFailed(PartitaError, RuntimeError):
    """A policy raised an error in a run."""


@dataclass(frozen=True, eq=False)
class Trace:
    """What happened in one run of T steps; s ≤ 200 of them are sampled.

    Attributes
    ----------
    task : Task
    regret : (T,) float32
        f* − f(x_t), without noise; f* is the best arm's value.
    choices : (T,) int32
        The number of the arm evaluated; −1 on a box.
    seconds : (T,) float32
        Time of the step's ask and tell.
    sampled : (s,) int32
        Steps, counted from 1, after which the following two were read.
    cells : (s,) float64
        Cells in the cover; 0 for a policy that has none.
    information_gain : (s,) float64
        Σ_A γ_A over the cover.
    setup_seconds : float
        Time it took to make the policy.
    simple_regret : float
        f* − f(x̂), x̂ the point that the policy recommends at the end.
    uniform_regret : float
        What an evaluation of uniform sampling loses in expectation, f* − mean f.
    """

    task: Task
    regret: SmallFloats
    choices: SmallInts
    seconds: SmallFloats
    sampled: SmallInts
    cells: FloatArray
    information_gain: FloatArray
    setup_seconds: float
    simple_regret: float
    uniform_regret: float

    @property
    def cumulative_regret(self) -> FloatArray:
        """R_t = Σ_{s ≤ t} (f* − f(x_s)), (T,)."""
        return np.cumsum(self.regret, dtype=np.float64)

    @property
    def regret_so_far(self) -> FloatArray:
        """R_t as a fraction of what uniform sampling loses in all T steps, (T,)."""
        return self.cumulative_regret / (len(self.regret) * self.uniform_regret)

    @property
    def regret_fraction(self) -> float:
        """R_T as a fraction of what uniform sampling loses in expectation, T (f* − mean f)."""
        return float(self.regret.mean(dtype=np.float64) / self.uniform_regret)

    @property
    def total_seconds(self) -> float:
        """Time spent in the policy: making it, asking and telling."""
        return self.setup_seconds + float(self.seconds.sum(dtype=np.float64))


def run(policy: PolicySpec, problem: ProblemSpec, horizon: int, seed: int) -> Trace:
    """Run a policy for `horizon` evaluations.

    The seed decides the function (if it is random), the noise and ties, so that every policy meets
    the same function and noise. One core is used, where `threadpoolctl` is installed.
    """
    task = Task(policy, problem, horizon, seed)
    with one_thread(), warnings.catch_warnings():
        if problem.name != SYNTHETIC:  # the norm is a guess there: the data may well contradict it
            warnings.simplefilter("ignore", TheoryWarning)
        _warm_up(policy, problem, horizon)
        return _play(task, problem.build(seed))


class Store(RunStore[Trace]):
    """A folder of traces, made by this version of Partita."""

    def __init__(self, folder: str | Path) -> None:
        super().__init__(folder, Trace, __version__)


def run_many(
    tasks: Iterable[Task],
    *,
    store: RunStore[Trace] | None = None,
    jobs: int | None = None,
    backend: str = "loky",
    progress: Watcher | None = None,
) -> list[Trace]:
    """The traces of many tasks, in their order; the longest are run first.

    Arguments are those of `partita.experiments.parallel.run_all`.
    """
    return run_all(
        tasks,
        _made,
        store=store,
        jobs=jobs,
        backend=backend,
        progress=progress,
        cost=expected_cost,
    )


def _made(task: Task) -> Trace:
    return run(task.policy, task.problem, task.horizon, task.seed)


def _play(task: Task, problem: Problem, limit: int | None = None) -> Trace:
    """A run, or its first steps."""
    horizon = task.horizon if limit is None else min(limit, task.horizon)
    values = _Values(problem)
    random = np.random.default_rng([task.seed, NOISE_STREAM])
    noise = added(random.uniform(-problem.half_width, problem.half_width, horizon).tolist())
    sampled = sample_steps(horizon)
    regret, seconds = np.empty(horizon, np.float32), np.empty(horizon, np.float32)
    choices = np.empty(horizon, np.int32)
    looks: list[_Look] = []
    begin = time.perf_counter()
    policy = policy_for(task.policy, problem, task.horizon, task.seed)
    setup_seconds = time.perf_counter() - begin
    done = 0
    try:
        for done, step in enumerate(steps(policy, values.at, noise, horizon), start=1):
            regret[done - 1], seconds[done - 1] = problem.best - step.value, step.seconds
            choices[done - 1] = values.arm(step.x)
            if done == sampled[len(looks)]:
                looks.append(_look(policy))
        recommended = values.at(policy.recommend().x)
    except Exception as error:
        raise PolicyFailed(
            f"{task.policy.name} failed on {task.problem.name} (seed {task.seed}) at step "
            f"{min(done + 1, horizon)}: {type(error).__name__}: {error}"
        ) from error
    return Trace(
        task=task,
        regret=regret,
        choices=choices,
        seconds=seconds,
        sampled=sampled,
        cells=np.array([look.cells for look in looks], np.float64),
        information_gain=np.array([look.information_gain for look in looks]),
        setup_seconds=setup_seconds,
        simple_regret=problem.best - recommended,
        uniform_regret=problem.uniform_regret,
    )


class _Values:
    """f without noise at what a policy asks for, and which arm that is."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        points = problem.domain.points if isinstance(problem.domain, Grid) else ()
        self._arms = {point.tobytes(): arm for arm, point in enumerate(points)}

    def arm(self, x: FloatArray) -> int:
        """The number of the arm at a point (d,); −1 on a box."""
        domain = self._problem.domain
        if not isinstance(domain, Grid):
            return -1
        arm = self._arms.get(x.tobytes())
        if arm is None:  # an equal point in other bits, or none: the domain says
            arm = int(domain.index_of(np.asarray(x, dtype=float)[None, :])[0])
        return arm

    def at(self, x: FloatArray) -> float:
        """The value at a point (d,)."""
        problem = self._problem
        if isinstance(problem.domain, Grid):
            return float(problem.values[self.arm(x)])
        return float(problem.function(problem.domain.check(x[None, :]))[0])


def sample_steps(horizon: int) -> SmallInts:
    """At most 200 steps, evenly spaced, the last among them."""
    step = math.ceil(horizon / SAMPLES)
    return np.arange(horizon, 0, -step, dtype=np.int32)[::-1]


class _Look(NamedTuple):
    """Cells in the cover, and their information gain together."""

    cells: int
    information_gain: float


def _look(policy: Policy) -> _Look:
    if not isinstance(policy, UCBPolicy):
        return _Look(0, 0.0)
    return _Look(policy.cells, policy.information_gain)


@cache
def _warm_up(policy: PolicySpec, problem: ProblemSpec, horizon: int) -> None:
    """Load compiled code before anything is timed, by two short runs."""
    import_module("scipy.linalg")
    coarse = ProblemSpec("synthetic", dim=problem.dim, side=4, continuous=problem.continuous)
    _play(Task(policy, coarse, 60, 0), coarse.build(0))
    _play(Task(policy, problem, horizon, 0), problem.build(0), limit=2)
