"""The state of a study: its log, replayed event by event.

An ask is replayed by asking the policy again. If the arithmetic is the same, it chooses the point
in the log. With another version of Partita or NumPy, or on another processor, it may not; then the
log takes precedence: the policy's own choice is cancelled and the trial is placed at the logged
point, which also becomes pending for the policy if it supports that. No value is lost, but later
asks may differ from those of a study that stayed where it was.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from partita._types import FloatArray
from partita.errors import InvalidInput, NumericalError
from partita.optimize import early
from partita.optimize.aggregates import as_count
from partita.optimize.bulk import Batch
from partita.optimize.contexts import Given
from partita.optimize.game import Game
from partita.optimize.optimizer import Optimizer
from partita.optimize.plans import Room, check_plans
from partita.optimize.trial import Trial
from partita.optimize.trials import FAILED, PENDING
from partita.optimize.values import Observation

from . import readings
from .events import BEGINNINGS, FIELDS, Event, Kind, as_data, data_of

_log = logging.getLogger(__name__)

#: The recommendation is recorded after the first number of values, and then each time their number
#: has grown by the second factor.
FIRST_LOOK, LOOK_FACTOR = 20, 2
#: Of a trial that reports nothing before its value.
NO_REPORTS: Mapping[int, float] = MappingProxyType({})


class Answer(NamedTuple):
    """The recommendation after `told` values, with its bounds and certificate."""

    told: int
    mean: float
    lower: float
    upper: float
    certificate: float


class Begun(NamedTuple):
    """A trial that has begun, and the event that records it."""

    trial: Trial
    event: Event


class State:
    """A study after the first `seq` events of its log.

    The methods that change it take checked arguments, and return the event to log.

    Attributes
    ----------
    optimizer
    seq
        The number of its last event.
    asked
        When each pending trial was asked for, in the order of the log.
    owners
        The runs that evaluate pending trials, by the number of the trial.
    expired
        Trials that expired and have no value since.
    differing
        The number of asks whose replay chose another point than the log has.
    answer
        The latest recorded recommendation. It is computed at the same events whenever the log is
        replayed, since policies may remember the best bound they have computed.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.seq = 0
        self.asked: dict[int, float] = {}
        self.owners: dict[int, int] = {}
        self.expired: set[int] = set()
        self.differing = 0
        #: Adds of the log that were made together, of which there are `_left` more to come.
        self._batch: list[tuple[FloatArray, Observation]] = []
        self._left = 0
        self.answer: Answer | None = None

    @property
    def game(self) -> Game:
        """The policy and its trials."""
        return self.optimizer.game

    # -- new events ----------------------------------------------------------------------------

    def ask(
        self, time: float, owner: int | None, given: Given | None = None, ahead: bool = False
    ) -> Begun:
        """Begin a trial where the policy chooses, with some coordinates given.

        One that is asked for `ahead` waits to be adopted.
        """
        fixed = None if given is None else given.coordinates
        number = self.game.ask(fixed)
        return self._begun(Kind.ASK, number, time, owner=owner, given=given, ahead=ahead)

    def plan(self, room: Room, time: float, owner: int | None) -> Begun:
        """Begin a row of a plan."""
        number = self.game.plan(room)
        count = self.game.ledger.planned[number]
        return self._begun(Kind.ASK, number, time, owner=owner, count=count)

    def expect(self, unit: FloatArray, time: float, owner: int | None) -> Begun:
        """Begin a trial at a point (D,) that the user chose."""
        return self._begun(Kind.EXPECT, self.game.expect(unit), time, owner=owner)

    def add(self, unit: FloatArray, seen: Observation, time: float) -> Begun:
        """Record a value known from elsewhere as a new trial."""
        return self._begun(Kind.ADD, self.game.add(unit, *seen), time, seen)

    def add_many(self, batch: Batch, time: float) -> list[Event]:
        """Take in many values known from elsewhere, together."""
        events, left = [], len(batch.values)
        rows = [None] * left if batch.measured is None else batch.measured.tolist()
        for number, (unit, value, std, count), measured in zip(
            self.game.add_many(batch), batch.rows(), rows, strict=True
        ):
            params = params_json(self.optimizer.space.decode(unit))
            self.seq += 1
            values = self.optimizer.constraints.named(measured)
            fields = {"values": values, "batch": left, "count": count if count > 1 else None}
            data = as_data(fields)
            point = _as_bytes(unit)
            events.append(
                Event(self.seq, Kind.ADD, number, time, value, params, point, std=std, data=data)
            )
            left -= 1
        self._look()
        return events

    def tell(
        self,
        number: int,
        seen: Observation,
        time: float,
        reports: Mapping[int, float] = NO_REPORTS,
    ) -> Event:
        """End a trial, pending or expired, with a value."""
        self.game.tell(number, *seen, reports)
        data = self._data(seen, reports)
        event = Event(self.seq + 1, Kind.TELL, number, time, seen.value, std=seen.std, data=data)
        return self._done(event)

    def prune(self, number: int, time: float, reports: Mapping[int, float]) -> Event:
        """End a trial, pending or expired, early."""
        expected = self.game.expected(reports)
        self.game.prune(number, expected, reports)
        told = None if expected is None else list(expected[:2])
        data = as_data({"reports": early.as_json(reports), "expected": told})
        return self._done(Event(self.seq + 1, Kind.PRUNE, number, time, data=data))

    def cancel(self, number: int, time: float, failed: bool = False) -> Event:
        """Cancel a pending trial, whose evaluation `failed` or was abandoned."""
        self._give_up(number, failed)
        data = as_data({"failed": True if failed else None})
        return self._done(Event(self.seq + 1, Kind.CANCEL, number, time, data=data))

    def _give_up(self, number: int, failed: bool) -> None:
        if failed:
            self.game.fail(number)
        else:
            self.game.cancel(number)

    def _data(
        self,
        seen: Observation | None,
        reports: Mapping[int, float],
        fixed: list[int] | None = None,
        count: int | None = None,
        ahead: bool = False,
    ) -> str | None:
        """What an event holds of an observation besides value and noise."""
        bare = not (reports or ahead) and fixed is None and count is None
        if bare and (seen is None or (seen.values is None and seen.count <= 1)):
            return None
        values = None if seen is None else self.optimizer.constraints.named(seen.values)
        if seen is not None and seen.count > 1:
            count = seen.count
        fields = {"reports": early.as_json(reports), "values": values}
        return as_data({**fields, "fixed": fixed, "count": count, "ahead": ahead or None})

    def expire(self, number: int, time: float) -> Event:
        """Cancel a trial that has been pending for too long."""
        self.game.cancel(number)
        return self._done(Event(self.seq + 1, Kind.EXPIRE, number, time))

    def adopt(self, number: int, time: float, owner: int | None) -> Event:
        """Assign a pending trial to another run."""
        return self._done(Event(self.seq + 1, Kind.ADOPT, number, time, owner=owner))

    def _begun(
        self,
        kind: Kind,
        number: int,
        time: float,
        seen: Observation | None = None,
        owner: int | None = None,
        given: Given | None = None,
        count: int | None = None,
        ahead: bool = False,
    ) -> Begun:
        trial, point = self.optimizer.trial(number, given), _as_bytes(self.game.ledger.unit(number))
        params = params_json({**trial.params, **trial.context} if trial.context else trial.params)
        value, std = (None, None) if seen is None else seen[:2]
        # The values of the coordinates are those of the point.
        fixed = None if given is None else sorted(given.coordinates)
        data = self._data(seen, {}, fixed, count, ahead)
        event = Event(self.seq + 1, kind, number, time, value, params, point, owner, std, data)
        return Begun(trial, self._done(event))

    def _done(self, event: Event) -> Event:
        """Update the bookkeeping after an event."""
        number, kind = event.trial, event.kind
        if kind in (Kind.ASK, Kind.EXPECT, Kind.ADOPT):
            self.asked.pop(number, None)  # adopted: it is among the newest now
            self.asked[number] = event.time
            if event.owner is not None:
                self.owners[number] = event.owner
        elif kind != Kind.ADD and self.game.ledger.state(number) != PENDING:
            self.asked.pop(number, None)
            self.owners.pop(number, None)
            self.expired.discard(number)
            if kind == Kind.EXPIRE and self.game.ledger.state(number) == FAILED:
                self.expired.add(number)
        self.seq = event.seq
        if event.value is not None:
            self._look()
        return event

    def _look(self) -> None:
        """Record the recommendation after a value, if it is due."""
        told, mark = self.optimizer.n_told, FIRST_LOOK
        while mark < told:
            mark *= LOOK_FACTOR
        if mark == told and not self.optimizer.contexts.names:  # else there are many answers
            with suppress(NumericalError):
                best = self.optimizer.recommend()
                self.answer = Answer(told, *best[2:], self.optimizer.certificate())

    # -- events of the log ---------------------------------------------------------------------

    def replay(self, event: Event) -> None:
        """Apply the next event of the log; refused if it is not a valid next event."""
        if event.seq != self.seq + 1:
            raise InvalidInput(f"event {self.seq + 1} is missing")
        try:
            kind = Kind(event.kind)
        except ValueError:
            raise InvalidInput(f"there is no kind {event.kind!r}") from None
        data = data_of(event, FIELDS.get(kind, ()))
        left = data.get("batch")
        if left is None or left != self._left:
            self.flush()
        number, following = event.trial, len(self.game.ledger) + len(self._batch)
        if left is not None:
            self._gather(event, left, following)
            return
        if kind in BEGINNINGS:
            if number != following:
                raise InvalidInput(f"trial {following} comes next")
            unit = readings.point(self.optimizer.space, event)
            self._replay_beginning(kind, number, unit, event)
        elif kind == Kind.TELL:
            self.optimizer.number_of(number, kind, also=self.expired)
            seen = readings.seen(self.optimizer, event)
            self.optimizer.check_part(number, seen, kind)
            self.game.tell(number, *seen, early.from_json(data.get("reports")))
        elif kind == Kind.PRUNE:
            self.optimizer.number_of(number, kind, also=self.expired)
            self.optimizer.check_no_row(number, kind)
            reports = early.from_json(data.get("reports"))
            expected = readings.expected(self.optimizer, event, data.get("expected"))
            self.game.prune(number, expected, reports)
        else:
            self.optimizer.number_of(number, kind)
            if kind != Kind.ADOPT:
                self._give_up(number, data.get("failed") is True)
        self._done(event)

    def _gather(self, event: Event, left: Any, following: int) -> None:
        """Keep an add until all that were made with it are there: policies learn them at once."""
        if type(left) is not int or left < 1:
            raise InvalidInput(f"its batch is {left!r:.40}")
        if event.trial != following:
            raise InvalidInput(f"trial {following} comes next")
        unit = readings.point(self.optimizer.space, event)
        readings.check_allowed(self.optimizer.space, event.trial, unit)
        self._batch.append((unit, readings.seen(self.optimizer, event)))
        self.seq, self._left = event.seq, left - 1
        if not self._left:
            self.flush()

    def flush(self) -> None:
        """Take in the adds that have been gathered: all of them, unless the log was cut."""
        if self._batch:
            units, seen = zip(*self._batch, strict=True)
            values = np.array([each.value for each in seen])
            stds = np.array([each.std for each in seen], dtype=float)
            counts = np.array([each.count for each in seen])
            many = counts if (counts > 1).any() else None
            measured = [each.values for each in seen if each.values is not None]
            known = np.array(measured) if measured else None
            self.game.add_many(Batch(np.array(units), values, stds, many, known))
            self._look()
        self._batch, self._left = [], 0

    def _replay_beginning(self, kind: Kind, number: int, unit: FloatArray, event: Event) -> None:
        game = self.game
        if kind == Kind.EXPECT:
            game.expect(unit)
        elif kind == Kind.ADD:
            readings.check_allowed(self.optimizer.space, number, unit)
            game.add(unit, *readings.seen(self.optimizer, event))
        elif game.ledger.mark(game.ask(readings.fixed(event, unit))) != unit.tobytes():
            readings.check_allowed(self.optimizer.space, number, unit)
            game.move(number, unit)
            if not self.differing:
                _log.warning(
                    "trial %d: the policy chooses another point than the one in the log, because "
                    "of another version or processor. The study continues with the logged points.",
                    number,
                )
            self.differing += 1
        count = data_of(event, FIELDS[kind]).get("count") if kind == Kind.ASK else None
        if count is not None:
            check_plans(game.policy, self.optimizer.constraints.names, None)
            game.repeat(number, as_count(count, "plan"))

    # -- questions -----------------------------------------------------------------------------

    def overdue(self, before: float) -> list[int]:
        """The pending trials that were asked for before a time, by the clocks of their processes.

        All are checked: clocks differ, so the times need not be in order.
        """
        return [number for number, time in self.asked.items() if time < before]


def params_json(params: Any) -> str:
    """Parameters as JSON, an object or a list."""
    return json.dumps(params.tolist() if isinstance(params, np.ndarray) else params)


def _as_bytes(unit: FloatArray) -> bytes:
    return unit.astype("<f8").tobytes()
