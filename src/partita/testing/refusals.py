"""Checks of bad input: what must be refused, and that a refusal changes nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from partita._types import FloatArray
from partita.model.domains import Box

from .case import REFUSALS, AskTell, Case, Departure, ask, play, refused
from .problems import Problem
from .rules import Rule

#: Steps before and after a call that should be refused.
_BEFORE, _AFTER = 6, 8


class BadCall(NamedTuple):
    """A tell that must be refused, in words and as arguments."""

    words: str
    x: Any
    y: Any


def bad_points(case: Case) -> None:
    """A point of the wrong shape, not finite, no number or outside the domain is refused."""
    _must_refuse(case, _points)


def bad_values(case: Case) -> None:
    """A value that is NaN, infinite, no number or more than one is refused."""
    _must_refuse(case, _values)


def bad_bulk(case: Case) -> None:
    """Bulk tells whose lengths differ, or with one bad row, are refused."""
    _must_refuse(case, _bulks)


def refused_unchanged(case: Case) -> None:
    """A refused tell changes nothing: the pending point stays pending, later asks are the same."""
    problem = case.problem()
    expected: FloatArray | None = None
    makers = [_points, _values, *([_bulks] if case.promises.bulk else [])]
    for maker in makers:
        for i, _ in enumerate(maker(problem, problem.some_points(1)[0])):
            policy, pending = _ready(case, problem)
            call = list(maker(problem, pending))[i]
            if _outcome(policy, call) is None:
                continue  # went through: another check says so
            case.expect_count(policy, "told", _BEFORE, f"after {call.words} was refused")
            case.expect_count(policy, "pending", 1, f"after {call.words} was refused")
            if expected is None:
                twin, also = _ready(case, problem)
                expected = _go_on(twin, problem, also)
            case.same_asks(
                expected,
                _go_on(policy, problem, pending),
                f"{call.words} is refused and changes nothing",
                "Check all of a call's input before changing any state.",
            )


def _must_refuse(case: Case, calls: Callable[[Problem, FloatArray], Iterator[BadCall]]) -> None:
    """Refuse a policy that takes any of the calls; the message names them all."""
    problem = case.problem()
    taken = []
    policy, pending = _ready(case, problem)
    for call in calls(problem, pending):
        outcome = _outcome(policy, call)
        if isinstance(outcome, REFUSALS):
            continue
        taken.append(
            f"{call.words} was accepted"
            if outcome is None
            else f"{call.words} raised {type(outcome).__name__}: {outcome}"
        )
        policy, pending = _ready(case, problem)  # what took bad input is of no more use
    if taken:
        raise Departure(
            "bad input raises ValueError, TypeError or LookupError",
            "; ".join(taken),
            "Check input at the start of tell(), or subclass partita.Policy, which does.",
        )


def _ready(case: Case, problem: Problem) -> tuple[AskTell, FloatArray]:
    """A policy after some steps, with one pending point."""
    policy = case.build(problem)
    play(policy, problem, _BEFORE)
    return policy, ask(policy)


def _go_on(policy: AskTell, problem: Problem, pending: FloatArray) -> FloatArray:
    policy.tell(pending, problem.f(pending))
    return play(policy, problem, _AFTER, stream=1)


def _outcome(policy: AskTell, call: BadCall) -> Exception | None:
    """What a call raised, if anything."""
    try:
        return refused(lambda: policy.tell(call.x, call.y))
    except Exception as error:
        return error


# -- bad calls -----------------------------------------------------------------------------------


def _points(problem: Problem, x: FloatArray) -> Iterator[BadCall]:
    dim, y = problem.domain.dim, problem.f(x)
    side = problem.domain.upper - problem.domain.lower
    yield BadCall("tell of a point with a coordinate too many", np.append(x, x[0]), y)
    yield BadCall("tell of a point with a coordinate too few", x[1:], y)
    yield BadCall("tell of an empty point", np.empty(0), y)
    yield BadCall("tell of a number as the point", 0.5, y)
    yield BadCall("tell of a point of shape (1, 1, d)", x.reshape(1, 1, dim), y)
    yield BadCall("tell of a point with a NaN", np.where(np.arange(dim) == 0, math.nan, x), y)
    yield BadCall("tell of an infinite point", np.where(np.arange(dim) == 1, math.inf, x), y)
    yield BadCall("tell(None, y)", None, y)
    yield BadCall('tell("x", y)', "x", y)
    yield BadCall("tell of a point above the domain", problem.domain.upper + 0.1 * side, y)
    yield BadCall("tell of a point below the domain", problem.domain.lower - 0.1 * side, y)
    if not isinstance(problem.domain, Box):
        between = problem.domain.points[:2].mean(axis=0)
        yield BadCall("tell of a point between two arms", between, y)


def _values(problem: Problem, x: FloatArray) -> Iterator[BadCall]:
    y = problem.f(x)
    yield BadCall("tell(x, nan)", x, math.nan)
    yield BadCall("tell(x, inf)", x, math.inf)
    yield BadCall("tell(x, -inf)", x, -math.inf)
    yield BadCall("tell(x, None)", x, None)
    yield BadCall('tell(x, "high")', x, "high")
    yield BadCall("tell of two values at one point", x, [y, y])


def _bulks(problem: Problem, x: FloatArray) -> Iterator[BadCall]:
    points = problem.some_points(4, stream=2)
    values = problem.values(points)
    outside, undefined = points.copy(), points.copy()
    outside[2] = problem.domain.upper * 2.0 + 1.0
    undefined[3, 0] = math.nan
    yield BadCall("tell of four points and three values", points, values[:3])
    yield BadCall("tell of four points and five values", points, np.append(values, 0.0))
    yield BadCall("tell of four points and one value", points, 0.5)
    yield BadCall("tell of four points with too many columns", np.hstack([points, points]), values)
    yield BadCall("tell of four points, one outside the domain", outside, values)
    yield BadCall("tell of four points, one with a NaN", undefined, values)
    yield BadCall("tell of four values, one NaN", points, np.where(np.arange(4) == 3, math.nan, 0))


RULES = (
    Rule("bad-points", bad_points),
    Rule("bad-values", bad_values),
    Rule("bad-bulk", bad_bulk, lambda promises: promises.bulk),
    Rule("refused-unchanged", refused_unchanged),
)
