"""A cell's statistics: its posterior, how much data it has, and bounds that it inherited."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from partita._state import Saved, State, joined
from partita._types import FloatArray
from partita.gp.posterior import DensePosterior, Posterior, Prior, dense_state, restore_dense
from partita.gp.rows import RowPosterior

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
    """A cell of the cover that has data or has been evaluated. `Partition` writes it.

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


def cells_state(cells: list[Cell]) -> State:
    """Posteriors and inherited bounds of cells, as plain data in arrays for all of them."""
    posteriors = [cell.posterior for cell in cells]
    inherited = [cell.inherited for cell in cells if cell.inherited is not None]
    return {
        "is_dense": np.array([isinstance(p, DensePosterior) for p in posteriors], dtype=bool),
        "dense": dense_state([p for p in posteriors if isinstance(p, DensePosterior)]),
        "by_rows": [p.state() for p in posteriors if isinstance(p, RowPosterior)],
        "inherits": np.array([cell.inherited is not None for cell in cells], dtype=bool),
        "ceiling": joined(bounds.ceiling for bounds in inherited),
        "floor": joined(bounds.floor for bounds in inherited),
    }


def restore_cells(saved: Saved, cells: list[Cell], prior: Callable[[Cell], Prior]) -> None:
    """Put posteriors and inherited bounds of cells, whose layouts are there, into a saved state.

    `prior(cell)` is the kernel between its candidates.
    """
    posteriors = [cell.posterior for cell in cells]
    dense = [p for p in posteriors if isinstance(p, DensePosterior)]
    sizes = [len(cell.layout.sites) for cell in cells]
    kinds = [isinstance(p, DensePosterior) for p in posteriors]
    restore_dense(
        saved.part("dense"), dense, [m for m, kind in zip(sizes, kinds, strict=True) if kind]
    )
    by_rows = [cell for cell, kind in zip(cells, kinds, strict=True) if not kind]
    states = saved.parts("by_rows", len(by_rows))
    saved.require(len(states) == len(by_rows), "a state for each posterior by rows")
    for cell, state in zip(by_rows, states, strict=True):
        if isinstance(cell.posterior, RowPosterior) and state is not None:
            cell.posterior.restore(state, prior(cell))
    inherits = saved.flags("inherits", (len(cells),)).tolist()
    heirs = [cell for cell, has in zip(cells, inherits, strict=True) if has]
    ends = np.cumsum([len(cell.layout.sites) for cell in heirs], dtype=np.int64)
    shape = (int(ends[-1]) if heirs else 0,)
    ceiling = np.split(saved.floats("ceiling", shape, high=np.inf), ends[:-1])
    floor = np.split(saved.floats("floor", shape, low=-np.inf), ends[:-1])
    for cell, upper, lower in zip(heirs, ceiling, floor, strict=False):
        cell.inherited = Inherited(upper.copy(), lower.copy())
