"""Many runs: on the cores of this machine or, through joblib, on a cluster."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from typing import Any

from partita._optional import require
from partita.errors import InvalidInput, PartitaError

from .cost import available_bytes, expected_bytes, expected_seconds
from .progress import Progress
from .specs import Task
from .store import Store
from .trace import Trace, run

#: Where runs can be made: processes of this machine, or a cluster.
BACKENDS = ("loky", "dask", "ray")
#: The part of the free memory that runs may fill.
_MEMORY_SHARE = 0.8


class WorkerLost(PartitaError, RuntimeError):
    """A process that made a run was killed from outside."""


def run_many(
    tasks: Iterable[Task],
    *,
    store: Store | None = None,
    jobs: int | None = None,
    backend: str = "loky",
    progress: Progress | None = None,
) -> list[Trace]:
    """The traces of many tasks, in their order; the longest are run first.

    Parameters
    ----------
    tasks : Task, many
        Equal ones are run once.
    store : Store, optional
        Traces that it holds are not run again, new ones are added as they finish.
    jobs : int, optional
        Runs made at once. Default: one a core. Fewer are made at once while runs are due that
        would not fit into memory together.
    backend : "loky", "dask" or "ray"
        Processes of this machine; the Dask cluster that DASK_SCHEDULER_ADDRESS names; the Ray
        cluster that RAY_ADDRESS names. Without an address either starts on this machine.
    progress : Progress, optional
    """
    check_backend(backend)
    if jobs is not None and jobs < 1:
        raise InvalidInput(f"jobs={jobs}: give at least 1.")
    wanted = list(tasks)
    traces: dict[Task, Trace] = {}
    left = []
    for task in dict.fromkeys(wanted):
        trace = store.load(task) if store is not None else None
        if trace is None:
            left.append(task)
        else:
            traces[task] = trace
    left.sort(key=expected_seconds, reverse=True)
    if left:
        if store is not None:
            store.sweep()
        with _started(backend, jobs) as workers:
            if progress is not None:
                progress.start(len(left) + len(traces), left, workers)
            for phase, at_once in _phases(left, workers, backend):
                with closing(_results(phase, at_once, backend)) as results:
                    for trace in results:
                        if store is not None:
                            store.save(trace)
                        traces[trace.task] = trace
                        if progress is not None:
                            progress.finished(trace)
    return [traces[task] for task in wanted]


def check_backend(backend: str) -> None:
    """Refuse a backend that is unknown or not installed."""
    if backend not in BACKENDS:
        raise InvalidInput(f"backend {backend!r} is unknown: give loky, dask or ray.")
    require("joblib")
    if backend == "dask":
        require("distributed")
    if backend == "ray":
        require("ray.util.joblib")


@contextmanager
def _started(backend: str, jobs: int | None) -> Iterator[int]:
    """joblib set to a backend, and how many runs it makes at once."""
    joblib = require("joblib")
    settings: dict[str, Any] = {"n_jobs": -1 if jobs is None else jobs}
    with ExitStack() as stack:
        if backend == "dask":
            with _deaf_children():
                client = _dask_client(jobs)
            stack.enter_context(client)
        elif backend == "ray":
            require("ray.util.joblib").register_ray()
        stack.enter_context(joblib.parallel_config(backend, **settings))
        yield max(1, int(joblib.effective_n_jobs(settings["n_jobs"])))


def _dask_client(jobs: int | None) -> Any:
    distributed = require("distributed")
    address = require("dask").config.get("scheduler-address", None)
    if address is not None:
        return distributed.Client(address)
    return distributed.Client(n_workers=jobs, threads_per_worker=1, dashboard_address=None)


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Processes started within ignore Ctrl-C, which a terminal sends to all: the parent ends them.

    For that moment the parent ignores it too.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _phases(
    tasks: Sequence[Task], workers: int, backend: str
) -> Iterator[tuple[Sequence[Task], int]]:
    """Tasks, longest first, and how many at once: large ones fewer, if memory is short.

    A cluster's memory is not known here, so there it is not considered.
    """
    memory = available_bytes() if backend == "loky" else None
    share = None if memory is None else _MEMORY_SHARE * memory / workers
    large = [t for t in tasks if share is not None and expected_bytes(t) > share]
    if large and memory is not None:
        most = max(map(expected_bytes, large))
        yield large, max(1, min(workers, int(_MEMORY_SHARE * memory / most)))
    apart = set(large)
    small = [t for t in tasks if t not in apart]
    if small:
        yield small, workers


def _results(tasks: Sequence[Task], workers: int, backend: str) -> Generator[Trace]:
    """Traces in the order they finish. Workers are ended if this is closed early or fails."""
    if backend == "ray":
        yield from _slices(tasks, workers)
        return
    joblib = require("joblib")
    lost = require("joblib.externals.loky.process_executor").TerminatedWorkerError
    parallel = joblib.Parallel(n_jobs=workers, batch_size=1, return_as="generator_unordered")
    calls = (joblib.delayed(_work)(task) for task in tasks)
    with _deaf_children() if workers > 1 else nullcontext():
        results = parallel(calls)
    try:
        # Not `yield from`: closing early would pass us by and make joblib warn.
        for trace in results:  # noqa: UP028
            yield trace
    except lost as error:
        raise WorkerLost(
            "a worker was killed, perhaps for want of memory: finished runs are kept. Go on with "
            "fewer jobs."
        ) from error
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results.close()


def _slices(tasks: Sequence[Task], workers: int) -> Iterator[Trace]:
    """Traces a slice at a time, for a backend that cannot return them as they finish."""
    joblib = require("joblib")
    with joblib.Parallel(n_jobs=workers, batch_size=1) as parallel:
        for start in range(0, len(tasks), workers):
            part = tasks[start : start + workers]
            yield from parallel(joblib.delayed(_work)(task) for task in part)


def _work(task: Task) -> Trace:
    return run(task.policy, task.problem, task.horizon, task.seed)
