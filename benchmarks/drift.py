"""Measure a world that changes: the mean loss of a round, with drift=True and without it.

A bump of width 0.16 in two dimensions, of height 1 with noise 0.2, stays ("none"), jumps after 4/5
of the rounds ("jump"), walks by 0.002 in each coordinate at each round ("walk"), or goes round once
in 1,000 rounds ("season"). Ways: drift=True ("drift"), drift=False ("still"), a new policy every
1,000 rounds ("restarts"), one that begins each 100 rounds with the last 500 values ("window"), and
nevergrad's TBPSA ("tbpsa", if nevergrad is there; it evaluates and never returns to old points).

    python benchmarks/drift.py [--rounds 5000] [--seeds 3] [--world jump] [--way drift]
"""

from __future__ import annotations

import argparse
import math
import time
from typing import Any

import numpy as np

import partita as pt

WORLDS = ("none", "jump", "walk", "season")
WAYS = ("drift", "still", "restarts", "window", "tbpsa")
BOX = pt.Box([0, 0], [1, 1])
FAR, STEP, WIDTH, NOISE = 0.4, 0.002, 0.16, 0.2


def middles(world: str, rounds: int, seed: int) -> np.ndarray:
    """Where the bump is in each round, (rounds, 2)."""
    random = np.random.default_rng([seed, 22])
    first = random.uniform(0.15, 0.85, 2)
    where = np.tile(first, (rounds, 1))
    if world == "jump":
        other = first
        while float(((other - first) ** 2).sum()) < FAR**2:
            other = random.uniform(0.15, 0.85, 2)
        where[rounds * 4 // 5 :] = other
    elif world == "walk":
        for t in range(1, rounds):
            where[t] = where[t - 1] + STEP * random.standard_normal(2)
            where[t] = np.where(where[t] < 0.1, 0.2 - where[t], where[t])
            where[t] = np.where(where[t] > 0.9, 1.8 - where[t], where[t])
    elif world == "season":
        angle = 2 * np.pi * np.arange(rounds) / 1000
        where = 0.5 + 0.3 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return where


class Tbpsa:
    """nevergrad's TBPSA, with `ask` and `tell` as a policy has them."""

    def __init__(self, rounds: int, seed: int) -> None:
        import nevergrad

        space = nevergrad.p.Array(init=np.full(2, 0.5)).set_bounds(0, 1)
        space.random_state.seed(seed)
        self._inner = nevergrad.optimizers.TBPSA(space, budget=rounds)

    def ask(self) -> np.ndarray:
        """The next point."""
        self._last = self._inner.ask()
        return np.asarray(self._last.value)

    def tell(self, x: np.ndarray, y: float) -> None:
        """Report its value; TBPSA minimises."""
        self._inner.tell(self._last, -y)


def run(world: str, way: str, rounds: int, seed: int) -> tuple[np.ndarray, float]:
    """The loss of each round, and milliseconds a round."""
    random = np.random.default_rng([seed, 23])
    policy: Any = pt.CalibratedUCB(BOX, seed=seed, drift=way == "drift")
    if way == "tbpsa":
        policy = Tbpsa(rounds, seed)
    points, values, lost = [], [], []
    begin = time.perf_counter()
    for t, middle in enumerate(middles(world, rounds, seed)):
        if way == "restarts" and t and t % 1000 == 0:
            policy = pt.CalibratedUCB(BOX, seed=seed + t)
        if way == "window" and t and t % 100 == 0:
            policy = pt.CalibratedUCB(BOX, seed=seed + t)
            policy.tell(np.array(points[-500:]), np.array(values[-500:]))
        x = policy.ask()
        value = math.exp(-float(((x - middle) ** 2).sum()) / WIDTH**2)
        points.append(x)
        values.append(value + NOISE * random.standard_normal())
        policy.tell(x, values[-1])
        lost.append(1.0 - value)
    return np.array(lost), (time.perf_counter() - begin) / rounds * 1e3


def main() -> None:
    """Print a line for each world and way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--world", choices=WORLDS, action="append")
    parser.add_argument("--way", choices=WAYS, action="append")
    args = parser.parse_args()
    for world in args.world or WORLDS:
        for way in args.way or WAYS:
            for seed in range(args.seeds):
                lost, cost = run(world, way, args.rounds, seed)
                last = lost[args.rounds * 4 // 5 :].mean()
                print(
                    f"{world:7} {way:9} {args.rounds:7,} rounds, seed {seed}: {lost.mean():.3f}, "
                    f"last fifth {last:.3f}  ({cost:.1f} ms)",
                    flush=True,
                )


if __name__ == "__main__":
    main()
