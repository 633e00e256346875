"""The loops that a short run needs, in NumPy: the same numbers, to the last bit, as `_loops`.

Numba takes longer to load and to compile a loop than NumPy takes for all its calls in a run of some
hundred evaluations. So these are called first, and the compiled ones take over in longer runs
(`partita._compiled`). Arguments, shapes and results are those of the function of the same name.

To agree to the last bit, sums are taken in the order of the loops (`cumsum` adds one after another,
`sum` does not), and exponentials are those of the C library. As in compiled loops, what overflows
is infinite without a warning.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from partita._types import BoolArray, FloatArray

#: Squared distance in lengthscales beyond which the kernel is 0, as the exponential is by then.
FAR = 1e12


def _exp(powers: FloatArray) -> FloatArray:
    """The C library's exponentials; those of `np.exp` differ in the last bit on some processors."""
    from scipy.special import inv_boxcox

    return np.asarray(inv_boxcox(powers, 0.0))


def _matern_of(squared: FloatArray, form: int) -> FloatArray:
    if form == 0:
        return _exp(-np.sqrt(squared))
    z = np.sqrt((3.0 if form == 1 else 5.0) * squared)
    kernel = _exp(-z)
    kernel *= 1.0 + z if form == 1 else 1.0 + z + z * z / 3.0
    kernel[squared > FAR] = 0.0  # at infinity a product with the exponential is not a number
    return kernel


def _squared(left: FloatArray, right: FloatArray) -> FloatArray:
    """Squared distances between rows (n, d) and (m, d), (n, m)."""
    total = np.zeros((len(left), len(right)))
    for a, b in zip(left.T, right.T, strict=True):
        difference = a[:, None] - b
        difference *= difference
        total += difference
    return total


@np.errstate(all="ignore")
def matern(left: FloatArray, right: FloatArray, form: int) -> FloatArray:
    """Matérn kernel between rows."""
    return _matern_of(_squared(left, right), form)


@np.errstate(all="ignore")
def matern_among(points: FloatArray, form: int) -> FloatArray:
    """Matérn kernel among rows."""
    return _matern_of(_squared(points, points), form)


@np.errstate(all="ignore")
def matern_slopes(
    squares: FloatArray, weights: FloatArray, form: int
) -> tuple[FloatArray, FloatArray]:
    """Matérn kernel from squared differences, and its slope."""
    squared = squares[0] * weights[0]
    for square, weight in zip(squares[1:], weights[1:], strict=True):
        squared += square * weight
    z = np.sqrt((3.0 if form == 1 else 5.0) * squared)
    decay = _exp(-z)
    if form == 1:
        return (1.0 + z) * decay, 3.0 * decay
    return (1.0 + z + z * z / 3.0) * decay, 5.0 / 3.0 * (1.0 + z) * decay


@lru_cache(maxsize=4)
def _below_diagonal(n: int) -> BoolArray:
    return np.tri(n, k=-1, dtype=bool)


@np.errstate(all="ignore")
def likelihood_slopes(
    inverse: FloatArray,
    weights: FloatArray,
    square: float,
    slope: FloatArray,
    squares: FloatArray,
    counts: FloatArray,
) -> FloatArray:
    """Derivatives of half of log det A + wᵀAw/s."""
    d, n, _ = squares.shape
    below = _below_diagonal(n)
    out = np.zeros(d + 1)
    if n > 1:
        products = (weights[:, None] * weights)[below]
        push = (inverse[below] - products / square) * slope[below]
        for c in range(d):
            out[c] += np.cumsum(push * squares[c][below])[-1]
    each = 0.5 * (np.diagonal(inverse) - weights * weights / square) / counts
    out[d] += np.cumsum(each)[-1]
    return out


@np.errstate(all="ignore")
def gaussian_sums(
    points: FloatArray, centres: FloatArray, first: FloatArray, second: FloatArray, width: float
) -> FloatArray:
    """Sums around points, weighted by a Gaussian of the distance."""
    out = np.zeros((2, len(points)))
    if len(centres):
        weight = _exp(-0.5 / (width * width) * _squared(points, centres))
        out[0] += np.cumsum(weight * first, axis=1)[:, -1]
        out[1] += np.cumsum(weight * second, axis=1)[:, -1]
    return out


@np.errstate(all="ignore")
def observe_rows(
    rows: FloatArray,
    used: int,
    mean: FloatArray,
    variance: FloatArray,
    column: FloatArray,
    j: int,
    value: float,
    noise: float,
) -> None:
    """Condition on a value at candidate j, remembering one more row."""
    terms = np.empty((used + 1, len(mean)))
    terms[0] = column
    np.multiply(rows[:used], rows[:used, j, None], out=terms[1:])
    np.subtract.reduce(terms, axis=0, out=column)  # a difference has an order, and NumPy keeps it
    total = max(variance[j], 0.0) + noise
    step = (value - mean[j]) / total
    root = 1.0 / np.sqrt(total)
    mean += column * step
    rows[used] = scaled = column * root
    np.maximum(variance - scaled * scaled, 0.0, out=variance)
