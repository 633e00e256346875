"""The state of a study: its log, replayed event by event.

An ask is replayed by asking the policy again. It then chooses the point that the log has, if the
arithmetic is the same. Where it is not, under another version of Partita or NumPy or on another
processor, the log is right: the policy's own choice is cancelled and the trial is at the logged
point, pending for the policy too if it can take that in. Nothing told is lost by that, but asks
that follow may differ from those of a study that never moved.
"""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from partita._types import FloatArray
from partita.errors import InvalidInput, NotPending, NumericalError, StudyError
from partita.optimize.optimizer import Optimizer, Trial, as_value
from partita.optimize.trials import FINISHED, PENDING

from .store import Event

_log = logging.getLogger(__name__)

#: What is known is looked at after so many values, then each time there are so many times more.
FIRST_LOOK, LOOK_FACTOR = 20, 2


class Known(NamedTuple):
    """What was known after so many values, of the best point and of all others."""

    told: int
    mean: float
    lower: float
    upper: float
    certificate: float


class State:
    """What is known after so many events of the log.

    Attributes
    ----------
    optimizer
    seq
        The last event that is in it.
    asked
        When each pending trial was asked for, oldest first.
    owners
        Runs that evaluate pending trials, by the number of the trial.
    expired
        Trials that expired and were not told since.
    differing
        Asks whose replay chose another point than the log has.
    known
        What was known when the state looked last. It does so at the same moments whenever the log
        is replayed, since policies may remember the best bound they have seen.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.seq = 0
        self.asked: dict[int, float] = {}
        self.owners: dict[int, int] = {}
        self.expired: set[int] = set()
        self.differing = 0
        self.known: Known | None = None

    # -- new events ----------------------------------------------------------------------------

    def ask(self, time: float, owner: int | None) -> tuple[Trial, Event]:
        """The next trial, and the event that it is."""
        trial = self.optimizer.ask()
        self._pend(trial.number, time, owner)
        self.seq += 1
        return trial, self._begun("ask", trial, time, owner)

    def expect(self, params: Any, time: float, owner: int | None) -> tuple[Trial, Event]:
        """A trial at parameters chosen elsewhere, and the event that it is."""
        trial = self.optimizer.expect(params)
        self._pend(trial.number, time, owner)
        self.seq += 1
        return trial, self._begun("expect", trial, time, owner)

    def _begun(self, kind: str, trial: Trial, time: float, owner: int | None) -> Event:
        unit = self.optimizer._ledger.unit(trial.number)
        params = params_json(trial.params)
        return Event(self.seq, kind, trial.number, time, None, params, _as_bytes(unit), owner)

    def add(self, params: Any, value: float, time: float) -> Event:
        """Take in a value known from elsewhere."""
        number = self.optimizer.add(params, value)
        self.seq += 1
        self._look()
        unit = self.optimizer._ledger.unit(number)
        params = self.optimizer.space.decode(unit)
        return Event(
            self.seq, "add", number, time, value, params_json(params), _as_bytes(unit), None
        )

    def settle(
        self,
        kind: str,
        number: int,
        time: float,
        value: float | None = None,
        owner: int | None = None,
    ) -> Event:
        """Tell, cancel, expire or adopt a trial that `pending_number` has checked."""
        event = Event(self.seq + 1, kind, number, time, value, owner=owner)
        self.replay(event)
        return event

    # -- events of the log ---------------------------------------------------------------------

    def replay(self, event: Event) -> None:
        """Take in the next event of the log; refused if it cannot be that."""
        _, kind, number, time, value, _, point, owner = event
        if event.seq != self.seq + 1:
            raise InvalidInput(f"event {self.seq + 1} is missing")
        if kind == "ask":
            self._replay_ask(event, _from_bytes(point))
            self._pend(number, time, owner)
        elif kind == "expect":
            trial = self.optimizer._expect_at(_from_bytes(point))
            if trial.number != number:
                raise InvalidInput(f"trial {trial.number} comes next")
            self._pend(number, time, owner)
        elif kind == "tell":
            self._tell(number, as_value(value))
            self._look()
        elif kind in ("cancel", "expire"):
            self.optimizer.cancel(number)
            self._unpend(number)
            if kind == "expire":
                self.expired.add(number)
        elif kind == "add":
            self._take(number, _from_bytes(point), as_value(value))
            self._look()
        elif kind == "adopt":
            if number not in self.asked:
                raise NotPending(f"trial {number} is not pending")
            self._pend(number, time, owner)
        else:
            raise InvalidInput(f"there is no kind {kind!r}")
        self.seq = event.seq

    def _replay_ask(self, event: Event, unit: FloatArray) -> None:
        optimizer = self.optimizer
        trial = optimizer.ask()
        if trial.number != event.trial:
            raise InvalidInput(f"trial {trial.number} comes next")
        own = optimizer._ledger.unit(trial.number)
        if own.tobytes() == unit.tobytes():
            return
        self._check_allowed(event.trial, unit)
        optimizer.policy.cancel(own)
        hear = getattr(optimizer.policy, "expect", None)  # a policy of the user's own may lack it
        if hear is not None:
            hear(unit)
        optimizer._ledger.move(trial.number, unit)
        if not self.differing:
            _log.warning(
                "trial %d: the log has another point than the policy chooses now, under another "
                "version or processor. The study goes on with the logged points.",
                event.trial,
            )
        self.differing += 1

    def _tell(self, number: int, value: float) -> None:
        if number not in self.expired:
            self.optimizer.tell(number, value)
            self._unpend(number)
            return
        # Late, but as good as any other value: to the policy it is one it had not asked for.
        optimizer = self.optimizer
        optimizer.policy.tell(optimizer._ledger.unit(number), optimizer._sign * value)
        optimizer._ledger.settle(number, FINISHED, value)
        self.expired.remove(number)

    def _take(self, number: int, unit: FloatArray, value: float) -> None:
        """Replay an add."""
        self._check_allowed(number, unit)
        optimizer = self.optimizer
        optimizer.policy.tell(unit, optimizer._sign * value)
        if optimizer._ledger.append(unit, PENDING) != number:
            raise InvalidInput(f"trial {len(optimizer._ledger) - 1} comes next")
        optimizer._ledger.settle(number, FINISHED, value)

    def _check_allowed(self, number: int, unit: FloatArray) -> None:
        """Refuse a point of the log that the constraint given now does not allow."""
        space = self.optimizer.space
        if not space.feasible(unit[None, :])[0]:
            raise StudyError(
                f"feasible does not allow trial {number} of the study, at {space.decode(unit)!r}: "
                "give the constraint that it was made with, or begin another study"
            )

    def _look(self) -> None:
        """After a value: see what is known, now and then."""
        told, mark = self.optimizer.n_told, FIRST_LOOK
        while mark < told:
            mark *= LOOK_FACTOR
        if mark == told:
            with suppress(NumericalError):
                best = self.optimizer.recommend()
                self.known = Known(told, *best[2:], self.optimizer.certificate())

    def _pend(self, number: int, time: float, owner: int | None) -> None:
        self.asked.pop(number, None)  # adopted: it is among the newest now
        self.asked[number] = time
        if owner is not None:
            self.owners[number] = owner

    def _unpend(self, number: int) -> None:
        self.asked.pop(number, None)
        self.owners.pop(number, None)

    # -- checks --------------------------------------------------------------------------------

    def pending_number(self, trial: Trial | int, verb: str) -> int:
        """The number of a trial that may be told or cancelled; an expired one may."""
        given: Any = trial.number if isinstance(trial, Trial) else trial
        whole = isinstance(given, int | np.integer) and not isinstance(given, bool)
        if whole and int(given) in self.expired:
            self.optimizer._check_origin(trial, int(given), verb)
            return int(given)
        return self.optimizer._pending_number(trial, verb)

    def overdue(self, before: float) -> list[int]:
        """Pending trials asked for before a time, but for those of a clock that was put back."""
        found = []
        for number, time in self.asked.items():
            if time >= before:
                break
            found.append(number)
        return found


def params_json(params: Any) -> str:
    """Parameters as JSON, an object or a list."""
    return json.dumps(params.tolist() if isinstance(params, np.ndarray) else params)


def _as_bytes(unit: FloatArray) -> bytes:
    return unit.astype("<f8").tobytes()


def _from_bytes(point: bytes | None) -> FloatArray:
    return np.frombuffer(point or b"", dtype="<f8").astype(np.float64)
