"""Where evaluations failed, and what to evaluate instead of failing there again and again.

The calibrated policy learns where evaluations fail, but tries what is unknown again, in a finite
space the same point. Others learn nothing from a failure, so they would ask for the same point
forever. Two rules prevent that. First, a point that failed or was
skipped stays pending for a while, as if its value were still to come, so that the policy looks
elsewhere. Second, a proposal that is closer to c failures than to any success is accepted with
probability 1/(1 + c)² only. Otherwise a point between it and the nearest success is considered
instead, by the same rule. So a random failure is retried soon, a region where everything fails
almost never, and an optimum at its edge is still found. Of the calibrated policy's proposals this
holds in finite spaces, for the very points that failed, and nothing stays pending: the rest it
learns.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from partita._types import FloatArray
from partita.errors import Settled
from partita.policies import optional

from .player import Player, give_up
from .trial import Trial

#: The largest number of trials that stay pending after they failed or were replaced.
MOST_HELD = 16
#: One of them is cancelled after each additional set of this many values, so that a random failure
#: is retried.
GIVE_UP_EVERY = 4
#: The number of latest failures, and of latest successes, that are remembered.
REMEMBERED = 2048
#: Keeps the draws independent of others under the same seed.
STREAM = 23
#: The squared distance within which points of the unit cube are the same.
SAME = 1e-18
#: The number of replacement points tried before the nearest success is evaluated again.
TRIES = 20


class Failures:
    """The failures of one run. It costs nothing until an evaluation fails."""

    def __init__(self, player: Player, seed: int) -> None:
        self._player, self._space = player, player.space
        self._random = np.random.default_rng([seed, STREAM])
        self._held: deque[Trial] = deque()
        self._bad, self._good = _Points(self._space.dim), _Points(self._space.dim)
        self._successes = 0
        self.any = False

    def report(self, params: Any, trial: Trial | None) -> None:
        """Report an evaluation that raised an error, or returned no number.

        A policy that learns where evaluations fail is told; for others it is recorded here. `trial`
        is None for an evaluation that the player did not know of.
        """
        if not optional.learns_failures(self._player.policy):
            self.failed(params, trial)
            return
        if self._space.size is not None:
            self.failed(params, None)
        with suppress(Settled):  # ended by another process or thread
            self._player.fail(self._player.expect(params) if trial is None else trial)

    def failed(self, params: Any, trial: Trial | None) -> None:
        """Record a place to look away from; its `trial` stays pending for a while."""
        if not self.any:
            self.any = True
            for unit in self._player.trials.finished.units[-REMEMBERED:]:
                self._good.add(unit)
        self._bad.add(self._space.encode(params))
        if trial is not None:
            self._hold(trial)

    def _hold(self, trial: Trial) -> None:
        """Keep a trial pending for a while, although it is not being evaluated."""
        try:
            self._player.hold(trial)
        except Settled:  # ended by another process or thread
            return
        self._held.append(trial)
        self.release(MOST_HELD)

    def succeeded(self, params: Any) -> None:
        """Record a success, and from time to time cancel a failed trial that was kept pending."""
        if not self.any:
            return
        self._good.add(self._space.encode(params))
        self._successes += 1
        if self._held and self._successes % GIVE_UP_EVERY == 0:
            self.release(len(self._held) - 1)

    @property
    def held(self) -> int:
        """The number of trials that are kept pending."""
        return len(self._held)

    def ask(self) -> Trial:
        """The player's next trial, or one that replaces it; the replaced one stays pending."""
        trial = self._player.ask()
        params = self._instead(trial) if self.any else None
        if params is None:
            return trial
        self._hold(trial)
        return self._player.expect(params)

    def _instead(self, trial: Trial) -> Any:
        """Parameters to evaluate instead of a trial, or None to evaluate the trial itself."""
        if not len(self._good.rows):
            return None
        point = unit = self._space.encode(trial.params)
        near = self._nearest(point)
        for _ in range(TRIES):
            if not near.risky:
                break
            between = near.success + self._random.random() * (point - near.success)
            moved = self._space.snap(between[None, :])
            point = moved[0] if self._space.feasible(moved)[0] else near.success
            near = self._nearest(point)
        if point is unit:
            return None
        return self._space.decode(near.success if near.risky else point)

    def _nearest(self, point: FloatArray) -> _Near:
        good, bad = self._good.rows, self._bad.rows
        away = ((good - point) ** 2).sum(axis=1)
        nearest = int(np.argmin(away))
        learned = optional.learns_failures(self._player.policy)
        within = min(SAME, away[nearest]) if learned else away[nearest]
        closer = int((((bad - point) ** 2).sum(axis=1) < within).sum())
        return _Near(good[nearest], self._random.random() * (1 + closer) ** 2 >= 1.0)

    def release(self, keep: int = 0) -> None:
        """Cancel the trials that were kept pending, the oldest first, until `keep` are left."""
        while len(self._held) > keep:
            give_up(self._player, self._held[0])
            self._held.popleft()


class _Near(NamedTuple):
    """The success (D,) nearest to a point, and whether to avoid the point."""

    success: FloatArray
    risky: bool


class _Points:
    """The latest points (n, D) of the unit cube, n at most `REMEMBERED`."""

    def __init__(self, dim: int) -> None:
        self._all = np.empty((16, dim))
        self._n = 0

    def add(self, unit: FloatArray) -> None:
        """Remember a point (D,); once the memory is full, it replaces the oldest one."""
        size = len(self._all)
        if self._n == size < REMEMBERED:
            self._all = np.concatenate([self._all, np.empty_like(self._all)])
        self._all[self._n % len(self._all)] = unit
        self._n += 1

    @property
    def rows(self) -> FloatArray:
        """All of them, (n, D)."""
        return self._all[: self._n]
