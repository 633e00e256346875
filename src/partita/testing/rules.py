"""Rules as test methods, and the classes of them that a test suite inherits.

pytest is never imported: it finds the hook `pytest_generate_tests` on a class by itself, and asks
it for the kinds of domain to run each rule on.
"""

from __future__ import annotations

import functools
import inspect
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from partita.errors import InvalidInput, PartitaError, TheoryWarning
from partita.policies.construct import name_of

from .case import Case, Departure
from .promises import KINDS, Promises

Test = Callable[[Any, Case], None]
#: Stands in a class in place of a rule whose promise is not made: pytest passes it over.
NOT_PROMISED = "not promised"


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
class Rule:
    """What is asked of a policy: a test that raises `Departure`, and the promises it rests on."""

    test: Test
    applies: Callable[[Promises], bool]
    kinds: tuple[str, ...]
    long: bool

    @property
    def name(self) -> str:
        """The name of the test, such as "ask-point" for `test_ask_point`."""
        return self.test.__name__.removeprefix("test_").replace("_", "-")

    @property
    def description(self) -> str:
        """What is asked, in a sentence: the test's docstring on one line."""
        return " ".join((self.test.__doc__ or "").split())

    def kinds_for(self, promises: Promises) -> list[str]:
        """The kinds of domain to check a policy on that makes these promises."""
        return [k for k in promises.domains if k in self.kinds and self.applies(promises)]

    def run(self, case: Case) -> None:
        """Raise `ConformanceError` unless the policy keeps the rule.

        A `TheoryWarning` is neither shown nor a failure: rules leave on purpose what theory covers.
        """
        __tracebackhide__ = True  # pytest shows the message, and what led to it
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", TheoryWarning)
                return self.test(None, case)
        except Departure as departure:
            says, cause = departure.args, departure.__cause__
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(last.filename).name}, line {last.lineno}, in {last.name}"
            happened = f"{type(error).__name__}: {error} ({place})"
            says, cause = (self.description, happened, "Fix what raised it."), error
        failure = Failure(f"{self.name}[{case.kind}]", *says)
        raise ConformanceError(f"{name_of(case.make)}: {failure}", (failure,)) from cause


def rule(
    applies: Callable[[Promises], bool] = lambda promises: True,
    *,
    kinds: tuple[str, ...] = KINDS,
    long: bool = False,
) -> Callable[[Test], Test]:
    """Make a test method a rule, for policies with promises that it applies to."""

    def decorate(test: Test) -> Test:
        described = Rule(test, applies, kinds, long)

        @functools.wraps(test)
        def method(self: Any, case: Case) -> None:
            __tracebackhide__ = True
            described.run(case)

        method.rule = described  # type: ignore[attr-defined]
        return method

    return decorate


def rule_methods(cls: type) -> dict[str, Any]:
    """The methods of a test class that are rules, promised or not, by their names."""
    methods: dict[str, Any] = {}
    for parent in cls.__mro__:
        for name, method in vars(parent).items():
            if name.startswith("test_") and method is not NOT_PROMISED:
                methods.setdefault(name, method)  # None where a class does without
    return {name: method for name, method in methods.items() if hasattr(method, "rule")}


class RuleTests:
    """What the classes to inherit have in common.

    Attributes
    ----------
    policy
        The policy class, or anything called like one: a classmethod, a function, a partial, or a
        method `def policy(self, domain, *, seed)`. It is built by
        `partita.policies.construct.construct`: the domain, and whichever of horizon, kernel,
        norm_bound, noise, delta and seed its signature names.
    promises
        What the policy promises. Rules of what is not promised are left out.
    """

    policy: ClassVar[Any] = None
    promises: ClassVar[Promises] = Promises()

    def __init_subclass__(cls, **options: Any) -> None:
        """Leave out the rules that do not apply, and only those."""
        super().__init_subclass__(**options)
        for name, method in rule_methods(cls).items():
            applies = method.rule.kinds_for(cls.promises)
            setattr(cls, name, method if applies else NOT_PROMISED)

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Have pytest run a rule on each kind of domain, and all rules of a kind together."""
        rule = getattr(metafunc.function, "rule", None)
        if rule is not None:
            kinds = rule.kinds_for(self.promises)
            tests: Any = type(self)
            cases = [case_of(tests, kind) for kind in kinds]
            metafunc.parametrize("case", cases, ids=kinds, scope="class")


@functools.cache
def case_of(tests: type[Any], kind: str) -> Case:
    """The policy of a test class on one kind of domain: one case, for rules that share a run."""
    make = inspect.getattr_static(tests, "policy")  # not bound, if it is a function
    if make is None:
        raise InvalidInput(f"{tests.__name__}: write `policy = MyPolicy` in the class.")
    if isinstance(make, staticmethod | classmethod):
        make = make.__get__(None, tests)
    elif inspect.isfunction(make) and [*inspect.signature(make).parameters][:1] == ["self"]:
        make = make.__get__(tests())
    return Case(make, tests.promises, kind)
