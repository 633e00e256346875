"""The table and the heap, against looking at everything."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.partition.index import LazyHeap, Score, Table
from partita.partition.widths import MixtureWidth, PaperWidth, width_of

WIDTHS = {
    "paper": PaperWidth(1.0, 1.0, 0.1, 2, 1.5),
    "mixture": MixtureWidth(1.0, 1.0, 0.1, 1.0, 2, 4),
}


@pytest.mark.parametrize("name", WIDTHS)
@pytest.mark.parametrize("seed", range(4))
def test_table_is_exact_as_cells_come_and_go(name, seed):
    width = WIDTHS[name]
    rng = np.random.default_rng(seed)
    table = Table(width, 1e9)
    cells = {}
    t = 1
    for step in range(600):
        t = max(1, t + int(rng.integers(-1, 4)))  # a cancelled ask sets the clock back
        kind = rng.random()
        if kind < 0.4 or not cells:
            m, level = int(rng.integers(1, 30)), int(rng.integers(0, 4))
            priority = rng.integers(0, 2**63, m).astype(np.uint64)
            row = table.add(level, priority, 0.25 * level)
            cells[row] = [level, priority, None, None, 0.0]
        elif kind < 0.6:
            row = int(rng.choice(list(cells)))
            table.remove(row)
            del cells[row]
            row = None
        else:
            row = int(rng.choice(list(cells)))
        if row is not None:
            m = len(cells[row][1])
            cells[row][2:] = [np.round(rng.normal(size=m), 1), rng.random(m), rng.exponential()]
            table.update(row, *cells[row][2:], t)
        if step == 300:
            table = pickle.loads(pickle.dumps(table))
        assert len(table) == len(cells)
        if not cells:
            continue
        scores = []
        for row, (level, priority, mean, std, gain) in cells.items():
            values = np.rint((mean + width_of(width, gain, level, t) * std) * 1e9) / 1e9
            scores += [
                (-(values[j] + 0.25 * level), int(priority[j]), row, int(j))
                for j in np.flatnonzero(values == values.max())
            ]
        value, _, row, j = min(scores)
        found = table.best(t)
        assert found.row == row
        assert found.value == -value
        assert found.candidate == j


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 5)), min_size=1, max_size=60))
def test_lazy_heap_finds_the_best_under_loose_bounds(changes):
    heap, values = LazyHeap(), {}
    drift = 0.0
    for name, value in changes:
        drift += 0.5
        values[name] = value
        heap.push(name, value - drift + 0.75, name)  # loose by 0.75, looser as the drift grows
        best = min(values, key=lambda n: (-values[n], n))
        found, score = heap.best(drift, 0.1, lambda n: Score(values[n], n))
        assert found == best
        assert score == Score(values[best], best)
        if value == 0:
            heap.discard(name)
            del values[name]
            assert len(heap) == len(values)
            if not values:
                with pytest.raises(LookupError):
                    heap.best(drift, 0.1, lambda n: Score(values[n], n))


def test_lazy_heap_does_not_keep_replaced_entries():
    heap = LazyHeap()
    for i in range(10_000):
        heap.push(i % 7, float(i), 0)
    assert len(heap._heap) < 200
