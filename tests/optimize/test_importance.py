"""Importance of parameters, against obvious twins and functions whose indices are known."""

import itertools

import numpy as np
import pytest

import partita as pt
from partita.errors import InvalidInput
from partita.gp import paths as gp_paths
from partita.gp.data import uniform_noise
from partita.gp.settings import Settings
from partita.optimize.importance import importance_of, indices, parameters_of


def ishigami(u):
    """Its indices are known: first 0.314, 0.442 and 0, total 0.558, 0.442 and 0.244."""
    z = np.pi * (2 * np.asarray(u) - 1)
    return np.sin(z[..., 0]) + 7 * np.sin(z[..., 1]) ** 2 + 0.1 * z[..., 2] ** 4 * np.sin(z[..., 0])


ISHIGAMI = {"first": [0.3139, 0.4424, 0.0], "total": [0.5576, 0.4424, 0.2437]}
#: Sobol's g function: a large coefficient makes a parameter unimportant.
COEFFICIENTS = np.array([0.0, 1.0, 4.5, 99.0])


def sobol_g(u):
    return np.prod((np.abs(4 * np.asarray(u) - 2) + COEFFICIENTS) / (1 + COEFFICIENTS), axis=-1)


def known_g():
    """First and total indices of the g function, in closed form."""
    parts = 1 / (3 * (1 + COEFFICIENTS) ** 2)
    variance = np.prod(1 + parts) - 1
    total = [p * np.prod(1 + np.delete(parts, i)) / variance for i, p in enumerate(parts)]
    return parts / variance, np.array(total)


def smooth(u):
    return u[..., 0] * u[..., 1] + u[..., 2] ** 2


def by_definition(f, dim, i, side):
    """First and total index of coordinate i: means and variances over a whole grid, one by one."""
    ticks = (np.arange(side) + 0.5) / side
    every = list(itertools.product(ticks, repeat=dim))
    values = {point: float(f(np.array(point))) for point in every}
    variance = np.var(list(values.values()))
    given_i = [np.mean([v for p, v in values.items() if p[i] == tick]) for tick in ticks]
    others = {}
    for point, value in values.items():
        others.setdefault(point[:i] + point[i + 1 :], []).append(value)
    return np.var(given_i) / variance, np.mean([np.var(v) for v in others.values()]) / variance


def columns(dim):
    return [slice(i, i + 1) for i in range(dim)]


def found(f, dim, number=8192):
    return indices(lambda x: f(x)[:, None], lambda x: x, dim, columns(dim), number)


@pytest.mark.parametrize("f", [ishigami, smooth])
def test_indices_are_those_of_the_definition(f):
    first, total = found(f, 3)
    for i in range(3):
        slow = by_definition(f, 3, i, 16)
        assert first[i, 0] == pytest.approx(slow[0], abs=0.02)
        assert total[i, 0] == pytest.approx(slow[1], abs=0.02)


def test_indices_of_functions_that_are_known():
    first, total = found(ishigami, 3)
    np.testing.assert_allclose(first[:, 0], ISHIGAMI["first"], atol=0.015)
    np.testing.assert_allclose(total[:, 0], ISHIGAMI["total"], atol=0.015)
    first, total = found(sobol_g, 4)
    np.testing.assert_allclose(first[:, 0], known_g()[0], atol=0.02)
    np.testing.assert_allclose(total[:, 0], known_g()[1], atol=0.02)
    # Several functions at once, one of which is constant.
    both = indices(
        lambda x: np.stack([ishigami(x), np.ones(len(x))], axis=1),
        lambda x: x, 3, columns(3), 8192,
    )  # fmt: skip
    np.testing.assert_allclose(both.total[:, 0], ISHIGAMI["total"], atol=0.015)
    assert (both.total[:, 1] == 0).all()


@pytest.mark.parametrize("form", [1, 2])
def test_drawn_functions_have_the_moments_of_the_posterior(form):
    rng = np.random.default_rng(0)
    points, new = rng.random((12, 2)), rng.random((5, 2))
    values = np.sin(5 * points[:, 0]) + 3.0
    data = uniform_noise(points, np.ones(12), values, np.zeros(12))
    settings = Settings(np.array([0.4, 0.7]), 0.05, form, 2.5, 1.5)
    # Several sets of waves, since those of one set are shared by its draws.
    sets = [gp_paths.draw_paths(data, settings, rng, 300, waves=1000) for _ in range(16)]
    drawn = np.concatenate([paths.at(new) for paths in sets], axis=1)

    def kernel(a, b):
        r = np.linalg.norm((a[:, None] - b[None]) / settings.scales, axis=2)
        s = np.sqrt(2 * form + 1) * r
        return 1.5**2 * (1 + s + (s**2 / 3 if form == 2 else 0)) * np.exp(-s)

    inverse = np.linalg.inv(kernel(points, points) + 0.05 * 1.5**2 * np.eye(12))
    across = kernel(new, points)
    mean = 2.5 + across @ inverse @ (values - 2.5)
    prior = kernel(new, new)
    covariance = prior - across @ inverse @ across.T
    # Four standard errors: of 4,800 draws, and of 16,000 waves.
    error = 4 * (covariance.diagonal().max() * np.sqrt(2 / 4800) + 1.5**2 / np.sqrt(16_000))
    np.testing.assert_allclose(drawn.mean(axis=1), mean, atol=4 * 1.5 / np.sqrt(4800))
    np.testing.assert_allclose(np.cov(drawn), covariance, atol=error)
    assert np.abs(prior - covariance).max() > 3 * error  # the prior would not pass


