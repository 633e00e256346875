"""Where a function may be evaluated: a regular grid, a set of arms, or a box.

Notation: d dimensions, n arms, k query points. Points are rows (k, d) in the user's units; *unit*
points are the same points in [0, 1]^d, (p − lower)/(upper − lower). A domain is immutable and is
compared by value; its arrays are read-only.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
import numpy.typing as npt

from partita._checks import as_floats, as_rows, dimensions, point_text, row_text
from partita._types import FloatArray, IntArray
from partita.errors import InvalidInput

if TYPE_CHECKING:
    from scipy.spatial import cKDTree


#: The rounding error allowed, relative to the domain's side: `np.linspace` values find their arm.
TOLERANCE = 1e-9
#: The largest number of points in a grid.
MAX_GRID_POINTS = 50_000_000
#: A box must have at least this many floating-point numbers per side.
MIN_BOX_FLOATS = 2.0**24


def _frozen(array: FloatArray) -> FloatArray:
    array.flags.writeable = False
    return array


def _bounds(lower: FloatArray, upper: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Read-only copies of the bounds (d,), checked to be finite, ordered and distinct."""
    lower, upper = lower + 0.0, upper + 0.0  # −0.0 becomes 0.0
    with np.errstate(over="ignore", invalid="ignore"):
        bad = np.flatnonzero(~(np.isfinite(upper - lower) & (lower < upper)))
    if len(bad):
        i = int(bad[0])
        low, high = float(lower[i]), float(upper[i])
        if not np.isfinite([low, high]).all():
            problem = "give finite bounds"
        elif low == high:
            problem = "the bounds are equal. Leave this dimension out, or widen it"
        elif low > high:
            problem = "the bounds are reversed. Swap them"
        else:
            problem = "the side overflows. Give bounds closer together"
        raise InvalidInput(f"lower[{i}]={low!r}, upper[{i}]={high!r}: {problem}")
    return _frozen(lower), _frozen(upper)


