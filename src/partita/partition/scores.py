"""What the engine's choice maximises over the candidates of a cell."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from partita._state import Saved, State
from partita._types import FloatArray

from .cell import Cell
from .widths import Width, width_of


class Scores(NamedTuple):
    """The candidates of a cell score mean + β(gain) · std."""

    mean: FloatArray
    std: FloatArray
    gain: float


class Scorer(Protocol):
    """How a policy scores the candidates of a cell."""

    #: How many cells that did not change are scored again at each step; None for all.
    redraws: int | None

    def scores(self, cell: Cell, std: FloatArray, t: int) -> Scores:
        """Scores of a cell for the choice of the t-th point.

        `std` (m,) counts pending evaluations as if they had been observed.
        """
        ...

    def forget(self, cell: Cell) -> None:
        """Forget what is kept for a cell that is gone."""
        ...

    def state(self) -> State:
        """What changes, as plain data."""
        ...

    def restore(self, saved: Saved) -> None:
        """Restore a saved state."""
        ...


class _Stateless:
    """A scorer that keeps nothing."""

    def forget(self, cell: Cell) -> None:
        """Nothing is kept."""

    def state(self) -> State:
        """Nothing changes."""
        return {}

    def restore(self, saved: Saved) -> None:
        """Nothing changes."""


class UpperBounds(_Stateless):
    """μ + βσ, the standard deviation lowered by pending evaluations."""

    redraws: int | None = 0

    def scores(self, cell: Cell, std: FloatArray, t: int) -> Scores:
        """Moments as they are: the table computes the width."""
        return Scores(cell.posterior.mean, std, cell.posterior.gain)


class TightenedBounds(_Stateless):
    """μ + βσ, or the smallest bound that the cell inherited if that is less.

    Needs a width that does not depend on t: scores are computed when a cell changes.
    """

    redraws: int | None = 0

    def __init__(self, width: Width) -> None:
        self._width = width

    def scores(self, cell: Cell, std: FloatArray, t: int) -> Scores:
        """The bounds themselves, with no width left to add."""
        posterior = cell.posterior
        if cell.inherited is None:
            return Scores(posterior.mean, std, posterior.gain)
        upper = posterior.mean + width_of(self._width, posterior.gain, cell.key[0], t) * std
        return Scores(np.minimum(upper, cell.inherited.ceiling), np.zeros(len(upper)), 0.0)
