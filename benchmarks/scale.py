"""What plans cost in regret, and what the driver can take in.

    python benchmarks/scale.py regret [--evals 10000] [--seeds 2] [--shares 1000 100 20]
    python benchmarks/scale.py many [--evals 100000000]
    python benchmarks/scale.py cluster --on ray|dask|processes [--evals 100000000]
    python benchmarks/scale.py single [--evals 10000000]

`regret` plays three functions on a simulated clock: n evaluations are in flight, of exponential
durations, so each is the next to end with the same chance; what has ended is told every n/10
evaluations. It prints the regret of all evaluations relative to one at a time, for n = T/1,000,
T/100 and T/20.

`many` tells the driver 10⁸ evaluations of a simulated function through plans of a million, as
a cluster would send them, in sums, and prints the processor time of all calls of Partita and the
memory at each tenth.

`cluster` minimises a vectorised simulation whose evaluation takes about 1 µs, with `minimize(...,
replicates=True)` on a local cluster of two workers, and prints the processor time of the driver's
own thread and of the workers, evaluations a minute, and memory at each tenth.

`single` plays π-GP-UCB one evaluation at a time on a grid of 400 points, and prints the processor
time of a step and the memory at each tenth; then the largest difference of its posterior from one
that is computed anew, cell by cell, from how often each point was evaluated and the sums there.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import resource
import time
from pathlib import Path

import numpy as np

import partita as pt
from partita import problems

FUNCTIONS = ("branin", "camel", "hartmann3")
#: Noise, as a share of the spread of a function's values.
NOISE = 0.3


class Problem:
    """A function to maximise on the unit cube, of spread 1, and its largest value."""

    def __init__(self, name):
        whole = problems.get(name)
        self.lower, self.upper = whole.domain.lower, whole.domain.upper
        self.dim, self._f = len(self.lower), whole
        points = np.random.default_rng(0).uniform(self.lower, self.upper, (4000, self.dim))
        self.spread = float(np.std(self._f(points)))
        self.best = -float(whole.minimum) / self.spread

    def mean(self, unit):
        """The function's mean at a point (d,) of the unit cube."""
        x = self.lower + unit * (self.upper - self.lower)
        return -float(np.asarray(self._f(x[None, :])).ravel()[0]) / self.spread


#: What `cluster` minimises.
CLUSTER = Problem("branin")


def new_optimizer(problem, policy, evals, seed):
    """An optimizer of the unit cube."""
    known = {}
    if policy == "proven":
        known = {
            "norm_bound": 10.0,
            "noise": pt.Gaussian(NOISE),
            "kernel": pt.Matern(2.5, 0.3),
        }
    bounds = [(0.0, 1.0)] * problem.dim
    return pt.Optimizer(bounds, direction="maximize", n_evals=evals, seed=seed, **known)


def one_at_a_time(problem, policy, evals, seed):
    """The regret of all evaluations, one after the other."""
    optimizer = new_optimizer(problem, policy, evals, seed)
    rng, regret = np.random.default_rng(seed), 0.0
    for _ in range(evals):
        trial = optimizer.ask()
        mean = problem.mean(trial.unit)
        optimizer.tell(trial, mean + NOISE * rng.standard_normal())
        regret += problem.best - mean
    return regret


