"""Evaluations by an executor, several under way at once.

Whichever ends first is told first, and another point is asked for in its place, so a slow one holds
up nobody.
"""

from __future__ import annotations

import contextlib
import math
import queue
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import NamedTuple

from .evaluate import Function, Outcome, evaluate_all
from .loop import Run, Stop
from .optimizer import Trial

#: An executor is waited for in turns of this many seconds, between which the meter is drawn.
TURN = 0.2


class Workers(NamedTuple):
    """Who evaluates: an executor, the tasks it has under way at a time, evaluations a task."""

    executor: Executor
    in_flight: int
    batch: int


class Task(NamedTuple):
    """Evaluations that an executor makes together, and whether it is their second try."""

    trials: Sequence[Trial]
    again: bool = False


def in_parallel(run: Run, f: Function, workers: Workers) -> Stop:
    """Let an executor evaluate."""
    tasks: dict[Future[list[Outcome]], Task] = {}
    # Futures put themselves here when they end: one wait for any, whatever executor made them.
    ended_tasks: queue.SimpleQueue[Future[list[Outcome]]] = queue.SimpleQueue()

    def submit(task: Task) -> None:
        numbered = [(trial.number, trial.params) for trial in task.trials]
        future = workers.executor.submit(evaluate_all, f, numbered)
        tasks[future] = task
        future.add_done_callback(ended_tasks.put)

    try:
        while True:
            while len(tasks) < workers.in_flight and (number := run.wanted(workers.batch)) > 0:
                trials = [run.ask() for _ in range(number)]
                try:
                    submit(Task(trials))
                except Exception as error:
                    return run.broken(error)
            ended = None
            for future in _first_ended(run, ended_tasks):
                task = tasks.pop(future)
                if not task.again and _slipped(future):
                    with contextlib.suppress(Exception):
                        submit(Task(task.trials, again=True))
                        continue
                # All that have a value are told, even if one of them ends the run.
                stop = _settle(run, task, future)
                ended = ended or stop
            run.tick()
            ended = ended or run.time_up()
            if ended is not None:
                return ended
    finally:
        for future in tasks:
            future.cancel()


def _first_ended(
    run: Run, ended: queue.SimpleQueue[Future[list[Outcome]]]
) -> list[Future[list[Outcome]]]:
    """Tasks that have ended, at least one if the time allows."""
    futures = []
    with contextlib.suppress(queue.Empty):
        futures.append(ended.get(timeout=max(min(TURN, run.seconds_left()), 0.0)))
        while True:
            futures.append(ended.get_nowait())
    return futures


def _slipped(future: Future[list[Outcome]]) -> bool:
    """Whether the outcomes of a task went astray between worker and here, for no reason of theirs.

    Errors of f are outcomes. An executor that gives up on a task says so with an error of its own,
    such as Dask's KilledWorker; one of Python's is a slip. Dask makes one when the worker that held
    a result dies while it is fetched: the result is taken for an error, and cannot be unpacked.
    """
    if future.cancelled():
        return False
    error = future.exception()
    return isinstance(error, Exception) and type(error).__module__ == "builtins"


def _settle(run: Run, task: Task, future: Future[list[Outcome]]) -> Stop | None:
    """Take in all evaluations of a task, even if one of them ends the run."""
    try:
        outcomes = future.result()
    except BrokenExecutor as error:
        return run.broken(error)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # lost on the way: f could not be pickled, a worker was killed
        outcomes = [Outcome(math.nan, error)] * len(task.trials)
    stop: Stop | None = None
    for trial, outcome in zip(task.trials, outcomes, strict=True):
        stop = run.settle(trial, outcome) or stop
    return stop
