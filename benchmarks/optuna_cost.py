"""What a trial costs with PartitaSampler, beside Optuna's random sampler in the same run.

    python benchmarks/optuna_cost.py [--storage memory|journal|sqlite] [--trials 10000]

The objective costs nothing. Times are of the processor, so that others on the machine count for
less; on storages that write to a disk, of the clock. A time at trial t is the mean over a window
around t, which has several asks of every kind in it, and the median over the repeats. "not stored"
is PartitaSampler(store_proposals=False).
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import optuna

from partita.integrations.optuna import PartitaSampler

#: Trials around the one that is measured: a part of its number, and the least number of them.
WINDOW_PART, WINDOW_LEAST = 0.02, 25


def two_floats(trial: Any, noise: float) -> float:
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    return float((x - 0.3) ** 2 + (y - 0.6) ** 2 + noise)


def mixed(trial: Any, noise: float) -> float:
    rate = trial.suggest_float("rate", 1e-5, 1e-1, log=True)
    depth = trial.suggest_int("depth", 1, 12)
    drop = trial.suggest_float("drop", 0.0, 0.5)
    kind = trial.suggest_categorical("kind", ["a", "b", "c"])
    value = 0.1 * (math.log10(rate) + 3) ** 2 + 0.01 * (depth - 5) ** 2 + drop + (kind != "b")
    return float(value + noise)


OBJECTIVES = {"two floats": two_floats, "log, int, float, 3 choices": mixed}
SAMPLERS = {
    "random": lambda seed: optuna.samplers.RandomSampler(seed=seed),
    "partita": lambda seed: PartitaSampler(seed=seed),
    "not stored": lambda seed: PartitaSampler(seed=seed, store_proposals=False),
}


class Timed:
    """A study, and when each of its trials ended."""

    def __init__(self, study: Any, objective: Any, clock: Any, seed: int) -> None:
        self.study, self.objective, self.clock = study, objective, clock
        self.random = np.random.default_rng(seed)
        self.ends: list[float] = []

    def run(self, trials: int) -> None:
        def call(trial: Any) -> float:
            return float(self.objective(trial, 0.1 * self.random.normal()))

        self.ends.append(self.clock())
        self.study.optimize(
            call, n_trials=trials, callbacks=[lambda *_: self.ends.append(self.clock())]
        )

    def cost_at(self, number: int) -> float:
        """Mean milliseconds a trial around a number."""
        half = max(WINDOW_LEAST, int(WINDOW_PART * number))
        first, last = max(number - half, 0), min(number + half, len(self.ends) - 1)
        return 1e3 * (self.ends[last] - self.ends[first]) / (last - first)


def storage_at(kind: str, folder: str, name: str) -> Any:
    if kind == "journal":
        backend = optuna.storages.journal.JournalFileBackend(str(Path(folder) / f"{name}.journal"))
        return optuna.storages.JournalStorage(backend)
    if kind == "sqlite":
        return f"sqlite:///{Path(folder) / name}.db"
    return None


def measure(options: argparse.Namespace, folder: str) -> None:
    clock = time.thread_time if options.storage == "memory" else time.perf_counter
    marks = sorted({min(100, options.trials), options.trials})
    print(f"storage: {options.storage}; milliseconds a trial, median of {options.repeats} runs")
    print(f"{'objective':<28}{'trial':>8}{'random':>10}{'partita':>10}{'added':>10}", end="")
    print(f"{'added if not stored':>22}")
    for title, objective in OBJECTIVES.items():
        for mark in marks:
            costs: dict[str, list[float]] = {name: [] for name in SAMPLERS}
            for repeat in range(options.repeats):
                for name, make in SAMPLERS.items():
                    where = f"{name}-{len(title)}-{mark}-{repeat}"
                    study = optuna.create_study(
                        storage=storage_at(options.storage, folder, where), sampler=make(repeat)
                    )
                    timed = Timed(study, objective, clock, repeat)
                    timed.run(mark + max(WINDOW_LEAST, int(WINDOW_PART * mark)))
                    costs[name].append(timed.cost_at(mark))
            random, stored, bare = (statistics.median(costs[name]) for name in SAMPLERS)
            print(f"{title:<28}{mark:>8}{random:>10.3f}{stored:>10.3f}", end="")
            print(f"{stored - random:>10.3f}{bare - random:>22.3f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--storage", choices=["memory", "journal", "sqlite"], default="memory")
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=PartitaSampler(seed=0))  # compiles
    study.optimize(lambda trial: mixed(trial, 0.0), n_trials=20)
    with tempfile.TemporaryDirectory() as folder:
        measure(options, folder)


if __name__ == "__main__":
    main()
