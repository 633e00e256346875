"""The record of trials: arrays that grow, a row a trial, and a table to read them from."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from partita._state import LARGEST, Saved, State
from partita._types import FloatArray, IntArray
from partita.space import Space

PENDING: Final = 0
FINISHED: Final = 1
FAILED: Final = 2
PRUNED: Final = 3
STATES = ("pending", "finished", "failed", "pruned")
#: Arrays of a ledger, in the order in which a table has them.
_COLUMNS = ("_units", "_values", "_states", "_stds")


class Ledger:
    """Points (n, D) of the unit cube, values, their noise and states of trials, from number 0.

    A pruned trial has the value that it was expected to have, and the noise of that, or neither.
    """

    def __init__(self, dim: int) -> None:
        self._units = np.empty((16, dim))
        self._values = np.full(16, np.nan)
        self._stds = np.full(16, np.nan)
        self._states = np.zeros(16, dtype=np.int8)
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
    ) -> int:
        """Take in a trial at a point (D,), pending unless told otherwise, and return its number."""
        number = self._n
        if number == len(self._states):
            self._units = np.concatenate([self._units, np.empty_like(self._units)])
            self._values = np.concatenate([self._values, np.full(number, np.nan)])
            self._stds = np.concatenate([self._stds, np.full(number, np.nan)])
            self._states = np.concatenate([self._states, np.zeros_like(self._states)])
        self._units[number] = unit
        if state != PENDING:  # else they are NaN as they were made
            self._values[number] = value
            self._stds[number] = math.nan if std is None else std
        self._states[number] = state
        self.counts[state] += 1
        self._n = number + 1  # last: should anything interrupt this, there is no such trial
        return number

    def extend(self, units: FloatArray, values: FloatArray, stds: FloatArray | None) -> range:
        """Take in trials (n, D) that have values (n,), and return their numbers."""
        first, n = self._n, len(values)
        more = max(first + n - len(self._states), 0)
        if more:
            more = max(more, first)
            self._units = np.concatenate([self._units, np.empty((more, self._units.shape[1]))])
            self._values = np.concatenate([self._values, np.full(more, np.nan)])
            self._stds = np.concatenate([self._stds, np.full(more, np.nan)])
            self._states = np.concatenate([self._states, np.zeros(more, np.int8)])
        rows = slice(first, first + n)
        self._units[rows], self._values[rows] = units, values
        if stds is not None:
            self._stds[rows] = stds
        self._states[rows] = FINISHED
        self.counts[FINISHED] += n
        self._n = first + n  # last: should anything interrupt this, there are no such trials
        return range(first, first + n)

    def settle(
        self, number: int, state: int, value: float = math.nan, std: float | None = None
    ) -> None:
        """Give a trial its end state, its value and the standard deviation of that, if known."""
        before = self._states[number]
        self._values[number] = value
        self._stds[number] = math.nan if std is None else std
        self._states[number] = state  # once the value is there, should anything interrupt this
        self.counts[before] -= 1
        self.counts[state] += 1

    def recount(self) -> None:
        """Count the trials in each state again, after a change that was cut short."""
        states = self._states[: self._n]
        self.counts = np.bincount(states, minlength=len(STATES)).tolist()
        unsettled = np.flatnonzero(states == PENDING)
        for column in (self._values, self._stds):
            column[unsettled] = math.nan
            column[self._n :] = math.nan

    def told(self) -> Iterator[tuple[FloatArray, FloatArray, FloatArray | None]]:
        """Points (n, D), values and noise (n,): first those without known noise, then the rest."""
        told = ~np.isnan(self._values[: self._n])
        noisy = np.isnan(self._stds[: self._n])
        for rows, given in ((told & noisy, False), (told & ~noisy, True)):
            if rows.any():
                places = np.flatnonzero(rows)
                stds = self._stds[places] if given else None
                yield self._units[places], self._values[places], stds

    def pending(self) -> FloatArray:
        """Points (n, D) of the pending trials."""
        units: FloatArray = self._units[np.flatnonzero(self._states[: self._n] == PENDING)]
        return units

    def move(self, number: int, unit: FloatArray) -> None:
        """Put a trial at another point (D,)."""
        self._units[number] = unit

    def unit(self, number: int) -> FloatArray:
        """The point (D,) of a trial, as it was appended."""
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
        """A copy of the record to read."""
        n = self._n
        units, values, states, stds = (getattr(self, name)[:n].copy() for name in _COLUMNS)
        values[states == PRUNED] = stds[states == PRUNED] = np.nan  # expected, not told
        return Trials(space, np.arange(n), units, values, states, stds)

    def as_data(self) -> State:
        """The record as plain data."""
        return {name[1:]: getattr(self, name)[: self._n].copy() for name in _COLUMNS}

    def restore(self, saved: Saved) -> None:
        """Go on from the record that `as_data` returned."""
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

    def numbers(self, state: int) -> list[int]:
        """The numbers of the trials in a state."""
        return np.flatnonzero(self._states[: self._n] == state).tolist()

    @property
    def units(self) -> FloatArray:
        """The points (n, D) of all trials, not to be written to."""
        return self._units[: self._n]

    def __getstate__(self) -> dict[str, Any]:
        """The part of the arrays that is used."""
        n = max(self._n, 1)
        cut = {name: getattr(self, name)[:n] for name in _COLUMNS}
        return {**self.__dict__, **cut}


class Record(NamedTuple):
    """One trial of a table.

    Attributes
    ----------
    number
    params
        What the function was given: a dict, or an array.
    value
        As told; None if the trial is pending, failed or pruned.
    state
        "pending", "finished", "failed" or "pruned".
    std
        The standard deviation of the value's noise, as told; None if it is not known.
    """

    number: int
    params: Any
    value: float | None
    state: str
    std: float | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Trials(Sequence[Record]):
    """Trials as they stood when this table was made: a sequence of records, and arrays.

    `trials[0]`, `trials[-1]` and a loop over `trials` give a `Record` (number, params, value,
    state, std); `trials[10:20]` is another table. Places count from 0 in every table.

    Attributes
    ----------
    space
    numbers
        (n,)
    units
        Points of the unit cube, (n, D).
    values
        As told, in the user's direction; NaN for those without a value. (n,)
    codes
        States as numbers: 0 pending, 1 finished, 2 failed, 3 pruned. (n,)
    stds
        Standard deviations of the values' noise, as told; NaN where it is not known. (n,)
    """

    space: Space
    numbers: IntArray
    units: FloatArray
    values: FloatArray
    codes: npt.NDArray[np.int8]
    stds: FloatArray

    @overload
    def __getitem__(self, place: int) -> Record: ...
    @overload
    def __getitem__(self, place: slice) -> Trials: ...
    def __getitem__(self, place: int | slice) -> Record | Trials:
        if isinstance(place, slice):
            return self._rows(place)
        place = operator.index(place)
        code, std = int(self.codes[place]), float(self.stds[place])
        return Record(
            int(self.numbers[place]),
            self.space.decode(self.units[place]),
            float(self.values[place]) if code == FINISHED else None,
            STATES[code],
            None if math.isnan(std) else std,
        )

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def params(self) -> Any:
        """What the function was given: a list of dicts, or an array (n, d)."""
        rows = [self.space.decode(unit) for unit in self.units]
        if self.space.named:
            return rows
        return np.array(rows).reshape(len(rows), -1) if rows else np.empty((0, self.space.dim))

    @property
    def states(self) -> list[str]:
        """Each one's state: "pending", "finished", "failed" or "pruned"."""
        return [STATES[code] for code in self.codes]

    @property
    def finished(self) -> Trials:
        """Those with a value."""
        return self._rows(self.codes == FINISHED)

    @property
    def failed(self) -> Trials:
        """Those cancelled."""
        return self._rows(self.codes == FAILED)

    @property
    def pending(self) -> Trials:
        """Those that have not ended."""
        return self._rows(self.codes == PENDING)

    @property
    def pruned(self) -> Trials:
        """Those whose evaluation was ended early, since it could hardly become the best."""
        return self._rows(self.codes == PRUNED)

    def _rows(self, which: slice | npt.NDArray[np.bool_]) -> Trials:
        return Trials(
            self.space,
            self.numbers[which],
            self.units[which],
            self.values[which],
            self.codes[which],
            self.stds[which],
        )

    def __repr__(self) -> str:
        counts = np.bincount(self.codes, minlength=len(STATES)).tolist()
        pruned = f", {counts[PRUNED]} pruned" if counts[PRUNED] else ""
        ended = f"{counts[FINISHED]} finished, {counts[FAILED]} failed{pruned}"
        return f"Trials({ended}, {counts[PENDING]} pending)"
