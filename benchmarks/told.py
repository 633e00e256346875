"""What knowing the kernel and the noise is worth: the calibrated policy given them, and learning.

    python benchmarks/told.py                     10 random functions of 1, 2, 3 and 6 dimensions
    python benchmarks/told.py --problems rkhs-6 --runs 20 --jobs 2

Functions are those of Janz et al. 2020, the only ones of `benchmarks/peers.py` whose kernel is
known. A cell holds cumulative regret and regret of the answer, as parts of uniform sampling's.
"""

from __future__ import annotations

import numpy as np
from common import Regret, grouped, parser, print_table, regrets
from versus import problems

import partita as pt

CHECKPOINTS = (200, 1_000)


def run(name: str, way: str, seed: int) -> dict[int, Regret]:
    problem = problems.build(name, "tenth", seed)
    noise = pt.Uniform(-problem.half_width, problem.half_width)
    given = {"kernel": problem.kernel, "noise": noise} if way == "given" else {}
    policy = pt.CalibratedUCB(problem.domain, seed=seed, **given)
    random = np.random.default_rng([seed, 29])
    return regrets(policy, problem, random, max(CHECKPOINTS), CHECKPOINTS)


def main() -> None:
    command = parser(__doc__)
    command.add_argument("--runs", type=int, default=10)
    command.add_argument("--problems", nargs="+", default=list(problems.SYNTHETIC))
    options = command.parse_args()
    groups = [(name, way) for name in options.problems for way in ("learned", "given")]
    rows = []
    for (name, way), runs in grouped(run, groups, options.runs, options.jobs).items():
        means = [np.mean([result[t] for result in runs], axis=0) for t in CHECKPOINTS]
        cells = (f"{cumulative:.2f}, {answer:.2f}" for cumulative, answer in means)
        rows.append([problems.TITLES[name], way, *cells])
    print_table(["", "kernel and noise", *(f"{t:,}" for t in CHECKPOINTS)], rows)


if __name__ == "__main__":
    main()
