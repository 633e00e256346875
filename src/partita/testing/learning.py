"""Rules of learning: regret falls, and bounds hold, on easy problems."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from partita.policies.uniform import UniformSampling

from .case import Case, Departure, Game
from .problems import DELTA, unit_domain
from .rules import RuleTests, rule

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


class LearningTests(RuleTests):
    """What a policy loses, and whether its bounds hold."""

    @rule(lambda promises: promises.regret is not None, long=True)
    def test_regret(self, case: Case) -> None:
        """On an easy problem the regret a step falls, well below that of uniform sampling."""
        if case.promises.regret == "simple":
            _check_simple_regret(case)
        else:
            _check_cumulative_regret(case)

    @rule(lambda promises: promises.bounds is not False, long=True)
    def test_bounds(self, case: Case) -> None:
        """The bounds of `recommend`, and `certificate`, hold in nearly all of 20 runs."""
        failures: list[str] = []
        domain = unit_domain(case.kind, 2, 5)
        for run in range(BOUND_RUNS):
            game = case.start(
                case.problem_on(domain, stream=run), seed=run, horizon=BOUND_STEPS[-1]
            )
            proven = getattr(game.policy, "guarantee", None) == "proven"
            if case.promises.bounds is None and not proven:
                return  # no bounds are promised
            failures += _first_failure(game, run)
        if len(failures) > BOUND_FAILURES:
            raise Departure(
                f"bounds fail in about {DELTA:g} of {BOUND_RUNS} runs, {BOUND_FAILURES} at most",
                f"they failed in {len(failures)}, for instance {failures[0]}",
                "Check the width against the theorem it comes from, its constants and its use of "
                'delta; or claim no `guarantee` of "proven".',
            )


def _check_cumulative_regret(case: Case) -> None:
    linear, arms = case.promises.function == "linear", case.kind == "arms"
    dim, side = (2, 5) if linear else (2, 4) if arms else (1, 21)
    problem = case.problem_on(unit_domain(case.kind, dim, side))
    best, quarter = problem.best(), REGRET_STEPS // 4
    early, late = [], []
    for run in range(REGRET_RUNS):
        asks = case.start(problem, seed=run, horizon=REGRET_STEPS).play(REGRET_STEPS, run)
        lost = (best - problem.values(asks)) / (best - problem.average())
        early.append(lost[:quarter].mean())
        late.append(lost[-quarter:].mean())
    first, last = float(np.median(early)), float(np.median(late))
    if last > LATE_FRACTION or last > max(IMPROVEMENT * first, NEXT_TO_NOTHING):
        raise Departure(
            f"in the last quarter of {REGRET_STEPS:,} steps a step loses at most "
            f"{LATE_FRACTION:g} of what uniform sampling loses, and {IMPROVEMENT:g} of what it "
            "lost in the first quarter",
            f"it loses {last:.2f} of it, after {first:.2f} in the first quarter",
            "Make sure that ask() uses the values, and maximises; or promise regret=None.",
        )


def _check_simple_regret(case: Case) -> None:
    noisy = case.promises.noisy
    steps, runs = (500, 16) if noisy else (200, 6)
    lost: list[float] = []
    uniform: list[float] = []
    for run in range(runs):
        problem = case.problem_on(unit_domain(case.kind, 2, 71), stream=run)
        problem = replace(problem, noise=problem.noise / 3)  # so that resolution counts too
        game = case.start(problem, seed=run, horizon=steps)
        yardstick = Game(UniformSampling(problem.domain, seed=run), problem)
        for player, gaps in ((game, lost), (yardstick, uniform)):
            player.play(steps, run)
            gaps.append(problem.best() - problem.f(player.recommendation().x))
    fraction = float(np.mean(lost) / np.mean(uniform))
    allowed = SIMPLE_FRACTION if noisy else EXACT_FRACTION
    if fraction > allowed:
        raise Departure(
            f"after {steps} steps the recommendation loses at most {allowed:g} of what that of "
            f"uniform sampling does, on average over {runs} runs",
            f"it loses {fraction:.2f} of it",
            "Make sure that ask() uses the values, and that recommend() does not use the highest "
            "single value; or promise regret=None.",
        )


def _first_failure(game: Game, run: int) -> list[str]:
    """What first went wrong with the bounds of one run, in a list; empty if they held."""
    problem = game.problem
    best, done, tolerance = problem.best(), 0, 1e-9 * problem.scale
    for steps in BOUND_STEPS:
        game.play(steps - done, stream=BOUND_RUNS * steps + run)
        done = steps
        answer = game.recommendation()
        value = problem.f(answer.x)
        if not answer.lower - tolerance <= value <= answer.upper + tolerance:
            interval = f"[{answer.lower:.4g}, {answer.upper:.4g}]"
            return [f"f(x) = {value:.4g} outside {interval} after {steps} steps"]
        certificate = getattr(game.policy, "certificate", None)
        gap = math.inf if certificate is None else certificate()
        if not best - value <= gap + tolerance:
            return [f"a gap of {best - value:.4g} certified as {gap:.4g} after {steps} steps"]
    return []
