import dataclasses
import math
import pickle
import subprocess
import sys

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.gaussian_process.kernels import Matern as SklearnMatern

from partita.errors import InvalidInput
from partita.model.kernels import UNIFORM_FROM, Matern, matern, matern_bessel, matern_uniform

CLOSED = [0.5, 1.5, 2.5]
#: On both sides of every switch between formulas, and far out.
SMOOTHNESS = [
    *(1e-12, 9.9e-4, 1.1e-3, 0.01, 0.3, 0.5, 0.7, 0.999999, math.nextafter(1, 0)),
    *(1.0, math.nextafter(1, 2), 1.5, 2.0, 2.3, 2.5, 7.7, 15.0, 19.99, 20.0, 20.5, 33.3, 100.0),
]
DISTANCES = [
    *(5e-324, 1e-308, 1e-290, 1e-289, 1e-200, 1e-100, 1e-30, 1e-12, 1e-9, 1e-8, 1e-4, 1e-2),
    *(0.1, 0.5, 1.0, 2.0, 5.0, 13.0, 30.0, 60.0, 100.0, 300.0, 700.0),
]


def exact(nu, r):
    """κ(r) by its definition, with all the digits it takes."""
    with mpmath.workdps(60):
        nu, r = mpmath.mpf(nu), mpmath.mpf(r)
        z = mpmath.sqrt(2 * nu) * r
        return 2 ** (1 - nu) / mpmath.gamma(nu) * z**nu * mpmath.besselk(nu, z)


def exact_half_integer(n, r):
    """κ(r) for ν = n + ½, a polynomial times e^(−z): quick at any n."""
    with mpmath.workdps(50):
        z = mpmath.sqrt(2 * n + 1) * mpmath.mpf(r)
        term = total = mpmath.mpf(1)
        for i in reversed(range(n)):
            term *= 2 * z * (i + 1) / mpmath.mpf((n + i + 1) * (n - i))
            total += term
        return total * mpmath.exp(-z)


def assert_matches(values, references, rel=1e-12):
    for value, reference in zip(values.tolist(), references, strict=True):
        if reference < mpmath.mpf(10) ** -307:
            assert value < 1e-306
        else:
            assert abs(mpmath.mpf(value) / reference - 1) < rel


@pytest.mark.parametrize("nu", SMOOTHNESS)
def test_radial_is_exact_at_extremes(nu):
    values = Matern(nu, 1.0).radial(np.array(DISTANCES))
    assert_matches(values, [exact(nu, r) for r in DISTANCES])


@pytest.mark.parametrize("nu", [1.5, 2.5, 15.0])
def test_radial_is_exact_until_it_underflows(nu):
    r = np.linspace(690, 790, 60) / math.sqrt(2 * nu)
    assert_matches(Matern(nu, 1.0).radial(r), [exact(nu, x) for x in r])


@pytest.mark.parametrize("nu", [1.0, 1.0001, 20.0, 20.3, 40.0])
def test_radial_is_exact_to_rounding_in_the_middle(nu):
    r = np.concatenate([np.geomspace(1e-10, 1e-6, 20), np.geomspace(1e-2, 4, 20)])
    assert_matches(Matern(nu, 1.0).radial(r), [exact(nu, x) for x in r], rel=1e-14)


def test_radial_is_exact_for_the_smallest_smoothness():
    nu = 1e-300
    values = Matern(nu, 1.0).radial(np.array(DISTANCES)).tolist()
    for value, r in zip(values, DISTANCES, strict=True):
        # κ = 2ν K_0(z) up to a factor 1 + O(ν).
        bessel = mpmath.besselk(0, mpmath.sqrt(2 * mpmath.mpf(nu)) * mpmath.mpf(r))
        assert value == pytest.approx(float(2 * mpmath.mpf(nu) * bessel), rel=1e-13)


@pytest.mark.parametrize("n", [3, 19, 20, 60, 1000, 5000])
def test_radial_is_exact_for_large_smoothness(n):
    distances = [5e-324, 1e-8, 1e-3, 0.1, 1.0, 3.0, 8.0, 20.0, 36.0, 40.0, 100.0, 1000.0]
    values = Matern(n + 0.5, 1.0).radial(np.array(distances))
    assert_matches(values, [exact_half_integer(n, r) for r in distances])


@pytest.mark.parametrize("nu", [1e100, 1.7e308])
def test_radial_tends_to_the_gaussian(nu):
    r = np.array([0.0, 1e-5, 0.1, 1.0, 5.0, 30.0])
    np.testing.assert_allclose(Matern(nu, 1.0).radial(r), np.exp(-(r**2) / 2), rtol=1e-12)


