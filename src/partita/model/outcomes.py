"""What the mean of a function can be, such as 0 to 1 for an accuracy, and what follows from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np

from partita._checks import as_number
from partita._types import FloatArray, Prediction, Recommendation
from partita.errors import InvalidInput, warn_theory

from .noise import Bernoulli, Bounded, Uniform

#: Excess over an end, relative to the ends, that counts as a rounding error.
ROUNDING = 1e-9


class Interval(NamedTuple):
    """Two ends; infinite ones limit nothing."""

    low: float
    high: float


@final
@dataclass(frozen=True)
class Outcomes:
    """An interval that contains f everywhere. It says nothing of single noisy values.

    Parameters
    ----------
    low, high
        The ends; an infinite one is not known.
    """

    low: float
    high: float

    @classmethod
    def of(cls, given: Any) -> Outcomes | None:
        """The pair (low, high) that a user gave, checked; None if neither end is known."""
        if given is None or isinstance(given, Outcomes):
            return given
        if not isinstance(given, tuple | list | np.ndarray) or len(given) != 2:
            raise InvalidInput(
                f"outcomes={given!r}: give a pair (low, high) that the function's mean lies in, "
                "such as (0, 1) for an accuracy; None for an end that is not known"
            )
        low, high = (
            end if ends is None else as_number(ends)
            for ends, end in zip(given, (-math.inf, math.inf), strict=True)
        )
        if not low < high:  # also if one is NaN
            raise InvalidInput(
                f"outcomes={given!r} is not a valid range: give two numbers (low, high) with "
                "low < high; None for an end that is not known"
            )
        return None if math.isinf(low) and math.isinf(high) else cls(low, high)

    @property
    def pair(self) -> list[float | None]:
        """The ends, with None for one that is not known, as JSON has them."""
        return [None if math.isinf(end) else end for end in (self.low, self.high)]

    @property
    def negated(self) -> Outcomes:
        """What −f can be."""
        return Outcomes(-self.high, -self.low)

    def __str__(self) -> str:
        low, high = ("None" if end is None else f"{end:g}" for end in self.pair)
        return f"({low}, {high})"

    # -- values --------------------------------------------------------------------------------

    def check_assumptions(self, noise: object, norm_bound: float | None = None) -> None:
        """Refuse outcomes that the noise model or the norm bound rules out altogether."""
        if isinstance(noise, Bernoulli) and (self.low >= 1.0 or self.high <= 0.0):
            raise InvalidInput(
                f"outcomes={self}, but the mean of Bernoulli values lies between 0 and 1: give "
                "outcomes that overlap with these, or another noise model"
            )
        if norm_bound is not None and (self.low > norm_bound or self.high < -norm_bound):
            raise InvalidInput(
                f"outcomes={self}, but norm_bound={norm_bound:g} says that f lies between "
                f"{-norm_bound:g} and {norm_bound:g}: give a larger norm_bound, or subtract a "
                "constant from the values and the outcomes"
            )

    def check(self, value: float, std: float | None, noise: object, verb: str) -> None:
        """Refuse a value that cannot be observed where f lies in here; `verb` is for the error.

        Noise takes values out of the interval, so only noise that is bounded, or a `std` of 0, can
        rule a value out.
        """
        least, most = self._observed(std, noise)
        rounding = ROUNDING * max(abs(end) for end in (least, most, 0.0) if math.isfinite(end))
        if least - rounding <= value <= most + rounding:
            return
        why = "and std=0 says that it is exact" if std == 0 else f"and the noise is {noise!r}"
        raise InvalidInput(
            f"{verb}: the value {value!r} cannot be, if the function's mean lies in "
            f"outcomes={self} {why}: then values lie between {least:g} and {most:g}. Give wider "
            "outcomes or another noise, or cancel the trial if its evaluation failed"
        )

    def check_all(self, values: Any, stds: Any, noise: object, verb: str) -> None:
        """Check one value, or each of several; what is not a number is for others to refuse."""
        try:
            many = np.asarray(values, dtype=float).ravel()
            noises = None if stds is None else np.broadcast_to(np.asarray(stds, float), many.shape)
        except (TypeError, ValueError):
            return
        for i in np.flatnonzero(np.isfinite(many)).tolist():
            self.check(float(many[i]), None if noises is None else float(noises[i]), noise, verb)

    def _observed(self, std: float | None, noise: object) -> Interval:
        """The interval of values that can be observed."""
        if std is not None:  # then the noise is the value's own, not the model's
            return Interval(self.low, self.high) if std == 0 else Interval(-math.inf, math.inf)
        if isinstance(noise, Bernoulli):
            return Interval(0.0, 1.0)
        if isinstance(noise, Uniform):
            return Interval(self.low + noise.low, self.high + noise.high)
        if isinstance(noise, Bounded):
            # Its ends are those of every observation, or of every error: either may be meant.
            low, high = noise.low, noise.high
            if low <= 0.0 <= high:
                low, high = min(low, self.low + low), max(high, self.high + high)
            return Interval(low, high)
        return Interval(-math.inf, math.inf)

    # -- answers -------------------------------------------------------------------------------

    def limited(self, best: Recommendation, proven: bool) -> Recommendation:
        """A recommendation with its mean and bounds within the ends: see `prediction`."""
        row = (np.array([number]) for number in (best.mean, 0.0, best.lower, best.upper))
        mean, _, lower, upper = self.prediction(Prediction(*row), proven)
        return Recommendation(best.x, float(mean[0]), float(lower[0]), float(upper[0]))

    def prediction(self, posterior: Prediction, proven: bool) -> Prediction:
        """A posterior (n,) with means and bounds within the ends.

        Where bounds lie beyond an end altogether, proven ones are contradicted, and left crossed
        to show it. Estimates are moved to that end, and are as wide as before: an interval of no
        width would say more than is known.
        """
        mean, std, lower, upper = posterior
        low, high = self.low, self.high
        least, most = np.maximum(lower, low), np.minimum(upper, high)
        if not proven:
            with np.errstate(invalid="ignore"):  # infinity less infinity, which is not used
                width = upper - lower
                moved_down, moved_up = high - width, low + width
            least = _where(lower > high, np.maximum(moved_down, low), least)
            most = _where(upper < low, np.minimum(moved_up, high), most)
        return Prediction(np.clip(mean, low, high), std, least, most)

    def certificate(self, certificate: float, best: Recommendation, proven: bool) -> float:
        """A certificate of maximisation, at most what the ends leave above the recommended point.

        Parameters
        ----------
        certificate
            The policy's own; infinite if it has none.
        best
            The recommendation, with bounds that are not limited yet.
        proven
            Whether a contradiction between the bounds and the ends makes it infinite.
        """
        if math.isinf(certificate):
            # Bounds of a policy without a certificate are not relied on: f is within the ends.
            return certificate if proven else self.high - self.low
        rounding = ROUNDING * (abs(best.lower) + abs(best.upper))
        if proven and (best.lower > self.high + rounding or best.upper < self.low - rounding):
            warn_theory(
                f"bounds on f at the recommended point, {best.lower:g} to {best.upper:g}, lie "
                f"outside outcomes={self}: the outcomes, norm_bound or the noise constant are too "
                "small for this function, so the bounds do not hold. Give larger ones."
            )
            return math.inf
        return max(0.0, min(certificate, self.high - self.limited(best, proven).lower))


def _where(condition: Any, then: FloatArray, otherwise: FloatArray) -> FloatArray:
    return np.asarray(np.where(condition, then, otherwise))
