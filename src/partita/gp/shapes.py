"""Shapes: monotone transforms of the values, after which one Gaussian process explains them.

Losses, costs and delays span orders of magnitude, and their noise grows with them. Where that is
so, z = asinh((y − c)/s) has an even spread and noise: about linear within s of the centre c, and
logarithmic beyond, on both sides. Its inverse is c + s sinh z, its slope 1/(s √(1 + u²)) with
u = (y − c)/s = sinh z, and −g''/g'² = tanh z.

A shape applies to the mean ȳ of a point's n values, so that replicates stay a few sums, and what is
modelled at a point with many values is the shape of E[y], not the mean of shaped values.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from partita._state import Saved, State
from partita._types import FloatArray

from .data import MOST_VARIANCE, Data

Number = TypeVar("Number", float, FloatArray)

#: Shaped values beyond this are taken for this on the way back: sinh would overflow.
FARTHEST = 300.0
#: Noise that counts in the correction for curvature, at most: a variance in shaped units.
MOST_CORRECTED = 4.0
#: The largest number, and the largest whose square is one.
LARGEST, SQUARED = sys.float_info.max, 1e154
#: The part of a value that rounding may change.
ROUNDING = 1e-12
#: No saved size of a shape is smaller, nor an amplitude: their squares must not vanish.
SMALLEST = 0.9e-150


@dataclass(frozen=True)
class Shape:
    """z = asinh((y − centre)/size); the identity if size is infinite."""

    centre: float = 0.0
    size: float = math.inf

    @property
    def identity(self) -> bool:
        """Whether values stay as they are."""
        return math.isinf(self.size)

    def state(self) -> State:
        """The shape as plain data."""
        return {"centre": float(self.centre), "size": float(self.size)}

    @staticmethod
    def restored(saved: Saved) -> Shape:
        """The shape that was saved."""
        return Shape(saved.real("centre"), saved.real("size", SMALLEST, math.inf))

    def forward(self, values: Number) -> Number:
        """Shaped values."""
        if self.identity:
            return values
        return _like(values, np.arcsinh(self._away(values, LARGEST)))

    def inverse(self, shaped: Number) -> Number:
        """Values, given shaped ones."""
        if self.identity:
            return shaped
        if isinstance(shaped, float):
            return self.centre + self.size * math.sinh(min(max(shaped, -FARTHEST), FARTHEST))
        return self.centre + self.size * np.sinh(np.clip(shaped, -FARTHEST, FARTHEST))

    def slope(self, values: Number) -> Number:
        """Derivative of the shaped values by the values."""
        if self.identity:
            return _like(values, np.ones_like(values))
        away = self._away(values, SQUARED)
        return _like(values, 1.0 / (self.size * np.sqrt(1.0 + away * away)))

    def _away(self, values: Number, most: float) -> Any:
        """Distances of values from the centre in sizes, at most `most` of them, which may be many.

        A value of 1e150 is as many as no float can hold, if the others are tiny.
        """
        with np.errstate(over="ignore"):
            return np.clip(np.divide(values - self.centre, self.size), -most, most)

    def data(self, raw: Data, noise: float = 0.0) -> Data:
        """Data of values as data of shaped values, to first order in the noise of the means.

        With the variance of one shaped value's noise, the means are corrected to second order:
        E[g(ȳ)] ≈ g(E[y]) + g''/2 Var(ȳ), and Var(ȳ) ≈ noise/(n g'²).
        """
        if self.identity:
            return raw
        shaped, slope = self.forward(raw.means), self.slope(raw.means)
        with np.errstate(over="ignore"):  # noise of more than any number holds says nothing
            known = np.minimum(raw.known * slope**2, MOST_VARIANCE)
            within = np.minimum(raw.within * slope**2, MOST_VARIANCE)
        of_mean = np.where(np.isnan(known), noise * raw.ratios / raw.counts, known)
        if noise > 0:
            shaped = shaped + self.correction(shaped, of_mean)
        return raw._replace(means=shaped, within=within, known=known)

    def correction(self, shaped: Number, variance: Number) -> Number:
        """What to add to shaped means whose noise has this variance, for the curvature."""
        if self.identity:
            return 0.0 * shaped
        limited = np.minimum(variance, MOST_CORRECTED)
        return _like(shaped, 0.5 * np.tanh(shaped) * limited)


def _like(given: Number, result: Any) -> Number:
    """A result of NumPy's, as a float where a float was given."""
    return cast(Number, float(result) if np.ndim(given) == 0 else result)


#: Values as they are.
IDENTITY = Shape()


class Frame(NamedTuple):
    """Where the values lie: shapes are looked for relative to it, whatever the values' unit.

    A shape is (a, b) in it: its centre is a spreads from the middle, its size e^b spreads.
    """

    middle: float
    spread: float

    def shape(self, place: FloatArray) -> Shape:
        """The shape at a place (a, b)."""
        centre = self.middle + self.spread * float(place[0])
        return Shape(centre, self.spread * math.exp(float(place[1])))

    def place(self, shape: Shape) -> FloatArray:
        """The place (a, b) of a shape that is not the identity."""
        away = (shape.centre - self.middle) / self.spread
        return np.array([away, math.log(shape.size / self.spread)])


def frame_of(means: FloatArray) -> Frame | None:
    """The frame of replicate means by their quartiles; None if they are too alike."""
    low, middle, high = np.quantile(means, [0.25, 0.5, 0.75])
    spread = float(high - low)
    if not spread > 0:
        spread = float(np.std(means))
    # Differences among values much larger than themselves are rounding.
    if not spread > ROUNDING * abs(float(middle)):
        return None
    return Frame(float(middle), spread)
