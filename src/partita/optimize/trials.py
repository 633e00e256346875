"""The record of trials: arrays that grow, a row a trial, and a table to read them from."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from partita._state import LARGEST, Saved, State, wholes
from partita._types import FloatArray, IntArray
from partita.space import Space

PENDING: Final = 0
FINISHED: Final = 1
FAILED: Final = 2
STATES = ("pending", "finished", "failed")
#: Arrays of a ledger, in the order in which a table has them.
_COLUMNS = ("_units", "_values", "_states", "_stds", "_measured")


class Told(NamedTuple):
    """Values and their noise (n,) at points (n, D), with those of constrained quantities (n, C)."""

    units: FloatArray
    values: FloatArray
    stds: FloatArray | None
    measured: FloatArray


class Ledger:
    """Points (n, D) of the unit cube, values, their noise and states of trials, from number 0.

    Beside each value stand those of C constrained quantities.
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
        self._n = 0
        #: How many trials are in each state.
        self.counts = [0, 0, 0]

    def __len__(self) -> int:
        return self._n

    def append(
        self,
        unit: FloatArray,
        state: int = PENDING,
        value: float = math.nan,
        std: float | None = None,
        measured: Sequence[float] | None = None,
    ) -> int:
        """Take in a trial at a point (D,), pending unless told otherwise, and return its number."""
        number = self._n
        if number == len(self._states):
            self._units = np.concatenate([self._units, np.empty_like(self._units)])
            self._values = np.concatenate([self._values, np.full(number, np.nan)])
            self._stds = np.concatenate([self._stds, np.full(number, np.nan)])
            self._states = np.concatenate([self._states, np.zeros_like(self._states)])
            more = np.full_like(self._measured, np.nan)
            self._measured = np.concatenate([self._measured, more])
        self._units[number] = unit
        if state != PENDING:  # else they are NaN as they were made
            self._values[number] = value
            self._stds[number] = math.nan if std is None else std
            self._measured[number] = math.nan if measured is None else measured
        self._states[number] = state
        self.counts[state] += 1
        self._n = number + 1  # last: should anything interrupt this, there is no such trial
        return number

    def settle(
        self,
        number: int,
        state: int,
        value: float = math.nan,
        std: float | None = None,
        measured: Sequence[float] | None = None,
    ) -> None:
        """Give a trial its end state, its value and the standard deviation of that, if known."""
        before = self._states[number]
        self._values[number] = value
        self._stds[number] = math.nan if std is None else std
        self._measured[number] = math.nan if measured is None else measured
        self.failures.discard(number)
        self._states[number] = state  # once the value is there, should anything interrupt this
        self.counts[before] -= 1
        self.counts[state] += 1

    def recount(self) -> None:
        """Count the trials in each state again, after a change that was cut short."""
        states = self._states[: self._n]
        self.counts = np.bincount(states, minlength=len(STATES)).tolist()
        unsettled = np.flatnonzero(states == PENDING)
        for column in (self._values, self._stds, self._measured):
            column[unsettled] = math.nan
            column[self._n :] = math.nan

    def told(self) -> Iterator[Told]:
        """What was told: first the values without known noise, then the rest."""
        told = self._states[: self._n] == FINISHED
        noisy = np.isnan(self._stds[: self._n])
        for rows, given in ((told & noisy, False), (told & ~noisy, True)):
            if rows.any():
                places = np.flatnonzero(rows)
                stds = self._stds[places] if given else None
                measured = self._measured[places]
                yield Told(self._units[places], self._values[places], stds, measured)

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
        units, values, states, stds, measured = (
            getattr(self, name)[:n].copy() for name in _COLUMNS
        )
        names = self.quantities
        return Trials(space, np.arange(n), units, values, states, stds, measured, names)

    def as_data(self) -> State:
        """The record as plain data."""
        columns = {name[1:]: getattr(self, name)[: self._n].copy() for name in _COLUMNS}
        return {**columns, "failures": wholes(sorted(self.failures))}

    def restore(self, saved: Saved) -> None:
        """Go on from the record that `as_data` returned."""
        states = saved.bytes("states", (None,), FAILED)
        n, dim = len(states), self._units.shape[1]
        if not n:
            return
        self._units = saved.floats("units", (n, dim))
        self._values = saved.floats("values", (n,), nan=True)
        self._stds = saved.floats("stds", (n,), 0.0, LARGEST, nan=True)
        has_value = ~np.isnan(self._values)
        saved.require(np.array_equal(has_value, states == FINISHED), "values of finished trials")
        saved.require(has_value[~np.isnan(self._stds)].all(), "noise of values")
        self._measured = saved.floats("measured", (n, len(self.quantities)), nan=True)
        there = ~np.isnan(self._measured)
        saved.require((there == has_value[:, None]).all(), "values of constrained quantities")
        self.failures = set(saved.numbers("failures", n))
        failed = np.flatnonzero(states == FAILED).tolist()
        saved.require(self.failures <= set(failed), "failed trials")
        self._states, self._n = states, n
        self.counts = np.bincount(states, minlength=3).tolist()

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
        As told; None if the trial is pending or failed.
    state
        "pending", "finished" or "failed".
    std
        The standard deviation of the value's noise, as told; None if it is not known.
    values
        Values of the constrained quantities by name, as told; None if there are none.
    """

    number: int
    params: Any
    value: float | None
    state: str
    std: float | None = None
    values: dict[str, float] | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Trials(Sequence[Record]):
    """Trials as they stood when this table was made: a sequence of records, and arrays.

    `trials[0]`, `trials[-1]` and a loop over `trials` give a `Record` (number, params, value,
    state, std, values); `trials[10:20]` is another table. Places count from 0 in every table.

    Attributes
    ----------
    space
    numbers
        (n,)
    units
        Points of the unit cube, (n, D).
    values
        As told, in the user's direction; NaN for those pending or failed. (n,)
    codes
        States as numbers: 0 pending, 1 finished, 2 failed. (n,)
    stds
        Standard deviations of the values' noise, as told; NaN where it is not known. (n,)
    measured
        Values of the C constrained quantities, as told; NaN for those pending or failed. (n, C)
    quantities
        Their names.
    """

    space: Space
    numbers: IntArray
    units: FloatArray
    values: FloatArray
    codes: npt.NDArray[np.int8]
    stds: FloatArray
    measured: FloatArray
    quantities: tuple[str, ...] = ()

    @overload
    def __getitem__(self, place: int) -> Record: ...
    @overload
    def __getitem__(self, place: slice) -> Trials: ...
    def __getitem__(self, place: int | slice) -> Record | Trials:
        if isinstance(place, slice):
            return self._rows(place)
        place = operator.index(place)
        code, std = int(self.codes[place]), float(self.stds[place])
        values = dict(zip(self.quantities, self.measured[place].tolist(), strict=True))
        return Record(
            int(self.numbers[place]),
            self.space.decode(self.units[place]),
            float(self.values[place]) if code == FINISHED else None,
            STATES[code],
            None if math.isnan(std) else std,
            values if values and code == FINISHED else None,
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
        """Each one's state: "pending", "finished" or "failed"."""
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
        """Those neither told nor cancelled."""
        return self._rows(self.codes == PENDING)

    def _rows(self, which: slice | npt.NDArray[np.bool_]) -> Trials:
        return Trials(
            self.space,
            self.numbers[which],
            self.units[which],
            self.values[which],
            self.codes[which],
            self.stds[which],
            self.measured[which],
            self.quantities,
        )

    def __repr__(self) -> str:
        counts = np.bincount(self.codes, minlength=3).tolist()
        return f"Trials({counts[1]} finished, {counts[2]} failed, {counts[0]} pending)"
