"""The trials of a study as a table: CSV, or Parquet."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from partita._optional import require
from partita._types import FloatArray
from partita.errors import InvalidInput

from .events import BEGINNINGS, ENDINGS, Kind

if TYPE_CHECKING:
    from .study import Study

#: What formulas begin with, the apostrophe that guards against them, and nothing.
_FORMULAS = tuple("=+-@\t\r\n＝＋－＠'")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")

SUFFIXES = (".csv", ".parquet")


def columns(study: Study) -> dict[str, list[Any]]:
    """The trials, a column each: number, state, value, std, asked, ended, and the parameters.

    The values of constrained quantities come last, with `value_` before a name that is there.

    Times are of UTC. There is no std, the standard deviation of a value's noise, if it is not known
    of any value. Parameters that are called like one of the first six have `param_` before their
    name; those of an array are x0, x1, …
    """
    trials, expired = study.trials, set(study.expired)
    numbers = trials.numbers.tolist()
    states = ["expired" if n in expired else s for n, s in zip(numbers, trials.states, strict=True)]
    table: dict[str, list[Any]] = {
        "number": numbers,
        "state": states,
        "value": _known(trials.values),
        "std": _known(trials.stds),
        "asked": _times(study, BEGINNINGS, numbers),
        "ended": _times(study, ENDINGS, numbers),
    }
    params = trials.params
    if study.space.names is not None:
        for name in study.space.names:
            key = f"param_{name}" if name in table else name
            table[key] = [row[name] for row in params]
    else:
        for i, column in enumerate(params.T.tolist()):
            table[f"x{i}"] = column
    for name, column in zip(trials.quantities, trials.measured.T, strict=True):
        table[f"value_{name}" if name in table else name] = _known(column)
    if np.isnan(trials.stds).all():
        del table["std"]
    return table


def _known(numbers: FloatArray) -> list[float | None]:
    """Numbers (n,), with None for NaN."""
    return [None if np.isnan(number) else number for number in numbers.tolist()]


def _times(study: Study, kinds: Sequence[Kind], numbers: list[int]) -> list[datetime | None]:
    """When each trial had an event of some kinds, if it had one."""
    times = study.times(kinds)
    return [datetime.fromtimestamp(times[n], UTC) if n in times else None for n in numbers]


def export(study: Study, path: str | PathLike[str]) -> None:
    """Write the trials of a study to a file that ends in .csv or .parquet."""
    target = Path(path)
    if target.suffix not in SUFFIXES:
        raise InvalidInput(f"{target}: give a name that ends in {' or '.join(SUFFIXES)}")
    if not target.parent.is_dir():
        raise InvalidInput(f"{target}: there is no folder {target.parent}")
    if target.suffix == ".csv":
        with target.open("w", newline="", encoding="utf-8") as file:
            write_csv(study, file)
        return
    arrow, parquet = require("pyarrow"), require("pyarrow.parquet")
    table = {name: _typed(column) for name, column in columns(study).items()}
    parquet.write_table(arrow.table(table), target)


def write_csv(study: Study, file: IO[str]) -> None:
    """Write the trials of a study as CSV; what there is not yet is empty.

    A text that a spreadsheet would take for a formula has an apostrophe before it, and so has one
    that begins with an apostrophe: who takes one away from each that begins so has all as it was.
    """
    table = columns(study)
    # Cells with either end of a line are quoted for this terminator; lines end as ever.
    writer = csv.writer(_Lines(file), lineterminator="\r\n")
    writer.writerow(map(_cell, table))
    writer.writerows(map(_cell, row) for row in zip(*table.values(), strict=True))


class _Lines:
    """A file whose lines end with one character, whatever the writer of the lines thinks."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, line: str) -> int:
        return self._file.write(line.removesuffix("\r\n") + "\n")


def _cell(value: Any) -> Any:
    """What is written for a value: text that is neither a number nor a time is never a formula."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str) and value[:1] in _FORMULAS and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value


def _typed(column: list[Any]) -> list[Any]:
    """A column of one type: words where choices are of several."""
    kinds = {type(v) for v in column if v is not None}
    return column if len(kinds) <= 1 or kinds == {int, float} else list(map(_word, column))


def _word(value: Any) -> str | None:
    return None if value is None else str(value)
