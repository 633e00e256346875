"""The whole suite: as a test class, as a list of checks, and as one call."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from partita.policies.construct import name_of

from .case import Case
from .growth import GrowthTests
from .learning import LearningTests
from .pending import PendingTests
from .points import AskTellTests
from .promises import Promises
from .refusals import RefusalTests
from .repeats import RepeatTests
from .rules import ConformanceError, Failure, Rule, rule_methods
from .values import ValueTests


class PolicyTests(
    AskTellTests,
    RepeatTests,
    PendingTests,
    RefusalTests,
    ValueTests,
    GrowthTests,
    LearningTests,
):
    """Every rule, for a test suite to inherit.

    Examples
    --------
    >>> class TestMyPolicy(PolicyTests):
    ...     policy = MyPolicy
    ...     promises = Promises(domains=("grid", "arms"))
    """


@dataclass(frozen=True)
class Check:
    """One rule on one kind of domain. Run it with `run()`, or call it."""

    rule: Rule
    case: Case

    @property
    def name(self) -> str:
        """Rule and kind of domain, such as "pickling[box]"."""
        return f"{self.rule.name}[{self.case.kind}]"

    @property
    def description(self) -> str:
        """What is asked, in a sentence."""
        return self.rule.description

    def run(self) -> None:
        """Raise `ConformanceError` unless the policy passes."""
        self.rule.run(self.case)

    __call__ = run

    def __str__(self) -> str:
        return self.name


def checks(
    make: Callable[..., Any], promises: Promises | None = None, *, quick: bool = False
) -> list[Check]:
    """The checks that a policy must pass, to be run one by one.

    Parameters
    ----------
    make
        A policy class, or anything called like one: a classmethod, a function, a partial. It is
        built as the `policy` of `PolicyTests` is.
    promises
        What the policy promises; the default is all that Partita's policies do, at constant cost.
    quick
        Leave out the long runs: growth, regret and bounds.
    """
    promised = Promises() if promises is None else promises
    return [
        Check(method.rule, case)
        for case in [Case(make, promised, kind) for kind in promised.domains]
        for method in rule_methods(PolicyTests).values()
        if case.kind in method.rule.kinds_for(promised) and not (quick and method.rule.long)
    ]


def check_policy(
    make: Callable[..., Any], promises: Promises | None = None, *, quick: bool = False
) -> None:
    """Run all checks, without pytest; raise one `ConformanceError` that lists those that failed.

    Parameters are those of `checks`. Where a policy cannot be built on a kind of domain, the other
    checks of that kind are left out.
    """
    failures: list[Failure] = []
    broken: set[str] = set()
    todo = checks(make, promises, quick=quick)
    for check in todo:
        if check.case.kind in broken:
            continue
        try:
            check.run()
        except ConformanceError as error:
            failures += error.failures
            if check.rule.name == "methods":
                broken.add(check.case.kind)
    if failures:
        raise ConformanceError(
            f"{name_of(make)} fails {len(failures)} of {len(todo)} checks.\n\n{_listed(failures)}",
            tuple(failures),
        )


def _listed(failures: list[Failure]) -> str:
    """All failures, those that happened in the same way together."""
    alike: dict[str, list[Failure]] = {}
    for failure in failures:
        alike.setdefault(failure.happened, []).append(failure)
    return "\n\n".join(
        ", ".join(failure.check for failure in group) + "\n" + group[0].text
        for group in alike.values()
    )
