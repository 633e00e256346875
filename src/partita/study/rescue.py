"""Save the intact part of a damaged study in a new file.

The intact rows of the log are kept, in their order. A row that depends on a lost one is lost too: a
value is useless without the parameters of its trial. Trials keep their numbers: a trial whose first
row is lost is replaced by a failed one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from partita.errors import InvalidInput, StudyError

from . import formats, place
from .check import Report
from .events import BEGINNINGS, INSERT, ORIGIN, Event, Kind, digest_of, head_of


@dataclass
class Saved:
    """What was saved.

    Attributes
    ----------
    path
        The new file.
    events
        The number of its events.
    values
        The number of its events with a value.
    lost
        What was lost, one sentence each.
    """

    path: Path
    events: int = 0
    values: int = 0
    lost: list[str] = field(default_factory=list)


def save(report: Report, path: str | PathLike[str]) -> Saved:
    """Write what `check` found intact to a new file."""
    saved = Saved(place.as_path(path))
    if saved.path.exists():
        raise InvalidInput(f"{saved.path} already exists: give the name of a new file")
    if not saved.path.parent.is_dir():
        raise InvalidInput(f"{saved.path}: there is no folder {saved.path.parent}, create it first")
    if report.settings is None:
        raise StudyError(
            f"{report.path}: the settings of the study are damaged, so nothing can be saved as a "
            "study. Values may be left in the table events: see `sqlite3 FILE .recover`"
        )
    events = list(_kept(report, saved))
    saved.events = len(events)
    saved.values = sum(event.value is not None for event in events)
    meta = {key: report.meta[key] for key in ("settings", "checksum", "written_by")}
    with closing(place.connect(saved.path, "rwc")) as db:
        try:
            db.execute("BEGIN IMMEDIATE")
            formats.create(db, meta)
            _write(db, events)
            db.execute("COMMIT")
        except sqlite3.Error as error:
            raise StudyError(f"{saved.path} cannot be written: {error}") from error
    return saved


def _write(db: sqlite3.Connection, events: list[Event]) -> None:
    seq, digest = 0, ORIGIN
    for seq, event in enumerate(events, 1):
        row = event._replace(seq=seq)
        digest = digest_of(digest, row)
        db.execute(INSERT, row._replace(digest=digest))
    db.execute("UPDATE meta SET value = ? WHERE key = 'head'", (head_of(seq, digest),))


def _kept(report: Report, saved: Saved) -> Iterator[Event]:
    """The events to keep, in an order that is valid for a log."""
    following, pending, expired = 0, set[int](), set[int]()
    for line in report.lines:
        event = line.event
        if event is None:
            saved.lost.append(f"event {line.seq}: {line.why}")
        elif event.kind in BEGINNINGS and event.trial >= following:
            for trial in range(following, event.trial):
                saved.lost.append(f"trial {trial}: replaced by a failed trial")
                yield from _instead(event, trial)
            following = event.trial + 1
            if event.kind != Kind.ADD:
                pending.add(event.trial)
            yield event._replace(owner=None)
        elif event.trial in pending or (
            event.kind in (Kind.TELL, Kind.PRUNE) and event.trial in expired
        ):
            if event.kind != Kind.ADOPT:
                pending.discard(event.trial)
                expired.discard(event.trial)
                if event.kind == Kind.EXPIRE:
                    expired.add(event.trial)
                yield event
        else:
            value = "" if event.value is None else f", value {event.value!r}"
            saved.lost.append(
                f"event {event.seq}: {event.kind} of trial {event.trial}{value}, whose first event "
                "is lost, or which has already ended"
            )


def _instead(event: Event, trial: int) -> Iterator[Event]:
    """A failed trial, at the point of one that is known to be possible."""
    begun = event._replace(
        kind=Kind.EXPECT, trial=trial, value=None, std=None, owner=None, data=None
    )
    yield begun
    yield begun._replace(kind=Kind.CANCEL, params=None, point=None)
