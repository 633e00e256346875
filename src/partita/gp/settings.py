"""What a Gaussian process assumes, what of that a user gave, and the unit that values are in."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from partita._state import Saved, State
from partita._types import FloatArray

from .data import Data
from .shapes import IDENTITY, SMALLEST, Shape, frame_of

Number = TypeVar("Number", float, FloatArray)

#: Values farther away than this many units are taken to be there: squares must not overflow.
FARTHEST = 1e60
#: Bounds of the noise ratio τ.
LEAST_NOISE, MOST_NOISE = 1e-6, 1e4


@dataclass(frozen=True)
class Settings:
    """What a Gaussian process assumes: GP(mean, amplitude² k), noise of variance amplitude² τ.

    All but the lengthscales is in the units of shaped values.
    """

    scales: FloatArray
    noise: float
    form: int
    mean: float
    amplitude: float
    shape: Shape = IDENTITY

    @property
    def vector(self) -> FloatArray:
        """Logarithms of the lengthscales and of τ, (d + 1,)."""
        return np.append(np.log(self.scales), math.log(self.noise))

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise of shaped values."""
        return self.amplitude * math.sqrt(self.noise)

    def state(self) -> State:
        """The settings as plain data."""
        return {
            "scales": np.array(self.scales, dtype=float),
            "noise": float(self.noise),
            "form": int(self.form),
            "mean": float(self.mean),
            "amplitude": float(self.amplitude),
            "shape": self.shape.state(),
        }

    @staticmethod
    def restored(saved: Saved, dim: int) -> Settings:
        """The settings that were saved."""
        return Settings(
            saved.floats("scales", (dim,), 1e-50, 1e50),
            saved.real("noise", 0.1 * LEAST_NOISE, 1e3 * MOST_NOISE),
            saved.integer("form", 1, 2),
            saved.real("mean"),
            saved.real("amplitude", SMALLEST),
            Shape.restored(saved.part("shape")),
        )

    def in_units(self, value: Number) -> Number:
        """A value, or values, in amplitudes from the mean, in the units of what was told."""
        return self.shape.inverse(self.mean + self.amplitude * value)

    def from_units(self, value: Number) -> Number:
        """The inverse of `in_units`."""
        return (self.shape.forward(value) - self.mean) / self.amplitude


@dataclass(frozen=True)
class Fixed:
    """What the user gave, and is not estimated."""

    scales: FloatArray | None = None
    form: int | None = None
    noise_std: float | None = None
    amplitude: float | None = None

    @property
    def anything(self) -> bool:
        """Whether there is anything that the user gave."""
        given = (self.scales, self.form, self.noise_std, self.amplitude)
        return any(part is not None for part in given)


def first_settings(dim: int, fixed: Fixed) -> Settings:
    """Settings before anything is learned."""
    scales = np.full(dim, 0.3) if fixed.scales is None else fixed.scales
    amplitude = 1.0 if fixed.amplitude is None else fixed.amplitude
    noise = 0.1 if fixed.noise_std is None else noise_ratio(fixed.noise_std, amplitude)
    return Settings(scales, noise, 2 if fixed.form is None else fixed.form, 0.0, amplitude)


def noise_ratio(noise_std: float, amplitude: float) -> float:
    """τ within its bounds."""
    return float(np.clip((noise_std / amplitude) ** 2, LEAST_NOISE, MOST_NOISE))


@dataclass(frozen=True)
class Unit:
    """A unit of values: what is in it is (value − middle)/spread."""

    middle: float
    spread: float

    def data(self, data: Data) -> Data:
        """Data in this unit."""
        square = max(self.spread**2, 1e-300)
        with np.errstate(over="ignore"):  # what is too large for a number is cut below
            means = (data.means - self.middle) / self.spread
            within, known = data.within / square, data.known / square
        return data._replace(
            means=np.clip(means, -FARTHEST, FARTHEST),
            within=np.minimum(within, FARTHEST**2),
            known=np.minimum(known, FARTHEST**2),
        )

    def settings(self, settings: Settings) -> Settings:
        """Settings in this unit."""
        shape = settings.shape
        if shape.identity:
            mean = (settings.mean - self.middle) / self.spread
            return replace(settings, mean=mean, amplitude=settings.amplitude / self.spread)
        centre, size = (shape.centre - self.middle) / self.spread, shape.size / self.spread
        return replace(settings, shape=Shape(centre, size))

    def restored(self, settings: Settings) -> Settings:
        """Settings in this unit, in that of the values."""
        return Unit(-self.middle / self.spread, 1.0 / self.spread).settings(settings)

    def fixed(self, fixed: Fixed) -> Fixed:
        """What was given, in this unit."""
        noise, amplitude = fixed.noise_std, fixed.amplitude
        return replace(
            fixed,
            noise_std=None if noise is None else noise / self.spread,
            amplitude=None if amplitude is None else amplitude / self.spread,
        )


def unit_of(means: FloatArray) -> Unit:
    """The unit of values with these means, by their quartiles."""
    frame = frame_of(means)
    return Unit(0.0, 1.0) if frame is None else Unit(frame.middle, frame.spread)
