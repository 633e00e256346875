r"""Plain data as bytes: the format of snapshots. It holds no code, and reading it runs none.

Layout, all integers little-endian:

    8 bytes    b"PARTITA\x04": the last one is the version of this format
    8 bytes    the length of the whole
    4 bytes    the length of the text
    text       JSON in ASCII: {"arrays": [[type, [length, ...]], ...], "data": ...}
    arrays     one after the other, each at the next multiple of 8, padded with zeros

`data` is the plain data: null, booleans, numbers, strings, lists and objects. An array is
represented by {"array": number}; its bytes are those of `numpy.ndarray.tobytes`, in C order, of a
type in `partita._state.DTYPES`. Floats are written as Python does, so they are read back exactly.
Infinity and NaN are allowed here; the reader of the data refuses them where they make no sense.

Whatever has one entry per trial, site or cell is an array, so the text is short, and a long text is
refused. An array must not be larger than the bytes present for it.
"""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import numpy as np

from partita._state import DTYPES, BadState

FORMAT = 4
_MAGIC = b"PARTITA" + bytes([FORMAT])
_HEADER = struct.Struct("<8sQI")
#: The largest length of the text, and the largest depth of its objects.
MOST_TEXT, DEEPEST = 1_000_000, 12
_ALIGN = 8
_NAMES = {np.dtype(dtype): name for name, dtype in DTYPES.items()}


def pack(data: Any) -> bytes:
    """Plain data as bytes; `BadState` is raised for anything else."""
    arrays: list[np.ndarray[Any, Any]] = []
    plain = _plain(data, arrays, DEEPEST)
    table = [[_NAMES[array.dtype], list(array.shape)] for array in arrays]
    text = json.dumps({"arrays": table, "data": plain}, separators=(",", ":")).encode("ascii")
    if len(text) > MOST_TEXT:
        raise BadState(f"the state has {len(text):,} bytes outside its arrays")
    chunks: list[bytes | memoryview] = [text, _padding(_HEADER.size + len(text))]
    for array in arrays:
        chunks += [np.ascontiguousarray(array).data.cast("B") if array.size else b""]
        chunks += [_padding(array.nbytes)]
    length = _HEADER.size + sum(map(len, chunks))
    return b"".join([_HEADER.pack(_MAGIC, length, len(text)), *chunks])


def unpack(content: bytes) -> Any:
    """The plain data in bytes that `pack` wrote; `BadState` is raised for other bytes."""
    if len(content) < _HEADER.size:
        raise BadState("it ends within its header")
    magic, length, text_length = _HEADER.unpack_from(content)
    if magic != _MAGIC:
        raise BadState("it does not begin as a snapshot of this format does")
    if length != len(content):
        raise BadState(f"it has {len(content)} bytes instead of {length}")
    end = _HEADER.size + text_length
    if text_length > MOST_TEXT or end > length:
        raise BadState("its text is too long")
    try:
        text = content[_HEADER.size : end].decode("ascii")
        whole = json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise BadState(f"its text is not JSON: {error!s:.100}") from None
    if type(whole) is not dict or set(whole) != {"arrays", "data"}:
        raise BadState("its text does not have arrays and data")
    return _filled(whole["data"], _arrays(content, end, whole["arrays"]), DEEPEST)


def _plain(data: Any, arrays: list[np.ndarray[Any, Any]], depth: int) -> Any:
    """The data with each array replaced by its number; the arrays are appended to `arrays`."""
    kind = type(data)
    if data is None or kind in (bool, int, float, str):
        return data
    if depth == 0:
        raise BadState("the state is nested too deeply")
    if kind is np.ndarray and data.dtype in _NAMES:
        arrays.append(data)
        return {"array": len(arrays) - 1}
    if kind is list:
        return [_plain(part, arrays, depth - 1) for part in data]
    if kind is dict and all(type(name) is str for name in data) and set(data) != {"array"}:
        return {name: _plain(part, arrays, depth - 1) for name, part in data.items()}
    raise BadState(f"{data!r:.60} cannot be part of a state")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object as a dict; duplicate names are refused."""
    named = dict(pairs)
    if len(named) != len(pairs):
        raise ValueError("a name occurs twice")
    return named


def _arrays(content: bytes, start: int, table: Any) -> list[np.ndarray[Any, Any]]:
    """The arrays that a table lists, stored from `start` to the end of the content."""
    if type(table) is not list:
        raise BadState("its arrays are not listed")
    arrays, at = [], start + len(_padding(start))
    for entry in table:
        if type(entry) is not list or len(entry) != 2 or type(entry[1]) is not list:
            raise BadState("an array is not listed as a type and a shape")
        name, shape = entry
        if type(name) is not str or name not in DTYPES or len(shape) > 3:
            raise BadState("an array has an unknown type or shape")
        if not all(type(n) is int and 0 <= n <= len(content) for n in shape):
            raise BadState("an array has a length that its bytes cannot have")
        dtype, number = np.dtype(DTYPES[name]), math.prod(shape)
        if number * dtype.itemsize > len(content) - at:
            raise BadState("an array is longer than its bytes")
        arrays.append(np.frombuffer(content, dtype, number, at).reshape(shape))
        at += number * dtype.itemsize
        at += len(_padding(at))
    if at != len(content):
        raise BadState("there are bytes that belong to nothing")
    return arrays


def _filled(data: Any, arrays: list[np.ndarray[Any, Any]], depth: int) -> Any:
    """The data with each array's number replaced by the array."""
    if type(data) not in (list, dict):
        return data
    if depth == 0:
        raise BadState("it is nested too deeply")
    if type(data) is list:
        return [_filled(part, arrays, depth - 1) for part in data]
    if set(data) != {"array"}:
        return {name: _filled(part, arrays, depth - 1) for name, part in data.items()}
    number = data["array"]
    if type(number) is not int or not 0 <= number < len(arrays):
        raise BadState(f"there is no array {number!r:.30}")
    return arrays[number]


def _padding(length: int) -> bytes:
    """Zeros up to the next multiple of 8."""
    return bytes(-length % _ALIGN)
