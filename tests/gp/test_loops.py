"""Each compiled loop against a naive twin; run with the JIT on and off (NUMBA_DISABLE_JIT=1).

Those with a plain form in NumPy are tested in both, and the two agree to the last bit.
"""

import numba
import numpy as np
import pytest
from support import naive

from partita._compiled import awake
from partita.gp import _loops, _plain
from partita.model.kernels import Matern

NO_JIT = bool(numba.config.DISABLE_JIT)
#: Loops that have a plain form.
BOTH = [
    name
    for name, function in vars(_plain).items()
    if not name.startswith("_") and getattr(function, "__module__", None) == _plain.__name__
]


@pytest.fixture(autouse=True, params=["compiled", "plain"])
def kind(request, monkeypatch):
    """Every test with the compiled loops, and with the plain ones where there are."""
    for name in BOTH:
        loop = awake(getattr(_loops, name)) if request.param == "compiled" else None
        monkeypatch.setattr(_loops, name, loop or getattr(_plain, name))
    return request.param


@pytest.mark.parametrize("form", [0, 1, 2])
@pytest.mark.parametrize("dim", [1, 3])
def test_matern_is_the_kernel(form, dim):
    rng = np.random.default_rng(form)
    left, right = rng.random((7, dim)), rng.random((5, dim))
    scales = rng.uniform(0.1, 0.5, dim)
    want = Matern(form + 0.5, scales)(left, right)
    np.testing.assert_allclose(_loops.matern(left / scales, right / scales, form), want, rtol=1e-13)
    assert (np.diag(_loops.matern(left, left, form)) == 1.0).all()
    np.testing.assert_array_equal(_loops.matern_among(left, form), _loops.matern(left, left, form))


@pytest.mark.parametrize("m", [1, 2, 9])
def test_rank_one_updates_are_the_textbook_posterior(m):
    rng = np.random.default_rng(m)
    prior = naive.kernel_matrix(m, m)
    mean, std, cov = np.zeros(m), np.ones(m), prior.copy()
    where, values, total = [], [], 0.0
    for _ in range(12):
        j, y = int(rng.integers(m)), float(rng.normal())
        total += _loops.observe(mean, std, cov, j, y, 0.7)
        where.append(j)
        values.append(y)
        naive_mean, naive_cov, gain = naive.posterior(
            prior, where, np.array(values), np.full(len(where), 0.7)
        )
        np.testing.assert_allclose(mean, naive_mean, atol=1e-12)
        np.testing.assert_allclose(cov, naive_cov, atol=1e-12)
        np.testing.assert_allclose(std, np.sqrt(np.diag(naive_cov)), atol=1e-9)
        assert total == pytest.approx(gain, abs=1e-12)


def test_condition_folds_replicates():
    prior, rng = naive.kernel_matrix(6, 3), np.random.default_rng(0)
    counts, where = np.array([3, 1, 5]), np.array([4, 0, 2])
    plays = np.repeat(where, counts)
    values = rng.normal(size=len(plays))
    means = np.array([values[plays == j].mean() for j in where])
    mean, std, cov = np.zeros(6), np.zeros(6), prior.copy()
    gain = _loops.condition(mean, std, cov, where, means, 1.3 / counts)
    naive_mean, naive_cov, naive_gain = naive.posterior(
        prior, plays, values, np.full(len(plays), 1.3)
    )
    np.testing.assert_allclose(mean, naive_mean, atol=1e-12)
    np.testing.assert_allclose(cov, naive_cov, atol=1e-12)
    assert gain == pytest.approx(naive_gain, abs=1e-12)


def test_shrink_lowers_only_the_covariance():
    prior = naive.kernel_matrix(5, 1)
    cov, std = prior.copy(), np.ones(5)
    gain = _loops.shrink(cov, std, 2, 0.5)
    _, want, want_gain = naive.posterior(prior, [2], np.zeros(1), np.array([0.5]))
    np.testing.assert_allclose(cov, want, atol=1e-14)
    assert gain == pytest.approx(want_gain)


