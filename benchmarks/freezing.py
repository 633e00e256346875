"""Does the calibrated policy stay at a local maximum? With its probes, and without them.

    python benchmarks/freezing.py                 16 runs of 5,000 evaluations on two functions
    python benchmarks/freezing.py --runs 4 --evaluations 1000 --problems eggholder

A run counts as frozen if what it recommends loses more than a twentieth of uniform sampling's
regret: it sits at another maximum. Probes are plays where the upper bound is highest; their number
grows as the root of the evaluations.
"""

from __future__ import annotations

import argparse
from collections import defaultdict

import numpy as np
from versus import problems
from versus.regrets import regrets, unit_box

import partita as pt
from partita.policies.calibrated import calibrated_ucb

FROZEN = 0.05
CHECKPOINTS = (200, 1_000, 5_000)


def run(name: str, seed: int, evaluations: int, probes: float) -> dict[int, tuple[float, float]]:
    """Cumulative regret and regret of the answer, by evaluations made, as parts of uniform's."""
    calibrated_ucb.PROBES = probes
    problem = problems.build(name, "tenth", seed)
    policy = pt.CalibratedUCB(unit_box(problem), seed=seed)
    random = np.random.default_rng([seed, 23])
    return regrets(policy, problem, random, evaluations, CHECKPOINTS)


def main() -> None:
    from joblib import Parallel, delayed

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=16)
    parser.add_argument("--evaluations", type=int, default=max(CHECKPOINTS))
    parser.add_argument("--problems", nargs="+", default=["eggholder", "hartmann3"])
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    rates = {"without probes": 0.0, "with": calibrated_ucb.PROBES}
    tasks = [(n, w, s) for n in options.problems for w in rates for s in range(options.runs)]
    made = Parallel(options.jobs)(
        delayed(run)(name, seed, options.evaluations, rates[way]) for name, way, seed in tasks
    )
    rows: dict[tuple[str, str], list[dict[int, tuple[float, float]]]] = defaultdict(list)
    for (name, way, _), found in zip(tasks, made, strict=True):
        rows[name, way].append(found)
    times = [t for t in CHECKPOINTS if t <= options.evaluations]
    print("| | probes | " + " | ".join(f"frozen, regret at {t:,}" for t in times) + " |")
    print("| --- | --- |" + " --- |" * len(times))
    for (name, way), runs in rows.items():
        cells = []
        for t in times:
            frozen = sum(found[t][1] > FROZEN for found in runs)
            cells.append(f"{frozen} of {len(runs)}, {np.mean([r[t][0] for r in runs]):.3f}")
        print(f"| {problems.TITLES[name]} | {way} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
