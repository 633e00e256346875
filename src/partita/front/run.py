"""A run from its settings to its result, and checks of the arguments."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Union

from partita._checks import NotGiven, check_seed
from partita._text import error_text
from partita.errors import EvaluationFailed, InvalidInput
from partita.model.assumptions import Assumptions
from partita.optimize.constraints import Measured, unmet
from partita.optimize.evaluate import Function
from partita.optimize.interrupts import Interrupts
from partita.optimize.loop import (
    INTERRUPTED,
    TOLERANCE,
    Callback,
    Limits,
    Run,
    Stop,
    one_at_a_time,
)
from partita.optimize.meter import Meter
from partita.optimize.optimizer import Optimizer
from partita.optimize.parallel import Workers, in_parallel
from partita.optimize.plans import check_plans
from partita.optimize.player import Player
from partita.optimize.result import Checkpoint, History, Result, answer
from partita.optimize.rows import Crew, in_rows
from partita.optimize.starts import read_starts, without_known
from partita.optimize.trial import Suggestion
from partita.optimize.working import manner_of
from partita.policies import optional
from partita.space import as_space

from .arguments import caught_by, check_progress
from .going_on import continued
from .reachable import out_of_reach

if TYPE_CHECKING:
    from partita.study import RemoteStudy, Study

#: Bounds that cross by less than this, relative to their size, do not contradict each other.
ROUNDING = 1e-9
#: Defaults of `maximize`. Giving them explicitly is the same as leaving them out.
SEED, DELTA = 0, 0.1
#: Errors that count as failed evaluations. SystemExit: a function that calls sys.exit() failed too.
CATCH = (Exception, SystemExit)
#: The study that keeps the run: an open one, the name of its file or its address, or None.
StudyLike = Union["Study", "RemoteStudy", str, PathLike[str], None]
Catch = type[BaseException] | tuple[type[BaseException], ...]


@dataclass(frozen=True)
class Problem:
    """The arguments of `maximize` or `minimize` that say what is optimised, and how.

    Attributes
    ----------
    direction, space, n_evals, seed, assumptions, policy, feasible, constraints, outcomes
        The arguments of an `Optimizer`.
    study
        The study that keeps the run, or None.
    optimizer
        The optimizer or study that the run continues, or None.
    """

    direction: Literal["minimize", "maximize"]
    space: Any
    n_evals: int | None
    seed: int | None
    assumptions: Assumptions
    policy: Any
    feasible: Any
    study: StudyLike
    optimizer: Any = None
    constraints: Any = None
    outcomes: Any = None

    def settings(self) -> dict[str, Any]:
        """The settings as keywords of `Optimizer` and `Study.open`."""
        return {
            "direction": self.direction,
            "n_evals": self.n_evals,
            "seed": self.seed,
            "policy": self.policy,
            "feasible": self.feasible,
            "constraints": self.constraints,
            "outcomes": self.outcomes,
            **self.assumptions.keywords(),
        }


def optimise(
    f: Function,
    problem: Problem,
    limits: Limits,
    workers: Workers | Crew | None,
    *,
    x0: Any,
    callback: Callback | None,
    catch: Catch,
    progress: bool | None,
) -> Result:
    """Make a run and return its result: the common part of `maximize` and `minimize`."""
    if not callable(f):
        raise InvalidInput(f"f={f!r}: give the function to optimise, before the space")
    if callback is not None and not callable(callback):
        raise InvalidInput(f"callback={callback!r}: give a function of one argument")
    replicates = isinstance(workers, Crew)
    caught, shown = caught_by(catch), check_progress(progress)
    if problem.seed is not None:
        check_seed(problem.seed)
    if x0 is not None and problem.space is not None:  # refuse it before a file is created
        read_starts(x0, as_space(as_space(problem.space), problem.feasible))
    ours = ExitStack()
    with Interrupts() as interrupts, _closed_after_errors(ours, interrupts):
        seat = ours.enter_context(_seat(problem))
        player = seat.player
        meter = Meter(player, problem.n_evals, limits.max_seconds, shown)
        ours.callback(meter.close)
        if problem.optimizer is not None and limits.n_evals is not None:  # further evaluations
            made = (player.n_values if replicates else player.n_told) + player.n_pruned
            limits = replace(limits, n_evals=limits.n_evals + made)
        seed = player.seed if problem.seed is None else problem.seed
        run = Run(player, seat.shown, limits, callback, caught, meter, interrupts, seed, replicates)
        if x0 is not None:
            run.starts += without_known(read_starts(x0, player.space), player.trials)
        run.checkpoints += seat.earlier
        ours.callback(run.finish)
        warned = None
        if replicates:
            manner_of(f, player.space)  # refuse what cannot be called before anything is asked for
            check_plans(player.policy, player.constraints.names, player.contexts.names)
        elif player.constraints.names:
            f = Measured(f, player.constraints)
        try:
            stop = run.all_made() or run.certified()
            if stop is None:
                warned = out_of_reach(player, limits)
                stop = _made(run, f, workers)
        except KeyboardInterrupt:
            if not run.n_told:
                raise
            stop = Stop(INTERRUPTED, False, "Interrupted.")
        if warned and stop.status != TOLERANCE:
            stop = stop._replace(message=f"{stop.message} As said before the run: {warned}.")
        return _ended(run, stop, ours, interrupts)


def _made(run: Run, f: Function, workers: Workers | Crew | None) -> Stop:
    """Make the evaluations of a run, and return why it ended."""
    if isinstance(workers, Crew):
        return in_rows(run, f, workers)
    return one_at_a_time(run, f) if workers is None else in_parallel(run, f, workers)


@contextmanager
def _closed_after_errors(ours: ExitStack, interrupts: Interrupts) -> Iterator[None]:
    """Close everything opened for a run if the run raises; then raise the run's error."""
    try:
        yield
    except BaseException as error:
        with interrupts.held():
            try:
                ours.close()
            except Exception as another:
                error.add_note(f"The clean-up after this error failed, too: {error_text(another)}.")
        raise


