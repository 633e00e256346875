"""Save what is sound of a damaged study in a new file.

The sound rows of the log are kept, in their order. A row that needs one that is lost is lost too:
the value of a trial whose beginning is gone has no parameters. Trials keep their numbers: where the
beginning of one is lost, a failed trial stands in its place.
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
        How many events it has.
    values
        How many of them are values.
    lost
        What was lost, a sentence each.
    """

    path: Path
    events: int = 0
    values: int = 0
    lost: list[str] = field(default_factory=list)


def save(report: Report, path: str | PathLike[str]) -> Saved:
    """Write what `check` found to be sound to a new file."""
    saved = Saved(place.as_path(path))
    if saved.path.exists():
        raise InvalidInput(f"{saved.path} is there already: give the name of a new file")
    if not saved.path.parent.is_dir():
        raise InvalidInput(f"{saved.path}: there is no folder {saved.path.parent}, make it first")
    if report.settings is None:
        raise StudyError(
            f"{report.path}: what the study is about is damaged, so that nothing can be saved as a "
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
    """The events to keep, as they would follow each other in a log."""
    following, pending, expired = 0, set[int](), set[int]()
    for line in report.lines:
        event = line.event
        if event is None:
            saved.lost.append(f"event {line.seq}: {line.why}")
        elif event.kind in BEGINNINGS and event.trial >= following:
            for trial in range(following, event.trial):
                saved.lost.append(f"trial {trial}: a failed trial stands in its place")
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
                f"event {event.seq}: {event.kind} of trial {event.trial}{value}, which has no "
                "beginning, or an end already"
            )


def _instead(event: Event, trial: int) -> Iterator[Event]:
    """A failed trial, at the point of one that is known to be possible."""
    begun = event._replace(
        kind=Kind.EXPECT, trial=trial, value=None, std=None, owner=None, data=None
    )
    yield begun
    yield begun._replace(kind=Kind.CANCEL, params=None, point=None)