def in_flight(problem, policy, evals, seed, n):
    """The same with plans, n evaluations in flight on a simulated clock."""
    optimizer = new_optimizer(problem, policy, evals, seed)
    rng, regret, done = np.random.default_rng(seed), 0.0, 0
    rows, left = [], np.zeros(0, dtype=np.int64)
    while done < evals:
        free = min(n, evals - done) - int(left.sum())
        if free > 0:
            new = optimizer.plan(free)
            rows += new
            left = np.concatenate([left, [trial.count for trial in new]])
        ended = min(max(1, n // 10), int(left.sum()), evals - done)
        parts = rng.multivariate_hypergeometric(left, ended)
        for i in np.flatnonzero(parts):
            mean, count = problem.mean(rows[i].unit), int(parts[i])
            optimizer.tell(rows[i], values=mean + NOISE * rng.standard_normal(count))
            regret += count * (problem.best - mean)
        left, done = left - parts, done + ended
        kept = np.flatnonzero(left)
        rows, left = [rows[i] for i in kept], left[kept]
    return regret


def regret(options):
    """Print the ratio of mean regrets for each function, and all regrets of an evaluation."""
    evals, policy = options.evals or 10_000, options.policy
    print(f"{policy}, T = {evals:,}, {options.seeds} seeds: regret / one at a time")
    for name in options.functions:
        problem = Problem(name)
        base = np.array([one_at_a_time(problem, policy, evals, s) for s in range(options.seeds)])
        print(f"{name:10} one at a time        {_each(base, evals)}", flush=True)
        for share in options.shares:
            n = max(1, evals // share)
            new = [in_flight(problem, policy, evals, s, n) for s in range(options.seeds)]
            ratio = np.mean(new) / base.mean()
            print(f"{name:10} n = T/{share:<5,} {ratio:5.2f}   {_each(new, evals)}", flush=True)


def _each(regrets, evals):
    """Regrets of an evaluation, by seed."""
    return " ".join(f"{one / evals:.4f}" for one in regrets)


def many(options):
    """Print time and memory of the driver for very many evaluations."""
    evals, problem = options.evals or 10**8, Problem("branin")
    optimizer = new_optimizer(problem, options.policy, evals, 0)
    rng, spent, rows, shown = np.random.default_rng(0), 0.0, 0, 0
    while optimizer.policy.told < evals:
        start = time.process_time()
        plan = optimizer.plan(min(10**6, evals - optimizer.policy.told))
        spent += time.process_time() - start
        for trial in plan:
            mean = problem.mean(trial.unit) + NOISE * rng.standard_normal() / trial.count**0.5
            start = time.process_time()
            optimizer.tell(trial, mean, NOISE if trial.count > 1 else None, count=trial.count)
            spent += time.process_time() - start
        rows += len(plan)
        told = optimizer.policy.told
        if told * 10 // evals > shown:
            shown = told * 10 // evals
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            print(f"{told:12,} evaluations, {rows:6,} rows: {spent:6.1f} s, {memory:.0f} MB")
    best = optimizer.recommend()
    gap = problem.best - problem.mean(np.asarray(best.params))
    print(f"answer within {gap:.5f} of the best, in units of the function's spread")


def simulate(x, y, count, seed):
    """Values of Branin's function in units of its spread, with the noise of a walk of 60 steps."""
    rng = np.random.default_rng(seed)
    walk = np.zeros(count)
    for _ in range(60):
        walk += rng.standard_normal(count)
    return -CLUSTER.mean(np.array([x, y])) + NOISE * walk / 60**0.5


@contextlib.contextmanager
def executor_on(kind):
    """An executor of two workers."""
    if kind == "processes":
        with concurrent.futures.ProcessPoolExecutor(2) as pool:
            yield pool
    elif kind == "dask":
        import distributed

        with (
            distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None) as made,
            distributed.Client(made) as client,
        ):
            yield client.get_executor(pure=False)
    else:
        import ray

        from partita.integrations.ray import RayExecutor

        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
        yield RayExecutor()
        ray.shutdown()


class Tenths:
    """A callback that prints what the driver has used at each tenth of a run."""

    def __init__(self, evals):
        self.evals, self.shown, self.messages = evals, 0, 0

    def __call__(self, now):
        self.messages += 1
        tenth = now.n_evals * 10 // self.evals
        if tenth > self.shown:
            self.shown = tenth
            spent = f"{time.thread_time() - self.start:.1f} s of the driver"
            print(
                f"{now.n_evals:12,} evaluations in {now.seconds:4.0f} s: {spent}, "
                f"{self.messages:,} parts told, {memory():.0f} MB",
                flush=True,
            )


def cluster(options):
    """Print what evaluations by workers cost the driver."""
    evals = options.evals or 10**8
    start = time.process_time()
    for seed in range(8):
        simulate(0.5, 0.5, 2**16, seed)
    each = (time.process_time() - start) / 2**19
    new_optimizer(CLUSTER, "calibrated", 10, 0).plan(4)  # loads compiled code
    tenths = Tenths(evals)
    with executor_on(options.on) as executor:
        tenths.start, begun = time.thread_time(), time.monotonic()
        result = pt.minimize(
            simulate,
            {"x": (0, 1), "y": (0, 1)},
            n_evals=evals,
            replicates=True,
            executor=executor,
            callback=tenths,
        )
        spent, seconds = time.thread_time() - tenths.start, time.monotonic() - begun
    share = spent / (spent + each * evals)
    print(
        f"{options.on}: {result.nfev:,} evaluations of {1e6 * each:.2f} µs in {seconds:.0f} s, "
        f"{60 * result.nfev / seconds:,.0f} a minute, {result.nit:,} trials; Partita's share of "
        f"the processor time {100 * share:.1f} %"
    )
    gap = CLUSTER.best - CLUSTER.mean(np.array(list(result.params.values())))
    print(f"answer within {gap:.5f} of the best, in units of the function's spread")


def memory():
    """The memory of this process now, in MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 2**20


def single(options):
    """Print the cost of single steps, and how far the posterior is from a refit."""
    evals, rng = options.evals or 10**7, np.random.default_rng(0)
    domain = pt.Grid(20, dim=2)
    policy = pt.PiGPUCB(
        domain,
        horizon=evals,
        kernel=pt.Matern(nu=2.5, lengthscale=0.3),
        norm_bound=2.0,
        noise=pt.Gaussian(NOISE),
    )
    points = domain.points
    means = np.exp(-10 * ((points - 0.4) ** 2).sum(axis=1))
    places = {point.tobytes(): i for i, point in enumerate(points)}
    counts, sums = np.zeros(len(points), dtype=np.int64), np.zeros(len(points))
    tenth = evals // 10
    for part in range(10):
        noise, spent = NOISE * rng.standard_normal(tenth), 0.0
        start = time.process_time()
        for e in noise.tolist():
            x = policy.ask()
            i = places[x.tobytes()]
            value = float(means[i]) + e
            policy.tell(x, value)
            counts[i] += 1
            sums[i] += value
        spent = time.process_time() - start
        each = f"{1e6 * spent / tenth:.1f} µs a step"
        print(f"{(part + 1) * tenth:12,} steps: {each}, {memory():.0f} MB", flush=True)
    mean, std = refit(policy, counts, sums)
    posterior = policy.predict(points)
    print(
        f"{len(list(policy.cover))} cells; largest difference from a refit: mean "
        f"{np.abs(posterior.mean - mean).max():.1e}, std {np.abs(posterior.std - std).max():.1e}"
    )


def refit(policy, counts, sums):
    """Mean and std at every point of a grid, from counts and sums, by dense algebra."""
    points, alpha = policy.domain.points, policy.alpha
    mean, std = np.zeros(len(points)), np.full(len(points), np.inf)
    for cell in policy.cover:
        low, high = np.asarray(cell.lower), np.asarray(cell.lower) + cell.side
        inside = np.flatnonzero(((points >= low - 1e-12) & (points <= high + 1e-12)).all(axis=1))
        told = inside[counts[inside] > 0]
        roots = np.sqrt(counts[told])
        kernel = policy.kernel(points[told], points[told])
        within = np.eye(len(told)) + roots[:, None] * kernel * roots / alpha
        across = policy.kernel(points[inside], points[told]) * roots
        solved = np.linalg.solve(
            within, np.column_stack([roots * sums[told] / counts[told], across.T])
        )
        here = across @ solved[:, 0] / alpha
        left = 1.0 - np.einsum("ij,ji->i", across, solved[:, 1:]) / alpha
        spread = np.sqrt(np.maximum(left, 0.0))
        better = spread < std[inside]
        mean[inside[better]], std[inside[better]] = here[better], spread[better]
    return mean, std


WAYS = {
    "regret": regret,
    "many": many,
    "cluster": cluster,
    "single": single,
}


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=tuple(WAYS))
    parser.add_argument("--evals", type=int)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--functions", nargs="+", default=FUNCTIONS)
    parser.add_argument("--shares", type=int, nargs="+", default=[1000, 100, 20])
    parser.add_argument("--policy", choices=("calibrated", "proven"), default="calibrated")
    parser.add_argument("--on", choices=("ray", "dask", "processes"), default="processes")
    options = parser.parse_args()
    WAYS[options.what](options)


if __name__ == "__main__":
    main()
