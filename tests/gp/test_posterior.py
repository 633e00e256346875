"""Dense, by rows, and by the textbook: the same posterior."""

import pickle

import numpy as np
import pytest

from partita import Grid
from partita.errors import NumericalError
from partita.gp import posterior as module
from partita.gp import rows as rows_module
from partita.gp.posterior import DensePosterior, Prior, unit_kernel
from partita.gp.rows import RowPosterior
from partita.model.kernels import Matern


def textbook(prior, plays, values, alpha):
    """Posterior mean, standard deviation and information gain from single plays."""
    gram = prior[np.ix_(plays, plays)]
    inverse = np.linalg.inv(gram + alpha * np.eye(len(plays)))
    across = prior[:, plays]
    variance = np.diag(prior) - np.einsum("ij,jk,ik->i", across, inverse, across)
    gain = 0.5 * np.linalg.slogdet(np.eye(len(plays)) + gram / alpha)[1]
    return across @ inverse @ values, np.sqrt(variance), gain


def make(kind, kernel, points, alpha):
    prior = Prior(kernel, points)
    posterior = RowPosterior(alpha) if kind == "rows" else DensePosterior(alpha)
    posterior.refit(prior, np.empty(0, np.int64), np.empty(0), np.empty(0))
    return posterior, prior


def aggregate(plays, values):
    where, counts = np.unique(plays, return_counts=True)
    means = np.array([values[plays == j].mean() for j in where])
    return where, means, counts.astype(float)


@pytest.mark.parametrize("kind", ["dense", "rows"])
@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, 0.8])
@pytest.mark.parametrize("alpha", [0.05, 1.0, 1.2])
def test_updates_and_refits_are_the_textbook(kind, nu, alpha):
    rng = np.random.default_rng(7)
    kernel, points = Matern(nu, 1.0), rng.random((14, 2)) * 3
    matrix = kernel(points)
    posterior, prior = make(kind, kernel, points, alpha)
    plays = rng.integers(0, 14, 60)
    values = rng.normal(size=60)
    for t in range(60):
        posterior.observe(int(plays[t]), float(values[t]))
    mean, std, gain = textbook(matrix, plays, values, alpha)
    np.testing.assert_allclose(posterior.mean, mean, atol=1e-10)
    np.testing.assert_allclose(posterior.std, std, atol=1e-9)
    assert posterior.gain == pytest.approx(gain, abs=1e-10)
    posterior.refit(prior, *aggregate(plays, values))
    np.testing.assert_allclose(posterior.mean, mean, atol=1e-10)
    np.testing.assert_allclose(posterior.std, std, atol=1e-9)
    assert posterior.gain == pytest.approx(gain, abs=1e-10)
    posterior.observe(3, 0.5)
    mean, std, gain = textbook(matrix, np.append(plays, 3), np.append(values, 0.5), alpha)
    np.testing.assert_allclose(posterior.mean, mean, atol=1e-10)
    np.testing.assert_allclose(posterior.std, std, atol=1e-9)
    assert posterior.gain == pytest.approx(gain, abs=1e-10)


@pytest.mark.parametrize("kind", ["dense", "rows"])
def test_plans_lower_the_deviation_and_nothing_else(kind):
    rng = np.random.default_rng(1)
    kernel, points = Matern(1.5, 1.0), rng.random((9, 2)) * 3
    posterior, _ = make(kind, kernel, points, 1.0)
    plays, values = rng.integers(0, 9, 12), rng.normal(size=12)
    for j, y in zip(plays, values, strict=True):
        posterior.observe(int(j), float(y))
    before = posterior.mean.copy(), posterior.std.copy(), posterior.gain
    plan = posterior.plan()
    pending = [4, 4, 7]
    for j in pending:
        plan.add(j)
    _, std, _ = textbook(kernel(points), np.append(plays, pending), np.zeros(15), 1.0)
    np.testing.assert_allclose(plan.std, std, atol=1e-10)
    np.testing.assert_array_equal(posterior.mean, before[0])
    np.testing.assert_array_equal(posterior.std, before[1])
    assert posterior.gain == before[2]


def test_many_conditioning_points_use_the_factorisation(monkeypatch):
    rng = np.random.default_rng(2)
    kernel, points = Matern(1.5, 1.0), rng.random((70, 2)) * 3
    data = aggregate(rng.integers(0, 70, 300), rng.normal(size=300))
    monkeypatch.setattr(module, "FACTOR_FROM", 10)
    by_factor, prior = make("dense", kernel, points, 1.0)
    by_factor.refit(prior, *data)
    moments = [make("dense", kernel, points, 1.0)[0] for _ in range(2)]
    moments[0].refit(prior, *data, moments_only=True)
    monkeypatch.setattr(module, "FACTOR_FROM", 1000)
    moments[1].refit(prior, *data, moments_only=True)
    for posterior in moments:
        assert posterior.cov is None
        np.testing.assert_allclose(posterior.mean, by_factor.mean, atol=1e-12)
        np.testing.assert_allclose(posterior.std, by_factor.std, atol=1e-12)
        assert posterior.gain == pytest.approx(by_factor.gain, abs=1e-11)
    one_by_one, _ = make("dense", kernel, points, 1.0)
    one_by_one.refit(prior, *data)
    np.testing.assert_allclose(by_factor.mean, one_by_one.mean, atol=1e-12)
    np.testing.assert_allclose(by_factor.cov, one_by_one.cov, atol=1e-12)
    assert by_factor.gain == pytest.approx(one_by_one.gain, abs=1e-11)


