"""How many values at one site a partition can take at once, until a cell of the site splits."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from partita._threads import one_thread
from partita.gp.posterior import factorise

from .cell import Cell
from .partition import Partition


def values_until_split(partition: Partition, site: int, most: int) -> int:
    """The number of values at a site after which a cell splits, if told one by one, or `most`.

    k values at a point of posterior variance v add ½ log(1 + kv/α) to the information gain of a
    cell, so that the moment of a split is known beforehand.
    """
    rule, first = partition.rule, partition.sites.count[site] == 0
    for cell, j in partition.cells_at(site):
        if cell.count + most < cell.quota:
            continue
        if j < 0 and first:
            return 1  # it becomes a point of the cell
        variance = float(cell.posterior.std[j]) ** 2 if j >= 0 else _variance(partition, cell, site)
        level, distinct = cell.key[0], cell.distinct + int(first)

        def due(
            k: int,
            cell: Cell = cell,
            rate: float = variance / partition.alpha,
            level: int = level,
            distinct: int = distinct,
        ) -> bool:
            gain = cell.posterior.gain + 0.5 * math.log1p(k * rate)
            return rule.due(level, cell.count + k, gain, distinct)

        if due(most):
            most = _first(due, most)
    return most


def _first(due: Callable[[int], bool], most: int) -> int:
    """The least k from 1 to `most` for which `due` holds: it stays so once it does."""
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        if due(middle):
            high = middle
        else:
            low = middle + 1
    return high


def _variance(partition: Partition, cell: Cell, site: int) -> float:
    """Posterior variance at a site with data that is no candidate of the cell.

    With noise variance n at it, it is n − n² [(K + N)⁻¹] there.
    """
    from scipy.linalg import solve_triangular

    where, held = partition.data(cell)
    noises = partition.alpha / partition.sites.weight_of(held)
    gram, _ = partition.candidates.prior(cell.layout).data(where, across=False)
    own = (held == site).astype(float)
    with one_thread():
        factor, _ = factorise(gram, noises)
        column = solve_triangular(factor, own, lower=True)
    noise = float(noises[np.argmax(own)])
    return max(noise - noise**2 * float(column @ column), 0.0)
