"""Compiled loops of the cells: priorities, children, the best candidate, and the table of cells.

Plain functions on arrays and scalars, as in `partita.gp._loops`. Each row of the table
(`index.Table`) is a cell: numbers[row] = gain, constant, addend, bound; places[row] = start, size,
choice, position in the heap or -1; the heap of rows is places[:count, HEAP]. Where indices drift,
the candidates of a row are kept as moments[:, start:start+size] (mean, std) and priority; start is
-1 where they are not.
"""

from __future__ import annotations

import math

import numpy as np

from partita._compiled import compiled

GAIN, CONSTANT, ADDEND, BOUND = 0, 1, 2, 3
START, SIZE, CHOICE, POSITION, HEAP = 0, 1, 2, 3, 4

_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)


@compiled
def _mix(state, word):
    """Fold one 64-bit word into a hash state (the finaliser of splitmix64)."""
    z = (state ^ word) + _GOLDEN
    z = (z ^ (z >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    return z ^ (z >> _S31)


@compiled
def hash_rows(seed, words):
    """Hash each row of `words` (n, w) uint64 under `seed`, (n,) uint64: priorities for ties."""
    n, width = words.shape
    out = np.empty(n, np.uint64)
    for i in range(n):
        state = seed
        for c in range(width):
            state = _mix(state, words[i, c])
        out[i] = state
    return out


@compiled
def scatter_children(offsets):
    """Which of the 2^d children each point is in, given its offset in units of child sides.

    `offsets` (n, d) is in [0, 2]; child bit c is 1 for the upper half of dimension c. A point on
    the dividing plane (offset exactly 1) is in both halves. Returns (codes, rows), one entry for
    each membership, rows ascending.
    """
    n, d = offsets.shape
    total = 0
    for i in range(n):
        copies = 1
        for c in range(d):
            if offsets[i, c] == 1.0:
                copies *= 2
        total += copies
    codes = np.empty(total, np.int64)
    rows = np.empty(total, np.int64)
    at = 0
    for i in range(n):
        codes[at] = 0
        copies = 1
        for c in range(d):
            if offsets[i, c] == 1.0:
                for e in range(copies):
                    codes[at + copies + e] = codes[at + e] | (1 << c)
                copies *= 2
            elif offsets[i, c] > 1.0:
                for e in range(copies):
                    codes[at + e] |= 1 << c
        for e in range(copies):
            rows[at + e] = i
        at += copies
    return codes, rows


@compiled
def best_upper(mean, std, priority, width, resolution):
    """Highest μ + width·σ after rounding to multiples of 1/resolution, ties to the lowest priority.

    Returns (the rounded value, its candidate, that candidate's priority). With −width: the best
    lower bound.
    """
    top = -np.inf
    choice = 0
    for i in range(mean.shape[0]):
        value = np.rint((mean[i] + width * std[i]) * resolution)
        if value > top or (value == top and priority[i] < priority[choice]):
            top = value
            choice = i
    return top / resolution, choice, priority[choice]


@compiled
def _before(numbers, ties, a, b):
    """Whether row a comes before b: higher bound, then lower priority, then lower row."""
    if numbers[a, BOUND] != numbers[b, BOUND]:
        return numbers[a, BOUND] > numbers[b, BOUND]
    if ties[a] != ties[b]:
        return ties[a] < ties[b]
    return a < b


@compiled
def _sift_up(numbers, places, ties, heap, at):
    row = heap[at]
    while at > 0:
        parent = (at - 1) >> 1
        if not _before(numbers, ties, row, heap[parent]):
            break
        heap[at] = heap[parent]
        places[heap[at], POSITION] = at
        at = parent
    heap[at] = row
    places[row, POSITION] = at
    return at


@compiled
def _sift_down(numbers, places, ties, heap, at, count):
    row = heap[at]
    while True:
        child = 2 * at + 1
        if child >= count:
            break
        if child + 1 < count and _before(numbers, ties, heap[child + 1], heap[child]):
            child += 1
        if not _before(numbers, ties, heap[child], row):
            break
        heap[at] = heap[child]
        places[heap[at], POSITION] = at
        at = child
    heap[at] = row
    places[row, POSITION] = at


@compiled
def table_enter(
    numbers,
    places,
    ties,
    count,
    moments,
    row,
    mean,
    std,
    priority,
    gain,
    offset,
    factor,
    clock,
    drift,
    resolution,
):
    """Set a row's moments and gain, compute its bound (index less `drift`) and sort it in.

    The moments are copied where the row has a place for them. Returns the number of rows in the
    heap.
    """
    start = places[row, START]
    if start >= 0:
        for i in range(mean.shape[0]):
            moments[0, start + i] = mean[i]
            moments[1, start + i] = std[i]
    numbers[row, GAIN] = gain
    width = offset + factor * math.sqrt(gain + numbers[row, CONSTANT] + clock)
    value, choice, tie = best_upper(mean, std, priority, width, resolution)
    places[row, CHOICE] = choice
    ties[row] = tie
    numbers[row, BOUND] = value + numbers[row, ADDEND] - drift
    heap, at = places[:, HEAP], places[row, POSITION]
    if at < 0:
        at = count
        heap[at] = row
        count += 1
    at = _sift_up(numbers, places, ties, heap, at)
    _sift_down(numbers, places, ties, heap, at, count)
    return count


@compiled
def table_remove(numbers, places, ties, count, row):
    """Take a row out of the heap: the new count."""
    heap = places[:, HEAP]
    at = places[row, POSITION]
    places[row, POSITION] = -1
    count -= 1
    if at < count:
        heap[at] = heap[count]
        at = _sift_up(numbers, places, ties, heap, at)
        _sift_down(numbers, places, ties, heap, at, count)
    return count


@compiled
def table_best(
    numbers,
    places,
    ties,
    count,
    moments,
    priority,
    offset,
    factor,
    clock,
    drift,
    highest,
    slack,
    resolution,
):
    """Row with the best index now, when bounds are upper bounds.

    Returns (row, index, candidate, rows evaluated).

    Rows are taken from the top and evaluated until no bound left, plus the highest drift so far,
    can reach the best index so far. They wait behind the shrinking heap and go back in with new
    bounds.
    """
    heap = places[:, HEAP]
    left = count
    winner = -1
    top = -np.inf
    while left > 0:
        row = heap[0]
        if winner >= 0 and numbers[row, BOUND] + highest < top:
            break
        left -= 1
        heap[0] = heap[left]
        _sift_down(numbers, places, ties, heap, 0, left)
        heap[left] = row
        start, stop = places[row, START], places[row, START] + places[row, SIZE]
        width = offset + factor * math.sqrt(numbers[row, GAIN] + numbers[row, CONSTANT] + clock)
        value, choice, tie = best_upper(
            moments[0, start:stop],
            moments[1, start:stop],
            priority[start:stop],
            width,
            resolution,
        )
        places[row, CHOICE] = choice
        ties[row] = tie
        value += numbers[row, ADDEND]
        numbers[row, BOUND] = value - drift + slack
        if value > top or (value == top and ties[row] < ties[winner]):
            top = value
            winner = row
    for at in range(left, count):
        _sift_up(numbers, places, ties, heap, at)
    return winner, top, places[winner, CHOICE], count - left
