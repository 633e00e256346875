"""What an evaluation costs in each way to run Partita, all measured in one run.

    python benchmarks/ways.py            # a table, in two minutes or so
    python benchmarks/ways.py --docs     # and into docs/clusters.md

The function takes microseconds, so that what is measured is the way itself, the choice of the
next point included. Each way makes the same number of evaluations from nothing, after a few to
warm up, with two workers where there are workers; the middle of three repetitions counts. Trials
of Ray Tune take so long that it makes fewer, once. A way whose packages are missing is left out.
"""

from __future__ import annotations

import argparse
import logging
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import partita as pt
from partita._text import aligned
from partita.theory.catalogue import between

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
WORKERS, BATCH, REPEATS = 2, 16, 3
TUNE_TRIALS = 50
DOCS = Path(__file__).parents[1] / "docs" / "clusters.md"
BEGIN = "<!-- made by benchmarks/ways.py: begin -->"
END = BEGIN.replace("begin", "end")


class Cost(NamedTuple):
    """Seconds until the first evaluations were made, and seconds an evaluation after them."""

    start: float
    each: float


def f(x: float, y: float) -> float:
    """A noisy bowl."""
    return float((x - 0.3) ** 2 + (y - 0.7) ** 2 + np.random.default_rng().normal(scale=0.1))


def repeat(begin: float, run: Callable[[int], None], n: int) -> Cost:
    """Warm up, then measure n evaluations a few times; `begin` is when preparations began."""
    run(2 * WORKERS)
    start = time.perf_counter() - begin
    times = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        run(n)
        times.append((time.perf_counter() - begun) / n)
    return Cost(start, statistics.median(times))


# -- the ways --------------------------------------------------------------------------------------


def ask_and_tell(n: int) -> Cost:
    def run(count: int) -> None:
        optimizer = pt.Optimizer(SPACE)
        for _ in range(count):
            trial = optimizer.ask()
            optimizer.tell(trial, f(**trial.params))

    return repeat(time.perf_counter(), run, n)


def one_call(n: int) -> Cost:
    return repeat(time.perf_counter(), minimize, n)


def minimize(n: int, **settings: Any) -> None:
    result = pt.minimize(f, SPACE, n_evals=n, progress=False, **settings)
    assert result.nfev == n, result


def with_executor(made: Callable[[], Any], n: int, batch: int = 1) -> Cost:
    begin = time.perf_counter()
    with made() as executor:
        settings = {"executor": executor, "in_flight": WORKERS, "batch": batch}
        return repeat(begin, lambda count: minimize(count, **settings), n)


def threads() -> Executor:
    return ThreadPoolExecutor(WORKERS)


def processes() -> Executor:
    return ProcessPoolExecutor(WORKERS)


@contextmanager
def dask() -> Iterator[Executor]:
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=WORKERS,
            threads_per_worker=1,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client.get_executor(pure=False)


@contextmanager
def ray_cluster() -> Iterator[None]:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def ray_tasks() -> Iterator[Executor]:
    with ray_cluster():
        from partita.integrations.ray import RayExecutor

        yield RayExecutor()


def ray_tune(n: int) -> Cost:
    os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")  # the newer one prints at verbose=0 too
    from ray import tune

    from partita.integrations.ray import PartitaSearch

    ends: list[float] = []

    class Watch(tune.Callback):  # type: ignore[misc]
        def on_trial_complete(self, *args: Any, **info: Any) -> None:
            ends.append(time.perf_counter())

    begin = time.perf_counter()
    with ray_cluster(), tempfile.TemporaryDirectory() as folder:
        tune.Tuner(
            lambda config: {"loss": f(**config)},
            tune_config=tune.TuneConfig(
                search_alg=PartitaSearch(SPACE, metric="loss", mode="min"),
                num_samples=TUNE_TRIALS,
                max_concurrent_trials=WORKERS,
                reuse_actors=True,
            ),
            run_config=tune.RunConfig(storage_path=folder, verbose=0, callbacks=[Watch()]),
        ).fit()
    warm = 2 * WORKERS
    return Cost(ends[warm - 1] - begin, (ends[-1] - ends[warm - 1]) / (len(ends) - warm))


