"""Evaluate the user's function, here or in a worker, and report its value or its failure."""

from __future__ import annotations

import math
import pickle
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from partita._text import message_of

from .values import Observation, as_observation

#: The user's function: of an array, or of keywords.
Function = Callable[..., Any]


class Outcome(NamedTuple):
    """A value, with the standard deviation of its noise if that is known, or why there is none.

    `trial` is the number of the trial if it was evaluated by an executor.
    """

    value: float
    error: BaseException | None = None
    std: float | None = None
    trial: int | None = None


def evaluate(f: Function, params: Any) -> Observation:
    """Call f with keywords if params is a dict, else with a copy of the array."""
    result = f(**params) if isinstance(params, dict) else f(np.array(params))
    return as_observation(result)


def outcome_of(f: Function, params: Any) -> Outcome:
    """The value of an evaluation, or the error it raised; `sys.exit()` counts as an error.

    Only KeyboardInterrupt is passed on: it is meant for the run.
    """
    try:
        seen = evaluate(f, params)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return Outcome(math.nan, error)
    return Outcome(seen.value, std=seen.std)


def evaluate_all(f: Function, tasks: Sequence[tuple[int, Any]]) -> list[Outcome]:
    """Evaluate several numbered sets of parameters in a worker, and return their outcomes.

    The numbers make every task different from every other: a scheduler that remembers the results
    of equal calls (Dask, unless pure=False) must not give the same noise twice. Errors are returned
    rather than raised, so that one failure of a batch does not lose the others.
    """
    outcomes = []
    for number, params in tasks:
        outcome = outcome_of(f, params)._replace(trial=number)
        if outcome.error is not None:
            outcome = outcome._replace(error=_portable(outcome.error))
        outcomes.append(outcome)
    return outcomes


def _portable(error: BaseException) -> BaseException:
    """The error itself if it survives pickling, else one that says the same.

    An error that cannot be rebuilt in the caller would take a whole process pool down.
    """
    try:
        told = "".join(traceback.format_exception(error)).rstrip()
    except Exception:  # whatever the error's own methods raise
        told = type(error).__qualname__
    try:
        pickle.loads(pickle.dumps(error))
        error.add_note(f"In the worker:\n{told}")
    except Exception:
        error = RuntimeError(f"{type(error).__qualname__}: {message_of(error)}")
        error.add_note(f"In the worker:\n{told}")
    return error
