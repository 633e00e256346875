"""Information gain, effective dimension, and greedy bounds on the largest gain."""

import itertools
import math

import numpy as np
import pytest

import partita as pt
from partita import theory
from partita.errors import InvalidInput
from partita.gp import rows as rows_module

KERNEL = pt.Matern(nu=1.5, lengthscale=0.2)


def gain(kernel, points, alpha):
    return 0.5 * np.linalg.slogdet(np.eye(len(points)) + kernel(points) / alpha)[1]


@pytest.mark.parametrize("alpha", [0.01, 1.0, 3.0])
def test_information_gain_and_effective_dimension(alpha):
    points = np.random.default_rng(1).uniform(size=(40, 2))
    points[7] = points[3]  # twice the same point
    kernel = pt.Matern(nu=2.5, lengthscale=[0.2, 0.5])
    gram = kernel(points)
    found = theory.information_gain(kernel, points, alpha)
    assert found == pytest.approx(gain(kernel, points, alpha), rel=1e-10)
    dimension = theory.effective_dimension(kernel, points, alpha)
    inverse = np.linalg.inv(gram + alpha * np.eye(40))
    assert dimension == pytest.approx(np.trace(gram @ inverse), rel=1e-8)
    # Calandriello et al. 2019, Proposition 5.
    largest = np.linalg.eigvalsh(gram)[-1]
    assert dimension <= 2 * found <= dimension * (1 + math.log(1 + largest / alpha))


def test_gains_of_domains():
    grid, arms = pt.Grid(5, dim=2), pt.Arms([[1.0], [2.0], [4.0]], 1.0, 4.0)
    for domain in (grid, arms):
        for compute in (theory.information_gain, theory.effective_dimension):
            assert compute(KERNEL, domain) == compute(KERNEL, domain.unit_points)
    assert arms.unit_points.ravel() == pytest.approx([0, 1 / 3, 1])
    one = theory.greedy_information_gain(KERNEL, grid, 1.0, 9)
    two = theory.greedy_information_gain(KERNEL, grid.points, 1.0, 9)
    assert all(map(np.array_equal, one, two))
    for compute in (theory.information_gain, theory.effective_dimension):
        assert compute(KERNEL, np.empty((0, 2))) == 0.0


@pytest.mark.parametrize("alpha", [0.05, 1.0, 4.0])
@pytest.mark.parametrize("seed", range(4))
def test_greedy_bounds_hold_the_largest_gain(alpha, seed):
    points = np.random.default_rng(seed).uniform(size=(5, 2)) * 0.4
    bounds = theory.greedy_information_gain(KERNEL, points, alpha, 5)
    gram = KERNEL(points)
    for t in range(1, 6):
        largest = max(
            0.5 * np.linalg.slogdet(np.eye(t) + gram[np.ix_(c, c)] / alpha)[1]
            for c in itertools.combinations_with_replacement(range(5), t)
        )
        assert bounds.lower[t - 1] <= largest + 1e-12
        assert bounds.upper[t - 1] >= largest - 1e-12
    assert bounds.upper[0] == pytest.approx(bounds.lower[0])  # one greedy point is the best one


@pytest.mark.parametrize("alpha", [0.1, 1.0])
def test_greedy_points_are_greedy(alpha):
    points = np.random.default_rng(2).uniform(size=(30, 2))
    lower, upper, chosen = theory.greedy_information_gain(KERNEL, points, alpha, 60)
    added = np.diff(lower, prepend=0.0)
    for t in range(60):
        options = [gain(KERNEL, points[[*chosen[:t], j]], alpha) for j in range(30)]
        assert lower[t] == pytest.approx(max(options), rel=1e-10)
    assert (np.diff(added) <= 1e-12).all()  # submodular
    assert (upper >= lower).all()
    assert (upper <= lower * math.e / (math.e - 1)).all()
    assert upper[-1] < 0.97 * lower[-1] * math.e / (math.e - 1)  # what is known is used


def test_many_candidates_take_the_other_posterior(monkeypatch):
    cases = (pt.Grid(6, dim=2), pt.Arms(np.random.default_rng(3).uniform(size=(30, 2))))
    dense = [theory.greedy_information_gain(KERNEL, domain, 0.5, 40) for domain in cases]
    monkeypatch.setattr(rows_module, "DENSE_LIMIT", 10)
    for domain, expected in zip(cases, dense, strict=True):
        found = theory.greedy_information_gain(KERNEL, domain, 0.5, 40)
        # Symmetric points may be taken in another order.
        assert found.lower == pytest.approx(expected.lower, rel=1e-8)
        assert found.upper == pytest.approx(expected.upper, rel=1e-8)


def test_one_point_for_a_long_time():
    bounds = theory.greedy_information_gain(KERNEL, [[0.5]], 2.0, 5000)
    t = np.arange(1, 5001)
    assert bounds.lower == pytest.approx(0.5 * np.log1p(t / 2.0), rel=1e-9)
    assert not bounds.chosen.any()


@pytest.mark.parametrize("nu", [0.5, 1.5])
def test_the_largest_gain_grows_as_the_theory_says(nu):
    bounds = theory.greedy_information_gain(pt.Matern(nu, 0.2), pt.Grid(501, dim=1), 1.0, 1000)
    slopes = [math.log2(bounds.lower[2 * t - 1] / bounds.lower[t - 1]) for t in (125, 250, 500)]
    assert slopes == sorted(slopes, reverse=True)
    assert theory.get("gain-vakili")(1, nu) < slopes[-1] < theory.get("gain-srinivas")(1, nu)


def test_gains_refuse():
    points = np.zeros((3, 2))
    functions = (theory.information_gain, theory.effective_dimension)
    for compute in (*functions, lambda *a: theory.greedy_information_gain(*a, 3)):
        with pytest.raises(InvalidInput, match="kernel=None"):
            compute(None, points, 1.0)
        with pytest.raises(InvalidInput, match="alpha=0"):
            compute(KERNEL, points, 0)
        with pytest.raises(InvalidInput, match="Give a Grid or Arms"):
            compute(KERNEL, pt.Box([0.0], [1.0]), 1.0)
        with pytest.raises(InvalidInput, match="3 lengthscales"):
            compute(pt.Matern(1.5, [1, 2, 3]), points, 1.0)
        with pytest.raises(InvalidInput, match="points has shape"):
            compute(KERNEL, [0.5, 0.2], 1.0)
    for steps in (0, 1.5, None, math.inf):
        with pytest.raises(InvalidInput, match=r"steps=.*at least 1"):
            theory.greedy_information_gain(KERNEL, points, 1.0, steps)
    with pytest.raises(InvalidInput, match="at least one point"):
        theory.greedy_information_gain(KERNEL, np.empty((0, 1)), 1.0, 3)
