"""What a step costs, as ratios to something else measured in the same run.

    python benchmarks/step_cost.py peers     ask and tell against Optuna's random sampler
    python benchmarks/step_cost.py flat      step 1,000,000 against step 10,000, and memory
    python benchmarks/step_cost.py start     import time, first ask on a warm cache
    python benchmarks/step_cost.py igp       IGP-UCB with one cell of 27,000 arms
    python benchmarks/step_cost.py bulk      a warm start of 100,000 rows
    python benchmarks/step_cost.py           peers and start

Times are wall-clock times of this machine at this moment; the ratios are what to read.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
import warnings

import numpy as np
from numba import njit

import partita as pt
from partita._compiled import awake
from partita.experiments.play import added, steps
from partita.gp import _loops as _hot
from partita.partition import _loops as _hot_choice
from partita.problems import RKHSFunction

awake(_hot.observe), awake(_hot_choice.best_upper)  # `arithmetic` calls Numba's functions

KERNEL = pt.Matern(nu=1.5, lengthscale=0.2)
WARM_UP = 500


def policy_for(domain, preset, horizon, f):
    settings = {"horizon": horizon, "kernel": KERNEL, "norm_bound": f.norm, "seed": 0}
    if preset == "paper":
        return pt.PiGPUCB.paper(domain, noise=pt.SubGaussian(1.0), alpha=1.0, **settings)
    return pt.PiGPUCB(domain, noise=pt.Uniform(-1, 1), **settings)


def evaluator(domain, f):
    """f as cheap as it gets, so that it does not disturb the caches."""
    if domain.finite:
        table = dict(zip(map(bytes, domain.points), f(domain.points).tolist(), strict=True))
        return lambda x: table[x.tobytes()]
    centres, weights = f.centres / 0.2, f.weights

    @njit
    def value(x):
        total = 0.0
        for j in range(len(weights)):
            z = np.sqrt(3 * ((x / 0.2 - centres[j]) ** 2).sum())
            total += weights[j] * (1 + z) * np.exp(-z)
        return total

    return value


def seconds_of(policy, value, count, rng, watch=None):
    """Play `count` steps; seconds of each ask and tell, all of them or those in `watch`."""
    noise = added(rng.uniform(-1, 1, count).tolist())
    played = enumerate(steps(policy, value, noise, count))
    return np.array([step.seconds for t, step in played if watch is None or t in watch])


def optuna_steps(dim, count):
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    seconds = np.empty(count)
    for t in range(count):
        begin = time.perf_counter()
        trial = study.ask()
        for i in range(dim):
            trial.suggest_float(f"x{i}", 0.0, 1.0)
        study.tell(trial, 0.0)
        seconds[t] = time.perf_counter() - begin
    return seconds


@njit
def arithmetic(prior, priority, plays):
    """The bare arithmetic of steps in one cell: a rank-one update and an argmax each."""
    m = len(prior)
    mean, std, cov = np.zeros(m), np.ones(m), prior.copy()
    total = 0.0
    for j in plays:
        total += _hot.observe(mean, std, cov, j, 0.1, 1.0)
        total += _hot_choice.best_upper(mean, std, priority, 3.0, 1e9)[0]
    return total


def floor(candidates):
    """Seconds a step of the bare arithmetic, fully compiled."""
    points = np.random.default_rng(0).random((candidates, 2))
    prior, priority = KERNEL(points), np.arange(candidates, dtype=np.uint64)
    plays = np.random.default_rng(1).integers(0, candidates, 20_000)
    arithmetic(prior, priority, plays[:2])
    begin = time.perf_counter()
    arithmetic(prior, priority, plays)
    return (time.perf_counter() - begin) / len(plays)


def peers():
    print("One ask and tell on Grid(30, d), T = 10,000, median after warm-up, in microseconds")
    print(f"{'':24}{'d = 1':>10}{'d = 2':>10}{'d = 3':>10}")
    rows = {}
    for dim in (1, 2, 3):
        f = RKHSFunction.sample(dim, seed=1)
        domain = pt.Grid(30, dim=dim)
        value = evaluator(domain, f)
        random = [optuna_steps(dim, 2_000)]
        for preset in ("paper", "default"):
            seconds = seconds_of(
                policy_for(domain, preset, 10_000, f), value, 10_000, np.random.default_rng(0)
            )[WARM_UP:]
            rows.setdefault(f"{preset} preset, median", []).append(np.median(seconds))
            rows.setdefault(f"{preset} preset, mean", []).append(seconds.mean())
            random.append(optuna_steps(dim, 2_000))
        rows.setdefault("Optuna's random", []).append(
            np.median(np.concatenate([r[WARM_UP:] for r in random]))
        )
        candidates = {1: 2, 2: 9, 3: 64}[dim]  # the most a cell of the first cover holds
        rows.setdefault("bare arithmetic", []).append(floor(candidates))
    for name, seconds in rows.items():
        print(f"{name:24}" + "".join(f"{1e6 * s:10.2f}" for s in seconds))
    for preset in ("paper", "default"):
        ratios = np.array(rows["Optuna's random"]) / np.array(rows[f"{preset} preset, median"])
        print(f"Optuna / {preset:15}" + "".join(f"{r:9.1f}x" for r in ratios))


def flat_one(kind, dim, preset, horizon):
    """One long run in this process: mean cost around two steps, and peak memory."""
    f = RKHSFunction.sample(dim, seed=1)
    domain = pt.Grid(30, dim=dim) if kind == "grid" else pt.Box([0.0] * dim, [1.0] * dim)
    policy = policy_for(domain, preset, horizon, f)
    value = evaluator(domain, f)
    early = range(horizon // 100 - 2_000, horizon // 100)
    late = range(horizon - 2_000, horizon)
    begin = time.perf_counter()
    seconds = seconds_of(policy, value, horizon, np.random.default_rng(0), {*early, *late})
    total = time.perf_counter() - begin
    first, last = 1e6 * seconds[:2_000].mean(), 1e6 * seconds[2_000:].mean()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{kind:6}d = {dim}  {preset:9}{first:12.1f}{last:12.1f}{last / first:9.2f}x"
        f"{memory:9.2f} GB{policy.cells_created:10,} cells{total:8.0f} s",
        flush=True,
    )


def flat(horizon, presets):
    print(
        f"Mean over 2,000 steps, horizon {horizon:,}: microseconds before step {horizon // 100:,}"
    )
    print(f"{'':22}{'early':>12}{'late':>12}{'ratio':>9}{'peak memory':>13}")
    for preset in presets:
        for kind in ("grid", "box"):
            for dim in (1, 2, 3):
                command = [sys.executable, __file__, "flat-one", kind, str(dim), preset]
                subprocess.run([*command, "--horizon", str(horizon)], check=True)


def timed(code):
    """Best of five: seconds of a fresh interpreter running `code`."""
    best = np.inf
    for _ in range(5):
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        best = min(best, time.perf_counter() - begin)
    return best


FIRST_ASK = """
import partita as pt
policy = pt.PiGPUCB(pt.Grid(30, dim=2), horizon=1000, kernel=pt.Matern(1.5, 0.2), norm_bound=1.0,
                    noise=pt.Uniform(-1, 1))
