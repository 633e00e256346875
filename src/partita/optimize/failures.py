"""Where evaluations failed, and what to evaluate instead of failing there again and again.

A policy learns nothing from a failure, so it would ask for the same point for ever. Two things
prevent that. A point that failed, or was passed over, stays pending for a while, as if its value
were still to come, so that policies look elsewhere. And a proposal that lies closer to c failures
than to any success is taken with chance 1/(1 + c)² only; otherwise a point between it and the
nearest success is considered in its place, by the same rule. So a failure by chance is tried again
soon, a region where everything fails hardly ever, and an optimum at the edge of one is found.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np

from partita._types import FloatArray

from .optimizer import Optimizer, Trial

#: Trials that stay pending after they failed, or were replaced, at most.
MOST_HELD = 16
#: After so many values one of them is given up, so that a failure by chance is tried again.
GIVE_UP_EVERY = 4
#: Points that are remembered of either kind, the latest.
REMEMBERED = 2048
#: Keeps the draws independent of others under the same seed.
STREAM = 23
#: Points that are considered in place of a proposal, before the nearest success is played again.
TRIES = 20


class Failures:
    """The memory of one run; free of cost until something fails."""

    def __init__(self, optimizer: Optimizer, seed: int) -> None:
        self._optimizer, self._space = optimizer, optimizer.space
        self._random = np.random.default_rng([seed, STREAM])
        self._held: deque[Trial] = deque()
        self._bad, self._good = _Points(self._space.dim), _Points(self._space.dim)
        self._successes = 0
        self.any = False

    def failed(self, params: Any, trial: Trial | None) -> None:
        """An evaluation failed; `trial` stays pending for a while."""
        if not self.any:
            self.any = True
            for unit in self._optimizer.trials.finished.units[-REMEMBERED:]:
                self._good.add(unit)
        self._bad.add(self._space.encode(params))
        if trial is not None:
            self.hold(trial)

    def hold(self, trial: Trial) -> None:
        """Keep a trial pending for a while that is not being evaluated."""
        hear = getattr(self._optimizer, "_hold", None)  # a study, which another run may go on with
        if hear is not None:
            hear(trial)
        self._held.append(trial)
        self.release(MOST_HELD)

    def succeeded(self, params: Any) -> None:
        """An evaluation gave a value; now and then one that is kept pending is given up."""
        if not self.any:
            return
        self._good.add(self._space.encode(params))
        self._successes += 1
        if self._held and self._successes % GIVE_UP_EVERY == 0:
            self.release(len(self._held) - 1)

    def instead(self, trial: Trial) -> Any:
        """Parameters to evaluate in place of a trial, or None to take it as it is."""
        if not len(self._good.rows):
            return None
        point = unit = self._space.encode(trial.params)
        safe, risky = self._nearest(point)
        for _ in range(TRIES):
            if not risky:
                break
            between = safe + self._random.random() * (point - safe)
            moved = self._space.snap(between[None, :])
            point = moved[0] if self._space.feasible(moved)[0] else safe
            safe, risky = self._nearest(point)
        if point is unit:
            return None
        return self._space.decode(safe if risky else point)

    def _nearest(self, point: FloatArray) -> tuple[FloatArray, bool]:
        """The nearest success, and whether to keep away from a point because of failures nearby."""
        good, bad = self._good.rows, self._bad.rows
        away = ((good - point) ** 2).sum(axis=1)
        nearest = int(np.argmin(away))
        closer = int((((bad - point) ** 2).sum(axis=1) < away[nearest]).sum())
        return good[nearest], self._random.random() * (1 + closer) ** 2 >= 1.0

    def release(self, keep: int = 0) -> None:
        """Cancel the trials that were kept pending, but for so many."""
        while len(self._held) > keep:
            self._optimizer.cancel(self._held.popleft())


class _Points:
    """The latest points (n, D) of the unit cube, n at most `REMEMBERED`."""

    def __init__(self, dim: int) -> None:
        self._all = np.empty((16, dim))
        self._n = 0

    def add(self, unit: FloatArray) -> None:
        """Remember a point (D,), in place of the oldest if there are many."""
        size = len(self._all)
        if self._n == size < REMEMBERED:
            self._all = np.concatenate([self._all, np.empty_like(self._all)])
        self._all[self._n % len(self._all)] = unit
        self._n += 1

    @property
    def rows(self) -> FloatArray:
        """All of them, (n, D)."""
        return self._all[: self._n]
