"""Find faults in the file of a study, and what can be saved. The file itself is not changed.

Each row of the log is checked against the digest of the row before it. So rows after a damaged one
can still be recognised as intact.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from partita.errors import PartitaError, StudyError

from . import formats, place
from .events import (
    MORE,
    ORIGIN,
    OWNERS,
    PROGRESS,
    WHOLE,
    Broken,
    Event,
    checked,
    digest_of,
    head_of,
    typed,
)
from .failures import Unreadable
from .settings import Settings
from .state import State

#: The largest number of lines about rows, and about pages, in a report.
MOST_LINES = 20


class Line(NamedTuple):
    """A row of the log: its number, and its event if it is intact, or else what is wrong."""

    seq: int
    event: Event | None
    why: str = ""


@dataclass
class Report:
    """What a check of a file found.

    Attributes
    ----------
    path
    format
        The number of its format.
    faults
        What is wrong, one sentence each; empty if nothing is.
    notes
        Other information.
    lines
        The rows of the log.
    meta
        The table `meta`, if it can be read.
    settings
        The settings of the study, if they can be read.
    """

    path: Path
    format: int = 0
    faults: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    meta: dict[str, str] = field(default_factory=dict)
    settings: Settings | None = None

    @property
    def events(self) -> list[Event]:
        """The intact rows of the log."""
        return [line.event for line in self.lines if line.event is not None]


def check(
    path: str | PathLike[str],
    feasible: Callable[..., Any] | None = None,
    policy: str | Callable[..., Any] | None = None,
) -> Report:
    """Check the file of a study without changing it, and report what is wrong.

    Parameters
    ----------
    path
    feasible, policy
        The study's constraint and own policy, if it has them: files cannot store these. Without
        them the log is not replayed.
    """
    report = Report(place.as_path(path))
    if not report.path.is_file():
        raise StudyError(f"there is no study {report.path}: check the name")
    alone = place.lacks_log(report.path)
    if alone:
        log = place.log_of(report.path).name
        report.faults.append(f"its write-ahead log, {log}, is missing: what was in it is lost")
    try:
        db = place.connect(report.path, "ro&immutable=1" if alone else "ro")
    except Unreadable as error:
        raise StudyError(f"{report.path}: cannot be opened ({error})") from error
    with contextlib.closing(db):
        try:
            _check_file(db, report)
        except Unreadable as error:
            report.faults.append(f"SQLite cannot read it: {error!s:.200}")
    if report.settings is not None and not report.faults:
        _replay(report, report.settings, feasible, policy)
    return report


def _check_file(db: sqlite3.Connection, report: Report) -> None:
    with place.bounded(db):
        if db.execute("PRAGMA application_id").fetchone()[0] != formats.APPLICATION:
            raise StudyError(f"{report.path} is not a study of Partita")
        report.format = formats.version_of(db)
        if report.format > formats.FORMAT or report.format < 1:
            formats.check(db, report.path)
        report.faults += [f"the schema: {fault}" for fault in formats.schema_faults(db)]
        readable = formats.has_ours(db, "meta", "events")
    if not readable:
        return
    if report.format < formats.FORMAT:
        report.notes.append(
            f"it is in format {report.format}, whose rows have no checksums; it will be converted "
            f"to format {formats.FORMAT} when it is opened"
        )
    for (text,) in db.execute(f"PRAGMA integrity_check({MOST_LINES})"):
        if text != "ok":
            report.faults.append(f"SQLite: {text!s:.200}")
    _read_meta(db, report)
    _read_log(db, report)
    for name, (query, types) in (("owners", OWNERS), ("progress", PROGRESS)):
        with place.bounded(db):
            ours = formats.has_ours(db, name)
        try:
            if ours:
                list(typed(db.execute(query), types))
        except (Broken, *Unreadable) as error:
            report.faults.append(f"the table {name}: {error!s:.200}")
    with place.bounded(db):
        ours = formats.has_ours(db, "snapshot")
    if ours and report.format == formats.FORMAT:
        _check_snapshot(db, report)


def _read_meta(db: sqlite3.Connection, report: Report) -> None:
    try:
        rows = db.execute("SELECT key, value FROM meta LIMIT 20").fetchall()
        report.meta = {k: v for k, v in rows if isinstance(k, str) and isinstance(v, str)}
        report.settings = Settings.from_meta(report.meta, report.path)
    except Unreadable as error:
        report.faults.append(f"the table meta cannot be read: {error!s:.200}")
    except StudyError as error:
        report.faults.append(str(error).removeprefix(f"{report.path}: "))


def _check_snapshot(db: sqlite3.Connection, report: Report) -> None:
    from .snapshot import digest_of as digest_of_state

    for seq, digest, state in db.execute("SELECT seq, digest, state FROM snapshot LIMIT 1"):
        if not isinstance(state, bytes) or digest != digest_of_state(state):
            report.notes.append(f"its snapshot of event {seq!r:.20} is damaged, and is not used")


# -- the log ---------------------------------------------------------------------------------------


def _read_log(db: sqlite3.Connection, report: Report) -> None:
    """Read the log row by row, and record which rows are intact."""
    chained = report.format == formats.FORMAT
    before: bytes | None = ORIGIN
    expected, digest = 1, ORIGIN
    for seq, row in _rows(db, report):
        if seq != expected:
            missing = (
                f"event {expected}" if seq == expected + 1 else f"events {expected} to {seq - 1}"
            )
            _say(report, f"{missing} of the log: missing")
            before = None
        line, before = _line(seq, row, before if chained else ORIGIN, chained)
        report.lines.append(line)
        if line.event is None:
            _say(report, f"event {seq} of the log: {line.why}")
        expected, digest = seq + 1, before or ORIGIN
    head = report.meta.get("head", "").removesuffix(MORE).removesuffix(WHOLE) + WHOLE
    if chained and head != head_of(expected - 1, digest):
        last = head.partition(" ")[0]
        report.faults.append(
            f"the log ends at event {expected - 1}, but should end at {last!r:.25}"
        )


def _line(seq: int, row: Any, before: bytes | None, chained: bool) -> tuple[Line, bytes | None]:
    """A row, checked against the digest of the row before it, and its own digest if known."""
    if isinstance(row, str):
        return Line(seq, None, row), None
    try:
        event = checked(row)
    except Broken as error:
        return Line(seq, None, str(error).partition(": ")[2]), _digest(row)
    if not chained:
        return Line(seq, event), None
    if before is None:
        return Line(
            seq, None, "the row before it is missing, so it cannot be checked"
        ), event.digest
    if digest_of(before, event) != event.digest:
        return Line(seq, None, "its checksum differs"), event.digest
    return Line(seq, event), event.digest


def _digest(row: Any) -> bytes | None:
    return row[-1] if isinstance(row[-1], bytes) and len(row[-1]) == len(ORIGIN) else None


def _rows(db: sqlite3.Connection, report: Report) -> Iterator[tuple[int, Any]]:
    """The rows of the log with their numbers; SQLite's message for one that cannot be read."""
    columns = [name for name in Event._fields if report.format >= _since(name)]
    query = f"SELECT {', '.join(columns)} FROM events NOT INDEXED WHERE seq "
    after = 0
    while True:
        try:
            for row in db.execute(f"{query} > ? ORDER BY seq", (after,)):
                after = row[0]
                yield after, row
            return
        except Unreadable as error:
            words = f"{error!s:.100}"
        following = _next_readable(db, query, after)
        if following is None:
            report.faults.append(f"the log cannot be read after event {after}: {words}")
            return
        for seq in range(after + 1, following):
            yield seq, words
        after = following - 1


