"""Checks of the order of things: asks without tells, tells without asks, cancels."""

from __future__ import annotations

import numpy as np

from partita._types import FloatArray
from partita.model.domains import Arms, Grid

from .case import (
    AskTell,
    Case,
    Departure,
    ask,
    check_inside,
    check_recommendation,
    play,
    refused,
)
from .problems import Problem
from .promises import Promises
from .rules import Rule


def many_pending(case: Case) -> None:
    """It can be asked many times, more often than there are arms, before it is told anything."""
    problem = case.problem()
    policy = case.build(problem)
    for steps in (0, 10):
        play(policy, problem, steps)
        asks = [ask(policy) for _ in range(40)]
        for x in asks:
            check_inside(x, problem.domain, "ask() with other points pending")
        case.expect_count(policy, "pending", 40, "after 40 asks without a tell")
        for x in asks:
            policy.tell(x, problem.f(x))
        case.expect_count(policy, "pending", 0, "after every ask was told")
    case.expect_count(policy, "told", 90, "after 90 tells")
    check_recommendation(policy, problem.domain)


def tell_order(case: Case) -> None:
    """Pending points may be told in any order: each value goes to its own point."""
    problem = case.problem()
    for winner in range(5):  # a value that goes astray shows where it is told or was due
        answers = []
        for order in (range(5), reversed(range(5))):
            policy = case.build(problem)
            asks = [ask(policy) for _ in range(5)]
            for i in order:
                policy.tell(asks[i], 0.5 if np.array_equal(asks[i], asks[winner]) else 0.0)
            case.expect_count(policy, "pending", 0, "after every ask was told")
            answers.append(policy)
        first_first, last_first = answers
        if not case.promises.order_free:
            continue
        _same_answer(
            case,
            first_first,
            last_first,
            problem,
            "pending points give the same recommendation whichever is told first",
            "Match a value to its ask by the point it is told with, not by the last ask.",
        )


def pending_twice(case: Case) -> None:
    """The same point pending twice is two plays, told or cancelled one at a time."""
    few = Arms([[0.1, 0.2], [0.6, 0.9], [0.7, 0.1]]) if case.kind == "arms" else Grid(2, dim=2)
    problem = case.problem_on(few)
    policy = case.build(problem)
    asks = [ask(policy) for _ in range(9)]
    x = next(a for i, a in enumerate(asks) if any(np.array_equal(a, b) for b in asks[:i]))
    plays = sum(np.array_equal(x, a) for a in asks)
    for left in reversed(range(plays)):
        if left % 2 and case.promises.cancel:
            policy.cancel(x)
        else:
            policy.tell(x, problem.f(x))
        case.expect_count(
            policy, "pending", 9 - plays + left, f"once {plays - left} of 9 asks are settled"
        )
    if case.promises.cancel and refused(lambda: policy.cancel(x)) is None:
        raise Departure(
            f"a point asked {plays} times is pending no more once it was told or cancelled "
            f"{plays} times",
            "one more cancel(x) went through",
            "Count how often each point is pending.",
        )
    for other in asks:
        if not np.array_equal(other, x):
            policy.tell(other, problem.f(other))
    case.expect_count(policy, "pending", 0, "after every ask was told or cancelled")
    play(policy, problem, 10)


def tell_unasked(case: Case) -> None:
    """Points that were never asked for can be told, before the first ask and between asks."""
    problem = case.problem()
    answers = []
    for sign in (1.0, -1.0):
        policy = case.build(problem)
        points = problem.some_points(12)
        for x in points:
            policy.tell(x, sign * problem.f(x))
        answers.append(check_recommendation(policy, problem.domain))
        pending = ask(policy)
        for x in problem.some_points(4, stream=1):
            if not np.array_equal(x, pending):
                policy.tell(x, sign * problem.f(x))
        case.expect_count(policy, "pending", 1, "after one ask, and tells of other points")
        policy.tell(pending, sign * problem.f(pending))
        case.expect_count(policy, "pending", 0, "after the only ask was told")
        for x in play(policy, problem, 5):
            check_inside(x, problem.domain, "ask() after tells of other points")
    first, second = answers
    ignored = np.array_equal(first.x, second.x) and first.mean == second.mean
    if ignored and case.promises.unasked is True:
        raise Departure(
            "tells of points that were not asked for are taken into account",
            f"recommend() is {first!r} whether f or −f was told",
            'Record every tell, asked for or not; or promise unasked="accepted".',
        )


