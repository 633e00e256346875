"""Data of a Gaussian process: the values at each point as a few sums, and how sure they are."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partita._types import FloatArray, IntArray

#: Noise of more than this many squares of the amplitude says nothing, and must not overflow.
MOST_VARIANCE = 1e100


class Data(NamedTuple):
    """Replicate means: points (P, d) in the unit cube, and numbers for each of them, (P,).

    `within` is the sum of squares of a point's values about their mean. `ratios` are the variances
    of one value's noise there, over the overall one. `known` are the variances of the means' noise
    where those were told, with a count of 1, in the square of the means' units; NaN elsewhere. A
    point may occur twice, with what is known and what is not.
    """

    points: FloatArray
    counts: FloatArray
    means: FloatArray
    within: FloatArray
    ratios: FloatArray
    known: FloatArray

    @property
    def told(self) -> bool:
        """Whether the noise of some means was told."""
        return not bool(np.isnan(self.known).all())

    def diagonal(self, noise: float, square: float) -> FloatArray:
        """Variances (P,) of the means' noise over the amplitude's square, given τ = `noise`."""
        told = np.minimum(self.known, MOST_VARIANCE * square) / square
        return np.where(np.isnan(self.known), noise * self.ratios / self.counts, told)

    def within_points(self) -> float:
        """The sum of squares within points, each over its noise ratio."""
        return float((self.within / self.ratios).sum())

    def take(self, rows: IntArray) -> Data:
        """Some of the points, by their numbers."""
        return Data(*(part[rows] for part in self))


def uniform_noise(
    points: FloatArray, counts: FloatArray, means: FloatArray, within: FloatArray
) -> Data:
    """Data whose noise is the same everywhere, and was told nowhere."""
    return Data(points, counts, means, within, np.ones(len(means)), np.full(len(means), np.nan))


def farthest(points: FloatArray, number: int, least: float = 0.0) -> IntArray:
    """Numbers of `number` of the points (n, d), each as far from those before as can be.

    Fewer, where there are no more, or the next would be nearer than `least`.
    """
    chosen = [0]
    away = np.full(len(points), np.inf)
    columns = np.ascontiguousarray(points.T)  # a side at a time is quicker than a point at a time
    while len(chosen) < min(number, len(points)):
        total = np.zeros(len(points))
        for column, at in zip(columns, points[chosen[-1]], strict=True):
            difference = column - at
            difference *= difference
            total += difference
        np.minimum(away, total, out=away)
        next_one = int(np.argmax(away))
        if away[next_one] < least**2:
            break
        chosen.append(next_one)
    return np.array(chosen, dtype=np.int64)