def _to_unit(rows: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """(x − lower)/(upper − lower), kept in [0, 1]."""
    with np.errstate(over="ignore", under="ignore"):
        unit = (rows - lower) / (upper - lower)
    return np.maximum(np.minimum(unit, 1.0), 0.0)


class Domain(ABC):
    """The interface of all domains.

    Attributes
    ----------
    dim
        The dimension d.
    lower, upper
        The corners of the box that is mapped to [0, 1]^d; (d,), read-only.
    finite
        Whether it is a finite set of arms, with `size`, `points`, `unit_points` and `index_of`.
    """

    finite: ClassVar[bool]
    dim: int
    lower: FloatArray
    upper: FloatArray

    @abstractmethod
    def _arguments(self) -> tuple[Any, ...]:
        """The arguments of the constructor for an equal domain."""

    def check(self, X: npt.ArrayLike) -> FloatArray:
        """`X` as a (k, d) float64 array; an error unless it has d columns and is finite.

        The array may share memory with `X`. `index_of` checks whether its rows are arms.
        """
        return as_rows(X, "X", self.dim)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return all(map(np.array_equal, self._arguments(), other._arguments()))

    def __hash__(self) -> int:
        return hash((type(self), *(np.asarray(a).tobytes() for a in self._arguments())))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._arguments()


@final
@dataclass(frozen=True, init=False, repr=False, eq=False)
class Grid(Domain):
    """The regular grid on [0, 1]^d, including the ends: n^d arms.

    Parameters
    ----------
    n
        The number of points per side, at least 2. Coordinate i of a side is i/(n−1), rounded once.
    dim
        The dimension d.

    Notes
    -----
    Arms are numbered in C order: the last coordinate changes fastest.
    """

    finite: ClassVar[bool] = True
    n: int
    dim: int

    def __init__(self, n: int, dim: int = 1) -> None:
        n, dim = _integer(n, "n", 2), _integer(dim, "dim", 1)
        # 2^26 is already too many, and n**dim must not be computed for an absurd dim.
        if dim > 25 or n**dim > MAX_GRID_POINTS:
            most = int((MAX_GRID_POINTS + 0.5) ** (1 / dim))
            fewer = f"at most {most} points per side, or " if most >= 2 else ""
            raise InvalidInput(
                f"Grid({n}, dim={dim}) has {n}^{dim} points, more than {MAX_GRID_POINTS:,}: "
                f"give {fewer}a Box, which is not limited to a list of points"
            )
        lower, upper = _bounds(np.zeros(dim), np.ones(dim))
        self.__dict__.update(n=n, dim=dim, lower=lower, upper=upper)

    @property
    def size(self) -> int:
        """The number of arms, n^d."""
        return int(self.n**self.dim)

    @cached_property
    def points(self) -> FloatArray:
        """The arms, (n^d, d), read-only."""
        points = np.empty((self.n,) * self.dim + (self.dim,))
        side = np.arange(self.n) / (self.n - 1)
        for axis in range(self.dim):
            points[..., axis] = side.reshape((-1,) + (1,) * (self.dim - 1 - axis))
        return _frozen(points.reshape(self.size, self.dim))

    @property
    def unit_points(self) -> FloatArray:
        """The arms in [0, 1]^d: for a grid, `points`."""
        return self.points

    def index_of(self, X: npt.ArrayLike) -> IntArray:
        """The index of the arm at each row of `X`, (k, d) → (k,), up to rounding errors of 1e−9."""
        rows = self.check(X)
        last = self.n - 1
        # The spacing is at least 2e-8, so no point is within the tolerance of two arms.
        steps = np.rint(np.maximum(np.minimum(rows, 1.0), 0.0) * last)
        near = np.abs(rows - steps / last) <= TOLERANCE
        index: IntArray = steps.astype(np.int64) @ self._strides
        if not near.all():
            i = int(np.flatnonzero(~near.all(axis=1))[0])
            raise _no_arm(self, rows, i, int(index[i]), steps[i] / last)
        return index

    @cached_property
    def _strides(self) -> IntArray:
        return np.array([self.n**axis for axis in reversed(range(self.dim))], dtype=np.int64)

    def __repr__(self) -> str:
        return f"Grid({self.n}, dim={self.dim})"

    def _arguments(self) -> tuple[int, int]:
        return self.n, self.dim


def _integer(value: Any, name: str, least: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or number < least:
        raise InvalidInput(f"{name}={value!r}: give an integer, {least} or more")
    return number


def _no_arm(domain: Domain, rows: FloatArray, i: int, arm: int, at: FloatArray) -> InvalidInput:
    """The error for row i of `rows`, whose nearest arm, number `arm`, is too far away."""
    return InvalidInput(
        f"{row_text(rows, i)} is not an arm of {domain!r}: the nearest is arm {arm}, "
        f"{point_text(at)}. Give a row of its `points`, or use a Box if the function can be "
        "evaluated anywhere"
    )


@final
@dataclass(frozen=True, init=False, repr=False, eq=False)
class Arms(Domain):
    """A finite set of points, the only ones that may be evaluated.

    Parameters
    ----------
    points
        The arms, (n, d), all different; copied.
    lower, upper
        The box around them, (d,) or one number for all dimensions; by default [0, 1]^d.
        Lengthscales and cells are measured relative to its sides.
    """

    finite: ClassVar[bool] = True
    points: FloatArray
    lower: FloatArray
    upper: FloatArray

    def __init__(
        self,
        points: npt.ArrayLike,
        lower: npt.ArrayLike | None = None,
        upper: npt.ArrayLike | None = None,
    ) -> None:
        rows = as_rows(points, "points") + 0.0  # a copy, and −0.0 becomes 0.0
        dim = rows.shape[1]
        if rows.size == 0:
            raise InvalidInput(f"points has shape {rows.shape}: give at least one arm, (n, d)")
        low, high = _bounds(
            _bound(0.0 if lower is None else lower, "lower", dim),
            _bound(1.0 if upper is None else upper, "upper", dim),
        )
        outside = np.flatnonzero(((rows < low) | (rows > high)).any(axis=1))
        if len(outside):
            raise InvalidInput(
                f"{row_text(rows, int(outside[0]), 'points')} is outside the box from "
                f"{point_text(low)} to {point_text(high)}: rescale it, or give a larger box by "
                "lower= and upper="
            )
        order = np.lexsort(rows.T)
        same = np.flatnonzero((rows[order[1:]] == rows[order[:-1]]).all(axis=1))
        if len(same):
            i, j = sorted(order[same[0] : same[0] + 2].tolist())
            raise InvalidInput(
                f"points[{i}] and points[{j}] are both {point_text(rows[i])}: give each arm once, "
                "e.g. np.unique(points, axis=0)"
            )
        self.__dict__.update(points=_frozen(rows), dim=dim, lower=low, upper=high)

    @property
    def size(self) -> int:
        """The number of arms, n."""
        return len(self.points)

    @cached_property
    def unit_points(self) -> FloatArray:
        """The arms in [0, 1]^d, (n, d), read-only."""
        return _frozen(_to_unit(self.points, self.lower, self.upper))

    def index_of(self, X: npt.ArrayLike) -> IntArray:
        """The index of the arm at each row of `X`, (k, d) → (k,).

        A row that is not exactly an arm is replaced by the nearest one, if that is within 1e−9 of
        the box's side in every coordinate.
        """
        rows = self.check(X)
        find = self._numbers.get
        index = np.array([find(key, -1) for key in _keys(rows)], dtype=np.int64)
        missing = np.flatnonzero(index < 0)
        if len(missing):
            with np.errstate(over="ignore"):
                unit = (rows[missing] - self.lower) / (self.upper - self.lower)
            distance, nearest = self._tree.query(np.clip(unit, -1e9, 1e9), p=np.inf)
            far = np.flatnonzero(distance > TOLERANCE)
            if len(far):
                arm = int(nearest[far[0]])
                raise _no_arm(self, rows, int(missing[far[0]]), arm, self.points[arm])
            index[missing] = nearest
        return index

    @cached_property
    def _numbers(self) -> dict[bytes, int]:
        return {key: i for i, key in enumerate(_keys(self.points))}

    @cached_property
    def _tree(self) -> cKDTree:
        from scipy.spatial import cKDTree

        return cKDTree(self.unit_points)

    def __repr__(self) -> str:
        plural = "" if self.size == 1 else "s"
        return f"Arms(<{self.size} point{plural} in {dimensions(self.dim)}>)"

    def _arguments(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return self.points, self.lower, self.upper


def _keys(rows: FloatArray) -> list[bytes]:
    """Each row of a (k, d) array as bytes, −0.0 as 0.0."""
    data = (rows + 0.0).tobytes()
    width = 8 * rows.shape[1]
    return [data[i : i + width] for i in range(0, len(data), width)]


def _bound(bound: npt.ArrayLike, name: str, dim: int) -> FloatArray:
    """One bound of `Arms`, a number or (d,), as (d,)."""
    array = as_floats(bound, name)
    if array.shape not in {(), (dim,)}:
        raise InvalidInput(
            f"{name} has shape {array.shape}, but the points have {dimensions(dim)}: "
            f"give one number, or an array of shape ({dim},)"
        )
    return np.broadcast_to(array, (dim,))


@final
@dataclass(frozen=True, init=False, repr=False, eq=False)
class Box(Domain):
    """A box: all points between two corners.

    Parameters
    ----------
    lower, upper
        The corners, (d,), lower[i] < upper[i]; copied.
    """

    finite: ClassVar[bool] = False
    lower: FloatArray
    upper: FloatArray

    def __init__(self, lower: npt.ArrayLike, upper: npt.ArrayLike) -> None:
        low, high = as_floats(lower, "lower"), as_floats(upper, "upper")
        if low.ndim == 0 or high.ndim == 0:
            raise InvalidInput(
                f"Box({lower!r}, {upper!r}): give lists with one bound per dimension, "
                "e.g. Box([0.0], [1.0]) for one dimension"
            )
        if low.ndim != 1 or low.shape != high.shape or low.size == 0:
            raise InvalidInput(
                f"lower has shape {low.shape} and upper {high.shape}: "
                "give two lists of the same length, one bound per dimension"
            )
        low, high = _bounds(low, high)
        coarse = np.flatnonzero(high - low < MIN_BOX_FLOATS * np.spacing(np.maximum(-low, high)))
        if len(coarse):
            i = int(coarse[0])
            raise InvalidInput(
                f"lower[{i}]={float(low[i])!r} and upper[{i}]={float(high[i])!r} are too close "
                "together for floating point: give bounds relative to their centre, and add the "
                "centre when you evaluate"
            )
        self.__dict__.update(dim=len(low), lower=low, upper=high)

    def check(self, X: npt.ArrayLike) -> FloatArray:
        """`X` as a (k, d) float64 array; an error unless it is finite and inside the box.

        A point outside by rounding, up to 1e−9 of a side, is moved onto the face. The array may
        share memory with `X`.
        """
        rows = as_rows(X, "X", self.dim)
        if ((rows >= self.lower) & (rows <= self.upper)).all():
            return rows
        moved = np.clip(rows, self.lower, self.upper)
        with np.errstate(over="ignore"):
            far = np.argwhere(np.abs(rows - moved) > TOLERANCE * (self.upper - self.lower))
        if len(far):
            i, j = map(int, far[0])
            raise InvalidInput(
                f"{row_text(rows, i)} is outside the box: coordinate {j} must be "
                f"from {float(self.lower[j])!r} to {float(self.upper[j])!r}"
            )
        return moved

    def to_unit(self, X: npt.ArrayLike) -> FloatArray:
        """Map points (k, d) of the box to [0, 1]^d; those outside are moved to the nearest face."""
        return _to_unit(as_rows(X, "X", self.dim), self.lower, self.upper)

    def from_unit(self, U: npt.ArrayLike) -> FloatArray:
        """Map points (k, d) of [0, 1]^d to the box: 0 gives exactly `lower`, 1 exactly `upper`."""
        unit = as_rows(U, "U", self.dim)
        outside = (unit < 0.0) | (unit > 1.0)
        if outside.any():
            i = int(np.flatnonzero(outside.any(axis=1))[0])
            raise InvalidInput(
                f"{row_text(unit, i, 'U')} is outside [0, 1]^{self.dim}: "
                "give unit coordinates, such as to_unit returns"
            )
        # Below 1 the product is at most the float before the rounded side, so less than the exact
        # side, and the sum at most `upper`. At 1 the sum may miss `upper` on either side.
        x = self.lower + unit * (self.upper - self.lower)
        return np.where(unit == 1.0, self.upper, x)

    def __repr__(self) -> str:
        return f"Box(lower={self.lower.tolist()}, upper={self.upper.tolist()})"

    def _arguments(self) -> tuple[FloatArray, FloatArray]:
        return self.lower, self.upper
