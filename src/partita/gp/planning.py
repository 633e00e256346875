"""Pending plays: standard deviations as if they had been observed. Desautels et al. 2014.

Standard deviations do not depend on values, so they can be lowered before a value arrives; means
cannot.
"""

from __future__ import annotations

from collections.abc import Callable

from partita._types import FloatArray

from .posterior import Plan


class Planner:
    """The plays pending at the candidates of one posterior, which knows told data only."""

    __slots__ = ("_pending", "_plan", "_unplanned")

    def __init__(self) -> None:
        self._pending: dict[int, int] = {}
        self._plan: Plan | None = None
        self._unplanned: list[int] = []

    def add(self, j: int) -> None:
        """Add one pending play of candidate j."""
        self._pending[j] = self._pending.get(j, 0) + 1
        self._unplanned.append(j)

    def remove(self, j: int) -> None:
        """Remove one pending play of candidate j."""
        self._pending[j] -= 1
        if not self._pending[j]:
            del self._pending[j]
        self.renew()

    def reset(self, pending: dict[int, int]) -> None:
        """Replace the pending plays by these numbers of plays by candidate."""
        self._pending = pending
        self.renew()

    def renew(self) -> None:
        """Plan afresh when next asked: the posterior has changed."""
        self._plan = None
        self._unplanned.clear()

    def std(self, told: FloatArray, plan: Callable[[], Plan]) -> FloatArray:
        """Standard deviations (m,) that count the pending plays; `told` (m,) do not.

        `plan()` gives a plan of the posterior without pending plays.
        """
        if not self._pending:
            return told
        if self._plan is None:
            self._plan = plan()
            self._unplanned = [j for j, plays in self._pending.items() for _ in range(plays)]
        for j in self._unplanned:
            self._plan.add(j)
        self._unplanned.clear()
        return self._plan.std
