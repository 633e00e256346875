"""How often each value of each choice is drawn: the part of the evolution for choices.

The shares of a choice's values move towards those of the best points of a generation, as the mean
of the evolution does (Baluja 1994, "Population-based incremental learning"). No value ever has less
than a least share, so that it is tried again now and then.
"""

from __future__ import annotations

import numpy as np

from partita._state import Saved, State
from partita._types import FloatArray, IntArray

from .layout import Layout

#: How far the shares move towards those of the best points after a generation.
RATE = 0.25
#: The chance that a point has some choice's value for no other reason than its least share.
CHANCE = 0.7


class Shares:
    """The share of each mark, (c,): the probability of a 1."""

    def __init__(self, layout: Layout) -> None:
        self._groups = layout.groups
        self._sizes = [max(g.stop - g.start, 2) for g in layout.groups]
        self.values = np.concatenate(
            [np.zeros(0), *(np.full(g.stop - g.start, 1 / n) for g, n in self._each)]
        )

    @property
    def _each(self) -> list[tuple[slice, int]]:
        """The marks of each choice, and its number of values."""
        return list(zip(self._groups, self._sizes, strict=True))

    def _least(self, size: int) -> float:
        """The least share of a value of a choice of this size."""
        return min(CHANCE / len(self._groups) / (size - 1), 0.5 / size)

    def draw(self, random: np.random.Generator) -> FloatArray:
        """Marks (c,) of a point, each choice drawn by its shares."""
        marks = np.zeros(len(self.values))
        for group, _ in self._each:
            shares = self.values[group]
            if len(shares) == 1:
                marks[group] = random.random() < shares[0]
            else:
                last = len(shares) - 1
                place = np.searchsorted(np.cumsum(shares), random.random(), side="right")
                marks[group.start + min(int(place), last)] = 1.0
        return marks

    def likeliest(self, scores: FloatArray | None = None) -> FloatArray:
        """Marks (c,) of the values of the highest shares, or of the highest scores (c,)."""
        scores = np.where(self._alone, self.values - 0.5, self.values) if scores is None else scores
        marks = np.zeros(len(self.values))
        for group, _ in self._each:
            own = scores[group]
            if len(own) == 1:
                marks[group] = own[0] > 0.0
            else:
                marks[group.start + int(np.argmax(own))] = 1.0
        return marks

    @property
    def _alone(self) -> IntArray:
        """Which marks are the only ones of a choice, (c,)."""
        alone = [np.full(g.stop - g.start, g.stop - g.start == 1) for g in self._groups]
        return np.concatenate([np.zeros(0, dtype=bool), *alone])

    def update(self, marks: FloatArray, weights: FloatArray) -> None:
        """Learn from the marks (μ, c) of the best points, by their weights (μ,)."""
        for group, size in self._each:
            own = marks[:, group]
            counted = np.isin(own, (0.0, 1.0)).all(axis=1)  # elsewhere the choice does not count
            total = float(weights[counted].sum())
            if total <= 0.0:
                continue
            goal = weights[counted] @ own[counted] / total
            least, shares = self._least(size), self.values[group]
            shares = shares + RATE * total * (goal - shares)
            if len(shares) > 1:
                # What lies above the least shares is scaled, so that they add up to 1.
                above = np.maximum(shares - least, 0.0)
                shares = least + above * (1.0 - size * least) / max(float(above.sum()), 1e-300)
            self.values[group] = np.clip(shares, least, 1.0 - least)

    def state(self) -> State:
        """The shares as plain data."""
        return {"values": self.values.copy()}

    def restore(self, saved: Saved) -> None:
        """Restore saved shares."""
        self.values = saved.floats("values", self.values.shape, 0.0, 1.0)
