"""The trend of many dimensions: it is a weighted ridge regression, and its top is the highest."""

import itertools

import numpy as np
import pytest

from partita._state import Saved
from partita.policies.calibrated.trend import (
    ALIKE,
    LEVEL,
    SHARES,
    Parts,
    Trend,
    features,
    fit_trend,
    weights_of,
)

DIM = 12


def some(random, number=60, noise=0.05):
    """Points, values of a separable quadratic, and its highest point."""
    points, best = random.random((number, DIM)), random.uniform(0.3, 0.7, DIM)
    values = -((points - best) ** 2).sum(axis=1) + noise * random.standard_normal(number)
    return points, values, best


def test_coefficients_are_those_of_a_ridge_regression_for_one_of_the_shares():
    random = np.random.default_rng(0)
    points, values, _ = some(random)
    noise, centre = random.uniform(0.5, 2.0, len(points)), np.full(DIM, 0.4)
    trend = fit_trend(points, values, noise, centre, 0.7)
    away = points - centre
    w = 1.0 / (noise + ((away**2).sum(axis=1) / DIM / 0.7**2) ** 2)
    assert np.allclose(weights_of(away, noise, 0.7), w)
    size = float((w[:, None] * away**2).sum() / DIM / w.sum())
    prior = np.diag([LEVEL] + [DIM * size] * DIM + [4.0 * DIM * size**2] * DIM)
    prior[DIM + 1 :, DIM + 1 :] -= 4.0 * size**2 * ALIKE  # a bowl is likelier than other curves
    level = float(np.average(values, weights=w))
    rows = np.array([[1.0, *z, *(z**2)] for z in away])
    assert np.array_equal(features(away), rows)
    ridges = []
    for share in SHARES:
        a = rows.T @ np.diag(w) @ rows + share / (1 - share) * prior
        ridges.append((a, np.linalg.solve(a, rows.T @ (w * (values - level)))))
    a, slow = min(ridges, key=lambda ridge: np.abs(ridge[1] - trend.coefficients).max())
    assert np.allclose(slow, trend.coefficients, rtol=1e-7, atol=1e-9)
    assert np.allclose(trend.inverse @ a @ trend.inverse.T, np.eye(2 * DIM + 1), atol=1e-6)
    assert np.allclose(trend.means(points), level + rows @ slow)
    variance = np.einsum("ni,ij,nj->n", rows, np.linalg.inv(a), rows)
    assert np.allclose(trend.deviations(points), trend.spread * np.sqrt(variance))


@pytest.mark.parametrize("seed", range(20))
def test_the_highest_point_of_parts_is_the_best_of_a_fine_grid(seed):
    random = np.random.default_rng(seed)
    parts = Parts(random.standard_normal(2), random.standard_normal(2), np.empty(0))
    lower, upper = np.array([-0.3, -0.1]), np.array([0.2, 0.4])
    top = parts.highest(lower, upper)
    assert ((top >= lower) & (top <= upper)).all()
    grid = itertools.product(*(np.linspace(*ends, 41) for ends in zip(lower, upper, strict=True)))

    def value(z):
        return float((parts.slope * z + parts.curve * np.asarray(z) ** 2).sum())

    assert value(top) >= max(value(np.array(z)) for z in grid) - 1e-12


def test_flat_parts_have_a_highest_point_in_the_box():
    flat = Parts(np.zeros(3), np.array([0.0, 1.0, -1.0]), np.empty(0))
    top = flat.highest(np.full(3, -1.0), np.full(3, 0.5))
    assert top[1] == -1.0
    assert ((top >= -1.0) & (top <= 0.5)).all()


