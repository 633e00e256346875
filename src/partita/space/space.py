"""Search spaces: named parameters or plain bounds ↔ points of the unit cube, and constraints.

Notation: D coordinates of the unit cube, k points as rows (k, D). Policies work in the unit cube.
The exception is a set of arms that coincide there: see `Space.played`.
"""

from __future__ import annotations

import math
import pickle
import zlib
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, final

import numpy as np

from partita._checks import as_floats
from partita._text import message_of
from partita._types import BoolArray, FloatArray, IntArray
from partita.errors import InvalidInput
from partita.model.domains import Arms, Grid

from .choices import Categorical
from .conditions import Condition, Conditions, Parameter
from .parameters import Float
from .specs import Parts, as_parts

#: The arguments of a function: keywords, or an array.
Params = dict[str, Any] | FloatArray


@final
class Space:
    """A search space, and its mapping to the unit cube. A space is immutable.

    Parameters
    ----------
    spec, feasible
        The specification of the space, and a function that says where it may be evaluated: see
        `as_space`.

    Attributes
    ----------
    names
        Names of the parameters, or None if the function takes an array.
    parameters
        A `Float`, `Integer`, `Stepped` or `Categorical` for each name or array entry.
    conditions
        When each parameter is active, if some depend on others, else None. Then several may have
        one name, of which one at most is active.
    arms
        The finite domain that the space was made from, or None.
    dim
        D, the number of coordinates of the unit cube.
    constraint
        The user's `feasible`, or None.
    """

    names: tuple[str, ...] | None
    parameters: tuple[Parameter, ...]
    conditions: Conditions | None
    arms: Grid | Arms | None
    dim: int
    constraint: Callable[..., Any] | None

    def __init__(self, spec: Any, feasible: Callable[..., Any] | None = None) -> None:
        if not isinstance(spec, Space):
            self._set(as_parts(spec), feasible)
            return
        if feasible is not None and spec.constraint not in (None, feasible):
            raise InvalidInput("the space already has a constraint: give feasible only once")
        self._set(spec._parts, spec.constraint if feasible is None else feasible)

    def _set(self, parts: Parts, constraint: Callable[..., Any] | None) -> None:
        if constraint is not None and not callable(constraint):
            raise InvalidInput(
                f"feasible={constraint!r}: give a function that takes the same arguments as the "
                "one to optimise, and returns True or False"
            )
        self._parts, self.constraint = parts, constraint
        self.names, self.parameters, self.arms, conditions = parts
        self.conditions = None
        if conditions and self.names is not None:
            self.conditions = Conditions(self.names, self.parameters, conditions)
        ends = np.cumsum([0, *(p.width for p in self.parameters)]).tolist()
        self._slices = list(zip(self.parameters, ends[:-1], ends[1:], strict=True))
        self.dim = ends[-1] if self.arms is None else self.arms.dim
        if self.dim == 0:
            raise InvalidInput(
                "nothing varies in this space: give at least one parameter with two values or more"
            )

    @property
    def places(self) -> list[tuple[int, int]]:
        """The first coordinate of each parameter, and the one after its last."""
        return [(start, end) for _, start, end in self._slices]

    @property
    def choices(self) -> tuple[tuple[int, int], ...]:
        """The coordinates of each choice, as in `places`, of those that vary."""
        parts = self._slices
        return tuple((a, b) for p, a, b in parts if isinstance(p, Categorical) and b > a)

    @property
    def named(self) -> bool:
        """Whether the function takes keywords, not an array."""
        return self.names is not None

    @property
    def continuous(self) -> bool:
        """Whether every point of the unit cube is valid, ignoring the constraint."""
        return self.arms is None and all(p.size is None or p.size == 1 for p in self.parameters)

    @property
    def size(self) -> int | None:
        """The number of points, ignoring the constraint; None if it is infinite."""
        if self.arms is not None:
            return self.arms.size
        if self.conditions is not None:
            return self.conditions.size
        sizes = [parameter.size for parameter in self.parameters]
        return None if None in sizes else math.prod(sizes)  # type: ignore[arg-type]

    @cached_property
    def mark(self) -> int:
        """A number that identifies the names, the ranges and the numbers of choices.

        It is the same in every process. The choices themselves do not enter, since they may be
        objects without a stable hash.
        """
        if self.arms is not None:
            return zlib.crc32(np.ascontiguousarray(self.arms.points).data)
        ranges = [p.size if isinstance(p, Categorical) else p.spec() for p in self.parameters]
        conditional = (self._parts.conditions,) if self.conditions is not None else ()
        return zlib.crc32(repr((self.names, ranges, *conditional)).encode())

    # -- points --------------------------------------------------------------------------------

    def decode(self, unit: FloatArray) -> Any:
        """The parameters at a point (D,) of the unit cube: a dict of active ones, or an array."""
        if self.conditions is not None:
            return self.conditions.decode(unit)
        if self.names is None:
            if self.arms is not None:
                return np.array(self.arms.points[self._numbers(unit[None, :])[0]])
            pairs = zip(self.parameters, unit.tolist(), strict=True)
            return np.array([parameter.decode([u]) for parameter, u in pairs])
        row = unit.tolist()
        return {
            name: parameter.decode(row[start:end])
            for name, (parameter, start, end) in zip(self.names, self._slices, strict=True)
        }

    def encode(self, params: Any) -> FloatArray:
        """The point (D,) of the unit cube for the given parameters, a dict or an array."""
        if self.names is None:
            return self._encode_array(params)
        if not isinstance(params, Mapping):
            raise InvalidInput(
                f"{params!r}: give a dict with a value for each of "
                f"{', '.join(dict.fromkeys(self.names))}"
            )
        if self.conditions is not None:
            return self.conditions.encode(params)
        wrong = [repr(name) for name in params if name not in self.names]
        missing = [name for name in self.names if name not in params]
        if wrong or missing:
            raise InvalidInput(
                f"{dict(params)!r}: "
                + (f"there is no parameter {', '.join(wrong)}" if wrong else "")
                + (" and " if wrong and missing else "")
                + (f"{', '.join(missing)} is missing" if missing else "")
                + f". Give exactly {', '.join(self.names)}"
            )
        row: list[float] = []
        for name, parameter in zip(self.names, self.parameters, strict=True):
            row += parameter.encode(params[name], name)
        return np.array(row) + 0.0

    def _encode_array(self, params: Any) -> FloatArray:
        x = as_floats(params, "x")
        n = self.dim if self.arms is not None else len(self.parameters)
        if x.shape != (n,):
            raise InvalidInput(f"x has shape {x.shape}: give an array of shape ({n},)")
        if self.arms is not None:
            return np.array(self.played.points[self.arms.index_of(x[None, :])[0]])
        row: list[float] = []
        for i, (parameter, value) in enumerate(zip(self.parameters, x.tolist(), strict=True)):
            row += parameter.encode(value, f"x[{i}]")
        return np.array(row) + 0.0

    def snap(self, units: FloatArray) -> FloatArray:
        """The nearest valid points to rows (k, D), ignoring the constraint."""
        return self._moved(units, "snap")

    def spread(self, units: FloatArray) -> FloatArray:
        """Map uniform rows (k, D) to valid points, all values with the same probability."""
        return self._moved(units, "spread")

    def _moved(self, units: FloatArray, how: str) -> FloatArray:
        if self.arms is not None:
            return np.array(self.played.points[self._numbers(units)])
        moved = np.empty_like(units)
        for parameter, start, end in self._slices:
            if end > start:
                moved[:, start:end] = getattr(parameter, how)(units[:, start:end])
        if self.conditions is not None:
            moved = self.conditions.settled(moved)
        return moved + 0.0

    def gaps(self, units: FloatArray) -> FloatArray:
        """How far the next value of each coordinate is from points (k, D); 0 for real numbers.

        It is 1 for choices.
        """
        gaps = np.ones_like(units)
        for parameter, start, end in self._slices:
            if not isinstance(parameter, Categorical) and end > start:
                gaps[:, start:end] = parameter.gaps(units[:, start:end])
        return gaps

    def stir(self, random: np.random.Generator, units: FloatArray, scale: FloatArray) -> FloatArray:
        """Points (k, D) near valid ones, to be snapped: some parameters of each are changed.

        Numbers move by about `scale` (k, D), choices to another choice. At least one parameter of
        each point changes.
        """
        if self.conditions is not None:
            return self.conditions.stir(random, units, scale)
        varying = [entry for entry in self._slices if entry[2] > entry[1]]
        k, n = len(units), len(varying)
        moved = random.random((k, n)) < np.maximum(1 / n, random.random(k))[:, None]
        still = np.flatnonzero(~moved.any(axis=1))
        moved[still, random.integers(n, size=len(still))] = True
        out = units.copy()
        for j, (parameter, start, end) in enumerate(varying):
            rows = np.flatnonzero(moved[:, j])
            out[rows, start:end] = parameter.stir(
                random, units[rows, start:end], scale[rows, start:end]
            )
        return out

    @cached_property
    def played(self) -> Grid | Arms:
        """The arms in the unit cube, as policies get them.

        If two arms coincide there in floating point, all keep their own coordinates and box.
        """
        assert self.arms is not None
        units = self.arms.unit_points
        if isinstance(self.arms, Grid) or len(np.unique(units, axis=0)) < len(units):
            return self.arms
        return Arms(units)

    def _numbers(self, units: FloatArray) -> IntArray:
        """The indices (k,) of the arms at rows (k, D), or nearest to them."""
        arms = self.played
        if isinstance(arms, Grid):
            steps = np.rint(np.clip(units, 0.0, 1.0) * (arms.n - 1))
            return arms.index_of(steps / (arms.n - 1))
        try:
            return arms.index_of(units)
        except InvalidInput:  # between arms
            scaled = (units - arms.lower) / (arms.upper - arms.lower)
            return np.asarray(self._tree.query(scaled)[1], dtype=np.int64)

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree

        return cKDTree(self.played.unit_points)

    def grid(self) -> FloatArray:
        """All points of a finite space, (size, D), ignoring the constraint."""
        if self.arms is not None:
            return np.array(self.played.points)
        if self.conditions is not None:
            return self.conditions.grid()
        sides = [parameter.grid() for parameter in self.parameters]
        which = np.indices([len(side) for side in sides]).reshape(len(sides), -1)
        return np.concatenate([s[i] for s, i in zip(sides, which, strict=True)], axis=1)

    # -- constraints ---------------------------------------------------------------------------

    def feasible(self, units: FloatArray) -> BoolArray:
        """Which of the valid points (k, D) the user's constraint allows, (k,)."""
        if self.constraint is None:
            return np.ones(len(units), dtype=np.bool_)
        return np.array([self.allows(self.decode(row)) for row in units], dtype=np.bool_)

    def allows(self, params: Any) -> bool:
        """Whether the user's constraint allows these parameters."""
        if self.constraint is None:
            return True
        try:
            answer = self.constraint(params) if self.names is None else self.constraint(**params)
        except Exception as error:
            raise InvalidInput(
                f"feasible failed at {params!r} ({type(error).__name__}: {message_of(error)}). It "
                f"is called {self._called}, and must return True or False"
            ) from error
        if isinstance(answer, np.ndarray | np.generic) and answer.size == 1:
            answer = answer.item()
        if not (isinstance(answer, bool) or (isinstance(answer, int) and answer in (0, 1))):
            raise InvalidInput(
                f"feasible returned {answer!r} at {params!r}: return True where the function may "
                "be evaluated and False elsewhere"
            )
        return bool(answer)

    # -- as a value ----------------------------------------------------------------------------

    def describe(self) -> str:
        """A description for users, one line per parameter."""
        if self.arms is not None:
            lines = [repr(self.arms)]
        else:
            names = self.names or [f"x[{i}]" for i in range(len(self.parameters))]
            wide = max(map(len, names))
            pairs = zip(names, self.parameters, strict=True)
            lines = [
                f"{name:<{wide}}  {parameter.describe()}{self._when(i)}"
                for i, (name, parameter) in enumerate(pairs)
            ]
        if self.constraint is not None:
            lines.append(f"where {_name(self.constraint)} returns True")
        return "\n".join(lines)

    def _when(self, i: int) -> str:
        """When a parameter is active, to stand after its range; nothing if always."""
        when = "" if self.conditions is None else self.conditions.when(i)
        return f" ({when})" if when else ""

    @property
    def _called(self) -> str:
        """How functions are called."""
        if self.names is None:
            return "with an array"
        those = "those active of " if self.conditions is not None else ""
        return f"with keywords {those}{', '.join(dict.fromkeys(self.names))}"

    def to_json(self) -> str:
        """The space as JSON text for `Space.from_json`, without the constraint.

        Choices must be numbers, strings, True, False or None.
        """
        from .storage import write

        return write(self)

    @classmethod
    def from_json(cls, text: str, feasible: Callable[..., Any] | None = None) -> Space:
        """The space that `to_json` wrote, with a constraint if there was one."""
        from .storage import read

        return read(text, feasible)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Space):
            return NotImplemented
        return self._parts == other._parts and self.constraint == other.constraint

    def __hash__(self) -> int:
        return hash((self.names, self.dim, self.size))

    def __repr__(self) -> str:
        if self.arms is not None:
            inside = repr(self.arms)
        elif self.names is None:
            inside = repr([(p.low, p.high) for p in self.parameters if isinstance(p, Float)])
        else:
            pairs = zip(self.names, self.parameters, strict=True)
            inside = ", ".join(
                f"{name}: {parameter.describe()}{self._when(i)}"
                for i, (name, parameter) in enumerate(pairs)
            )
            inside = f"{{{inside}}}"
        where = "" if self.constraint is None else f", feasible={_name(self.constraint)}"
        return f"Space({inside}{where})"

    def __deepcopy__(self, memo: dict[int, Any]) -> Space:
        return self  # a space is immutable

    def __reduce__(self) -> tuple[Any, ...]:
        if self.constraint is not None:
            try:
                pickle.dumps(self.constraint)
            except Exception as error:
                raise InvalidInput(
                    f"feasible={_name(self.constraint)} cannot be pickled ({error}): define it at "
                    "the top level of a module, not as a lambda or a nested function"
                ) from error
        names, parameters, arms, conditions = self._parts
        return space_of, (names, parameters, self.constraint, arms, conditions)


