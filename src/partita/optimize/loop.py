"""The loop behind `maximize` and `minimize`: ask, evaluate, tell, until it is time to stop."""

from __future__ import annotations

import logging
import math
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from partita._text import message_of
from partita.errors import EvaluationFailed, InvalidInput, Settled
from partita.policies import optional

from .evaluate import Function, Outcome, WrongCall, outcome_of
from .failures import MOST_HELD, Failures
from .interrupts import Interrupts
from .meter import Meter
from .optimizer import Trial
from .player import Player, give_up
from .result import Checkpoint
from .values import Observation, WrongKind

_log = logging.getLogger(__name__)

#: If the first evaluations fail, this many of them, nothing can be learned.
HOPELESS = 20
#: A run ends when more evaluations failed than the first number, and than the second one times
#: those that succeeded.
MOST_FAILURES, FAILURES_PER_VALUE = 100, 10
#: Errors that a result keeps, and parameters at which evaluations failed.
KEPT_ERRORS, KEPT_FAILURES = 5, 1000
#: Evaluations from one checkpoint of the history to the next, as a factor.
CHECKPOINT_FACTOR = 1.25
#: With a tolerance, the certificate is looked at after every evaluation up to this number, then
#: each time there is one more for this number of them.
CERTIFICATE_EVERY = 40


class Evaluation(NamedTuple):
    """What a callback is given: an evaluation that has just been told, and the optimizer.

    `std` is the standard deviation of the value's noise, None if the function did not return it;
    `values` are those of constrained quantities by name, None without constraints.
    """

    number: int
    params: Any
    value: float
    n_evals: int
    seconds: float
    optimizer: Player
    std: float | None = None
    values: dict[str, float] | None = None


Callback = Callable[[Evaluation], object]


class Stop(NamedTuple):
    """Why a run ended."""

    status: int
    success: bool
    message: str


DONE, TIME_UP, TOLERANCE, CALLBACK, INTERRUPTED, FAILING, BROKEN = range(7)


@dataclass(frozen=True)
class Limits:
    """When to stop: whichever comes first."""

    n_evals: int | None
    max_seconds: float | None
    tolerance: float | None


