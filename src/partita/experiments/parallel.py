"""Many runs: on the cores of this machine or, through joblib, on a cluster."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from partita._optional import require
from partita.errors import InvalidInput, PartitaError

from .store import AnyRun, AnyTask, RunStore

#: Where runs can be made: processes of this machine, or a cluster.
BACKENDS = ("loky", "dask", "ray")
#: The part of the free memory that runs may fill.
_MEMORY_SHARE = 0.8

T = TypeVar("T", bound=AnyTask)
R = TypeVar("R", bound=AnyRun)


class WorkerLost(PartitaError, RuntimeError):
    """A process that made a run was killed from outside."""


class Cost(NamedTuple):
    """What a run will take, roughly: seconds, and bytes of memory at most."""

    seconds: float
    bytes: float


class Watcher(Protocol):
    """Who is told how far it is."""

    def start(self, total: int, left: Sequence[float], jobs: int) -> None:
        """There are `total` runs, and `left` has the expected seconds of those to be made."""

    def finished(self, run: Any, expected: float) -> None:
        """One more run is done, of which `expected` seconds were expected."""


class Phase(NamedTuple):
    """Tasks, and how many of them are made at once."""

    tasks: Sequence[Any]
    at_once: int


def run_all(
    tasks: Iterable[T],
    make: Callable[[T], R],
    *,
    store: RunStore[R] | None = None,
    jobs: int | None = None,
    backend: str = "loky",
    progress: Watcher | None = None,
    cost: Callable[[T], Cost] = lambda _: Cost(1.0, 0.0),
    enough: Callable[[R], bool] = lambda _: True,
) -> list[R]:
    """The runs of many tasks, in their order; those of the highest cost are made first.

    Parameters
    ----------
    tasks : many
        Equal ones are run once.
    make : the run of a task; a function that other processes can import
    store : RunStore, optional
        Runs that it holds are not made again, new ones are added as they finish.
    jobs : int, optional
        Runs made at once. Default: one a core. Fewer are made at once while runs are due that
        would not fit into memory together.
    backend : "loky", "dask" or "ray"
        Processes of this machine; the Dask cluster that DASK_SCHEDULER_ADDRESS names; the Ray
        cluster that RAY_ADDRESS names. Without an address either starts on this machine.
    progress : Watcher, optional
    cost : what a task will take; tasks of equal cost keep their order
    enough : whether a stored run will do, or is to be made again
    """
    check_backend(backend)
    if jobs is not None and jobs < 1:
        raise InvalidInput(f"jobs={jobs}: give at least 1.")
    wanted = list(tasks)
    runs: dict[T, R] = {}
    left = []
    for task in dict.fromkeys(wanted):
        run = store.load(task) if store is not None else None
        if run is None or not enough(run):
            left.append(task)
        else:
            runs[task] = run
    costs = {task: cost(task) for task in left}
    left.sort(key=lambda task: costs[task].seconds, reverse=True)
    total = len(left) + len(runs)
    if not left:
        if progress is not None:
            progress.start(total, [], 1)
        return [runs[task] for task in wanted]
    if store is not None:
        store.sweep()
    with _started(backend, jobs) as workers:
        if progress is not None:
            progress.start(total, [costs[task].seconds for task in left], workers)
        memory = available_bytes() if backend == "loky" else None
        for phase in phases(left, cost, workers, memory):
            with closing(_results(phase, make, backend)) as results:
                for run in results:
                    if store is not None:
                        store.save(run)
                    runs[run.task] = run
                    if progress is not None:
                        progress.finished(run, costs[run.task].seconds)
    return [runs[task] for task in wanted]


def check_backend(backend: str) -> None:
    """Refuse a backend that is unknown or not installed."""
    if backend not in BACKENDS:
        raise InvalidInput(f"backend {backend!r} is unknown: give loky, dask or ray.")
    require("joblib")
    if backend == "dask":
        require("distributed")
    if backend == "ray":
        require("ray.util.joblib")


def phases(
    tasks: Sequence[T], cost: Callable[[T], Cost], workers: int, memory: float | None
) -> Iterator[Phase]:
    """Tasks in two parts: large ones, fewer at once if memory is short, and the others.

    `memory` is what there is in bytes, None where it is not known, as on a cluster.
    """
    if memory is None:
        yield Phase(tasks, workers)
        return
    usable = _MEMORY_SHARE * memory
    bytes_of = {task: cost(task).bytes for task in tasks}
    large = [task for task in tasks if bytes_of[task] > usable / workers]
    if large:
        most = max(bytes_of[task] for task in large)
        yield Phase(large, max(1, min(workers, int(usable / most))))
    small = [task for task in tasks if bytes_of[task] <= usable / workers]
    if small:
        yield Phase(small, workers)


def available_bytes() -> float | None:
    """Memory that new processes can have; None where the system does not say."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * float(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    try:
        return 0.5 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None


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


def _results(phase: Phase, make: Callable[[T], R], backend: str) -> Generator[R]:
    """Runs in the order they finish. Workers are ended if this is closed early or fails."""
    joblib = require("joblib")
    settings = {"n_jobs": phase.at_once, "batch_size": 1}
    if backend == "ray":  # which cannot return runs as they finish: a slice at a time
        with joblib.Parallel(**settings) as parallel:
            for start in range(0, len(phase.tasks), phase.at_once):
                part = phase.tasks[start : start + phase.at_once]
                yield from parallel(joblib.delayed(make)(task) for task in part)
        return
    lost = require("joblib.externals.loky.process_executor").TerminatedWorkerError
    parallel = joblib.Parallel(**settings, return_as="generator_unordered")
    with _deaf_children() if phase.at_once > 1 else nullcontext():
        results = parallel(joblib.delayed(make)(task) for task in phase.tasks)
    try:
        # Not `yield from`: closing early would pass us by and make joblib warn.
        for run in results:  # noqa: UP028
            yield run
    except lost as error:
        raise WorkerLost(
            "a worker was killed, perhaps for want of memory: finished runs are kept. Go on with "
            "fewer jobs."
        ) from error
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results.close()