def _ended(run: Run, stop: Stop, ours: ExitStack, interrupts: Interrupts) -> Result:
    """The result of a run that has ended; everything in `ours` is closed.

    A second Ctrl-C at this point is too late to end anything, and must not lose the result.
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
    """What a run works on, what users see of it, and the checkpoints of earlier runs."""

    player: Player
    shown: Player
    earlier: list[Checkpoint]


@contextmanager
def _seat(problem: Problem) -> Iterator[Seat]:
    """An optimizer, or the study that keeps the run; a file is opened and closed here."""
    going_on = None if problem.optimizer is None else _going_on(problem)
    if isinstance(going_on, Optimizer) or (going_on is None and problem.study is None):
        optimizer = going_on or Optimizer(problem.space, **problem.settings())
        yield Seat(optimizer, optimizer, [])
        return
    study = going_on or _resumed(problem.study, problem.space, problem.settings())
    now = time.time()
    earlier = [note._replace(seconds=note.seconds - now) for note in study.notes()]
    with study.running() as player:
        try:
            yield Seat(player, study, earlier)
        finally:
            # A file is opened again when it is next used.
            if study is not problem.study and study is not going_on:
                study.close()


def _going_on(problem: Problem) -> Optimizer | Study:
    """The optimizer or study that a run continues."""
    if problem.study is not None:
        raise InvalidInput(
            "optimizer and study are both given: give the study alone to continue it"
        )
    settings = problem.settings()
    del settings["direction"], settings["n_evals"]
    usual = {"seed": SEED, "delta": DELTA}
    given = {n: v for n, v in settings.items() if v is not None and usual.get(n) != v}
    return continued(problem.optimizer, problem.direction, problem.space, given)


def _resumed(study: object, space: Any, settings: dict[str, Any]) -> Study | RemoteStudy:
    """The study of a run, created if it does not exist; refused if its settings differ.

    The default seed and delta count as not given, so that a study with other ones can be resumed
    without naming them.
    """
    from partita.study import RemoteStudy, Study, connect  # late: most runs have none

    given = dict(settings)
    if settings["seed"] == SEED:
        given["seed"] = NotGiven.NOT_GIVEN
    if settings["delta"] == DELTA:
        given["delta"] = None
    if isinstance(study, str) and study.startswith(("http://", "https://")):
        if space is not None:
            return connect(study, space=space, **given)
        study = connect(study)
    if isinstance(study, Study | RemoteStudy):
        seed = None if isinstance(given["seed"], NotGiven) else given["seed"]
        study.check(space, **{**given, "seed": seed})
        return study
    if not isinstance(study, str | PathLike):
        raise InvalidInput(
            f'study={study!r}: give the name of a file, such as "tune.db", or the address of a '
            'study that is served, such as "http://host:8420/tune"'
        )
    return Study.open(study, space, **given)


def _result(run: Run, stop: Stop, dropped: int) -> Result:
    player = run.player
    if not run.n_told:
        raise _nothing(run) from (run.errors[0] if run.errors else None)
    if not run.checkpoints or run.checkpoints[-1].evaluations < run.n_told:
        run.checkpoint()
    best, last = player.recommend(), run.checkpoints[-1]
    message = stop.message
    if dropped:
        what = (
            "evaluation still under way was" if dropped == 1 else "evaluations still under way were"
        )
        message += f" {dropped:,} {what} dropped."
    if run.n_pruned:
        message += f" {run.n_pruned:,} {'was' if run.n_pruned == 1 else 'were'} ended early."
    if run.n_failed:
        message += f" {run.n_failed:,} failed, first with {error_text(run.errors[0])}."
    known = player.constraints_at(best.params)
    infeasible = unmet(known, getattr(player.policy, "delta", DELTA))
    if infeasible:
        message += f" {infeasible}"
    if _contradicted(player, best, last.certificate):
        message += (
            " The bounds contradict each other, so they do not hold: give a larger norm_bound or "
            "noise, or wider outcomes if you gave any."
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
        npruned=run.n_pruned,
        nit=player.n_told,
        errors=list(run.errors),
        seconds=run.seconds,
        history=History(
            player.trials.finished, run.checkpoints, run.failed_params, run.times.spans()
        ),
        direction=player.direction,
        seed=player.seed,
        optimizer=run.shown,
    )


def _nothing(run: Run) -> EvaluationFailed:
    if run.limits.max_seconds is None or run.time_up() is None:
        return EvaluationFailed(
            f"all {run.n_pruned:,} evaluations ended early, so there is no value: end only those "
            "for which should_prune() returns True",
            run.n_failed,
            run.errors,
        )
    text = f"no evaluation gave a value within {run.limits.max_seconds:g} seconds"
    if run.n_failed:
        text += f": {run.n_failed:,} failed, the first with {error_text(run.errors[0])}"
    return EvaluationFailed(f"{text}. Give more time", run.n_failed, run.errors)


def _contradicted(player: Player, best: Suggestion, certificate: float) -> bool:
    """Whether the data contradict bounds that should hold."""
    if player.guarantee not in optional.CERTAIN or not optional.has_certificate(player.policy):
        return False
    rounding = ROUNDING * (abs(best.lower) + abs(best.upper))
    return best.lower > best.upper + rounding or math.isinf(certificate)
