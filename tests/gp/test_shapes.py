"""Shapes of the values: against differences, simulation, and units that do not matter."""

import math

import numpy as np
import pytest

from partita.gp.data import Data, uniform_noise
from partita.gp.shapes import FARTHEST, IDENTITY, MOST_CORRECTED, Frame, Shape, frame_of

SHAPES = [Shape(0.0, 1.0), Shape(-3.0, 0.02), Shape(1e6, 40.0), Shape(0.1, 1e-9)]
#: Values in sizes of a shape from its centre.
AWAY = np.concatenate([-np.geomspace(1e6, 1e-3, 9), [0.0], np.geomspace(1e-3, 1e6, 9)])


@pytest.mark.parametrize("shape", SHAPES)
def test_the_inverse_takes_values_back(shape):
    values = shape.centre + shape.size * AWAY
    shaped = shape.forward(values)
    assert (np.diff(shaped) > 0).all()
    rounding = 1e-9 * shape.size + 4e-16 * abs(shape.centre)
    np.testing.assert_allclose(shape.inverse(shaped), values, rtol=1e-9, atol=rounding)
    np.testing.assert_allclose(shaped, np.arcsinh(AWAY), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", [*SHAPES, IDENTITY])
@pytest.mark.parametrize("method", ["forward", "inverse", "slope"])
def test_floats_give_the_floats_that_arrays_hold(shape, method):
    of = getattr(shape, method)
    given = [0.3, -2.0, 0.0]
    assert all(type(of(value)) is float for value in given)
    np.testing.assert_allclose([of(v) for v in given], of(np.array(given)), rtol=1e-15)
    assert type(shape.correction(0.3, 0.1)) is float


@pytest.mark.parametrize("shape", [*SHAPES[:2], IDENTITY])
def test_the_slope_is_the_derivative(shape):
    size = 1.0 if shape.identity else shape.size
    values = shape.centre + size * np.array([-300.0, -2.0, -0.1, 0.0, 0.5, 4.0, 1000.0])
    step = 1e-5 * size
    difference = (shape.forward(values + step) - shape.forward(values - step)) / (2 * step)
    np.testing.assert_allclose(shape.slope(values), difference, rtol=1e-6)


@pytest.mark.parametrize("far", [301.0, 1e3, 1e308, math.inf])
def test_the_inverse_does_not_overflow(far):
    shape = Shape(2.0, 3.0)
    for sign in (-1.0, 1.0):
        farthest = 2.0 + sign * 3.0 * math.sinh(FARTHEST)
        with np.errstate(all="raise"):
            assert shape.inverse(sign * far) == pytest.approx(farthest)
            assert shape.inverse(np.array([sign * far])) == pytest.approx(farthest)
    assert shape.inverse(FARTHEST - 1.0) < 0.5 * shape.inverse(FARTHEST)  # not too early, either


def test_the_identity_changes_nothing():
    values = np.array([-1e300, 0.0, 5.0])
    data = uniform_noise(np.zeros((3, 1)), np.ones(3), values, np.ones(3))
    assert IDENTITY.identity
    assert not SHAPES[0].identity
    assert IDENTITY.forward(values) is values
    assert IDENTITY.inverse(values) is values
    assert IDENTITY.data(data, noise=2.0) is data
    assert (IDENTITY.correction(values, 1.0) == 0.0).all()


# -- data ------------------------------------------------------------------------------------------


def partly_told(known):
    means = np.array([-3.0, 1.2, 8.0])
    points, counts = np.random.default_rng(0).random((3, 2)), np.array([4.0, 1.0, 1.0])
    return Data(points, counts, means, np.arange(3.0), np.ones(3), np.array(known))


def test_data_are_shaped_to_first_order():
    shape, raw = Shape(1.0, 0.5), partly_told([np.nan, 0.03, 0.2])
    got, slope = shape.data(raw), 1 / np.sqrt(0.5**2 + (raw.means - 1.0) ** 2)
    np.testing.assert_allclose(got.within, raw.within * slope**2, rtol=1e-14)
    np.testing.assert_allclose(got.known, raw.known * slope**2, rtol=1e-14)
    for same in ("points", "counts", "ratios"):
        np.testing.assert_array_equal(getattr(got, same), getattr(raw, same))


@pytest.mark.parametrize(
    "known",
    [
        [np.nan] * 3,
        [np.nan, 0.03, 0.2],
    ],
)
def test_without_noise_means_are_not_corrected(known):
    raw = partly_told(known)
    want = np.arcsinh((raw.means - 1.0) / 0.5)
    np.testing.assert_allclose(Shape(1.0, 0.5).data(raw).means, want, rtol=1e-14)


def test_means_are_corrected_by_the_noise_of_each():
    """That of one value over the count, with its ratio, or what was told, if it is not too much."""
    shape, ones = Shape(0.0, 1.0), np.ones(4)
    means, known = np.array([2.0, -2.0, 2.0, 2.0]), np.array([np.nan, np.nan, 0.3, 1e6])
    raw = Data(np.zeros((4, 1)), np.array([5.0, 1, 1, 1]), means, 0 * ones, ones, known)
    raw.ratios[:2] = 4.0, 0.5
    told = 0.3 / 5.0  # g'² at 2 is 1/(1 + 2²)
    variance = np.array([0.2 * 4.0 / 5, 0.2 * 0.5, told, MOST_CORRECTED])
    want = np.arcsinh(means) + 0.5 * np.tanh(np.arcsinh(means)) * variance
    np.testing.assert_allclose(shape.data(raw, noise=0.2).means, want, rtol=1e-12)


@pytest.mark.parametrize("count", [1, 4, 16])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_the_correction_takes_the_curvature_out(count, sign):
    """E[g(ȳ)] + correction ≈ g(E[y]) for lognormal noise."""
    rng, std = np.random.default_rng(count), 0.3
    y = sign * 50.0 * np.exp(std * rng.standard_normal((40_000, count)) - std**2 / 2)
    shape, truth = Shape(0.0, 1.0), sign * math.asinh(50.0)
    shaped = shape.forward(y.mean(axis=1))
    bias = float(shaped.mean()) - truth
    assert abs(bias) > 0.4 * std**2 / (2 * count)  # there is something to correct
    one = shape.forward(y[:, 0]).var()
    left = bias + shape.correction(truth, one / count)
    assert abs(left) < 0.1 * abs(bias) + 4.0 * shaped.std() / math.sqrt(len(shaped))
    counts = np.full(len(y), float(count))
    raw = uniform_noise(np.zeros((len(y), 1)), counts, y.mean(axis=1), y[:, 0])
    means = shape.data(raw, noise=one).means
    assert means.mean() - truth == pytest.approx(left, abs=1e-3 * std)


# -- frames ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("frame", [Frame(0.0, 1.0), Frame(-7e5, 0.3), Frame(3.0, 1e8)])
@pytest.mark.parametrize("place", [(0.0, 0.0), (-20.0, 4.0), (1.5, -4.6)])
def test_a_place_in_a_frame_is_a_shape(frame, place):
    shape = frame.shape(np.array(place))
    assert shape.centre == pytest.approx(frame.middle + place[0] * frame.spread)
    assert shape.size == pytest.approx(frame.spread * math.exp(place[1]))
    np.testing.assert_allclose(frame.place(shape), place, rtol=1e-8, atol=1e-8)


def test_a_frame_is_the_quartiles():
    values = np.random.default_rng(0).standard_normal(41)
    ordered = np.sort(values)
    assert frame_of(values) == pytest.approx((ordered[20], ordered[30] - ordered[10]))


@pytest.mark.parametrize(("scale", "offset"), [(1e-9, 0.0), (1e100, 0.0), (3.0, -4e3), (-2.0, 1.0)])
def test_a_frame_follows_the_units(scale, offset):
    values = np.random.default_rng(1).standard_normal(20)
    plain, other = frame_of(values), frame_of(scale * values + offset)
    want = (scale * plain.middle + offset, abs(scale) * plain.spread)
    assert other == pytest.approx(want, rel=1e-9)


def test_values_mostly_alike_have_the_spread_of_the_rest():
    values = np.zeros(20)
    values[3] = 2.0
    assert frame_of(values) == pytest.approx((0.0, values.std()))


@pytest.mark.parametrize("level", [0.0, 1.0, -1e150, 0.1])
def test_values_too_alike_have_no_frame(level):
    assert frame_of(np.full(9, level)) is None
    rounding = level * (1 + 2e-16 * np.arange(9.0))
    assert frame_of(rounding) is None
    if level:
        assert frame_of(level * (1 + 1e-9 * np.arange(9.0))) is not None


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e-9, 1e-170, 1e-300])
def test_values_that_are_farther_away_than_a_float_can_say(size):
    """The largest values that are accepted, where the others are tiny."""
    shape = Shape(0.0, size)
    values = np.array([-1e150, -1.0, 0.0, 1.0, 1e150])
    shaped, slope = shape.forward(values), shape.slope(values)
    assert np.isfinite(shaped).all()
    assert (np.diff(shaped) >= 0).all()
    assert (slope >= 0).all()
    assert shape.forward(1e150) == shaped[-1]
    assert shape.slope(1e150) == slope[-1]