def _next_readable(db: sqlite3.Connection, query: str, after: int) -> int | None:
    """The number of the next readable row after a damaged place, or None."""
    for seq in range(after + 1, after + 10_000):
        with contextlib.suppress(*Unreadable):
            if seq > after + 1 and db.execute(f"{query} = ?", (seq,)).fetchone() is not None:
                return seq
    return None


def _since(column: str) -> int:
    return {"std": 2, "data": 3, "digest": 3}.get(column, 1)


def _say(report: Report, fault: str) -> None:
    """Add a fault of a row to the report, unless there are many already."""
    rows = sum(" of the log: " in line for line in report.faults)
    if rows < MOST_LINES:
        report.faults.append(fault)
    elif rows == MOST_LINES:
        report.faults.append("and more rows of the log: not listed")


def _replay(
    report: Report,
    settings: Settings,
    feasible: Callable[..., Any] | None,
    policy: str | Callable[..., Any] | None,
) -> None:
    """Replay the log, and record where the replay fails, if it does."""
    if settings.missing(feasible, policy) is not None:
        report.notes.append("its log was not replayed: it needs your own constraint or policy")
        return
    event = None
    try:
        state = State(settings.build(feasible, policy))
        for event in report.events:
            state.replay(event)
        state.flush()
    except PartitaError as error:
        where = "" if event is None else f"event {event.seq} of the log: "
        report.faults.append(f"{where}{error}")
        if event is not None:  # an event that cannot be replayed is not saved either
            report.lines[:] = [
                Line(line.seq, None, str(error)) if line.seq == event.seq else line
                for line in report.lines
            ]
        return
    report.notes.append(f"{len(report.lines):,} events, {state.optimizer.n_told:,} values")
