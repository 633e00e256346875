"""The trials of a study as a table: CSV, or Parquet."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from partita._optional import require
from partita.errors import InvalidInput
from partita.optimize.tables import Columns, as_arrow, columns_of

from .events import BEGINNINGS, ENDINGS, Kind

if TYPE_CHECKING:
    from .answers import Answers

#: Characters that formulas begin with, and the apostrophe that protects against them.
_FORMULAS = tuple("=+-@\t\r\n＝＋－＠'")
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?")

SUFFIXES = (".csv", ".parquet")


def columns(study: Answers) -> Columns:
    """The trials, a column each: number, state, value, std, asked, ended, and the parameters.

    Times are of UTC; for the rest see `partita.optimize.tables.columns_of`.
    """
    trials, expired = study.trials, set(study.expired)
    numbers = trials.numbers.tolist()
    times = {
        "asked": _times(study, BEGINNINGS, numbers),
        "ended": _times(study, ENDINGS, numbers),
    }
    table = columns_of(trials, times)
    pairs = zip(numbers, trials.states, strict=True)
    table["state"] = ["expired" if n in expired else state for n, state in pairs]
    return table


def _times(study: Answers, kinds: Sequence[Kind], numbers: list[int]) -> list[datetime | None]:
    """The time of each trial's event of the given kinds, or None."""
    times = study.times(kinds)
    return [datetime.fromtimestamp(times[n], UTC) if n in times else None for n in numbers]


def export(study: Answers, path: str | PathLike[str]) -> None:
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
    parquet = require("pyarrow.parquet")
    parquet.write_table(as_arrow(columns(study)), target)


def write_csv(study: Answers, file: IO[str]) -> None:
    """Write the trials of a study as CSV; missing values are empty.

    A text that a spreadsheet would take for a formula gets an apostrophe before it, and so does one
    that begins with an apostrophe. To restore the texts, remove one leading apostrophe from each
    that has one.
    """
    table = columns(study)
    # With this terminator, cells with \r or \n are quoted; `_Lines` writes the usual line ends.
    writer = csv.writer(_Lines(file), lineterminator="\r\n")
    writer.writerow(map(_cell, table))
    writer.writerows(map(_cell, row) for row in zip(*table.values(), strict=True))


class _Lines:
    """A file that ends each line with a single newline character."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, line: str) -> int:
        return self._file.write(line.removesuffix("\r\n") + "\n")


def _cell(value: Any) -> Any:
    """The text to write for a value; text that is not a number or time is never a formula."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str) and value[:1] in _FORMULAS and not _NUMBER.fullmatch(value):
        return f"'{value}"
    return value
