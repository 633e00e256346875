"""Measure choices for contexts: the mean reward of a round, as a part of the best possible.

Problems: the toy (the best price follows the context), a price for two segments with their own
demand, a server's timeout and workers under a daily load, a dose by five features of a patient of
which two matter, and one whose best action is the same for all contexts. Ways: our optimizer with
the context, without it, and one for each part of the context ("bins"); uniform; LinUCB with a
quadratic model; a Gaussian process of ten lines; Vowpal Wabbit's CATS with eight settings (give
--way cats for all of them; it plays one action only, and needs vowpalwabbit).

    python benchmarks/online.py [--rounds 1000] [--seeds 2] [--problem toy] [--way context]
    python benchmarks/online.py --way context --rounds 100000 --seeds 1 --problem toy
    python benchmarks/online.py --ratio --rounds 4000     (a round against one without context)
"""

from __future__ import annotations

import argparse
import math
import resource
import time
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from online_players import CATS, WAYS, player_of, sigmoid

HOURS = {"hour": (0, 24)}
PATIENT = {f"feature{i}": (0, 1) for i in range(5)}


class Problem(NamedTuple):
    """Contexts, number of actions, the mean reward of actions in [0, 1], and its noise."""

    context: dict[str, Any]
    actions: int
    reward: Callable[[np.ndarray, dict[str, Any]], float]
    noise: float

    def draw(self, random: np.random.Generator) -> dict[str, Any]:
        """A context by chance."""
        return {
            name: spec[int(random.integers(len(spec)))]
            if isinstance(spec, list)
            else float(random.uniform(*spec))
            for name, spec in self.context.items()
        }

    def best(self, context: dict[str, Any]) -> float:
        """The highest mean reward for a context, on a grid that is refined once."""
        middle, side = np.full(self.actions, 0.5), 1.0
        best = -math.inf
        for points in (41 if self.actions == 1 else 21, 21):
            axes = [np.clip(m + side * np.linspace(-0.5, 0.5, points), 0, 1) for m in middle]
            grid = np.stack(np.meshgrid(*axes), axis=-1).reshape(-1, self.actions)
            rewards = [self.reward(x, context) for x in grid]
            middle, best = grid[int(np.argmax(rewards))], max(best, *rewards)
            side = 3.0 * side / (points - 1)
        return best


def _toy(x: np.ndarray, context: dict[str, Any]) -> float:
    return math.exp(-(((x[0] - 0.2 - 0.6 * context["c"]) / 0.15) ** 2))


def _price(x: np.ndarray, context: dict[str, Any]) -> float:
    price = 1 + 9 * x[0]
    middle, slope = (4.0, 1.2) if context["segment"] == "new" else (6.5, 2.0)
    middle += 0.8 * math.sin(2 * math.pi * context["hour"] / 24)
    return price / 10 * sigmoid(slope * (middle - price))


def _server(x: np.ndarray, context: dict[str, Any]) -> float:
    load = 0.5 - 0.45 * math.cos(2 * math.pi * context["hour"] / 24)
    late = abs(x[0] - (0.1 + 0.7 * load**2))  # a timeout that is too short or too long
    idle = x[1] - (0.15 + 0.8 * load)  # workers: too few cost more than too many
    return 1.0 - 0.8 * late - (0.5 * idle if idle > 0 else -1.2 * idle)


def _dose(x: np.ndarray, context: dict[str, Any]) -> float:
    needed = 0.15 + 0.45 * context["feature1"] + 0.25 * context["feature3"] ** 2
    return math.exp(-(((x[0] - needed) / 0.2) ** 2)) - 0.3 * max(x[0] - needed, 0.0)


def _easy(x: np.ndarray, context: dict[str, Any]) -> float:
    return 1.0 - 2.0 * (x[0] - 0.62) ** 2 + 0.2 * (context["c"] - 0.5)


