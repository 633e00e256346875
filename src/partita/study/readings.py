"""What the events of a log hold, checked: points, values, and coordinates that were fixed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from partita._types import FloatArray
from partita.errors import InvalidInput, StudyError
from partita.optimize.values import Observation, as_std, as_value

from .events import FIELDS, Event, Kind, data_of

if TYPE_CHECKING:
    from partita.optimize.optimizer import Optimizer
    from partita.space import Space


def expected(optimizer: Optimizer, event: Event, given: Any) -> Observation | None:
    """What a pruned trial was expected to have."""
    if given is None:
        return None
    if not isinstance(given, list) or len(given) != 2 or given[1] is None:
        raise InvalidInput(f"what was expected is {given!r:.40}")
    value, std = as_value(given[0]), as_std(given[1])
    return seen(optimizer, event._replace(value=value, std=std))


def fixed(event: Event, unit: FloatArray) -> dict[int, float] | None:
    """The coordinates of a point (D,) that an ask had been given."""
    numbers = data_of(event, FIELDS[Kind.ASK]).get("fixed")
    if numbers is None:
        return None
    whole = isinstance(numbers, list) and all(type(number) is int for number in numbers)
    if not whole or not numbers or sorted(set(numbers)) != numbers:
        raise InvalidInput(f"the coordinates that were fixed are {numbers!r:.40}")
    if not 0 <= numbers[0] <= numbers[-1] < len(unit):
        raise InvalidInput(f"there are no coordinates {numbers!r:.40}")
    return {number: float(unit[number]) for number in numbers}


def point(space: Space, event: Event) -> FloatArray:
    """The point of an event that begins a trial, (D,)."""
    dim, data = space.dim, event.point or b""
    if len(data) != 8 * dim:
        raise InvalidInput(f"its point has {len(data)} bytes, but there are {dim} coordinates")
    unit = np.frombuffer(data, dtype="<f8").astype(np.float64)
    if not ((unit >= 0.0) & (unit <= 1.0)).all():
        raise InvalidInput("its point is outside the space")
    return unit


def seen(optimizer: Optimizer, event: Event) -> Observation:
    """The value and the noise of an event; the given policy must be able to use the noise."""
    given = Observation(as_value(event.value), as_std(event.std), _values(optimizer, event))
    count = data_of(event, FIELDS[Kind(event.kind)]).get("count")
    if count is not None:
        return optimizer.observation(given.value, given.std, event.kind, count)
    if given.std is not None and not optimizer.game.takes_std:
        raise StudyError(
            f"the value of trial {event.trial} was reported with std={given.std!r}, but "
            f"{type(optimizer.game.policy).__name__} does not use the noise of single values: "
            "give the policy that the study was made with, or, if the file was edited, restore "
            "it from a backup"
        )
    return given


def _values(optimizer: Optimizer, event: Event) -> tuple[float, ...] | None:
    """The values of the constrained quantities that an event has, if there are such."""
    if event.kind == Kind.PRUNE:  # it ended before there were any
        return None
    values = data_of(event, FIELDS[Kind(event.kind)]).get("values")
    constraints = optimizer.constraints
    if values is None and not constraints.names:
        return None
    return constraints.stored(values)


def check_allowed(space: Space, number: int, unit: FloatArray) -> None:
    """Refuse a point of the log that the constraint given now does not allow."""
    if not space.feasible(unit[None, :])[0]:
        raise StudyError(
            f"feasible does not allow trial {number} of the study, at {space.decode(unit)!r}: "
            "give the constraint that it was made with, or create another study"
        )
