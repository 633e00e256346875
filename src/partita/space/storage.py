"""Spaces as JSON, for saved studies."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from partita.errors import InvalidInput
from partita.model.domains import Arms, Grid

from .branches import mapping_of, tree_of
from .conditions import Condition
from .space import Space, as_space

#: The version of the format, raised by one with every change. Newer versions are refused. The
#: second has branches. It is written only if there are any, so that an older Partita reads others.
FORMAT, FLAT = 2, 1


def write(space: Space) -> str:
    """A space as JSON text, without its constraint."""
    try:
        form = FLAT if space.conditions is None else FORMAT
        text = json.dumps({"format": form, **_content(space)})
        same = read(text, space.constraint) == space
    except (TypeError, ValueError) as error:
        raise _not_json(space, str(error)) from error
    if not same:
        raise _not_json(space, "it would be read back as another space")
    return text


def read(text: str, feasible: Callable[..., Any] | None = None) -> Space:
    """The space that `write` wrote, with the given constraint."""
    try:
        content = json.loads(text)
        if content["format"] in (FLAT, FORMAT):
            return _space(content, feasible)
    except InvalidInput:
        raise
    except (
        TypeError,
        KeyError,
        AttributeError,
        ValueError,
        OverflowError,
        RecursionError,
    ) as error:
        raise InvalidInput(f"{text!r:.200} is not a space: give text from to_json") from error
    raise InvalidInput(
        f"this space was written in format {content['format']!r}, but this Partita reads formats "
        f"{FLAT} to {FORMAT}: upgrade Partita"
    )


def _content(space: Space) -> dict[str, Any]:
    arms = space.arms
    if isinstance(arms, Grid):
        return {"grid": [arms.n, arms.dim]}
    if arms is not None:
        return {"arms": [arms.points.tolist(), arms.lower.tolist(), arms.upper.tolist()]}
    if space.names is None:
        return {"bounds": [parameter.spec() for parameter in space.parameters]}
    always: tuple[tuple[Condition, ...], ...] = ((),) * len(space.names)
    when = always if space.conditions is None else space.conditions.each
    return {"parameters": tree_of(space.names, space.parameters, when)}


def _space(content: dict[str, Any], feasible: Callable[..., Any] | None) -> Space:
    if "grid" in content:
        return as_space(Grid(*content["grid"]), feasible)
    if "arms" in content:
        return as_space(Arms(*content["arms"]), feasible)
    if "bounds" in content:
        return as_space([tuple(pair) for pair in content["bounds"]], feasible)
    return as_space(mapping_of(content["parameters"]), feasible)


def _not_json(space: Space, why: str) -> InvalidInput:
    return InvalidInput(
        f"{space!r} cannot be written as JSON ({why}): use numbers, strings, True, False "
        "or None as choices"
    )
