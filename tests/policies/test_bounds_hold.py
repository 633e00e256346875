"""Confidence bounds hold together, at every step and arm, in at least 1 − δ of seeded runs.

A run fails if f lies outside the bounds of any cell that holds it, at any step. Only the cells that
the last observation touched can have changed for the worse: the paper's width grows with t, the
mixture width does not depend on it. Controls run the same test with a constant that is too small,
and must fail: else the test could not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
import pytest
from support.common import KERNEL, FloatArray, synthetic

import partita as pt
from partita.partition.cover import CellKey
from partita.partition.widths import PaperWidth, Width, width_of

DELTA = 0.1
STEPS = 500
RUNS = 100
CONTROL_RUNS = 40
ROUNDING = 1e-9


@dataclass(frozen=True)
class Problem:
    """f at the arms (n,), its norm, and the noise of each step with its constants."""

    domain: pt.Grid
    truth: FloatArray
    norm: float
    errors: FloatArray  # (STEPS,)
    constant: float  # L as the paper would have it
    tight: float  # the smallest L that holds


def paper_function(n: int, dim: int, half_width: float) -> Callable[[int], Problem]:
    """Family (a): the paper's functions, noise uniform on ± half_width, which is the paper's L."""

    def problem(seed: int) -> Problem:
        rng = np.random.default_rng([seed, 1])
        f = synthetic(dim, rng)
        domain = pt.Grid(n, dim=dim)
        errors = rng.uniform(-half_width, half_width, size=STEPS)
        tight = pt.Uniform(-half_width, half_width).sub_gaussian
        return Problem(domain, f(domain.points), f.norm, errors, half_width, tight)

    return problem


def nothing_but_noise(n: int, dim: int) -> Callable[[int], Problem]:
    """Family (b): f = 0 and Gaussian noise of standard deviation L: only the noise term covers."""

    def problem(seed: int) -> Problem:
        errors = np.random.default_rng([seed, 2]).normal(size=STEPS)
        domain = pt.Grid(n, dim=dim)
        return Problem(domain, np.zeros(domain.size), 0.001, errors, 1.0, 1.0)

    return problem


# In one dimension the noise is the experiments'; in two it is a tenth of it, as in figure 2.
FAMILIES: dict[str, Callable[[int], Problem]] = {
    "a": cache(paper_function(30, 1, 1.0)),
    "a, quiet": cache(paper_function(8, 2, 0.1)),
    "b": cache(nothing_but_noise(8, 2)),
}


def paper(problem: Problem, seed: int, norm: float = 1.0, noise: float = 1.0) -> pt.PiGPUCB:
    """The paper's policy, with its B and L scaled."""
    return pt.PiGPUCB.paper(
        problem.domain,
        horizon=STEPS,
        kernel=KERNEL,
        norm_bound=problem.norm * norm,
        noise=pt.SubGaussian(problem.constant * noise),
        delta=DELTA,
        seed=seed,
        alpha=1.0,
    )


def mixture(problem: Problem, seed: int, norm: float = 1.0, noise: float = 1.0) -> pt.PiGPUCB:
    """The default policy, with its B and L scaled; L is the tight one."""
    return pt.PiGPUCB(
        problem.domain,
        horizon=STEPS,
        kernel=KERNEL,
        norm_bound=problem.norm * norm,
        noise=pt.SubGaussian(problem.tight * noise),
        delta=DELTA,
        seed=seed,
    )


POLICIES = {"paper": paper, "mixture": mixture}