def test_marks_of_choices_have_constants():
    random = np.random.default_rng(7)
    points, values, _ = some(random, 200)
    which = random.integers(3, size=200)
    marks, constants = np.eye(3)[which], np.array([0.0, 2.0, -1.0])
    middle = marks.mean(axis=0)
    trend = fit_trend(
        points,
        values + constants[which],
        np.ones(200),
        np.full(DIM, 0.5),
        1.0,
        marks - middle,
        1,
    )
    found = trend.parts.constants
    assert np.allclose(found - found[0], constants, atol=0.15)
    assert trend.explained > 0.95
    means = trend.means(points, marks - middle)
    assert np.corrcoef(means, values + constants[which])[0, 1] > 0.98
    again = Trend.restored(Saved(trend.state()), DIM, 3)
    assert np.array_equal(again.parts.constants, found)


def test_choices_alone_make_a_trend():
    random = np.random.default_rng(8)
    marks = random.integers(2, size=(80, 5)).astype(float)
    values = marks @ np.array([1.0, -1.0, 0.5, 0.0, 2.0]) + 0.1 * random.standard_normal(80)
    nothing = np.empty((80, 0))
    trend = fit_trend(nothing, values, np.ones(80), np.empty(0), 1.0, marks - 0.5, 5)
    assert np.allclose(trend.parts.constants, [1.0, -1.0, 0.5, 0.0, 2.0], atol=0.15)
    assert trend.bend == trend.doubt == 0.0


def test_bend_and_doubt_are_those_of_the_coefficients():
    points, values, _ = some(np.random.default_rng(9), 400)
    trend = fit_trend(points, values, np.ones(400), np.full(DIM, 0.5), 1.0)
    assert trend.bend == pytest.approx(-trend.parts.curve.mean())
    assert trend.bend == pytest.approx(1.0, abs=0.2)
    covariance = trend.spread**2 * (trend.inverse.T @ trend.inverse)
    slopes = np.diagonal(covariance)[1 : DIM + 1]
    assert trend.doubt == pytest.approx(np.sqrt(slopes.mean()))


def test_draws_vary_about_the_coefficients_as_the_posterior_does():
    random = np.random.default_rng(4)
    points, values, _ = some(random)
    trend = fit_trend(points, values, np.ones(60), np.full(DIM, 0.5), 1.0)
    draws = np.array([trend.drawn(random, 1.0).slope for _ in range(4000)])
    covariance = trend.spread**2 * (trend.inverse.T @ trend.inverse)[1 : DIM + 1, 1 : DIM + 1]
    assert np.allclose(draws.mean(axis=0), trend.parts.slope, atol=0.1 * draws.std(axis=0).max())
    assert np.allclose(draws.var(axis=0), np.diag(covariance), rtol=0.15)
    assert np.array_equal(trend.drawn(random, 0.0).slope, trend.parts.slope)


def test_many_noisy_values_find_the_top():
    random = np.random.default_rng(5)
    points, values, best = some(random, 4000, noise=2.0)
    trend = fit_trend(points, values, np.ones(4000), np.full(DIM, 0.5), 1.0)
    top = 0.5 + trend.parts.highest(np.full(DIM, -0.5), np.full(DIM, 0.5))
    assert ((top - best) ** 2).sum() < 0.4 * ((0.5 - best) ** 2).sum()


@pytest.mark.parametrize("value", [0.0, 3.0])
def test_equal_values_make_a_flat_trend(value):
    points = np.random.default_rng(1).random((30, DIM))
    trend = fit_trend(points, np.full(30, value), np.ones(30), np.full(DIM, 0.5), 1.0)
    assert np.allclose(trend.means(points), value)
    assert np.isfinite(trend.inverse).all()


def test_one_point_many_times_is_no_error():
    points = np.full((30, DIM), 0.25)
    trend = fit_trend(points, np.arange(30.0), np.ones(30), points[0], 1.0)
    assert trend.means(points[:1])[0] == pytest.approx(14.5)


def test_a_saved_trend_is_the_same():
    points, values, _ = some(np.random.default_rng(2))
    trend = fit_trend(points, values, np.ones(60), np.full(DIM, 0.5), 1.0)
    again = Trend.restored(Saved(trend.state()), DIM)
    assert all(np.array_equal(a, b) for a, b in zip(trend, again, strict=True))
