"""Values that span orders of magnitude, and noise that differs by place, in the whole policy."""

import math
import warnings

import numpy as np
import pytest
from support.calibrated import LINE, SQUARE

import partita as pt
from partita.policies.calibrated.calibrated_ucb import CalibratedUCB


def steep(x):
    """A loss of 1 at (0.3, 0.3), and of thousands far from there."""
    return 10.0 ** (3.0 * math.hypot(x[0] - 0.3, x[1] - 0.3))


def multiplied(policy, f, steps, std=0.3, scale=1.0, offset=0.0, seed=0):
    """The points played; values are f with noise in proportion, in other units."""
    rng, plays = np.random.default_rng([seed, 78]), []
    for _ in range(steps):
        plays.append(policy.ask())
        noisy = f(plays[-1]) * math.exp(std * rng.standard_normal() - std**2 / 2)
        policy.tell(plays[-1], scale * noisy + offset)
    return np.array(plays)


# -- units -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_units_of_shaped_values_do_not_matter(sign, seed):
    """Both skews: a steep loss, and a steep peak."""

    def f(x):
        return sign * steep(x) ** -sign

    one, other = CalibratedUCB(SQUARE, seed=seed), CalibratedUCB(SQUARE, seed=seed)
    plays = multiplied(one, f, 120)
    again = multiplied(other, f, 120, scale=1000.0, offset=-7.0)
    np.testing.assert_array_equal(plays, again)
    assert one.settings["shape"] == other.settings["shape"] == "asinh"
    queries = np.random.default_rng(0).random((20, 2))
    small, large = one.predict(queries), other.predict(queries)
    np.testing.assert_allclose(large.std, 1000.0 * small.std, rtol=1e-3)
    for part in ("mean", "lower", "upper"):
        want = 1000.0 * getattr(small, part) - 7.0
        np.testing.assert_allclose(getattr(large, part), want, rtol=1e-3, atol=1.0)
    first, second = one.recommend(), other.recommend()
    np.testing.assert_array_equal(first.x, second.x)
    for small, large in zip(first[1:], second[1:], strict=True):
        assert large == pytest.approx(1000.0 * small - 7.0, rel=1e-3)
    ratio = other.settings["noise_std"] / one.settings["noise_std"]
    assert ratio == pytest.approx(1000.0, rel=1e-3)


# -- when values stay as they are ------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(lambda x, rng: 4.0, id="equal"),
        pytest.param(lambda x, rng: 1e150, id="large"),
        pytest.param(lambda x, rng: 1e150 * (2 * x[0] - 1), id="both signs"),
        pytest.param(lambda x, rng: 1.0 + 1e-15 * rng.integers(3), id="rounding"),
        pytest.param(lambda x, rng: float(x[0] > 2), id="zero"),
    ],
)
def test_odd_values_break_nothing(value):
    policy, rng = CalibratedUCB(SQUARE, seed=0), np.random.default_rng(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(30):
            x = policy.ask()
            policy.tell(x, value(x, rng))
        answer, found = policy.recommend(), policy.predict([[0.1, 0.2], [0.9, 0.9]])
        assert policy.settings["shape"] == "identity"
    assert np.isfinite([*answer[1:], *found.mean, *found.std]).all()
    assert answer.lower <= answer.mean <= answer.upper


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-1e150, 1e150)])
def test_yes_and_no_stay_as_they_are(low, high):
    """Any shape of two values is a straight line: predictions are of how often each comes."""
    rng, queries = np.random.default_rng(0), np.linspace(0, 1, 50)[:, None]

    def likely(x):
        return 0.2 + 0.7 * np.exp(-30 * (x[:, 0] - 0.6) ** 2)

    X = rng.random((300, 1))
    policy = CalibratedUCB(LINE, seed=0)
    policy.tell(X, np.where(rng.random(300) < likely(X), high, low))
    part = (policy.predict(queries).mean - low) / (high - low)
    assert np.sqrt(np.mean((part - likely(queries)) ** 2)) < 0.15
    assert policy.settings["shape"] == "identity"


@pytest.mark.parametrize(
    "given",
    [
        {"kernel": pt.Matern(2.5, 0.3)},
        {"noise": pt.Gaussian(30.0)},
        {"norm_bound": 1e4},
        {"outliers": "keep"},
    ],
)
def test_what_is_given_is_given_of_the_values_as_they_are(given):
    policy, free = CalibratedUCB(SQUARE, seed=0, **given), CalibratedUCB(SQUARE, seed=0)
    X, rng = np.random.default_rng(0).random((60, 2)), np.random.default_rng(1)
    Y = np.array([-steep(x) * math.exp(0.3 * rng.standard_normal()) for x in X])
    policy.tell(X, Y)
    free.tell(X, Y)
    assert policy.settings["shape"] == "identity"
    assert "centre" not in policy.settings
    assert free.settings["shape"] == "asinh"


# -- what it is good for ---------------------------------------------------------------------------


def cliff(x):
    """A loss of 1 at (0.3, 0.3), and up to 10⁶ far from there."""
    return 10.0 ** (6.0 * float(np.abs(x - 0.3).max()))


def test_losses_of_many_orders_of_magnitude_are_minimised():
    better = 0
    for seed in range(5):
        losses = []
        for outliers in ("clip", "keep"):
            policy = CalibratedUCB(SQUARE, seed=seed, outliers=outliers)
            multiplied(policy, lambda x: -cliff(x), 150, seed=seed)
            losses.append(cliff(policy.recommend().x))
        better += losses[0] < losses[1]
    assert better >= 4


@pytest.mark.parametrize(
    "count",
    [4, 1],
)
def test_a_loud_half_is_less_certain(count):
    """Points told equally often; the noise of the halves is 0.02 and 1."""
    rng = np.random.default_rng(0)
    x = np.linspace(0.01, 0.99, 160 // count)
    X = np.repeat(x, count)[:, None]
    loud = X[:, 0] > 0.5
    Y = np.sin(5 * X[:, 0]) + np.where(loud, 1.0, 0.02) * rng.standard_normal(len(X))
    policy = CalibratedUCB(LINE, seed=0, outliers="keep")
    policy.tell(X, Y)
    std = policy.predict(x[:, None]).std
    assert np.median(std[x > 0.6]) >= 2.0 * np.median(std[x < 0.4])
    even = CalibratedUCB(LINE, seed=0)
    even.tell(X, np.sin(5 * X[:, 0]) + 0.3 * rng.standard_normal(len(X)))
    std = even.predict(x[:, None]).std
    assert 0.6 < np.median(std[x > 0.6]) / np.median(std[x < 0.4]) < 1.6
