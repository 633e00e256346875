"""Evaluations by an executor, several at the same time.

Each value is reported as soon as it arrives, and the next point is then started, so a slow
evaluation does not hold up the others.
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

from .evaluate import Function, Outcome, Task, check_branches, evaluate_all, takes_trial
from .loop import Run, Stop
from .trial import Trial

#: Seconds of each wait for an executor; between two waits the progress bar is updated.
TURN = 0.2
#: The methods that a future must have.
FUTURE = ("add_done_callback", "cancel", "cancelled", "exception", "result")


class Workers(NamedTuple):
    """An executor, the number of tasks it runs at a time, and the evaluations per task."""

    executor: Executor
    in_flight: int
    batch: int


class Job(NamedTuple):
    """Evaluations that an executor makes together, and whether this is their second attempt."""

    future: Future[list[Outcome]]
    trials: Sequence[Trial]
    again: bool


def in_parallel(run: Run, f: Function, workers: Workers) -> Stop:
    """Evaluate by an executor until there is a reason to stop."""
    tasks: dict[int, Job] = {}
    check_branches(f, run.player.space)
    with_trial = takes_trial(f, run.player.space)
    # Tasks put their numbers here when they end, so one wait serves all kinds of executors.
    ended_tasks: queue.SimpleQueue[int] = queue.SimpleQueue()
    numbers = itertools.count()

    def submit(trials: Sequence[Trial], again: bool = False) -> None:
        made = [Task(t.number, t.params, t if with_trial else None) for t in trials]
        future = checked(workers.executor.submit(evaluate_all, f, made))
        number = next(numbers)
        tasks[number] = Job(future, trials, again)
        future.add_done_callback(lambda *_: ended_tasks.put(number))

    try:
        while True:
            while len(tasks) < workers.in_flight and (number := run.startable(workers.batch)) > 0:
                trials = [run.ask() for _ in range(number)]
                try:
                    submit(trials)
                except Exception as error:
                    return run.broken(error)
            ended = None
            for number in _first_ended(run, ended_tasks):
                task = tasks.pop(number, None)
                if task is None:  # its end was reported twice
                    continue
                if not task.again and _slipped(task.future):
                    with contextlib.suppress(Exception):
                        submit(task.trials, again=True)
                        continue
                # All values are reported, even if one of them ends the run.
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


def checked(future: Any) -> Future[Any]:
    """The future that an executor's `submit` returned, or an error for anything else."""
    if not all(callable(getattr(future, name, None)) for name in FUTURE):
        raise InvalidInput(
            f"submit() of the executor returned {_short(future)}, not a concurrent.futures.Future"
        )
    return future  # type: ignore[no-any-return]


def _first_ended(run: Run, ended: queue.SimpleQueue[int]) -> list[int]:
    """Numbers of the tasks that have ended: at least one, unless the time is up."""
    numbers = []
    with contextlib.suppress(queue.Empty):
        numbers.append(ended.get(timeout=max(min(TURN, run.seconds_left()), 0.0)))
        while True:
            numbers.append(ended.get_nowait())
    return numbers


def _slipped(future: Future[list[Outcome]]) -> bool:
    """Whether the outcomes of a task were lost on the way from the worker by a fault of transport.

    Errors of f are outcomes. An executor that gives up on a task raises an error class of its own,
    such as Dask's KilledWorker; a built-in error is a fault of transport. Dask causes one when the
    worker that holds a result dies while it is fetched: the result is then taken for an error, and
    cannot be unpacked.
    """
    try:
        error = None if future.cancelled() else future.exception()
    except Exception:  # a user's own kind of future: its result will show what is wrong
        return False
    return isinstance(error, Exception) and type(error).__module__ == "builtins"


def _settle(run: Run, task: Job) -> Stop | None:
    """Record all evaluations of a task, even if one of them ends the run."""
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
        return run.broken(no_answer(given, f"the outcome of trial {missing[0]}"))
    return stop


def no_answer(given: Any, what: str) -> InvalidInput:
    """The error for an executor whose future has another result than what was submitted."""
    return InvalidInput(
        f"it returned {_short(given)}, without {what}. The future's result must be what the "
        "function given to submit() returns for its arguments"
    )


def _short(value: Any) -> str:
    """A short text for an object, even if its own repr fails or is long."""
    try:
        text = " ".join(repr(value).split())
    except Exception:
        text = f"an object of type {type(value).__name__}"
    return text if len(text) <= 80 else text[:79] + "…"
