"""The cost of telling the mean of n values: one call of `tell(x, mean, std=, count=n)`.

    python benchmarks/aggregates.py

Microseconds of one tell at points that have data already, the median of 200, for a count of 1 and
of a million, and of a tell of 1,000 values one by one. A split of cells on the way would be paid
for in both.
"""

from __future__ import annotations

import statistics
import time

import numpy as np

import partita as pt

TELLS = 200
SETTINGS = {
    "horizon": 10**9,
    "kernel": pt.Matern(nu=1.5, lengthscale=0.2),
    "norm_bound": 1.0,
    "noise": pt.Gaussian(0.1),
}


def warmed():
    """A policy on a grid of 400 points that has values at all of them."""
    policy = pt.PiGPUCB(pt.Grid(20, dim=2), **SETTINGS)
    points = policy.domain.points
    policy.tell(points, np.sin(5 * points[:, 0]))
    for x in points[:50]:
        policy.tell(x, 0.0)
    return policy


def microseconds(policy, x, tell):
    """The time of one call, in µs."""
    start = time.perf_counter()
    tell(policy, x)
    return 1e6 * (time.perf_counter() - start)


def main() -> None:
    """Print a line for each way of telling."""
    ways = {
        "a single value": lambda policy, x: policy.tell(x, 0.1),
        "a mean of 1,000,000": lambda policy, x: policy.tell(x, 0.1, std=0.1, count=10**6),
        "1,000 single values": lambda policy, x: [policy.tell(x, 0.1) for _ in range(1000)],
    }
    for name, tell in ways.items():
        policy, rng = warmed(), np.random.default_rng(0)
        tells = TELLS if "1,000 s" not in name else 5
        chosen = policy.domain.points[rng.integers(0, 400, tells)]
        times = [microseconds(policy, x, tell) for x in chosen]
        print(f"{name:22} {statistics.median(times):12,.0f} µs")


if __name__ == "__main__":
    main()
