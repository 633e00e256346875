"""The loop behind `maximize` and `minimize`: ask, evaluate, tell, until it is time to stop."""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from partita._text import error_text, message_of
from partita.errors import EvaluationFailed, InvalidInput, Settled, TrialPruned

from .aggregates import Aggregate
from .evaluate import (
    Function,
    Outcome,
    WrongCall,
    called,
    check_branches,
    outcome_of,
    takes_trial,
)
from .failures import MOST_HELD, Failures
from .interrupts import Interrupts
from .logs import log_failed
from .meter import Meter
from .player import Player, give_up
from .result import Checkpoint
from .spans import Stopwatch
from .trial import Trial
from .values import Observation, WrongKind

_log = logging.getLogger(__name__)

#: If this many evaluations fail before the first success, the run raises an error.
HOPELESS = 20
#: A run ends when the number of failures exceeds both the first number and the second number times
#: the number of successes.
MOST_FAILURES, FAILURES_PER_VALUE = 100, 10
#: How many errors, and how many parameters of failed evaluations, a result keeps.
KEPT_ERRORS, KEPT_FAILURES = 5, 1000
#: The factor by which the number of evaluations grows between checkpoints of the history.
CHECKPOINT_FACTOR = 1.25
#: The same for functions that replicate, whose evaluations may be far quicker than a certificate.
REPLICATES_FACTOR = 2.0
#: With a tolerance, the certificate is checked after every evaluation up to this number n, and
#: then each time the number of evaluations has grown by a factor of 1 + 1/n.
CERTIFICATE_EVERY = 40


class Evaluation(NamedTuple):
    """The argument of a callback: the evaluation that has just ended, and the optimizer.

    `std` is the standard deviation of the value's noise, None if the function did not return it;
    `values` are those of constrained quantities by name, None without constraints. With a `count`
    above 1, of a function that replicates, the value is the mean of as many, and `std` their sample
    deviation.
    """

    number: int
    params: Any
    value: float
    n_evals: int
    seconds: float
    optimizer: Player
    std: float | None = None
    values: dict[str, float] | None = None
    count: int = 1  # type: ignore[assignment]


Callback = Callable[[Evaluation], object]


class Stop(NamedTuple):
    """Why a run ended."""

    status: int
    success: bool
    message: str


DONE, TIME_UP, TOLERANCE, CALLBACK, INTERRUPTED, FAILING, BROKEN = range(7)


@dataclass(frozen=True)
class Limits:
    """The limits of a run. The first one reached ends it."""

    n_evals: int | None
    max_seconds: float | None
    tolerance: float | None


