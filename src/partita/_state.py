"""Saved state: plain data that can be written to a file, and read back with every number checked.

`state()` of a policy, or of a part of one, returns plain data: None, booleans, integers, floats,
strings, lists, dicts with strings for keys, and arrays of the types in `DTYPES`. `restore(saved)`
of a new part with the same settings restores it. Only what changes is saved: what follows from the
settings, or from other parts of the state, is computed again.

A saved state may come from a stranger, and compiled loops do not check indices. So everything is
read through `Saved`, which checks types, shapes and ranges. Each part also checks what only it
knows: that sizes agree, that numbers of cells, sites and candidates exist, that trees have no
cycles. An invalid state raises `BadState`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from partita._types import BoolArray, FloatArray, IntArray, WordArray
from partita.errors import PartitaError

#: The types that arrays of a state may have, by their names in files: always little-endian.
DTYPES = {"f8": "<f8", "i8": "<i8", "i1": "|i1", "u8": "<u8", "b1": "|b1"}
#: The largest count in a state: the sum of two still fits a machine word.
MOST = 2**61
#: The largest magnitude of floats in a state, unless a part allows more: squares do not overflow.
LARGEST = 1e153
#: The numbers of a PCG64 generator.
_GENERATOR = {"state": 2**128, "inc": 2**128, "has_uint32": 2, "uinteger": 2**32}

State = dict[str, Any]


class BadState(PartitaError, ValueError):
    """A saved state that cannot be used: damaged, of another version, or of other settings."""


class Saved:
    """What `state()` returned, read field by field; each method refuses what it does not expect.

    None in a shape allows any length.
    """

    def __init__(self, data: object, name: str = "state") -> None:
        if not isinstance(data, dict):
            raise BadState(f"{name} is {_kind(data)}, but must have named fields")
        self._data, self._name = data, name

    def refuse(self, why: str) -> NoReturn:
        """Raise `BadState` with this reason."""
        raise BadState(f"{self._name}: {why}")

    def require(self, holds: object, what: str) -> None:
        """Refuse the state unless a condition holds, which `what` describes."""
        if not holds:
            self.refuse(f"{what} does not hold")

    def _get(self, name: str) -> Any:
        if name not in self._data:
            self.refuse(f"{name} is missing")
        return self._data[name]

    def _bad(self, name: str, expected: str) -> NoReturn:
        self.refuse(f"{name} is {_kind(self._data[name])}, but must be {expected}")

    # -- scalars ---------------------------------------------------------------------------------

    def integer(self, name: str, low: int = 0, high: int = MOST) -> int:
        """An integer from `low` to `high`."""
        value = self._get(name)
        if type(value) is not int or not low <= value <= high:
            self._bad(name, f"an integer from {low} to {high}")
        return value

    def real(self, name: str, low: float = -LARGEST, high: float = LARGEST) -> float:
        """A float from `low` to `high`, which may be infinite; never NaN."""
        value = self._get(name)
        if type(value) is not float or not low <= value <= high:
            self._bad(name, f"a number from {low:g} to {high:g}")
        return value

    def flag(self, name: str) -> bool:
        """True or False."""
        value = self._get(name)
        if type(value) is not bool:
            self._bad(name, "true or false")
        return value

    def expect(self, name: str, value: str | int) -> None:
        """Refuse the state if a field differs from this value."""
        given = self._get(name)
        if type(given) is not type(value) or given != value:
            self.refuse(f"{name} is {given!r:.60}, but must be {value!r}")

    # -- parts -----------------------------------------------------------------------------------

    def __contains__(self, name: str) -> bool:
        """Whether an optional field is not None."""
        return self._get(name) is not None

    def has(self, name: str) -> bool:
        """Whether there is a field that is left out where it has nothing to say."""
        return name in self._data

    def part(self, name: str) -> Saved:
        """The state of a part."""
        return Saved(self._get(name), f"{self._name}.{name}")

    def parts(self, name: str, most: int) -> list[Saved | None]:
        """The states of several parts, with None for missing ones."""
        values = self._get(name)
        if type(values) is not list or len(values) > most:
            self._bad(name, f"a list of at most {most}")
        return [
            None if value is None else Saved(value, f"{self._name}.{name}[{i}]")
            for i, value in enumerate(values)
        ]

    def generator(self, name: str, random: np.random.Generator) -> None:
        """Restore the saved state of a PCG64 generator."""
        part = self.part(name)
        numbers = {word: part.integer(word, 0, end - 1) for word, end in _GENERATOR.items()}
        part.require(numbers["inc"] % 2 == 1, "an odd increment")
        random.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": {"state": numbers["state"], "inc": numbers["inc"]},
            "has_uint32": numbers["has_uint32"],
            "uinteger": numbers["uinteger"],
        }

    # -- arrays ----------------------------------------------------------------------------------

    def _array(self, name: str, dtype: str, shape: Sequence[int | None]) -> npt.NDArray[Any]:
        value = self._get(name)
        if (
            type(value) is not np.ndarray
            or value.dtype != np.dtype(DTYPES[dtype])
            or value.ndim != len(shape)
            or any(n is not None and n != m for n, m in zip(shape, value.shape, strict=True))
        ):
            sizes = ", ".join("any" if n is None else str(n) for n in shape)
            self._bad(name, f"an array of {dtype} with shape ({sizes})")
        return value.copy()

    def floats(
        self,
        name: str,
        shape: Sequence[int | None],
        low: float | FloatArray = -LARGEST,
        high: float | FloatArray = LARGEST,
        nan: bool = False,
    ) -> FloatArray:
        """A new array of floats from `low` to `high`; NaN only where that is allowed."""
        array = self._array(name, "f8", shape)
        inside = (array >= low) & (array <= high)
        if not (inside | np.isnan(array) if nan else inside).all():
            self.refuse(f"{name} has numbers out of range")
        return array

    def wholes(
        self,
        name: str,
        shape: Sequence[int | None],
        low: int | IntArray = 0,
        high: int | IntArray = MOST,
    ) -> IntArray:
        """A new array of integers from `low` to `high`."""
        array = self._array(name, "i8", shape)
        if not ((array >= low) & (array <= high)).all():
            self.refuse(f"{name} has integers out of range")
        return array

    def bytes(self, name: str, shape: Sequence[int | None], high: int) -> npt.NDArray[np.int8]:
        """A new array of small integers from 0 to `high`."""
        array = self._array(name, "i1", shape)
        if not ((array >= 0) & (array <= high)).all():
            self.refuse(f"{name} has integers out of range")
        return array

    def words(self, name: str, shape: Sequence[int | None]) -> WordArray:
        """A new array of machine words, of any value."""
        return self._array(name, "u8", shape)

    def flags(self, name: str, shape: Sequence[int | None]) -> BoolArray:
        """A new array of booleans."""
        array = self._array(name, "b1", shape)
        if (array.view(np.int8) & -2).any():  # a byte of 2 is neither for compiled code
            self.refuse(f"{name} has bytes that are neither 0 nor 1")
        return array

    def numbers(self, name: str, end: int, distinct: bool = True) -> list[int]:
        """Integers from 0 to `end` - 1; if `distinct`, none may occur twice."""
        values: list[int] = self.wholes(name, (None,), 0, end - 1).tolist()
        if distinct and len(set(values)) != len(values):
            self.refuse(f"{name} has the same number twice")
        return values

    def count(self, name: str) -> int:
        """The length of an array of integers."""
        return len(self._array(name, "i8", (None,)))

    def cut(self, name: str, array: npt.NDArray[Any], number: int) -> list[npt.NDArray[Any]]:
        """An array cut into `number` pieces, whose lengths are the field `name`: see `joined`."""
        lengths = self.wholes(name, (number,), 0, len(array))
        ends = np.cumsum(lengths)
        if (int(ends[-1]) if number else 0) != len(array):
            self.refuse(f"{name} do not add up")
        return [piece.copy() for piece in np.split(array, ends[:-1])] if number else []


def _kind(value: object) -> str:
    """A short description of a value."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} with shape {value.shape}"
    if isinstance(value, dict | list):
        return f"a {type(value).__name__} of {len(value)}"
    if value is None or isinstance(value, bool | int | float | str):
        text = "an integer of many digits" if isinstance(value, int) and abs(value) > 10**40 else ""
        return text or f"{value!r:.60}"
    return f"a {type(value).__name__}"


# -- for writing states ----------------------------------------------------------------------------


def joined(arrays: Iterable[npt.NDArray[Any]], dtype: npt.DTypeLike = float) -> npt.NDArray[Any]:
    """Arrays concatenated into a flat one; `Saved.cut` separates them again."""
    flat = [np.ravel(array) for array in arrays]
    return np.concatenate(flat) if flat else np.empty(0, dtype)


def lengths(arrays: Iterable[Any]) -> IntArray:
    """The length of each array, or list."""
    return np.array([len(array) for array in arrays], dtype=np.int64)


def wholes(values: Iterable[int]) -> IntArray:
    """Integers as an array."""
    return np.fromiter(values, dtype=np.int64)


def generator_state(random: np.random.Generator) -> State:
    """The state of a PCG64 generator, which `Saved.generator` reads."""
    full: Any = random.bit_generator.state
    if full["bit_generator"] != "PCG64":
        raise BadState(f"a generator of the kind {full['bit_generator']} is not saved")
    rest = {name: int(full[name]) for name in ("has_uint32", "uinteger")}
    return {name: int(value) for name, value in full["state"].items()} | rest
