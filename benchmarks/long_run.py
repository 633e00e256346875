"""One long run of the calibrated policy: does a step cost the same for ever?

python benchmarks/long_run.py                                 1,000,000 evaluations of Branin
python benchmarks/long_run.py --problem hartmann6 --evaluations 100000
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
from versus import problems

import partita as pt

CHECKPOINTS = (100, 1_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problem", default="branin", choices=problems.NAMES)
    parser.add_argument("--evaluations", type=int, default=1_000_000)
    options = parser.parse_args()
    problem = problems.build(options.problem, "tenth", 0)
    policy = pt.CalibratedUCB(pt.Box([0.0] * problem.dim, [1.0] * problem.dim), seed=0)
    random = np.random.default_rng(5)
    print(
        "| evaluations | time of a step | mean regret, of uniform's | regions | distinct points |"
    )
    print("| --- | --- | --- | --- | --- |")
    lost = spent = last_spent = 0.0
    last = 0
    for t in range(1, options.evaluations + 1):
        start = time.process_time()
        x = policy.ask()
        spent += time.process_time() - start
        f = float(problem.function(x[None, :])[0])
        y = f + problem.half_width * random.uniform(-1, 1)
        start = time.process_time()
        policy.tell(x, y)
        spent += time.process_time() - start
        lost += problem.best - f
        if t in CHECKPOINTS:
            step = (spent - last_spent) / (t - last)
            regret = lost / t / problem.uniform_regret
            print(
                f"| {t:,} | {1e3 * step:.2f} ms | {regret:.5f} | {len(policy.cover)} "
                f"| {len(policy._regions.home):,} |",
                flush=True,
            )
            last, last_spent = t, spent
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\n{1e3 * spent / options.evaluations:.2f} ms a step on average, {peak:.0f} MB at most")


if __name__ == "__main__":
    main()
