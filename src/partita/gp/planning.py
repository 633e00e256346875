"""Pending evaluations: standard deviations as if they had been observed. Desautels et al. 2014.

Standard deviations do not depend on values, so they can be lowered before a value arrives; means
cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from partita._state import BadState, Saved, State, joined, lengths, wholes
from partita._types import FloatArray

from .posterior import Plan

#: Pending evaluations of a candidate that are planned one by one; more of them are one update.
ONE_BY_ONE = 64


class Planner:
    """Pending evaluations of the candidates of one posterior, which has observed values only."""

    __slots__ = ("_done", "_order", "_pending", "_plan", "_times")

    def __init__(self) -> None:
        self._pending: dict[int, int] = {}
        self._plan: Plan | None = None
        #: Evaluations in the order in which the plan has them, and how many of them it has.
        self._order: list[int] = []
        #: How many evaluations each entry of the order stands for.
        self._times: list[int] = []
        self._done = 0

    def add(self, j: int) -> None:
        """Add one pending evaluation of candidate j."""
        self._pending[j] = self._pending.get(j, 0) + 1
        self._order.append(j)
        self._times.append(1)

    @property
    def pending(self) -> dict[int, int]:
        """The number of pending evaluations of each candidate."""
        return self._pending

    @property
    def planned(self) -> bool:
        """Whether there is a plan already, or one that was saved."""
        return self._done > 0

    def remove(self, j: int) -> None:
        """Remove one pending evaluation of candidate j."""
        self._pending[j] -= 1
        if not self._pending[j]:
            del self._pending[j]
        self.renew()

    def reset(self, pending: dict[int, int]) -> None:
        """Replace the pending evaluations by these numbers of evaluations by candidate."""
        self._pending = pending
        self.renew()

    def renew(self) -> None:
        """Plan afresh when next asked: the posterior has changed."""
        self._plan = None
        self._order.clear()
        self._times.clear()
        self._done = 0

    def std(self, told: FloatArray, plan: Callable[[], Plan]) -> FloatArray:
        """Standard deviations (m,) that count the pending evaluations; `told` (m,) do not.

        `plan()` gives a plan of the posterior without pending evaluations.
        """
        if not self._pending:
            return told
        if self._plan is None:
            self._plan = plan()
            if not self._done:  # else it was saved: it is made in the order that it had
                self._list_all()
            self._done = 0
        for j, times in zip(self._order[self._done :], self._times[self._done :], strict=True):
            self._plan.add(j, times)
        self._done = len(self._order)
        return self._plan.std

    def _list_all(self) -> None:
        self._order, self._times = [], []
        for j, plays in self._pending.items():
            parts = [1] * plays if plays <= ONE_BY_ONE else [plays]
            self._order += [j] * len(parts)
            self._times += parts


def planners_state(planners: Sequence[Planner], posteriors: Sequence[object] = ()) -> State:
    """The pending evaluations of several posteriors, in arrays for all of them.

    Plans are made again, from covariances. Where one was given up since, the plan would be another
    in its last bits, and nothing is saved: see `warm`.
    """
    for planner, posterior in zip(planners, posteriors, strict=False):
        if planner.planned and getattr(posterior, "is_cold", False):
            raise BadState("a plan by a covariance that was given up is not saved")
    times = [time for p in planners for time in p._times]
    return {
        **({"times": wholes(times)} if any(time > 1 for time in times) else {}),
        "sizes": lengths(p._pending for p in planners),
        "pending": joined([wholes(p._pending) for p in planners], np.int64),
        "plays": joined([wholes(p._pending.values()) for p in planners], np.int64),
        "orders": lengths(p._order for p in planners),
        "order": joined([wholes(p._order) for p in planners], np.int64),
        "done": wholes(p._done for p in planners),
    }


def restore_planners(saved: Saved, planners: Sequence[Planner], sizes: Sequence[int]) -> None:
    """Put the pending evaluations of posteriors with `sizes` candidates into their saved state."""
    number = len(planners)
    pending = saved.cut("sizes", saved.wholes("pending", (None,)), number)
    plays = saved.cut("sizes", saved.wholes("plays", (None,), 1), number)
    orders = saved.cut("orders", saved.wholes("order", (None,)), number)
    done = saved.wholes("done", (number,), 0, np.array([len(order) for order in orders])).tolist()
    times = [np.ones_like(order) for order in orders]
    if saved.has("times"):
        times = saved.cut("orders", saved.wholes("times", (None,), 1), number)
    for i, planner in enumerate(planners):
        counts = dict(zip(pending[i].tolist(), plays[i].tolist(), strict=True))
        saved.require(len(counts) == len(pending[i]), "each candidate once")
        saved.require(max(counts, default=-1) < sizes[i], "candidates that exist")
        if done[i]:
            known: dict[int, int] = {}
            for j, time in zip(orders[i].tolist(), times[i].tolist(), strict=True):
                known[j] = known.get(j, 0) + time
            saved.require(known == counts, "an order of the pending evaluations")
        planner._pending, planner._plan = counts, None
        planner._order, planner._times = orders[i].tolist(), times[i].tolist()
        planner._done = done[i]
