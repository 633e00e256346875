"""A cell's statistics: its posterior, how much data it has, and bounds that it inherited."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from partita._types import FloatArray
from partita.gp.posterior import Posterior

from .candidates import Layout


class Inherited(NamedTuple):
    """Bounds on f at the candidates of a cell, from the cells it came from, (m,) each."""

    ceiling: FloatArray
    floor: FloatArray

    def sharpened(self, other: Inherited | None) -> Inherited:
        """The smallest ceiling and the largest floor of the two: all hold together."""
        if other is None:
            return self
        return Inherited(
            np.minimum(self.ceiling, other.ceiling), np.maximum(self.floor, other.floor)
        )

    def matched(self, size: int, kept: npt.NDArray[np.int64] | None = None) -> Inherited:
        """Bounds for `size` candidates: those `kept`, or the first ones, then unbounded ones."""
        ceiling, floor = (bounds[:size] if kept is None else bounds[kept] for bounds in self)
        missing = np.full(size - len(ceiling), np.inf)
        return Inherited(np.append(ceiling, missing), np.append(floor, -missing))


class Cell:
    """A cell of the cover that has data or has been played. `Partition` writes it.

    Attributes
    ----------
    key, layout
        Which cell it is, and its candidates.
    posterior
        The posterior at the candidates, from the data inside the cell.
    quota
        With this many observations it may be due to split.
    count, distinct
        Observations, and points that have any.
    inherited
        Bounds from the cells it came from, if those are kept.
    """

    __slots__ = ("count", "distinct", "inherited", "key", "layout", "posterior", "quota")

    def __init__(self, layout: Layout, posterior: Posterior, quota: float) -> None:
        self.key = layout.key
        self.layout = layout
        self.posterior = posterior
        self.quota = quota
        self.count = 0
        self.distinct = 0
        self.inherited: Inherited | None = None
