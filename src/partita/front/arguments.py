"""Checks of the arguments of `maximize` and `minimize`."""

from __future__ import annotations

import math
import os
from typing import Any

from partita._checks import as_number
from partita.errors import InvalidInput
from partita.optimize.loop import Limits
from partita.optimize.parallel import Workers
from partita.optimize.rows import Crew


def limits_of(n_evals: object, max_seconds: object, tolerance: object, callback: object) -> Limits:
    """The checked limits of a run. At least one must be given."""
    if n_evals is None and max_seconds is None and tolerance is None and callback is None:
        raise InvalidInput(
            "nothing would end the run: give n_evals, max_seconds or tolerance, or a callback "
            "that returns True"
        )
    count = None if n_evals is None else _whole("n_evals", n_evals)
    seconds = None if max_seconds is None else as_number(max_seconds)
    if seconds is not None and not seconds > 0.0:
        raise InvalidInput(f"max_seconds={max_seconds!r}: give a positive number")
    bound = None if tolerance is None else as_number(tolerance)
    if bound is not None and not bound >= 0.0:
        raise InvalidInput(f"tolerance={tolerance!r}: give a number of at least 0")
    return Limits(count, seconds, bound)


def _whole(name: str, value: object) -> int:
    number = as_number(value)
    if not 1 <= number < math.inf or number != int(number):
        raise InvalidInput(f"{name}={value!r}: give a whole number of at least 1")
    return int(number)


def workers_of(
    executor: Any, in_flight: object, batch: object, replicates: object = False
) -> Workers | Crew | None:
    """The checked settings of the executor, or None to evaluate in this thread.

    For a function that replicates, those of the workers, of which there is always one.
    """
    if not isinstance(replicates, bool):
        raise InvalidInput(f"replicates={replicates!r:.60}: give True or False")
    size = None if batch is None else _whole("batch", batch)
    flying = None if in_flight is None else _whole("in_flight", in_flight)
    if executor is None:
        if replicates:
            return Crew(None, 1, flying, size)
        if in_flight is not None or size not in (None, 1):
            raise InvalidInput(
                f"in_flight={in_flight!r}, batch={batch!r}: these need an executor, such as "
                "executor=concurrent.futures.ThreadPoolExecutor(8), or replicates=True"
            )
        return None
    if not callable(getattr(executor, "submit", None)):
        raise InvalidInput(
            f"executor={executor!r}: give a concurrent.futures.Executor, such as "
            "ThreadPoolExecutor(8), or Dask's client.get_executor(pure=False)"
        )
    if hasattr(executor, "get_executor"):
        raise InvalidInput(
            f"executor={executor!r} is a Dask client: give client.get_executor(pure=False)"
        )
    if replicates:
        return Crew(executor, _workers(executor), flying, size)
    return Workers(executor, _workers(executor) if flying is None else flying, size or 1)


def _workers(executor: Any) -> int:
    """The number of workers of an executor, or of cores if that cannot be found out."""
    number = getattr(executor, "_max_workers", None)  # threads and processes
    if isinstance(number, int):
        return max(number, 1)
    client = getattr(executor, "_client", None)  # Dask
    if client is not None and hasattr(client, "nthreads"):
        return max(int(sum(client.nthreads().values())), 1)
    return os.cpu_count() or 1


def caught_by(catch: Any) -> tuple[type[BaseException], ...]:
    """The checked errors that count as failed evaluations."""
    kinds = catch if isinstance(catch, tuple) else (catch,)
    if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds):
        raise InvalidInput(
            f"catch={catch!r}: give an exception class or a tuple of them; () catches none"
        )
    return kinds


def check_progress(progress: object) -> bool | None:
    """Whether to show a progress bar, checked."""
    if progress is not None and not isinstance(progress, bool):
        raise InvalidInput(
            f"progress={progress!r}: give True, False, or None to show it on a terminal and in a "
            "notebook only"
        )
    return progress
