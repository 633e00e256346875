"""The lines of a study's log."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """What happened to a trial, by the word that is stored."""

    #: The policy chose it.
    ASK = "ask"
    #: It was begun at a point chosen otherwise.
    EXPECT = "expect"
    #: It has a value.
    TELL = "tell"
    #: It was given up.
    CANCEL = "cancel"
    #: It was given up since it had been pending for too long.
    EXPIRE = "expire"
    #: A value known from elsewhere became a trial.
    ADD = "add"
    #: Another run evaluates it, or keeps it pending.
    ADOPT = "adopt"


#: Events that begin a trial, and that end one.
BEGINNINGS = (Kind.ASK, Kind.EXPECT, Kind.ADD)
ENDINGS = (Kind.TELL, Kind.ADD, Kind.CANCEL, Kind.EXPIRE)


class Event(NamedTuple):
    """A line of the log.

    Attributes
    ----------
    seq
        From 1 on, without gaps.
    kind
        A `Kind`; of a file that was tampered with, any word.
    trial
        Number of the trial.
    time
        Seconds since 1970.
    value
        Of a tell or add.
    params
        Of an event that begins a trial, as JSON, for other readers of the file.
    point
        Of an event that begins a trial: the point of the unit cube, little-endian doubles.
    owner
        Of an ask, expect or adopt: the run that evaluates the trial, if one does.
    std
        Of a tell or add: the standard deviation of the value's noise, if it is known.
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
