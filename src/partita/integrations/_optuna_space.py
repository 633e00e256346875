"""Optuna's distributions as a space of Partita, and trials as points of it.

Values are in Optuna's internal form: numbers, and choices by their index. So choices may be of any
type, and a proposal is plain JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.study import StudyDirection

from partita.errors import InvalidInput
from partita.space import Categorical, Float, Integer, Stepped
from partita.space.conditions import MIDDLE, Condition
from partita.space.space import space_of

#: The attribute of a trial with the values proposed for it, a dict by name.
PROPOSAL = "partita:proposal"

SearchSpace = dict[str, BaseDistribution]


class Rule(NamedTuple):
    """A parameter is asked for where its parent is, and has one of some values, internal ones."""

    parent: str
    values: frozenset[int]


#: For each parameter that is not always asked for, when it is; None if no rule is known.
Rules = Mapping[str, Rule | None]


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
    """A search space, translated between Optuna and Partita.

    A parameter that is not always asked for is conditional in ours, if its rule is known. Else it
    is there always: where the objective does not ask for it, it hardly matters where it stands.
    """

    def __init__(self, search_space: SearchSpace, rules: Rules | None = None) -> None:
        self.search_space, self.rules = dict(search_space), dict(rules or {})
        parameters = [parameter_of(distribution) for distribution in search_space.values()]
        if not parameters or None in parameters:
            raise AssertionError("a search space of supported distributions")
        played = tuple(parameter for parameter in parameters if parameter is not None)
        names = tuple(search_space)
        conditions = tuple(self._condition(names, played, name) for name in names)
        self.space = space_of(names, played, conditions=conditions if any(conditions) else ())
        self._middle = {
            name: parameter.decode([MIDDLE] * parameter.width)
            for name, parameter in zip(names, played, strict=True)
            if name in self.rules and self.rules[name] is None
        }
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

    def _condition(
        self, names: tuple[str, ...], parameters: tuple[Any, ...], name: str
    ) -> tuple[Condition, ...]:
        """When a parameter is active, as our spaces say it."""
        rule = self.rules.get(name)
        if rule is None:
            return ()
        place = names.index(rule.parent)
        parent = parameters[place]
        numbers = sorted(rule.values)
        if isinstance(parent, Integer):
            numbers = [(value - parent.low) // parent.step for value in numbers]
        return (Condition(place, tuple(numbers)),)

    def external(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Values in the form that an objective gets."""
        choices = self._choices
        return {
            name: choices[name][value] if name in choices else value
            for name, value in values.items()
        }

    def point(self, trial: Any, proposal: Mapping[str, Any]) -> dict[str, Any] | None:
        """Values of a trial, in the internal form; None if it is not a point of this space.

        For a parameter that the objective did not ask for, the proposed value is used. If there is
        none, it is the middle for a parameter that is not always asked for, by no known rule.
        """
        values: dict[str, Any] = dict(self._middle)
        for name, distribution in self.search_space.items():
            if name in trial.params:
                try:
                    value = distribution.to_internal_repr(trial.params[name])
                except ValueError:
                    return None
                values[name] = int(value) if name in self._whole else value
            elif name in proposal:
                values[name] = proposal[name]
        active = [name for name in self.search_space if self._is_active(name, values)]
        if not all(name in values for name in active):
            return None
        return {name: values[name] for name in active}

    def _is_active(self, name: str, values: Mapping[str, Any]) -> bool:
        rule = self.rules.get(name)
        if rule is None:
            return True
        return values.get(rule.parent) in rule.values and self._is_active(rule.parent, values)
