"""What a worker does for a function that replicates: values at a point, of which sums are sent.

A row of a plan is cut into pieces, each of which is evaluated by one worker. The seeds of a piece
depend on the run's seed, its trial and its place in the row, and on nothing else: a piece that is
evaluated again, by another worker, gives the same values.
"""

from __future__ import annotations

import functools
import inspect
import math
import time
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from partita.errors import InvalidInput
from partita.space import Space

from .aggregates import Aggregate, aggregate_of, as_aggregate
from .evaluate import NO_KEYWORDS, Function, called, portable
from .values import WrongKind, as_value

#: What a function that replicates is given besides its parameters.
NAMES = ("count", "seed")
#: Constants of SplitMix64 (Steele, Lea & Flood 2014), which numbers the seeds of a row.
_STEP, _MIX_1, _MIX_2, _BITS = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB, 2**64 - 1


class Manner(NamedTuple):
    """What a function takes besides its parameters: the number of values, and a seed.

    One that takes no count gives one value, and is called for each.
    """

    count: bool  # type: ignore[assignment]
    seed: bool


class Piece(NamedTuple):
    """Values to evaluate: those from `start` up to `stop` of a row, at its parameters.

    `key` stands for the row where seeds are made.
    """

    trial: int
    params: Any
    key: int
    start: int
    stop: int

    @property
    def size(self) -> int:
        """How many values it has."""
        return self.stop - self.start


class Sum(NamedTuple):
    """What a piece has given: the mean and deviation of the values from `start` up to `stop`.

    There are fewer than the piece asked for if the time was over, or if there was an error.
    """

    trial: int
    start: int
    stop: int
    seen: Aggregate | None = None
    error: BaseException | None = None


def manner_of(f: Function, space: Space) -> Manner:
    """How to call a function that replicates, by its signature; refused if it cannot be.

    One that takes any keywords is given both.
    """
    taken = [name for name in NAMES if space.names is not None and name in space.names]
    if taken:
        raise InvalidInput(
            f"replicates=True: f is given `count` and `seed` besides its parameters, but the space "
            f"has a parameter {taken[0]!r}. Give that parameter another name"
        )
    fixed = f.keywords if isinstance(f, functools.partial) else {}
    try:
        parameters = inspect.signature(f).parameters
    except (TypeError, ValueError):  # some that are not written in Python
        return Manner(False, False)
    if any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        return Manner("count" not in fixed, "seed" not in fixed)
    named = {name for name, each in parameters.items() if each.kind not in NO_KEYWORDS}
    first = None if space.named else next(iter(parameters), None)
    if "trial" in named and "trial" not in (space.names or ()) and first != "trial":
        raise InvalidInput(
            "replicates=True: f names a parameter `trial`, to end evaluations early, which a "
            "function that replicates cannot do. Leave one of the two out"
        )
    return Manner(*(name in named and name != first and name not in fixed for name in NAMES))


def key_of(seed: int, trial: int, told: int) -> int:
    """A number of 64 bits for a row of which `told` values were known when this run began it."""
    word = blake2b(f"replicates {seed} {trial} {told}".encode(), digest_size=8).digest()
    return int.from_bytes(word, "little")


def seed_of(key: int, place: int) -> int:
    """The seed of the value, or of the call, at a place of a row: from 0 up to 2⁶³ − 1.

    SplitMix64 maps different places to different numbers of 64 bits, of which the last is dropped.
    """
    z = (key + (place + 1) * _STEP) & _BITS
    z = ((z ^ (z >> 30)) * _MIX_1) & _BITS
    z = ((z ^ (z >> 27)) * _MIX_2) & _BITS
    return (z ^ (z >> 31)) >> 1


def work(
    f: Function,
    manner: Manner,
    pieces: Sequence[Piece],
    seconds: float,
    number: int = 0,
    tick: Callable[[], object] | None = None,
) -> list[Sum]:
    """Evaluate pieces until the time is over, at least one value, and return their sums.

    Pieces that were not begun are not in the answer. Errors are returned: see `evaluate_all`, also
    for the number, which makes every task different. `tick` is called between two calls of f.
    """
    sums: list[Sum] = []
    ends = time.monotonic() + seconds
    for piece in pieces:
        if sums and time.monotonic() >= ends:
            break
        sums.append((_together if manner.count else _one_by_one)(f, manner, piece, ends, tick))
        if tick is not None:
            tick()
    return sums


def _together(f: Function, manner: Manner, piece: Piece, ends: float, tick: Any) -> Sum:
    """All values of a piece by one call."""
    count = piece.size
    also = {"count": count, **_seed(manner, piece, piece.start)}
    try:
        seen = values_of(called(f, piece.params, also), count)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return Sum(piece.trial, piece.start, piece.start, None, portable(error))
    return Sum(piece.trial, piece.start, piece.stop, seen)


def _one_by_one(f: Function, manner: Manner, piece: Piece, ends: float, tick: Any) -> Sum:
    """A call for each value of a piece, until the time is over."""
    values: list[float] = []
    error: BaseException | None = None
    for place in range(piece.start, piece.stop):
        try:
            values.append(as_value(called(f, piece.params, _seed(manner, piece, place))))
        except KeyboardInterrupt:
            raise
        except BaseException as raised:
            error = portable(raised)
            break
        if tick is not None:
            tick()
        if time.monotonic() >= ends:
            break
    seen = aggregate_of(np.array(values), "tell") if values else None
    return Sum(piece.trial, piece.start, piece.start + len(values), seen, error)


def _seed(manner: Manner, piece: Piece, place: int) -> dict[str, int]:
    return {"seed": seed_of(piece.key, place)} if manner.seed else {}


def values_of(result: Any, count: int) -> Aggregate:
    """The mean, deviation and count of what a function returned for `count` values."""
    if isinstance(result, Aggregate):
        if result.count != count or (count > 1 and result.std is None):
            raise WrongKind(
                f"the function was asked for count={count} values, but returned {result!r}. Return "
                "Aggregate(mean, std, count) with that count and their sample deviation (ddof=1)"
            )
        return as_aggregate(*result, "tell")
    shape = _shape_of(result)
    if shape != (count,):
        got = "no array" if shape is None else f"shape {shape}"
        raise WrongKind(
            f"the function was asked for count={count} values, but returned {result!r:.80} "
            f"({got}). Return an array of shape ({count},), or Aggregate(mean, std, count); or "
            "leave `count` out of its parameters to have it called once for each value"
        )
    return aggregate_of(result if isinstance(result, list) else np.asarray(result), "tell")


def _shape_of(result: Any) -> tuple[int, ...] | None:
    """The shape of an array of any library or of a list; None for anything else."""
    if isinstance(result, str | bytes | dict | tuple) or result is None:
        return None
    shape = getattr(result, "shape", None)
    if shape is None:
        return np.shape(result) if isinstance(result, list | int | float) else None
    return tuple(int(side) for side in shape)


def cut(row: Piece, most: int) -> list[Piece]:
    """A row in pieces of `most` values each, the last of which may have fewer."""
    starts = range(row.start, row.stop, most)
    return [row._replace(start=at, stop=min(at + most, row.stop)) for at in starts]


def size_of(count: int, workers: int, most: int) -> int:
    """How many values of a row a piece has, so that all workers can share it."""
    return max(1, min(most, math.ceil(count / workers)))
