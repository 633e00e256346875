"""One run: a pure function of policy, problem, horizon and seed, but for the time it takes."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import cache
from importlib import import_module

import numpy as np
import numpy.typing as npt

from partita._threads import one_thread
from partita._types import FloatArray
from partita.errors import PartitaError
from partita.model.domains import Grid
from partita.policies.base import Policy
from partita.policies.named import PolicySpec
from partita.policies.ucb import UCBPolicy

from .specs import Problem, ProblemSpec, Task, policy_for

SmallFloats = npt.NDArray[np.float32]
SmallInts = npt.NDArray[np.int32]

#: How often cells and information gain are looked at in a run, at most.
SAMPLES = 200
#: Distinguishes the noise's random numbers from the function's, which share the seed.
_NOISE_STREAM = 1


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
        The number of the arm played; −1 on a box.
    seconds : (T,) float32
        Time of the step's ask and tell.
    sampled : (s,) int32
        Steps, counted from 1, after which the following two were read.
    cells : (s,) int32
        Cells in the cover; 0 for a policy that has none.
    information_gain : (s,) float64
        Σ_A γ_A over the cover.
    setup_seconds : float
        Time it took to make the policy.
    simple_regret : float
        f* − f(x̂), x̂ the point that the policy recommends at the end.
    uniform_regret : float
        What a play of uniform sampling loses in expectation, f* − mean f.
    """

    task: Task
    regret: SmallFloats
    choices: SmallInts
    seconds: SmallFloats
    sampled: SmallInts
    cells: SmallInts
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
    """Play a policy for `horizon` steps.

    The seed decides the function (if it is random), the noise and ties, so that every policy meets
    the same function and noise. One core is used, where `threadpoolctl` is installed.
    """
    task = Task(policy, problem, horizon, seed)
    _warm_up(policy, problem, horizon)
    with one_thread():
        return _play(task, problem.build(seed))


def _play(task: Task, problem: Problem, steps: int | None = None) -> Trace:
    """A run, or its first steps."""
    horizon = task.horizon if steps is None else min(steps, task.horizon)
    look_up = _Values(problem)
    random = np.random.default_rng([task.seed, _NOISE_STREAM])
    noise = random.uniform(-problem.half_width, problem.half_width, horizon)
    sampled = sample_steps(horizon)
    regret, seconds = np.empty(horizon, np.float32), np.empty(horizon, np.float32)
    choices = np.empty(horizon, np.int32)
    cells = np.empty(len(sampled), np.int32)
    gain = np.empty(len(sampled))
    begin = time.perf_counter()
    policy = policy_for(task.policy, problem, task.horizon, task.seed)
    setup_seconds = time.perf_counter() - begin
    samples = t = 0
    try:
        for t in range(horizon):
            begin = time.perf_counter()
            x = policy.ask()
            asked = time.perf_counter() - begin
            arm, value = look_up(x)
            begin = time.perf_counter()
            policy.tell(x, value + float(noise[t]))
            seconds[t] = asked + time.perf_counter() - begin
            regret[t] = problem.best - value
            choices[t] = arm
            if t + 1 == sampled[samples]:
                cells[samples], gain[samples] = _look(policy)
                samples += 1
        recommended = look_up(policy.recommend().x)[1]
    except Exception as error:
        raise PolicyFailed(
            f"{task.policy.name} failed on {task.problem.name} (seed {task.seed}) at step {t + 1}: "
            f"{type(error).__name__}: {error}"
        ) from error
    return Trace(
        task=task,
        regret=regret,
        choices=choices,
        seconds=seconds,
        sampled=sampled,
        cells=cells,
        information_gain=gain,
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

    def __call__(self, x: FloatArray) -> tuple[int, float]:
        domain = self._problem.domain
        if not isinstance(domain, Grid):
            return -1, float(self._problem.function(domain.check(x[None, :]))[0])
        arm = self._arms.get(x.tobytes())
        if arm is None:  # an equal point in other bits, or none: the domain says
            arm = int(domain.index_of(np.asarray(x, dtype=float)[None, :])[0])
        return arm, float(self._problem.values[arm])


def sample_steps(horizon: int) -> SmallInts:
    """At most 200 steps, evenly spaced, the last among them."""
    step = math.ceil(horizon / SAMPLES)
    return np.arange(horizon, 0, -step, dtype=np.int32)[::-1]


def _look(policy: Policy) -> tuple[int, float]:
    """Cells in the cover and their information gain together."""
    if not isinstance(policy, UCBPolicy):
        return 0, 0.0
    cover = policy.cover
    return len(cover), math.fsum(cell.information_gain for cell in cover)


@cache
def _warm_up(policy: PolicySpec, problem: ProblemSpec, horizon: int) -> None:
    """Load compiled code before anything is timed, by two short runs."""
    import_module("scipy.linalg")
    coarse = ProblemSpec("synthetic", dim=problem.dim, side=4, continuous=problem.continuous)
    _play(Task(policy, coarse, 60, 0), coarse.build(0))
    _play(Task(policy, problem, horizon, 0), problem.build(0), steps=2)
