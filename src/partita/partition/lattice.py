"""Candidates of a cell of a box: a lattice with both faces, or in many dimensions a Sobol' set.

Offsets within a cell are dyadic fractions, so scaled coordinates are exact at every level, and a
point on a shared face is the same for both cells. A child's lattice contains the parent's points
that are in it; a Sobol' set does not. Deviates: Sobol' sets begin at five dimensions, where a
lattice of three points a side puts a point in thirteen cells on average.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from partita._types import FloatArray
from partita.errors import InvalidInput
from partita.model.kernels import Matern
from partita.model.sobol import MOST, sobol

from .cover import CellKey

#: Lattice points a side, one more than a power of two, by dimension; a quasi-random set beyond.
POINTS_PER_SIDE = {1: 17, 2: 9, 3: 5, 4: 3}
#: Size of the quasi-random set, the cell's centre included.
QUASI_RANDOM_POINTS = 128
#: What rounding of a kernel value can take away under the root of the slack.
ROUNDING = 1e-15
#: Quasi-random offsets are rounded to this many binary places.
QUASI_RANDOM_BITS = 16


@dataclass(frozen=True, eq=False)
class Lattice:
    """Candidates of a cell, as offsets (m, d) in [0, 1] of its side."""

    offsets: FloatArray
    reach: float  # every point of the cell is this close to a candidate in each dimension, in sides
    closed: bool  # whether a point on a shared face is data of every cell that touches it

    def points(self, key: CellKey) -> FloatArray:
        """Scaled coordinates of a cell's candidates, (m, d)."""
        return (np.array(key[1:], dtype=float) + self.offsets) / float(2 ** key[0])

    def slack(self, kernel: Matern, norm_bound: float, side: float) -> float:
        """How much f can exceed its values at the candidates of a cell: s_A = B √(2 − 2κ).

        By Cauchy–Schwarz, |f(x) − f(x')| ≤ B ‖k(x,·) − k(x',·)‖ = B √(2 − 2k(x, x')).
        """
        scales = kernel.scales(self.offsets.shape[1])
        return variation(kernel, norm_bound, self.reach * side / scales)


def variation(kernel: Matern, norm_bound: float, away: FloatArray) -> float:
    """How much f can vary between points that differ by `away` (d,), in lengthscales."""
    similarity = float(kernel.radial(np.array([math.hypot(*away.tolist())]))[0])
    return norm_bound * math.sqrt(2.0 * (1.0 - similarity) + ROUNDING)


def regular(dim: int, per_side: int) -> Lattice:
    """A lattice of `per_side` points a side, faces included, one more than a power of two."""
    steps = per_side - 1
    if steps < 1 or steps & (steps - 1):
        raise AssertionError(f"{per_side} points a side do not nest")
    axes = np.meshgrid(*[np.arange(per_side) / steps] * dim, indexing="ij")
    return Lattice(np.stack([a.ravel() for a in axes], axis=1), 0.5 / steps, closed=True)


def quasi_random(dim: int) -> Lattice:
    """The cell's centre and the first points of a Sobol' sequence, all inside the cell.

    Every point lies within half a diagonal of the centre. Deviates: a told point on a face that
    cells share is data of one of them only (`cover.Geometry`), since 2^d cells can meet there.
    """
    if dim > MOST:
        raise InvalidInput(
            f"the box has {dim} dimensions, but this policy supports boxes of at most "
            f"{MOST:,}. Leave out parameters that matter little, or use "
            "UniformSampling."
        )
    steps = float(2**QUASI_RANDOM_BITS)
    raw = sobol(dim, QUASI_RANDOM_POINTS, bits=QUASI_RANDOM_BITS)
    raw[0] = 0.5  # the sequence begins at the lower corner, which the centre replaces
    raw = np.unique((np.floor(raw * steps) + 0.5 * (raw != 0.5)) / steps, axis=0)
    return Lattice(raw, 0.5, closed=False)


def default(dim: int) -> Lattice:
    """The lattice that the policies use in this many dimensions."""
    if dim in POINTS_PER_SIDE:
        return regular(dim, POINTS_PER_SIDE[dim])
    return quasi_random(dim)


def whole(dim: int, target: int) -> Lattice:
    """A lattice for a cell that never splits: as fine as `target` points allow."""
    steps = 2
    while (2 * steps + 1) ** dim <= target:
        steps *= 2
    return regular(dim, steps + 1) if (steps + 1) ** dim <= target else quasi_random(dim)
