"""Measure choices for contexts: the mean reward of a round, as a part of the best possible.

Problems: the toy (the best price follows the context), a price for two segments with their own
demand, and the timeout of a server under a daily load. Ways: one optimizer with the context, one
without it, and one for each part of the context ("bins").

    python benchmarks/online.py [--rounds 1000] [--seeds 3] [--problem toy] [--way context]
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import partita as pt

BINS = 8


class Problem(NamedTuple):
    """What is chosen, what is known before, the mean reward, and the noise of a reward."""

    space: dict[str, Any]
    context: dict[str, Any]
    draw: Callable[[np.random.Generator], dict[str, Any]]
    reward: Callable[[float, dict[str, Any]], float]
    noise: float

    def best(self, context: dict[str, Any]) -> float:
        """The highest mean reward for a context, on a fine grid."""
        (low, high), *_ = self.space.values()
        return max(self.reward(x, context) for x in np.linspace(low, high, 400).tolist())


def _toy(x: float, context: dict[str, Any]) -> float:
    return math.exp(-(((x - 0.2 - 0.6 * context["c"]) / 0.15) ** 2))


def _price(x: float, context: dict[str, Any]) -> float:
    middle, slope = (4.0, 1.2) if context["segment"] == "new" else (6.5, 2.0)
    middle += 0.8 * math.sin(2 * math.pi * context["hour"] / 24)
    return x / 10 / (1 + math.exp(slope * (x - middle)))


def _server(x: float, context: dict[str, Any]) -> float:
    load = 0.5 - 0.45 * math.cos(2 * math.pi * context["hour"] / 24)
    return 1.0 - abs(x - (1.0 + 6.0 * load**2)) / 8.0


PROBLEMS = {
    "toy": Problem({"x": (0, 1)}, {"c": (0, 1)}, lambda r: {"c": float(r.random())}, _toy, 0.3),
    "price": Problem(
        {"x": (1, 10)},
        {"hour": (0, 24), "segment": ["new", "old"]},
        lambda r: {
            "hour": float(r.uniform(0, 24)),
            "segment": ["new", "old"][int(r.integers(2))],
        },
        _price,
        0.2,
    ),
    "server": Problem(
        {"x": (0.5, 8.5)},
        {"hour": (0, 24)},
        lambda r: {"hour": float(r.uniform(0, 24))},
        _server,
        0.2,
    ),
}


def _bin(problem: Problem, context: dict[str, Any]) -> tuple[Any, ...]:
    def part(name: str) -> Any:
        value, spec = context[name], problem.context[name]
        return value if isinstance(spec, list) else int(BINS * value / spec[1])

    return tuple(part(name) for name in problem.context)


def run(problem: Problem, way: str, rounds: int, seed: int) -> tuple[float, float]:
    """The mean reward as a part of the best possible, and milliseconds a round."""
    random = np.random.default_rng([seed, 22])
    context_of = problem.context if way == "context" else None
    optimizers: dict[Any, pt.Optimizer] = {}
    reward = best = 0.0
    begin = time.perf_counter()
    for _ in range(rounds):
        context = problem.draw(random)
        key = _bin(problem, context) if way == "bins" else None
        if key not in optimizers:
            optimizers[key] = pt.Optimizer(
                problem.space, direction="maximize", seed=seed, context=context_of
            )
        trial = optimizers[key].ask(context=context if context_of else None)
        value = problem.reward(trial.params["x"], context)
        optimizers[key].tell(trial, value + problem.noise * random.standard_normal())
        reward += value
        best += problem.best(context)
    return reward / best, (time.perf_counter() - begin) / rounds * 1e3


def main() -> None:
    """Print a line for each problem and way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--problem", choices=PROBLEMS, action="append")
    parser.add_argument("--way", choices=("context", "none", "bins"), action="append")
    args = parser.parse_args()
    for name in args.problem or PROBLEMS:
        for way in args.way or ("context", "none", "bins"):
            runs = [run(PROBLEMS[name], way, args.rounds, seed) for seed in range(args.seeds)]
            parts = ", ".join(f"{part:.3f}" for part, _ in runs)
            cost = np.mean([ms for _, ms in runs])
            print(f"{name:8} {way:8} {args.rounds:7,} rounds: {parts}  ({cost:.1f} ms)", flush=True)


if __name__ == "__main__":
    main()
