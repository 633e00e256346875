"""Cells with more candidates than a covariance has room for."""

import numpy as np
import pytest

import partita as pt
from partita.gp import rows as rows_module
from partita.gp.rows import InverseFactor, RowPosterior, Rows

KERNEL = pt.Matern(1.5, 0.2)
SETTINGS = {"kernel": KERNEL, "norm_bound": 1.0, "noise": pt.SubGaussian(0.5)}


def asks(policy, steps):
    rng = np.random.default_rng(0)
    points = []
    for _ in range(steps):
        x = policy.ask()
        points.append(x)
        policy.tell(x, float(np.sin(5 * x).sum() + rng.uniform(-0.5, 0.5)))
    return np.array(points)


@pytest.mark.parametrize("arms", [False, True])
@pytest.mark.parametrize("split", [False, True])
def test_large_cells_choose_as_small_ones_do(arms, split, monkeypatch):
    domain = pt.Grid(9, dim=2)
    if arms:
        domain = pt.Arms(domain.points)

    def make():
        if split:  # cells split below the limit again
            return pt.PiGPUCB(domain, horizon=120, split="count", initial_cells=1, **SETTINGS)
        return pt.IGPUCB(domain, **SETTINGS)

    expected = asks(make(), 120)
    monkeypatch.setattr(rows_module, "DENSE_LIMIT", 20)
    policy = make()
    policy.tell(policy.ask(), 0.0)
    kinds = {type(c.posterior) for c in policy._engine.partition.leaves.values()}
    np.testing.assert_array_equal(asks(make(), 120), expected)
    if not split:
        assert kinds == {RowPosterior}
        (cell,) = policy._engine.partition.leaves.values()
        assert isinstance(cell.posterior._memory, Rows if arms else InverseFactor)


def test_a_short_horizon_on_a_large_grid_stays_small():
    """One cell of 27,000 arms: a covariance would take 5.8 GB."""
    policy = pt.PiGPUCB.paper(pt.Grid(30, dim=3), horizon=2, **SETTINGS)
    policy.tell(policy.ask(), 0.3)
    policy.ask()
    assert len(policy.cover) == 8
