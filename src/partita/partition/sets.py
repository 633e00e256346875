"""Bounds from a cell's whole confidence set, tighter than mean ± width · deviation.

With probability 1 − δ_A, at all times, f is in the set of all g with ‖g‖ ≤ B and ‖y − g‖² ≤ R²,
R² = yᵀ(I+K/α)⁻¹y + L²(2γ + 2 log(1/δ_A)), α the policy's regulariser: that is what `MixtureWidth`
is made from. Its own bounds follow from the sum of the two conditions, the first times α. So do
others, from any λ > 0 in the place of that α:

    |f(x) − μ_λ(x)| ≤ β_λ σ_λ(x),    β_λ² = B² + (R² − yᵀ(I+K/λ)⁻¹y)/λ,

with μ_λ and σ_λ the posterior of regulariser λ. All hold together, so the smallest does; the best λ
gives the largest f(x) in the set, by duality. Flynn & Reeb 2024, "Tighter confidence bounds for
sequential kernel regression". If β_λ² < 0 for some λ the set is empty: B or L is too small.

Observations at one point are one of their weighted mean ȳ: what they scatter around it is in R² and
in what is subtracted, and cancels.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from partita._threads import one_thread
from partita._types import FloatArray, IntArray
from partita.errors import NumericalError
from partita.gp.posterior import deviation, factorise, unit_kernel

from .cell import Cell
from .lattice import variation
from .partition import Partition
from .widths import Width

#: Regularisers λ that are tried, as multiples of the policy's.
RATIOS = (1.0, 1 / 16, 1 / 4, 4.0, 16.0)
#: The same where bounds have crossed, to find the least norm that fits the data: by duality some λ
#: shows that the set is empty, but it may be none of the above. It is larger than α, since
#: yᵀ(I+K/λ)⁻¹y, which grows with λ, must exceed R².
MANY_RATIOS = tuple(2.0**power for power in range(15))
#: What rounding may take from β_λ², as a part of yᵀ(I+K/α)⁻¹y/λ.
ROUNDING = 1e-9
#: Most distinct points of a cell whose set is computed: it takes their cube.
MOST_POINTS = 512
#: The same of a cell that never splits.
MOST_SINGLE = 1500
#: The number of sets that are kept until their cell has new data, and the most points of each: a
#: set of k points takes 40 k² bytes.
MOST_KEPT, MOST_KEPT_POINTS = 64, 96
#: How often the boxes of a cell are halved to find its highest bound, how many there may be at a
#: time, and the part of what their bounds differ by that is not worth looking at.
HALVINGS, MOST_BOXES, WORTH = 5, 2048, 0.1
#: How many there may be to find where the bound is highest.
FEW_BOXES = 256


class Interval(NamedTuple):
    """Bounds on f at points, (n,) each."""

    lower: FloatArray
    upper: FloatArray


class Boxes(NamedTuple):
    """Boxes of one size: their middles (n, d), how far they reach, upper bounds at the middles."""

    scaled: FloatArray
    reach: float
    values: FloatArray


class _Solved(NamedTuple):
    """The data of a cell under a regulariser.

    The inverse of its matrix' Cholesky factor, the values times that, and β_λ.
    """

    inverse: FloatArray
    values: FloatArray
    width: float


class CellSet:
    """The confidence set of one cell's data, as they are."""

    def __init__(
        self, partition: Partition, cell: Cell, sets: Sets, ratios: tuple[float, ...]
    ) -> None:
        held = partition.data(cell).sites
        weights, totals = partition.sites.weight_of(held), partition.sites.total[held]
        self._kernel, self._scale = partition.kernel, partition.candidates.scale
        self._norm_bound = sets.norm_bound
        corner = np.array(cell.key[1:], dtype=float)
        self._corners = corner / 2.0 ** cell.key[0], (corner + 1.0) / 2.0 ** cell.key[0]
        self._points = partition.kernel_points(partition.sites.scaled[held])
        gram = unit_kernel(partition.kernel, self._points, self._points)
        radius = 0.0
        #: The least norm of the functions that fit the data: the set is empty for a smaller B.
        self.least_norm = 0.0
        self._solved: list[_Solved] = []
        for ratio in ratios:
            regulariser = ratio * partition.alpha
            with suppress(NumericalError), one_thread():  # the smallest may be too small
                factor, gain = factorise(gram.copy(), regulariser / weights)
                inverse = _inverse(factor)
                values = inverse @ (totals / weights)
                fit = regulariser * float(values @ values)
                if not self._solved:
                    noise = 2.0 * sets.noise**2 * (gain + sets.share(cell))
                    radius = fit * (1.0 + ROUNDING) + noise
                needed = (fit - radius) / regulariser
                self.least_norm = max(self.least_norm, math.sqrt(max(needed, 0.0)))
                width = math.sqrt(max(sets.norm_bound**2 - needed, 0.0))
                self._solved.append(_Solved(inverse, values, width))
            if not self._solved:
                break  # the radius is that of the policy's own regulariser

    def __bool__(self) -> bool:
        return bool(self._solved)

    def at(self, scaled: FloatArray) -> Interval:
        """Bounds at scaled points (n, d) of the cell."""
        across = self._across(scaled)
        with one_thread():
            parts = [_interval(solved, across) for solved in self._solved]
        return Interval(
            np.max([part.lower for part in parts], axis=0),
            np.min([part.upper for part in parts], axis=0),
        )

    def highest(self, scaled: FloatArray) -> float:
        """The highest upper bound at scaled points (n, d)."""
        return float(self.at(scaled).upper.max())

    def highest_around(self, scaled: FloatArray, reach: float) -> float:
        """A bound on f on all boxes around scaled points (m, d), which reach that far each way.

        The bound on a box is that at its middle and what f can vary by, B√(2−2κ). Boxes whose
        bounds are the highest are halved along every side, so that less and less is added.
        """
        across = self._across(scaled)
        uppers = [_interval(solved, across).upper for solved in self._solved]
        best = min(range(len(uppers)), key=lambda i: float(uppers[i].max()))
        boxes, settled = Boxes(scaled, reach, uppers[best]), -math.inf
        whole = float(np.min(uppers, axis=0).max()) + self._slack(boxes)
        for _ in range(HALVINGS):
            bounds, low = boxes.values + self._slack(boxes), float(boxes.values.max())
            top = float(bounds.max())
            if top <= settled:
                break
            worth = max(settled, low + WORTH * (top - low))
            order = np.argsort(-bounds, kind="stable")
            most = MOST_BOXES >> scaled.shape[1]
            number = min(int((bounds > worth).sum()), most)
            if number < len(order):
                settled = max(settled, float(bounds[order[number]]))
            if not number:  # what halving could gain is lost in rounding
                break
            boxes = self._halved(boxes, order[:number], best)
        else:
            settled = max(settled, float(boxes.values.max()) + self._slack(boxes))
        return min(whole, settled)

    def peak(self, scaled: FloatArray, reach: float, values: FloatArray) -> FloatArray:
        """Where the upper bound is highest, as far as a search of a few boxes finds it, (d,).

        `values` are the upper bounds at the points (m, d) that it begins at.
        """
        boxes = Boxes(scaled, reach, values)
        top = boxes
        for _ in range(HALVINGS):
            order = np.argsort(-boxes.values, kind="stable")
            boxes = self._halved(boxes, order[: max(1, FEW_BOXES >> scaled.shape[1])], 0)
            if float(boxes.values.max()) > float(top.values.max()):
                top = boxes
        return np.asarray(top.scaled[int(np.argmax(top.values))])

    def _across(self, scaled: FloatArray) -> FloatArray:
        """The kernel between the data and scaled points (n, d), (k, n)."""
        return unit_kernel(self._kernel, self._points, scaled * self._scale)

    def _slack(self, boxes: Boxes) -> float:
        """What f can vary by between the middle of a box and its corners."""
        return variation(self._kernel, self._norm_bound, boxes.reach * self._scale)

    def _halved(self, boxes: Boxes, chosen: IntArray, number: int) -> Boxes:
        """The 2^d parts of chosen boxes, with bounds under one of the regularisers."""
        lower, upper = self._corners
        reach = boxes.reach / 2
        scaled = boxes.scaled[chosen, None, :] + reach * _corners(len(lower))
        scaled = scaled.reshape(-1, len(lower))
        scaled = scaled[((scaled >= lower) & (scaled <= upper)).all(axis=1)]
        return Boxes(scaled, reach, _interval(self._solved[number], self._across(scaled)).upper)


