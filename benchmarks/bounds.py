"""How often the calibrated policy's bounds hold: of its answer, of its certificate, anywhere.

    python benchmarks/bounds.py                      20 runs of 1,000 evaluations a problem
    python benchmarks/bounds.py --runs 5 --problems branin rkhs-2 --jobs 2
    python benchmarks/bounds.py --noise none         the same functions without noise
    python benchmarks/bounds.py --tolerance 0.2      certificates of runs that end at the first
                                                     within so much of uniform sampling's regret

With delta = 0.1 each bound is meant to hold nine times in ten. *answer*: f at the recommended point
lies between its bounds. *certificate*: the recommended point is no farther below the optimum than
it says. *anywhere*: f at random points of the domain lies between the bounds of `predict`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from versus import problems
from versus.regrets import unit_box

import partita as pt

CHECKPOINTS = (100, 300, 1_000)
#: Random points at which the bounds of `predict` are checked.
ANYWHERE = 200
#: What --noise calls values without any.
NONE = "none"
#: With a tolerance, certificates are looked at after so many evaluations each time.
LOOK_EVERY = 5


@dataclass(frozen=True)
class Check:
    """What held at one moment of one run."""

    problem: str
    noise: str
    told: int
    answer: bool
    certificate: bool
    anywhere: float
    wider: float
    regret: float
    certified: float


def _told(
    name: str, noise: str, seed: int
) -> tuple[problems.Problem, np.ndarray, Callable[[np.ndarray], float]]:
    """A problem, random points of it, and what is told of it at a point."""
    problem = problems.build(name, "tenth" if noise == NONE else noise, seed)
    half_width = 0.0 if noise == NONE else problem.half_width
    random = np.random.default_rng([seed, 17])
    points = random.random((ANYWHERE, problem.dim))

    def value(x: np.ndarray) -> float:
        return float(problem.function(x[None, :])[0] + half_width * random.uniform(-1, 1))

    return problem, points, value


def run(name: str, noise: str, seed: int, evaluations: int) -> list[Check]:
    problem, points, value = _told(name, noise, seed)
    policy = pt.CalibratedUCB(unit_box(problem), seed=seed)
    values = problem.function(points)
    checks = []
    for t in range(1, evaluations + 1):
        x = policy.ask()
        policy.tell(x, value(x))
        if t in CHECKPOINTS:
            answer, certificate = policy.recommend(), policy.certificate()
            f = float(problem.function(answer.x[None, :])[0])
            known = policy.predict(points)
            held = (known.lower <= values) & (values <= known.upper)
            there = policy.predict(answer.x[None, :])
            plain = float(there.upper[0] - there.lower[0])
            checks.append(
                Check(
                    name,
                    noise,
                    t,
                    answer.lower <= f <= answer.upper,
                    problem.best - f <= certificate,
                    float(held.mean()),
                    (answer.upper - answer.lower) / plain,
                    (problem.best - f) / problem.uniform_regret,
                    certificate / problem.uniform_regret,
                )
            )
    return checks


class Ended(NamedTuple):
    """A run that ended at the first certificate within a tolerance."""

    problem: str
    noise: str
    told: int
    reached: bool
    held: bool


def run_until(name: str, noise: str, seed: int, evaluations: int, tolerance: float) -> Ended:
    problem, _, value = _told(name, noise, seed)
    policy = pt.CalibratedUCB(unit_box(problem), seed=seed)
    reached = False
    for t in range(1, evaluations + 1):
        x = policy.ask()
        policy.tell(x, value(x))
        if t % LOOK_EVERY == 0:
            certificate = policy.certificate()
            reached = certificate <= tolerance * problem.uniform_regret
            if reached:
                break
    lost = problem.best - float(problem.function(policy.recommend().x[None, :])[0])
    return Ended(name, noise, t, reached, lost <= policy.certificate())


def table_of_ends(ends: list[Ended]) -> str:
    """A Markdown table, a row a problem and noise."""
    lines = [
        "| | ended within | evaluations, median | certificate held |",
        "| --- |" + " --- |" * 3,
    ]
    groups = list(dict.fromkeys((end.problem, end.noise) for end in ends))
    for name, noise in [*groups, ("all", "")]:
        chosen = [e for e in ends if name == "all" or (e.problem, e.noise) == (name, noise)]
        done = [e for e in chosen if e.reached]
        held = f"{100 * np.mean([e.held for e in done]):.0f} %" if done else "–"
        steps = f"{np.median([e.told for e in done]):,.0f}" if done else "–"
        title = "all" if name == "all" else f"{problems.TITLES[name]}, {noise}"
        lines.append(f"| {title} | {len(done)} of {len(chosen)} | {steps} | {held} |")
    return "\n".join(lines)


def table(checks: list[Check]) -> str:
    """A Markdown table, a row a problem and noise, a group of columns a checkpoint."""
    times = sorted({check.told for check in checks})
    heads = ["answer", "certificate", "anywhere"]
    columns = [f"{head}, {t:,}" for head in heads for t in times]
    lines = [
        "| | " + " | ".join(columns) + " |",
        "| --- |" + " --- |" * len(columns),
    ]
    groups = list(dict.fromkeys((check.problem, check.noise) for check in checks))
    for name, noise in [*groups, ("all", "")]:
        chosen = [c for c in checks if name == "all" or (c.problem, c.noise) == (name, noise)]
        cells = []
        for head in heads:
            for t in times:
                held = [float(getattr(c, head)) for c in chosen if c.told == t]
                cells.append(f"{100 * np.mean(held):.0f} %")
        title = "all" if name == "all" else f"{problems.TITLES[name]}, {noise}"
        lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    from joblib import Parallel, delayed

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=20, help="seeds a problem")
    parser.add_argument("--problems", nargs="+", default=list(problems.NAMES))
    parser.add_argument(
        "--noise", nargs="+", choices=(*problems.NOISES, NONE), default=list(problems.NOISES)
    )
    parser.add_argument("--evaluations", type=int, default=max(CHECKPOINTS))
    parser.add_argument("--tolerance", type=float, help="end at the first certificate within it")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    if options.tolerance is not None:
        ends = Parallel(options.jobs)(
            delayed(run_until)(name, noise, seed, options.evaluations, options.tolerance)
            for noise in options.noise
            for name in options.problems
            for seed in range(options.runs)
        )
        print(table_of_ends(ends))
        return
    tasks = [
        delayed(run)(name, noise, seed, options.evaluations)
        for noise in options.noise
        for name in options.problems
        for seed in range(options.runs)
    ]
    checks = [check for made in Parallel(options.jobs)(tasks) for check in made]
    print(table(checks))
    ratio = [c.certified / max(c.regret, 1e-3) for c in checks if c.told == max(CHECKPOINTS)]
    print(f"\n{options.runs} runs each; certificate over regret, median: {np.median(ratio):.1f}")
    for t in sorted({check.told for check in checks}):
        lost = np.mean([check.regret for check in checks if check.told == t])
        wider = [check.wider for check in checks if check.told == t]
        print(
            f"bounds of the answer over the model's alone after {t:,}: "
            f"mean {np.mean(wider):.2f}, median {np.median(wider):.2f}"
        )
        print(f"regret of the answer after {t:,}, a part of uniform sampling's: {lost:.4f}")


if __name__ == "__main__":
    main()
