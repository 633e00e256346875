"""Each step of the argument for `split="optimal"` (docs/core.md) on real kernels and runs."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product

import numpy as np
import pytest

import partita as pt
from partita.problems import RKHSFunction

HORIZON, HALF_WIDTH = 6_000, 0.1
SIDES = (1 / 16, 1 / 32, 1 / 64)
CASES = [(1, 1.5), (1, 2.5), (2, 1.5)]


def anchors(dim, nu):
    """Points of the unit cube that determine polynomials of degree ⌈ν⌉ − 1."""
    degree = math.ceil(nu) - 1
    exponents = [e for e in product(range(degree + 1), repeat=dim) if sum(e) <= degree]
    return np.array(exponents) / max(degree, 1)


def left_over(kernel, points, z):
    """The variances at points (n, d) that exact values at z leave, (n,)."""
    gram = kernel(z) + 1e-15 * np.eye(len(z))
    across = kernel(points, z)
    return 1.0 - (across * np.linalg.solve(gram, across.T).T).sum(axis=1)


def remainder(kernel, dim, sides=SIDES):
    """The largest left-over variance over ρ^(2ν), for several sides ρ: the c of step 1."""
    inside = np.random.default_rng(0).random((300, dim))
    z = anchors(dim, kernel.nu)
    return [float(left_over(kernel, s * inside, s * z).max()) / s ** (2 * kernel.nu) for s in sides]


def played(dim, nu, half_width, horizon):
    """A policy after a run on a random function."""
    kernel = pt.Matern(nu, 0.2)
    f = RKHSFunction.sample(dim, kernel, seed=77)
    policy = pt.PiGPUCB(
        pt.Box([0.0] * dim, [1.0] * dim),
        horizon=horizon,
        kernel=kernel,
        norm_bound=f.norm,
        noise=pt.Uniform(-half_width, half_width),
        split="optimal",
    )
    random = np.random.default_rng(5)
    for _ in range(horizon):
        x = policy.ask()
        policy.tell(x, float(f(x[None, :])[0]) + half_width * random.uniform(-1, 1))
    return policy


@pytest.fixture(scope="module", params=CASES, ids=lambda case: f"d{case[0]}-nu{case[1]}")
def run(request):
    """A run with little noise."""
    return played(*request.param, HALF_WIDTH, HORIZON)


@pytest.mark.parametrize(("dim", "nu"), CASES)
def test_step_1_a_few_points_leave_a_variance_of_side_to_the_2_nu(dim, nu):
    kernel = pt.Matern(nu, 1.0)
    ratios = remainder(kernel, dim)
    assert max(ratios) <= 1.5 * min(ratios)  # flat over sides
    faster = [r * s ** (-0.5 * nu) for r, s in zip(ratios, SIDES, strict=True)]
    assert max(faster) > 1.5 * min(faster)  # a higher power would not be


def test_step_2_the_gain_of_every_cell_is_below_its_bound(run):
    partition, alpha, kernel = run._engine.partition, run.alpha, run.kernel
    dim = run.domain.dim
    z = anchors(dim, kernel.nu)
    inside = np.random.default_rng(1).random((300, dim))
    seen = 0
    for key, cell in partition.leaves.items():
        if cell.count < 2:
            continue
        side = partition.geometry.side(key[0])
        residual = max(float(left_over(kernel, side * inside, side * z).max()), 0.0)
        n = cell.count
        bound = 0.5 * len(z) * math.log(1 + n / (len(z) * alpha)) + 1.1 * n * residual / (2 * alpha)
        assert cell.posterior.gain <= bound + 1e-9
        seen += 1
    assert seen >= 4


def test_step_3_a_cell_with_more_values_than_the_count_rule_has_a_gain_within_the_limit(run):
    noisy = played(1, 1.5, 3.0, 2_000)  # here the information condition holds cells back
    for policy in (run, noisy):
        rule, leaves = policy._engine.partition.rule, policy._engine.partition.leaves
        late = [c for key, c in leaves.items() if rule.count_due(key[0], c.count)]
        assert all(cell.posterior.gain <= rule.gain_limit for cell in late)
    assert late


def test_step_4_cells_that_split_held_enough_values_and_are_few(run):
    partition, dim = run._engine.partition, run.domain.dim
    sites = partition.sites
    told = np.flatnonzero(sites.count[: len(sites)])
    split = Counter()
    for key in partition.split:
        held = partition.geometry.holds(key, sites.scaled[told])
        count = int(sites.count[told][held].sum())
        assert count >= partition.rule.threshold(key[0]) - 1
        split[key[0]] += 1
    assert split
    for level, number in split.items():
        most = min(
            2 ** (dim * level), 2**dim * HORIZON / max(2 ** (2 * run.kernel.nu * level) - 1, 1e-9)
        )
        assert number <= most


def test_step_5_deviations_of_choices_in_a_cell_sum_to_its_gain():
    """Σσ² ≤ 2γ/log(1 + 1/α) over the choices made in a cell, whatever it inherited."""
    kernel, alpha = pt.Matern(1.5, 0.2), 0.01
    random = np.random.default_rng(3)
    inherited, chosen = random.random((20, 2)), random.random((60, 2))
    points = inherited
    total = 0.0
    for x in chosen:
        across = kernel(x[None, :], points)[0]
        gram = kernel(points) + alpha * np.eye(len(points))
        total += 1.0 - float(across @ np.linalg.solve(gram, across))
        points = np.vstack([points, x])
    gain = 0.5 * float(np.linalg.slogdet(np.eye(len(points)) + kernel(points) / alpha)[1])
    assert total <= 2 * gain / math.log(1 + 1 / alpha)
