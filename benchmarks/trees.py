"""What a step of the tree policies costs, as a ratio to PyXAB's in the same run.

    python benchmarks/trees.py

Two dimensions, horizon 10,000; microseconds of processor time to choose and learn, the median of
the hundred steps before t. PyXAB walks over its whole tree at each step, so it gets 20 seconds a
method: where it does not reach t, its last hundred steps are given with the step they ended at.

PyXAB 0.3.0 begins its sweep afresh at every evaluation, so its SOO and StoSOO divide the tree
evenly, depth by depth; a step of theirs is cheaper for it.
"""

from __future__ import annotations

import time
import warnings

import numpy as np

import partita as pt
from partita.experiments.play import steps
from partita.policies.baselines.hoo import HOO
from partita.policies.baselines.optimistic import SOO
from partita.policies.baselines.stosoo import StoSOO

HORIZON = 10_000
MARKS = (1_000, 10_000)
WINDOW = 100
PATIENCE = 20.0
NOISE = 0.1


def value(x):
    return 1.0 - abs(x[0] - 0.3) - 0.5 * abs(x[1] - 0.6)


def timed(player, noise):
    """Microseconds a step by the step, until the horizon or the end of patience."""
    rng = np.random.default_rng(0)
    microseconds, begin = [], time.thread_time()
    for step in steps(player, value, lambda f: f + noise * rng.normal(), HORIZON, time.thread_time):
        microseconds.append(1e6 * step.seconds)
        if time.thread_time() - begin > PATIENCE:
            break
    return np.array(microseconds)


class Theirs:
    """An algorithm of PyXAB, asked and told."""

    def __init__(self, algorithm):
        self.algorithm, self.time = algorithm, 0

    def ask(self):
        self.time += 1
        return self.algorithm.pull(self.time)

    def tell(self, x, y):
        self.algorithm.receive_reward(self.time, y)


def pairs():
    """Name, our policy, PyXAB's, and the noise."""
    import PyXAB.algos.HOO
    import PyXAB.algos.SOO
    import PyXAB.algos.StoSOO
    from PyXAB.partition.KaryPartition import KaryPartition

    peers = PyXAB.algos
    box, sides = pt.Box([0.0, 0.0], [1.0, 1.0]), [[0, 1], [0, 1]]
    thirds = {"domain": sides, "partition": KaryPartition}
    rho = 2**-0.5
    yield (
        "HOO",
        HOO(box, horizon=HORIZON, noise=pt.Bernoulli()),
        peers.HOO.T_HOO(nu=1, rho=rho, rounds=HORIZON, domain=sides),
        NOISE,
    )
    yield "SOO", SOO(box, horizon=HORIZON), peers.SOO.SOO(n=HORIZON, h_max=100, **thirds), 0.0
    yield (
        "StoSOO",
        StoSOO(box, horizon=HORIZON, noise=pt.Bernoulli()),
        peers.StoSOO.StoSOO(n=HORIZON, **thirds),
        NOISE,
    )


def main():
    warnings.simplefilter("ignore", pt.TheoryWarning)
    print(f"{'':8}{'t':>8}{'Partita':>12}{'PyXAB':>12}{'at its step':>14}{'ratio':>10}")
    for name, policy, peer, noise in pairs():
        np.random.seed(0)  # noqa: NPY002  PyXAB divides along sides that it draws globally
        mine, other = timed(policy, noise), timed(Theirs(peer), noise)
        for mark in MARKS:
            reached = min(mark, len(other))
            a = np.median(mine[mark - WINDOW : mark])
            b = np.median(other[reached - WINDOW : reached])
            print(f"{name:8}{mark:8,}{a:9.1f} µs{b:9.0f} µs{reached:14,}{b / a:9.0f}x", flush=True)


if __name__ == "__main__":
    main()
