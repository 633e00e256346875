"""What the locks cost that let threads share an `Optimizer` or a policy.

    python benchmarks/locks.py [--calls 20000] [--rounds 25]

Each method is called with its lock and without it in turns, in the same process on the same object,
so that other work on the machine disturbs both alike. The objects do next to nothing else: on real
policies the same nanoseconds are a smaller part. Shown are the shortest times of all rounds, which
other work disturbs least. Two calls, an ask and a tell, are a step.
"""

from __future__ import annotations

import argparse
import copy
import time
from collections.abc import Callable

import numpy as np

import partita as pt
from partita.optimize.optimizer import Optimizer
from partita.optimize.values import as_value
from partita.policies.base import Policy


class Idle(Policy):
    """Plays one point, and learns nothing: all that is left is what every policy shares."""

    def _propose(self):
        return 0, np.zeros(1)

    def _locate(self, points):
        return np.zeros(len(points), dtype=np.int64)

    def _record(self, site, value, asked, std=None):
        pass

    def _record_many(self, sites, values, stds=None):
        pass

    def _released(self, site):
        pass

    def recommend(self):
        return pt.Recommendation(np.zeros(1), 0.0, 0.0, 0.0)


def make(policy: type[Policy]) -> Callable[[pt.Box], Policy]:
    """A function that tells the policy of its domain and nothing else."""

    def made(domain: pt.Box) -> Policy:
        return policy(domain)

    return made


def unlocked(method: Callable) -> Callable:
    return method.__wrapped__


def nanoseconds(call: Callable[[], object], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return 1e9 * (time.perf_counter() - start) / calls


def measure(name: str, locked: Callable, free: Callable, calls: int, rounds: int) -> None:
    pairs = np.array(
        [(nanoseconds(locked, calls), nanoseconds(free, calls)) for _ in range(rounds)]
    )
    locked_time, free_time = pairs.min(axis=0)
    print(
        f"{name:<28}{free_time:>9.0f}{locked_time:>9.0f}{locked_time - free_time:>+9.0f}"
        f"{locked_time / free_time:>8.2f}"
    )


def policy_calls(policy: Idle, ask: Callable, tell: Callable) -> Callable[[], None]:
    def call():
        tell(policy, ask(policy), 0.0)

    return call


class Free(Idle):
    """The same without its lock."""


Free.ask, Free.tell = unlocked(Idle.ask), unlocked(Idle.tell)


def game_calls(optimizer: Optimizer) -> Callable[[], None]:
    """Ask and tell as `Optimizer` does them, but for its lock and the notice of interrupts."""
    free = copy.copy(optimizer.game)  # the same ledger
    free.policy = Free(pt.Box([0.0], [1.0]))

    def call():
        trial = optimizer._trial(free.ask())
        number = optimizer.number_of(trial, "tell")
        free.tell(number, as_value(0.0), optimizer.std_of(None, "tell"))

    return call


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=20000)
    parser.add_argument("--rounds", type=int, default=25)
    options = parser.parse_args()
    shape = options.calls, options.rounds
    policy = Idle(pt.Box([0.0], [1.0]))
    optimizer = pt.Optimizer([(0.0, 1.0)], policy=make(Idle))

    def step():
        optimizer.tell(optimizer.ask(), 0.0)

    print(f"{'nanoseconds':<28}{'without':>9}{'with':>9}{'added':>9}{'ratio':>8}")
    measure(
        "policy: ask and tell",
        policy_calls(policy, Idle.ask, Idle.tell),
        policy_calls(policy, unlocked(Idle.ask), unlocked(Idle.tell)),
        *shape,
    )
    recommend = unlocked(Idle.recommend)
    measure("policy: recommend", policy.recommend, lambda: recommend(policy), *shape)
    measure("Optimizer: ask and tell", step, game_calls(optimizer), *shape)


if __name__ == "__main__":
    main()
