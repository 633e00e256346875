"""The distribution that learns its directions: CMA-ES by the tutorial's equations."""

import math

import numpy as np
import pytest

from partita._state import Saved
from partita.policies.calibrated.evolution import (
    LEAST_STEP,
    MOST_STEP,
    Evolution,
    rates_of,
    usual_points,
)

DIM = 8


def begun(dim=DIM, step=0.2):
    return Evolution(np.full(dim, 0.5), usual_points(dim), step)


def evolve(evolution, f, generations, seed=0):
    random = np.random.default_rng(seed)
    for _ in range(generations):
        points = np.array([evolution.draw(random) for _ in range(evolution.points)])
        evolution.update(points, f(points))
    return evolution


@pytest.mark.parametrize("dim", [8, 50, 100])
def test_rates_are_the_tutorials(dim):
    number = usual_points(dim)
    assert number == 4 + math.floor(3 * math.log(dim))
    rates = rates_of(dim, number)
    positive = rates.weights[: rates.parents]
    assert positive.sum() == pytest.approx(1.0)
    assert rates.effective == pytest.approx(1.0 / (positive**2).sum())
    assert (np.diff(rates.weights) < 0).all()
    assert rates.rank_one + rates.rank_many < 1
    assert rates.weights[rates.parents :].sum() < 0


def test_one_update_is_the_slow_one_from_the_equations():
    random = np.random.default_rng(1)
    evolution = evolve(begun(), lambda x: -(x**2).sum(axis=1), 5)
    evolution._turn()  # so that B and D are those of C
    m, s, c = evolution.mean.copy(), evolution.step, evolution.covariance.copy()
    p_s, p_c = evolution._step_path.copy(), evolution._path.copy()
    r, n = evolution._rates, evolution.points
    points = np.array([evolution.draw(random) for _ in range(n)])
    values = random.standard_normal(n)
    squares, turn = np.linalg.eigh(c)
    root = turn @ np.diag(squares**-0.5) @ turn.T
    y = (points[np.argsort(-values)] - m) / s
    longest = math.sqrt(DIM) + 2 * DIM / (DIM + 2)
    y = np.array([row * min(1.0, longest / np.linalg.norm(root @ row)) for row in y])
    w = r.weights
    move = sum(w[i] * y[i] for i in range(r.parents))
    p_s = (1 - r.path) * p_s + math.sqrt(r.path * (2 - r.path) * r.effective) * root @ move
    usual = math.sqrt(DIM) * (1 - 1 / (4 * DIM) + 1 / (21 * DIM**2))
    norm = np.linalg.norm(p_s)
    begun_at = math.sqrt(1 - (1 - r.path) ** (2 * (evolution.generation + 1)))
    calm = norm / begun_at < (1.4 + 2 / (DIM + 1)) * usual
    cc = r.covariance_path
    p_c = (1 - cc) * p_c + calm * math.sqrt(cc * (2 - cc) * r.effective) * move
    new = (1 + r.rank_one * (not calm) * cc * (2 - cc) - r.rank_one) * c
    new += r.rank_one * np.outer(p_c, p_c) - r.rank_many * w.sum() * c
    for i in range(n):
        weight = w[i] if w[i] >= 0 else w[i] * DIM / np.linalg.norm(root @ y[i]) ** 2
        new += r.rank_many * weight * np.outer(y[i], y[i])
    evolution.update(points, values)
    assert np.allclose(evolution.mean, np.clip(m + s * move, 0, 1))
    assert evolution.step == pytest.approx(s * math.exp(r.path / r.damping * (norm / usual - 1)))
    assert np.allclose(evolution.covariance, new, rtol=1e-6, atol=1e-9)


def test_it_finds_the_top_of_a_turned_ellipsoid_and_its_directions():
    random = np.random.default_rng(2)
    turn = np.linalg.qr(random.standard_normal((DIM, DIM)))[0]
    best, weights = random.uniform(0.3, 0.7, DIM), 10 ** np.linspace(0, 3, DIM)
    found = evolve(begun(), lambda x: -(((x - best) @ turn) ** 2 @ weights), 300)
    assert np.abs(found.mean - best).max() < 1e-3
    along = turn.T @ found.covariance @ turn
    assert along[0, 0] > 50 * along[-1, -1]


def test_only_the_order_of_values_counts():
    def f(x):
        return -((x - 0.3) ** 2).sum(axis=1)

    first, other = evolve(begun(), f, 20), evolve(begun(), lambda x: 1e9 * np.exp(f(x)), 20)
    assert np.array_equal(first.mean, other.mean)
    assert np.array_equal(first.covariance, other.covariance)


@pytest.mark.parametrize("corner", [0.0, 1.0])
def test_points_stay_in_the_cube_and_an_optimum_in_a_corner_is_found(corner):
    random = np.random.default_rng(0)
    found = evolve(begun(), lambda x: -((x - corner) ** 2).sum(axis=1), 150)
    assert np.abs(found.mean - corner).max() < 0.01
    wide = begun(step=MOST_STEP)
    points = np.array([wide.draw(random) for _ in range(200)])
    assert ((points >= 0) & (points <= 1)).all()


def test_equal_values_and_far_points_do_no_harm():
    evolution, random = begun(), np.random.default_rng(0)
    for _ in range(400):
        evolution.update(random.random((evolution.points, DIM)), np.zeros(evolution.points))
    assert LEAST_STEP <= evolution.step <= MOST_STEP
    assert np.isfinite(evolution.covariance).all()
    assert (evolution.axes > 0).all()


def test_a_saved_distribution_goes_on_the_same():
    def f(x):
        return -((x - 0.3) ** 2 @ np.arange(1.0, DIM + 1))

    one = evolve(begun(), f, 23)
    other = Evolution.restored(Saved(one.state()), DIM)
    for each in (one, other):
        evolve(each, f, 10, seed=4)
    assert np.array_equal(one.mean, other.mean)
    assert np.array_equal(one.covariance, other.covariance)
    assert one.step == other.step


def test_coordinates_with_a_least_deviation_do_not_hold_up_the_others():
    random, best = np.random.default_rng(2), np.full(6, 0.4)
    evolution = Evolution(np.full(6, 0.5), 10)
    least = np.array([0.05, 0.05, 0.0, 0.0, 0.0, 0.0])
    for _ in range(600):
        points = np.array([evolution.draw(random) for _ in range(10)])
        evolution.update(points, -((points - best) ** 2)[:, 2:].sum(axis=1))
        evolution.keep_wide(least)
        assert (evolution.scale >= 0.999 * least).all()
        assert evolution.axes.max() <= 1e3 * 1.001
    assert np.abs(evolution.mean[2:] - 0.4).max() < 1e-3
    assert evolution.scale[2:].max() < 1e-3
