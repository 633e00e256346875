"""The events of a study's log, and the checksum that chains each to all before it."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from hashlib import blake2b
from typing import Any, NamedTuple, NoReturn

from partita.errors import InvalidInput


class Kind(StrEnum):
    """The kinds of events of a trial, each with the word that is stored."""

    #: The policy chose it.
    ASK = "ask"
    #: It was begun at a point that the user chose.
    EXPECT = "expect"
    #: It has a value.
    TELL = "tell"
    #: It ended early; its reports are in the data.
    PRUNE = "prune"
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
ENDINGS = (Kind.TELL, Kind.ADD, Kind.PRUNE, Kind.CANCEL, Kind.EXPIRE)
#: What the data of an event may have: the coordinates that were fixed, as by a context, what the
#: trial reported, the value that was expected of it and the noise of that, the number of adds from
#: this one on that were made together, values of constrained quantities by name, whether the
#: evaluation failed, and the key by which a client can repeat its request: see `Study.keyed`. The
#: count of an ask is that of a plan's row; of a value, how many it is the mean of. An ask that was
#: made ahead (see `ahead`) waits to be taken, by an adopt.
FIELDS = {
    Kind.ASK: ("fixed", "count", "key", "ahead"),
    Kind.EXPECT: ("key",),
    Kind.TELL: ("reports", "values", "count", "key"),
    Kind.PRUNE: ("reports", "expected"),
    Kind.ADD: ("batch", "values", "count", "key"),
    Kind.CANCEL: ("failed", "key"),
    Kind.ADOPT: ("key",),
}


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
    data
        What else is known of the trial, a JSON object: see `as_data`. None if there is nothing.
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
    data: str | None = None
    digest: bytes | None = None


#: Appends a line to the log.
INSERT = f"INSERT INTO events VALUES ({', '.join('?' * len(Event._fields))})"

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
    (str, type(None)),
    (bytes, type(None)),
)
#: Seconds since 1970 of the years 1 and 9999, beyond which there is no date.
FIRST_TIME, LAST_TIME = -62_135_596_800.0, 253_402_300_799.0
#: No valid kind is this long, and no valid JSON of parameters or data.
LONGEST_KIND, LONGEST_JSON = 20, 20_000_000


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
    longest = max(len(event.params or ""), len(event.data or ""))
    if len(event.kind) > LONGEST_KIND or longest > LONGEST_JSON:
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
#: seq, trial, time, value, owner, std; lengths of kind, params, point and data.
_NUMBERS = struct.Struct("<qqddqdqqqq")


def digest_of(before: bytes, event: Event) -> bytes:
    """The checksum of an event and of all before it: 16 bytes of BLAKE2b.

    It is taken of the digest before; of seq, trial, time, value, owner and std, and the lengths in
    bytes of kind, params, point and data, as little-endian int64 and float64; and of kind, params,
    point and data themselves, text as UTF-8. For NULL stand NaN, an owner of -1 and a length of -1.
    """
    seq, kind, trial, time, value, params, point, owner, std, data, _ = event
    # SQLite stores -0.0 as 0.0.
    value = math.nan if value is None else value + 0.0
    std = math.nan if std is None else std + 0.0
    parts = [_bytes_of(kind), _bytes_of(params), point, _bytes_of(data)]
    sizes = [-1 if part is None else len(part) for part in parts]
    numbers = _NUMBERS.pack(
        seq, trial, time + 0.0, value, -1 if owner is None else owner, std, *sizes
    )
    content = b"".join([before, numbers, *filter(None, parts)])
    return blake2b(content, digest_size=16).digest()


def _bytes_of(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", "surrogatepass")


# -- data ------------------------------------------------------------------------------------------


def as_data(fields: Mapping[str, Any]) -> str | None:
    """The column `data` for named JSON values; None if all of them are None.

    Fields that are None are left out, so that features that are not used write nothing.
    """
    there = {name: value for name, value in fields.items() if value is not None}
    return json.dumps(there, allow_nan=False, separators=(",", ":")) if there else None


def data_of(event: Event, allowed: Container[str] = ()) -> dict[str, Any]:
    """The fields of an event's `data`; refused if it is no object or a field is not allowed."""
    if event.data is None:
        return {}
    try:
        fields = json.loads(event.data, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        fields = None
    if not isinstance(fields, dict):
        raise Broken(f"the log is damaged at event {event.seq}: its data is not a JSON object")
    for name in fields:
        if name not in allowed:
            raise Broken(
                f"event {event.seq} has data that this Partita does not know: {name!r:.40}"
            )
    return fields


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


# -- the head --------------------------------------------------------------------------------------

#: How the row `head` of `meta` ends: this is all there is, or more stands in the write-ahead log.
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
