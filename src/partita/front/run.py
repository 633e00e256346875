"""A run from its settings to its result, and checks of what users give."""

from __future__ import annotations

import math
import os
from concurrent.futures import Executor
from contextlib import AbstractContextManager, ExitStack, nullcontext
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Union, cast

from partita._checks import as_number, check_seed
from partita.errors import EvaluationFailed, InvalidInput
from partita.optimize.evaluate import Function
from partita.optimize.failures import Failures
from partita.optimize.interrupts import Interrupts
from partita.optimize.loop import (
    INTERRUPTED,
    Callback,
    Limits,
    Run,
    Stop,
    error_text,
    one_at_a_time,
)
from partita.optimize.meter import Meter
from partita.optimize.optimizer import Optimizer, Suggestion
from partita.optimize.parallel import in_parallel
from partita.optimize.result import Checkpoint, History, Result, answer
from partita.optimize.starts import read_starts, without_known
from partita.space import as_space

if TYPE_CHECKING:
    from partita.study import Study

#: Bounds that cross by less, as a part of their size, do not contradict each other.
ROUNDING = 1e-9
#: A study that keeps the run: open, by the name of its file, or none.
StudyLike = Union["Study", str, PathLike[str], None]
Catch = type[BaseException] | tuple[type[BaseException], ...]


def optimise(
    direction: Literal["minimize", "maximize"],
    f: Function,
    space: Any,
    *,
    n_evals: int | None,
    max_seconds: float | None,
    tolerance: float | None,
    callback: Callback | None,
    executor: Executor | None,
    in_flight: int | None,
    batch: int,
    progress: bool | None,
    catch: Catch,
    seed: int,
    study: StudyLike = None,
    x0: Any = None,
    **settings: Any,
) -> Result:
    """Make a run: what `maximize` and `minimize` do."""
    if not callable(f):
        raise InvalidInput(f"f={f!r}: give the function to optimise, before the space")
    if callback is not None and not callable(callback):
        raise InvalidInput(f"callback={callback!r}: give a function of one argument")
    limits = _limits(n_evals, max_seconds, tolerance, callback)
    width = _width(executor, in_flight, batch)
    caught = _caught(catch)
    check_seed(seed)
    if x0 is not None and space is not None:  # refused before there is a file
        space = as_space(space)
        read_starts(x0, as_space(space, settings["feasible"]))
    settings |= {"direction": direction, "seed": seed, "n_evals": n_evals}
    optimizer, underway, earlier = _player(study, space, settings)
    meter = Meter(optimizer, n_evals, max_seconds, _check_progress(progress))
    with Interrupts() as interrupts, ExitStack() as ours:
        ours.enter_context(underway)
        ours.callback(meter.close)
        failures = Failures(optimizer, seed)
        run = Run(optimizer, limits, callback, caught, meter, interrupts, failures)
        if x0 is not None:
            run.starts += without_known(read_starts(x0, optimizer.space), optimizer.trials)
        run.checkpoints += earlier
        ours.callback(run.finish)
        try:
            stop = run.all_made() or run.certified()
            if stop is None and executor is None:
                stop = one_at_a_time(run, f)
            elif stop is None:
                assert executor is not None
                stop = in_parallel(run, f, executor, width, batch)
        except KeyboardInterrupt:
            if not run.n_told:
                raise
            stop = Stop(INTERRUPTED, False, "Interrupted.")
        except BaseException:
            with interrupts.held():
                ours.close()
            raise
        return _ended(run, stop, ours, interrupts)


def _ended(run: Run, stop: Stop, ours: ExitStack, interrupts: Interrupts) -> Result:
    """The result of a run that has ended, and the end of all that was `ours` during it.

    An impatient Ctrl-C here comes too late to end anything, and must not lose the result.
    """
    result = None
    try:
        with interrupts.held():
            dropped = run.finish()
            result = _result(run, stop, dropped)
            ours.close()
    except KeyboardInterrupt:
        if result is None:
            raise
    return result


def _player(
    study: StudyLike, space: Any, settings: dict[str, Any]
) -> tuple[Optimizer, AbstractContextManager[None], list[Checkpoint]]:
    """What asks and tells, a context in which its trials are ours, and what was known before."""
    if study is None:
        return Optimizer(space, **settings), nullcontext(), []
    from .resume import earlier, resumed, underway

    opened = resumed(study, space, settings)
    # It has all methods of an Optimizer that a run needs.
    return cast(Optimizer, opened), underway(opened, study), earlier(opened)