class Watch:
    """Compares the bounds of a policy's cells with f."""

    def __init__(self, policy: pt.PiGPUCB, truth: FloatArray, width: Width | None = None) -> None:
        """`width` replaces the policy's own."""
        self._policy, self._truth = policy, truth
        self._partition = policy._engine.partition
        self._width = width or policy._engine.width

    def holds(self, keys: Iterable[CellKey]) -> bool:
        """Whether f lies within the bounds of these cells, or of what they were split into."""
        return all(self._cell_holds(key) for key in keys)

    def _cell_holds(self, key: CellKey) -> bool:
        partition = self._partition
        if key in partition.split:
            geometry = partition.geometry
            return self.holds(geometry.child(key, code) for code in range(2**geometry.dim))
        cell = partition.leaves.get(key)
        t = self._policy.told + 1
        if cell is not None:
            posterior = cell.posterior
            width = width_of(self._width, posterior.gain, key[0], t)
            return self._within(posterior.mean, width * posterior.std, cell.layout.sites)
        arms = partition.fresh.arms.get(key)
        return arms is None or self._within(0.0, width_of(self._width, 0.0, key[0], t), arms)

    def _within(
        self, centre: FloatArray | float, radius: FloatArray | float, arms: npt.NDArray[np.int64]
    ) -> bool:
        return bool((np.abs(self._truth[arms] - centre) <= radius + ROUNDING).all())


def bounds_hold(policy: pt.PiGPUCB, problem: Problem, width: Width | None = None) -> bool:
    """Whether all bounds held at every step of a run."""
    watch = Watch(policy, problem.truth, width)
    partition = policy._engine.partition
    numbers = {x.tobytes(): arm for arm, x in enumerate(problem.domain.points)}
    if not watch.holds(partition.geometry.first_cells()):
        return False
    for error in problem.errors.tolist():
        x = policy.ask()
        arm = numbers[x.tobytes()]
        touched = [cell.key for cell, _ in partition.cells_at(arm)]
        policy.tell(x, float(problem.truth[arm]) + error)
        if not watch.holds(touched):
            return False
    return True


@pytest.mark.parametrize("width", POLICIES)
@pytest.mark.parametrize("family", FAMILIES)
def test_bounds_hold_with_the_promised_frequency(family: str, width: str) -> None:
    assert failures(family, width, RUNS) <= DELTA


def failures(family: str, width: str, runs: int = CONTROL_RUNS, **scale: float) -> float:
    """Frequency of failure, with B or L scaled if told."""
    failed = 0
    for seed in range(runs):
        problem = FAMILIES[family](seed)
        failed += not bounds_hold(POLICIES[width](problem, seed, **scale), problem)
    return failed / runs


@pytest.mark.parametrize(
    ("family", "width"),
    [("a", "mixture"), ("a, quiet", "mixture"), ("a, quiet", "paper")],
)
def test_control_a_tenth_of_the_norm_is_caught(family: str, width: str) -> None:
    """The paper's width is not among them at the experiments' noise: 3 of 40 runs fail there.

    Its noise term alone covers f nearly always: L = 1 where 0.58 would do, and 1 + log(Ñ_t/δ) ≥ 5.
    """
    assert failures(family, width, norm=0.1) >= 0.6


@pytest.mark.parametrize("width", POLICIES)
def test_control_a_third_of_the_noise_constant_is_caught(width: str) -> None:
    assert failures("b", width, noise=1 / 3) >= 0.8


def test_the_papers_width_needs_a_regulariser_of_one() -> None:
    """Why less is refused. The points come from a policy whose own bounds hold at α = 0.1."""
    published_failures = own_failures = 0
    for seed in range(CONTROL_RUNS):
        problem = FAMILIES["b"](seed)
        kernel, norm, constant = KERNEL, problem.norm, problem.constant
        published = PaperWidth(norm, constant, DELTA, dim=2, nu=kernel.nu)
        for width in (published, None):
            policy = pt.PiGPUCB(
                problem.domain,
                horizon=STEPS,
                kernel=kernel,
                norm_bound=norm,
                noise=pt.Gaussian(constant),
                delta=DELTA,
                seed=seed,
                alpha=0.1,
                split="count",
            )
            failed = not bounds_hold(policy, problem, width)
            published_failures += failed and width is not None
            own_failures += failed and width is None
    assert published_failures >= 0.8 * CONTROL_RUNS
    assert own_failures <= DELTA * CONTROL_RUNS
