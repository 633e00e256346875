"""The file of a study: SQLite with a write-ahead log, and a transaction for every change.

Tables: `meta` (the settings of the study, written once), `events` (every ask, tell and cancel, in
order, never changed), `owners` (runs that asked), `progress` (recommendations over time) and
`snapshot` (the state at one event, which saves its replay; it may be missing).
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from partita.errors import HalfChanged, StudyError

from . import formats, place
from .events import MORE, ORIGIN, Broken, Event, Types, chained, checked, typed
from .failures import Unreadable, damaged, overwritten
from .file import File, identity_of

T = TypeVar("T")

#: Pages after which a process moves the write-ahead log into the file. That waits for the disk, so
#: it must be rare.
LOG_PAGES = 4000
#: The columns of the log that are read, and the number of rows that are read at once.
COLUMNS, BATCH = ", ".join(Event._fields), 5000
#: The number of attempts to move the log while other processes write.
TRIES = 5
#: The approximate number of pages that a small transaction writes, and the size of a page in bytes.
PAGES, PAGE = 3, 4096


class Store(File):
    """Reading and changing the file of a study: see `File` for its parameters."""

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """The rows of a query."""
        try:
            db = self._opened()
            return self._retried(lambda: db.execute(query, values).fetchall())
        except Unreadable as error:
            raise self._explained(error) from error

    def typed(self, query: str, types: Types, values: Sequence[Any] = ()) -> list[Any]:
        """The rows of a query, checked: columns have the given types, and the first increases."""
        try:
            db = self._opened()
            return self._retried(lambda: list(typed(db.execute(query, values), types)))
        except Unreadable as error:
            raise self._explained(error) from error
        except Broken as error:
            raise damaged(self.path, str(error)) from error

    def meta(self) -> dict[str, str]:
        """The table `meta`."""
        meta = dict(self.typed("SELECT key, value FROM meta ORDER BY key", ((str,), (str,))))
        if meta.keys() - {"tolerance"} != {"settings", "checksum", "written_by", "head"}:
            raise damaged(self.path, "the table meta does not have the rows that Partita writes")
        return meta

    def head(self) -> str:
        """The row `head` of `meta`: the last event, and whether there is more in the log."""
        try:
            db = self._opened()
            return self._retried(lambda: place.head(db))
        except Unreadable as error:
            raise self._explained(error) from error

    def events(self, after: int, digest: bytes = ORIGIN) -> Iterator[Event]:
        """The events after number `after` with this digest, in order, with checked digests."""
        while True:
            events = self._events_from(after)
            if len(events) > (after > 0):
                # Perhaps a newer Partita has upgraded the file.
                self._check_format()
            if after:
                self._check_same(after, digest, events.pop(0) if events else None)
            try:
                for event in chained(events, after, digest):
                    after, digest = event.seq, event.digest or ORIGIN
                    yield event
            except Broken as error:
                raise damaged(self.path, str(error)) from error
            if len(events) < BATCH - 1:
                return

    def check_last(self, seq: int, digest: bytes) -> None:
        """Refuse a log in which the last event that this process saw has changed or is missing.

        This is how a writer notices a file system without working locks.
        """
        if seq and self._db is not None and identity_of(self.file) == self._place:
            if not self._still:
                self._check_log()
            events = self._events_from(seq, 1)
            self._check_same(seq, digest, events[0] if events else None)

    def _check_same(self, seq: int, digest: bytes, event: Event | None) -> None:
        if event is None or (event.seq, event.digest) != (seq, digest):
            what = f"event {seq} of the log has changed"
            raise overwritten(self.path, what)

    def _events_from(self, first: int, most: int = BATCH) -> list[Event]:
        """At most `most` events from number `first`, each checked before the next is read."""
        query = f"SELECT {COLUMNS} FROM events WHERE seq >= ? ORDER BY seq LIMIT ?"
        try:
            db = self._opened()
            return self._retried(lambda: list(map(checked, db.execute(query, (first, most)))))
        except Unreadable as error:
            raise self._explained(error) from error
        except Broken as error:
            raise damaged(self.path, str(error)) from error

    def _check_format(self) -> None:
        """Refuse a file that another process has upgraded to a newer format."""
        db = self._opened()
        if not formats.is_current(db):
            formats.check(db, self.path)

    def transact(
        self,
        work: Callable[[sqlite3.Connection], T],
        size: int = 0,
        stored: Callable[[T], None] | None = None,
    ) -> T:
        """Run `work` in a transaction and return its result; it is rolled back if `work` raises.

        `size` is the number of bytes it stores, if large. `stored` is called with the result once
        it is on the disk, before the log is tidied, which may take longer.
        """
        if not self._marked:
            self._mark()
        result = self._locked(work)
        if stored is not None:
            stored(result)
        self._pages += PAGES + size // PAGE
        if self._pages >= LOG_PAGES * self.patience:
            self._move_log()
        return result

    def tidy(self) -> None:
        """Move the write-ahead log into the file if it is long."""
        if self._pages >= LOG_PAGES:
            self._move_log()

    def _move_log(self) -> None:
        """Move the write-ahead log into the file, while no process can write.

        SQLite up to 3.51.2 may lose a transaction that is committed while another process does this
        (sqlite.org/wal.html, "The WAL-Reset Bug"). So it never does this automatically here, and
        this process holds the writers' lock while a second connection does it.
        """
        self._pages = 0
        # Whatever cannot be moved now is safe in the log.
        with contextlib.suppress(StudyError, sqlite3.Error):
            for _ in range(TRIES):
                moved = False
                try:
                    self._locked(lambda db: place.say(db, MORE))
                    moved = self._locked(self._moved)
                finally:
                    try:
                        self._settle(self._opened())
                    finally:  # again, in case the first call was interrupted
                        self._settle(self._opened())
                if moved:
                    return

    def _moved(self, db: sqlite3.Connection) -> bool:
        """Move the log, in a transaction, if nothing was stored since `meta` was set to MORE.

        The next transaction, the first in the log, marks the content as complete: see `place`. It
        must be a separate one, or SQLite would never restart the log. If this process is killed
        before it, the next process that opens, closes or changes the file does it.
        """
        if not place.head(db).endswith(MORE):
            return False
        other = self._raw("rw")
        try:
            other.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        finally:
            other.close()
        return True

    def _mark(self) -> None:
        """Make sure that the file, without its log, says that there is more in the log."""
        self._opened()
        if not place.says_more(self.file):
            self._move_log()
        self._marked = True

    def version(self) -> tuple[int, int]:
        """Which connection is open, and a number that changes when another one stores something.

        If it is the same as before, no other process has changed the file.
        """
        db = self._opened()
        return self._opens, _version_of(db)

    def _locked(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def checked_work() -> T:
            self._check_place()
            self._check_log()
            version = (self._opens, _version_of(db))
            if version != self.checked:
                self._check_format()
                self.checked = version
            return work(db)

        try:
            db = self._opened()
            if db.in_transaction:
                raise HalfChanged(
                    f"{self.path}: a study cannot be changed while another change of it is in "
                    "progress: `feasible` must not use it"
                )
            return self._all_or_nothing(db, checked_work)
        except sqlite3.Error as error:
            raise self._explained(error) from error


def _version_of(db: sqlite3.Connection) -> int:
    """A number that changes when another connection has stored something."""
    return int(db.execute("PRAGMA data_version").fetchone()[0])
