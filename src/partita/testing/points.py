"""Checks of what a policy returns and takes: points, recommendations, types."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from partita.errors import PartitaError
from partita.model.domains import Arms

from .case import (
    AskTell,
    Case,
    Departure,
    ask,
    check_inside,
    check_point,
    check_recommendation,
    play,
)
from .problems import Problem
from .rules import Rule


def methods(case: Case) -> None:
    """It can be built from what is known of a problem, and has the methods it promises."""
    policy = case.build(case.problem())
    for name in ("ask", "tell", "recommend", *(["cancel"] if case.promises.cancel else [])):
        if not callable(getattr(policy, name, None)):
            raise Departure(
                f"the policy has a method {name}()",
                f"{type(policy).__name__} has none",
                "Write it, or subclass partita.Policy, which has most."
                + (" Or promise cancel=False." if name == "cancel" else ""),
            )


def ask_point(case: Case) -> None:
    """`ask` returns a float64 array of shape (d,) in the domain, in one dimension and in more."""
    problems = [case.problem(dim=dim) for dim in (1, 2, 3)]
    if case.kind == "arms":
        problems.append(case.problem_on(Arms([[0.5, 0.25]])))
    for problem in problems:
        policy = case.build(problem)
        noise = problem.noise_values(20)
        for i in range(20):
            x = check_point(policy.ask(), problem.domain, "ask()")
            policy.tell(x, problem.f(x) + float(noise[i]))


def own_arrays(case: Case) -> None:
    """Arrays that it returned or was told may be overwritten without harm to it."""
    problem = case.problem()
    expected = _overwriting(case, case.build(problem), problem, False)
    policy = case.build(problem)
    asks = _overwriting(case, policy, problem, True)
    advice = "Return a copy of what the policy keeps, and keep copies of what it is told."
    case.same_asks(
        expected, asks, "overwriting arrays that ask, tell or recommend saw changes nothing", advice
    )
    for x in asks:
        check_inside(x, problem.domain, "ask() after arrays were overwritten")
    case.expect_count(policy, "pending", 0, "after every ask was told, with an equal array")


def _overwriting(case: Case, policy: AskTell, problem: Problem, overwrite: bool) -> Any:
    """Play, and overwrite all arrays as soon as the policy has seen them."""
    noise, asks = problem.noise_values(24), []
    for i in range(24):
        x = policy.ask()
        kept = np.array(x)
        asks.append(kept.copy())
        arrays = [x, kept]
        if overwrite:
            _overwrite(x)
        policy.tell(kept, problem.f(kept) + float(noise[i]))
        arrays.append(policy.recommend().x)
        if i == 8 and case.promises.bulk and case.promises.unasked:
            points = problem.some_points(5)
            values = problem.values(points)
            policy.tell(points, values)
            arrays += [points, values]
        for array in arrays if overwrite else ():
            _overwrite(array)
    return np.array(asks)


def _overwrite(array: object) -> None:
    if isinstance(array, np.ndarray) and array.flags.writeable:  # read-only is harmless too
        array[...] = -987.5


def recommend_first(case: Case) -> None:
    """`recommend` before any data gives a point of the domain, or an error that says why not."""
    problem = case.problem()
    policy = case.build(problem)
    try:
        answer = policy.recommend()
    except (PartitaError, ValueError, LookupError, RuntimeError) as error:
        if len(str(error)) < 10:
            raise Departure(
                "the error says why there is no recommendation yet",
                f"{type(error).__name__}({str(error)!r})",
                "Say that nothing was told yet, and what to do.",
            ) from error
    else:
        check_point(answer.x, problem.domain, "recommend().x before any data")
    check_inside(policy.ask(), problem.domain, "ask() after recommend()")


def recommend(case: Case) -> None:
    """`recommend` gives a point of the domain and a finite mean, the same each time it is asked."""
    problem = case.problem()
    policy = case.build(problem)
    play(policy, problem, 25)
    first = check_recommendation(policy, problem.domain)
    second = check_recommendation(policy, problem.domain)
    lower, upper = getattr(first, "lower", -math.inf), getattr(first, "upper", math.inf)
    if not lower <= upper:
        raise Departure(
            "recommend().lower is at most recommend().upper",
            f"lower={lower!r}, upper={upper!r}",
            "Return bounds on f(x), -inf and inf if there are none.",
        )
    if case.promises.deterministic and not (
        np.array_equal(first.x, second.x) and first.mean == second.mean
    ):
        raise Departure(
            "recommend() twice in a row gives the same",
            f"{first!r}, then {second!r}",
            "Settle ties by a rule, not by fresh random numbers.",
        )


def recommend_reads(case: Case) -> None:
    """`recommend` only reads: it changes no later ask."""
    problem = case.problem()
    expected = play(case.build(problem), problem, 30)
    policy = case.build(problem)
    noise, asks = problem.noise_values(30), []
    for i in range(30):
        asks.append(ask(policy))
        policy.tell(asks[i], problem.f(asks[i]) + float(noise[i]))
        policy.recommend()
    case.same_asks(
        expected,
        np.array(asks),
        "calling recommend() changes no later ask",
        "Do not draw from the policy's random numbers in recommend(), nor store what ask reads.",
    )


def tell_types(case: Case) -> None:
    """`tell` takes a point as a list or tuple too, and a value of any real type."""
    problem = case.problem()
    values = (1, np.float32(0.25), np.int64(0), np.float64(0.5), np.array(0.75), 0.125)
    expected = case.build(problem)
    policy = case.build(problem)
    asks: list[list[Any]] = [[], []]
    for i in range(3 * len(values)):
        y = values[i % len(values)]
        asks[0].append(ask(expected))
        expected.tell(asks[0][i], float(y))
        asks[1].append(ask(policy))
        point = asks[1][i].tolist()
        policy.tell(point if i % 2 else tuple(point), y)
    case.same_asks(
        np.array(asks[0]),
        np.array(asks[1]),
        "tell(list(x), 1) does the same as tell(x, 1.0)",
        "Turn input into floats first: np.asarray(x, dtype=float), float(y).",
    )
    case.expect_count(policy, "pending", 0, "after every ask was told, as a list or tuple")


RULES = (
    Rule("methods", methods),
    Rule("ask-point", ask_point),
    Rule("own-arrays", own_arrays),
    Rule("tell-types", tell_types),
    Rule("recommend-first", recommend_first),
    Rule("recommend", recommend),
    Rule("recommend-reads", recommend_reads),
)
