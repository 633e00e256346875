"""How long an ask and a tell take: the median, one in a hundred, and the worst.

    python benchmarks/latency.py policy --dims 2 6 20 50 --evaluations 10000
    python benchmarks/latency.py optimizer --dims 2
    python benchmarks/latency.py study --dims 2 --durability process
    python benchmarks/latency.py fits --dims 2 6          when the longest steps were
    python benchmarks/latency.py policy --dims 50 --known 100000 --evaluations 1000
    python benchmarks/latency.py policy --cold            compiled loops are loaded on the way

Times are processor times of the thread, so that other programs on the machine matter less; of a
study they are wall-clock times, since it writes to a disk. f is a sum of bumps that a few rotated
directions matter for, with noise of a tenth of its range. `--problem skewed` has values over orders
of magnitude, with noise that grows with them, so that a shape and a map of the noise are learned,
too. The first 20 steps, in which code is loaded, are left out. With `--repeats N`, the same run is
made N times, and the least time of each step counts: runs are the same to the last bit, other
programs are not. Older code is measured by PYTHONPATH. Set OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

import partita as pt
from partita._compiled import awake
from partita.gp import _loops

#: Steps that are left out: code is loaded in them.
WARM_UP = 20
#: The loops of the calibrated policy, which are loaded before.
LOOPS = (
    "matern",
    "matern_among",
    "matern_slopes",
    "likelihood_slopes",
    "gaussian_sums",
    "observe_rows",
)


def bumps(dim, problem, seed):
    """f and its noise, as functions of a point of the unit cube."""
    rng = np.random.default_rng([seed, dim])
    centres, heights = rng.uniform(0.2, 0.8, (4, dim)), np.array([1.0, 0.8, 0.6, 0.5])
    turn = np.linalg.qr(rng.standard_normal((dim, dim)))[0][:, : min(dim, 6)]

    def f(x):
        away = (x - centres) @ turn
        return float((heights * np.exp(-2.0 * (away**2).sum(axis=1))).max())

    if problem == "even":
        return f, lambda x: 0.1
    return (lambda x: -float(np.exp(4.0 - 4.0 * f(x)))), lambda x: 0.2 * np.exp(4.0 - 4.0 * f(x))


class Clock:
    """Durations of calls, by name."""

    def __init__(self, clock):
        self.clock, self.lists = clock, {}

    def time(self, name, call, *args):
        begin = self.clock()
        result = call(*args)
        self.lists.setdefault(name, []).append(self.clock() - begin)
        return result


def play_policy(options, dim, clock):
    policy = pt.CalibratedUCB(pt.Box([0.0] * dim, [1.0] * dim), seed=options.seed)
    if options.known:
        f, noise_at = bumps(dim, options.problem, options.seed)
        rng = np.random.default_rng([options.seed, 2])
        points = rng.uniform(0.4, 0.6, (options.known, dim))
        noise = [noise_at(x) * rng.standard_normal() for x in points]
        policy.tell(points, [f(x) for x in points] + np.array(noise))
    return play(policy.ask, policy.tell, options, dim, clock)


def play_optimizer(options, dim, clock):
    opt = pt.Optimizer([(0.0, 1.0)] * dim, direction="maximize", seed=options.seed)
    return play(opt.ask, opt.tell, options, dim, clock)


def play_study(options, dim, clock):
    with tempfile.TemporaryDirectory() as folder:
        study = pt.Study.open(
            Path(folder) / "latency.db",
            [(0.0, 1.0)] * dim,
            direction="maximize",
            seed=options.seed,
            durability=options.durability,
        )
        with study:
            play(study.ask, study.tell, options, dim, clock)


def play(ask, tell, options, dim, clock):
    f, noise_at = bumps(dim, options.problem, options.seed)
    rng = np.random.default_rng([options.seed, 1])
    for _ in range(options.evaluations):
        trial = clock.time("ask", ask)
        x = np.asarray(trial.x if hasattr(trial, "x") else trial, dtype=float)
        y = f(x) + noise_at(x) * rng.standard_normal()
        clock.time("tell", tell, trial, y)


def line(name, seconds):
    """One row of the table, in milliseconds."""
    late = 1e3 * np.array(seconds)[WARM_UP:]
    parts = np.median(late), np.quantile(late, 0.99), np.quantile(late, 0.999), late.max()
    print(
        f"{name:28}" + "".join(f"{part:9.3f}" for part in parts) + f"{late.mean():9.3f}",
        flush=True,
    )


def table(options, play_one):
    print(f"{'milliseconds':28}{'median':>9}{'p99':>9}{'p99.9':>9}{'worst':>9}{'mean':>9}")
    for dim in options.dims:
        runs = [played(play_one, options, dim) for _ in range(options.repeats)]
        ask, tell = (np.min([run[name] for run in runs], axis=0) for name in ("ask", "tell"))
        line(f"d = {dim}, {options.problem}, ask", ask)
        line(f"d = {dim}, {options.problem}, tell", tell)
        line(f"d = {dim}, {options.problem}, both", ask + tell)


def played(play_one, options, dim):
    """The seconds of each ask and tell of one run."""
    clock = Clock(time.thread_time if options.what != "study" else time.perf_counter)
    play_one(options, dim, clock)
    return clock.lists


def longest(options):
    """The longest steps of a policy, and when they were."""
    for dim in options.dims:
        clock = Clock(time.thread_time)
        play_policy(options, dim, clock)
        for name, seconds in clock.lists.items():
            late = np.array(seconds)
            late[:WARM_UP] = 0.0
            order = np.argsort(-late)[:15]
            print(f"d = {dim}, {name}:", ", ".join(f"{1e3 * late[t]:.1f} at {t}" for t in order))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("what", choices=["policy", "optimizer", "study", "fits"])
    parser.add_argument("--dims", type=int, nargs="+", default=[2, 6, 20, 50])
    parser.add_argument("--evaluations", type=int, default=5_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--problem", choices=["even", "skewed"], default="even")
    parser.add_argument("--durability", choices=["process", "power"], default="process")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--known", type=int, default=0, metavar="N")
    parser.add_argument("--cold", action="store_true")
    options = parser.parse_args()
    if not options.cold:
        for name in LOOPS:
            awake(getattr(_loops, name))
    if options.what == "fits":
        longest(options)
        return
    plays = {"policy": play_policy, "optimizer": play_optimizer, "study": play_study}
    table(options, plays[options.what])
    print(f"memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.2f} GB")


if __name__ == "__main__":
    main()
