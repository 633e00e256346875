"""Each compiled loop against a naive twin; run with the JIT on and off (NUMBA_DISABLE_JIT=1)."""

import itertools

import numpy as np
import pytest

from partita.gp import _loops as gp_loops
from partita.model.kernels import Matern
from partita.partition import _loops as cell_loops


def spd(m, seed):
    points = np.random.default_rng(seed).random((m, 2))
    return Matern(1.5, 0.3)(points)


def posterior(prior, where, values, noises):
    """Mean, covariance and gain of a Gaussian vector, by the textbook."""
    gram = prior[np.ix_(where, where)] + np.diag(noises)
    inverse = np.linalg.inv(gram)
    across = prior[:, where]
    whitened = prior[np.ix_(where, where)] / np.sqrt(np.outer(noises, noises))
    gain = 0.5 * np.linalg.slogdet(np.eye(len(where)) + whitened)[1]
    return across @ inverse @ values, prior - across @ inverse @ across.T, gain


@pytest.mark.parametrize("form", [0, 1, 2])
@pytest.mark.parametrize("dim", [1, 3])
def test_matern_is_the_kernel(form, dim):
    rng = np.random.default_rng(form)
    left, right = rng.random((7, dim)), rng.random((5, dim))
    scales = rng.uniform(0.1, 0.5, dim)
    naive = Matern(form + 0.5, scales)(left, right)
    np.testing.assert_allclose(
        gp_loops.matern(left / scales, right / scales, form), naive, rtol=1e-13
    )
    assert (np.diag(gp_loops.matern(left, left, form)) == 1.0).all()
    np.testing.assert_array_equal(
        gp_loops.matern_among(left, form), gp_loops.matern(left, left, form)
    )


@pytest.mark.parametrize("m", [1, 2, 9])
def test_rank_one_updates_are_the_textbook_posterior(m):
    rng = np.random.default_rng(m)
    prior = spd(m, m)
    mean, std, cov = np.zeros(m), np.ones(m), prior.copy()
    where, values, total = [], [], 0.0
    for _ in range(12):
        j, y = int(rng.integers(m)), float(rng.normal())
        total += gp_loops.observe(mean, std, cov, j, y, 0.7)
        where.append(j)
        values.append(y)
        naive_mean, naive_cov, gain = posterior(
            prior, where, np.array(values), np.full(len(where), 0.7)
        )
        np.testing.assert_allclose(mean, naive_mean, atol=1e-12)
        np.testing.assert_allclose(cov, naive_cov, atol=1e-12)
        np.testing.assert_allclose(std, np.sqrt(np.diag(naive_cov)), atol=1e-9)
        assert total == pytest.approx(gain, abs=1e-12)


def test_condition_folds_replicates():
    prior, rng = spd(6, 3), np.random.default_rng(0)
    counts, where = np.array([3, 1, 5]), np.array([4, 0, 2])
    plays = np.repeat(where, counts)
    values = rng.normal(size=len(plays))
    means = np.array([values[plays == j].mean() for j in where])
    mean, std, cov = np.zeros(6), np.zeros(6), prior.copy()
    gain = gp_loops.condition(mean, std, cov, where, means, 1.3 / counts)
    naive_mean, naive_cov, naive_gain = posterior(prior, plays, values, np.full(len(plays), 1.3))
    np.testing.assert_allclose(mean, naive_mean, atol=1e-12)
    np.testing.assert_allclose(cov, naive_cov, atol=1e-12)
    assert gain == pytest.approx(naive_gain, abs=1e-12)


def test_shrink_lowers_only_the_covariance():
    prior = spd(5, 1)
    cov, std = prior.copy(), np.ones(5)
    gain = gp_loops.shrink(cov, std, 2, 0.5)
    naive = posterior(prior, [2], np.zeros(1), np.array([0.5]))
    np.testing.assert_allclose(cov, naive[1], atol=1e-14)
    assert gain == pytest.approx(naive[2])


def test_a_lost_variance_is_reported_not_clipped():
    broken = np.array([[1.0, 2.0], [2.0, 1.0]])  # not positive semidefinite
    assert gp_loops.shrink(broken.copy(), np.ones(2), 0, 1e-6) == gp_loops.LOST
    negative = np.array([[-0.1]])
    assert gp_loops.observe(np.zeros(1), np.ones(1), negative, 0, 1.0, 1.0) == gp_loops.LOST
    where, ones = np.array([0]), np.ones(1)
    lost = gp_loops.condition(np.zeros(2), np.ones(2), broken.copy(), where, ones, 1e-6 * ones)
    assert lost == gp_loops.LOST


