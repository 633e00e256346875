"""Fifty parameters, some of them whole numbers and choices, beside fifty real ones.

    python benchmarks/mixed_many.py                       # all spaces and players
    python benchmarks/mixed_many.py --evals 300 --runs 1 --players partita optuna-tpe
    python benchmarks/mixed_many.py --coupled --noise 1

One bowl in three spaces: of real numbers only; with ten whole numbers and ten choices among them;
of whole numbers and choices only. A choice adds its own constant, so its values have no order. If
coupled, the first choice also moves the best numbers, all numbers depend on their sum, and pairs of
choices match or not. Noise is a tenth of the range over uniform points, or the given part. Printed
is the regret of the evaluations and of the answer, as parts of uniform sampling's, and the
processor time of an evaluation.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import partita as pt

DIM = 50
SPACES = {"real": (50, 0, 0), "mixed": (30, 10, 10), "discrete": (0, 25, 25)}
VALUES = "abcd"
Params = dict[str, Any]


class Bowl:
    """A cost of fifty parameters, drawn by a seed: 0 at its best point."""

    def __init__(self, kind: str, seed: int, coupled: bool = False) -> None:
        random = np.random.default_rng([seed, DIM])
        reals, wholes, choices = SPACES[kind]
        self.space: dict[str, Any] = {f"x{i}": (0.0, 1.0) for i in range(reals)}
        self.space |= {f"n{i}": (0, 10, "int") for i in range(wholes)}
        self.space |= {f"c{i}": list(VALUES) for i in range(choices)}
        self._at = random.uniform(0.15, 0.85, reals + wholes)
        self._weights = random.uniform(0.5, 2.0, reals + wholes)
        constants = random.uniform(0.0, 0.3, (choices, len(VALUES)))
        self._constants = constants - constants.min(axis=1, keepdims=True)
        self._moves = random.uniform(-0.1, 0.1, (len(VALUES), reals + wholes)) * coupled
        self._sum, self._match = 0.5 * coupled, 0.15 * coupled
        self._least = self._bowl(np.round(10 * self._at[reals:]) / 10, reals)

    def _bowl(self, values: np.ndarray, first: int) -> float:
        return float((self._weights[first:] * (values - self._at[first:]) ** 2).sum())

    def __call__(self, params: Params) -> float:
        """The cost, without noise."""
        numbers = [v / 10 if k[0] == "n" else v for k, v in params.items() if k[0] != "c"]
        letters = [VALUES.index(v) for k, v in params.items() if k[0] == "c"]
        values = np.array(numbers, float)
        if letters:
            values = values - self._moves[letters[0]]
        total = self._bowl(values, 0) + self._sum * (values - self._at).sum() ** 2 / len(values)
        total += float(self._constants[range(len(letters)), letters].sum())
        pairs = zip(letters[::2], letters[1::2], strict=False)
        total += self._match * sum((one + other) % 4 != 1 for one, other in pairs)
        return total if self._sum else total - self._least  # coupled, the least is not known

    def uniform(self, random: np.random.Generator) -> Params:
        """Parameters drawn uniformly."""
        draws = {"x": random.random, "n": lambda: int(random.integers(0, 11))}
        draws["c"] = lambda: str(random.choice(list(VALUES)))
        return {name: draws[name[0]]() for name in self.space}


Play = Iterator[tuple[Params, Callable[[float], None], Callable[[], Params]]]


def partita(bowl: Bowl, seed: int) -> Play:
    """Each evaluation of Partita's default: parameters, how to tell, and the answer."""
    optimizer = pt.Optimizer(bowl.space, direction="minimize", seed=seed)
    while True:
        trial = optimizer.ask()

        def tell(value: float, trial: Any = trial) -> None:
            optimizer.tell(trial, value)

        yield trial.params, tell, lambda: optimizer.recommend().params


def optuna_tpe(bowl: Bowl, seed: int) -> Play:
    """The same for Optuna's TPE, whose answer is its best value."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    kinds = {
        "x": lambda: optuna.distributions.FloatDistribution(0.0, 1.0),
        "n": lambda: optuna.distributions.IntDistribution(0, 10),
        "c": lambda: optuna.distributions.CategoricalDistribution(VALUES),
    }
    space = {name: kinds[name[0]]() for name in bowl.space}
    while True:
        trial = study.ask(space)

        def tell(value: float, trial: Any = trial) -> None:
            study.tell(trial, value)

        yield trial.params, tell, lambda: study.best_params


PLAYERS = {"partita": partita, "optuna-tpe": optuna_tpe}


def measure(kind: str, player: str, options: Any, seed: int) -> tuple[float, float, float]:
    """Regret of the evaluations and of the answer, and milliseconds of an evaluation."""
    bowl, random = Bowl(kind, seed, options.coupled), np.random.default_rng([seed, 1])
    evals = options.evals
    uniform = [bowl(bowl.uniform(random)) for _ in range(1000)]
    noise, unit = options.noise * float(np.ptp(uniform)), float(np.mean(uniform))
    total, begun = 0.0, time.process_time()
    for done, (params, tell, answer) in enumerate(PLAYERS[player](bowl, seed), 1):
        cost = bowl(params)
        total += cost
        tell(cost + noise * random.uniform(-0.5, 0.5))
        if done == evals:
            taken = 1e3 * (time.process_time() - begun) / evals
            return total / evals / unit, bowl(answer()) / unit, taken
    raise AssertionError("players never end")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--evals", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--noise", type=float, default=0.1, metavar="PART")
    parser.add_argument("--coupled", action="store_true")
    parser.add_argument("--players", nargs="+", default=list(PLAYERS), choices=list(PLAYERS))
    options = parser.parse_args()
    print(f"{'':24}{'evaluations':>12}{'answer':>9}{'ms':>7}")
    for kind in SPACES:
        for player in options.players:
            runs = [measure(kind, player, options, seed) for seed in range(options.runs)]
            regret, answer, taken = np.mean(runs, axis=0)
            print(f"{kind:10}{player:14}{regret:12.3f}{answer:9.3f}{taken:7.1f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
