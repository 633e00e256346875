"""The table against looking at everything."""

import pickle

import numpy as np
import pytest

from partita.partition.index import Table
from partita.partition.scores import Scores
from partita.partition.widths import MixtureWidth, PaperWidth, width_of

WIDTHS = {
    "paper": PaperWidth(1.0, 1.0, 0.1, 2, 1.5),
    "mixture": MixtureWidth(1.0, 1.0, 0.1, 1.0, 2, 4),
}


@pytest.mark.parametrize("name", WIDTHS)
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_table_is_exact_as_cells_come_and_go(name, seed, sign):
    width = WIDTHS[name]
    rng = np.random.default_rng(seed)
    table = Table(width, 1e9, sign)
    cells = {}  # by name: level, priorities of candidates, scores
    t = 1
    for step in range(600):
        # A cancelled ask sets the clock back; lower bounds are told, and told data only grows.
        t = max(1, t + int(rng.integers(-1 if sign > 0 else 0, 4)))
        kind = rng.random()
        if kind < 0.4 or not cells:
            name, level, m = step, int(rng.integers(0, 4)), int(rng.integers(1, 30))
        elif kind < 0.6:
            name = int(rng.choice(list(cells)))
            table.leave(name)
            del cells[name]
            name = None
        else:
            name = int(rng.choice(list(cells)))
            level = cells[name][0]
            m = len(cells[name][1]) if kind < 0.95 else int(rng.integers(1, 30))
        if name is not None:
            known = name in cells and m == len(cells[name][1])
            priority = rng.integers(0, 2**63, m).astype(np.uint64)
            priority = cells[name][1] if known else priority  # others where candidates change
            scores = Scores(np.round(rng.normal(size=m), 1), rng.random(m), rng.exponential())
            cells[name] = (level, priority, scores)
            table.enter(name, level, priority, scores, t, 0.25 * level)
        if step == 300:
            table, cells = pickle.loads(pickle.dumps((table, cells)))
        assert len(table) == len(cells)
        if not cells:
            with pytest.raises(LookupError):
                table.best(t)
            continue
        ranked = []
        for name, (level, priority, (mean, std, gain)) in cells.items():
            reach = sign * width_of(width, gain, level, t)
            values = np.rint((mean + reach * std) * 1e9) / 1e9
            ranked += [
                (-(values[j] + 0.25 * level), int(priority[j]), name, int(j))
                for j in np.flatnonzero(values == values.max())
            ]
        value, _, name, j = min(ranked)
        assert table.best(t) == (name, -value, j)


def test_entrants_take_turns():
    table = Table(WIDTHS["mixture"], 1e9)
    for name in range(7):
        table.enter(name, 0, np.zeros(1, np.uint64), Scores(np.zeros(1), np.ones(1), 0.0), 1)
    table.leave(3)
    turns = [table.in_turn(2) for _ in range(6)]
    assert turns == [[1, 2], [4, 5], [6, 0]] * 2
    assert sorted(table.in_turn(99)) == [0, 1, 2, 4, 5, 6]
    table.leave(99)
    assert len(table) == 6


@pytest.mark.parametrize("name", WIDTHS)
def test_moments_are_kept_only_where_they_are_evaluated_again(name):
    """And they do not pile up as candidates change."""
    table = Table(WIDTHS[name], 1e9)
    for i in range(2000):
        priority = np.arange(1 + i % 50, dtype=np.uint64)
        zeros = np.zeros(len(priority))
        table.enter(i % 7, 0, priority, Scores(zeros, zeros, 0.0), 1)
    assert table._moments.shape[1] < 2000
    assert WIDTHS[name].drifts or not table._moments.size
