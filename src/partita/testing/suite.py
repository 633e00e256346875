"""The suite: all checks that a policy's promises call for, one by one or all together."""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from partita.errors import PartitaError, TheoryWarning
from partita.policies.construct import name_of

from . import asking, growth, learning, points, refusals, repeats, values
from .case import Case, Departure
from .promises import Promises
from .rules import Rule

#: Every rule, in the order it is checked.
RULES: tuple[Rule, ...] = (
    *points.RULES,
    *repeats.RULES,
    *asking.RULES,
    *refusals.RULES,
    *values.RULES,
    *growth.RULES,
    *learning.RULES,
)


class Failure(NamedTuple):
    """A check that a policy does not pass."""

    check: str
    expected: str
    happened: str
    advice: str

    def __str__(self) -> str:
        return f"{self.check}\n{self.text}"

    @property
    def text(self) -> str:
        """What was expected, what happened and what to do, on three lines."""
        return (
            f"    expected: {self.expected}\n"
            f"    happened: {self.happened}\n"
            f"    to do:    {self.advice}"
        )


class ConformanceError(PartitaError, AssertionError):
    """A policy does not keep what it promises. `failures` lists the checks it does not pass."""

    def __init__(self, message: str, failures: tuple[Failure, ...] = ()) -> None:
        super().__init__(message)
        self.failures = failures


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
        """Raise `ConformanceError` unless the policy passes.

        A `TheoryWarning` is no failure, and not shown: checks leave on purpose what theory covers.
        """
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TheoryWarning)
                self.rule.test(self.case)
        except Departure as departure:
            failure = Failure(self.name, departure.expected, departure.happened, departure.advice)
            cause = departure.__cause__
        except Exception as error:
            failure = Failure(
                self.name,
                self.description,
                f"{type(error).__name__}: {error} ({_place(error)})",
                "Mend what raised it. checks(…) run one at a time show the whole traceback.",
            )
            cause = error
        else:
            return
        raise ConformanceError(f"{self.case.name}: {failure}", (failure,)) from cause

    def __call__(self) -> None:
        """The same as `run()`."""
        self.run()

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
        built by `partita.policies.construct.construct`: the domain, and whichever of horizon,
        kernel, norm_bound, noise, delta and seed its signature names.
    promises
        What the policy promises; the default is all that Partita's policies do, at constant cost.
    quick
        Leave out the long runs: growth, regret and bounds.

    Examples
    --------
    >>> @pytest.mark.parametrize("check", pt.testing.checks(MyPolicy), ids=str)
    ... def test_conformance(check):
    ...     check.run()
    """
    promised = Promises() if promises is None else promises
    return [
        Check(rule, case)  # one case a kind, so that its checks can share a long run
        for case in [Case(make, promised, kind) for kind in promised.domains]
        for rule in RULES
        if case.kind in rule.kinds and rule.applies(promised) and not (quick and rule.long)
    ]


def check_policy(
    make: Callable[..., Any], promises: Promises | None = None, *, quick: bool = False
) -> None:
    """Run all checks; raise one `ConformanceError` that lists those that failed.

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
        "\n".join([", ".join(failure.check for failure in group), group[0].text])
        for group in alike.values()
    )


def _place(error: Exception) -> str:
    """Where an error was raised, such as "policy.py, line 12, in ask"."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return "no traceback"
    last = frames[-1]
    return f"{Path(last.filename).name}, line {last.lineno}, in {last.name}"
