"""Evaluate the user's function, here or in a worker, and report its value or its failure."""

from __future__ import annotations

import functools
import inspect
import itertools
import math
import pickle
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from partita._text import message_of, params_text
from partita.errors import EvaluationFailed, InvalidInput
from partita.space import Space

from .trial import Trial
from .values import Observation, as_observation

#: Ways to choose branches for which a function's signature is checked, at most.
MOST_BRANCHES = 256
#: The user's function: of an array, or of keywords.
Function = Callable[..., Any]


class Outcome(NamedTuple):
    """A value, with the standard deviation of its noise if that is known, or why there is none.

    `trial` is the number of the trial if it was evaluated by an executor, `reports` what the
    function reported on its way, and `values` those of the constrained quantities.
    """

    value: float
    error: BaseException | None = None
    std: float | None = None
    trial: int | None = None
    reports: Mapping[int, float] | None = None
    values: tuple[float, ...] | None = None


class WrongCall(InvalidInput):
    """The function does not take the parameters of the space."""


def takes_trial(f: Function, space: Space) -> bool:
    """Whether a function is to be given the trial: it names a parameter so that is no setting.

    A function of an array that has this one parameter is given the array.
    """
    if space.names is not None and "trial" in space.names:
        return False
    if isinstance(f, functools.partial) and "trial" in f.keywords:
        return False
    try:
        parameters = inspect.signature(f).parameters
    except (TypeError, ValueError):  # some that are not written in Python
        return False
    if "trial" not in parameters or parameters["trial"].kind in NO_KEYWORDS:
        return False
    return space.named or next(iter(parameters)) != "trial"


#: Parameters of a function that cannot be given by name, one by one.
NO_KEYWORDS = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
)


def evaluate(f: Function, params: Any, trial: Trial | None = None) -> Observation:
    """The observation that f returns for parameters, and for a trial that it names."""
    return as_observation(called(f, params, {} if trial is None else {"trial": trial}))


def called(f: Function, params: Any, also: Mapping[str, Any]) -> Any:
    """Call f with keywords if params is a dict, else with a copy of the array."""
    try:
        return f(**params, **also) if isinstance(params, dict) else f(np.array(params), **also)
    except TypeError as error:
        misfit = _misfit(f, params, also)
        if misfit is None:
            raise
        raise WrongCall(misfit) from error


def _misfit(f: Function, params: Any, also: Mapping[str, Any]) -> str | None:
    """Why f cannot be called with the parameters, or None if it can."""
    try:
        signature = inspect.signature(f)
    except (TypeError, ValueError):  # some that are not written in Python
        return None
    try:
        if isinstance(params, dict):
            signature.bind(**params, **also)
        else:
            signature.bind(params, **also)
    except TypeError as error:
        named = [f"{name}=..." for name in [*(params if isinstance(params, dict) else ()), *also]]
        call = f"f({', '.join(named if isinstance(params, dict) else ['x', *named])})"
        shown = call if isinstance(params, dict) else f"{call}, x an array"
        return (
            f"the function takes {signature}, but is called as {shown}: {error}. A function of "
            "named parameters is called with keywords, as in f(lr=0.1, depth=3); of a list of "
            "bounds, with one array"
        )
    return None


def check_branches(f: Function, space: Space, also: Mapping[str, Any] | None = None) -> None:
    """Refuse a function that cannot be called in some branch, before any evaluation is spent.

    `also` is given besides the parameters: by default the trial, if f names it.
    """
    if space.conditions is None:
        return
    if also is None:
        also = {"trial": None} if takes_trial(f, space) else {}
    for params in itertools.islice(space.conditions.examples(), MOST_BRANCHES):
        misfit = _misfit(f, params, also)
        if misfit is not None:
            named = {k: v for k, v in params.items() if isinstance(v, str | bool)}
            error = WrongCall(
                f"{misfit}. This is the call in the branch {params_text(named)}: a parameter that "
                "not all branches have needs a default, such as C=None, or take **own"
            )
            raise EvaluationFailed(f"the run has not begun: {error}", 0, [error]) from error


def outcome_of(f: Function, params: Any, trial: Trial | None = None) -> Outcome:
    """The value of an evaluation, or the error it raised; `sys.exit()` counts as an error.

    Only KeyboardInterrupt is passed on: it is meant for the run. `trial` is passed to a function
    that names it.
    """
    try:
        seen = evaluate(f, params, trial)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        outcome = Outcome(math.nan, error)
    else:
        outcome = Outcome(seen.value, std=seen.std, values=seen.values)
    return outcome if trial is None else outcome._replace(reports=trial.reports)


class Task(NamedTuple):
    """An evaluation to make: the trial's number and parameters, and the trial if f names it."""

    number: int
    params: Any
    trial: Trial | None = None


def evaluate_all(f: Function, tasks: Sequence[Task]) -> list[Outcome]:
    """Make several evaluations in a worker, and return their outcomes.

    The numbers make every task different from every other: a scheduler that remembers the results
    of equal calls (Dask, unless pure=False) must not give the same noise twice. Errors are returned
    rather than raised, so that one failure of a batch does not lose the others.
    """
    outcomes = []
    for number, params, trial in tasks:
        outcome = outcome_of(f, params, trial)._replace(trial=number)
        if outcome.error is not None:
            outcome = outcome._replace(error=portable(outcome.error))
        outcomes.append(outcome)
    return outcomes


def portable(error: BaseException) -> BaseException:
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
