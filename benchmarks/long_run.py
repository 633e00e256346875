"""One long run of the calibrated policy: does a step cost the same for ever?

python benchmarks/long_run.py                                 1,000,000 evaluations of Branin
python benchmarks/long_run.py --problem hartmann6 --evaluations 100000
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
from common import at
from versus import problems

import partita as pt
from partita.experiments.play import steps

CHECKPOINTS = (100, 1_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problem", default="branin", choices=problems.NAMES)
    parser.add_argument("--evaluations", type=int, default=1_000_000)
    options = parser.parse_args()
    problem = problems.build(options.problem, "tenth", 0)
    policy = pt.CalibratedUCB(problem.domain, seed=0)
    random, width = np.random.default_rng(5), problem.half_width
    print(
        "| evaluations | time of a step | mean regret, of uniform's | regions | distinct points |"
    )
    print("| --- | --- | --- | --- | --- |")
    lost = spent = last_spent = 0.0
    last = 0
    run = steps(
        policy,
        lambda x: at(problem, x),
        lambda f: f + width * random.uniform(-1, 1),
        options.evaluations,
        time.process_time,
    )
    for t, step in enumerate(run, start=1):
        spent += step.seconds
        lost += problem.best - step.value
        if t in CHECKPOINTS:
            regret = lost / t / problem.uniform_regret
            print(
                f"| {t:,} | {1e3 * (spent - last_spent) / (t - last):.2f} ms | {regret:.5f} "
                f"| {len(policy.cover)} | {len(policy._regions.home):,} |",
                flush=True,
            )
            last, last_spent = t, spent
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\n{1e3 * spent / options.evaluations:.2f} ms a step on average, {peak:.0f} MB at most")


if __name__ == "__main__":
    main()