def study(n: int, durability: str) -> Cost:
    with tempfile.TemporaryDirectory() as folder:

        def run(count: int) -> None:
            path = Path(folder) / f"{time.perf_counter_ns()}.db"
            with pt.Study.open(path, SPACE, durability=durability) as opened:
                for _ in range(count):
                    trial = opened.ask()
                    opened.tell(trial, f(**trial.params))

        return repeat(time.perf_counter(), run, n)


def optuna_sampler(n: int) -> Cost:
    import optuna

    from partita.integrations.optuna import PartitaSampler

    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def objective(trial: Any) -> float:
        return f(trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1))

    def run(count: int) -> None:
        made = optuna.create_study(sampler=PartitaSampler(seed=0))
        made.optimize(objective, n_trials=count)

    return repeat(time.perf_counter(), run, n)


#: What it is called, how it is measured, and for whom it is.
WAYS: tuple[tuple[str, Callable[[int], Cost], str], ...] = (
    ("`Optimizer.ask`, `tell`", ask_and_tell, "your own loop, or a program that calls you"),
    ("`minimize(f, space)`", one_call, "a function in this process: the usual case"),
    (
        "`executor=ThreadPoolExecutor`",
        lambda n: with_executor(threads, n),
        "f waits (network, another program) or releases the interpreter lock",
    ),
    (
        "`executor=ProcessPoolExecutor`",
        lambda n: with_executor(processes, n),
        "f computes in Python, one machine",
    ),
    (
        f"the same, `batch={BATCH}`",
        lambda n: with_executor(processes, n, BATCH),
        "f takes less than a few milliseconds",
    ),
    (
        "`executor=` Dask's",
        lambda n: with_executor(dask, n),
        "several machines with Dask; workers may die",
    ),
    (
        f"the same, `batch={BATCH}`",
        lambda n: with_executor(dask, n, BATCH),
        "f is quick, or there are hundreds of workers",
    ),
    (
        "`executor=RayExecutor()`",
        lambda n: with_executor(ray_tasks, n),
        "several machines with Ray, tens of thousands of evaluations",
    ),
    (
        f"the same, `batch={BATCH}`",
        lambda n: with_executor(ray_tasks, n, BATCH),
        "f is quick, or there are hundreds of workers",
    ),
    (
        "Ray Tune, `PartitaSearch`",
        ray_tune,
        "trainings of minutes, with Tune's checkpoints, schedulers and logs",
    ),
    (
        "`Study.ask`, `tell`",
        lambda n: study(n, "process"),
        "it must survive a crash, or several programs share it",
    ),
    (
        'the same, `durability="power"`',
        lambda n: study(n, "power"),
        "it must survive a power cut as well",
    ),
    (
        "Optuna, `PartitaSampler`",
        optuna_sampler,
        "there is Optuna code already, its pruners, dashboard and storages (here: in memory)",
    ),
)


def main() -> None:
    options = parsed()
    rows = []
    for name, measure, use in WAYS:
        print(f"{name} ...", file=sys.stderr, flush=True)
        try:
            cost = measure(options.evals)
        except (ImportError, AttributeError) as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        rows.append((name, milliseconds(cost.each), f"{cost.start:.1f}", use))
    text = report(rows, options.evals)
    print(text)
    if options.docs:
        page = between(DOCS.read_text(encoding="utf-8"), BEGIN, END, f"{text}\n")
        DOCS.write_text(page, encoding="utf-8")


def report(rows: list[tuple[str, str, str, str]], n: int) -> str:
    table = "\n".join(aligned([("way", "ms an evaluation", "s to start", "choose it when"), *rows]))
    return (
        f"{table}\n\n`python benchmarks/ways.py --evals {n}`, Partita {pt.__version__}, Python "
        f"{platform.python_version()}, {os.cpu_count()} processors."
    )


def milliseconds(seconds: float) -> str:
    """Two digits or so."""
    value = 1000 * seconds
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--evals", type=int, default=500, help="evaluations a way (500)")
    parser.add_argument("--docs", action="store_true", help="write the table into docs/clusters.md")
    return parser.parse_args()


if __name__ == "__main__":
    main()
