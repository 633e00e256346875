"""The events of a study's log, and the checksum that chains each to all before it."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from hashlib import blake2b
from typing import Any, NamedTuple

from partita.errors import InvalidInput


class Kind(StrEnum):
    """The kinds of events of a trial, each with the word that is stored."""

    #: The policy chose it.
    ASK = "ask"
    #: It was begun at a point that the user chose.
    EXPECT = "expect"
    #: It has a value.
    TELL = "tell"
    #: It was cancelled.
    CANCEL = "cancel"
    #: It was cancelled because it had been pending for too long.
    EXPIRE = "expire"
    #: A value known from elsewhere was added as a trial.
    ADD = "add"
    #: Another run evaluates it, or keeps it pending.
    ADOPT = "adopt"


#: Events that begin a trial, and that end one.
BEGINNINGS = (Kind.ASK, Kind.EXPECT, Kind.ADD)
ENDINGS = (Kind.TELL, Kind.ADD, Kind.CANCEL, Kind.EXPIRE)


class Broken(InvalidInput):
    """An event of a log is damaged. The message says which."""


class Event(NamedTuple):
    """An event of the log.

    Attributes
    ----------
    seq
        Counted from 1, without gaps.
    kind
        A `Kind`; in a file that was tampered with, any string.
    trial
        Number of the trial.
    time
        Seconds since 1970.
    value
        The value of a tell or add.
    params
        For an event that begins a trial: its parameters as JSON, for other readers of the file.
    point
        For an event that begins a trial: the point of the unit cube, as little-endian doubles.
    owner
        For an ask, expect or adopt: the run that evaluates the trial, if there is one.
    std
        For a tell or add: the standard deviation of the value's noise, if it is known.
    digest
        The checksum of this event and of all events before it: see `digest_of`.
    """

    seq: int
    kind: str
    trial: int
    time: float
    value: float | None = None
    params: str | None = None
    point: bytes | None = None
    owner: int | None = None
    std: float | None = None
    digest: bytes | None = None


# -- checks ----------------------------------------------------------------------------------------

#: Types that each column of a row may have.
Types = Sequence[tuple[type, ...]]

#: The other tables: the query that reads each, and the types of its columns.
OWNERS: tuple[str, Types] = ("SELECT id, name FROM owners ORDER BY id", ((int,), (str,)))
PROGRESS: tuple[str, Types] = (
    "SELECT told, time, mean, lower, upper, certificate FROM progress ORDER BY told",
    ((int,), (float,), *[(float, type(None))] * 4),
)
#: The types of the columns, in their order; NULL is allowed only where there is a None.
_TYPES: Types = (
    (int,),
    (str,),
    (int,),
    (float,),
    (float, type(None)),
    (str, type(None)),
    (bytes, type(None)),
    (int, type(None)),
    (float, type(None)),
    (bytes, type(None)),
)
#: Seconds since 1970 of the years 1 and 9999, beyond which there is no date.
FIRST_TIME, LAST_TIME = -62_135_596_800.0, 253_402_300_799.0
#: No valid kind is this long, and no valid JSON of parameters.
LONGEST_KIND, LONGEST_PARAMS = 20, 20_000_000


def checked(row: Sequence[Any]) -> Event:
    """A row of the table as an event; refused if a column has a wrong type or value.

    A row of an older format has fewer columns.
    """
    for name, value, types in zip(Event._fields, row, _TYPES, strict=False):
        if type(value) not in types:
            raise _bad(row, f"{name} is of type {type(value).__name__}")
    event = Event._make((*row, *(None,) * (len(_TYPES) - len(row))))
    if not FIRST_TIME <= event.time <= LAST_TIME:
        raise _bad(row, f"{event.time!r} is not a time")
    if event.trial < 0 or (event.owner is not None and event.owner < 0):
        raise _bad(row, "a number is negative")
    if len(event.kind) > LONGEST_KIND or len(event.params or "") > LONGEST_PARAMS:
        raise _bad(row, "it is too long")
    return event


def _bad(row: Sequence[Any], why: str) -> Broken:
    return Broken(f"the log is damaged at event {row[0]}: {why}")


def typed(rows: Iterable[Any], types: Types) -> Iterator[Any]:
    """Check that the columns of rows have the given types and that the first column increases.

    Each is checked before the next is read: a damaged table may have no end.
    """
    last = None
    for row in rows:
        for value, allowed in zip(row, types, strict=True):
            if type(value) not in allowed:
                raise Broken(f"there is an unexpected value, {value!r:.40}")
        if last is not None and not row[0] > last:
            raise Broken("rows of a table are out of order")
        last = row[0]
        yield row


#: The digest before the first event of a log.
ORIGIN = bytes(16)
#: seq, trial, time, value, owner, std; lengths of kind, params and point.
_NUMBERS = struct.Struct("<qqddqdqqq")


def digest_of(before: bytes, event: Event) -> bytes:
    """The checksum of an event and of all before it: 16 bytes of BLAKE2b.

    It covers the previous digest; seq, trial, time, value, owner and std, and the lengths in bytes
    of kind, params and point, as little-endian int64 and float64; and kind, params and point
    themselves, text as UTF-8. NULL is represented by NaN, an owner of -1 and a length of -1.
    """
    seq, kind, trial, time, value, params, point, owner, std, _ = event
    # SQLite stores -0.0 as 0.0.
    value, std = (math.nan if number is None else number + 0.0 for number in (value, std))
    word = kind.encode("utf-8", "surrogatepass")
    text = b"" if params is None else params.encode("utf-8", "surrogatepass")
    sizes = len(word), -1 if params is None else len(text), -1 if point is None else len(point)
    numbers = _NUMBERS.pack(
        seq, trial, time + 0.0, value, -1 if owner is None else owner, std, *sizes
    )
    content = b"".join((before, numbers, word, text, point or b""))
    return blake2b(content, digest_size=16).digest()


#: The end of the row `head` of `meta`: the file is complete, or the write-ahead log has more.
WHOLE, MORE = " whole", " more"


def head_of(seq: int, digest: bytes) -> str:
    """The row `head` of `meta` after the last event: its number, its digest, and `WHOLE`."""
    return f"{seq} {digest.hex()}{WHOLE}"


def chained(events: Iterable[Event], after: int, digest: bytes) -> Iterator[Event]:
    """The events after number `after` with that digest; an error if the chain is broken."""
    for event in events:
        if event.seq != after + 1:
            raise Broken(f"event {after + 1} is missing in the log")
        digest = digest_of(digest, event)
        if event.digest != digest:
            raise Broken(
                f"the log is damaged at event {event.seq} ({event.kind!r} of trial {event.trial}): "
                "its checksum differs"
            )
        after = event.seq
        yield event