def tell_bulk(case: Case) -> None:
    """`tell(X, Y)` does what telling one by one does, and settles pending points among them."""
    problem = case.problem()
    extra = problem.some_points(10) if case.promises.unasked else np.empty((0, 2))
    asked, singly = _with_asks(case, problem)
    points = np.concatenate([asked, extra])
    values = problem.values(points)
    for x, y in zip(points, values, strict=True):
        singly.tell(x, float(y))
    also, together = _with_asks(case, problem)
    together.tell(points if np.array_equal(asked, also) else np.concatenate([also, extra]), values)
    case.expect_count(together, "told", 5 + len(points), f"after 5 tells and {len(points)} at once")
    case.expect_count(together, "pending", 0, "after pending points were told in bulk")
    if not np.array_equal(asked, also):
        return  # not the same history: `same-seed` says why
    _same_answer(
        case,
        singly,
        together,
        problem,
        "tell(X, Y) gives the same recommendation as telling the rows one by one",
        "Treat every row of X as tell(x, y) would.",
    )


def _with_asks(case: Case, problem: Problem) -> tuple[FloatArray, AskTell]:
    """A policy after five steps, and its pending points, (n, d)."""
    policy = case.build(problem)
    play(policy, problem, 5)
    n = 3 if case.promises.pending else 1
    return np.array([ask(policy) for _ in range(n)]), policy


def _same_answer(
    case: Case, first: AskTell, second: AskTell, problem: Problem, what: str, advice: str
) -> None:
    """Refuse policies with the same data that recommend different points or means."""
    a, b = (check_recommendation(policy, problem.domain) for policy in (first, second))
    same = np.array_equal(a.x, b.x) and abs(a.mean - b.mean) <= 1e-6 * problem.scale
    if case.promises.deterministic and not same:
        raise Departure(what, f"{a!r}, against {b!r}", advice)


def cancel(case: Case) -> None:
    """A cancelled point is no longer pending, and the policy plays on."""
    problem = case.problem()
    policy = case.build(problem)
    for steps, asks in ((0, 1), (10, 1), (5, 6)):
        play(policy, problem, steps)
        asked = [ask(policy) for _ in range(asks if case.promises.pending else 1)]
        for x in reversed(asked):
            policy.cancel(x)
        case.expect_count(policy, "pending", 0, "after every ask was cancelled")
    case.expect_count(policy, "told", 15, "after 15 tells and some cancels")
    for x in play(policy, problem, 20):
        check_inside(x, problem.domain, "ask() after cancels")
    check_recommendation(policy, problem.domain)


def cancel_refused(case: Case) -> None:
    """Cancelling a point that is not pending is refused and changes nothing."""
    problem = case.problem()
    policy = case.build(problem)
    told = play(policy, problem, 10)
    pending = ask(policy)
    known = np.vstack([told, pending])
    stranger = {
        "that was never asked for": next(
            x for x in problem.some_points(60) if not (x == known).all(axis=1).any()
        ),
        "outside the domain": problem.domain.upper + 1.0,
        "of another shape": np.append(pending, 0.5),
    }
    over = [x for x in told if not np.array_equal(x, pending)]
    if over:
        stranger["that was told"] = over[0]
    for which, x in stranger.items():
        if refused(lambda x=x: policy.cancel(x)) is None:  # type: ignore[misc]
            raise Departure(
                f"cancel(x) of a point {which} raises LookupError or ValueError",
                f"cancel({x.tolist()}) went through",
                "Look the point up among the pending ones first, and raise if it is not there.",
            )
    case.expect_count(policy, "pending", 1, "after cancels that were refused")
    twin = case.build(problem)
    play(twin, problem, 10)
    for each, x in ((policy, pending), (twin, ask(twin))):
        each.tell(x, problem.f(x))
    case.same_asks(
        play(twin, problem, 12),
        play(policy, problem, 12),
        "a refused cancel changes nothing",
        "Check first, then change state.",
    )


def _pending(promises: Promises) -> bool:
    return promises.pending


RULES = (
    Rule("many-pending", many_pending, _pending),
    Rule("tell-order", tell_order, _pending),
    Rule("pending-twice", pending_twice, _pending, kinds=("grid", "arms")),
    Rule("tell-unasked", tell_unasked, lambda promises: bool(promises.unasked)),
    Rule("tell-bulk", tell_bulk, lambda promises: promises.bulk),
    Rule("cancel", cancel, lambda promises: promises.cancel),
    Rule("cancel-refused", cancel_refused, lambda promises: promises.cancel),
)