class Run:
    """One run: its values, failures and pending trials, and whether to stop.

    Parameters
    ----------
    player
        The optimizer or study that is asked for trials and gets their values.
    shown
        What callbacks get: the optimizer, or the study as the user opened it.
    replicates
        Whether f replicates, so that evaluations are counted, not trials.
    """

    def __init__(
        self,
        player: Player,
        shown: Player,
        limits: Limits,
        callback: Callback | None,
        catch: tuple[type[BaseException], ...],
        meter: Meter,
        interrupts: Interrupts,
        seed: int,
        replicates: bool = False,
    ) -> None:
        self.replicates = replicates
        self.player, self.shown, self.limits = player, shown, limits
        self._callback, self._catch = callback, catch
        self._meter, self._interrupts = meter, interrupts
        self._start = time.monotonic()
        self._failures = Failures(player, seed)
        self.times = Stopwatch()
        #: Points to evaluate before those that the policy asks for.
        self.starts: deque[Any] = deque()
        self.pending: dict[int, Trial] = {}
        #: How many values of each row of a plan are still to come.
        self.awaited: dict[int, int] = {}
        self._before: dict[int, int] = {}
        #: A resumed study already has values, and other processes may add some.
        self.n_told = self._count()
        self.n_pruned = player.n_pruned
        self.n_failed = 0
        #: Whether this run has reported a value itself.
        self._learned_any = False
        self.errors: list[BaseException] = []
        self.failed_params: list[Any] = []
        self.checkpoints: list[Checkpoint] = []
        self._next_checkpoint = self._next_certificate = 1

    def _count(self) -> int:
        """How many evaluations there are, which behind a mean are several."""
        return self.player.n_values if self.replicates else self.player.n_told

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return time.monotonic() - self._start

    def seconds_left(self) -> float:
        """Seconds until the time limit; infinite if there is none."""
        limit = self.limits.max_seconds
        return math.inf if limit is None else limit - self.seconds

    def wanted(self, most: int) -> int:
        """The number of evaluations that may be started now, at most `most`."""
        if self.limits.n_evals is None:
            return most
        under_way = sum(self.awaited.values()) if self.replicates else len(self.pending)
        return min(most, self.limits.n_evals - self.n_ended - under_way)

    def startable(self, most: int) -> int:
        """The same, if as many as are under way may fail: no more than `n_evals` ever do."""
        if self.limits.n_evals is None:
            return most
        return min(self.wanted(most), self.limits.n_evals - self.n_failed - len(self.pending))

    @property
    def n_ended(self) -> int:
        """How many evaluations have a value, or were ended early."""
        return self.n_told + self.n_pruned

    # -- steps ---------------------------------------------------------------------------------

    def ask(self) -> Trial:
        """The next trial: first those of a killed run, then the user's x0, then the policy's."""
        with self._interrupts.held():
            if self.starts and not self.player.adopted:
                trial = self.player.expect(self.starts.popleft())
            else:
                if self._failures.any:  # trials kept pending must not exceed the policy's horizon
                    self._failures.release(max(self.wanted(MOST_HELD + 1) - 1, 0))
                trial = self._failures.ask()
            self.pending[trial.number] = trial
            self.times.begin(trial.number, self.seconds)
        return trial

    def plan(self, n: int) -> list[Trial]:
        """The next rows of a plan of at most n evaluations; points of x0 are evaluated once."""
        with self._interrupts.held():
            if self.player.adopted:
                rows = [self.player.ask()]
                (row,) = rows
                self._before[row.number] = int(self.player.trials.counts[row.number]) - row.count
            elif self.starts:
                rows = [self.player.expect(self.starts.popleft())]
            else:
                rows = self.player.plan(n)
            for trial in rows:
                self.pending[trial.number], self.awaited[trial.number] = trial, trial.count
                self.times.begin(trial.number, self.seconds)
        return rows

    def told_before(self, trial: Trial) -> int:
        """How many values of a row a killed run had told."""
        return self._before.get(trial.number, 0)

    def settle_part(self, trial: Trial, seen: Aggregate) -> Stop | None:
        """Record values of a row; return the reason to end the run, or None."""
        with self._interrupts.held():
            left = self.awaited[trial.number] - seen.count
            error: InvalidInput | None = None
            try:
                self.player.tell(trial, seen.mean, seen.std, count=seen.count)
            except Settled:
                del self.awaited[trial.number]
                self._overtaken(trial, seen.mean)
                return self.all_made() or self.time_up()
            except InvalidInput as refused:
                error = refused
            else:
                self.awaited[trial.number] = left
                if not left:
                    del self.awaited[trial.number]
                    self.times.end(trial.number, self.seconds, failed=False)
                self._learned(trial, ended=not left)
        if error is not None:
            return self.settle_row(trial, error)
        outcome = Outcome(seen.mean, std=seen.std)
        if self._callback is not None and self._called_off(trial, outcome, seen.count):
            return Stop(CALLBACK, True, "The callback ended the run.")
        return self.all_made() or self.certified() or self.time_up()

    def settle_row(self, trial: Trial, error: BaseException) -> Stop | None:
        """Record that an evaluation of a row failed: it ends, with what was told of it."""
        with self._interrupts.held():
            self.awaited.pop(trial.number, None)
            self.times.end(trial.number, self.seconds, failed=True)
        return self._failed(trial, error)

    def settle(self, trial: Trial, outcome: Outcome) -> Stop | None:
        """Record the outcome of an evaluation; return the reason to end the run, or None."""
        error = outcome.error
        if outcome.reports is not None:  # a worker has a copy of the trial
            trial._progress.readings = dict(outcome.reports)
        if error is not None and _ends_early(error):
            return self._pruned(trial)
        with self._interrupts.held():
            self.times.end(trial.number, self.seconds, failed=error is not None)
            counts = error is None
            if error is None:
                try:
                    self._tell(trial, outcome)
                except Settled:
                    self._overtaken(trial, outcome.value)
                    counts = False
                except InvalidInput as refused:  # a user's own policy may refuse a number
                    self._check_takes_std(outcome)
                    error = refused
                else:
                    self._learned(trial)
        if error is not None:
            return self._failed(trial, error)
        if counts and self._callback is not None and self._called_off(trial, outcome):
            return Stop(CALLBACK, True, "The callback ended the run.")
        return self.all_made() or self.certified() or self.time_up()

    def _tell(self, trial: Trial, outcome: Outcome) -> None:
        if outcome.values is None:
            self.player.tell(trial, outcome.value, outcome.std)
        else:
            self.player.tell(trial, Observation(outcome.value, outcome.std, outcome.values))

    def _check_takes_std(self, outcome: Outcome) -> None:
        """Raise at the first evaluation if the function returns a std that the policy cannot use.

        A run that already has values goes on, and counts a failure.
        """
        policy = self.player.policy
        if outcome.std is None or self._learned_any or getattr(policy, "takes_std", False):
            return
        raise InvalidInput(
            f"the function returned (value, std), but {type(policy).__name__} does not use the "
            "noise of single values: return only the value, or use CalibratedUCB, the default"
        )

    def _overtaken(self, trial: Trial, value: float) -> None:
        """Log that another process or thread ended a trial while it was being evaluated here."""
        _log.warning(
            "trial %d was ended by another process or thread while it was evaluated here: the "
            "value found here, %r, is not used. To use it, call add() with %r",
            trial.number,
            value,
            trial.params,
        )
        del self.pending[trial.number]
        self.n_told = self._count()

    def _pruned(self, trial: Trial) -> Stop | None:
        """Take in that an evaluation was ended early."""
        with self._interrupts.held():
            try:
                learned = self.player.prune(trial)
            except Settled:
                self._overtaken(trial, math.nan)
            else:
                del self.pending[trial.number]
                self.n_pruned = self.player.n_pruned
                if not learned:  # look elsewhere
                    self._failures.failed(trial.params, None)
                self.tick()
        return self.all_made() or self.time_up()

    def _learned(self, trial: Trial, ended: bool = True) -> None:
        if ended:
            del self.pending[trial.number]
        if trial.count > 1 and not self.replicates:  # of a killed run whose function replicated
            give_up(self.player, trial)
        self.n_told = self._count()
        self._learned_any = True
        self._failures.succeeded(trial.params)
        if self.n_told >= self._next_checkpoint:
            self.checkpoint()
        self.tick()

    def tick(self) -> None:
        """Update the progress bar if it is time to."""
        self._meter.show(self.n_ended, self.n_failed)

    def all_made(self) -> Stop | None:
        """The reason to stop if `n_evals` evaluations have been made, else None."""
        if self.limits.n_evals is not None and self.n_ended >= self.limits.n_evals:
            return Stop(DONE, True, "All evaluations were made.")
        return None

    def certified(self) -> Stop | None:
        """The reason to stop if the certificate is due for a check and within the tolerance."""
        tolerance = self.limits.tolerance
        if tolerance is None or self.n_told < self._next_certificate:
            return None
        self._next_certificate = self.n_told + max(1, self.n_told // CERTIFICATE_EVERY)
        with self._interrupts.held():
            certificate = self.player.certificate()
        if certificate > tolerance:
            return None
        return Stop(TOLERANCE, True, "The certificate is within the tolerance.")

    def time_up(self) -> Stop | None:
        """The reason to stop if the time is up, else None."""
        if self.seconds_left() <= 0.0:
            return Stop(TIME_UP, True, "The time is up.")
        return None

    def _called_off(self, trial: Trial, outcome: Outcome, count: int = 1) -> bool:
        assert self._callback is not None
        now = Evaluation(
            trial.number,
            trial.params,
            outcome.value,
            self.n_told,
            self.seconds,
            self.shown,
            outcome.std,
            self.player.constraints.named(outcome.values),
            count,
        )
        try:
            answer = self._callback(now)
        except StopIteration:  # SciPy's way to stop
            return True
        return isinstance(answer, bool | np.bool_) and bool(answer)

    def _failed(self, trial: Trial, error: BaseException) -> Stop | None:
        if not isinstance(error, self._catch):
            raise error
        if self._is_wrong(error):
            raise EvaluationFailed(
                f"the run ended at its first evaluation: {message_of(error)}", 1, [error]
            ) from error
        with self._interrupts.held():
            del self.pending[trial.number]
            self.n_failed += 1
            log_failed(trial.number, error)
            if not self.errors and not self._meter.shown:  # the progress bar counts failures
                _log.warning(
                    "an evaluation failed, with %s; the run goes on, and its result will say how "
                    "many did",
                    error_text(error),
                )
            if len(self.errors) < KEPT_ERRORS:
                self.errors.append(error)
            if len(self.failed_params) < KEPT_FAILURES:
                self.failed_params.append(trial.params)
            self._failures.report(trial.params, trial)
            self.tick()
        planned = math.inf if self.limits.n_evals is None else self.limits.n_evals
        if not self.n_told and self.n_failed >= min(HOPELESS, planned):
            raise EvaluationFailed(
                f"the first {self.n_failed} evaluations all failed, the first with "
                f"{error_text(self.errors[0])}{_hint(self.errors[0])}",
                self.n_failed,
                self.errors,
            ) from self.errors[0]
        most = max(MOST_FAILURES, FAILURES_PER_VALUE * self.n_told)
        if self.n_failed > most or self.n_failed >= planned:
            return Stop(FAILING, False, f"Too many evaluations failed ({self.n_failed:,}).")
        return self.time_up()

    def _is_wrong(self, error: BaseException) -> bool:
        """Whether an error shows that the function is not what was meant, before a value came.

        A study that is resumed has values: a function may return None there for a failure.
        """
        if self._learned_any or not isinstance(error, WrongCall | WrongKind):
            return False
        return not self.n_told or not message_of(error).startswith("the value is None")

    def broken(self, error: Exception) -> Stop:
        """The reason to stop after an executor failed; an error if there are no values yet."""
        if len(self.errors) < KEPT_ERRORS:
            self.errors.append(error)
        if not self.n_told:
            raise EvaluationFailed(
                f"the executor failed before any evaluation succeeded: {error_text(error)}"
                f"{_hint(self.errors[0])}",
                self.n_failed,
                self.errors,
            ) from error
        return Stop(BROKEN, False, f"The executor failed: {error_text(error)}.")

    def checkpoint(self) -> None:
        """Record the current recommendation in the history."""
        best = self.player.recommend()
        certificate = self.player.certificate()
        self.checkpoints.append(
            Checkpoint(self.n_told, self.seconds, best.mean, best.lower, best.upper, certificate)
        )
        self._meter.know(best, certificate)
        factor = REPLICATES_FACTOR if self.replicates else CHECKPOINT_FACTOR
        self._next_checkpoint = max(self.n_told + 1, math.ceil(self.n_told * factor))

    def finish(self) -> int:
        """Cancel what is pending, and return how many evaluations were still running."""
        dropped = 0
        for number in list(self.pending):
            give_up(self.player, self.pending[number])
            del self.pending[number]
            dropped += self.awaited.pop(number, 1)
        self._failures.release()
        return dropped


def one_at_a_time(run: Run, f: Function) -> Stop:
    """Evaluate in this thread, one point after another, until there is a reason to stop."""
    check_branches(f, run.player.space)
    with_trial = takes_trial(f, run.player.space)
    while True:
        trial = run.ask()
        ended = run.settle(trial, outcome_of(f, trial.params, trial if with_trial else None))
        if ended is not None:
            return ended


def _ends_early(error: BaseException) -> bool:
    """Whether an error says that an evaluation ended early: ours, or Optuna's of that name."""
    return isinstance(error, TrialPruned) or any(
        kind.__name__ == "TrialPruned" and kind.__module__.partition(".")[0] == "optuna"
        for kind in type(error).__mro__
    )


def _came_from_inside(error: BaseException) -> bool:
    """Whether an error was raised by the code of the function, not by calling it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code is not called.__code__


def _hint(error: BaseException) -> str:
    text = f"{type(error).__name__} {message_of(error)}".lower()
    if "pickle" in text:
        return (
            ". Process pools need a function defined at the top level of a module, not a lambda or "
            "a nested function"
        )
    about_arguments = "keyword argument" in text or "positional argument" in text
    if about_arguments and not _came_from_inside(error):
        return (
            ". With named parameters the function is called with keywords, as in f(lr=0.1, "
            "depth=3); with a list of bounds, it is called with one array"
        )
    if "after shutdown" in text:
        return ". The executor was shut down: give one that is running"
    return ". Call your function once yourself to see the error"
