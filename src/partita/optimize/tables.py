"""Trials as a table of named columns, for pandas, Arrow and files."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from partita._optional import require
from partita._types import FloatArray

if TYPE_CHECKING:
    from pandas import DataFrame
    from pyarrow import Table

    from .trials import Trials

#: A table: its columns by name, all of the same length, None for what is not known.
Columns = dict[str, list[Any]]
#: Kinds of values that Arrow has a type for.
_PLAIN = (bool, int, float, str, datetime)
#: Whole numbers of 64 bits: Arrow and pandas have no others.
_LEAST, _GREATEST = -(2**63), 2**63 - 1


def columns_of(trials: Trials, more: Mapping[str, list[Any]] | None = None) -> Columns:
    """The columns number, state, value, std, count, `more`, and one for each parameter.

    Values of constrained quantities come last, with `value_` before a name that is there already.
    There is no std, the standard deviation of a value's noise, if it is not known of any value, and
    no count, the number of values of which a value is the mean, if that is 1 everywhere. A
    parameter that a trial does not have is None there. One that is called like another column has
    `param_` before its name; those of an array are x0, x1, …
    """
    table: Columns = {
        "number": trials.numbers.tolist(),
        "state": trials.states,
        "value": known(trials.values),
        "std": known(trials.stds),
        **({"count": trials.counts.tolist()} if (trials.counts > 1).any() else {}),
        **(more or {}),
    }
    params = trials.params
    if trials.space.named:
        taken = set(table)
        for name in _names(trials.space.names or (), params):
            key = name
            while key in taken:
                key = f"param_{key}"
            taken.add(key)
            table[key] = [row.get(name) for row in params]
    else:
        table |= {f"x{i}": column for i, column in enumerate(params.T.tolist())}
    for name, column in zip(trials.quantities, trials.measured.T, strict=True):
        key = name
        while key in table:
            key = f"value_{key}"
        table[key] = known(column)
    if np.isnan(trials.stds).all():
        del table["std"]
    return table


def known(numbers: FloatArray) -> list[float | None]:
    """Numbers (n,), with None for NaN."""
    return [None if math.isnan(number) else number for number in numbers.tolist()]


def _names(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of a space, then all others that rows have, each once."""
    return list(dict.fromkeys([*names, *(name for row in rows for name in row)]))


# -- as pandas and Arrow have them -----------------------------------------------------------------


def as_dataframe(table: Columns) -> DataFrame:
    """A pandas data frame, each column of the narrowest type that holds its values.

    What is not known is NaN among real numbers and NA among whole numbers and booleans.
    """
    pandas = require("pandas")
    made = {
        name: pandas.Series(column, dtype=_pandas_type(column), name=name)
        for name, column in table.items()
    }
    return pandas.DataFrame(made)


def _pandas_type(column: list[Any]) -> str:
    kinds = {type(value) for value in column if value is not None}
    missing = any(value is None for value in column)
    if kinds <= {float} or kinds == {int, float}:
        return "float64"
    if kinds == {int} and _fits(column):
        return "Int64" if missing else "int64"
    if kinds == {bool}:
        return "boolean" if missing else "bool"
    if kinds == {datetime}:
        return "datetime64[us, UTC]"
    return "object"


def as_arrow(table: Columns) -> Table:
    """An Arrow table; choices of several kinds, or that Arrow has no type for, are words."""
    return require("pyarrow").table({name: typed(column) for name, column in table.items()})


def typed(column: list[Any]) -> list[Any]:
    """A column of one type that Arrow has: words where values are of several, or of another."""
    kinds = {type(value) for value in column if value is not None}
    if kinds == {int, float}:
        return _mapped(float, column)
    if len(kinds) <= 1 and kinds <= set(_PLAIN) and _fits(column):
        return column
    return _mapped(str, column)


def _fits(column: list[Any]) -> bool:
    """Whether the whole numbers of a column fit into 64 bits."""
    return all(type(value) is not int or _LEAST <= value <= _GREATEST for value in column)


def _mapped(kind: Callable[[Any], Any], column: list[Any]) -> list[Any]:
    return [None if value is None else kind(value) for value in column]
