"""Which coordinates of a domain are numbers, and which stand for choices."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from partita._types import FloatArray, IntArray
from partita.model.mixed import Rules


@dataclass(frozen=True, eq=False)
class Layout:
    """Coordinates of the unit cube: numbers, and marks of choices.

    A choice between two has one mark, 0 or 1; one of more has a mark for each value, of which one
    is 1. Where a choice does not count, its marks stand between.
    """

    numbers: IntArray  # (k,) coordinates that are numbers
    marks: IntArray  # (c,) coordinates that are marks
    groups: tuple[slice, ...]  # the marks of each choice

    @staticmethod
    def of(dim: int, rules: Rules | None) -> Layout:
        """The layout of a box, or of a domain with rules."""
        choices = () if rules is None else rules.choices
        marks = [np.arange(start, end) for start, end in choices]
        every = np.concatenate([np.zeros(0, dtype=np.int64), *marks])
        ends = np.cumsum([0, *(len(part) for part in marks)]).tolist()
        groups = tuple(slice(a, b) for a, b in pairwise(ends))
        return Layout(np.setdiff1d(np.arange(dim), every), every, groups)

    @property
    def parameters(self) -> int:
        """The number of numbers and choices."""
        return len(self.numbers) + len(self.groups)

    def joined(self, numbers: FloatArray, marks: FloatArray) -> FloatArray:
        """The point (d,) of numbers (k,) and marks (c,)."""
        point = np.empty(len(self.numbers) + len(self.marks))
        point[self.numbers], point[self.marks] = numbers, marks
        return point