PROBLEMS = {
    "toy": Problem({"c": (0, 1)}, 1, _toy, 0.3),
    "price": Problem({**HOURS, "segment": ["new", "old"]}, 1, _price, 0.2),
    "server": Problem(HOURS, 2, _server, 0.2),
    "dose": Problem(PATIENT, 1, _dose, 0.2),
    "easy": Problem({"c": (0, 1)}, 1, _easy, 0.2),
}


class Run(NamedTuple):
    """The mean reward over the best; milliseconds a round, and the 99th percentile of a choice."""

    part: float
    cost: float
    slowest: float


@cache
def rounds_of(name: str, rounds: int, seed: int) -> tuple[list[dict[str, Any]], np.ndarray, float]:
    """The contexts, the noise, and the mean of the best rewards, by a thousand rounds of them."""
    problem, random = PROBLEMS[name], np.random.default_rng([seed, 22])
    contexts, noise = [], np.empty(rounds)
    for t in range(rounds):
        contexts.append(problem.draw(random))
        noise[t] = problem.noise * random.standard_normal()
    some = contexts[:: max(rounds // 1000, 1)]
    return contexts, noise, float(np.mean([problem.best(context) for context in some]))


def run(name: str, way: str, rounds: int, seed: int) -> Run | None:
    """Play; None where the way cannot."""
    problem = PROBLEMS[name]
    player = player_of(way, problem.actions, problem.context, seed)
    if player is None:
        return None
    contexts, noise, best = rounds_of(name, rounds, seed)
    rewards, took = np.empty(rounds), np.zeros((rounds, 2))
    for t, context in enumerate(contexts):
        begin = time.process_time()
        action = player.choose(context)
        middle = time.process_time()
        rewards[t] = problem.reward(action, context)
        again = time.process_time()
        player.learn(float(rewards[t] + noise[t]))
        took[t] = middle - begin, time.process_time() - again
    cost, slowest = float(took.sum(axis=1).mean()), float(np.quantile(took[:, 0], 0.99))
    return Run(float(rewards.mean()) / best, 1e3 * cost, 1e3 * slowest)


def print_ratio(rounds: int) -> None:
    """Print the processor time of rounds of the toy with the context and without, in turn."""
    problem, (contexts, noise, _) = PROBLEMS["toy"], rounds_of("toy", rounds, 0)
    players = [player_of(way, problem.actions, problem.context, 0) for way in ("context", "none")]
    took = np.zeros((rounds, 2))
    for t, context in enumerate(contexts):
        for i, player in enumerate(players):
            assert player is not None
            begin = time.process_time()
            action = player.choose(context)
            reward = problem.reward(action, context)
            player.learn(float(reward + noise[t]))
            took[t, i] = 1e3 * (time.process_time() - begin)
    for part in np.array_split(np.arange(rounds), 4):
        ours, other = took[part].mean(axis=0)
        text = f"{ours:.2f} ms, without {other:.2f} ms, {ours / other:.1f} times"
        print(f"rounds {part[0]:,} on: {text}")


def main() -> None:
    """Print a line for each problem and way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--problem", choices=PROBLEMS, action="append")
    parser.add_argument("--way", choices=(*WAYS, "cats"), action="append")
    parser.add_argument("--ratio", action="store_true")
    args = parser.parse_args()
    if args.ratio:
        print_ratio(args.rounds)
        return
    ways = [w for way in args.way or WAYS for w in (CATS if way == "cats" else [way])]
    for name in args.problem or PROBLEMS:
        for way in ways:
            runs = [run(name, way, args.rounds, seed) for seed in range(args.seeds)]
            played = [one for one in runs if one is not None]
            if not played:
                continue
            parts = ", ".join(f"{one.part:.3f}" for one in played)
            cost, slowest = (np.mean([one[i] for one in played]) for i in (1, 2))
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(
                f"{name:7} {way:18} {args.rounds:7,} rounds: {parts}  ({cost:.2f} ms a round, 99 "
                f"of 100 choices within {slowest:.1f} ms, {memory:.0f} MB)",
                flush=True,
            )


if __name__ == "__main__":
    main()
