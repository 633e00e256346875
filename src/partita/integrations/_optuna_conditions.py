"""What an Optuna objective asks for, and when: learned from its trials.

Define-by-run code says nothing of its branches. But where a parameter is asked for with some values
of another and never with others, that is a condition like `if model == "svm"` or `i < n_layers`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution

from partita.space import Categorical, Integer

from ._optuna_space import Rule, Rules, SearchSpace, parameter_of

#: Values that a parameter has at most to be one that others depend on.
MOST_VALUES = 64


class Structure:
    """Which parameters there are, and when each is asked for. To see a trial twice changes nothing.

    Attributes
    ----------
    distributions
        Of all parameters seen.
    changing
        Names of those whose distribution was not always the same.
    """

    def __init__(self) -> None:
        self.distributions: SearchSpace = {}
        self.changing: set[str] = set()
        #: Those that some trial did without.
        self._sometimes: set[str] = set()
        #: Values seen of those that others may depend on.
        self._seen: dict[str, set[int]] = {}
        #: By parameter and parent: values of the parent with which it was there, and was not.
        self._with: dict[str, dict[str, set[int]]] = {}
        self._without: dict[str, dict[str, set[int]]] = {}
        #: By parameter: those that were not there when it was.
        self._alone: dict[str, set[str]] = {}
        self._trials = False

    def observe(self, params: Mapping[str, Any], distributions: SearchSpace) -> bool:
        """Take in a trial that ended: whether `steady` is not what it was."""
        before, changing = list(self.distributions), len(self.changing)
        for name, distribution in distributions.items():
            if name not in self.distributions:
                self._meet(name, distribution, before)
            elif self.distributions[name] != distribution:
                self.changing.add(name)
        values = {
            name: int(distributions[name].to_internal_repr(params[name]))
            for name in self._seen
            if name in params and name not in self.changing
        }
        for name in self.distributions:
            there = name in distributions
            if not there:
                self._sometimes.add(name)
            for parent, value in values.items():
                by_parent = (self._with if there else self._without)[name]
                by_parent.setdefault(parent, set()).add(value)
            if there:
                self._alone[name].update(parent for parent in self._seen if parent not in values)
        for parent, value in values.items():
            self._seen[parent].add(value)
        self._trials = True
        return len(before) < len(self.distributions) or changing < len(self.changing)

    def _meet(self, name: str, distribution: BaseDistribution, before: list[str]) -> None:
        """Take in a parameter that no trial before had; those `before` were in some."""
        self._with[name] = {}
        self._without[name] = {parent: set(seen) for parent, seen in self._seen.items()}
        if self._trials:
            self._sometimes.add(name)
        if _may_decide(distribution):
            for other in before:
                self._alone[other].add(name)
            self._seen[name] = set()
        self._alone[name] = set()
        self.distributions[name] = distribution

    @property
    def steady(self) -> SearchSpace:
        """Distributions that were always the same."""
        return {n: d for n, d in self.distributions.items() if n not in self.changing}

    def rules(self, search_space: SearchSpace) -> Rules:
        """For each parameter that is not always there, when it is; None if no rule is found.

        Of several rules that fit, the one whose parent has had the fewest values: it was tested
        most. Parents come first, so nothing depends on itself.
        """
        rules: dict[str, Rule | None] = {}
        earlier: list[str] = []
        if not self._sometimes:
            return rules
        for name, distribution in self.distributions.items():
            if name in search_space and name in self._sometimes:
                fitting = [parent for parent in earlier if self._fits(name, parent)]
                best = min(fitting, key=lambda parent: len(self._seen[parent]), default=None)
                rules[name] = None if best is None else self._rule(name, best)
            if name in self._seen and search_space.get(name) == distribution:
                earlier.append(name)
        return rules

    def _fits(self, name: str, parent: str) -> bool:
        present = self._with[name].get(parent, set())
        absent = self._without[name].get(parent, set())
        return parent not in self._alone[name] and not present & absent and bool(present)

    def _rule(self, name: str, parent: str) -> Rule:
        """The rule, which guesses about values that the parent has not had yet.

        Another choice has parameters of its own, probably; a number is like the nearest one.
        """
        present = self._with[name][parent]
        absent = self._without[name].get(parent, set())
        every = values_of(self.distributions[parent])
        if not absent:  # it is there whenever its parent is
            return Rule(parent, frozenset(every))
        if isinstance(self.distributions[parent], CategoricalDistribution):
            return Rule(parent, frozenset(present))
        near = [v for v in every if _away(v, present) <= _away(v, absent)]
        return Rule(parent, frozenset(near))


def _away(value: int, others: set[int]) -> int:
    return min(abs(value - other) for other in others)


def values_of(distribution: BaseDistribution) -> list[int]:
    """Internal values of a distribution that others may depend on, in order."""
    if isinstance(distribution, CategoricalDistribution):
        return list(range(len(distribution.choices)))
    assert isinstance(distribution, IntDistribution)
    return list(range(distribution.low, distribution.high + 1, distribution.step))


def _may_decide(distribution: BaseDistribution) -> bool:
    """Whether others may depend on a parameter: a choice, or one of some whole numbers."""
    parameter = parameter_of(distribution)
    return isinstance(parameter, Categorical | Integer) and parameter.size <= MOST_VALUES
