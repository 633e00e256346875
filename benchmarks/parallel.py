"""What evaluating several points at once costs: regret with many in flight against one at a time.

    python benchmarks/parallel.py

Evaluations are simulated: each takes a random time (exponential), the first to end is told and
another point asked for, so that values come back in random order while `--in-flight` are pending.
The same functions and seeds are played one at a time.
"""

from __future__ import annotations

import argparse
import heapq
import time
from typing import NamedTuple

import numpy as np
from common import at
from versus.problems import NAMES, TITLES, build

import partita as pt
from partita.experiments.specs import Problem

#: Two minutes or so together; the six-dimensional synthetic function is hard for everybody.
PROBLEMS = ("rkhs-1", "rkhs-2", "rkhs-3", "branin", "camel", "hartmann3", "hartmann6", "ackley-2")


class Outcome(NamedTuple):
    """Regret as a fraction of uniform sampling's, that of the answer, and seconds a step."""

    regret: float
    answer: float
    seconds: float


def play(problem: Problem, seed: int, steps: int, in_flight: int) -> Outcome:
    """Let the calibrated policy play, with `in_flight` evaluations always under way."""
    policy = pt.CalibratedUCB(problem.domain, seed=seed)
    random = np.random.default_rng([seed, 71, in_flight])
    running: list[tuple[float, int, np.ndarray]] = []
    regret, spent, asked = 0.0, 0.0, 0
    now = 0.0
    for _ in range(steps):
        while len(running) < in_flight:
            start = time.perf_counter()
            x = policy.ask()
            spent += time.perf_counter() - start
            asked += 1
            heapq.heappush(running, (now + random.exponential(), asked, x))
        now, _, x = heapq.heappop(running)
        value = at(problem, x)
        regret += problem.best - value
        noisy = value + random.uniform(-problem.half_width, problem.half_width)
        start = time.perf_counter()
        policy.tell(x, noisy)
        spent += time.perf_counter() - start
    best = at(problem, policy.recommend().x)
    scale = problem.uniform_regret
    return Outcome(regret / (steps * scale), (problem.best - best) / scale, spent / steps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=NAMES)
    parser.add_argument("--noise", default="tenth", choices=("tenth", "whole"))
    parser.add_argument("--in-flight", type=int, default=8)
    parser.add_argument("--evals", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    many = f"{given.in_flight} in flight"
    print(f"{given.evals:,} evaluations, {given.seeds} seeds; fractions of uniform's regret")
    print(f"{'':12}{'one at a time':>22}{many:>22}{'ratio':>8}{'answers':>16}{'ms a step':>14}")
    totals = []
    for name in given.problems:
        runs = [
            [
                play(build(name, given.noise, seed), seed, given.evals, width)
                for seed in range(given.seeds)
            ]
            for width in (1, given.in_flight)
        ]
        one, several = (np.array(group) for group in runs)
        totals.append([one.mean(axis=0), several.mean(axis=0)])
        error = [group[:, 0].std() / max(len(group) - 1, 1) ** 0.5 for group in (one, several)]
        print(
            f"{TITLES[name]:12}"
            f"{one[:, 0].mean():>13.4f} ± {error[0]:.4f}{several[:, 0].mean():>13.4f} ± "
            f"{error[1]:.4f}{several[:, 0].mean() / one[:, 0].mean():>8.2f}"
            f"{one[:, 1].mean():>8.3f}{several[:, 1].mean():>8.3f}"
            f"{1e3 * one[:, 2].mean():>7.2f}{1e3 * several[:, 2].mean():>7.2f}",
            flush=True,
        )
    means = np.array(totals).mean(axis=0)
    ratios = [b[0] / a[0] for a, b in totals]
    print(
        f"{'mean':12}{means[0, 0]:>13.4f}{'':9}{means[1, 0]:>13.4f}{'':9}"
        f"{means[1, 0] / means[0, 0]:>8.2f}{means[0, 1]:>8.3f}{means[1, 1]:>8.3f}"
        f"{1e3 * means[0, 2]:>7.2f}{1e3 * means[1, 2]:>7.2f}"
    )
    print(
        f"Ratio of the means {means[1, 0] / means[0, 0]:.2f}, geometric mean of the ratios "
        f"{float(np.exp(np.log(ratios).mean())):.2f}."
    )


if __name__ == "__main__":
    main()
