"""A run from its settings to its result, and checks of what users give."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Union

from partita._checks import as_number, check_seed
from partita.errors import EvaluationFailed, InvalidInput
from partita.model.assumptions import Assumptions
from partita.optimize.constraints import Measured, unmet
from partita.optimize.evaluate import Function
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
from partita.optimize.parallel import Workers, in_parallel
from partita.optimize.player import Player
from partita.optimize.result import Checkpoint, History, Result, answer
from partita.optimize.starts import read_starts, without_known
from partita.policies import optional
from partita.space import as_space

if TYPE_CHECKING:
    from partita.study import Study

#: Bounds that cross by less, as a part of their size, do not contradict each other.
ROUNDING = 1e-9
#: Defaults of `maximize`: who gives these may as well have given nothing.
SEED, DELTA = 0, 0.1
#: Errors that count as failed evaluations: a function that calls sys.exit() has failed as well.
CATCH = (Exception, SystemExit)
#: A study that keeps the run: open, by the name of its file, or none.
StudyLike = Union["Study", str, PathLike[str], None]
Catch = type[BaseException] | tuple[type[BaseException], ...]


@dataclass(frozen=True)
class Problem:
    """What is optimised, and by whom: as `maximize` was given it.

    Attributes
    ----------
    direction, space, n_evals, seed, assumptions, policy, feasible, constraints
        What an `Optimizer` is made of.
    study
        The study that keeps the run, if one does.
    """

    direction: Literal["minimize", "maximize"]
    space: Any
    n_evals: int | None
    seed: int
    assumptions: Assumptions
    policy: Any
    feasible: Any
    study: StudyLike
    constraints: Any = None

    def settings(self) -> dict[str, Any]:
        """The settings by the names that `Optimizer` and `Study.open` have for them."""
        return {
            "direction": self.direction,
            "n_evals": self.n_evals,
            "seed": self.seed,
            "policy": self.policy,
            "feasible": self.feasible,
            "constraints": self.constraints,
            **self.assumptions.keywords(),
        }


def optimise(
    f: Function,
    problem: Problem,
    limits: Limits,
    workers: Workers | None,
    *,
    x0: Any,
    callback: Callback | None,
    catch: Catch,
    progress: bool | None,
) -> Result:
    """Make a run: what `maximize` and `minimize` do."""
    if not callable(f):
        raise InvalidInput(f"f={f!r}: give the function to optimise, before the space")
    if callback is not None and not callable(callback):
        raise InvalidInput(f"callback={callback!r}: give a function of one argument")
    caught, shown = _caught(catch), _check_progress(progress)
    check_seed(problem.seed)
    if x0 is not None and problem.space is not None:  # refused before there is a file
        read_starts(x0, as_space(as_space(problem.space), problem.feasible))
    ours = ExitStack()
    with Interrupts() as interrupts, _closed_after_errors(ours, interrupts):
        seat = ours.enter_context(_seat(problem))
        player = seat.player
        meter = Meter(player, problem.n_evals, limits.max_seconds, shown)
        ours.callback(meter.close)
        run = Run(player, seat.shown, limits, callback, caught, meter, interrupts, problem.seed)
        if x0 is not None:
            run.starts += without_known(read_starts(x0, player.space), player.trials)
        run.checkpoints += seat.earlier
        ours.callback(run.finish)
        if player.constraints.names:
            f = Measured(f, player.constraints)
        try:
            stop = run.all_made() or run.certified()
            if stop is None:
                stop = in_parallel(run, f, workers) if workers else one_at_a_time(run, f)
        except KeyboardInterrupt:
            if not run.n_told:
                raise
            stop = Stop(INTERRUPTED, False, "Interrupted.")
        return _ended(run, stop, ours, interrupts)


@contextmanager
def _closed_after_errors(ours: ExitStack, interrupts: Interrupts) -> Iterator[None]:
    """Close all that was opened for a run if the run raises; its error is what is raised."""
    try:
        yield
    except BaseException as error:
        with interrupts.held():
            try:
                ours.close()
            except Exception as another:
                error.add_note(f"Cleaning up after this failed, too, with {error_text(another)}.")
        raise


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


class Seat(NamedTuple):
    """Who plays a run: asks and tells, is shown to users, and what was known before it."""

    player: Player
    shown: Player
    earlier: list[Checkpoint]


@contextmanager
def _seat(problem: Problem) -> Iterator[Seat]:
    """An optimizer, or the study that keeps the run: opened and closed here if it is a file."""
    settings = problem.settings()
    if problem.study is None:
        optimizer = Optimizer(problem.space, **settings)
        yield Seat(optimizer, optimizer, [])
        return
    study = _resumed(problem.study, problem.space, settings)
    now = time.time()
    earlier = [note._replace(seconds=note.seconds - now) for note in study.notes()]
    with study.running() as player:
        try:
            yield Seat(player, study, earlier)
        finally:
            if study is not problem.study:  # until somebody looks
                study.close()


def _resumed(study: object, space: Any, settings: dict[str, Any]) -> Study:
    """The study of a run, begun if there is none; refused if it is about something else.

    The usual seed and delta are taken for not given, so that a study with others can be resumed
    without naming them.
    """
    from partita.study import Study  # late: most runs have none

    usual = {"seed": SEED, "delta": DELTA}
    given: dict[str, Any] = {
        name: None if usual.get(name) == value else value for name, value in settings.items()
    }
    if isinstance(study, Study):
        study.check(space, **given)
        return study
    if not isinstance(study, str | PathLike):
        raise InvalidInput(f'study={study!r}: give the name of a file, such as "tune.db"')
    return Study.open(study, space, **given)


def _result(run: Run, stop: Stop, dropped: int) -> Result:
    player = run.player
    if not run.n_told:
        raise _nothing_in_time(run) from (run.errors[0] if run.errors else None)
    if not run.checkpoints or run.checkpoints[-1].evaluations < run.n_told:
        run.checkpoint()
    best, last = player.recommend(), run.checkpoints[-1]
    message = stop.message
    if dropped:
        what = (
            "evaluation still under way was" if dropped == 1 else "evaluations still under way were"
        )
        message += f" {dropped:,} {what} dropped."
    if run.n_failed:
        message += f" {run.n_failed:,} failed, first with {error_text(run.errors[0])}."
    known = player.constraints_at(best.params)
    infeasible = unmet(known, getattr(player.policy, "delta", DELTA))
    if infeasible:
        message += f" {infeasible}"
    if _contradicted(player, best, last.certificate):
        message += (
            " The bounds contradict each other, so they do not hold: give a larger norm_bound, or "
            "noise."
        )
    return Result(
        **answer(best, player.space),
        certificate=last.certificate,
        guarantee=player.guarantee,
        constraints=known,
        success=stop.success and not infeasible,
        status=stop.status,
        message=message,
        nfev=run.n_told,
        nfail=run.n_failed,
        nit=run.n_told,
        errors=list(run.errors),
        seconds=run.seconds,
        history=History(player.trials.finished, run.checkpoints, run.failed_params),
        direction=player.direction,
        optimizer=run.shown,
    )


def _nothing_in_time(run: Run) -> EvaluationFailed:
    text = f"no evaluation gave a value in time, within {run.limits.max_seconds:g} seconds"
    if run.n_failed:
        text += f": {run.n_failed:,} failed, the first with {error_text(run.errors[0])}"
    return EvaluationFailed(f"{text}. Give more time", run.n_failed, run.errors)


def _contradicted(player: Player, best: Suggestion, certificate: float) -> bool:
    """Whether the data have shown that bounds which should be certain are not."""
    certain = player.guarantee in ("proven", "published")
    if not certain or not optional.has_certificate(player.policy):
        return False
    rounding = ROUNDING * (abs(best.lower) + abs(best.upper))
    return best.lower > best.upper + rounding or math.isinf(certificate)


# -- checks ----------------------------------------------------------------------------------------


def limits_of(n_evals: object, max_seconds: object, tolerance: object, callback: object) -> Limits:
    """When to stop, checked: something must end the run."""
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


def workers_of(executor: Any, in_flight: object, batch: object) -> Workers | None:
    """Who evaluates, checked; None for this thread."""
    size = _whole("batch", batch)
    if executor is None:
        if in_flight is not None or batch != 1:
            raise InvalidInput(
                f"in_flight={in_flight!r}, batch={batch!r}: these need an executor, such as "
                "executor=concurrent.futures.ThreadPoolExecutor(8)"
            )
        return None
    if not callable(getattr(executor, "submit", None)):
        raise InvalidInput(
            f"executor={executor!r}: give a concurrent.futures.Executor, such as "
            "ThreadPoolExecutor(8), or Dask's client.get_executor(pure=False)"
        )
    if hasattr(executor, "get_executor"):
        raise InvalidInput(
            f"executor={executor!r} is a client of Dask: give client.get_executor(pure=False)"
        )
    width = _workers(executor) if in_flight is None else _whole("in_flight", in_flight)
    return Workers(executor, width, size)


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
