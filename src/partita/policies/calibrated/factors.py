"""Factors of data that take in one row after another, and what a choice needs from them.

Notation: K + D = L Lᵀ of p data with their noise, with room for more. `values` (P,) are L⁻¹ of the
targets. There are two forms with the same methods. `Blocks` leaves the work to LAPACK, and needs no
compiled loops. `Rows` is for more data and longer runs, where those pay.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np

from partita._types import FloatArray, IntArray
from partita.gp.fitting import JITTER

from . import _loops

#: Data from which on a factor is one of compiled loops. It is by the data, not by the time spent,
#: so that a policy that was saved goes on to the last bit.
COMPILED_FROM = 128
#: Data by which `Rows` sees which points cannot have the highest index.
INFORMING = 64
#: Points whose variances `Blocks` computes first, to see which others can have a higher index.
LEADERS = 24
#: Up to this many coordinates that are not fixed, `Blocks` computes distances one at a time.
FEW_FREE = 3


class Looked(NamedTuple):
    """Points of a slice, by the coordinates that are not fixed in it, and the data that tell of f.

    All but the noise is over the lengthscales.
    """

    points: FloatArray  # (n, f)
    data: FloatArray  # (p, d)
    free: IntArray  # (f,), the numbers of the coordinates
    toward: FloatArray  # (p,), squared distances of the data from the slice
    noise: FloatArray  # (p,)
    form: int  # of the kernel


class Screened(NamedTuple):
    """Means at points, and variances of those that may have the highest index.

    Those are NaN that are not needed. `across` is the kernel between data and points.
    """

    mean: FloatArray  # (n,)
    variance: FloatArray  # (n,)
    across: FloatArray  # (p, n)


class Factor(Protocol):
    """A factor L of the data."""

    def append(
        self,
        scaled: FloatArray,
        row: int,
        noise: float,
        target: float,
        values: FloatArray,
        form: int,
    ) -> None:
        """Take in row `row` of the data, at `scaled[row]`, and set `values[row]`."""

    def solve(self, across: FloatArray) -> FloatArray:
        """V = L⁻¹ `across`, (p, n)."""

    def weights(self, values: FloatArray) -> FloatArray:
        """L⁻ᵀ of values, (p,)."""

    def screen(self, at: Looked, weights: FloatArray, width: float, least: float) -> Screened:
        """Means at points, and variances of those whose index may be the highest, above `least`.

        The index is the mean plus `width` standard deviations. A variance by all data is at most
        that by one of them, so a point whose index is too low with that variance is left out.
        """


def new_factor(factor: FloatArray, room: int) -> Factor:
    """The factor (p, p) of data, with room for more rows."""
    if len(factor) < COMPILED_FROM:
        return Blocks(factor, room)
    return Rows(factor, room)


class Rows:
    """A factor of compiled loops: one array of rows."""

    def __init__(self, factor: FloatArray, room: int) -> None:
        p = len(factor)
        self._used = p
        self._factor = np.empty((p + room, p + room))
        self._factor[:p, :p] = factor

    def append(
        self,
        scaled: FloatArray,
        row: int,
        noise: float,
        target: float,
        values: FloatArray,
        form: int,
    ) -> None:
        """Take in a row of the data."""
        _loops.append(self._factor, scaled, row, noise, target, values, form, JITTER)
        self._used = row + 1

    def solve(self, across: FloatArray) -> FloatArray:
        """V = L⁻¹ `across`, (p, n)."""
        rows = np.array(across, order="C")
        _loops.solve(self._factor, rows)
        return rows

    def weights(self, values: FloatArray) -> FloatArray:
        """L⁻ᵀ of values, (p,)."""
        weights = values.copy()
        _loops.solve_transposed(self._factor, weights)
        return weights

    def screen(self, at: Looked, weights: FloatArray, width: float, least: float) -> Screened:
        """Means, and the variances that are needed."""
        data = at.points, at.data, at.free, at.toward, weights, at.noise
        return Screened(*_loops.screen(*data, self._factor, at.form, width, least, INFORMING))


class Blocks:
    """A factor of LAPACK: [[L₀, 0], [B, L₁]], with L₀ of the first data and L₁ of those since."""

    def __init__(self, factor: FloatArray, room: int) -> None:
        self._first = np.asfortranarray(factor)
        self._below, self._last = np.empty((room, len(factor))), np.zeros((room, room))
        self._more = 0

    def append(
        self,
        scaled: FloatArray,
        row: int,
        noise: float,
        target: float,
        values: FloatArray,
        form: int,
    ) -> None:
        """Take in a row of the data: ℓ = L⁻¹k, and √(1 + noise − ℓ·ℓ) on the diagonal."""
        m = self._more
        base = row - m
        solved = self.solve(kernel_between(scaled[:row], scaled[row : row + 1], form))[:, 0]
        rest = max(1.0 + noise - float(solved @ solved), JITTER)
        self._below[m], self._last[m, :m] = solved[:base], solved[base:]
        self._last[m, m] = math.sqrt(rest)
        values[row] = (target - float(solved @ values[:row])) / self._last[m, m]
        self._more = m + 1

    def solve(self, across: FloatArray) -> FloatArray:
        """V = L⁻¹ `across`, (p, n)."""
        base, m = len(self._first), self._more
        above = _solved(self._first, across[:base])
        if not m:
            return above
        rest = across[base:] - self._below[:m] @ above
        return np.concatenate([above, _solved(self._last[:m, :m], rest)])

    def weights(self, values: FloatArray) -> FloatArray:
        """L⁻ᵀ of values, (p,)."""
        base, m, last = len(self._first), self._more, np.empty(0)
        if m:
            last = _solved(self._last[:m, :m], values[base:], transposed=True)
        rest = values[:base] - last @ self._below[:m]
        return np.concatenate([_solved(self._first, rest, transposed=True), last])

    def screen(self, at: Looked, weights: FloatArray, width: float, least: float) -> Screened:
        """Means, and the variances that are needed."""
        across = _kernel_in(at)
        mean = weights @ across
        told = (across / np.sqrt(1.0 + at.noise)[:, None]).max(axis=0, initial=0.0)
        most = mean + width * np.sqrt(np.maximum(1.0 - told * told, 0.0))
        variance = np.full(len(mean), np.nan)
        order = np.argsort(-most, kind="stable")
        order = np.append(mean.argmax(), order[order != mean.argmax()])
        for numbers in (order[:LEADERS], order[LEADERS:]):
            some = numbers[most[numbers] > least]
            if len(some):
                variance[some] = self._variances(across, some)
                least = max(least, float((mean[some] + width * np.sqrt(variance[some])).max()))
        return Screened(mean, variance, across)

    def _variances(self, across: FloatArray, some: IntArray) -> FloatArray:
        return left(self.solve(across[:, some]))


def left(rows: FloatArray) -> FloatArray:
    """What is left of the prior's variances, (n,), where V is `rows` (p, n)."""
    return np.asarray(np.maximum(1.0 - np.einsum("ij,ij->j", rows, rows), 0.0))