def _inverse(factor: FloatArray) -> FloatArray:
    """The inverse of a lower triangular matrix (k, k)."""
    from scipy.linalg.lapack import dtrtri

    inverse, failed = dtrtri(factor, lower=1)
    assert not failed  # the diagonal of a Cholesky factor has no zeros
    return np.ascontiguousarray(inverse)


def _interval(solved: _Solved, across: FloatArray) -> Interval:
    """Bounds under one regulariser, from the kernel between data and points, (k, n)."""
    with one_thread():
        rows = solved.inverse @ across
        mean = solved.values @ rows
    reach = solved.width * deviation(1.0 - np.einsum("ij,ij->j", rows, rows))
    return Interval(mean - reach, mean + reach)


def _corners(dim: int) -> FloatArray:
    """The corners of the cube [−1, 1]^d, (2^d, d)."""
    return np.stack(np.meshgrid(*[[-1.0, 1.0]] * dim, indexing="ij"), axis=-1).reshape(-1, dim)


class Found(NamedTuple):
    """The highest bound on f in a cell of that many values, and the least norm that fits them."""

    values: int
    highest: float
    least_norm: float


class Sets:
    """The confidence sets of all cells of a partition, and the highest bound in each."""

    def __init__(
        self, partition: Partition, width: Width, norm_bound: float, sub_gaussian: float
    ) -> None:
        self._partition, self._width = partition, width
        self.norm_bound, self.noise = norm_bound, sub_gaussian
        self._most_points = MOST_SINGLE if partition.rule.never else MOST_POINTS
        #: By cell, what was found of its set, and the observations that it had then.
        self._found: dict[Cell, Found] = {}
        #: The sets used last, the latest at the end, with the observations that the cell had then.
        self._kept: dict[Cell, tuple[int, CellSet]] = {}
        #: The least norm that fits the data of the cells looked at since this was set to 0.
        self.least_norm = 0.0
        self._needed, self._needed_at = 0.0, 0

    def share(self, cell: Cell) -> float:
        """log(1/δ_A) of a cell."""
        share = self._width.log_inverse_delta(cell.key[0])
        assert share is not None
        return share

    def of(self, cell: Cell) -> CellSet | None:
        """The set of a cell, if it has data, not too much, and rounding leaves it standing."""
        if not 0 < cell.distinct <= self._most_points:
            return None
        count, own = self._kept.pop(cell, (0, None))
        if own is None or count != cell.count:
            own = CellSet(self._partition, cell, self, RATIOS)
        if cell.distinct <= MOST_KEPT_POINTS:
            self._kept[cell] = (cell.count, own)
            if len(self._kept) > MOST_KEPT:
                del self._kept[next(iter(self._kept))]
        self.least_norm = max(self.least_norm, own.least_norm)
        return own or None

    def highest(self, cell: Cell) -> float:
        """A bound on f over a whole cell, at all of its points if it is one of a box."""
        found = self._found.get(cell)
        if found is None or found.values != cell.count:
            own = self.of(cell)
            highest = math.inf if own is None else self._highest_of(own, cell)
            found = Found(cell.count, highest, 0.0 if own is None else own.least_norm)
            self._found[cell] = found
        self.least_norm = max(self.least_norm, found.least_norm)
        return found.highest

    def needed(self) -> float:
        """The least norm that fits the data of every cell, by many regularisers.

        Cells are fitted again, so it is for when something is wrong already.
        """
        cells = self._partition.leaves.values()
        count = sum(cell.count for cell in cells)
        if count != self._needed_at:
            self._needed, self._needed_at = 0.0, count
            for cell in cells:
                if 0 < cell.distinct <= self._most_points:
                    own = CellSet(self._partition, cell, self, MANY_RATIOS)
                    self._needed = max(self._needed, own.least_norm)
        return self._needed

    def forget(self, cell: Cell) -> None:
        """Forget a cell that is gone."""
        self._found.pop(cell, None)
        self._kept.pop(cell, None)

    def _highest_of(self, own: CellSet, cell: Cell) -> float:
        lattice = self._partition.lattice
        if lattice is None:
            return own.highest(self._partition.candidates.points(cell.layout))
        points, reach = lattice.points(cell.key), lattice.reach / 2.0 ** cell.key[0]
        if not lattice.closed:  # a quasi-random set: all is near its middle
            scale = self._partition.candidates.scale
            slack = variation(self._partition.kernel, self.norm_bound, reach * scale)
            return own.highest(points) + slack
        return own.highest_around(points, reach)

    def peak(self, cell: Cell, width: float) -> FloatArray | None:
        """The scaled point of a cell of a box with the highest upper bound found, (d,)."""
        lattice = self._partition.lattice
        if lattice is None or not 0 < cell.distinct <= self._most_points:
            return None
        own = CellSet(self._partition, cell, self, RATIOS[:1])
        if not own:
            return None
        size, posterior = len(lattice.offsets), cell.posterior
        values = posterior.mean[:size] + width * posterior.std[:size]
        return own.peak(lattice.points(cell.key), lattice.reach / 2.0 ** cell.key[0], values)