def space_of(
    names: tuple[str, ...] | None,
    parameters: tuple[Parameter, ...],
    constraint: Callable[..., Any] | None = None,
    arms: Grid | Arms | None = None,
    conditions: tuple[tuple[Condition, ...], ...] = (),
) -> Space:
    """A space made of parameters, or of arms."""
    space = object.__new__(Space)
    space._set(Parts(names, parameters, arms, conditions), constraint)
    return space


def as_space(spec: Any, feasible: Callable[..., Any] | None = None) -> Space:
    """Make a search space from its specification.

    Parameters
    ----------
    spec
        One of:

        - a list of (low, high) pairs, or `scipy.optimize.Bounds`: the function takes an array;
        - a dict of names: the function takes keywords. Each value is `(low, high)`,
          `(low, high, "log")`, `(low, high, "int")`, `(low, high, "int", "log")`,
          `(low, high, step)`, `(low, high, step, "int")`, a `range`, a *list* of choices, `bool`,
          or a dict of branches. A branch is a dict of the parameters that exist with that choice
          alone: `{"svm": {"C": (0.1, 10)}, "forest": {}}`;
        - a `Box`, `Grid` or `Arms`;
        - a `Space`.
    feasible
        Takes the same arguments as the function, and returns True where it may be evaluated.
    """
    return spec if isinstance(spec, Space) and feasible is None else Space(spec, feasible)


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", None) or repr(function))
