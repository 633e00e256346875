"""What knowing the kernel and the noise is worth: the calibrated policy told them, and learning.

    python benchmarks/told.py                     10 random functions of 1, 2, 3 and 6 dimensions
    python benchmarks/told.py --problems rkhs-6 --runs 20 --jobs 2

Functions are those of Janz et al. 2020, the only ones of `benchmarks/peers.py` whose kernel is
known. A cell holds cumulative regret and regret of the answer, as parts of uniform sampling's.
"""

from __future__ import annotations

import argparse
from collections import defaultdict

import numpy as np
from versus import problems
from versus.regrets import regrets, unit_box

import partita as pt

CHECKPOINTS = (200, 1_000)


def run(name: str, seed: int, evaluations: int, told: bool) -> dict[int, tuple[float, float]]:
    """Cumulative regret and regret of the answer, by evaluations made."""
    problem = problems.build(name, "tenth", seed)
    noise = pt.Uniform(-problem.half_width, problem.half_width)
    known = {"kernel": problem.kernel, "noise": noise} if told else {}
    policy = pt.CalibratedUCB(unit_box(problem), seed=seed, **known)
    random = np.random.default_rng([seed, 29])
    return regrets(policy, problem, random, evaluations, CHECKPOINTS)


def main() -> None:
    from joblib import Parallel, delayed

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--problems", nargs="+", default=list(problems.SYNTHETIC))
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    last = max(CHECKPOINTS)
    tasks = [
        (name, told, seed)
        for name in options.problems
        for told in (False, True)
        for seed in range(options.runs)
    ]
    made = Parallel(options.jobs)(
        delayed(run)(name, seed, last, told) for name, told, seed in tasks
    )
    rows: dict[tuple[str, bool], list[dict[int, tuple[float, float]]]] = defaultdict(list)
    for (name, told, _), found in zip(tasks, made, strict=True):
        rows[name, told].append(found)
    print("| | kernel and noise | " + " | ".join(f"{t:,}" for t in CHECKPOINTS) + " |")
    print("| --- | --- |" + " --- |" * len(CHECKPOINTS))
    for (name, told), runs in rows.items():
        means = [np.mean([found[t] for found in runs], axis=0) for t in CHECKPOINTS]
        cells = " | ".join(f"{cumulative:.2f}, {answer:.2f}" for cumulative, answer in means)
        print(f"| {problems.TITLES[name]} | {'told' if told else 'learned'} | {cells} |")


if __name__ == "__main__":
    main()
