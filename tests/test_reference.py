"""The paper preset and the line-by-line reference choose the same points, step by step."""

import numpy as np
import pytest

from partita import Arms, Grid, Matern, PiGPUCB, SubGaussian
from partita.reference import Reference

KERNEL = Matern(1.5, 0.2)


def irregular(dim, seed, parts=8):
    """Arms at random, and arms on corners and faces of every level."""
    rng = np.random.default_rng(seed)
    on_faces = rng.integers(0, parts + 1, (25, dim)) / parts
    return Arms(np.unique(np.concatenate([rng.random((25, dim)), on_faces]), axis=0))


class Remembering(Reference):
    """The reference, which computes the posterior of a cell once for each number of its data."""

    def posterior(self, cell, arms):
        arms_told = [arm for arm, _ in self.observations]
        inside = int(self.geometry.holds(cell, self.scaled[arms_told]).sum())
        memory = self.__dict__.setdefault("memory", {})
        if (cell, inside) not in memory:
            memory[cell, inside] = super().posterior(cell, arms)
        return memory[cell, inside]


# first cells a side: None is the paper's T^q
CASES = {
    "d1": (Grid(30), 300, 250, None),
    "d1 from one cell": (Grid(30), 300, 150, 1),
    "d2": (Grid(30, dim=2), 150, 150, None),
    "d2 from one cell": (Grid(12, dim=2), 150, 150, 1),
    "d3": (Grid(8, dim=3), 120, 120, None),
    "d3 from one cell": (Grid(6, dim=3), 120, 120, 1),
    "faces d1": (Grid(33), 400, 200, 2),
    "faces d2": (Grid(9, dim=2), 200, 200, 1),
    "faces d2, fine": (Grid(33, dim=2), 150, 120, 4),
    "faces d3": (Grid(9, dim=3), 100, 100, 1),
    "irregular": (irregular(2, 0), 300, 150, None),
    "irregular from one cell": (irregular(2, 1), 200, 200, 1),
    "irregular d3": (irregular(3, 2), 100, 100, 2),
    "cells of one arm or none": (Arms(np.random.default_rng(3).random((4, 2))), 300, 150, 5),
    "one arm": (Arms([[0.5, 0.5]]), 50, 40, 1),
    "64 cells meet": (irregular(6, 4, parts=2), 100, 20, 1),
    "128 cells could meet": (irregular(7, 5, parts=2), 100, 40, 1),
}


@pytest.mark.parametrize("name", CASES)
def test_same_points_as_the_reference(name):
    domain, horizon, steps, per_side = CASES[name]
    seed = len(name)
    rng = np.random.default_rng(seed)
    centres, weights = rng.random((10, domain.dim)), rng.uniform(-1, 1, 10)
    f = KERNEL(domain.unit_points, centres) @ weights
    norm = float(np.sqrt(weights @ KERNEL(centres) @ weights))
    settings = {"horizon": horizon, "kernel": KERNEL, "norm_bound": norm, "seed": seed}
    reference = Remembering(domain, sub_gaussian=1.0, cells_per_side=per_side, **settings)
    if per_side is None:
        policy = PiGPUCB.paper(domain, noise=SubGaussian(1.0), **settings)
    else:
        policy = PiGPUCB(
            domain,
            noise=SubGaussian(1.0),
            alpha=1 + 2 / horizon,
            width="paper",
            split="count",
            initial_cells=per_side,
            **settings,
        )
    for t in range(steps):
        arm, x = reference.ask(), policy.ask()
        np.testing.assert_array_equal(x, domain.points[arm], err_msg=f"step {t}")
        y = f[arm] + rng.uniform(-1, 1)
        reference.tell(arm, y)
        policy.tell(x, y)
    assert policy.cells_created == len(reference.cover) + reference.splits
    assert len(policy.cover) == len(reference.cover)
    assert reference.splits >= 1
    compare_cells(policy, reference)


def compare_cells(policy, reference):
    """Every cell of the final cover has the reference's bounds."""
    by_corner = {(c.level, *c.lower.tolist()): c for c in policy.cover}
    for key in reference.cover:
        view = by_corner[(key[0], *reference.geometry.lower(key).tolist())]
        arms = np.flatnonzero(reference.geometry.holds(key, reference.scaled))
        if len(arms) == 0:
            assert view.index == -np.inf
            continue
        mean, std, gain = reference.posterior(key, arms)
        width = reference.width(gain)
        assert view.information_gain == pytest.approx(gain, abs=1e-9)
        assert view.width == pytest.approx(width, abs=1e-9)
        assert view.index == pytest.approx((mean + width * std).max(), abs=1e-8)


def test_the_tie_rule_is_shared():
    """With equal values everywhere every choice is a tie, decided by the seed alone."""
    domain = Grid(5, dim=2)
    settings = {"horizon": 60, "kernel": KERNEL, "norm_bound": 1.0}
    firsts = set()
    for seed in range(6):
        reference = Remembering(domain, sub_gaussian=1.0, seed=seed, **settings)
        policy = PiGPUCB.paper(domain, noise=SubGaussian(1.0), seed=seed, **settings)
        for t in range(40):
            arm, x = reference.ask(), policy.ask()
            np.testing.assert_array_equal(x, domain.points[arm], err_msg=f"seed {seed} step {t}")
            reference.tell(arm, 0.0)
            policy.tell(x, 0.0)
            if t == 0:
                firsts.add(arm)
    assert len(firsts) > 1
