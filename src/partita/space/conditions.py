"""Conditional parameters in the unit cube: which are active at a point, and where the others stand.

Notation: n parameters, k points as rows (k, D). A parameter that is not active stands in the middle
of its range, 0.5 in each of its coordinates. So points that the function cannot tell apart are one
point: their values are replicates, and no candidate differs from another in nothing that counts.
What branches have in common keeps its coordinates in all of them, and so is learned from all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from partita._types import BoolArray, FloatArray, IntArray
from partita.errors import InvalidInput

from .choices import Categorical
from .parameters import Float, Integer, Stepped

Parameter: TypeAlias = Float | Integer | Stepped | Categorical

#: Each coordinate of a parameter that is not active.
MIDDLE = 0.5


class Condition(NamedTuple):
    """A parameter is active where its parent is active and has one of some values.

    Attributes
    ----------
    parent
        The place of the parent among the parameters.
    values
        Numbers of the parent's values, from 0 on, in order.
    """

    parent: int
    values: tuple[int, ...]


class Conditions:
    """When each parameter of a space is active, and what follows for points.

    Parameters
    ----------
    names, parameters
        As a `Space` has them. A name may stand for several parameters, of which one at most is
        active.
    conditions
        For each parameter, the conditions of which one must hold; none for one that is always
        active. Parents have finitely many values, and nothing is its own ancestor.

    Attributes
    ----------
    each
        The conditions, as given.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        parameters: tuple[Parameter, ...],
        conditions: tuple[tuple[Condition, ...], ...],
    ) -> None:
        self._names, self._parameters, self.each = names, parameters, conditions
        ends = np.cumsum([0, *(p.width for p in parameters)]).tolist()
        self._slices = list(pairwise(ends))
        self._order = _parents_first(conditions)
        self._is_parent = {c.parent for several in conditions for c in several}

    # -- points --------------------------------------------------------------------------------

    def active(self, units: FloatArray) -> BoolArray:
        """Which parameters are active at valid points (k, D), (k, n)."""
        active = np.zeros((len(units), len(self._parameters)), dtype=np.bool_)
        numbers: dict[int, IntArray] = {}
        for i in self._order:
            active[:, i] = self._holds(i, active, numbers)
            if i in self._is_parent:
                start, end = self._slices[i]
                numbers[i] = numbers_of(self._parameters[i], units[:, start:end])
        return active

    def _holds(self, i: int, active: BoolArray, numbers: Mapping[int, IntArray]) -> BoolArray:
        """Where a parameter is active, (k,), given all about its parents."""
        holds = np.full(len(active), not self.each[i])
        for parent, values in self.each[i]:
            for value in values:
                holds |= active[:, parent] & (numbers[parent] == value)
        return holds

    def settled(self, units: FloatArray) -> FloatArray:
        """Valid points (k, D) with what is not active in the middle; overwrites them."""
        active = self.active(units)
        for i, (start, end) in enumerate(self._slices):
            units[np.ix_(~active[:, i], np.arange(start, end))] = MIDDLE
        return units

    def stir(self, random: np.random.Generator, units: FloatArray, scale: FloatArray) -> FloatArray:
        """Points near valid ones (k, D), as `Space.stir`: parameters that are active move.

        Those that a move makes active are drawn at random: nothing says where they should stand.
        """
        before, k = self.active(units), len(units)
        varying = [i for i, (start, end) in enumerate(self._slices) if end > start]
        free = before[:, varying]
        chance = np.maximum(1 / free.sum(axis=1), random.random(k))
        moved = free & (random.random(free.shape) < chance[:, None])
        still = np.flatnonzero(~moved.any(axis=1))
        moved[still, np.argmax(free[still] * random.random((len(still), len(varying))), axis=1)] = 1
        place = {i: j for j, i in enumerate(varying)}
        out, active = units.copy(), np.zeros_like(before)
        numbers: dict[int, IntArray] = {}
        for i in self._order:
            active[:, i] = self._holds(i, active, numbers)
            start, end = self._slices[i]
            if i in place:
                rows = np.flatnonzero(moved[:, place[i]] & active[:, i])
                out[rows, start:end] = self._parameters[i].stir(
                    random, units[rows, start:end], scale[rows, start:end]
                )
                fresh = np.flatnonzero(active[:, i] & ~before[:, i])
                out[fresh, start:end] = random.random((len(fresh), end - start))
            if i in self._is_parent:
                numbers[i] = numbers_of(self._parameters[i], out[:, start:end])
        return out

    # -- parameters by name --------------------------------------------------------------------

    def decode(self, unit: FloatArray) -> dict[str, Any]:
        """Values of the parameters that are active at a point (D,)."""
        row, chosen, values = unit.tolist(), dict[int, int](), dict[int, Any]()
        for i in self._order:
            if self._is_active(i, chosen):
                start, end = self._slices[i]
                values[i] = self._parameters[i].decode(row[start:end])
                if i in self._is_parent:
                    chosen[i] = self._number(i, row[start:end])
        return {self._names[i]: values[i] for i in sorted(values)}

    def _number(self, i: int, coordinates: list[float]) -> int:
        """The number of the value of a parameter at its coordinates."""
        return int(numbers_of(self._parameters[i], np.array([coordinates]))[0])

    def encode(self, params: Mapping[str, Any]) -> FloatArray:
        """The point (D,) at values of exactly the parameters that are active."""
        unit = np.full(self._slices[-1][1], MIDDLE)
        chosen: dict[int, int] = {}
        missing, used = [], []
        for i in self._order:
            if not self._is_active(i, chosen):
                continue
            name, (start, end) = self._names[i], self._slices[i]
            used.append(name)
            if name not in params:  # nor is known what depends on it
                missing.append(name)
                continue
            unit[start:end] = coordinates = self._parameters[i].encode(params[name], name)
            if i in self._is_parent:
                chosen[i] = self._number(i, coordinates)
        extra = [name for name in params if name not in used]
        if missing or extra:
            raise InvalidInput(f"{dict(params)!r}: {self._why(params, extra, missing, used)}")
        return unit + 0.0

    def filled(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """A row of a table without the entries that are empty and not active: None, NaN or NA."""
        used: set[str] = set()
        chosen: dict[int, int] = {}
        for i in self._order:
            if not self._is_active(i, chosen):
                continue
            used.add(self._names[i])
            if i in self._is_parent and self._names[i] in row:
                coordinates = self._parameters[i].encode(row[self._names[i]], self._names[i])
                chosen[i] = self._number(i, coordinates)
        return {name: value for name, value in row.items() if name in used or not _is_empty(value)}

    def active_in(self, params: Mapping[str, Any]) -> BoolArray:
        """Which parameters are active, (n,), given the values of those that are."""
        return np.asarray(self.active(self.encode(params)[None, :])[0])

    def changed(
        self, params: Mapping[str, Any], name: str, value: Any, others: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Parameters with another value of one, and with what that makes active.

        New ones are as in the first of `others` that has them and this value, or in the middle.
        """
        before, chosen, after = self.active_in(params), dict[int, int](), dict[str, Any]()
        alike = [(other, self.active_in(other)) for other in others if other.get(name) == value]
        for i in self._order:
            if not self._is_active(i, chosen):
                continue
            own, parameter = self._names[i], self._parameters[i]
            if own == name:
                after[own] = value
            elif before[i]:
                after[own] = params[own]
            else:
                middle = parameter.decode([MIDDLE] * parameter.width)
                after[own] = next((other[own] for other, has in alike if has[i]), middle)
            if i in self._is_parent:
                chosen[i] = self._number(i, parameter.encode(after[own], own))
        return {own: after[own] for own in dict.fromkeys(self._names) if own in after}

    def _why(
        self, params: Mapping[str, Any], extra: list[str], missing: list[str], used: list[str]
    ) -> str:
        """What is wrong with names, and which to give."""
        unknown = [name for name in extra if name not in self._names]
        wrong = [f"there is no parameter {', '.join(map(repr, unknown))}"] if unknown else []
        if missing:
            wrong.append(f"{', '.join(missing)} is missing")
        parents = [name for i, name in enumerate(self._names) if i in self._is_parent]
        unclear = [name for name in missing if name in parents]
        if unclear:
            names = ", ".join(unclear)
            return f"{' and '.join(wrong)}. Give {', '.join(used)}, and what goes with {names}"
        wrong += [
            f"{name} is not active here, only {self._when(name)}"
            for name in extra
            if name in self._names
        ]
        chosen = ", ".join(
            f"{name}={params[name]!r}" for name in dict.fromkeys(parents) if name in params
        )
        return f"{' and '.join(wrong)}. Give exactly {', '.join(used)} with {chosen}"

    def _when(self, name: str) -> str:
        """When a parameter of a name is active, whichever it is."""
        places = [i for i, other in enumerate(self._names) if other == name]
        return " or ".join(dict.fromkeys(self.when(i) for i in places))

    def when(self, i: int) -> str:
        """When a parameter is active, for a reader; nothing if always."""
        texts = []
        for parent, values in self.each[i]:
            of = self._parameters[parent]
            shown = " or ".join(repr(value_of(of, number)) for number in values)
            texts.append(f"if {self._names[parent]} is {shown}")
        return " or ".join(texts)

    # -- finite spaces -------------------------------------------------------------------------

    @cached_property
    def size(self) -> int | None:
        """The number of points that differ in what is active; None if not finite."""
        sizes = [parameter.size for parameter in self._parameters]
        if None in sizes:
            return None
        # How many ways there are to have these parameters active, and all before settled.
        ways: dict[frozenset[int], int] = {frozenset(self._roots): 1}
        for i in self._order:
            after: dict[frozenset[int], int] = {}
            for waiting, count in ways.items():
                for left, times in self._settle(i, waiting):
                    after[left] = after.get(left, 0) + count * times
            ways = after
        return sum(ways.values())

    @property
    def _roots(self) -> list[int]:
        return [i for i, several in enumerate(self.each) if not several]

    def _settle(self, i: int, waiting: frozenset[int]) -> Iterator[tuple[frozenset[int], int]]:
        """What is active after parameter i, and in how many ways, if those `waiting` are now."""
        if i not in waiting:
            yield waiting, 1
        elif i not in self._is_parent:
            yield waiting - {i}, self._parameters[i].size or 1
        else:
            for number in range(self._parameters[i].size or 1):
                yield (waiting - {i}) | self._children(i, number), 1

    def _children(self, i: int, number: int) -> set[int]:
        """The parameters that a value of parameter i makes active."""
        return {
            child
            for child, several in enumerate(self.each)
            if any(c.parent == i and number in c.values for c in several)
        }

    def grid(self) -> FloatArray:
        """All points of a finite space, (size, D)."""
        return np.concatenate([self._points(chosen) for chosen in self._structures()])

    def _structures(self) -> Iterator[dict[int, int]]:
        """The numbers of the values of all active parents, in every way there is."""
        parents = [i for i in self._order if i in self._is_parent]

        def more(chosen: dict[int, int], rest: list[int]) -> Iterator[dict[int, int]]:
            if not rest:
                yield chosen
            elif not self._is_active(rest[0], chosen):
                yield from more(chosen, rest[1:])
            else:
                for number in range(self._parameters[rest[0]].size or 1):
                    yield from more({**chosen, rest[0]: number}, rest[1:])

        return more({}, parents)

    def examples(self) -> Iterator[dict[str, Any]]:
        """Values of the active parameters, for every way to choose branches."""
        for chosen in self._structures():
            unit = np.full(self._slices[-1][1], MIDDLE)
            for i, number in chosen.items():
                start, end = self._slices[i]
                unit[start:end] = self._parameters[i].grid()[number]
            yield self.decode(unit)

    def _is_active(self, i: int, chosen: Mapping[int, int]) -> bool:
        """Whether a parameter is active, given the numbers of the values of active parents."""
        return not self.each[i] or any(chosen.get(c.parent) in c.values for c in self.each[i])

    def _points(self, chosen: Mapping[int, int]) -> FloatArray:
        """All points (m, D) where parents have these values and no others are active."""
        sides = []
        for i, parameter in enumerate(self._parameters):
            if i in chosen:
                sides.append(parameter.grid()[chosen[i] : chosen[i] + 1])
            elif i not in self._is_parent and self._is_active(i, chosen):
                sides.append(parameter.grid())
            else:
                sides.append(np.full((1, parameter.width), MIDDLE))
        which = np.indices([len(side) for side in sides]).reshape(len(sides), -1)
        return np.concatenate([s[j] for s, j in zip(sides, which, strict=True)], axis=1)


def _is_empty(value: Any) -> bool:
    """Whether an entry of a table stands for nothing."""
    if value is None or type(value).__name__ == "NAType":  # that of pandas
        return True
    return isinstance(value, float) and math.isnan(value)


def numbers_of(parameter: Parameter, rows: FloatArray) -> IntArray:
    """Numbers from 0 of the values of a parameter nearest to rows (k, w), (k,)."""
    if isinstance(parameter, Categorical) and parameter.width > 1:
        return np.asarray(np.argmax(rows, axis=1), dtype=np.int64)
    if not parameter.width:
        return np.zeros(len(rows), dtype=np.int64)
    if isinstance(parameter, Categorical):
        return (rows[:, 0] > 0.5).astype(np.int64)
    assert not isinstance(parameter, Float), "parents have finitely many values"
    snapped = parameter.snap(rows)[:, 0]
    if isinstance(parameter, Integer) and parameter.log:
        return np.array([parameter.decode([u]) - parameter.low for u in snapped], dtype=np.int64)
    return np.rint(snapped * (parameter.size - 1)).astype(np.int64)


def value_of(parameter: Parameter, number: int) -> Any:
    """The value of a number from 0, of a parameter that has finitely many."""
    if isinstance(parameter, Categorical):
        return parameter.choices[number]
    if isinstance(parameter, Integer):
        return parameter.low + parameter.step * number
    assert isinstance(parameter, Stepped)
    return parameter.decode([number / (parameter.size - 1)])


def _parents_first(conditions: tuple[tuple[Condition, ...], ...]) -> list[int]:
    """Places of parameters, each after all its parents and else soon after the last of them."""
    children: list[list[int]] = [[] for _ in conditions]
    for i, several in enumerate(conditions):
        for condition in several:
            children[condition.parent].append(i)
    order: list[int] = []
    seen: set[int] = set()

    def visit(i: int) -> None:
        if i not in seen:
            seen.add(i)
            for child in reversed(children[i]):
                visit(child)
            order.append(i)

    for i in reversed(range(len(conditions))):
        if not conditions[i]:
            visit(i)
    order.reverse()
    assert len(order) == len(conditions), "every parameter is active somewhere"
    return order
