"""The trials at one moment, as users read them: a table and its records."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from partita._types import FloatArray, IntArray
from partita.space import Space

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
