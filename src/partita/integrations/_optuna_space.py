"""Optuna's distributions as a space of Partita, and trials as points of it.

Values are in Optuna's internal form: numbers, and choices by their index. So choices may be of any
type, and a proposal is plain JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.study import StudyDirection

from partita.errors import InvalidInput
from partita.space import Categorical, Float, Integer, Stepped
from partita.space.space import space_of

#: The attribute of a trial with the values proposed for it, a dict by name.
PROPOSAL = "partita:proposal"

SearchSpace = dict[str, BaseDistribution]


def parameter_of(distribution: BaseDistribution) -> Float | Integer | Stepped | Categorical | None:
    """A distribution as a parameter; None for one that Partita does not support.

    That is a distribution with a single value, or a range too narrow or wide for floating point.
    """
    if distribution.single():
        return None
    try:
        if isinstance(distribution, CategoricalDistribution):
            return Categorical(tuple(range(len(distribution.choices))))
        if isinstance(distribution, IntDistribution):
            low, high = distribution.low, distribution.high
            return Integer(
                low, high, distribution.log, 1 if distribution.log else distribution.step
            )
        if isinstance(distribution, FloatDistribution):
            if distribution.step is not None:
                return Stepped(distribution.low, distribution.high, distribution.step)
            return Float(distribution.low, distribution.high, distribution.log)
    except InvalidInput:
        pass
    return None


def check_search_space(given: object) -> SearchSpace:
    """The supported part of the search space that a user gave."""
    if not isinstance(given, Mapping) or not given:
        raise InvalidInput(
            f"search_space={given!r}: give a dict of names and distributions, such as "
            '{"x": optuna.distributions.FloatDistribution(0, 1)}, or leave it out'
        )
    for name, distribution in given.items():
        if not isinstance(name, str) or not isinstance(distribution, BaseDistribution):
            raise InvalidInput(
                f"search_space has {name!r}: {distribution!r}, which is not a distribution: give "
                "one such as optuna.distributions.FloatDistribution(0, 1)"
            )
    played = playable(given)
    if not played:
        raise InvalidInput(
            f"search_space={given!r}: nothing in it varies. Give at least one parameter with two "
            "values or more"
        )
    return played


def playable(distributions: Mapping[str, BaseDistribution]) -> SearchSpace:
    """The distributions that Partita supports, by name."""
    return {
        name: distribution
        for name, distribution in sorted(distributions.items())
        if parameter_of(distribution) is not None
    }


def completed(study: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    """The values of all parameters; missing ones are those of the best trial with the others."""
    same = [
        trial
        for trial in study.get_trials(deepcopy=False)
        if trial.state.is_finished()
        and trial.value is not None
        and all(trial.params.get(name, value) == value for name, value in params.items())
    ]
    if not same:
        return dict(params)
    highest = study.direction == StudyDirection.MAXIMIZE
    best = (max if highest else min)(same, key=lambda trial: trial.value)
    return {**best.params, **params}


class Translation:
    """A search space, translated between Optuna and Partita."""

    def __init__(self, search_space: SearchSpace) -> None:
        self.search_space = dict(search_space)
        parameters = [parameter_of(distribution) for distribution in search_space.values()]
        if not parameters or None in parameters:
            raise AssertionError("a search space of supported distributions")
        played = tuple(parameter for parameter in parameters if parameter is not None)
        self.space = space_of(tuple(search_space), played)
        # Looked up once, since instance checks of Optuna's abstract classes are slow.
        self._choices = {
            name: distribution.choices
            for name, distribution in search_space.items()
            if isinstance(distribution, CategoricalDistribution)
        }
        self._whole = {
            name
            for name, distribution in search_space.items()
            if isinstance(distribution, CategoricalDistribution | IntDistribution)
        }

    def external(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Values in the form that an objective gets."""
        choices = self._choices
        return {
            name: choices[name][values[name]] if name in choices else values[name]
            for name in self.search_space
        }

    def point(self, trial: Any, proposal: Mapping[str, Any]) -> dict[str, Any] | None:
        """Values of a trial, in the internal form; None if it is not a point of this space.

        For a parameter that the objective did not ask for, the proposed value is used.
        """
        values: dict[str, Any] = {}
        for name, distribution in self.search_space.items():
            if name in trial.params:
                try:
                    value = distribution.to_internal_repr(trial.params[name])
                except ValueError:
                    return None
                values[name] = int(value) if name in self._whole else value
            elif name in proposal:
                values[name] = proposal[name]
            else:
                return None
        return values
