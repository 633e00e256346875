"""A domain with mixed parameters: points of the unit cube that are valid and feasible."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, final

import numpy as np
import numpy.typing as npt

from partita._checks import as_rows, point_text, row_text
from partita._types import BoolArray, FloatArray
from partita.errors import InvalidInput

from .domains import TOLERANCE, Domain


class Rules(Protocol):
    """The rules of a `Mixed` domain, for rows (k, D) of the unit cube. A `Space` has them."""

    @property
    def dim(self) -> int:
        """D, the number of coordinates."""

    @property
    def choices(self) -> tuple[tuple[int, int], ...]:
        """The first coordinate of each choice, and the one after its last."""

    def gaps(self, units: FloatArray) -> FloatArray:
        """How far the next value of each coordinate is from valid points; 0 for real numbers."""

    def snap(self, units: FloatArray) -> FloatArray:
        """The nearest valid points."""

    def spread(self, units: FloatArray) -> FloatArray:
        """Map uniform rows to valid points, all values with the same probability."""

    def stir(self, random: np.random.Generator, units: FloatArray, scale: FloatArray) -> FloatArray:
        """Rows near valid points, some parameters moved by about `scale` (k, D); to be snapped."""

    def feasible(self, units: FloatArray) -> BoolArray:
        """Which valid points may be evaluated, (k,)."""


@final
class Mixed(Domain):
    """The valid points of [0, 1]^D, by the steps and choices of a space, and its constraint.

    Policies that support it draw candidates with `snap` and keep those that `mask` allows.
    """

    finite: ClassVar[bool] = False

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.dim = rules.dim
        self.lower, self.upper = np.zeros(self.dim), np.ones(self.dim)
        self.lower.flags.writeable = self.upper.flags.writeable = False

    def snap(self, units: FloatArray) -> FloatArray:
        """The nearest valid points to rows (k, D), ignoring the constraint."""
        return self.rules.snap(units)

    def spread(self, units: FloatArray) -> FloatArray:
        """Map uniform rows (k, D) to valid points, all values with the same probability."""
        return self.rules.spread(units)

    def mask(self, units: FloatArray) -> BoolArray:
        """Which valid points (k, D) the constraint allows, (k,)."""
        return self.rules.feasible(units)

    def check(self, X: npt.ArrayLike) -> FloatArray:
        """`X` as (k, D) valid points, up to rounding errors of 1e−9; an error for other points.

        The constraint is not checked here: see `mask`.
        """
        rows = as_rows(X, "X", self.dim)
        snapped = self.snap(rows)
        far = np.flatnonzero((np.abs(rows - snapped) > TOLERANCE).any(axis=1))
        if len(far):
            i = int(far[0])
            raise InvalidInput(
                f"{row_text(rows, i)} is not a valid point: the nearest is "
                f"{point_text(snapped[i])}. Give points that ask() or Space.encode returned"
            )
        return snapped

    def to_unit(self, X: npt.ArrayLike) -> FloatArray:
        """The points (k, D) themselves: they are already in the unit cube."""
        return np.clip(as_rows(X, "X", self.dim), 0.0, 1.0)

    def from_unit(self, U: npt.ArrayLike) -> FloatArray:
        """The points (k, D) themselves."""
        return np.array(as_rows(U, "U", self.dim))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mixed):
            return NotImplemented
        return self.rules == other.rules

    def __hash__(self) -> int:
        return hash((Mixed, self.rules))

    def __repr__(self) -> str:
        return f"Mixed({self.rules!r})"

    def _arguments(self) -> tuple[Any, ...]:
        return (self.rules,)
