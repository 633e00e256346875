"""The ledger: growing arrays with one row per trial."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from partita._state import LARGEST, Saved, State, wholes
from partita._types import FloatArray, IntArray
from partita.policies.repeats import MOST_VALUES
from partita.space import Space

from .aggregates import Aggregate
from .plans import plans_state, restored_plans
from .trials import FAILED, FINISHED, PENDING, PRUNED, STATES, Trials

#: Arrays of a ledger, in the order in which a table has them.
_COLUMNS = ("_units", "_values", "_states", "_stds", "_measured", "_counts")


class Told(NamedTuple):
    """Values and their noise (n,) at points (n, D), with those of constrained quantities (n, C).

    `counts` (n,) say of how many values each is the mean; None if each is a single one.
    """

    units: FloatArray
    values: FloatArray
    stds: FloatArray | None
    measured: FloatArray
    counts: IntArray | None = None


class Ledger:
    """Points (n, D) of the unit cube, values, their noise and states of trials, from number 0.

    A pruned trial has the value that it was expected to have, and the noise of that, or neither.
    Beside each value that was told stand those of C constrained quantities, and the number of
    values of which it is the mean.
    """

    def __init__(self, dim: int, quantities: Sequence[str] = ()) -> None:
        self.quantities = tuple(quantities)
        self._measured = np.full((16, len(self.quantities)), np.nan)
        #: Numbers of trials whose evaluation failed: others were cancelled for no fault of theirs.
        self.failures: set[int] = set()
        self._units = np.empty((16, dim))
        self._values = np.full(16, np.nan)
        self._stds = np.full(16, np.nan)
        self._states = np.zeros(16, dtype=np.int8)
        self._counts = np.ones(16, dtype=np.int64)
        #: How many values rows of plans are for, and what has been told of those; all are pending.
        self.planned: dict[int, int] = {}
        self.parts: dict[int, Aggregate] = {}
        self._n = 0
        #: How many trials are in each state.
        self.counts = [0] * len(STATES)

    def __len__(self) -> int:
        return self._n

    def append(
        self,
        unit: FloatArray,
        state: int = PENDING,
        value: float = math.nan,
        std: float | None = None,
        measured: Sequence[float] | None = None,
        count: int = 1,
    ) -> int:
        """Add a trial at a point (D,), pending unless `state` is given, and return its number."""
        number = self._n
        if number == len(self._states):
            self._units = np.concatenate([self._units, np.empty_like(self._units)])
            self._values = np.concatenate([self._values, np.full(number, np.nan)])
            self._stds = np.concatenate([self._stds, np.full(number, np.nan)])
            self._states = np.concatenate([self._states, np.zeros_like(self._states)])
            more = np.full_like(self._measured, np.nan)
            self._measured = np.concatenate([self._measured, more])
            self._counts = np.concatenate([self._counts, np.ones_like(self._counts)])
        self._units[number] = unit
        if state != PENDING:  # values of pending trials stay NaN
            self._values[number] = value
            self._stds[number] = math.nan if std is None else std
            self._measured[number] = math.nan if measured is None else measured
            self._counts[number] = count
        self._states[number] = state
        self.counts[state] += 1
        self._n = number + 1  # last, so that an interrupt before it leaves no partial trial
        return number

    def extend(
        self,
        units: FloatArray,
        values: FloatArray,
        stds: FloatArray | None,
        counts: IntArray | None = None,
        measured: FloatArray | None = None,
    ) -> range:
        """Take in trials (n, D) that have values (n,), and return their numbers."""
        first, n = self._n, len(values)
        more = max(first + n - len(self._states), 0)
        if more:
            more = max(more, first)
            self._units = np.concatenate([self._units, np.empty((more, self._units.shape[1]))])
            self._values = np.concatenate([self._values, np.full(more, np.nan)])
            self._stds = np.concatenate([self._stds, np.full(more, np.nan)])
            self._states = np.concatenate([self._states, np.zeros(more, np.int8)])
            none = np.full((more, len(self.quantities)), np.nan)
            self._measured = np.concatenate([self._measured, none])
            self._counts = np.concatenate([self._counts, np.ones(more, np.int64)])
        rows = slice(first, first + n)
        self._units[rows], self._values[rows] = units, values
        if stds is not None:
            self._stds[rows] = stds
        self._counts[rows] = 1 if counts is None else counts
        if measured is not None:
            self._measured[rows] = measured
        self._states[rows] = FINISHED
        self.counts[FINISHED] += n
        self._n = first + n  # last: should anything interrupt this, there are no such trials
        return range(first, first + n)

    def settle(
        self,
        number: int,
        state: int,
        value: float = math.nan,
        std: float | None = None,
        measured: Sequence[float] | None = None,
        count: int = 1,
    ) -> None:
        """Set the final state of a trial, its value, and the standard deviation of its noise."""
        before = self._states[number]
        self._values[number] = value
        self._stds[number] = math.nan if std is None else std
        self._measured[number] = math.nan if measured is None else measured
        self._counts[number] = count
        self.failures.discard(number)
        self._states[number] = state  # after the value, in case an interrupt comes between them
        self.counts[before] -= 1
        self.counts[state] += 1
        self.planned.pop(number, None)
        self.parts.pop(number, None)

    def left(self, number: int) -> int | None:
        """How many values a row of a plan still awaits; None for any other trial."""
        if number not in self.planned:
            return None
        part = self.parts.get(number)
        return self.planned[number] - (0 if part is None else part.count)

    def recount(self) -> None:
        """Count the trials in each state again, after a change that was interrupted."""
        states = self._states[: self._n]
        self.counts = np.bincount(states, minlength=len(STATES)).tolist()
        unsettled = np.flatnonzero(states == PENDING)
        for column in (self._values, self._stds, self._measured):
            column[unsettled] = math.nan
            column[self._n :] = math.nan
        for rows in (self.planned, self.parts):
            for number in [n for n in rows if n >= self._n or states[n] != PENDING]:
                del rows[number]

    def told(self) -> Iterator[Told]:
        """What policies are told: first where the noise is unknown, then the rest, then means."""
        many = self._counts[: self._n] > 1
        told = ~np.isnan(self._values[: self._n]) & ~many
        noisy = np.isnan(self._stds[: self._n])
        for rows, given in ((told & noisy, False), (told & ~noisy, True)):
            if rows.any():
                places = np.flatnonzero(rows)
                stds = self._stds[places] if given else None
                measured = self._measured[places]
                yield Told(self._units[places], self._values[places], stds, measured)
        places = np.flatnonzero(many)
        if len(places):
            yield Told(*(column[places] for column in self._told_columns))
        if self.parts:
            places, parts = np.array(list(self.parts)), list(self.parts.values())
            means, stds, counts = (np.array(c, dtype=float) for c in zip(*parts, strict=True))
            none = self._measured[places]
            yield Told(self._units[places], means, stds, none, counts.astype(np.int64))

    @property
    def _told_columns(self) -> tuple[Any, ...]:
        return self._units, self._values, self._stds, self._measured, self._counts

    def pending(self) -> FloatArray:
        """Points (n, D) of the pending trials."""
        units: FloatArray = self._units[np.flatnonzero(self._states[: self._n] == PENDING)]
        return units

    def move(self, number: int, unit: FloatArray) -> None:
        """Move a trial to another point (D,)."""
        self._units[number] = unit

    def unit(self, number: int) -> FloatArray:
        """The point (D,) of a trial."""
        unit: FloatArray = self._units[number].copy()
        return unit

    def mark(self, number: int) -> bytes:
        """The bytes of the point of a trial, to compare it with another."""
        word: bytes = self._units[number].tobytes()
        return word

    def state(self, number: int) -> int:
        """The state of a trial."""
        return int(self._states[number])

    def table(self, space: Space) -> Trials:
        """A read-only copy of the record."""
        n = self._n
        units, values, states, stds, measured, counts = (
            getattr(self, name)[:n].copy() for name in _COLUMNS
        )
        values[states == PRUNED] = stds[states == PRUNED] = np.nan  # expected, not told
        names = self.quantities
        for number, planned in self.planned.items():
            counts[number] = planned
        return Trials(space, np.arange(n), units, values, states, stds, measured, names, counts)

    def as_data(self) -> State:
        """The record as plain data."""
        columns = {name[1:]: getattr(self, name)[: self._n].copy() for name in _COLUMNS}
        if (columns["counts"] == 1).all():
            del columns["counts"]
        plans = plans_state(self.planned, self.parts) if self.planned else {}
        return {**columns, "failures": wholes(sorted(self.failures)), **plans}

    def restore(self, saved: Saved) -> None:
        """Restore the record that `as_data` returned."""
        states = saved.bytes("states", (None,), PRUNED)
        n, dim = len(states), self._units.shape[1]
        if not n:
            return
        self._units = saved.floats("units", (n, dim))
        self._values = saved.floats("values", (n,), nan=True)
        self._stds = saved.floats("stds", (n,), 0.0, LARGEST, nan=True)
        has_value = ~np.isnan(self._values)
        rest = states != PRUNED
        saved.require(
            np.array_equal(has_value[rest], states[rest] == FINISHED), "values of finished trials"
        )
        saved.require(has_value[~np.isnan(self._stds)].all(), "noise of values")
        expected = has_value & ~rest
        saved.require(not np.isnan(self._stds[expected]).any(), "noise of expected values")
        self._measured = saved.floats("measured", (n, len(self.quantities)), nan=True)
        there = ~np.isnan(self._measured)
        finished = (states == FINISHED)[:, None]
        saved.require((there == finished).all(), "values of constrained quantities")
        self.failures = set(saved.numbers("failures", n))
        failed = np.flatnonzero(states == FAILED).tolist()
        saved.require(self.failures <= set(failed), "failed trials")
        self._counts = np.ones(n, dtype=np.int64)
        if saved.has("counts"):
            self._counts = saved.wholes("counts", (n,), 1, MOST_VALUES)
            finished = self._counts[states != FINISHED] == 1
            saved.require(finished.all(), "counts of finished trials")
        self.planned, self.parts = restored_plans(saved, np.flatnonzero(states == PENDING).tolist())
        self._states, self._n = states, n
        self.counts = np.bincount(states, minlength=len(STATES)).tolist()

    @property
    def values(self) -> FloatArray:
        """The values of finished trials, NaN for all others, (n,)."""
        finished = self._states[: self._n] == FINISHED
        return np.where(finished, self._values[: self._n], np.nan)

    @property
    def known(self) -> int:
        """How many values the policy has been told, those expected of pruned trials included."""
        return int((~np.isnan(self._values[: self._n])).sum())

    @property
    def evaluations(self) -> int:
        """How many values the policy has been told, those behind a mean one by one."""
        counts = self._counts[: self._n][~np.isnan(self._values[: self._n])]
        return int(counts.sum()) + sum(part.count for part in self.parts.values())

    @property
    def reported(self) -> int:
        """The same without what was expected of pruned trials."""
        counts = self._counts[: self._n][self._states[: self._n] == FINISHED]
        return int(counts.sum()) + sum(part.count for part in self.parts.values())

    @property
    def awaited(self) -> int:
        """How many values are pending, those of rows of plans one by one."""
        rows = sum(self.left(number) or 0 for number in self.planned)
        return self.counts[PENDING] - len(self.planned) + rows

    def numbers(self, state: int) -> list[int]:
        """The numbers of the trials in a state."""
        return np.flatnonzero(self._states[: self._n] == state).tolist()

    @property
    def units(self) -> FloatArray:
        """The points (n, D) of all trials; do not change them."""
        return self._units[: self._n]

    def __getstate__(self) -> dict[str, Any]:
        """The part of the arrays that is used."""
        n = max(self._n, 1)
        cut = {name: getattr(self, name)[:n] for name in _COLUMNS}
        return {**self.__dict__, **cut}
