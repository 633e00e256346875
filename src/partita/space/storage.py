"""Spaces as JSON, for saved studies."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from partita.errors import InvalidInput
from partita.model.domains import Arms, Grid

from .space import Space, as_space

#: The version of the format, raised by one with every change. Newer versions are refused.
FORMAT = 1


def write(space: Space) -> str:
    """A space as JSON text, without its constraint."""
    try:
        text = json.dumps({"format": FORMAT, **_content(space)})
    except (TypeError, ValueError) as error:
        raise _not_json(space, str(error)) from error
    if read(text, space.constraint) != space:
        raise _not_json(space, "it would be read back as another space")
    return text


def read(text: str, feasible: Callable[..., Any] | None = None) -> Space:
    """The space that `write` wrote, with the given constraint."""
    try:
        content = json.loads(text)
        if content["format"] == FORMAT:
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
        f"this space was written in format {content['format']!r}, but this Partita reads format "
        f"{FORMAT}: upgrade Partita"
    )


def _content(space: Space) -> dict[str, Any]:
    arms = space.arms
    if isinstance(arms, Grid):
        return {"grid": [arms.n, arms.dim]}
    if arms is not None:
        return {"arms": [arms.points.tolist(), arms.lower.tolist(), arms.upper.tolist()]}
    specs = [parameter.spec() for parameter in space.parameters]
    if space.names is None:
        return {"bounds": specs}
    return {"parameters": list(zip(space.names, specs, strict=True))}


def _space(content: dict[str, Any], feasible: Callable[..., Any] | None) -> Space:
    if "grid" in content:
        return as_space(Grid(*content["grid"]), feasible)
    if "arms" in content:
        return as_space(Arms(*content["arms"]), feasible)
    if "bounds" in content:
        return as_space([tuple(pair) for pair in content["bounds"]], feasible)
    return as_space({name: _spec(spec) for name, spec in content["parameters"]}, feasible)


def _spec(spec: Any) -> Any:
    """The specification of a parameter: JSON has lists only, so ranges become tuples again."""
    return spec["choices"] if isinstance(spec, dict) else tuple(spec)


def _not_json(space: Space, why: str) -> InvalidInput:
    return InvalidInput(
        f"{space!r} cannot be written as JSON ({why}): use numbers, strings, True, False "
        "or None as choices"
    )
