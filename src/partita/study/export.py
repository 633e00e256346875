"""The trials of a study as a table: CSV, or Parquet."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
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

SUFFIXES = (".csv", ".parquet")


def columns(study: Study) -> dict[str, list[Any]]:
    """The trials, a column each: number, state, value, std, asked, ended, and the parameters.

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
    """Write the trials of a study as CSV; what there is not yet is empty."""
    table = columns(study)
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(map(_texts, zip(*table.values(), strict=True)))


def _texts(row: Iterable[Any]) -> list[Any]:
    return [v.isoformat() if isinstance(v, datetime) else v for v in row]


def _typed(column: list[Any]) -> list[Any]:
    """A column of one type: words where choices are of several."""
    kinds = {type(v) for v in column if v is not None}
    return column if len(kinds) <= 1 or kinds == {int, float} else list(map(_word, column))


def _word(value: Any) -> str | None:
    return None if value is None else str(value)
