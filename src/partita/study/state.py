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
import math
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from partita._state import Saved, wholes
from partita._state import State as Data
from partita._types import FloatArray
from partita.errors import InvalidInput, NumericalError, StudyError
from partita.optimize.game import Game
from partita.optimize.optimizer import SAME_POINT, Optimizer, Trial
from partita.optimize.trials import FAILED, FINISHED, PENDING
from partita.optimize.values import Observation, as_std, as_value
from partita.policies import optional
from partita.policies.base import Policy

from .events import BEGINNINGS, Event, Kind, as_data, data_of

_log = logging.getLogger(__name__)

#: The answer is looked at after this many values, then each time there are this many times more.
FIRST_LOOK, LOOK_FACTOR = 20, 2


#: The fields that the data of an event may have: values by name, and whether a trial failed.
_DATA = {Kind.TELL: ("values",), Kind.ADD: ("values",), Kind.CANCEL: ("failed",)}


class Answer(NamedTuple):
    """The answer after `told` values, and how much better any other point could be."""

    told: int
    mean: float
    lower: float
    upper: float
    certificate: float


class Begun(NamedTuple):
    """A trial that has begun, and the event that says so."""

    trial: Trial
    event: Event


class State:
    """A study after the first `seq` events of its log.

    The methods that change it take checked numbers, points and values, and return what to log.

    Attributes
    ----------
    optimizer
    seq
        The last event that is in it.
    asked
        When each pending trial was asked for, in the order of the log.
    owners
        Runs that evaluate pending trials, by the number of the trial.
    expired
        Trials that expired and were not told since.
    differing
        Asks whose replay chose another point than the log has.
    answer
        The answer when the state looked last. It does so at the same moments whenever the log is
        replayed, since policies may remember the best bound they have seen.
    """

    def __init__(self, optimizer: Optimizer) -> None:
        self.optimizer = optimizer
        self.seq = 0
        self.asked: dict[int, float] = {}
        self.owners: dict[int, int] = {}
        self.expired: set[int] = set()
        self.differing = 0
        self.answer: Answer | None = None

    @property
    def game(self) -> Game:
        """The policy and its trials."""
        return self.optimizer.game

    # -- new events ----------------------------------------------------------------------------

    def ask(self, time: float, owner: int | None) -> Begun:
        """Begin a trial where the policy chooses."""
        return self._begun(Kind.ASK, self.game.ask(), time, owner=owner)

    def expect(self, unit: FloatArray, time: float, owner: int | None) -> Begun:
        """Begin a trial at a point (D,) chosen elsewhere."""
        return self._begun(Kind.EXPECT, self.game.expect(unit), time, owner=owner)

    def add(self, unit: FloatArray, seen: Observation, time: float) -> Begun:
        """Take in a value known from elsewhere."""
        return self._begun(Kind.ADD, self.game.add(unit, *seen), time, seen)

    def tell(self, number: int, seen: Observation, time: float) -> Event:
        """End a trial, pending or expired, with a value."""
        self.game.tell(number, *seen)
        data = self._data(seen)
        event = Event(self.seq + 1, Kind.TELL, number, time, seen.value, std=seen.std, data=data)
        return self._done(event)

    def cancel(self, number: int, time: float, failed: bool = False) -> Event:
        """Give up a pending trial, whose evaluation `failed` or was dropped."""
        self._give_up(number, failed)
        data = as_data({"failed": True if failed else None})
        return self._done(Event(self.seq + 1, Kind.CANCEL, number, time, data=data))

    def _give_up(self, number: int, failed: bool) -> None:
        if failed:
            self.game.fail(number)
        else:
            self.game.cancel(number)

    def _data(self, seen: Observation | None) -> str | None:
        """What an event holds of an observation besides value and noise."""
        if seen is None:
            return None
        return as_data({"values": self.optimizer.constraints.named(seen.values)})

    def expire(self, number: int, time: float) -> Event:
        """Give up a trial that has been pending for too long."""
        self.game.cancel(number)
        return self._done(Event(self.seq + 1, Kind.EXPIRE, number, time))

    def adopt(self, number: int, time: float, owner: int | None) -> Event:
        """Give a pending trial to another run."""
        return self._done(Event(self.seq + 1, Kind.ADOPT, number, time, owner=owner))

    def _begun(
        self,
        kind: Kind,
        number: int,
        time: float,
        seen: Observation | None = None,
        owner: int | None = None,
    ) -> Begun:
        trial, point = self.optimizer.trial(number), _as_bytes(self.game.ledger.unit(number))
        params = params_json(trial.params)
        value, std = (None, None) if seen is None else seen[:2]
        data = self._data(seen)
        event = Event(self.seq + 1, kind, number, time, value, params, point, owner, std, data)
        return Begun(trial, self._done(event))

    def _done(self, event: Event) -> Event:
        """Note what follows from an event, once the game has it."""
        number, kind = event.trial, event.kind
        if kind in (Kind.ASK, Kind.EXPECT, Kind.ADOPT):
            self.asked.pop(number, None)  # adopted: it is among the newest now
            self.asked[number] = event.time
            if event.owner is not None:
                self.owners[number] = event.owner
        elif kind != Kind.ADD:
            self.asked.pop(number, None)
            self.owners.pop(number, None)
            self.expired.discard(number)
            if kind == Kind.EXPIRE:
                self.expired.add(number)
        self.seq = event.seq
        if event.value is not None:
            self._look()
        return event

    def _look(self) -> None:
        """Note the answer after a value, now and then."""
        told, mark = self.optimizer.n_told, FIRST_LOOK
        while mark < told:
            mark *= LOOK_FACTOR
        if mark == told:
            with suppress(NumericalError):
                best = self.optimizer.recommend()
                self.answer = Answer(told, *best[2:], self.optimizer.certificate())

    # -- events of the log ---------------------------------------------------------------------

    def replay(self, event: Event) -> None:
        """Take in the next event of the log; refused if it cannot be that."""
        if event.seq != self.seq + 1:
            raise InvalidInput(f"event {self.seq + 1} is missing")
        try:
            kind = Kind(event.kind)
        except ValueError:
            raise InvalidInput(f"there is no kind {event.kind!r}") from None
        data = data_of(event, _DATA.get(kind, ()))  # what a later Partita wrote is refused
        number, following = event.trial, len(self.game.ledger)
        if kind in BEGINNINGS:
            if number != following:
                raise InvalidInput(f"trial {following} comes next")
            self._replay_beginning(kind, number, self._point(event), event)
        elif kind == Kind.TELL:
            self.optimizer.number_of(number, kind, also=self.expired)
            self.game.tell(number, *self._seen(event))
        else:
            self.optimizer.number_of(number, kind)
            if kind != Kind.ADOPT:
                self._give_up(number, data.get("failed") is True)
        self._done(event)

    def _replay_beginning(self, kind: Kind, number: int, unit: FloatArray, event: Event) -> None:
        game = self.game
        if kind == Kind.EXPECT:
            game.expect(unit)
        elif kind == Kind.ADD:
            self._check_allowed(number, unit)
            game.add(unit, *self._seen(event))
        elif game.ledger.mark(game.ask()) != unit.tobytes():
            self._check_allowed(number, unit)
            game.move(number, unit)
            if not self.differing:
                _log.warning(
                    "trial %d: the log has another point than the policy chooses now, under "
                    "another version or processor. The study goes on with the logged points.",
                    number,
                )
            self.differing += 1

    def _point(self, event: Event) -> FloatArray:
        """The point of an event that begins a trial, (D,)."""
        dim, data = self.optimizer.space.dim, event.point or b""
        if len(data) != 8 * dim:
            raise InvalidInput(f"its point has {len(data)} bytes, but there are {dim} coordinates")
        unit = np.frombuffer(data, dtype="<f8").astype(np.float64)
        if not ((unit >= 0.0) & (unit <= 1.0)).all():
            raise InvalidInput("its point lies outside the space")
        return unit

    def _seen(self, event: Event) -> Observation:
        """The value of an event and its noise, which the policy given now must take."""
        seen = Observation(as_value(event.value), as_std(event.std), self._values(event))
        if seen.std is not None and not self.game.takes_std:
            raise StudyError(
                f"the value of trial {event.trial} was told with std={seen.std!r}, but "
                f"{type(self.game.policy).__name__} has no use for the noise of single values: "
                "give the policy that the study was made with, or, if the file was edited, restore "
                "it from a copy"
            )
        return seen

    def _values(self, event: Event) -> tuple[float, ...] | None:
        """The values of the constrained quantities that an event has, if there are such."""
        values = data_of(event, _DATA[Kind.TELL]).get("values")
        constraints = self.optimizer.constraints
        if values is None and not constraints.names:
            return None
        return constraints.stored(values)

    def _check_allowed(self, number: int, unit: FloatArray) -> None:
        """Refuse a point of the log that the constraint given now does not allow."""
        space = self.optimizer.space
        if not space.feasible(unit[None, :])[0]:
            raise StudyError(
                f"feasible does not allow trial {number} of the study, at {space.decode(unit)!r}: "
                "give the constraint that it was made with, or begin another study"
            )

    # -- as plain data ---------------------------------------------------------------------------

    def as_data(self) -> Data | None:
        """All of it, for `restore`; None if the policy cannot say what has happened to it."""
        policy = optional.state(self.game.policy)
        if policy is None:
            return None
        answer = None if self.answer is None else dict(self.answer._asdict())
        return {
            "seq": self.seq,
            "ledger": self.game.ledger.as_data(),
            "policy_class": type(self.game.policy).__qualname__,
            "policy": policy,
            "asked": wholes(self.asked),
            "times": np.array(list(self.asked.values()), dtype=float),
            "owned": wholes(self.owners),
            "owners": wholes(self.owners.values()),
            "expired": wholes(sorted(self.expired)),
            "differing": self.differing,
            "answer": answer and {name: _number(value) for name, value in answer.items()},
        }

    def restore(self, data: Data) -> None:
        """Go on from what `as_data` returned, in a state that was made for the same settings."""
        saved, game = Saved(data, "snapshot"), self.game
        self.seq = saved.integer("seq")
        ledger, policy = game.ledger, game.policy
        ledger.restore(saved.part("ledger"))
        pending, trials = ledger.numbers(PENDING), len(ledger)
        self._check_points(saved, pending)
        saved.expect("policy_class", type(policy).__qualname__)
        policy.restore(data["policy"])
        if isinstance(policy, Policy):
            saved.require(policy.told == ledger.counts[FINISHED], "a value of each finished trial")
            saved.require(policy.pending <= len(pending), "a trial for each pending point")
        numbers = saved.numbers("asked", trials)
        saved.require(sorted(numbers) == pending, "a time for each pending trial")
        times = saved.floats("times", (len(numbers),)).tolist()
        self.asked = dict(zip(numbers, times, strict=True))
        owned = saved.numbers("owned", trials)
        owners = saved.wholes("owners", (len(owned),), -(2**62)).tolist()
        self.owners = dict(zip(owned, owners, strict=True))
        saved.require(self.owners.keys() <= self.asked.keys(), "owners of pending trials")
        self.expired = set(saved.numbers("expired", trials))
        saved.require(self.expired <= set(ledger.numbers(FAILED)), "expired trials that failed")
        self.differing = saved.integer("differing")
        if "answer" in saved:
            part = saved.part("answer")
            bounds = [part.real(name, -math.inf, math.inf) for name in Answer._fields[1:]]
            self.answer = Answer(part.integer("told"), *bounds)

    def _check_points(self, saved: Saved, pending: list[int]) -> None:
        """Refuse trials outside the space, and pending ones that its constraint does not allow."""
        space, units = self.optimizer.space, self.game.ledger.units
        away = np.abs(space.snap(units) - units) if len(units) else units
        saved.require((away <= SAME_POINT * np.maximum(1.0, np.abs(units))).all(), "valid trials")
        saved.require(space.feasible(units[pending]).all(), "pending trials that are allowed")

    # -- questions -----------------------------------------------------------------------------

    def overdue(self, before: float) -> list[int]:
        """Pending trials asked for before a time, by the clock of whoever asked for them.

        All are looked at: clocks differ, so that one may be stamped in the future.
        """
        return [number for number, time in self.asked.items() if time < before]


def _number(value: float) -> float | int:
    """A number of Python's own, whatever a policy of the user's returned."""
    return value if type(value) is int else float(value)


def params_json(params: Any) -> str:
    """Parameters as JSON, an object or a list."""
    return json.dumps(params.tolist() if isinstance(params, np.ndarray) else params)


def _as_bytes(unit: FloatArray) -> bytes:
    return unit.astype("<f8").tobytes()
