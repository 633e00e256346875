"""Categorical parameters of a search space: any objects ↔ coordinates in [0, 1].

The notation and the methods are those of `parameters`.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from partita._types import FloatArray
from partita.errors import InvalidInput

Generator = np.random.Generator

#: The largest number of choices. Each is a coordinate, and with more nothing could be learned.
MOST_CHOICES = 64


@dataclass(frozen=True, eq=False)
class Categorical:
    """One of several choices, any objects.

    Two choices have one coordinate, 0 or 1; more have one each, of which one is 1 (one-hot).
    """

    choices: tuple[Any, ...]

    def __post_init__(self) -> None:
        """Refuse an empty list, too many choices, and duplicates."""
        object.__setattr__(self, "choices", tuple(self.choices))
        if not self.choices:
            raise InvalidInput("the list of choices is empty: give at least one")
        if len(self.choices) > MOST_CHOICES:
            raise InvalidInput(
                f"{len(self.choices):,} choices: give at most {MOST_CHOICES}, since each is a "
                'coordinate of its own. Number them if they are in order, (0, n, "int"), or group '
                "them"
            )
        for i, choice in enumerate(self.choices):
            for other in self.choices[:i]:
                if _alike(other, choice):
                    raise InvalidInput(f"the choice {choice!r} is given twice: give each once")

    @property
    def size(self) -> int:
        """The number of choices."""
        return len(self.choices)

    @property
    def width(self) -> int:
        """The number of coordinates: 0 for one choice, 1 for two, else one per choice."""
        return len(self.choices) if len(self.choices) > 2 else len(self.choices) - 1

    def decode(self, coordinates: list[float]) -> Any:
        """The choice (the object itself) nearest to the given coordinates."""
        if len(coordinates) < 2:
            return self.choices[1 if coordinates and coordinates[0] > 0.5 else 0]
        return self.choices[coordinates.index(max(coordinates))]

    def encode(self, value: Any, name: str) -> list[float]:
        """The coordinates of a choice."""
        return [float(x) for x in self.grid()[self.number(value, name)]]

    def number(self, value: Any, name: str) -> int:
        """The index of a choice."""
        # True, 1 and 1.0 are equal, so choices of the same type are compared first.
        for alike in (operator.is_, _alike, _equal):
            for i, choice in enumerate(self.choices):
                if alike(choice, value):
                    return i
        raise InvalidInput(f"{name}={value!r}: give one of {_some(self.choices)}")

    def snap(self, rows: FloatArray) -> FloatArray:
        """Move each row to its nearest choice."""
        if rows.shape[1] < 2:
            return (rows > 0.5).astype(np.float64)
        snapped = np.zeros_like(rows)
        snapped[np.arange(len(rows)), np.argmax(rows, axis=1)] = 1.0
        return snapped

    spread = snap

    def stir(self, random: Generator, rows: FloatArray, scale: FloatArray) -> FloatArray:
        """Move each row to another choice, all with the same probability."""
        if self.width == 1:
            return 1.0 - rows
        away = random.integers(1, self.size, size=len(rows))
        return np.asarray(self.grid()[(np.argmax(rows, axis=1) + away) % self.size])

    def grid(self) -> FloatArray:
        """Coordinates of all choices, (size, width)."""
        if self.width > 1:
            return np.eye(self.size)
        return np.arange(float(self.size))[:, None][:, : self.width]

    def spec(self) -> Any:
        """The specification of this parameter, as JSON data that `specs` reads."""
        return {"choices": list(self.choices)}

    def describe(self) -> str:
        """A description of the choices for users."""
        if tuple(map(repr, self.choices)) == ("False", "True"):
            return "True or False"
        return f"one of {_some(self.choices)}"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Categorical):
            return NotImplemented
        return self.size == other.size and all(map(_alike, self.choices, other.choices))

    def __hash__(self) -> int:
        return hash((Categorical, self.size))


def _alike(one: Any, other: Any) -> bool:
    """Whether two objects are identical, or equal and of the same type."""
    return one is other or (type(one) is type(other) and _equal(one, other))


def _equal(one: Any, other: Any) -> bool:
    """Whether two objects are equal, whatever their comparison does."""
    try:
        return bool(np.all(one == other))
    except Exception:  # comparing users' objects may raise anything
        return False


def _some(choices: tuple[Any, ...]) -> str:
    shown = ", ".join(map(repr, choices[:8]))
    return shown if len(choices) <= 8 else f"{shown}, … ({len(choices)} choices)"
