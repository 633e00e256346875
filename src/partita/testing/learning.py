"""Checks that a policy learns, and that its bounds hold, on easy problems."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from partita.policies.uniform import UniformSampling

from .case import AskTell, Case, Departure, check_recommendation, play
from .problems import DELTA, Problem, unit_domain
from .rules import Rule

#: Runs that the regret is taken over, by its median, and their length.
REGRET_RUNS, REGRET_STEPS = 3, 1000
#: Most that a step may lose in the last quarter, in units of what uniform sampling loses.
LATE_FRACTION = 0.5
#: And in units of what a step lost in the first quarter, unless it loses next to nothing.
IMPROVEMENT, NEXT_TO_NOTHING = 0.8, 0.05
#: Most that a recommendation may lose, in units of what that of uniform sampling loses: from noisy
#: values, and from exact ones.
SIMPLE_FRACTION, EXACT_FRACTION = 0.6, 0.1
#: Runs in which bounds are looked at, when, and in how many they may fail: with delta = 0.1, more
#: than five of twenty would fail by chance in one suite of a hundred. Seeds are fixed.
BOUND_RUNS, BOUND_STEPS, BOUND_FAILURES = 20, (5, 20, 60), 5


def regret(case: Case) -> None:
    """On an easy problem the regret a step falls, well below that of uniform sampling."""
    if case.promises.regret == "simple":
        _simple_regret(case)
    else:
        _cumulative_regret(case)


def _cumulative_regret(case: Case) -> None:
    if case.promises.function == "linear":
        domain = unit_domain(case.kind, 2, 5)
    else:
        domain = (
            unit_domain(case.kind, 2, 4) if case.kind == "arms" else unit_domain(case.kind, 1, 21)
        )
    problem = case.problem_on(domain)
    best, average = problem.best_and_average()
    quarter = REGRET_STEPS // 4
    early, late = [], []
    for run in range(REGRET_RUNS):
        asks = play(case.build(problem, seed=run, horizon=REGRET_STEPS), problem, REGRET_STEPS, run)
        lost = (best - problem.values(asks)) / (best - average)
        early.append(float(lost[:quarter].mean()))
        late.append(float(lost[-quarter:].mean()))
    first, last = float(np.median(early)), float(np.median(late))
    if last > LATE_FRACTION or last > max(IMPROVEMENT * first, NEXT_TO_NOTHING):
        raise Departure(
            f"in the last quarter of {REGRET_STEPS:,} steps a step loses at most "
            f"{LATE_FRACTION:g} of what uniform sampling loses, and {IMPROVEMENT:g} of what it "
            "lost in the first quarter",
            f"it loses {last:.2f} of it, after {first:.2f} in the first quarter",
            "See that ask() uses what was told, and maximises; or promise regret=None.",
        )


def _simple_regret(case: Case) -> None:
    noisy = case.promises.noisy
    steps, runs = (500, 16) if noisy else (200, 6)
    lost: list[float] = []
    uniform: list[float] = []
    domain = unit_domain(case.kind, 2, 71)
    for run in range(runs):
        problem = case.problem_on(domain, stream=run)
        problem = replace(problem, noise=problem.noise / 3)  # so that resolution counts too
        best, _ = problem.best_and_average()
        policy = case.build(problem, seed=run, horizon=steps)
        for player, gaps in ((policy, lost), (UniformSampling(problem.domain, seed=run), uniform)):
            play(player, problem, steps, run)
            gaps.append(best - problem.f(check_recommendation(player, problem.domain).x))
    fraction = float(np.mean(lost) / np.mean(uniform))
    allowed = SIMPLE_FRACTION if noisy else EXACT_FRACTION
    if fraction > allowed:
        raise Departure(
            f"after {steps} steps the recommendation loses at most {allowed:g} of what that of "
            f"uniform sampling does, on average over {runs} runs",
            f"it loses {fraction:.2f} of it",
            "See that ask() uses what was told, and that recommend() does not go by the luckiest "
            "value; or promise regret=None.",
        )


# -- bounds --------------------------------------------------------------------------------------


def bounds(case: Case) -> None:
    """The bounds of `recommend`, and `certificate`, hold in nearly all of 20 runs."""
    failures: list[str] = []
    domain = unit_domain(case.kind, 2, 5)
    for run in range(BOUND_RUNS):
        problem = case.problem_on(domain, stream=run)
        policy = case.build(problem, seed=run, horizon=BOUND_STEPS[-1])
        if case.promises.bounds is None and getattr(policy, "guarantee", None) != "proven":
            return  # no bounds are promised
        failure = _first_failure(policy, problem, run)
        if failure:
            failures.append(failure)
    if len(failures) > BOUND_FAILURES:
        raise Departure(
            f"bounds fail in about {DELTA:g} of {BOUND_RUNS} runs, {BOUND_FAILURES} at most",
            f"they failed in {len(failures)}, for instance {failures[0]}",
            "Check the width against the theorem it comes from, its constants and its use of "
            'delta; or claim no `guarantee` of "proven".',
        )


def _first_failure(policy: AskTell, problem: Problem, run: int) -> str | None:
    """What went wrong with the bounds of one run, if anything did."""
    best, _ = problem.best_and_average()
    done, tolerance = 0, 1e-9 * problem.scale
    for steps in BOUND_STEPS:
        play(policy, problem, steps - done, stream=BOUND_RUNS * steps + run)
        done = steps
        answer: Any = check_recommendation(policy, problem.domain)
        value = problem.f(answer.x)
        if not answer.lower - tolerance <= value <= answer.upper + tolerance:
            return (
                f"f(x) = {value:.4g} outside [{answer.lower:.4g}, {answer.upper:.4g}] after "
                f"{steps} steps"
            )
        certificate = getattr(policy, "certificate", None)
        gap = math.inf if certificate is None else certificate()
        if not best - value <= gap + tolerance:
            return f"a gap of {best - value:.4g} certified as {gap:.4g} after {steps} steps"
    return None


RULES = (
    Rule("regret", regret, lambda promises: promises.regret is not None, long=True),
    Rule("bounds", bounds, lambda promises: promises.bounds is not False, long=True),
)
