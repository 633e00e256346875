"""Checks of values that are large, small, equal or absurd: nothing may break."""

from __future__ import annotations

from .case import REFUSALS, Case, Departure, check_inside, check_recommendation, play, refused
from .rules import Rule


def scales(case: Case) -> None:
    """Functions a million times larger or smaller are played, or refused when it is built."""
    for scale in (1e-6, 1e6):
        problem = case.problem(scale=scale)
        try:
            policy = case.build(problem)
        except REFUSALS:  # it can see the scale by norm_bound and noise
            continue
        for x in play(policy, problem, 40):
            check_inside(x, problem.domain, f"ask() with values of about {scale:g}")
        check_recommendation(policy, problem.domain)


def constant(case: Case) -> None:
    """A function that is the same everywhere is played without fault."""
    problem = case.problem()
    for value in (0.0, 0.5):
        policy = case.build(problem)
        for _ in range(40):
            x = policy.ask()
            check_inside(x, problem.domain, f"ask() when every value is {value}")
            policy.tell(x, value)
        answer = check_recommendation(policy, problem.domain)
        if abs(answer.mean - value) > 1.0:
            raise Departure(
                f"recommend().mean is near {value} when every value is",
                f"it is {answer.mean!r}",
                "Estimate the mean of f from the values told.",
            )


def extremes(case: Case) -> None:
    """Values far beyond what was announced are taken, or refused; the policy plays on."""
    problem = case.problem()
    policy = case.build(problem)
    play(policy, problem, 5)
    for value in (1e30, -1e30, 5e-324, -0.0, 1e12, -1e12, 1e-12):
        x = policy.ask()
        check_inside(x, problem.domain, "ask() among extreme values")
        if refused(lambda x=x, value=value: policy.tell(x, value)) is not None:  # type: ignore[misc]
            policy.tell(x, problem.f(x))
        check_recommendation(policy, problem.domain)
    for x in play(policy, problem, 20):
        check_inside(x, problem.domain, "ask() after extreme values")
    check_recommendation(policy, problem.domain)


RULES = (Rule("scales", scales), Rule("constant", constant), Rule("extremes", extremes))
