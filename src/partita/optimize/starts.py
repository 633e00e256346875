"""The first points of a run, such as the parameters in use today."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from partita._checks import as_floats, point_text
from partita.errors import InvalidInput
from partita.space import Space

from .trials import Trials


def read_starts(x0: Any, space: Space) -> list[Any]:
    """The points in `x0`, one or several, in the form that the function gets."""
    return [_read(point, space) for point in _points(x0, space)]


def without_known(starts: Sequence[Any], trials: Trials) -> list[Any]:
    """The starting points that have no value yet and are not being evaluated."""
    there = {unit.tobytes() for part in (trials.finished, trials.pending) for unit in part.units}
    return [start for start in starts if trials.space.encode(start).tobytes() not in there]


def _points(x0: Any, space: Space) -> Sequence[Any]:
    if not space.named:
        array = np.atleast_1d(as_floats(x0, "x0"))
        if array.ndim == 1 and array.size > 1 == space.dim:
            raise InvalidInput(
                f"x0={point_text(array)}: the space has one dimension. Give one number, or several "
                f"points as {array[:2, None].tolist()}"
            )
        return list(array) if array.ndim > 1 or not array.size else [array]
    if isinstance(x0, Mapping):
        return [x0]
    if isinstance(x0, Sequence) and all(isinstance(point, Mapping) for point in x0):
        return x0
    raise InvalidInput(
        f"x0={x0!r}: give a dict with a value for each parameter, or a list of such dicts"
    )


def _read(point: Any, space: Space) -> Any:
    """The parameters in the form that the function gets; floats keep about 13 digits."""
    shown = repr(dict(point)) if space.named else point_text(np.ravel(point))
    try:
        params = space.decode(space.encode(point))
    except InvalidInput as error:
        raise InvalidInput(f"x0={shown} is not a point of the space: {error}") from error
    if not space.allows(params):
        raise InvalidInput(
            f"x0={shown}: feasible does not allow it. Give a first point that it allows"
        )
    return params