def test_a_lost_variance_is_reported_not_clipped():
    broken = np.array([[1.0, 2.0], [2.0, 1.0]])  # not positive semidefinite
    assert _loops.shrink(broken.copy(), np.ones(2), 0, 1e-6) == _loops.LOST
    negative = np.array([[-0.1]])
    assert _loops.observe(np.zeros(1), np.ones(1), negative, 0, 1.0, 1.0) == _loops.LOST
    where, ones = np.array([0]), np.ones(1)
    lost = _loops.condition(np.zeros(2), np.ones(2), broken.copy(), where, ones, 1e-6 * ones)
    assert lost == _loops.LOST


@pytest.mark.parametrize(("count", "m"), [(0, 5), (1, 3), (7, 1030), (64, 17)])
def test_row_products(count, m):
    rng = np.random.default_rng(m)
    rows, weights, vector = (
        rng.normal(size=(count + 2, m)),
        rng.normal(size=count),
        rng.normal(size=m),
    )
    total = rng.normal(size=m)
    expected = total + weights @ rows[:count]
    _loops.add_rows(total, rows, weights)
    np.testing.assert_allclose(total, expected, atol=1e-12)
    expected = total + rows.T @ (rows @ vector)
    _loops.add_gram_product(total, rows, vector)
    np.testing.assert_allclose(total, expected, atol=1e-10)


@pytest.mark.parametrize("k", [1, 2, 5, 9, 30])
def test_eliminate_is_cholesky_and_forward_substitution(k):
    rng = np.random.default_rng(k)
    matrix, right = naive.kernel_matrix(k, k) + 0.3 * np.eye(k), rng.normal(size=(k, 7))
    work = np.concatenate([matrix, right], axis=1)
    assert _loops.eliminate(work)
    factor = np.linalg.cholesky(matrix)
    np.testing.assert_allclose(np.triu(work[:, :k]), factor.T, atol=1e-12)
    np.testing.assert_allclose(work[:, k:], np.linalg.solve(factor, right), atol=1e-11)
    assert not _loops.eliminate(np.concatenate([matrix - 5 * np.eye(k), right], axis=1))


@pytest.mark.parametrize("form", [1, 2])
@pytest.mark.parametrize("dim", [1, 3])
def test_matern_slopes_are_the_kernel_and_its_derivative(form, dim):
    rng = np.random.default_rng(form)
    points, scales = rng.random((8, dim)), rng.uniform(0.1, 0.8, dim)
    squares = np.ascontiguousarray(np.moveaxis((points[:, None] - points[None]) ** 2, -1, 0))
    kernel, slope = _loops.matern_slopes(squares, 1.0 / scales**2, form)
    np.testing.assert_allclose(kernel, Matern(form + 0.5, scales)(points), rtol=1e-12)
    for i in range(dim):
        step = np.ones(dim)
        step[i] = np.exp(1e-5)
        above, below = (Matern(form + 0.5, s)(points) for s in (scales * step, scales / step))
        change = (above - below) / 2e-5
        np.testing.assert_allclose(slope * squares[i] / scales[i] ** 2, change, atol=1e-8)


@pytest.mark.parametrize("dim", [1, 3])
def test_likelihood_slopes_are_the_traces(dim):
    rng = np.random.default_rng(dim)
    points, counts = rng.random((7, dim)), rng.integers(1, 5, 7).astype(float)
    squares = np.ascontiguousarray(np.moveaxis((points[:, None] - points[None]) ** 2, -1, 0))
    kernel, slope = _loops.matern_slopes(squares, np.full(dim, 4.0), 2)
    inverse = np.linalg.inv(kernel + np.diag(0.3 / counts))
    weights = inverse @ rng.normal(size=7)
    push = inverse - np.outer(weights, weights) / 1.7
    want = [0.5 * np.trace(push @ (slope * square)) for square in squares]
    want.append(0.5 * np.trace(push @ np.diag(1.0 / counts)))
    lower = np.tril(inverse) + np.triu(np.full((7, 7), np.nan), 1)  # only this much is read
    got = _loops.likelihood_slopes(lower, weights, 1.7, slope, squares, counts)
    np.testing.assert_allclose(got, want, rtol=1e-10)


@pytest.mark.parametrize(("n", "centres"), [(0, 3), (4, 0), (1, 1), (6, 9)])
@pytest.mark.parametrize("dim", [1, 3])
def test_gaussian_sums_are_weighted_sums(n, centres, dim):
    rng = np.random.default_rng(n + dim)
    points, around = rng.random((n, dim)), rng.random((centres, dim))
    first, second = rng.normal(size=centres), rng.normal(size=centres)
    squares = ((points[:, None, :] - around[None, :, :]) ** 2).sum(axis=2)
    weights = np.exp(-squares / (2 * 0.3**2))
    want = np.array([weights @ first, weights @ second])
    for loop in (_loops.gaussian_sums, getattr(_loops.gaussian_sums, "py_func", None)):
        if loop is not None:  # there is none with the JIT off
            got = loop(points, around, first, second, 0.3)
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)


