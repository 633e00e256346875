"""Values as a service sends and takes them: JSON, with None for NaN."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from partita.optimize.bulk import is_frame
from partita.optimize.trial import Trial
from partita.optimize.trials import STATES, Trials
from partita.space import Space


def table_of(space: Space, rows: Sequence[Any], quantities: Sequence[str]) -> Trials:
    """The trials of a table that a service sent row by row."""
    n = len(rows)
    units = np.array([space.encode(row["params"]) for row in rows]).reshape(n, space.dim)
    whole = {"expired": "failed", "prepared": "pending"}
    codes = [STATES.index(whole.get(row["state"], row["state"])) for row in rows]
    measured = [[as_float((r.get("values") or {}).get(q)) for q in quantities] for r in rows]
    return Trials(
        space,
        np.array([row["number"] for row in rows], dtype=int),
        units,
        np.array([as_float(row["value"]) for row in rows]),
        np.array(codes, dtype=np.int8),
        np.array([as_float(row.get("std")) for row in rows]),
        np.array(measured, dtype=float).reshape(n, len(quantities)),
        tuple(quantities),
        np.array([row.get("count", 1) for row in rows], dtype=np.int64),
    )


def as_float(value: Any, missing: float = math.nan) -> float:
    """A number; `missing` for null."""
    return missing if value is None else float(value)


def number_of(trial: Trial | int) -> Any:
    """The number of a trial, given itself or its number."""
    number: Any = trial.number if isinstance(trial, Trial) else trial
    return int(number) if isinstance(number, np.integer) else number


def as_text(given: Any) -> str | None:
    """JSON for a query; None if nothing was given."""
    return None if given is None else json.dumps(as_plain(given))


def as_plain(value: Any) -> Any:
    """A value as JSON: numbers of NumPy become Python's, NaN stays for the service to refuse."""
    if is_frame(value):
        return {str(name): as_plain(value[name]) for name in value.columns}
    if hasattr(value, "tolist"):  # of NumPy, or a column of a frame
        value = value.tolist()
    if isinstance(value, Mapping):
        return {name: as_plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [as_plain(part) for part in value]
    return None if type(value).__name__ == "NAType" else value