def naive_best(mean, std, priority, width, resolution):
    rounded = [round((m + width * s) * resolution) for m, s in zip(mean, std, strict=True)]
    ties = [i for i, r in enumerate(rounded) if r == max(rounded)]
    choice = min(ties, key=lambda i: priority[i])
    return rounded[choice] / resolution, choice, priority[choice]


@pytest.mark.parametrize("seed", range(20))
def test_best_upper_breaks_ties_by_priority(seed):
    rng = np.random.default_rng(seed)
    mean = rng.integers(0, 3, 12) + rng.uniform(-1e-12, 1e-12, 12)
    std = rng.integers(0, 2, 12).astype(float)
    priority = rng.permutation(12).astype(np.uint64)
    width = float(rng.choice([-1.0, 1.0]))
    found = cell_loops.best_upper(mean, std, priority, width, 1e9)
    assert tuple(found) == naive_best(mean, std, priority, width, 1e9)


def test_scatter_children_puts_points_of_the_dividing_plane_in_both_halves():
    options = [0.0, 0.5, 1.0, 1.5, 2.0]
    offsets = np.array(list(itertools.product(options, repeat=2)))
    codes, rows = cell_loops.scatter_children(offsets)
    found = set(zip(codes.tolist(), rows.tolist(), strict=True))
    naive = {
        (code, i)
        for i, offset in enumerate(offsets)
        for code in range(4)
        if all((o >= 1 if code >> c & 1 else o <= 1) for c, o in enumerate(offset))
    }
    assert found == naive
    assert len(codes) == len(found)
    assert (np.diff(rows) >= 0).all()


@pytest.mark.filterwarnings(
    "ignore:overflow"
)  # uint64 wraps; NumPy scalars say so with the JIT off
def test_hashes_depend_on_every_word_and_the_seed():
    words = np.array([[1, 2], [2, 1], [1, 3], [1, 2]], dtype=np.uint64)
    first = cell_loops.hash_rows(np.uint64(0), words)
    assert first[0] == first[3]
    assert len(set(first.tolist())) == 3
    assert (first != cell_loops.hash_rows(np.uint64(1), words)).all()
    # one fixed value, so that saved studies replay the same in every version
    assert (
        int(cell_loops.hash_rows(np.uint64(0), np.array([[0]], dtype=np.uint64))[0])
        == 16294208416658607535
    )


def table(rows, seed):
    """Arrays of a table with the given number of cells, three candidates each, all in the heap."""
    rng = np.random.default_rng(seed)
    numbers = np.zeros((rows, 4))
    places = np.zeros((rows, 4), dtype=np.int64)
    places[:, cell_loops.START] = 3 * np.arange(rows)
    places[:, cell_loops.SIZE] = 3
    places[:, cell_loops.POSITION] = -1
    return (
        numbers,
        places,
        np.zeros(rows, dtype=np.uint64),
        np.zeros(rows, dtype=np.int64),
        np.zeros((2, 3 * rows)),
        rng.permutation(3 * rows).astype(np.uint64),
        rng,
    )


