"""The record of trials: growing arrays with one row per trial, and a table to read them."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from partita._state import LARGEST, Saved, State, wholes
from partita._types import FloatArray, IntArray
from partita.policies.repeats import MOST_VALUES
from partita.space import Space

from .aggregates import Aggregate
from .plans import plans_state, restored_plans
from .tables import as_arrow, as_dataframe, columns_of

if TYPE_CHECKING:
    from pandas import DataFrame
    from pyarrow import Table

    from .importance import Importance
    from .unexplored import Unexplored

PENDING: Final = 0
FINISHED: Final = 1
FAILED: Final = 2
PRUNED: Final = 3
STATES = ("pending", "finished", "failed", "pruned")
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


class Record(NamedTuple):
    """One trial of a table.

    Attributes
    ----------
    number
    params
        The arguments of the function: a dict, or an array.
    value
        The value reported; None if the trial is pending, failed or pruned.
    state
        "pending", "finished", "failed" or "pruned".
    std
        The standard deviation of the value's noise; None if it is not known.
    values
        Values of the constrained quantities by name; None if there are none.
    count
        The number of values of which `value` is the mean, with `std` their sample deviation if it
        is above 1. Of a pending row of a plan, how many are planned.
    """

    number: int
    params: Any
    value: float | None
    state: str
    std: float | None = None
    values: dict[str, float] | None = None
    count: int = 1  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        """Whether another record, or a tuple, holds the same; arrays are compared as a whole."""
        if not isinstance(other, tuple) or len(other) != len(self):
            return NotImplemented
        return self._replace(params=None)[:] == (other[0], None, *other[2:]) and _same(
            self.params, other[1]
        )

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((self.number, self.value, self.state, self.std))


def _same(params: Any, others: Any) -> bool:
    if isinstance(params, np.ndarray) or isinstance(others, np.ndarray):
        return np.array_equal(params, others)
    return bool(params == others)


@dataclass(frozen=True, eq=False, repr=False)
class Trials(Sequence[Record]):
    """The trials at one moment: a sequence of records, and arrays.

    `trials[0]`, `trials[-1]` and a loop over `trials` give a `Record` (number, params, value,
    state, std, values); `trials[10:20]` is another table, whose indices start from 0 again.
    `to_dataframe()` and `to_arrow()` give the same to pandas and Arrow.

    Attributes
    ----------
    space
    numbers
        (n,)
    units
        Points of the unit cube, (n, D).
    values
        The values reported, in the user's direction; NaN for trials without one. (n,)
    codes
        States as numbers: 0 pending, 1 finished, 2 failed, 3 pruned. (n,)
    stds
        Standard deviations of the values' noise, or the sample deviation of the values behind a
        mean; NaN where it is not known. (n,)
    measured
        Values of the C constrained quantities; NaN for trials without a value. (n, C)
    quantities
        Their names.
    counts
        The number of values of which each value is the mean. (n,)
    """

    space: Space
    numbers: IntArray
    units: FloatArray
    values: FloatArray
    codes: npt.NDArray[np.int8]
    stds: FloatArray
    measured: FloatArray
    quantities: tuple[str, ...] = ()
    counts: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def __post_init__(self) -> None:
        if len(self.counts) != len(self.numbers):
            self.__dict__["counts"] = np.ones(len(self.numbers), dtype=np.int64)

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
            int(self.counts[place]),
        )

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def params(self) -> Any:
        """The arguments of the function: a list of dicts, or an array (n, d)."""
        rows = [self.space.decode(unit) for unit in self.units]
        if self.space.named:
            return rows
        return np.array(rows).reshape(len(rows), -1) if rows else np.empty((0, self.space.dim))

    @property
    def states(self) -> list[str]:
        """The state of each trial: "pending", "finished", "failed" or "pruned"."""
        return [STATES[code] for code in self.codes]

    @property
    def finished(self) -> Trials:
        """The trials with a value."""
        return self._rows(self.codes == FINISHED)

    @property
    def failed(self) -> Trials:
        """The trials that failed or were cancelled."""
        return self._rows(self.codes == FAILED)

    @property
    def pending(self) -> Trials:
        """The trials that have not ended."""
        return self._rows(self.codes == PENDING)

    @property
    def pruned(self) -> Trials:
        """The trials that ended early, because they could hardly become the best."""
        return self._rows(self.codes == PRUNED)

    def to_dataframe(self) -> DataFrame:
        """A pandas data frame: a row a trial, with number, state, value, std and each parameter.

        There is no std if none is known, and no count if all are single values. A parameter that a
        trial does not have is empty there.
        Needs pandas: `pip install 'partita[tables]'`.
        """
        return as_dataframe(columns_of(self))

    def to_arrow(self) -> Table:
        """An Arrow table with the columns of `to_dataframe`.

        Choices that are not all of one type of Arrow's are words. Needs pyarrow:
        `pip install 'partita[tables]'`.
        """
        return as_arrow(columns_of(self))

    def importance(self) -> list[Importance]:
        """How much each parameter matters to the value, the most important first.

        Sobol's indices of a Gaussian process that is fitted to the values: shares of the variance
        over the whole space, with intervals over functions drawn from its posterior. Each entry
        has `name`, `total`, `lower`, `upper`, `first`, `first_lower` and `first_upper`.
        """
        from .importance import importance_of

        return importance_of(self)

    def unexplored(self) -> Unexplored | None:
        """The widest ball found without an evaluation that gave a value, if numbers are continuous.

        `width` is its diameter as a part of a side of the space, `params` its middle. A peak that
        is narrower may hide there, whatever a calibrated certificate says.
        """
        from .unexplored import unexplored_of

        return unexplored_of(self)

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
            self.counts[which],
        )

    def _repr_html_(self) -> str:
        from .html import trials_html

        return trials_html(self)

    def __repr__(self) -> str:
        counts = np.bincount(self.codes, minlength=len(STATES)).tolist()
        pruned = f", {counts[PRUNED]} pruned" if counts[PRUNED] else ""
        ended = f"{counts[FINISHED]} finished, {counts[FAILED]} failed{pruned}"
        return f"Trials({ended}, {counts[PENDING]} pending)"