def told(f, space, n, noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    optimizer = pt.Optimizer(space, policy="uniform", seed=seed)
    for _ in range(n):
        trial = optimizer.ask()
        value = f(**trial.params) if isinstance(trial.params, dict) else f(trial.params)
        optimizer.tell(trial, float(value) + noise * rng.normal())
    return optimizer.trials


def test_indices_of_a_smooth_function_are_learned_from_its_values():
    rows = {row.name: row for row in importance_of(told(smooth, [(0, 1)] * 3, 100))}
    for i in range(3):
        row, (first, total) = rows[f"x[{i}]"], by_definition(smooth, 3, i, 16)
        assert row.total == pytest.approx(total, abs=0.03)
        assert row.first == pytest.approx(first, abs=0.03)
        assert 0 <= row.lower <= row.total <= row.upper <= 1
        assert 0 <= row.first_lower <= row.first <= row.first_upper <= 1


def check_coverage(functions):
    """How many intervals hold the index of a function drawn from the model's family, and controls.

    The controls are the same intervals at the indices of another parameter.
    """
    rng = np.random.default_rng(11)
    settings = Settings(np.array([0.3, 0.8, 3.0]), 0.01, 2, 0.0, 1.0)
    nothing = uniform_noise(np.zeros((1, 3)), np.full(1, 1e-9), np.zeros(1), np.zeros(1))
    held = control = 0
    for _ in range(functions):
        f = gp_paths.draw_paths(nothing, settings, rng, 1).at
        true = indices(f, lambda x: x, 3, columns(3), 4096).total[:, 0]
        rows = importance_of(told(lambda x, f=f: f(x[None])[0, 0], [(0, 1)] * 3, 60))
        for row in rows:
            i = int(row.name[2])
            held += row.lower - 0.02 <= true[i] <= row.upper + 0.02
            control += row.lower - 0.02 <= true[i - 1] <= row.upper + 0.02
    return held, control


def test_nine_of_ten_intervals_hold_for_functions_of_the_model():
    held, control = check_coverage(5)
    assert held >= 12  # of 15; fewer have a chance of one in twenty if nine of ten hold
    assert control <= 8


def test_fewer_values_say_less():
    few = importance_of(told(ishigami, [(0, 1)] * 3, 20))
    many = importance_of(told(ishigami, [(0, 1)] * 3, 200))
    assert sum(r.upper - r.lower for r in few) > 1.5 * sum(r.upper - r.lower for r in many)


def test_every_kind_of_parameter_and_noise():
    space = {
        "rate": (1e-4, 1e-1, "log"),
        "depth": (1, 12, "int"),
        "kind": ["a", "b", "c"],
        "on": bool,
        "fixed": [7],
    }

    def f(rate, depth, kind, on, fixed):
        return np.log10(rate) + 3 * (kind == "b") + 0.01 * depth + fixed

    trials = told(f, space, 90, noise=0.1)
    rows = trials.importance()
    assert {row.name for row in rows} == {"rate", "depth", "kind", "on"}  # not what is fixed
    assert [row.name for row in rows[:2]] == ["kind", "rate"]
    # Variances: of log10(rate), 9/12; of kind, 9·(1/3)(2/3).
    share = {row.name: row.total for row in rows}
    assert share["kind"] == pytest.approx(2 / 2.75, abs=0.12)
    assert share["rate"] == pytest.approx(0.75 / 2.75, abs=0.12)
    assert max(share["depth"], share["on"]) < 0.1
    assert trials.importance() == rows  # the same each time


def test_what_does_not_vary_and_what_is_too_few():
    assert {row.total for row in told(lambda x: 3.0, [(0, 1)] * 2, 10).importance()} == {0.0}
    with pytest.raises(InvalidInput, match=r"there are 4 values\. It needs 5"):
        told(lambda x: float(x[0]), [(0, 1)] * 2, 4).importance()


def test_known_noise_and_replicates():
    optimizer = pt.Optimizer([(0, 1)] * 2)
    rng = np.random.default_rng(3)
    for x in rng.random((40, 2)):
        for std in (None, None, 0.05):
            optimizer.add(x, 4 * x[0] + rng.normal(0, 0.05), std=std)
    rows = optimizer.trials.importance()
    assert rows[0].name == "x[0]"
    assert rows[0].total > 0.9
    assert rows[1].total < 0.1


def test_coordinates_of_each_parameter():
    space = pt.Space({"a": (0, 1), "kind": ["x", "y", "z"], "fixed": [1], "b": (1, 5, "int")})
    names, groups = parameters_of(space)
    assert names == ["a", "kind", "b"]
    assert [g.stop for g in groups] == [g.start for g in groups[1:]] + [space.dim]
    assert parameters_of(pt.Space(pt.Grid(5, dim=2)))[0] == ["x[0]", "x[1]"]
