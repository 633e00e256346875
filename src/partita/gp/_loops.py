"""Compiled loops: plain functions on arrays and scalars, cached on disk, no fastmath.

Shapes: m candidates, k of them with data, d dimensions. A covariance is (m, m), C-contiguous and
kept fully symmetric. Each function has a naive twin in the tests, and is tested with the JIT off as
well. A compiled function calls others of its own file only: changing another file would not have
it compiled again. Those of the cells are in `partita.partition._loops`.
"""

from __future__ import annotations

import math

import numpy as np

from partita._compiled import compiled

from . import _plain

#: A posterior variance may fall this far below zero by rounding; anything lower is an error.
VARIANCE_TOLERANCE = 1e-9
#: What `observe`, `shrink` and `condition` return instead of a gain when a variance is lost.
LOST = -1.0


@compiled
def _matern_of(squared, form):
    """Matérn kernel at a squared distance over lengthscales; `form` 0, 1, 2: ν = 1/2, 3/2, 5/2."""
    if squared > 1e12:
        return 0.0  # as the exponential is by then; at infinity a product with it is not a number
    if form == 0:
        return math.exp(-math.sqrt(squared))
    if form == 1:
        z = math.sqrt(3.0 * squared)
        return (1.0 + z) * math.exp(-z)
    z = math.sqrt(5.0 * squared)
    return (1.0 + z + z * z / 3.0) * math.exp(-z)


@compiled(plain=_plain.matern, work=lambda left, right, form: left.shape[0] * right.shape[0])
def matern(left, right, form):
    """Matérn kernel between rows (n, d) and (m, d), both divided by the lengthscales.

    `form` is 0, 1, 2 for ν = 1/2, 3/2, 5/2.
    """
    n, d = left.shape
    m = right.shape[0]
    out = np.empty((n, m))
    for i in range(n):
        for j in range(m):
            squared = 0.0
            for c in range(d):
                difference = left[i, c] - right[j, c]
                squared += difference * difference
            out[i, j] = _matern_of(squared, form)
    return out


@compiled(plain=_plain.matern_among, work=lambda points, form: points.shape[0] ** 2)
def matern_among(points, form):
    """Matérn kernel (n, n) among rows (n, d) divided by the lengthscales; `form` as in `matern`."""
    n, d = points.shape
    out = np.ones((n, n))
    for i in range(n):
        for j in range(i):
            squared = 0.0
            for c in range(d):
                difference = points[i, c] - points[j, c]
                squared += difference * difference
            out[i, j] = out[j, i] = _matern_of(squared, form)
    return out


@compiled(plain=_plain.matern_slopes, work=lambda squares, weights, form: squares.shape[1] ** 2)
def matern_slopes(squares, weights, form):
    """Matérn kernel (n, n) from squared differences (d, n, n) and 1/ℓ² (d,), and its slope.

    The slope times the squared difference over ℓ_i² in dimension i is the derivative by log ℓ_i.
    `form` is 1 or 2 for ν = 3/2 or 5/2.
    """
    d, n, _ = squares.shape
    kernel = np.ones((n, n))
    slope = np.empty((n, n))
    for i in range(n):
        for j in range(i + 1):
            squared = 0.0
            for c in range(d):
                squared += squares[c, i, j] * weights[c]
            if form == 1:
                z = math.sqrt(3.0 * squared)
                decay = math.exp(-z)
                value, change = (1.0 + z) * decay, 3.0 * decay
            else:
                z = math.sqrt(5.0 * squared)
                decay = math.exp(-z)
                value = (1.0 + z + z * z / 3.0) * decay
                change = 5.0 / 3.0 * (1.0 + z) * decay
            kernel[i, j] = kernel[j, i] = value
            slope[i, j] = slope[j, i] = change
    return kernel, slope


@compiled(plain=_plain.likelihood_slopes, work=lambda inverse, *_: inverse.shape[0] ** 2)
def likelihood_slopes(inverse, weights, square, slope, squares, counts):
    """Derivatives of half of log det A + wᵀAw/s by log ℓ_i (times ℓ_i²), and by τ, (d + 1,).

    `inverse` (n, n) is A⁻¹, of which the lower triangle is read, `weights` (n,) are w = A⁻¹r,
    `square` is s, `slope` and `squares` are those of `matern_slopes`.
    """
    d, n, _ = squares.shape
    out = np.zeros(d + 1)
    for i in range(n):
        for j in range(i):
            push = (inverse[i, j] - weights[i] * weights[j] / square) * slope[i, j]
            for c in range(d):
                out[c] += push * squares[c, i, j]  # twice a half: both triangles
        out[d] += 0.5 * (inverse[i, i] - weights[i] * weights[i] / square) / counts[i]
    return out


@compiled(
    plain=_plain.gaussian_sums, work=lambda points, centres, *_: points.shape[0] * centres.shape[0]
)
def gaussian_sums(points, centres, first, second, width):
    """Sums of `first` and of `second` (P,) around points (n, d), (2, n).

    Each is weighted by exp(−r²/2w²), r the distance from the point to its centre, w the `width`.
    """
    n, d = points.shape
    out = np.zeros((2, n))
    scale = -0.5 / (width * width)
    for i in range(n):
        for j in range(centres.shape[0]):
            square = 0.0
            for c in range(d):
                away = points[i, c] - centres[j, c]
                square += away * away
            weight = math.exp(scale * square)
            out[0, i] += weight * first[j]
            out[1, i] += weight * second[j]
    return out


