"""Guards a search against losing what it had: it goes back when generations get worse.

The trend and the distribution follow each other. Without a word from outside, both can move away
together, in steps that get longer and longer. So the values of the last generations are compared
with the best ones so far.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from partita._state import LARGEST, Saved, State, wholes
from partita._types import FloatArray

from .evolution import LEAST_STEP, MOST_STEP

#: The number of generations that are compared.
COMPARED = 8
#: Standard errors by which they are worse when the search goes back, with noise and without: the
#: best of many stretches is lucky itself. And how many times longer steps may be than at the best.
WORSE, WORSE_EXACT, LONGER = 5.0, 3.0, 2.0
#: With noise, what the search went back to so often is thought to have been luck.
LUCK = 3


class Best(NamedTuple):
    """The search at its best: its values, their standard error, and what it was then."""

    value: float  # −∞ if it has to be found again
    error: float
    mean: FloatArray  # (k,), of the distribution
    step: float
    site: int  # evaluated at about the mean
    returns: int  # how often the search went back to it


class Guard:
    """Keeps the best stretch of generations."""

    def __init__(self) -> None:
        self.best: Best | None = None
        self._values: list[float] = []

    def add(self, value: float) -> None:
        """Take note of the mean value of a generation."""
        self._values = [*self._values, value][-COMPARED:]

    @property
    def longest(self) -> float:
        """The longest step that is allowed."""
        return math.inf if self.best is None else LONGER * self.best.step

    def judge(self, mean: FloatArray, step: float, site: int, exact: bool) -> Best | None:
        """What to go back to, if anything, now that the search is here; `exact` without noise."""
        if len(self._values) < COMPARED:
            return None
        values = np.array(self._values)
        value, error = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(COMPARED)
        best = self.best
        if best is None or value >= best.value:
            self.best = Best(value, error, mean.copy(), step, site, 0)
            return None
        worse = WORSE_EXACT if exact else WORSE
        if value >= best.value - worse * math.hypot(error, best.error):
            return None
        returns = best.returns + 1
        again = exact or returns < LUCK
        step = max(0.5 * min(step, best.step), LEAST_STEP)
        self.best = best._replace(
            value=best.value if again else -math.inf, step=step, returns=returns
        )
        self._values = []
        return self.best

    def state(self) -> State:
        """The best and the last values, as plain data."""
        best = self.best
        kept = None
        if best is not None:
            numbers = {name: float(getattr(best, name)) for name in ("value", "error", "step")}
            kept = {**best._asdict(), **numbers, "site": wholes([best.site])}
        return {"values": np.array(self._values), "best": kept}

    def restore(self, saved: Saved, dim: int, number: int) -> None:
        """Restore what was saved, in a number of dimensions and with a number of sites."""
        self._values = saved.floats("values", (None,)).tolist()
        saved.require(len(self._values) <= COMPARED, "few values of generations")
        self.best = None
        if "best" in saved:
            part = saved.part("best")
            site = part.numbers("site", number)
            part.require(len(site) == 1, "one site")
            self.best = Best(
                part.real("value", -math.inf),
                part.real("error", 0.0, LARGEST),
                part.floats("mean", (dim,), 0.0, 1.0),
                part.real("step", LEAST_STEP, MOST_STEP),
                site[0],
                part.integer("returns"),
            )
