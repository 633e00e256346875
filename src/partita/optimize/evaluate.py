"""Evaluating the user's function, here or in a worker: it returns a number, or it has failed."""

from __future__ import annotations

import inspect
import math
import pickle
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from partita._text import message_of
from partita.errors import InvalidInput

from .values import Observation, as_observation

#: The user's function: of an array, or of keywords.
Function = Callable[..., Any]


class Outcome(NamedTuple):
    """A value, with the standard deviation of its noise if that is known, or why there is none.

    `trial` is the number of the trial if it was evaluated by an executor; `values` are those of the
    constrained quantities.
    """

    value: float
    error: BaseException | None = None
    std: float | None = None
    trial: int | None = None
    values: tuple[float, ...] | None = None


def evaluate(f: Function, params: Any) -> Observation:
    """What f returns at parameters: keywords for a dict, else a copy of the array."""
    try:
        result = f(**params) if isinstance(params, dict) else f(np.array(params))
    except TypeError as error:
        misfit = _misfit(f, params)
        if misfit is None:
            raise
        raise WrongCall(misfit) from error
    return as_observation(result)


class WrongCall(InvalidInput):
    """The function does not take the parameters of the space."""


def _misfit(f: Function, params: Any) -> str | None:
    """Why f cannot be called with the parameters, or None if it can."""
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):  # not every builtin has one
        return None
    try:
        if isinstance(params, dict):
            signature.bind(**params)
        else:
            signature.bind(params)
    except TypeError as error:
        call = f"f({', '.join(f'{name}=...' for name in params)})"
        called = call if isinstance(params, dict) else "f(x), x an array"
        return (
            f"the function takes {signature}, but is called as {called}: {error}. A function of "
            "named parameters is called with them as keywords, as in f(lr=0.1, depth=3); of a list "
            "of bounds, with one array"
        )
    return None


def outcome_of(f: Function, params: Any) -> Outcome:
    """How an evaluation ends, whatever the user's function raises, `sys.exit()` included.

    Only Ctrl-C is let through: it is meant for the run.
    """
    try:
        seen = evaluate(f, params)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return Outcome(math.nan, error)
    return Outcome(seen.value, std=seen.std, values=seen.values)


def evaluate_all(f: Function, tasks: Sequence[tuple[int, Any]]) -> list[Outcome]:
    """The outcome at each of several numbered parameters, in a worker.

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