def test_observed_rows_are_the_textbook_posterior():
    m, room, rng = 9, 6, np.random.default_rng(4)
    prior = naive.kernel_matrix(m, 4)
    mean, variance, rows = np.zeros(m), np.ones(m), np.full((room, m), np.nan)
    where, values = [], []
    for used in range(room):
        j, y = int(rng.integers(m)), float(rng.normal())
        _loops.observe_rows(rows, used, mean, variance, prior[j].copy(), j, y, 0.3)
        where.append(j)
        values.append(y)
        naive_mean, naive_cov, _ = naive.posterior(
            prior, where, np.array(values), np.full(len(where), 0.3)
        )
        np.testing.assert_allclose(mean, naive_mean, atol=1e-12)
        np.testing.assert_allclose(variance, np.diag(naive_cov), atol=1e-12)
        seen = rows[: used + 1]
        np.testing.assert_allclose(prior - seen.T @ seen, naive_cov, atol=1e-12)


# -- plain forms -----------------------------------------------------------------------------------


def arguments(name, rng):
    """Random arguments of a loop, of many sizes and scales, some with sites that coincide."""
    n, m, d = (int(i) for i in (rng.integers(1, 70), rng.integers(1, 150), rng.integers(1, 7)))
    left, right = (rng.random((k, d)) * 10 ** rng.uniform(-3, 2) for k in (n, m))
    right[: m // 3] = left[rng.integers(n, size=m // 3)]
    form = int(rng.integers(3))
    squares = np.stack([(c[:, None] - c) ** 2 for c in left.T])
    if name == "matern":
        return left, right, form
    if name == "matern_among":
        return left, form
    if name == "matern_slopes":
        return squares, 10 ** rng.uniform(-2, 2, d), max(form, 1)
    if name == "likelihood_slopes":
        inverse = np.asfortranarray(rng.normal(size=(n, n)))
        inverse[np.triu_indices(n, 1)] = np.nan  # is not read
        counts = rng.integers(1, 5, n).astype(float)
        square = 10 ** rng.uniform(-9, 9)
        return inverse, rng.normal(size=n), square, rng.random((n, n)), squares, counts
    if name == "gaussian_sums":
        return left, right, rng.random(m), rng.random(m), 10 ** rng.uniform(-2, 1)
    assert name == "observe_rows"
    used = int(rng.integers(40))
    rows = rng.normal(size=(used + 2, m)) * (rng.random((used + 2, m)) < 0.8)
    j, noise = int(rng.integers(m)), 10 ** rng.uniform(-9, 1)
    return rows, used, rng.normal(size=m), rng.random(m), rng.normal(size=m), j, 0.7, noise


def both_agree(name, cases, seed=0):
    """Whether the results and the changed arguments of both forms are equal to the last bit."""
    rng = np.random.default_rng(seed)
    for _ in range(cases):
        args = arguments(name, rng)
        again = [arg.copy(order="K") if isinstance(arg, np.ndarray) else arg for arg in args]
        fast, plain = awake(getattr(_loops, name))(*args), getattr(_plain, name)(*again)
        if fast is not None:
            np.testing.assert_array_equal(plain, fast)
        for one, other in zip(args, again, strict=True):
            np.testing.assert_array_equal(other, one)


@pytest.mark.parametrize("name", BOTH)
def test_plain_forms_agree_to_the_last_bit(name, kind):
    if kind == "plain":
        pytest.skip("there is nothing to compare with")
    both_agree(name, cases=5 if NO_JIT else 200)


def test_plain_forms_overflow_in_silence():
    squares, one = np.zeros((1, 2, 2)), np.ones((2, 2))
    with np.errstate(all="raise"):
        slopes = _plain.likelihood_slopes(one, np.full(2, 1e200), 1e-300, one, squares, np.ones(2))
    assert slopes[1] == -np.inf


def test_all_plain_forms_are_tested():
    assert len(BOTH) == 6
