"""A report: one value, or the mean of several, as it was told."""

from __future__ import annotations

import math
from typing import NamedTuple

from partita._state import Saved

#: No saved report stands for more values.
MOST_VALUES = 1e15


class Report(NamedTuple):
    """A value, or the mean of `number` values with their sample deviation `spread`.

    `std` is the standard deviation of the noise where that was told, else NaN.
    """

    value: float
    number: float = 1.0
    std: float = math.nan
    spread: float = 0.0

    @property
    def known(self) -> bool:
        """Whether the noise was told."""
        return not math.isnan(self.std)

    @staticmethod
    def restored(saved: Saved, row: list[float]) -> Report:
        """The report of a saved row."""
        value, number, std, spread = row
        fine = math.isfinite(value) and 1.0 <= number <= MOST_VALUES and spread >= 0.0
        saved.require(fine and number == int(number) and not std < 0.0, "reports of values")
        return Report(value, number, std, spread)