@pytest.mark.parametrize("nu", [5e-324, 1e-310, *SMOOTHNESS, 1e3, 1e16, 1.7e308])
def test_radial_is_quiet_and_bounded_everywhere(nu):
    r = np.concatenate([[0.0], np.geomspace(5e-324, 1.7e308, 4001), [math.inf]])
    with np.errstate(all="raise"):
        value = Matern(nu, 1.0).radial(r)
    assert value[0] == 1.0
    assert value[-1] == 0.0
    assert np.all((value >= 0.0) & (value <= 1.0))
    assert np.all(np.diff(value) <= 1e-13)


@pytest.mark.parametrize("nu", CLOSED)
def test_closed_form_is_the_bessel_form(nu):
    r = np.concatenate([[0.0, 1e-300], np.geomspace(1e-12, 450, 500)])
    with np.errstate(under="ignore"):
        np.testing.assert_allclose(matern(nu, r), matern_bessel(nu, r), rtol=1e-11, atol=1e-300)


@pytest.mark.parametrize("nu", [UNIFORM_FROM, 21.7, 24.0])
def test_uniform_expansion_is_the_bessel_form_where_both_hold(nu):
    r = np.concatenate([[0.0], np.geomspace(1e-8, 100, 500)])
    with np.errstate(under="ignore"):
        np.testing.assert_allclose(matern_uniform(nu, r), matern_bessel(nu, r), rtol=1e-11)


@pytest.mark.parametrize("nu", [0.5, 0.8, 1.0, 1.5, 2.5, 3.2])
@pytest.mark.parametrize("lengthscale", [0.2, (0.1, 0.7, 3.0)])
def test_call_is_scikit_learns(nu, lengthscale):
    rng = np.random.default_rng(0)
    X, Y = rng.random((12, 3)), rng.random((7, 3))
    theirs = SklearnMatern(length_scale=lengthscale, nu=nu)
    kernel = Matern(nu, lengthscale)
    np.testing.assert_allclose(kernel(X, Y), theirs(X, Y), rtol=1e-9)
    np.testing.assert_allclose(kernel(X), theirs(X), rtol=1e-9)


@pytest.mark.parametrize("nu", [0.5, 1.2, 2.5, 50.0])
def test_a_lengthscale_per_dimension_is_a_rescaled_input(nu):
    rng = np.random.default_rng(1)
    X, Y = rng.random((5, 3)), rng.random((6, 3))
    scales = np.array([0.1, 0.5, 2.0])
    np.testing.assert_allclose(
        Matern(nu, scales)(X, Y), Matern(nu, 1.0)(X / scales, Y / scales), rtol=1e-12
    )
    np.testing.assert_allclose(Matern(nu, 0.3)(X, Y), Matern(nu, (0.3,) * 3)(X, Y), rtol=0)


@pytest.mark.parametrize("nu", [0.5, 0.8, 1.5, 2.5, 4.0, 30.0])
@pytest.mark.parametrize("dim", [1, 2, 4])
def test_matrices_are_symmetric_and_positive_semidefinite(nu, dim):
    X = np.random.default_rng(2).random((60, dim))
    K = Matern(nu, 0.3)(X)
    assert np.array_equal(K, K.T)
    assert np.array_equal(np.diag(K), np.ones(60))
    assert np.linalg.eigvalsh(K).min() > -1e-12


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_distances_survive_underflow_and_overflow(dim):
    kernel = Matern(0.01, 1.0)
    step = np.full((1, dim), 1e-200)
    r = 1e-200 * math.sqrt(dim)
    with np.errstate(all="raise"):
        near = kernel(np.zeros((1, dim)), step)[0, 0]
        far = kernel(np.full((1, dim), -1e308), np.full((1, dim), 1e308))[0, 0]
    assert near == pytest.approx(float(exact(0.01, r)), rel=1e-12)
    assert near < 0.99991
    assert far == 0.0


def test_near_points_do_not_cancel():
    X = np.array([[1e6, 1e6], [1e6 + 2**-20, 1e6]])
    assert Matern(0.5, 1.0)(X)[0, 1] == pytest.approx(math.exp(-(2.0**-20)), rel=1e-15)


@given(
    nu=st.floats(0.01, 200),
    lengthscale=st.floats(1e-3, 1e3),
    points=st.lists(st.tuples(*[st.floats(-5, 5)] * 2), min_size=1, max_size=6),
)
@settings(deadline=None)
def test_call_is_radial_of_the_scaled_distance(nu, lengthscale, points):
    X = np.array(points)
    kernel = Matern(nu, lengthscale)
    K = kernel(X)
    r = [[math.hypot(*((x - y) / lengthscale)) for y in X] for x in X]
    np.testing.assert_allclose(K, kernel.radial(r), rtol=1e-10, atol=1e-300)
    assert np.all(np.diag(K) == 1.0)
    assert np.all((K >= 0.0) & (K <= 1.0))
    assert np.array_equal(K, K.T)


@given(nu=st.floats(5e-324, 1e300), r=st.lists(st.floats(0, allow_nan=False), max_size=20))
@settings(deadline=None)
def test_radial_decreases(nu, r):
    value = Matern(nu, 1.0).radial(np.sort(r))
    assert np.all((value >= 0) & (value <= 1))
    assert np.all(np.diff(value) <= 1e-13)


