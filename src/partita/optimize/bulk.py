"""Many observations at once: what users give for them, as points, values and noise.

Parameters come as an array (n, d), a list of what the function is given, a dict of columns, or a
data frame. With constraints, so do the values: a list of dicts, a dict of columns, or a data frame.
Either all rows can be used, or the call is refused and names the first that cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from partita._types import FloatArray, IntArray
from partita.errors import InvalidInput, PartitaError
from partita.space import Space
from partita.space.columns import encode_rows

from .values import Observation

#: What a column of numbers or choices may be, besides anything with `tolist`, such as a Series.
_LISTS = (list, tuple)


class Batch(NamedTuple):
    """Observations to add: points (n, D) of the unit cube, values (n,), noise (n,) or None.

    Noise is a standard deviation, NaN where it is not known. `counts` (n,) say of how many values
    each is the mean; None if each is a single one. `measured` (n, C) are the values of the
    constrained quantities; None without constraints.
    """

    units: FloatArray
    values: FloatArray
    stds: FloatArray | None
    counts: IntArray | None = None
    measured: FloatArray | None = None

    def parts(self) -> Iterator[Batch]:
        """The rows without known noise, then those with it, as policies are told them.

        Values of constrained quantities are left out: policies are told them before.
        """
        if self.stds is None or self.counts is not None:
            yield self._replace(measured=None)
            return
        unknown = np.isnan(self.stds)
        for rows in (unknown, ~unknown):
            if rows.any():
                stds = None if rows is unknown else self.stds[rows]
                yield Batch(self.units[rows], self.values[rows], stds)

    def rows(self) -> Iterator[tuple[FloatArray, float, float | None, int]]:
        """The observations one by one."""
        n = len(self.values)
        stds = [None] * n if self.stds is None else _known(self.stds)
        counts = [1] * n if self.counts is None else self.counts.tolist()
        yield from zip(self.units, self.values.tolist(), stds, counts, strict=True)


def _known(stds: FloatArray) -> list[float | None]:
    return [None if np.isnan(std) else std for std in stds.tolist()]


def is_many(params: Any, value: Any, space: Space) -> bool:
    """Whether an `add` is of several observations, by the form of what it is given."""
    if is_frame(params):
        return True
    columns = _columns_of(value)
    if not space.named:
        return bool(columns) and _depth(params) == 2
    if isinstance(params, _LISTS) or np.ndim(params) == 2:
        return True
    # A value may be an array of one number at single parameters, and a choice may be a tuple.
    return isinstance(params, Mapping) and bool(columns) and any(map(is_column, params.values()))


def _columns_of(value: Any) -> list[Any]:
    """The columns that values are given as, one for each quantity; none for a single value."""
    if is_frame(value):
        return [value[name] for name in value.columns]
    if isinstance(value, Mapping):
        return [entry for entry in value.values() if is_column(entry)]
    return [value] if is_column(value) else []


def is_frame(params: Any) -> bool:
    """Whether parameters are a data frame, of pandas or another that has its words."""
    return hasattr(params, "columns") and hasattr(params, "__getitem__")


def read_batch(
    params: Any,
    values: Any,
    std: Any,
    space: Space,
    point_of: Callable[[Any, str], FloatArray],
    observation: Callable[[Any, Any, str, Any], Observation],
    count: Any = None,
) -> Batch:
    """Observations that a user gives, checked.

    Parameters
    ----------
    params, values, std
        What `Optimizer.add` was given.
    space
    point_of, observation
        The point of parameters, and a value with its noise: those of `Optimizer`.
    count
        Of how many values each is the mean: None, one number, or n.
    """
    rows = _rows(params, space)
    n = len(rows)
    given = _column("value", values, n)
    noises = None if std is None else _column("std", std, n) if np.ndim(std) else [std] * n
    times = _column("count", count, n) if np.ndim(count) else [count] * n
    units, told, stds = np.empty((n, space.dim)), np.empty(n), np.full(n, np.nan)
    encoded = encode_rows(rows, space)
    counts = np.ones(n, dtype=np.int64)
    measured: list[tuple[float, ...]] = []
    for i, row in enumerate(rows):
        with _Row(i):
            units[i] = encoded[i] if encoded is not None else point_of(_filled(row, space), "add")
            noise = None if noises is None else noises[i]
            missing = isinstance(noise, float) and np.isnan(noise)
            seen = observation(given[i], None if missing else noise, "add", times[i])
            told[i], stds[i] = seen.value, np.nan if seen.std is None else seen.std
            counts[i] = seen.count
            if seen.values is not None:
                measured.append(seen.values)
    many = counts if (counts > 1).any() else None
    known = None if np.isnan(stds).all() else stds
    return Batch(units, told, known, many, np.array(measured) if measured else None)


def _filled(row: Any, space: Space) -> Any:
    """A row of a table without what is empty since it is not active."""
    if space.conditions is None or not isinstance(row, Mapping):
        return row
    return space.conditions.filled(row)


class _Row:
    """Says which row could not be used, and that none was."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, PartitaError):
            raise InvalidInput(
                f"add: row {self._number} cannot be used, so that none was added: {error}"
            ) from error


