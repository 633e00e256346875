"""Constraints of Optuna's trials: values that are at most zero where a trial is feasible.

An objective calls `trial.set_constraint(key, value)`, or the sampler has a `constraints_func`.
Optuna stores both as system attributes of the trial, and so they reach every worker.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from optuna.trial import TrialState

from partita.errors import InvalidInput

#: The attribute with the values of a `constraints_func`, and what those of single keys begin with.
KEY = "constraints"
#: What the optimizer calls the objective.
OBJECTIVE = "objective"

ConstraintsFunc = Callable[[Any], Sequence[float]]


def limits_of(trial: Any) -> dict[str, float]:
    """The values of a trial's constraints by key; those of a `constraints_func` by number."""
    limits: dict[str, float] = {}
    for name, given in trial.system_attrs.items():
        if name == KEY and given is not None:
            limits.update({str(i): float(value) for i, value in enumerate(given)})
        elif name.startswith(f"{KEY}:"):
            limits[name.removeprefix(f"{KEY}:")] = float(given)
    return limits


def texts_of(keys: Sequence[str]) -> list[str]:
    """The constraints as `Optimizer` takes them, by names that no parameter is likely to have."""
    return [f"{_name(i)} <= 0" for i in range(len(keys))]


def _name(i: int) -> str:
    return f"partita.limit.{i}"


def by_name(value: float, keys: Sequence[str], limits: Mapping[str, float]) -> dict[str, Any]:
    """What the optimizer is told of a trial with all of its constraints."""
    return {OBJECTIVE: value, **{_name(i): limits[key] for i, key in enumerate(keys)}}


def check_func(constraints_func: object) -> ConstraintsFunc | None:
    """The function itself; refused if it cannot be one."""
    if constraints_func is not None and not callable(constraints_func):
        raise InvalidInput(
            f"constraints_func={constraints_func!r:.100}: give a function of a trial that returns "
            "numbers, each at most 0 where the trial is feasible"
        )
    return constraints_func


def stored(func: ConstraintsFunc, study: Any, trial: Any, state: TrialState) -> dict[str, Any]:
    """The trial's system attributes, with what the function says of a trial that has a value.

    They are stored with the trial, where Optuna's own samplers store them.
    """
    if state not in (TrialState.COMPLETE, TrialState.PRUNED):
        return dict(trial.system_attrs)
    given = func(trial)
    try:
        values = tuple(float(value) for value in given)
    except (TypeError, ValueError):
        values = (math.nan,)
    if any(math.isnan(value) for value in values):
        raise InvalidInput(
            f"constraints_func returned {given!r:.100} for trial {trial.number}: return a sequence "
            "of numbers, each at most 0 where the trial is feasible"
        )
    study._storage.set_trial_system_attr(trial._trial_id, KEY, values)
    return {**trial.system_attrs, KEY: values}
