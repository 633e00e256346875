"""Evaluations by an executor, several under way at once.

Whichever ends first is told first, and another point is asked for in its place, so a slow one holds
up nobody.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import queue
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import Any, NamedTuple

from partita.errors import InvalidInput

from .evaluate import Function, Outcome, Task, evaluate_all, takes_trial
from .loop import Run, Stop
from .trial import Trial

#: An executor is waited for in turns of this many seconds, between which the meter is drawn.
TURN = 0.2
#: The methods of a future that are used.
FUTURE = ("add_done_callback", "cancel", "cancelled", "exception", "result")


class Workers(NamedTuple):
    """Who evaluates: an executor, the tasks it has under way at a time, evaluations a task."""

    executor: Executor
    in_flight: int
    batch: int


class Job(NamedTuple):
    """Evaluations that an executor makes together, and whether it is their second try."""

    future: Future[list[Outcome]]
    trials: Sequence[Trial]
    again: bool


def in_parallel(run: Run, f: Function, workers: Workers) -> Stop:
    """Let an executor evaluate."""
    tasks: dict[int, Job] = {}
    with_trial = takes_trial(f, run.player.space)
    # Tasks put their numbers here when they end: one wait for any, whatever executor made them.
    ended_tasks: queue.SimpleQueue[int] = queue.SimpleQueue()
    numbers = itertools.count()

    def submit(trials: Sequence[Trial], again: bool = False) -> None:
        made = [Task(t.number, t.params, t if with_trial else None) for t in trials]
        future = _checked(workers.executor.submit(evaluate_all, f, made))
        number = next(numbers)
        tasks[number] = Job(future, trials, again)
        future.add_done_callback(lambda *_: ended_tasks.put(number))

    try:
        while True:
            while len(tasks) < workers.in_flight and (number := run.wanted(workers.batch)) > 0:
                trials = [run.ask() for _ in range(number)]
                try:
                    submit(trials)
                except Exception as error:
                    return run.broken(error)
            ended = None
            for number in _first_ended(run, ended_tasks):
                task = tasks.pop(number, None)
                if task is None:  # it says a second time that it has ended
                    continue
                if not task.again and _slipped(task.future):
                    with contextlib.suppress(Exception):
                        submit(task.trials, again=True)
                        continue
                # All that have a value are told, even if one of them ends the run.
                stop = _settle(run, task)
                ended = ended or stop
            run.tick()
            ended = ended or run.time_up()
            if ended is not None:
                return ended
    finally:
        for task in tasks.values():
            with contextlib.suppress(Exception):
                task.future.cancel()


def _checked(future: Any) -> Future[list[Outcome]]:
    """What an executor's `submit` returned, if it is a future."""
    if not all(callable(getattr(future, name, None)) for name in FUTURE):
        raise InvalidInput(
            f"submit() of the executor returned {_short(future)}, not a concurrent.futures.Future"
        )
    return future  # type: ignore[no-any-return]


def _first_ended(run: Run, ended: queue.SimpleQueue[int]) -> list[int]:
    """Numbers of tasks that have ended, at least one if the time allows."""
    numbers = []
    with contextlib.suppress(queue.Empty):
        numbers.append(ended.get(timeout=max(min(TURN, run.seconds_left()), 0.0)))
        while True:
            numbers.append(ended.get_nowait())
    return numbers


def _slipped(future: Future[list[Outcome]]) -> bool:
    """Whether the outcomes of a task went astray between worker and here, for no reason of theirs.

    Errors of f are outcomes. An executor that gives up on a task says so with an error of its own,
    such as Dask's KilledWorker; one of Python's is a slip. Dask makes one when the worker that held
    a result dies while it is fetched: the result is taken for an error, and cannot be unpacked.
    """
    try:
        error = None if future.cancelled() else future.exception()
    except Exception:  # a future of the user's own: its result will show what is wrong
        return False
    return isinstance(error, Exception) and type(error).__module__ == "builtins"


def _settle(run: Run, task: Job) -> Stop | None:
    """Take in all evaluations of a task, even if one of them ends the run."""
    given: Any
    try:
        given = task.future.result()
    except BrokenExecutor as error:
        return run.broken(error)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # lost on the way: f could not be pickled, a worker was killed
        given = [Outcome(math.nan, error, trial=trial.number) for trial in task.trials]
    rows = given if isinstance(given, list | tuple) else []
    outcomes = {row.trial: row for row in rows if isinstance(row, Outcome)}
    stop: Stop | None = None
    for trial in task.trials:
        if trial.number in outcomes:
            stop = run.settle(trial, outcomes[trial.number]) or stop
    missing = [trial.number for trial in task.trials if trial.number not in outcomes]
    if missing:
        return run.broken(_incomplete(given, missing, task))
    return stop


def _incomplete(given: Any, missing: Sequence[int], task: Job) -> InvalidInput:
    """The error of an executor that did not return what its function did."""
    return InvalidInput(
        f"for a task of {len(task.trials)}, it returned {_short(given)}, without the outcome of "
        f"trial {missing[0]}. The future must have what the function that submit() was given "
        "returns for its arguments"
    )


def _short(value: Any) -> str:
    """An object in a few words, whatever it says of itself."""
    try:
        text = " ".join(repr(value).split())
    except Exception:
        text = f"an object of type {type(value).__name__}"
    return text if len(text) <= 80 else text[:79] + "…"