x = policy.ask()
policy.tell(x, 1.0)
policy.ask()
"""


def start():
    timed(FIRST_ASK)  # fill the cache
    bare, numpy, both = timed("pass"), timed("import numpy"), timed("import numpy, partita")
    print(f"import numpy               {numpy - bare:6.3f} s")
    print(f"import partita after numpy {both - numpy:6.3f} s")
    print(f"first ask, warm cache      {timed(FIRST_ASK):6.3f} s, interpreter and imports included")


def igp(horizon):
    f = RKHSFunction.sample(3, seed=1)
    domain = pt.Grid(30, dim=3)
    policy = pt.IGPUCB(domain, kernel=KERNEL, norm_bound=f.norm, noise=pt.SubGaussian(1.0))
    value = evaluator(domain, f)
    begin = time.perf_counter()
    seconds = seconds_of(policy, value, horizon, np.random.default_rng(0))
    total = time.perf_counter() - begin
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"IGP-UCB, 27,000 arms, T = {horizon:,}: {total / 60:.1f} min, {memory:.2f} GB at its peak,"
    )
    print(f"  last step {1e3 * seconds[-1]:.0f} ms")


def bulk(rows):
    print(f"tell(X, Y) with {rows:,} rows, then one ask, in seconds")
    rng = np.random.default_rng(0)
    for preset in ("paper", "default"):
        for domain in (pt.Grid(30, dim=3), pt.Box([0.0], [1.0]), pt.Box([0.0] * 3, [1.0] * 3)):
            f = RKHSFunction.sample(domain.dim, seed=1)
            policy = policy_for(domain, preset, 2 * rows, f)
            if domain.finite:
                points = domain.points[rng.integers(0, domain.size, rows)]
            else:
                points = rng.random((rows, domain.dim))
            values = f(points) + rng.uniform(-1, 1, rows)
            begin = time.perf_counter()
            policy.tell(points, values)
            told = time.perf_counter()
            policy.ask()
            asked = time.perf_counter()
            name = f"{type(domain).__name__.lower()} d = {domain.dim}, {preset}"
            print(
                f"{name:24}{told - begin:8.2f}{asked - told:8.3f}{policy.cells_created:10,} cells"
            )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("what", nargs="?", default="short")
    parser.add_argument("rest", nargs="*")
    parser.add_argument("--horizon", type=int)
    parser.add_argument("--presets", nargs="+", default=["paper", "default"])
    options = parser.parse_args()
    warnings.simplefilter("ignore", pt.TheoryWarning)
    if options.what in ("short", "peers"):
        peers()
    if options.what in ("short", "start"):
        start()
    if options.what == "flat":
        flat(options.horizon or 1_000_000, options.presets)
    if options.what == "flat-one":
        flat_one(options.rest[0], int(options.rest[1]), options.rest[2], options.horizon)
    if options.what == "igp":
        igp(options.horizon or 10_000)
    if options.what == "bulk":
        bulk(options.horizon or 100_000)


if __name__ == "__main__":
    main()
