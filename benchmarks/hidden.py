"""What a calibrated certificate would have to be to hold where a narrow peak hides.

    python benchmarks/hidden.py --runs 4

On the spiky functions of `versus/unseen.py`, after 100, 300 and 1,000 evaluations: in how many runs
no evaluation has come near the narrow peak (within its width at half its height); by how much f at
any evaluated point differs, in standard deviations of the noise, from the same function without the
narrow peak (where all are below 1, no single value tells the two apart); and by what factor
certificates must be wider so that nine in ten hold.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from bounds import CHECKPOINTS, begun
from common import at, grouped, parser, print_table
from versus import unseen


class Look(NamedTuple):
    """A run at one moment."""

    told: int
    near: bool
    shown: float
    factor: float


def run(name: str, noise: str, first: int, seed: int) -> list[Look]:
    """The looks of one run."""
    policy, problem, steps, _ = begun(name, noise, first + seed, max(CHECKPOINTS))
    dim, width = unseen.SPIKY[name], unseen.WIDTHS[name.rpartition("-")[0]]
    broad, narrow = unseen.places(name, first + seed)
    plain = unseen.one_peak(broad)
    seen: list[np.ndarray] = []
    looks = []
    for t, step in steps:
        seen.append(step.x)
        if t in CHECKPOINTS:
            points = np.array(seen).reshape(-1, dim)
            near = bool((np.linalg.norm(points - narrow, axis=1) <= width).any())
            differs = np.abs(problem.function(points) - plain(points)).max()
            lost = problem.best - at(problem, policy.recommend().x)
            std = problem.half_width / np.sqrt(3.0)
            looks.append(Look(t, near, float(differs / std), lost / policy.certificate()))
    return looks


def main() -> None:
    command = parser(__doc__)
    command.add_argument("--runs", type=int, default=4)
    command.add_argument("--first", type=int, default=0)
    command.add_argument("--noise", default="tenth")
    options = command.parse_args()
    groups = [(name, options.noise, options.first) for name in unseen.SPIKY]
    made = grouped(run, groups, options.runs, options.jobs)
    rows = []
    for (name, *_), runs in made.items():
        for k, told in enumerate(CHECKPOINTS):
            looks = [one[k] for one in runs]
            rows.append(
                [
                    unseen.TITLES[str(name)],
                    f"{told:,}",
                    f"{sum(not look.near for look in looks)} of {len(looks)}",
                    f"{sum(look.shown < 1 for look in looks)} of {len(looks)}",
                    f"{np.median([look.factor for look in looks]):.1f}",
                    f"{np.quantile([look.factor for look in looks], 0.9):.1f}",
                ]
            )
    head = ["", "evaluations", "none near", "all within the noise"]
    print_table([*head, "loss over certificate, median", "nine tenths"], rows)


if __name__ == "__main__":
    main()