def _rows(params: Any, space: Space) -> Sequence[Any]:
    """The parameters of each observation, as the function would be given them."""
    if is_frame(params):
        names = [str(name) for name in params.columns]
        columns = {name: params[column] for name, column in zip(names, params.columns, strict=True)}
        if not space.named:
            return _transposed(list(columns.values()))
        return _by_name(columns)
    if isinstance(params, Mapping):
        return _by_name(params)
    if not space.named:
        return list(params)
    if isinstance(params, _LISTS):
        return [_with_names(row, space) for row in params]
    if isinstance(params, np.ndarray):
        return [_with_names(row, space) for row in params.tolist()]
    raise InvalidInput(
        f"add({params!r:.100}, ...): for several observations give a list of dicts, a dict of "
        "columns, or a data frame"
    )


def _with_names(row: Any, space: Space) -> Any:
    """Parameters that are given by place, by their names; others as they are."""
    if not isinstance(row, list | tuple | np.ndarray):
        return row
    names = space.names or ()
    values = row.tolist() if isinstance(row, np.ndarray) else row
    if space.conditions is not None or len(values) != len(names):
        why = "a space with branches has no" if space.conditions is not None else "the space has"
        columns = "fixed columns" if space.conditions is not None else f"{len(names)} parameters"
        raise InvalidInput(
            f"add: the row {row!r:.100} has no names, and {why} {columns}. Give a list of dicts, a "
            "dict of columns, or a data frame"
        )
    return dict(zip(names, values, strict=True))


def _by_name(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    lists = {}
    for name, column in columns.items():
        if not is_column(column):
            raise InvalidInput(
                f"add: {name}={column!r:.100} is not a column. For several observations give a "
                "list or array for each parameter, all of the same length"
            )
        lists[name] = _as_list(column)
    lengths = {name: len(column) for name, column in lists.items()}
    if len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name} {length:,}" for name, length in lengths.items())
        raise InvalidInput(f"add: columns have different lengths ({shown}). Give one row each")
    return [dict(zip(lists, row, strict=True)) for row in zip(*lists.values(), strict=True)]


def _transposed(columns: list[Any]) -> list[Any]:
    return [np.array(row) for row in zip(*map(_as_list, columns), strict=True)]


def _column(name: str, given: Any, n: int) -> list[Any]:
    """A list of n entries; of dicts, for several columns."""
    if is_frame(given):
        given = _by_name({str(column): given[column] for column in given.columns})
    elif isinstance(given, Mapping):
        given = _by_name(given)
    if not is_column(given):
        raise InvalidInput(
            f"add: there are {n:,} rows of parameters but {name}={given!r:.100}: give a list or "
            f"array of {n:,} numbers"
        )
    entries = _as_list(given)
    if len(entries) != n:
        raise InvalidInput(
            f"add: there are {n:,} rows of parameters but {len(entries):,} entries of {name}: give "
            "one for each row"
        )
    return entries


def is_column(given: Any) -> bool:
    """Whether something is a list or an array (n,) of entries."""
    return isinstance(given, _LISTS) or (hasattr(given, "tolist") and np.ndim(given) == 1)


def _as_list(column: Any) -> list[Any]:
    return list(column) if isinstance(column, _LISTS) else list(column.tolist())


def _depth(params: Any) -> int:
    """The number of dimensions of an array, or of a list that could be one."""
    if isinstance(params, _LISTS):
        return 1 + (len(params) == 0 or bool(np.ndim(params[0])))
    return int(np.ndim(params))