def test_rounding_does_not_pile_up_between_refreshes():
    rng = np.random.default_rng(3)
    kernel, points = Matern(1.5, 1.0), rng.random((6, 1)) * 2
    posterior, prior = make("dense", kernel, points, 1.0)
    plays = rng.integers(0, 6, module.REFRESH_AFTER)
    values = rng.normal(size=len(plays))
    for j, y in zip(plays.tolist(), values.tolist(), strict=True):
        assert not posterior.wants_refit(6)
        posterior.observe(j, y)
    assert posterior.wants_refit(6)
    stepwise = posterior.mean.copy(), posterior.std.copy(), posterior.gain
    posterior.refit(prior, *aggregate(plays, values))
    np.testing.assert_allclose(stepwise[0], posterior.mean, atol=1e-11)
    np.testing.assert_allclose(stepwise[1], posterior.std, atol=1e-11)
    assert stepwise[2] == pytest.approx(posterior.gain, abs=1e-10)


def test_rows_fold_replicates_and_pickle_without_spare_rows(monkeypatch):
    monkeypatch.setattr(rows_module, "BLOCK_ROWS", 4)
    rng = np.random.default_rng(4)
    kernel, points = Matern(1.5, 1.0), rng.random((30, 2)) * 3
    posterior, prior = make("rows", kernel, points, 1.0)
    plays, values = rng.integers(0, 5, 74), rng.normal(size=74)
    for j, y in zip(plays.tolist(), values.tolist(), strict=True):
        posterior.observe(j, y)
    assert posterior.wants_refit(5)
    posterior.refit(prior, *aggregate(plays, values))
    assert not posterior.wants_refit(5)
    mean, std, gain = textbook(kernel(points), plays, values, 1.0)
    np.testing.assert_allclose(posterior.mean, mean, atol=1e-11)
    np.testing.assert_allclose(posterior.std, std, atol=1e-10)
    assert posterior.gain == pytest.approx(gain, abs=1e-10)
    copy = pickle.loads(pickle.dumps(posterior))
    for p in (posterior, copy):
        p.observe(8, 1.0)
        p.observe(9, -1.0)
    np.testing.assert_array_equal(copy.mean, posterior.mean)
    np.testing.assert_array_equal(copy.std, posterior.std)


@pytest.mark.parametrize("kind", ["dense", "rows"])
def test_lost_positive_definiteness_is_an_error(kind):
    points = np.zeros((300, 1))  # copies of one point, almost without noise
    posterior, prior = make(kind, Matern(1.5, 1.0), points, 1e-300)
    where = np.arange(300)
    with pytest.raises(NumericalError, match="larger alpha"):
        posterior.refit(prior, where, np.ones(300), np.ones(300))


def test_unit_kernel_serves_every_nu():
    rng = np.random.default_rng(5)
    left, right = rng.random((4, 3)), rng.random((6, 3))
    for nu in (0.5, 1.5, 2.5, 1.1):
        kernel = Matern(nu, 0.4)
        expected = kernel(left, right)
        np.testing.assert_allclose(
            unit_kernel(kernel, left / 0.4, right / 0.4), expected, rtol=1e-12
        )


@pytest.mark.parametrize(("n", "dim"), [(2, 1), (9, 1), (5, 2), (4, 3)])
@pytest.mark.parametrize("block_rows", [3, 64])
def test_a_grid_by_convolution_is_the_textbook(n, dim, block_rows, monkeypatch):
    monkeypatch.setattr(rows_module, "BLOCK_ROWS", block_rows)
    rng = np.random.default_rng(n)
    kernel = Matern(1.5, rng.uniform(0.1, 0.6, dim))
    grid = Grid(n, dim=dim).points
    prior = Prior(kernel, grid / kernel.scales(dim))
    by_rows, by_grid = RowPosterior(1.0), RowPosterior(1.0, (n,) * dim)
    nothing = np.empty(0, np.int64), np.empty(0), np.empty(0)
    plays, values = rng.integers(0, n**dim, 40), rng.normal(size=40)
    for posterior in (by_rows, by_grid):
        posterior.refit(prior, *nothing)
        for j, y in zip(plays.tolist(), values.tolist(), strict=True):
            posterior.observe(j, y)
        posterior.observe(0, 0.3)
    mean, std, gain = textbook(kernel(grid), np.append(plays, 0), np.append(values, 0.3), 1.0)
    for posterior in (by_rows, by_grid):
        np.testing.assert_allclose(posterior.mean, mean, atol=1e-11)
        np.testing.assert_allclose(posterior.std, std, atol=1e-10)
        assert posterior.gain == pytest.approx(gain, abs=1e-10)
        posterior.refit(prior, *aggregate(np.append(plays, 0), np.append(values, 0.3)))
        np.testing.assert_allclose(posterior.mean, mean, atol=1e-11)
        np.testing.assert_allclose(posterior.std, std, atol=1e-10)
        assert posterior.gain == pytest.approx(gain, abs=1e-10)
    plans = [by_rows.plan(), by_grid.plan()]
    copy = pickle.loads(pickle.dumps(by_grid))
    for plan in plans:
        plan.add(1)
        plan.add(1)
    np.testing.assert_allclose(plans[0].std, plans[1].std, atol=1e-12)
    for posterior in (by_rows, by_grid, copy):
        posterior.observe(1, -0.7)
    np.testing.assert_allclose(by_grid.mean, by_rows.mean, atol=1e-12)
    np.testing.assert_array_equal(copy.mean, by_grid.mean)