def _result(run: Run, stop: Stop, dropped: int) -> Result:
    optimizer = run.optimizer
    if not run.n_told:
        raise _nothing_in_time(run) from (run.errors[0] if run.errors else None)
    if not run.checkpoints or run.checkpoints[-1].evaluations < run.n_told:
        run.checkpoint()
    best, last = optimizer.recommend(), run.checkpoints[-1]
    message = stop.message
    if dropped:
        what = (
            "evaluation still under way was" if dropped == 1 else "evaluations still under way were"
        )
        message += f" {dropped:,} {what} dropped."
    if run.n_failed:
        message += f" {run.n_failed:,} failed, first with {error_text(run.errors[0])}."
    clipped = getattr(optimizer.policy, "clipped", 0)
    if clipped:
        message += (
            f" {clipped:,} value{'s' * (clipped > 1)} far outside all others "
            f"count{'s' * (clipped == 1)} as less extreme: policy='calibrated-ucb[outliers=keep]' "
            "takes such values as they are."
        )
    if _contradicted(optimizer, best, last.certificate):
        message += (
            " The bounds contradict each other, so they do not hold: give a larger norm_bound, or "
            "noise."
        )
    return Result(
        **answer(best, optimizer.space),
        certificate=last.certificate,
        guarantee=optimizer.guarantee,
        success=stop.success,
        status=stop.status,
        message=message,
        nfev=run.n_told,
        nfail=run.n_failed,
        nit=run.n_told,
        errors=list(run.errors),
        seconds=run.seconds,
        history=History(optimizer.trials.finished, run.checkpoints, run.failed_params),
        direction=optimizer.direction,
        optimizer=optimizer,
    )


def _nothing_in_time(run: Run) -> EvaluationFailed:
    text = f"no evaluation gave a value in time, within {run.limits.max_seconds:g} seconds"
    if run.n_failed:
        text += f": {run.n_failed:,} failed, the first with {error_text(run.errors[0])}"
    return EvaluationFailed(f"{text}. Give more time", run.n_failed, run.errors)


def _contradicted(optimizer: Optimizer, best: Suggestion, certificate: float) -> bool:
    """Whether the data have shown that bounds which should be certain are not."""
    certain = optimizer.guarantee in ("proven", "published")
    if not certain or not hasattr(optimizer.policy, "certificate"):
        return False
    rounding = ROUNDING * (abs(best.lower) + abs(best.upper))
    return best.lower > best.upper + rounding or math.isinf(certificate)


# -- checks ----------------------------------------------------------------------------------------


def _limits(n_evals: object, max_seconds: object, tolerance: object, callback: object) -> Limits:
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


def _width(executor: Any, in_flight: object, batch: object) -> int:
    """Tasks to have under way."""
    _whole("batch", batch)
    if executor is None:
        if in_flight is not None or batch != 1:
            raise InvalidInput(
                f"in_flight={in_flight!r}, batch={batch!r}: these need an executor, such as "
                "executor=concurrent.futures.ThreadPoolExecutor(8)"
            )
        return 1
    if not callable(getattr(executor, "submit", None)):
        raise InvalidInput(
            f"executor={executor!r}: give a concurrent.futures.Executor, such as "
            "ThreadPoolExecutor(8), or Dask's client.get_executor(pure=False)"
        )
    if hasattr(executor, "get_executor"):
        raise InvalidInput(
            f"executor={executor!r} is a client of Dask: give client.get_executor(pure=False)"
        )
    return _workers(executor) if in_flight is None else _whole("in_flight", in_flight)


def _workers(executor: Any) -> int:
    """How many workers an executor has, as far as it says."""
    number = getattr(executor, "_max_workers", None)  # threads and processes
    if isinstance(number, int):
        return max(number, 1)
    client = getattr(executor, "_client", None)  # Dask
    if client is not None and hasattr(client, "nthreads"):
        return max(int(sum(client.nthreads().values())), 1)
    return os.cpu_count() or 1


def _caught(catch: Any) -> tuple[type[BaseException], ...]:
    kinds = catch if isinstance(catch, tuple) else (catch,)
    if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds):
        raise InvalidInput(
            f"catch={catch!r}: give a class of errors or a tuple of them; () catches none"
        )
    return kinds


def _check_progress(progress: object) -> bool | None:
    if progress is not None and not isinstance(progress, bool):
        raise InvalidInput(f"progress={progress!r}: give True, False, or None for on a terminal")
    return progress
