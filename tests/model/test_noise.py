import dataclasses
import math
import pickle

import numpy as np
import pytest

from partita.errors import InvalidInput
from partita.model.noise import (
    Bernoulli,
    Bounded,
    Gaussian,
    Noise,
    SubGaussian,
    Uniform,
    sub_gaussian_constant,
)

#: The s of E exp(sε) ≤ exp(s²L²/2), in units of 1/L.
S = np.concatenate([-np.geomspace(1e-2, 500, 300), np.geomspace(1e-2, 500, 300)])

MODELS = [Uniform(-1, 1), Gaussian(0.1), Bounded(0, 1), Bernoulli(), SubGaussian(0.5)]


def log_mgf_uniform(half, s):
    z = np.abs(s * half)
    # log(sinh z / z) = log1p of the series for small z, where the quotient loses digits.
    series = np.log1p(z**2 / 6 * (1 + z**2 / 20 * (1 + z**2 / 42)))
    large = z - np.log(2 * z) + np.log1p(-np.exp(-2 * z))
    return np.where(z < 0.1, series, large)


def log_mgf_coin(low, high, p, s):
    """Of a variable that is `high` with probability p and `low` otherwise, about its mean."""
    mean = p * high + (1 - p) * low
    with np.errstate(divide="ignore"):
        return np.logaddexp(np.log(p) + s * (high - mean), np.log1p(-p) + s * (low - mean))


@pytest.mark.parametrize("half", [1e-3, 0.5, 1.0, 40.0])
def test_uniform_satisfies_the_inequality_and_is_tight(half):
    L = Uniform(-half, half).sub_gaussian
    s = S / L
    log_mgf = log_mgf_uniform(half, s)
    assert np.all(log_mgf <= s**2 * L**2 / 2 * (1 + 1e-12))
    assert np.any(log_mgf > s**2 * (0.99 * L) ** 2 / 2)
    assert pytest.approx(half / math.sqrt(3), rel=1e-15) == L


@pytest.mark.parametrize("std", [1e-3, 1.0, 7.5])
def test_gaussian_satisfies_the_inequality_and_is_tight(std):
    L = Gaussian(std).sub_gaussian
    s = S[np.abs(S) < 5] / L
    # E exp(sε) by quadrature: nothing here knows the closed form.
    z = np.linspace(-20, 20, 20_001)
    integrand = np.exp(np.multiply.outer(s * std, z) - z**2 / 2) / math.sqrt(2 * math.pi)
    log_mgf = np.log(integrand.sum(axis=1) * (z[1] - z[0]))
    assert np.all(log_mgf <= s**2 * L**2 / 2 + 1e-9)
    assert np.any(log_mgf > s**2 * (0.99 * L) ** 2 / 2 + 1e-9)


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3, 7), (-1e-3, 0.0)])
def test_bounded_satisfies_the_inequality_for_every_coin_and_is_tight(low, high):
    L = Bounded(low, high).sub_gaussian
    assert (high - low) / 2 == L
    s = S / L
    for p in (0.001, 0.1, 0.3, 0.5, 0.9):
        log_mgf = log_mgf_coin(low, high, p, s)
        assert np.all(log_mgf <= s**2 * L**2 / 2 + 1e-12)
    fair = log_mgf_coin(low, high, 0.5, s)
    assert np.any(fair > s**2 * (0.99 * L) ** 2 / 2 + 1e-12)


def test_bernoulli_satisfies_the_inequality_for_every_mean_and_is_tight():
    L = Bernoulli().sub_gaussian
    s = S / L
    for p in np.linspace(0.01, 0.99, 99):
        assert np.all(log_mgf_coin(0, 1, p, s) <= s**2 * L**2 / 2 + 1e-12)
    assert np.any(log_mgf_coin(0, 1, 0.5, s) > s**2 * (0.99 * L) ** 2 / 2 + 1e-12)


