"""What a durable study costs: an ask and tell over an `Optimizer`'s own, and opening a long one.

    python benchmarks/studies.py [--steps 2000] [--trials 100000] [--folder DIR]

Both durabilities are measured in the same run, against the same trials without a file. The long
study is played with the calibrated policy, so its 100,000 trials take minutes; --trials 0 leaves it
out.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

import partita as pt
from partita.experiments.play import added, steps

SPACE = {"a": (0.0, 1.0), "b": (1e-3, 1.0, "log")}


def value(params):
    return (params["a"] - 0.3) ** 2 + (np.log10(params["b"]) + 1.5) ** 2 / 9


class Times(NamedTuple):
    """Seconds of each ask and tell, and of the processor's for one on average."""

    seconds: np.ndarray
    processor: float


def timed(player, noises):
    """How long asks and tells take."""
    begun = time.process_time()
    played = steps(player, lambda trial: value(trial.params), added(noises), len(noises))
    seconds = np.array([step.seconds for step in played])
    return Times(seconds, (time.process_time() - begun) / len(noises))


def row(name, times, base):
    ms, before = 1e3 * times.seconds, 1e3 * base.seconds
    return (
        f"{name:<28}{ms.mean():>9.3f}{np.median(ms):>9.3f}{np.quantile(ms, 0.99):>9.3f}"
        f"{ms.mean() - before.mean():>+11.3f}{np.median(ms) - np.median(before):>+9.3f}"
        f"{1e3 * (times.processor - base.processor):>+11.3f}"
    )


def costs(folder, n, policy):
    noises = 0.1 * np.random.default_rng(0).normal(size=n)
    timed(pt.Optimizer(SPACE, policy=policy, seed=1), noises[:200])  # compiled loops are loaded
    plain = timed(pt.Optimizer(SPACE, policy=policy), noises)
    print(row(f"{policy or 'calibrated'}, no file", plain, plain))
    for durability in ("process", "power"):
        path = folder / f"{policy}-{durability}.db"
        with pt.Study.open(path, SPACE, policy=policy, durability=durability) as study:
            print(row(f"  durability={durability!r}", timed(study, noises), plain))


def opening(folder, n):
    noises = 0.1 * np.random.default_rng(1).normal(size=n)
    path = folder / "long.db"
    study = pt.Study.open(path, SPACE)
    start = time.perf_counter()
    timed(study, noises)
    played = time.perf_counter() - start
    # Not closed: what a killed process leaves, without a last snapshot.
    start = time.perf_counter()
    again = pt.Study.open(path)
    told = again.n_told
    seconds = time.perf_counter() - start
    same = again.ask().params
    print(f"{told:,} trials played in {played:.0f} s ({1e3 * played / n:.2f} ms each), opened in")
    print(f"{seconds:.2f} s with the snapshot; the file has {path.stat().st_size / 1e6:.0f} MB.")
    again._store.rows("DELETE FROM snapshot")
    start = time.perf_counter()
    replayed = pt.Study.open(path)
    assert replayed.trials.params[-1] == same
    print(f"Without it, by a full replay: {time.perf_counter() - start:.1f} s, to the same point.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--trials", type=int, default=100_000)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        print(
            f"{'ms an ask and tell':<28}{'mean':>9}{'median':>9}{'99 %':>9}{'more: mean':>11}",
            end="",
        )
        print(f"{'median':>9}{'processor':>11}")
        for policy in ("uniform", None):
            costs(Path(name), options.steps, policy)
        if options.trials:
            opening(Path(name), options.trials)


if __name__ == "__main__":
    main()
