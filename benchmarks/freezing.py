"""Does the calibrated policy stay at a local maximum? With its probes, and without them.

    python benchmarks/freezing.py                 16 runs of 5,000 evaluations on two functions
    python benchmarks/freezing.py --runs 4 --evaluations 1000 --problems eggholder

A run counts as frozen if what it recommends loses more than a twentieth of uniform sampling's
regret: it sits at another maximum. Probes are plays where the upper bound is highest; their number
grows as the root of the evaluations.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from common import Regret, grouped, parser, print_table, regrets
from versus import problems

import partita as pt
from partita.policies.calibrated import calibrated_ucb

FROZEN = 0.05
CHECKPOINTS = (200, 1_000, 5_000)
RATES = {"without probes": 0.0, "with": calibrated_ucb.PROBES}


def run(name: str, way: str, seed: int, evaluations: int) -> dict[int, Regret]:
    calibrated_ucb.PROBES = RATES[way]
    problem = problems.build(name, "tenth", seed)
    policy = pt.CalibratedUCB(problem.domain, seed=seed)
    random = np.random.default_rng([seed, 23])
    return regrets(policy, problem, random, evaluations, CHECKPOINTS)


def main() -> None:
    command = parser(__doc__)
    command.add_argument("--runs", type=int, default=16)
    command.add_argument("--evaluations", type=int, default=max(CHECKPOINTS))
    command.add_argument("--problems", nargs="+", default=["eggholder", "hartmann3"])
    options = command.parse_args()
    times = [t for t in CHECKPOINTS if t <= options.evaluations]
    groups = [(name, way) for name in options.problems for way in RATES]
    play = partial(run, evaluations=options.evaluations)
    rows = []
    for (name, way), runs in grouped(play, groups, options.runs, options.jobs).items():
        cells = []
        for t in times:
            frozen = sum(result[t].answer > FROZEN for result in runs)
            regret = np.mean([result[t].cumulative for result in runs])
            cells.append(f"{frozen} of {len(runs)}, {regret:.3f}")
        rows.append([problems.TITLES[name], way, *cells])
    print_table(["", "probes", *(f"frozen, regret at {t:,}" for t in times)], rows)


if __name__ == "__main__":
    main()