def test_constants():
    assert [m.sub_gaussian for m in MODELS] == [1 / math.sqrt(3), 0.1, 0.5, 0.5, 0.5]


@pytest.mark.parametrize("model", MODELS)
def test_models_are_values(model):
    assert isinstance(model, Noise)
    assert sub_gaussian_constant(model) == model.sub_gaussian
    twin = pickle.loads(pickle.dumps(model))
    assert twin == model
    assert hash(twin) == hash(model)
    assert eval(repr(model)) == model
    for field in dataclasses.fields(model):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(model, field.name, 2.0)


def test_numbers_are_kept_as_floats():
    for value in (Uniform(-1, 1).low, Bounded(0, np.int64(3)).high, Gaussian(np.float32(2)).std):
        assert type(value) is float
    assert Uniform(-1, 1) == Uniform(-1.0, 1.0)


@pytest.mark.parametrize(
    "value", [0, 0.0, -1, math.nan, math.inf, True, "0.5", None, [1.0], 10**400]
)
@pytest.mark.parametrize("model", [Gaussian, SubGaussian])
def test_constants_must_be_positive_finite_numbers(model, value):
    with pytest.raises(InvalidInput, match=f"{model.__name__}.*give a positive finite number"):
        model(value)


def test_zero_noise_gets_advice():
    with pytest.raises(InvalidInput, match="without noise"):
        Gaussian(0)


@pytest.mark.parametrize("model", [Uniform, Bounded])
@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        (1, -1, "reversed"),
        (0, 0, "no width"),
        (-math.inf, math.inf, "finite"),
        (math.nan, 1, "finite"),
        (False, True, "finite"),
        ("a", 1, "finite"),
        (None, 1, "finite"),
    ],
)
def test_intervals_are_checked(model, low, high, message):
    with pytest.raises(InvalidInput, match=message):
        model(low, high)


def test_uniform_must_be_centred():
    with pytest.raises(InvalidInput, match=r"mean 0\.5.*give Uniform\(-0\.5, 0\.5\)"):
        Uniform(0, 1)
    with pytest.raises(InvalidInput, match="centred at 0"):
        Uniform(-1, 1.001)
    assert Uniform(-0.3, 0.1 + 0.2).sub_gaussian == pytest.approx(0.3 / math.sqrt(3))


def test_a_wide_interval_does_not_overflow():
    assert Uniform(-1.7e308, 1.7e308).sub_gaussian == pytest.approx(1.7e308 / math.sqrt(3))
    assert Bounded(-1.7e308, 1.7e308).sub_gaussian == 1.7e308


@pytest.mark.parametrize("value", [0.5, np.float64(0.5)])
def test_a_bare_number_is_refused_with_an_example(value):
    with pytest.raises(InvalidInput, match=r"give a noise model, e\.g\. SubGaussian\(0\.5\)"):
        sub_gaussian_constant(value)


@pytest.mark.parametrize("value", [0, -1.0, math.nan, True, math.inf, 10**400])
def test_a_bare_number_that_is_no_constant_gets_another_example(value):
    with pytest.raises(InvalidInput, match=r"e\.g\. SubGaussian\(0\.1\)"):
        sub_gaussian_constant(value)


@pytest.mark.parametrize("value", [None, "gaussian", [0.5], np.array(0.5), object()])
def test_anything_else_is_refused(value):
    with pytest.raises(InvalidInput, match="give a noise model, Uniform"):
        sub_gaussian_constant(value)


def test_a_class_is_refused():
    with pytest.raises(InvalidInput, match="noise=Gaussian is a class"):
        sub_gaussian_constant(Gaussian)


def test_a_model_of_the_users_own():
    class Mine:
        def __init__(self, constant):
            self.sub_gaussian = constant

    assert sub_gaussian_constant(Mine(2)) == 2.0
    for bad in (0.0, -1.0, math.nan, "1", None, True):
        with pytest.raises(InvalidInput, match="has sub_gaussian="):
            sub_gaussian_constant(Mine(bad))