# -- kernels ---------------------------------------------------------------------------------------


def kernel_between(left: FloatArray, right: FloatArray, form: int) -> FloatArray:
    """Matérn kernel (n, m) between rows (n, d) and (m, d) divided by the lengthscales.

    It is `gp._loops.matern` up to the last bits, and faster: NumPy's exponentials are vectorised.
    """
    from scipy.spatial.distance import cdist

    return kernel_at(cdist(left, right), form)


def kernel_at(away: FloatArray, form: int) -> FloatArray:
    """Matérn kernel at distances in lengthscales, an array of any shape that is overwritten."""
    z = away
    z *= math.sqrt(3.0 if form == 1 else 5.0)
    decay = np.negative(z)
    np.exp(decay, out=decay)
    if form == 2:  # 1 + z(1 + z/3)
        slope = z / 3.0
        slope += 1.0
        z *= slope
    z += 1.0
    decay *= z
    return decay


def _kernel_in(at: Looked) -> FloatArray:
    """The kernel (p, n) between data and points of a slice."""
    data = at.data[:, at.free]
    if len(at.free) > FEW_FREE:
        from scipy.spatial.distance import cdist

        total = cdist(data, at.points, "sqeuclidean")
    else:
        total = np.zeros((len(data), len(at.points)))
        for column, points in zip(data.T, at.points.T, strict=True):
            apart = column[:, None] - points
            apart *= apart
            total += apart
    total += at.toward[:, None]
    return kernel_at(np.sqrt(total, out=total), at.form)


def _solved(factor: FloatArray, right: FloatArray, transposed: bool = False) -> FloatArray:
    """L⁻¹ or L⁻ᵀ of `right` (n,) or (n, m).

    LAPACK's own function: SciPy's `solve_triangular` takes longer to check its arguments than that
    takes for so few numbers. Callers limit the threads.
    """
    from scipy.linalg.lapack import dtrtrs

    if not right.size:
        return right
    solved, info = dtrtrs(factor, right, lower=1, trans=int(transposed))
    assert info == 0, "the factor has a positive diagonal"
    return np.asarray(solved)