def test_radial_keeps_the_shape():
    kernel = Matern()
    for shape in [(), (0,), (3,), (2, 0), (2, 3, 4)]:
        for nu in (1.5, 1.7, 30.0):
            assert np.shape(Matern(nu).radial(np.ones(shape))) == shape
    assert kernel.radial([0, 1]).tolist() == [1.0, kernel.radial(1).item()]
    assert kernel(np.zeros((0, 2)), np.zeros((3, 2))).shape == (0, 3)


@pytest.mark.parametrize("r", [-1.0, math.nan, [0.1, -1e-300], "a", [None], True, 1j])
def test_radial_refuses_what_is_no_distance(r):
    with pytest.raises(InvalidInput, match="r "):
        Matern().radial(r)


def test_closed_form():
    assert [Matern(nu).closed_form for nu in CLOSED] == [0, 1, 2]
    assert [Matern(nu).closed_form for nu in (1, math.nextafter(0.5, 1), 3.5)] == [-1, -1, -1]


def test_kernels_are_values():
    assert Matern() == Matern(1.5, 0.2)
    assert Matern(1, [1, 2]) == Matern(1.0, np.array([1.0, 2.0]))
    assert Matern(1.5, 0.2) != Matern(1.5, (0.2,))
    assert Matern(1.5, 0.2) != Matern(2.5, 0.2)
    for kernel in (Matern(), Matern(0.7, (0.1, 2.0)), Matern(np.float32(2), np.array(3))):
        assert pickle.loads(pickle.dumps(kernel)) == kernel
        assert hash(pickle.loads(pickle.dumps(kernel))) == hash(kernel)
        assert eval(repr(kernel)) == kernel
        assert dataclasses.replace(kernel, nu=9).lengthscale == kernel.lengthscale
        with pytest.raises(dataclasses.FrozenInstanceError):
            kernel.nu = 2.0
    assert repr(Matern(lengthscale=np.array([0.1, 2]))) == "Matern(nu=1.5, lengthscale=(0.1, 2.0))"


def test_scales():
    assert Matern(lengthscale=0.3).scales(3).tolist() == [0.3, 0.3, 0.3]
    assert Matern(lengthscale=[1, 2]).scales(2).tolist() == [1.0, 2.0]
    with pytest.raises(InvalidInput, match=r"2 lengthscales.*dimension 3: give 3"):
        Matern(lengthscale=[1, 2]).scales(3)
    with pytest.raises(InvalidInput, match="2 lengthscales"):
        Matern(lengthscale=[1, 2])(np.zeros((4, 3)))


BAD = [0, -1.0, math.nan, math.inf, True, np.True_, "1", None, 1j, {}, 10**400]


@pytest.mark.parametrize("value", BAD)
def test_bad_numbers_are_refused(value):
    with pytest.raises(InvalidInput, match=r"nu=.*positive finite number"):
        Matern(value)
    with pytest.raises(InvalidInput, match=r"lengthscale=.*positive finite number"):
        Matern(lengthscale=value)
    with pytest.raises(InvalidInput, match=r"lengthscale\[1\]=.*positive finite number"):
        Matern(lengthscale=[1.0, value])


@pytest.mark.parametrize("value", [[], (), np.zeros(0)])
def test_an_empty_lengthscale_is_refused(value):
    with pytest.raises(InvalidInput, match="empty"):
        Matern(lengthscale=value)


def test_other_shapes_of_lengthscale_are_refused():
    with pytest.raises(InvalidInput, match=r"lengthscale\[0\]"):
        Matern(lengthscale=np.ones((2, 2)))
    with pytest.raises(InvalidInput, match="nu="):
        Matern(nu=[1.5])


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        ([1.0, 2.0], None, r"X has shape \(2,\).*X\.reshape\(-1, 1\)"),
        (np.zeros((2, 2, 2)), None, r"X has shape \(2, 2, 2\)"),
        ([[math.nan]], None, "every coordinate must be finite"),
        ([["a"]], None, "give real numbers"),
        ([[1.0]], [[1.0, 2.0]], r"X has shape \(1, 1\) and Y \(1, 2\)"),
        ([[1.0]], [1.0], r"Y has shape \(1,\)"),
        ([[1.0]], [[1.0], [math.inf]], r"Y\[1\]=\[inf\]"),
    ],
)
def test_call_refuses_bad_points(X, Y, message):
    with pytest.raises(InvalidInput, match=message):
        Matern()(X, Y)


def test_the_closed_form_imports_no_scipy():
    code = (
        "import sys, numpy, partita.model.kernels as k, partita.model.domains as d;"
        "import partita.model.noise;"
        "k.Matern()(d.Grid(5).points); d.Arms([[0.5]]).index_of([[0.5]]);"
        "assert not [m for m in sys.modules if m.startswith('scipy')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