@pytest.mark.parametrize("seed", range(5))
def test_table_finds_the_best_row_while_the_width_drifts(seed):
    rows, offset, factor, resolution = 17, 0.5, 0.8, 1e9
    numbers, places, ties, heap, moments, priority, rng = table(rows, seed)
    gains = np.zeros(rows)
    count = 0
    highest = -np.inf
    clock = 3.0
    present = set()
    for step in range(120):
        clock += float(rng.exponential(0.05))
        drift = offset + factor * np.sqrt(clock)
        row = int(rng.integers(rows))
        if row in present and rng.random() < 0.2:
            count = cell_loops.table_remove(numbers, places, ties, heap, count, row)
            present.discard(row)
        else:
            mean = np.round(rng.normal(size=3), 1)
            std = rng.integers(1, 5, 3) / 4
            gains[row] = rng.exponential()
            count = cell_loops.table_enter(
                *(numbers, places, ties, heap, count, moments, priority, row, mean, std),
                *(gains[row], offset, factor, clock, drift - 1.5e-9, resolution),
            )
            present.add(row)
        assert count == len(present)
        assert sorted(heap[:count].tolist()) == sorted(present)
        if not present:
            continue
        highest = max(highest, drift)
        found, value, candidate, evaluated = cell_loops.table_best(
            *(numbers, places, ties, heap, count, moments, priority),
            *(offset, factor, clock, drift, highest, 1.5e-9, resolution),
        )
        scores = {}
        for r in present:
            block = slice(3 * r, 3 * r + 3)
            width = offset + factor * np.sqrt(gains[r] + clock)
            scores[r] = naive_best(*moments[:, block], priority[block], width, resolution)
        best = min(present, key=lambda r: (-scores[r][0], scores[r][2]))
        assert (found, value) == (best, scores[best][0]), step
        assert candidate == places[found, cell_loops.CHOICE] == scores[best][1]
        assert 1 <= evaluated <= count
        assert sorted(heap[:count].tolist()) == sorted(present)
        bounds = numbers[heap[:count], cell_loops.BOUND]
        assert all(bounds[(i - 1) // 2] >= bounds[i] for i in range(1, count))
        assert (places[heap[:count], cell_loops.POSITION] == np.arange(count)).all()


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
    gp_loops.add_rows(total, rows, weights)
    np.testing.assert_allclose(total, expected, atol=1e-12)
    expected = total + rows.T @ (rows @ vector)
    gp_loops.add_gram_product(total, rows, vector)
    np.testing.assert_allclose(total, expected, atol=1e-10)


@pytest.mark.parametrize("k", [1, 2, 5, 9, 30])
def test_eliminate_is_cholesky_and_forward_substitution(k):
    rng = np.random.default_rng(k)
    matrix, right = spd(k, k) + 0.3 * np.eye(k), rng.normal(size=(k, 7))
    work = np.concatenate([matrix, right], axis=1)
    assert gp_loops.eliminate(work)
    factor = np.linalg.cholesky(matrix)
    np.testing.assert_allclose(np.triu(work[:, :k]), factor.T, atol=1e-12)
    np.testing.assert_allclose(work[:, k:], np.linalg.solve(factor, right), atol=1e-11)
    assert not gp_loops.eliminate(np.concatenate([matrix - 5 * np.eye(k), right], axis=1))


@pytest.mark.parametrize("form", [1, 2])
@pytest.mark.parametrize("dim", [1, 3])
def test_matern_slopes_are_the_kernel_and_its_derivative(form, dim):
    rng = np.random.default_rng(form)
    points, scales = rng.random((8, dim)), rng.uniform(0.1, 0.8, dim)
    squares = np.ascontiguousarray(np.moveaxis((points[:, None] - points[None]) ** 2, -1, 0))
    kernel, slope = gp_loops.matern_slopes(squares, 1.0 / scales**2, form)
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
    kernel, slope = gp_loops.matern_slopes(squares, np.full(dim, 4.0), 2)
    inverse = np.linalg.inv(kernel + np.diag(0.3 / counts))
    weights = inverse @ rng.normal(size=7)
    push = inverse - np.outer(weights, weights) / 1.7
    naive = [0.5 * np.trace(push @ (slope * square)) for square in squares]
    naive.append(0.5 * np.trace(push @ np.diag(1.0 / counts)))
    lower = np.tril(inverse) + np.triu(np.full((7, 7), np.nan), 1)  # only this much is read
    got = gp_loops.likelihood_slopes(lower, weights, 1.7, slope, squares, counts)
    np.testing.assert_allclose(got, naive, rtol=1e-10)


def test_observed_rows_are_the_textbook_posterior():
    m, room, rng = 9, 6, np.random.default_rng(4)
    prior = spd(m, 4)
    mean, variance, rows = np.zeros(m), np.ones(m), np.full((room, m), np.nan)
    where, values = [], []
    for used in range(room):
        j, y = int(rng.integers(m)), float(rng.normal())
        gp_loops.observe_rows(rows, used, mean, variance, prior[j].copy(), j, y, 0.3)
        where.append(j)
        values.append(y)
        naive_mean, naive_cov, _ = posterior(
            prior, where, np.array(values), np.full(len(where), 0.3)
        )
        np.testing.assert_allclose(mean, naive_mean, atol=1e-12)
        np.testing.assert_allclose(variance, np.diag(naive_cov), atol=1e-12)
        seen = rows[: used + 1]
        np.testing.assert_allclose(prior - seen.T @ seen, naive_cov, atol=1e-12)