class Run:
    """One run: what was told, what failed, what is pending, and whether to stop.

    Parameters
    ----------
    player
        Asks and tells.
    shown
        The same for callbacks: the optimizer, or the study as the user opened it.
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
    ) -> None:
        self.player, self.shown, self.limits = player, shown, limits
        self._callback, self._catch = callback, catch
        self._meter, self._interrupts = meter, interrupts
        self._start = time.monotonic()
        self._failures = Failures(player, seed)
        #: Points that are evaluated before any that the policy asks for.
        self.starts: deque[Any] = deque()
        self.pending: dict[int, Trial] = {}
        #: A study that is resumed has values already, and may get some from other processes.
        self.n_told = player.n_told
        self.n_failed = 0
        #: Whether this run has told a value of its own.
        self._learned_any = False
        self.errors: list[BaseException] = []
        self.failed_params: list[Any] = []
        self.checkpoints: list[Checkpoint] = []
        self._next_checkpoint = self._next_certificate = 1

    @property
    def seconds(self) -> float:
        """Time since the start."""
        return time.monotonic() - self._start

    def seconds_left(self) -> float:
        """Time until it is up, infinite if there is no limit."""
        limit = self.limits.max_seconds
        return math.inf if limit is None else limit - self.seconds

    def wanted(self, most: int) -> int:
        """How many evaluations may be begun, `most` at most."""
        if self.limits.n_evals is None:
            return most
        return min(most, self.limits.n_evals - self.n_told - len(self.pending))

    # -- steps ---------------------------------------------------------------------------------

    def ask(self) -> Trial:
        """The next trial: those of a killed run first, then the user's first points."""
        with self._interrupts.held():
            if self.starts and not self.player.adopted:
                trial = self.player.expect(self.starts.popleft())
            else:
                if self._failures.any:  # those kept pending must not take it past its horizon
                    self._failures.release(max(self.wanted(MOST_HELD + 1) - 1, 0))
                trial = self._failures.ask()
            self.pending[trial.number] = trial
        return trial

    def settle(self, trial: Trial, outcome: Outcome) -> Stop | None:
        """Take in how an evaluation ended, and return why the run should end, if it should."""
        error = outcome.error
        with self._interrupts.held():
            counts = error is None
            if error is None:
                try:
                    self._tell(trial, outcome)
                except Settled:
                    self._overtaken(trial, outcome.value)
                    counts = False
                except InvalidInput as refused:  # a policy of the user's own may refuse numbers
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
        """End a run whose function returns what its policy never takes, before it costs more.

        Not one that has learned something: that goes on, and counts a failure.
        """
        policy = self.player.policy
        if outcome.std is None or self._learned_any or getattr(policy, "takes_std", False):
            return
        raise InvalidInput(
            f"the function returned (value, std), but {type(policy).__name__} has no use for the "
            "noise of single values: return the value alone, or use CalibratedUCB, the usual policy"
        )

    def _overtaken(self, trial: Trial, value: float) -> None:
        """Leave a trial alone that somebody else told or cancelled while it was evaluated here."""
        _log.warning(
            "trial %d was told or cancelled by somebody else while it was evaluated: its value "
            "here, %r, is dropped. To use it, add it at %r",
            trial.number,
            value,
            trial.params,
        )
        del self.pending[trial.number]
        self.n_told = self.player.n_told

    def _learned(self, trial: Trial) -> None:
        del self.pending[trial.number]
        self.n_told = self.player.n_told
        self._learned_any = True
        self._failures.succeeded(trial.params)
        if self.n_told >= self._next_checkpoint:
            self.checkpoint()
        self.tick()

    def tick(self) -> None:
        """Draw the meter, if that is due."""
        self._meter.show(self.n_told, self.n_failed)

    def all_made(self) -> Stop | None:
        """The end of a run that has as many values as were wanted."""
        if self.limits.n_evals is not None and self.n_told >= self.limits.n_evals:
            return Stop(DONE, True, "All evaluations were made.")
        return None

    def certified(self) -> Stop | None:
        """The end of a run whose certificate is within the tolerance, if it is due for a look."""
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
        """The end of a run whose time is up."""
        if self.seconds_left() <= 0.0:
            return Stop(TIME_UP, True, "The time is up.")
        return None

    def _called_off(self, trial: Trial, outcome: Outcome) -> bool:
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
            if not self.errors and not self._meter.shown:  # which counts failures
                _log.warning(
                    "an evaluation failed, with %s; the run goes on, and its result will say how "
                    "many did",
                    error_text(error),
                )
            if len(self.errors) < KEPT_ERRORS:
                self.errors.append(error)
            if len(self.failed_params) < KEPT_FAILURES:
                self.failed_params.append(trial.params)
            if optional.learns_failures(self.player.policy):
                with suppress(Settled):
                    self.player.fail(trial)
            else:
                self._failures.failed(trial.params, trial)
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
        """An executor takes no more work: keep what there is."""
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
        """Remember the answer of this moment."""
        best = self.player.recommend()
        certificate = self.player.certificate()
        self.checkpoints.append(
            Checkpoint(self.n_told, self.seconds, best.mean, best.lower, best.upper, certificate)
        )
        self._meter.know(best, certificate)
        self._next_checkpoint = max(self.n_told + 1, math.ceil(self.n_told * CHECKPOINT_FACTOR))

    def finish(self) -> int:
        """Give up what is pending, and return how many evaluations were still under way."""
        dropped = list(self.pending)
        for number in dropped:
            give_up(self.player, self.pending[number])
            del self.pending[number]
        self._failures.release()
        return len(dropped)


def one_at_a_time(run: Run, f: Function) -> Stop:
    """Evaluate here, in this thread."""
    while True:
        trial = run.ask()
        ended = run.settle(trial, outcome_of(f, trial.params))
        if ended is not None:
            return ended


def error_text(error: BaseException) -> str:
    """An error in a line, without a full stop."""
    text = " ".join(message_of(error).split()).rstrip(".")
    name = type(error).__name__
    return f"{name}: {text if len(text) <= 200 else text[:199] + '…'}" if text else name


def _hint(error: BaseException) -> str:
    text = f"{type(error).__name__} {message_of(error)}".lower()
    if "pickle" in text:
        return (
            ". Processes need a function defined at the top of a module, not a lambda or one "
            "inside a function"
        )
    if "keyword argument" in text or "positional argument" in text:
        return (
            ". A function of named parameters is called with them as keywords, as in f(lr=0.1, "
            "depth=3); of a list of bounds, with one array"
        )
    if "after shutdown" in text:
        return ". The executor had been shut down: give one that runs"
    return ". Call your function once by hand to see it"
