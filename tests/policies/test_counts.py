"""Aggregates: `tell(x, mean, std=, count=n)` does what n single tells do."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import partita as pt
from partita.errors import InvalidInput
from partita.policies.baselines.stosoo import StoSOO

KERNEL = pt.Matern(nu=1.5, lengthscale=0.2)
COMMON = {"kernel": KERNEL, "noise": pt.Gaussian(0.1)}
PROVEN = {**COMMON, "norm_bound": 5.0}
MAKERS = {
    "grid": lambda: pt.PiGPUCB(pt.Grid(20), horizon=10_000, **PROVEN),
    "box": lambda: pt.PiGPUCB(pt.Box([0, 0], [1, 1]), horizon=10_000, **PROVEN),
    "slack": lambda: pt.PiGPUCB(pt.Box([0], [1]), horizon=1000, index_slack=True, **PROVEN),
    "paper": lambda: pt.PiGPUCB.paper(pt.Grid(12, dim=2), horizon=1000, **PROVEN),
    "paper box": lambda: pt.PiGPUCB.paper(pt.Box([0], [1]), horizon=1000, **PROVEN),
    "tightened": lambda: pt.PiGPUCB(
        pt.Box([0, 0], [1, 1]), horizon=1000, split="count", tightening=True, **PROVEN
    ),
    "igp-ucb": lambda: pt.IGPUCB(pt.Grid(20), **PROVEN),
    "gp-ucb": lambda: pt.GPUCB(pt.Grid(20), **COMMON),
    "gp-ucb rkhs": lambda: pt.GPUCB(
        pt.Grid(8), kernel=KERNEL, noise=pt.Uniform(-1, 1), norm_bound=1.0, bound="rkhs"
    ),
}


def objective(x):
    return float(np.sin(5 * x[0]) - (x[-1] - 0.4) ** 2)


def sample(rng, mean, count, spread=0.1):
    """Values (count,) with exactly this mean, but for rounding."""
    values = spread * rng.standard_normal(count)
    return values - values.mean() + mean


def cells(policy):
    return sorted(
        (key, cell.count, cell.distinct) for key, cell in policy._engine.partition.leaves.items()
    )


def assert_same(fast, slow, points):
    assert fast.told == slow.told
    assert fast.pending == slow.pending
    assert cells(fast) == cells(slow)
    scatter = (policy._engine.partition.sites.scatter for policy in (fast, slow))
    assert next(scatter) == pytest.approx(next(scatter), rel=1e-9, abs=1e-9)
    assert fast.cells_created == slow.cells_created
    assert fast.information_gain == pytest.approx(slow.information_gain, abs=1e-9)
    for one, other in zip(fast.predict(points), slow.predict(points), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-10)


def play_both(name, seed, steps=12, most=60):
    """Play a policy with aggregates beside one with single tells, and compare after each."""
    make, spread = MAKERS[name], 0.1
    if name == "tightened":  # it keeps bounds from the moment of a split, by the values until then
        spread = 0.0
    rng = np.random.default_rng(seed)
    fast, slow = make(), make()
    points = rng.random((20, fast.domain.dim))
    if hasattr(fast.domain, "points"):
        points = fast.domain.points
    for step in range(steps):
        several = 1 + int(step % 4 == 3)  # now and then two are pending
        asked = [(fast.ask(), slow.ask()) for _ in range(several)]
        if several > 1 and np.array_equal(asked[0][0], asked[1][0]):
            # Single tells of one array would end both of its pending evaluations.
            for policy, x in zip((fast, slow), asked.pop(), strict=True):
                policy.cancel(x)
        for one, other in asked:
            np.testing.assert_array_equal(one, other)
            count = int(rng.integers(1, most))
            values = sample(rng, objective(one), count, spread)
            std = float(np.std(values, ddof=1)) if count > 1 else None
            fast.tell(one, float(values.mean()), std=std, count=count)
            for value in values.tolist():
                slow.tell(other, value)
            assert_same(fast, slow, points)
        if step % 5 == 4:  # a point that was not asked for
            x = points[int(rng.integers(len(points)))]
            values = sample(rng, objective(x), 7, spread)
            fast.tell(x, values.mean(), std=np.std(values, ddof=1), count=7)
            for value in values.tolist():
                slow.tell(x, value)
            assert_same(fast, slow, points)
    return fast


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("seed", range(2))
def test_an_aggregate_is_its_values_one_by_one(name, seed):
    play_both(name, seed)


def test_splits_happen_within_aggregates():
    policy = play_both("paper", 3)
    assert policy._engine.partition.split
    assert play_both("tightened", 3)._engine.partition.split


def test_points_off_the_candidates():
    """Cells of a box hold data at points that are not candidates."""
    rng = np.random.default_rng(5)
    fast, slow = (
        pt.PiGPUCB(pt.Box([0], [1]), horizon=1000, split="count", **PROVEN) for _ in range(2)
    )
    for x in rng.random((40, 1)):
        values = sample(rng, objective(x), 9)
        fast.tell(x, values.mean(), std=np.std(values, ddof=1), count=9)
        for value in values.tolist():
            slow.tell(x, value)
        assert_same(fast, slow, rng.random((9, 1)))


@pytest.mark.parametrize("name", MAKERS)
def test_bulk_aggregates_are_bulk_values(name):
    rng = np.random.default_rng(1)
    fast, slow = MAKERS[name](), MAKERS[name]()
    points = rng.random((15, fast.domain.dim))
    if hasattr(fast.domain, "points"):
        points = fast.domain.points[rng.integers(0, len(fast.domain.points), 15)]
    counts = rng.integers(1, 30, 15)
    means = np.array([objective(x) for x in points])
    stds = np.where(counts > 1, 0.0, np.nan)  # they agreed
    fast.tell(points, means, std=stds, count=counts)
    slow.tell(np.repeat(points, counts, axis=0), np.repeat(means, counts))
    assert_same(fast, slow, points)
    np.testing.assert_array_equal(fast.ask(), slow.ask())


def test_thompson_sampling_has_the_same_posterior():
    rng = np.random.default_rng(2)
    fast, slow = (pt.PiGPTS(pt.Grid(12, dim=2), horizon=1000, **PROVEN) for _ in range(2))
    for x in fast.domain.points[rng.integers(0, 144, 12)]:
        values = sample(rng, objective(x), 20)
        fast.tell(x, values.mean(), std=np.std(values, ddof=1), count=20)
        for value in values.tolist():
            slow.tell(x, value)
        assert_same(fast, slow, fast.domain.points)


def test_uniform_sampling_counts_values():
    policy = pt.UniformSampling(pt.Grid(5))
    policy.tell(policy.domain.points[0], 1.0, count=3)
    policy.tell(policy.domain.points[0], 5.0)
    policy.tell(policy.domain.points, np.zeros(5), count=[1, 2, 3, 4, 5])
    assert policy.told == 19
    assert policy.recommend().mean == pytest.approx(8 / 5)


def test_state_is_saved_with_counts():
    policy, twin = (pt.PiGPUCB(pt.Grid(20), horizon=10**10, **PROVEN) for _ in range(2))
    for count in (1, 100, 10**9):
        policy.tell(policy.ask(), 0.3, count=count)
    twin.restore(policy.state())
    assert twin.told == policy.told == 10**9 + 101
    np.testing.assert_array_equal(twin.ask(), policy.ask())


@pytest.mark.parametrize(
    "settings",
    [
        {"count": 0},
        {"count": -3},
        {"count": 2.5},
        {"count": True},
        {"count": "3"},
        {"count": float("nan")},
        {"count": float("inf")},
        {"count": 10**16},
        {"count": [2, 3]},
        {"count": 3, "std": -0.1},
        {"count": 3, "std": float("inf")},
        {"count": 3, "std": [0.1, 0.2]},
        {"count": 3, "std": "wide"},
    ],
)
@pytest.mark.parametrize("make", [MAKERS["grid"], lambda: pt.CalibratedUCB(pt.Grid(20))])
def test_bad_counts_change_nothing(settings, make):
    policy = make()
    x = policy.ask()
    policy.tell(x, 0.2)
    before, again = copy.deepcopy(policy), policy.ask()
    with pytest.raises(InvalidInput):
        policy.tell(again, 0.5, **settings)
    assert (policy.told, policy.pending) == (1, 1)
    np.testing.assert_array_equal(before.ask(), again)
    before.tell(again, 0.5)
    policy.tell(again, 0.5)
    np.testing.assert_array_equal(before.ask(), policy.ask())


def test_policies_that_need_each_value_refuse():
    policy = StoSOO(pt.Box([0], [1]), horizon=100, noise=pt.Gaussian(0.1))
    assert not policy.takes_count
    x = policy.ask()
    with pytest.raises(InvalidInput, match="one by one"):
        policy.tell(x, 0.5, count=4)
    assert policy.told == 0
    assert policy.pending == 1
    policy.tell(x, 0.5, count=1)
    assert policy.told == 1
