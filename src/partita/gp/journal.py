"""Long computations a few steps at a time: a journal of the costly results.

A computation is a plain function of its inputs and a journal. It asks the journal for each costly
result. The journal computes it while there is work left to spend, and else stops the computation.
Called again with the same inputs, the function runs from its beginning, but results that are in the
journal are not computed again. So it goes on where it stopped, and ends with the same numbers, to
the last bit, as if it had never stopped. Work is counted by rough costs, never by a clock: the same
calls always stop at the same steps.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from partita._types import FloatArray


class Paused(Exception):
    """A computation has used up its work, and is to be called again."""


class Journal:
    """The costly results of one computation, in the order in which it needs them.

    Without a limit (`spend` was never called) nothing ever stops.
    """

    _results: list[FloatArray]  # of steps and of whole sections
    _inner: list[FloatArray]  # of the steps of the section under way
    steps: int  # taken so far

    def __init__(self) -> None:
        self._results, self._inner = [], []
        self._at = self._inner_at = self.steps = 0
        self._inside = False
        self._work, self._last = math.inf, math.inf
        self._shared: dict[str, tuple[FloatArray, Any]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """All but what can be computed from the inputs."""
        return {**self.__dict__, "_shared": {}}

    def spend(self, work: float = math.inf, steps: int | None = None) -> None:
        """Begin the computation again, to go on until this work or total of steps is done.

        The step that exceeds the work is still done, so each call gets on by a step at least.
        """
        self._at = self._inner_at = 0
        self._inside = False
        self._work, self._last = work, math.inf if steps is None else steps

    def step(self, cost: float, compute: Callable[[], FloatArray]) -> FloatArray:
        """The result of a costly step: as it was, or computed if there is work left."""
        results, at = (self._inner, self._inner_at) if self._inside else (self._results, self._at)
        if at == len(results):
            if self._work <= 0 or self.steps >= self._last:
                raise Paused
            self._work -= cost
            results.append(compute())
            self.steps += 1
        if self._inside:
            self._inner_at += 1
        else:
            self._at += 1
        return results[at]

    def section(self, compute: Callable[[], FloatArray]) -> FloatArray:
        """The result of a part that takes steps; once it is there, those are forgotten."""
        if self._at == len(self._results):
            self._inside, self._inner_at = True, 0
            result = compute()
            self._inside, self._inner = False, []
            self._results.append(result)
        self._at += 1
        return self._results[self._at - 1]

    def shared(self, name: str, points: FloatArray, compute: Callable[[], Any]) -> Any:
        """What follows from points, computed again only for others than the last."""
        last = self._shared.get(name)
        if last is None or not (last[0] is points or np.array_equal(last[0], points)):
            last = self._shared[name] = points, compute()
        return last[1]
