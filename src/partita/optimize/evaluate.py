"""Evaluating the user's function, here or in a worker: what it returns is a number or a failure."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .values import as_value

#: The user's function: of an array, or of keywords.
Function = Callable[..., Any]


class Outcome(NamedTuple):
    """A value, or why there is none."""

    value: float
    error: BaseException | None = None


def evaluate(f: Function, params: Any) -> float:
    """The value of f at parameters: keywords for a dict, else a copy of the array."""
    result = f(**params) if isinstance(params, dict) else f(np.array(params))
    return as_value(result)


def evaluate_all(f: Function, tasks: Sequence[tuple[int, Any]]) -> list[Outcome]:
    """The outcome at each of several numbered parameters, in a worker.

    The numbers make every task different from every other: a scheduler that remembers the results
    of equal calls (Dask, unless pure=False) must not give the same noise twice. Errors are returned
    rather than raised, so that one failure of a batch does not lose the others.
    """
    outcomes = []
    for _, params in tasks:
        try:
            outcomes.append(Outcome(evaluate(f, params)))
        except Exception as error:  # whatever the user's function raises
            outcomes.append(Outcome(float("nan"), _portable(error)))
    return outcomes


def _portable(error: Exception) -> Exception:
    """The error itself if it survives pickling, else one that says the same.

    An error that cannot be rebuilt in the caller would take a whole process pool down.
    """
    told = "".join(traceback.format_exception(error))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # whatever the error's own pickling raises
        error = RuntimeError(f"{type(error).__qualname__}: {error}")
    error.add_note(f"In the worker:\n{told.rstrip()}")
    return error
