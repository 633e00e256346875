"""Points that a run begins with: the parameters in use today, or a colleague's guesses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from partita._checks import as_floats, point_text
from partita.errors import InvalidInput
from partita.space import Float, Space
from partita.trials import Trials


def read_starts(x0: Any, space: Space) -> list[Any]:
    """The points that `x0` names, one or several, as the function gets them."""
    if x0 is None:
        return []
    return [_as_given(point, space) for point in _points(x0, space)]


def without_known(starts: Sequence[Any], trials: Trials) -> list[Any]:
    """Those that have no value yet."""
    known = {unit.tobytes() for unit in trials.finished.units}
    return [start for start in starts if trials.space.encode(start).tobytes() not in known]


def _points(x0: Any, space: Space) -> Sequence[Any]:
    if not space.named:
        array = np.atleast_1d(as_floats(x0, "x0"))
        return [array] if array.ndim == 1 else list(array)
    if isinstance(x0, Mapping):
        return [x0]
    if isinstance(x0, Sequence) and all(isinstance(point, Mapping) for point in x0):
        return x0
    raise InvalidInput(
        f"x0={x0!r}: give a dict with a value for each parameter, or a list of such dicts"
    )


def _as_given(point: Any, space: Space) -> Any:
    """Parameters of the kinds that the function gets; real numbers to the last digit."""
    shown = repr(dict(point)) if space.named else point_text(np.ravel(point))
    try:
        params = space.decode(space.encode(point))
    except InvalidInput as error:
        raise InvalidInput(f"x0={shown} is no point of the space: {error}") from error
    if space.named:
        given = zip(space.names or (), space.parameters, strict=True)
        params |= {name: float(point[name]) for name, kind in given if isinstance(kind, Float)}
    elif space.arms is None:
        params = np.array(point)
    if not space.allows(params):
        raise InvalidInput(
            f"x0={shown}: feasible does not allow it. Give a first point that it allows"
        )
    return params
