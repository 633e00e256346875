"""Rules of bad input: what must be refused, and that a refusal changes nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from partita._types import FloatArray
from partita.model.domains import Box

from .case import REFUSALS, Case, Departure, takes_std
from .problems import Problem
from .rules import RuleTests, rule

#: Steps before a call that should be refused.
_BEFORE = 6


class BadCall(NamedTuple):
    """A tell that must be refused, in words and as arguments."""

    words: str
    x: Any
    y: Any
    std: Any = None


#: Lists the bad calls about a pending point of a problem.
BadCalls = Callable[[Problem, FloatArray], list[BadCall]]


class RefusalTests(RuleTests):
    """Bad input, and what is left after it was refused."""

    @rule()
    def test_bad_points(self, case: Case) -> None:
        """A point of the wrong shape, not finite, no number or outside the domain is refused."""
        _check_refused(case, _bad_points)

    @rule()
    def test_bad_values(self, case: Case) -> None:
        """A value that is NaN, infinite, no number or more than one is refused."""
        _check_refused(case, _bad_values)

    @rule(lambda promises: promises.bulk)
    def test_bad_bulk(self, case: Case) -> None:
        """Bulk tells whose lengths differ, or with one bad row, are refused."""
        _check_refused(case, _bad_bulks)

    @rule()
    def test_bad_std(self, case: Case) -> None:
        """A bad `std` of a value is refused; any is, if the policy does not say `takes_std`."""
        _check_refused(case, _bad_stds(case))

    @rule()
    def test_refused_unchanged(self, case: Case) -> None:
        """A refused tell changes nothing: the point stays pending, later asks are the same."""
        twin = case.start(steps=_BEFORE)
        twin.tell(twin.ask())
        expected = twin.play(8, stream=1)
        bulks = [_bad_bulks] if case.promises.bulk else []
        for bad_calls in (_bad_points, _bad_values, *bulks, _bad_stds(case)):
            for i in range(len(bad_calls(case.problem, expected[0]))):
                game = case.start(steps=_BEFORE)
                pending = game.ask()
                call = bad_calls(case.problem, pending)[i]
                if _outcome(game.policy, call) is None:
                    continue  # went through: another rule says so
                game.check_count("told", _BEFORE, f"after {call.words} was refused")
                game.check_count("pending", 1, f"after {call.words} was refused")
                game.tell(pending)
                case.check_same(
                    expected,
                    game.play(8, stream=1),
                    f"{call.words} is refused and changes nothing",
                    "Check all of a call's input before changing any state.",
                )


def _check_refused(case: Case, bad_calls: BadCalls) -> None:
    """Refuse a policy that takes any of the calls; the message names them all."""
    taken = []
    game = case.start(steps=_BEFORE)
    for call in bad_calls(case.problem, game.ask()):
        outcome = _outcome(game.policy, call)
        if isinstance(outcome, REFUSALS):
            continue
        taken.append(
            f"{call.words} was accepted"
            if outcome is None
            else f"{call.words} raised {type(outcome).__name__}: {outcome}"
        )
        game = case.start(steps=_BEFORE)  # what took bad input is of no more use
        game.ask()
    if taken:
        raise Departure(
            "bad input raises ValueError, TypeError or LookupError",
            "; ".join(taken),
            "Check input at the start of tell(), or subclass partita.Policy, which does.",
        )


def _outcome(policy: Any, call: BadCall) -> Exception | None:
    """What a call raised, or None if it went through."""
    try:
        if call.std is None:
            policy.tell(call.x, call.y)
        else:
            policy.tell(call.x, call.y, std=call.std)
    except Exception as error:
        return error
    return None


def _bad_points(problem: Problem, x: FloatArray) -> list[BadCall]:
    dim, y, domain = problem.domain.dim, problem.f(x), problem.domain
    side = domain.upper - domain.lower
    points = {
        "a point with a coordinate too many": np.append(x, x[0]),
        "a point with a coordinate too few": x[1:],
        "an empty point": np.empty(0),
        "a number as the point": 0.5,
        "a point of shape (1, 1, d)": x.reshape(1, 1, dim),
        "a point with a NaN": np.where(np.arange(dim) == 0, math.nan, x),
        "an infinite point": np.where(np.arange(dim) == 1, math.inf, x),
        "None as the point": None,
        "a word as the point": "x",
        "a point above the domain": domain.upper + 0.1 * side,
        "a point below the domain": domain.lower - 0.1 * side,
    }
    if not isinstance(domain, Box):
        points["a point between two arms"] = domain.points[:2].mean(axis=0)
    return [BadCall(f"tell of {words}", point, y) for words, point in points.items()]


def _bad_values(problem: Problem, x: FloatArray) -> list[BadCall]:
    values = (math.nan, math.inf, -math.inf, None, "high", [0.5, 0.25])
    return [BadCall(f"tell(x, {value!r})", x, value) for value in values]


def _bad_bulks(problem: Problem, x: FloatArray) -> list[BadCall]:
    points = problem.some_points(4, stream=2)
    values = problem.values(points)
    outside, undefined = points.copy(), points.copy()
    outside[2] = problem.domain.upper * 2.0 + 1.0
    undefined[3, 0] = math.nan
    return [
        BadCall("tell of four points and three values", points, values[:3]),
        BadCall("tell of four points and five values", points, np.append(values, 0.0)),
        BadCall("tell of four points and one value", points, 0.5),
        BadCall("tell of four points with too many columns", np.hstack([points, points]), values),
        BadCall("tell of four points, one outside the domain", outside, values),
        BadCall("tell of four points, one with a NaN", undefined, values),
        BadCall("tell of four values, one NaN", points, np.array([0.0, 0.0, 0.0, math.nan])),
    ]


def _bad_stds(case: Case) -> BadCalls:
    """Lists the tells with a noise of single values that this policy must refuse."""
    takes = takes_std(case.start().policy)

    def bad_calls(problem: Problem, x: FloatArray) -> list[BadCall]:
        y = problem.f(x)
        stds = [-0.1, math.nan, math.inf, "low", [0.1, 0.1], *([] if takes else [0.1, 0.0])]
        calls = [BadCall(f"tell(x, y, std={std!r})", x, y, std) for std in stds]
        if not case.promises.bulk:
            return calls
        points = problem.some_points(4, stream=2)
        values = problem.values(points)
        many = [-0.1, math.nan, [0.1] * 3, [[0.1] * 4], [0.1, 0.1, 0.1, -0.1]]
        many += [] if takes else [0.1, [0.1] * 4]
        return calls + [
            BadCall(f"tell of four points with std={std!r}", points, values, std) for std in many
        ]

    return bad_calls
