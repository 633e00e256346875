"""Contexts and fixed values: which coordinates of a point are given, and which are to be chosen.

A space with contexts is one space of both, whose last parameters are the contexts. To ask for a
context is to ask with those coordinates fixed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from partita._types import FloatArray
from partita.errors import InvalidInput
from partita.space import Space
from partita.space.parameters import Float
from partita.space.space import space_of

from .bulk import is_column, is_frame

#: The policy sees a real context as the middle of one of this many parts of its range, so that
#: values for almost the same context count as replicates. The record keeps it as it is.
PARTS = 32
#: Random points by which it is seen whether a parameter of a branch is active.
TRIED = 32


class Given(NamedTuple):
    """Coordinates {number: value} of the unit cube that are fixed, and values by name."""

    coordinates: dict[int, float]
    values: dict[Any, Any]


def read_contexts(space: Space, context: Any) -> Contexts:
    """The space of the parameters and, after them, of the contexts, and which they are.

    `context` is a dict like a space, or names of parameters that the space has already; None for
    no context.
    """
    if context is None:
        return Contexts(space)
    if space.names is None:
        raise InvalidInput(
            'context is for spaces with names: give the space as a dict, such as {"x": (0, 1)}'
        )
    if isinstance(context, list | tuple) and context:
        _check_names(space, context)
        return Contexts(space, tuple(context))
    if not isinstance(context, Mapping) or not context:
        raise InvalidInput(
            f"context={context!r}: give a dict of what is known before each trial, such as "
            '{"hour": (0, 24), "segment": ["new", "old"]}'
        )
    contexts = Space(dict(context))
    if contexts.conditions is not None:
        raise InvalidInput(
            f"context={dict(context)!r}: a context cannot have branches. Give each part as a "
            "context of its own"
        )
    names = contexts.names or ()
    twice = [name for name in names if name in space.names]
    if twice:
        raise InvalidInput(
            f"context={dict(context)!r}: {', '.join(twice)} is also a parameter. Rename one"
        )
    conditions = () if space.conditions is None else space.conditions.each
    if conditions:
        conditions = (*conditions, *((),) * len(names))
    parameters = (*space.parameters, *contexts.parameters)
    both = space_of((*space.names, *names), parameters, space.constraint, None, conditions)
    return Contexts(both, names)


def _check_names(space: Space, names: Sequence[Any]) -> None:
    """Refuse names of contexts that are not parameters, belong to branches, or are all there is."""
    own = list(space.names or ())
    for name in names:
        if own.count(name) != 1:
            raise InvalidInput(f"context={list(names)!r}: there is no parameter {name!r}")
        if space.conditions is not None and space.conditions.each[own.index(name)]:
            raise InvalidInput(f"context={list(names)!r}: {name} is a parameter of a branch")
    if len(set(names)) < len(names) or len(names) == len(own):
        raise InvalidInput(
            f"context={list(names)!r}: name each once, and leave a parameter to be chosen"
        )


@dataclass(frozen=True)
class Contexts:
    """Which parameters of a space are the context, by name; none if `names` is empty."""

    space: Space
    names: tuple[str, ...] = ()

    def split(self, params: Any) -> tuple[Any, dict[str, Any] | None]:
        """The parameters without the context, and the context, None if there is none."""
        if not self.names:
            return params, None
        action = {name: value for name, value in params.items() if name not in self.names}
        return action, {name: params[name] for name in self.names}

    def joined(self, params: Any, context: Any, verb: str) -> Any:
        """Parameters together with their context.

        For many, `params` is a list of dicts, a dict of columns or a data frame, and `context` a
        list of dicts, a dict of columns, or one dict for all.
        """
        if context is None:
            missing = [n for n in self.names if not isinstance(params, Mapping) or n not in params]
            if missing:
                raise self._missing(missing, verb)
            return params
        if isinstance(params, list | tuple):
            return self.joined_rows(params, context, verb)
        if is_frame(params):
            params = {str(name): params[name] for name in params.columns}
        if not isinstance(params, Mapping):
            raise InvalidInput(
                f"{verb}(..., context=...): give the parameters as a dict, or for many as a list "
                "of dicts, a dict of columns or a data frame"
            )
        lengths = [len(column) for column in params.values() if is_column(column)]
        if lengths:
            context = self._columns(context, lengths[0], verb)
        self._check(context, verb)
        both = [name for name in context if name in params]
        if both:
            raise InvalidInput(
                f"{verb}({dict(params)!r:.200}, context={dict(context)!r:.200}): "
                f"{', '.join(both)} is given twice. Give it in the context only"
            )
        return {**params, **context}

    def joined_rows(self, params: Sequence[Any], context: Any, verb: str) -> list[Any]:
        """A list of parameters, each with its context; a single context is that of all."""
        if isinstance(context, Mapping) and any(map(is_column, context.values())):
            columns = self._columns(context, len(params), verb)
            context = [
                dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
            ]
        if not isinstance(context, list | tuple):
            return [self.joined(row, context, verb) for row in params]
        if len(context) != len(params):
            raise InvalidInput(
                f"{verb}: there are {len(params):,} rows of parameters but {len(context):,} "
                "contexts: give one context for each row, or one dict for all"
            )
        return [self.joined(row, one, verb) for row, one in zip(params, context, strict=True)]

    def _columns(self, context: Any, number: int, verb: str) -> dict[str, list[Any]]:
        """A list of `number` values for each context, of any form in which many are given."""
        if isinstance(context, list | tuple):
            for one in context:
                self._check(one, verb)
            context = {name: [one[name] for one in context] for name in self.names}
        self._check(context, verb)
        columns = {
            name: list(value) if is_column(value) else [value] * number
            for name, value in context.items()
        }
        wrong = [name for name, column in columns.items() if len(column) != number]
        if wrong:
            raise InvalidInput(
                f"{verb}: there are {number:,} rows of parameters but {len(columns[wrong[0]]):,} "
                f"contexts: give {wrong[0]} for each row, or once for all"
            )
        return columns

    def given(self, context: Any, fixed: Any, verb: str) -> Given | None:
        """What is fixed by a context and by values; None if nothing is."""
        if context is not None or self.names:
            self._check(context, verb)
        if fixed is not None and not isinstance(fixed, Mapping):
            raise InvalidInput(f"{verb}(fixed={fixed!r}): give a dict, such as {self._example()}")
        wrong = [name for name in fixed or {} if name in self.names]
        if wrong:
            raise InvalidInput(
                f"{verb}(fixed={fixed!r}): {', '.join(wrong)} is a context. Give it as "
                f"context={{{wrong[0]!r}: ...}}"
            )
        values = {**(fixed or {}), **(context or {})}
        if not values:
            return None
        what = "fixed" if fixed else "context"
        try:
            return Given(self._coordinates(values), values)
        except InvalidInput as error:
            shown = dict(fixed or context or {})
            raise InvalidInput(f"{verb}({what}={shown!r}): {error}") from None

    def as_given(self, params: Any, given: Given | None) -> Any:
        """Parameters at a point, with real numbers exactly as they were given."""
        if given is None:
            return params
        exact = params.copy()
        for name, value in given.values.items():
            if isinstance(exact[name], float) and isinstance(value, float | np.floating):
                exact[name] = float(value)
        return exact

    def coarse(self, units: FloatArray) -> FloatArray:
        """Points (..., D) as the policy sees them: real contexts in the middle of their part."""
        columns = self._real
        if not columns:
            return units
        seen = units.copy()
        if seen.ndim == 1:  # the same, quicker for a single point
            for column in columns:
                part = min(math.floor(float(seen[column]) * PARTS), PARTS - 1)
                seen[column] = (part + 0.5) / PARTS
            return seen
        inside = np.minimum(np.floor(seen[..., columns] * PARTS), PARTS - 1)
        seen[..., columns] = (inside + 0.5) / PARTS
        return seen

    def sample(self, number: int) -> list[dict[int, float]]:
        """Contexts all over their space, as coordinates: all of them if there are few."""
        numbers = [self._number(name) for name in self.names]
        own = Space({n: self.space.parameters[i] for n, i in zip(self.names, numbers, strict=True)})
        columns = [c for i in numbers for c in range(*self.space.places[i])]
        if own.size is not None and own.size <= number:
            rows = own.grid()
        else:
            rows = own.spread(np.random.default_rng(0).random((number, own.dim)))
        return [dict(zip(columns, row.tolist(), strict=True)) for row in rows]

    # -- details -------------------------------------------------------------------------------

    @cached_property
    def _real(self) -> list[int]:
        """The coordinates of real contexts; none with a constraint, which must hold exactly."""
        if self.space.constraint is not None:
            return []
        numbers = [self._number(name) for name in self.names]
        real = [i for i in numbers if isinstance(self.space.parameters[i], Float)]
        return [self.space.places[i][0] for i in real]

    def _number(self, name: str) -> int:
        return (self.space.names or ()).index(name)

    def _check(self, context: Any, verb: str) -> None:
        """Refuse a context that lacks something, or has more than there is."""
        if not self.names:
            raise InvalidInput(
                f"{verb}(context={context!r}): this optimizer has no context. Make it with "
                'context={"name": range}, or use fixed= for parameters'
            )
        if context is None:
            raise self._missing(list(self.names), verb)
        if not isinstance(context, Mapping):
            raise InvalidInput(f"{verb}(context={context!r}): give a dict, {self._form()}")
        wrong = [repr(name) for name in context if name not in self.names]
        missing = [name for name in self.names if name not in context]
        if wrong:
            raise InvalidInput(
                f"{verb}(context={dict(context)!r}): there is no context {', '.join(wrong)}. Give "
                f"exactly {', '.join(self.names)}"
            )
        if missing:
            raise self._missing(missing, verb)

    def _missing(self, names: list[str], verb: str) -> InvalidInput:
        return InvalidInput(
            f"{verb}(): the context {', '.join(names)} is missing. Write context={self._form()}"
        )

    def _form(self) -> str:
        return "{" + ", ".join(f"{name!r}: ..." for name in self.names) + "}"

    def _example(self) -> str:
        return "{0: 0.5}" if self.space.names is None else f"{{{self.space.names[0]!r}: ...}}"

    def _coordinates(self, values: Mapping[Any, Any]) -> dict[int, float]:
        """The coordinates of values by name, or by place for arrays."""
        if self.space.arms is not None:
            return self._of_arms(values)
        names: tuple[Any, ...] = self.space.names or tuple(range(len(self.space.parameters)))
        unknown = [repr(name) for name in values if name not in names or isinstance(name, bool)]
        if unknown:
            known = ", ".join(map(str, dict.fromkeys(names)))
            raise InvalidInput(f"there is no parameter {', '.join(unknown)}. There are {known}")
        fixed: dict[int, float] = {}
        later = []
        for name, value in values.items():
            places = [i for i, other in enumerate(names) if other == name]
            conditions = self.space.conditions
            if conditions is not None and any(conditions.each[i] for i in places):
                later.append((name, value, places))
            else:
                fixed |= self._encoded(places[0], name, value)
        while later:
            name, value, places = later.pop(0)
            active = [i for i in places if self._is_active(i, fixed)]
            if active:
                fixed |= self._encoded(active[0], name, value)
            elif any(self._waits(entry, values) for entry in later):
                later.append((name, value, places))
            else:
                assert self.space.conditions is not None
                when = self.space.conditions.when(places[0])
                raise InvalidInput(
                    f"{name} is there only {when}. Fix that as well, or leave {name} out"
                )
        return fixed

    def _waits(self, entry: tuple[Any, Any, list[int]], values: Mapping[Any, Any]) -> bool:
        """Whether a parameter that is not encoded yet may be the parent of others."""
        return any(
            isinstance(self.space.parameters[i].size, int) and entry[0] in values for i in entry[2]
        )

    def _encoded(self, i: int, name: Any, value: Any) -> dict[int, float]:
        shown = name if self.space.names is not None else f"x[{name}]"
        start, _ = self.space.places[i]
        coordinates = self.space.parameters[i].encode(value, shown)
        return {start + j: float(u) + 0.0 for j, u in enumerate(coordinates)}

    def _is_active(self, i: int, fixed: Mapping[int, float]) -> bool:
        """Whether a parameter is active wherever some coordinates have given values."""
        rows = np.random.default_rng(0).random((TRIED, self.space.dim))
        start, end = self.space.places[i]
        parameter = self.space.parameters[i]
        if start == end:
            return True
        for number, value in fixed.items():
            rows[:, number] = value
        rows = self.space.spread(rows)
        for number, value in fixed.items():
            rows[:, number] = value
        rows[:, start:end] = [0.0] if parameter.size is None else parameter.grid()[0]
        return bool((self.space.snap(rows)[:, start:end] != 0.5).any(axis=1).all())

    def _of_arms(self, values: Mapping[Any, Any]) -> dict[int, float]:
        """The coordinates of points of a list: those of a point that has all the values."""
        arms, played = self.space.arms, self.space.played
        assert arms is not None
        for name in values:
            if isinstance(name, bool) or name not in range(arms.dim):
                raise InvalidInput(f"there is no coordinate {name!r}: give 0 to {arms.dim - 1}")
        numbers = list(values)
        try:
            wanted = np.array([float(values[number]) for number in numbers])
        except (TypeError, ValueError):
            raise InvalidInput("give a number for each coordinate") from None
        side = (arms.upper - arms.lower)[numbers]
        away = np.abs(arms.points[:, numbers] - wanted) <= 1e-9 * np.maximum(side, 1e-300)
        there = np.flatnonzero(away.all(axis=1))
        if not len(there):
            raise InvalidInput(
                "no point of the space has these values. Fix values that points have"
            )
        point = played.points[there[0]]
        return {int(number): float(point[number]) for number in numbers}
