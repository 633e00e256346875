"""What plans cost in regret, and what the driver can take in.

    python benchmarks/scale.py regret [--evals 10000] [--seeds 2] [--policy calibrated]
    python benchmarks/scale.py many [--evals 100000000]

`regret` plays three functions on a simulated clock: n evaluations are in flight, of exponential
durations, so each is the next to end with the same chance; what has ended is told every n/10
evaluations. It prints the regret of all evaluations relative to one at a time, for n = T/1,000 and
T/100.

`many` tells the driver 10⁸ evaluations of a simulated function through plans of a million, as
a cluster would send them, in sums, and prints the processor time of all calls of Partita and the
memory at each tenth.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

import partita as pt
from partita import problems

FUNCTIONS = ("branin", "camel", "hartmann3")
#: Noise, as a share of the spread of a function's values.
NOISE = 0.3


class Problem:
    """A function to maximise on the unit cube, of spread 1, and its largest value."""

    def __init__(self, name):
        whole = problems.get(name)
        self.lower, self.upper = whole.domain.lower, whole.domain.upper
        self.dim, self._f = len(self.lower), whole
        points = np.random.default_rng(0).uniform(self.lower, self.upper, (4000, self.dim))
        self.spread = float(np.std(self._f(points)))
        self.best = -float(whole.minimum) / self.spread

    def mean(self, unit):
        """The function's mean at a point (d,) of the unit cube."""
        x = self.lower + unit * (self.upper - self.lower)
        return -float(np.asarray(self._f(x[None, :])).ravel()[0]) / self.spread


def new_optimizer(problem, policy, evals, seed):
    """An optimizer of the unit cube."""
    known = {}
    if policy == "proven":
        known = {
            "norm_bound": 10.0,
            "noise": pt.Gaussian(NOISE),
            "kernel": pt.Matern(2.5, 0.3),
        }
    bounds = [(0.0, 1.0)] * problem.dim
    return pt.Optimizer(bounds, direction="maximize", n_evals=evals, seed=seed, **known)


def one_at_a_time(problem, policy, evals, seed):
    """The regret of all evaluations, one after the other."""
    optimizer = new_optimizer(problem, policy, evals, seed)
    rng, regret = np.random.default_rng(seed), 0.0
    for _ in range(evals):
        trial = optimizer.ask()
        mean = problem.mean(trial.unit)
        optimizer.tell(trial, mean + NOISE * rng.standard_normal())
        regret += problem.best - mean
    return regret


def in_flight(problem, policy, evals, seed, n):
    """The same with plans, n evaluations in flight on a simulated clock."""
    optimizer = new_optimizer(problem, policy, evals, seed)
    rng, regret, done = np.random.default_rng(seed), 0.0, 0
    rows, left = [], np.zeros(0, dtype=np.int64)
    while done < evals:
        free = n - int(left.sum())
        if free > 0:
            new = optimizer.plan(free)
            rows += new
            left = np.concatenate([left, [trial.count for trial in new]])
        ended = min(max(1, n // 10), int(left.sum()), evals - done)
        parts = rng.multivariate_hypergeometric(left, ended)
        for i in np.flatnonzero(parts):
            mean, count = problem.mean(rows[i].unit), int(parts[i])
            optimizer.tell(rows[i], values=mean + NOISE * rng.standard_normal(count))
            regret += count * (problem.best - mean)
        left, done = left - parts, done + ended
        kept = np.flatnonzero(left)
        rows, left = [rows[i] for i in kept], left[kept]
    return regret


def regret(options):
    """Print the ratio of regrets for each function."""
    evals = options.evals or 10_000
    print(f"{options.policy}, T = {evals:,}, {options.seeds} seeds: regret / one at a time")
    for name in FUNCTIONS:
        problem = Problem(name)
        base, fine, coarse = np.zeros((3, options.seeds))
        for seed in range(options.seeds):
            base[seed] = one_at_a_time(problem, options.policy, evals, seed)
            fine[seed] = in_flight(problem, options.policy, evals, seed, max(1, evals // 1000))
            coarse[seed] = in_flight(problem, options.policy, evals, seed, evals // 100)
        ratios = f"T/1,000 {fine.mean() / base.mean():.2f}  T/100 {coarse.mean() / base.mean():.2f}"
        print(f"{name:14} {ratios}  (one at a time: {base.mean() / evals:.4f} each)", flush=True)


def many(options):
    """Print time and memory of the driver for very many evaluations."""
    evals, problem = options.evals or 10**8, Problem("branin")
    optimizer = new_optimizer(problem, options.policy, evals, 0)
    rng, spent, rows, shown = np.random.default_rng(0), 0.0, 0, 0
    while optimizer.policy.told < evals:
        start = time.process_time()
        plan = optimizer.plan(min(10**6, evals - optimizer.policy.told))
        spent += time.process_time() - start
        for trial in plan:
            mean = problem.mean(trial.unit) + NOISE * rng.standard_normal() / trial.count**0.5
            start = time.process_time()
            optimizer.tell(trial, mean, NOISE if trial.count > 1 else None, count=trial.count)
            spent += time.process_time() - start
        rows += len(plan)
        told = optimizer.policy.told
        if told * 10 // evals > shown:
            shown = told * 10 // evals
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(f"{told:12,} evaluations, {rows:6,} rows: {spent:6.1f} s, {memory:.0f} MB")
    best = optimizer.recommend()
    gap = problem.best - problem.mean(np.asarray(best.params))
    print(f"answer within {gap:.5f} of the best, in units of the function's spread")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("regret", "many"))
    parser.add_argument("--evals", type=int)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--policy", choices=("calibrated", "proven"), default="calibrated")
    options = parser.parse_args()
    {"regret": regret, "many": many}[options.what](options)


if __name__ == "__main__":
    main()
