"""The widest ball without an evaluation: where a peak may hide that no value has shown.

An estimate from values cannot know of a peak that is narrower than the gaps between them. How wide
the gaps are is geometry, and holds whatever the function is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from partita._types import FloatArray
from partita.model.sobol import sobol
from partita.space.choices import Categorical

if TYPE_CHECKING:
    from .trials import Trials

#: Points of the cube that the search begins at, and how many of the best it goes on from.
FIRST, BEST = 4096, 8
#: The corners are among the first points up to this number of dimensions.
CORNER_DIMS = 10
#: Steps around the best points get shorter by this factor, from the first length to the last. The
#: last number is that of steps for each dimension.
SHRINK, LONGEST, SHORTEST, STEPS = 0.6, 0.2, 1e-3, 16
#: With more values than this the search takes too long.
MOST_VALUES = 1_000_000


class Unexplored(NamedTuple):
    """A ball of the space in which there is no evaluation, the widest that was found.

    Attributes
    ----------
    width
        Its diameter, as a part of a side of the space. A logarithmic side counts as such.
    params
        Its middle, as parameters.
    """

    width: float
    params: Any


class Gap(NamedTuple):
    """A point (d,) of the unit cube and its distance from the nearest of some others."""

    distance: float
    point: FloatArray


def unexplored_of(trials: Trials) -> Unexplored | None:
    """The widest ball found without an evaluation that gave a value.

    None while there is no value, and if not all parameters are numbers, or some depend on others,
    or not every point is allowed.
    """
    told, space = trials.finished, trials.space
    named = any(isinstance(p, Categorical) or p.size == 1 for p in space.parameters)
    if named or space.arms is not None or not 0 < len(told) <= MOST_VALUES:
        return None
    if space.conditions is not None or space.constraint is not None:
        return None
    gap = widest_gap(np.asarray(told.units, dtype=float), space.snap)
    return Unexplored(2.0 * gap.distance, space.decode(gap.point)) if gap.distance else None


def widest_gap(points: FloatArray, snap: Callable[[FloatArray], FloatArray] = np.asarray) -> Gap:
    """The point of the unit cube that is farthest from all of points (n, d), as far as is found.

    There is no point nearer than it says; that there is no wider gap is not sure. `snap` moves
    points (m, d) to the nearest that there are.
    """
    from scipy.spatial import cKDTree

    tree, dim, random = cKDTree(points), points.shape[1], np.random.default_rng(0)
    tried = sobol(dim, FIRST)
    if dim <= CORNER_DIMS:
        corners = np.indices((2,) * dim).reshape(dim, -1).T.astype(float)
        tried = np.concatenate([tried, corners])
    tried = snap(tried)
    far = tree.query(tried)[0]
    best = np.argsort(-far, kind="stable")[:BEST]
    centres, far = tried[best], far[best]
    length = LONGEST
    while length > SHORTEST:
        steps = length * random.uniform(-1.0, 1.0, (len(centres), STEPS * dim, dim))
        around = np.clip(centres[:, None, :] + steps, 0.0, 1.0)
        around = snap(around.reshape(-1, dim)).reshape(around.shape)
        away = tree.query(around)[0]
        top = away.argmax(axis=1)
        rows = np.arange(len(centres))
        farther = away[rows, top] > far
        centres = np.where(farther[:, None], around[rows, top], centres)
        far = np.maximum(far, away[rows, top])
        length *= SHRINK
    widest = int(np.argmax(far))
    return Gap(float(far[widest]), centres[widest])
