"""Successive tightening: cells keep the bounds of the cells they were cut from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from partita._threads import one_thread
from partita._types import FloatArray, IntArray
from partita.gp.posterior import deviation, factorise, unit_kernel

from .cell import Cell, Inherited
from .partition import Partition
from .widths import Width, width_of


class SiteData(NamedTuple):
    """Weight of the values and their weighted sum at every site, (n,) each, at some time."""

    weights: FloatArray
    totals: FloatArray


class Moments(NamedTuple):
    """Mean and standard deviation at points, (n,) each, and the information gain of the data."""

    mean: FloatArray
    std: FloatArray
    gain: float


def hand_down(
    partition: Partition,
    width: Width,
    t: int,
    gone: list[Cell],
    heirs: list[Cell],
    before: SiteData | None,
) -> None:
    """Give the cells that replace others the bounds of those: all hold together.

    A cell that was laid out again by bulk data keeps what it had inherited. `before` is the data
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
    points = candidates.points(cell.layout)
    on_box = partition.lattice is not None
    if on_box:
        same = places_among(points, candidates.points(parent.layout))
    else:
        same = np.searchsorted(parent.layout.sites, cell.layout.sites)
    if parent.key != cell.key:
        last = parent.posterior
        mean, std, gain = (
            at_points(partition, parent, points, before)
            if on_box
            else Moments(last.mean[same], last.std[same], last.gain)
        )
        reach = width_of(width, gain, parent.key[0], t) * std
        partition.inherit(cell, Inherited(mean + reach, mean - reach))
    if parent.inherited is not None:
        ceiling = np.where(same >= 0, parent.inherited.ceiling[same], np.inf)
        floor = np.where(same >= 0, parent.inherited.floor[same], -np.inf)
        partition.inherit(cell, Inherited(ceiling, floor))


def at_points(
    partition: Partition, cell: Cell, scaled: FloatArray, told: SiteData | None = None
) -> Moments:
    """Moments at any scaled points (n, d) of a cell, exactly from its data.

    The data is all there is, or what was `told` at an earlier time.
    """
    from scipy.linalg import solve_triangular

    held = partition.data(cell).sites
    if told is None:
        weights, totals = partition.sites.weight_of(held), partition.sites.total[held]
    else:
        held = held[told.weights[held] > 0]
        weights, totals = told.weights[held], told.totals[held]
    if not len(held):
        return Moments(np.zeros(len(scaled)), np.ones(len(scaled)), 0.0)
    data = partition.kernel_points(partition.sites.scaled[held])
    where = partition.kernel_points(scaled)
    gram = unit_kernel(partition.kernel, data, data)
    across = unit_kernel(partition.kernel, data, where)
    with one_thread():
        factor, gain = factorise(gram, partition.alpha / weights)
        rows = solve_triangular(factor, across, lower=True)
        mean = solve_triangular(factor, totals / weights, lower=True) @ rows
    return Moments(mean, deviation(1.0 - (rows**2).sum(axis=0)), gain)


def places_among(points: FloatArray, others: FloatArray) -> IntArray:
    """Where each of the points (n, d) stands among others (m, d), exactly; -1 for nowhere, (n,)."""
    numbers = {row.tobytes(): j for j, row in enumerate(others)}
    return np.array([numbers.get(row.tobytes(), -1) for row in points], dtype=np.int64)
