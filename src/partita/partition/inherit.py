"""Successive tightening: cells keep the bounds of the cells they were cut from."""

from __future__ import annotations

import numpy as np

from partita._threads import one_thread
from partita._types import FloatArray, IntArray
from partita.gp.posterior import deviation, factorise, unit_kernel

from .candidates import Cell
from .partition import Partition
from .widths import Width, width_of

#: Count and sum of the values of every site, at some time.
SiteData = tuple[IntArray, FloatArray]


def hand_down(
    partition: Partition,
    width: Width,
    t: int,
    gone: list[Cell],
    heirs: list[Cell],
    before: SiteData | None,
) -> None:
    """Give the cells that replace others the bounds of those: all hold together.

    A cell that was laid out anew by bulk data keeps what it had inherited. `before` is the data
    that the cells which are gone knew, if that is not all there is.
    """
    parents = {cell.key: cell for cell in gone}
    for cell in heirs:
        key = cell.key
        while key not in parents and key[0] > 0:
            key = (key[0] - 1, *(c >> 1 for c in key[1:]))
        parent = parents.get(key)
        if parent is not None and parent is not cell:
            _inherit(partition, width, t, cell, parent, before)


def _inherit(
    partition: Partition,
    width: Width,
    t: int,
    cell: Cell,
    parent: Cell,
    before: SiteData | None,
) -> None:
    candidates = partition.candidates
    points = candidates.points(cell)
    on_box = partition.lattice is not None
    if on_box:
        same = places_among(points, candidates.points(parent))
    else:
        same = np.searchsorted(parent.sites, cell.sites)
    if parent.key != cell.key:
        known = parent.posterior
        mean, std, gain = (
            at_points(partition, parent, points, before)
            if on_box
            else (known.mean[same], known.std[same], known.gain)
        )
        reach = width_of(width, gain, parent.key[0], t) * std
        cell.inherit(mean + reach, mean - reach)
    if parent.ceiling is not None and parent.floor is not None:
        cell.inherit(
            np.where(same >= 0, parent.ceiling[same], np.inf),
            np.where(same >= 0, parent.floor[same], -np.inf),
        )


def at_points(
    partition: Partition, cell: Cell, scaled: FloatArray, told: SiteData | None = None
) -> tuple[FloatArray, FloatArray, float]:
    """Mean and deviation at any scaled points of a cell, exactly from its data, and γ.

    The data is all there is, or what was `told` at an earlier time.
    """
    from scipy.linalg import solve_triangular

    count, total = (partition.sites.count, partition.sites.total) if told is None else told
    _, held = partition.data(cell)
    held = held[count[held] > 0]
    if not len(held):
        return np.zeros(len(scaled)), np.ones(len(scaled)), 0.0
    counts = count[held]
    data = partition.kernel_points(partition.sites.scaled[held])
    where = partition.kernel_points(scaled)
    gram = unit_kernel(partition.kernel, data, data)
    across = unit_kernel(partition.kernel, data, where)
    with one_thread():
        factor, gain = factorise(gram, partition.alpha / counts)
        rows = solve_triangular(factor, across, lower=True)
        weights = solve_triangular(factor, total[held] / counts, lower=True)
        mean = weights @ rows
    return mean, deviation(1.0 - (rows**2).sum(axis=0)), gain


def places_among(points: FloatArray, others: FloatArray) -> IntArray:
    """Where each of the points (n, d) stands among others (m, d), exactly; -1 for nowhere, (n,)."""
    numbers = {row.tobytes(): j for j, row in enumerate(others)}
    return np.array([numbers.get(row.tobytes(), -1) for row in points], dtype=np.int64)