@compiled(plain=_plain.observe_rows, work=lambda rows, used, mean, *_: used * mean.shape[0] // 4)
def observe_rows(rows, used, mean, variance, column, j, value, noise):
    """Condition on a value at candidate j, remembering one more row of V = L⁻¹K.

    `column` (m,) is the kernel between j and all candidates, and is overwritten by the posterior
    covariance; `rows` (r, m) has room for row `used`.
    """
    m = mean.shape[0]
    for r in range(used):
        factor = rows[r, j]
        if factor != 0.0:
            for i in range(m):
                column[i] -= factor * rows[r, i]
    total = max(variance[j], 0.0) + noise
    step = (value - mean[j]) / total
    root = 1.0 / math.sqrt(total)
    for i in range(m):
        mean[i] += column[i] * step
        scaled = column[i] * root
        rows[used, i] = scaled
        variance[i] = max(variance[i] - scaled * scaled, 0.0)


@compiled
def shrink(cov, std, j, noise):
    """Lower the covariance by an evaluation of candidate j with variance `noise`; refresh `std`.

    Returns the information gained, ½ log(1 + Σ_jj / noise), or LOST.
    """
    m = cov.shape[0]
    variance = cov[j, j]
    if variance < -VARIANCE_TOLERANCE:
        return LOST
    variance = max(variance, 0.0)
    column = cov[j].copy()
    inverse = 1.0 / (variance + noise)
    lost = False
    for i in range(m):
        factor = column[i] * inverse
        row = cov[i]
        for c in range(m):
            row[c] -= factor * column[c]
        left = row[i]
        if left < 0.0:
            lost = lost or left < -VARIANCE_TOLERANCE
            left = 0.0
        std[i] = math.sqrt(left)
    return LOST if lost else 0.5 * math.log1p(variance / noise)


@compiled
def observe(mean, std, cov, j, value, noise):
    """Condition on one value at candidate j with noise variance `noise`: α over its evaluations.

    μ += Σ_j (y − μ_j)/(Σ_jj + noise), Σ −= Σ_j Σ_jᵀ/(Σ_jj + noise). Returns the information gained.
    """
    step = (value - mean[j]) / (max(cov[j, j], 0.0) + noise)
    for i in range(mean.shape[0]):
        mean[i] += cov[j, i] * step
    return shrink(cov, std, j, noise)


@compiled
def condition(mean, std, cov, where, values, noises):
    """Condition a prior on k values at candidates `where` (k,): the information gain, or LOST."""
    for i in range(cov.shape[0]):
        std[i] = math.sqrt(max(cov[i, i], 0.0))
    total = 0.0
    for i in range(where.shape[0]):
        gain = observe(mean, std, cov, where[i], values[i], noises[i])
        if gain == LOST:
            return LOST
        total += gain
    return total


@compiled
def eliminate(work):
    """Factor the (k, k) matrix A at the left of `work` (k, n) in place, and solve for the rest.

    With A = LLᵀ, the left part becomes Lᵀ above its diagonal (what is below stays as it was) and
    the columns B beside it become L⁻¹B. Returns whether A was positive definite.
    """
    k, n = work.shape
    for j in range(k):
        whole = j - j % 4
        for start in range(j, n, 1024):
            stop = min(start + 1024, n)
            for i in range(0, whole, 4):
                a, b, c, d = work[i, j], work[i + 1, j], work[i + 2, j], work[i + 3, j]
                for e in range(start, stop):
                    work[j, e] -= (a * work[i, e] + b * work[i + 1, e]) + (
                        c * work[i + 2, e] + d * work[i + 3, e]
                    )
            for i in range(whole, j):
                a = work[i, j]
                for e in range(start, stop):
                    work[j, e] -= a * work[i, e]
        pivot = work[j, j]
        if not pivot > 0.0:
            return False
        inverse = 1.0 / math.sqrt(pivot)
        for e in range(j, n):
            work[j, e] *= inverse
    return True


@compiled(nogil=True)
def add_rows(total, rows, weights):
    """Add Σ_r weights[r]·rows[r] to `total` (m,), four rows at a time, in cached pieces."""
    count, m = weights.shape[0], total.shape[0]
    whole = count - count % 4
    for start in range(0, m, 1024):
        stop = min(start + 1024, m)
        for r in range(0, whole, 4):
            a, b, c, d = weights[r], weights[r + 1], weights[r + 2], weights[r + 3]
            first, second, third, fourth = rows[r], rows[r + 1], rows[r + 2], rows[r + 3]
            for i in range(start, stop):
                total[i] += a * first[i] + b * second[i] + c * third[i] + d * fourth[i]
        for r in range(whole, count):
            a = weights[r]
            first = rows[r]
            for i in range(start, stop):
                total[i] += a * first[i]


@compiled(nogil=True)
def add_gram_product(total, rows, vector):
    """Add rowsᵀ(rows·vector) to `total`, reading each row from memory once."""
    count, m = rows.shape
    whole = m - m % 8
    for r in range(count):
        row = rows[r]
        a = b = c = d = e = f = g = h = 0.0
        for i in range(0, whole, 8):
            a += row[i] * vector[i]
            b += row[i + 1] * vector[i + 1]
            c += row[i + 2] * vector[i + 2]
            d += row[i + 3] * vector[i + 3]
            e += row[i + 4] * vector[i + 4]
            f += row[i + 5] * vector[i + 5]
            g += row[i + 6] * vector[i + 6]
            h += row[i + 7] * vector[i + 7]
        product = ((a + b) + (c + d)) + ((e + f) + (g + h))
        for i in range(whole, m):
            product += row[i] * vector[i]
        if product != 0.0:
            for i in range(m):
                total[i] += product * row[i]
