"""The file of a study: SQLite with a write-ahead log, and a transaction for every change.

Tables: `meta` (the settings of the study, written once), `events` (every ask, tell and cancel, in
order, never changed), `owners` (runs that asked), `progress` (recommendations over time) and
`snapshot` (the state at one event, which saves its replay; it may be missing).
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from partita._locks import at_fork, is_under_way, new_lock
from partita.errors import HalfChanged, StudyError

from . import formats, place
from .events import MORE, ORIGIN, WHOLE, Broken, Event, Types, chained, checked, typed
from .failures import Unreadable, code_of, damaged, explained, outdated, overwritten, without_log

T = TypeVar("T")

#: The smallest size of a database. SQLite would take a shorter file for an empty one and overwrite
#: it.
SMALLEST = 512
#: Pages after which a process moves the write-ahead log into the file. That waits for the disk, so
#: it must be rare. And the bytes that the log keeps on the disk afterwards.
LOG_PAGES, LOG_SIZE = 4000, 20_000_000
#: The columns of the log that are read, and the number of rows that are read at once.
COLUMNS, BATCH = ", ".join(Event._fields), 5000
#: The number of attempts to move the log while other processes write.
TRIES = 5
#: The approximate number of pages that a small transaction writes, and the size of a page in bytes.
PAGES, PAGE = 3, 4096


class Store:
    """The connection to one file. It is reopened automatically after a fork.

    Parameters
    ----------
    path
    durability : "process" or "power"
        What a committed transaction survives: the end of the process, or a power cut.
    timeout
        Seconds to wait for a lock.
    """

    def __init__(self, path: Path, durability: Literal["process", "power"], timeout: float) -> None:
        #: The path as the user gave it, for messages.
        self.path = path
        #: The absolute path, which stays valid if the process changes its folder.
        self.file = _absolute(path)
        self.durability, self.timeout = durability, timeout
        self.lock = new_lock()
        self._db: sqlite3.Connection | None = None
        #: The approximate number of pages written since the log was last moved.
        self._pages = 0
        #: Whether the file, without its log, says that there is more in the log.
        self._marked = False
        #: Whether the file is on a read-only medium.
        self._still = False
        #: The identities of the file and its log, to notice if they are replaced.
        self._log_file = str(place.log_of(self.file))
        self._place: tuple[int, int] | None = None
        self._log: tuple[int, int] | None = None
        _STORES.add(self)
        #: The connection, and any whose closing was interrupted; all are closed with the store.
        self._open: list[sqlite3.Connection] = []
        weakref.finalize(self, _end, self._open)

    # -- opening -------------------------------------------------------------------------------

    def is_new(self) -> bool:
        """Whether the file does not exist or is empty."""
        if not self.file.exists():
            return True
        db = self._connect(create=False)
        try:
            return not self._is_there(db)
        except Unreadable as error:
            raise self._explained(error) from error
        finally:
            db.close()

    def create(self, meta: Mapping[str, str]) -> bool:
        """Create the study unless it exists, and return whether this call created it."""
        db = self._connect(create=True)
        try:
            if self._is_there(db):
                return False
            self._configure(db)
            return self._all_or_nothing(db, lambda: self._created(db, meta))
        except Unreadable as error:
            raise self._explained(error) from error
        finally:
            db.close()

    def _created(self, db: sqlite3.Connection, meta: Mapping[str, str]) -> bool:
        if not self._is_new(db):  # another process has created it meanwhile
            return False
        formats.create(db, meta)
        return True

    def _opened(self) -> sqlite3.Connection:
        if self._db is None:
            db = self._connect(create=False)
            try:
                if self._place is not None:  # reopened: it must still be the same file
                    self._check_place()
                self._check(db)
                self._upgrade(db)
                self._configure(db)
                self._settle(db)
                self._marked = False
            except Unreadable as error:
                db.close()
                raise self._explained(error) from error
            except BaseException:
                db.close()
                raise
            self._log, self._place = None, self._place or _identity(self.file)
            self._open.append(db)
            self._db = db
        elif self._db.in_transaction and not is_under_way(Store._all_or_nothing, self):
            _roll_back(self._db)  # left by a call that was interrupted twice
        return self._db

    def _check_place(self) -> None:
        """Refuse to write to a file that was moved, deleted or replaced."""
        if _identity(self.file) != self._place:
            raise StudyError(
                f"{self.path} was moved, deleted or replaced while it was open. Put it back, or "
                "open the new file with Study.open"
            )

    def _check_log(self) -> None:
        """Refuse to write to a log that was replaced or deleted, during a transaction.

        SQLite deletes the log when it believes that the last process has closed the file.
        """
        log = _identity(self._log_file)
        self._log = self._log or log
        if log != self._log:
            raise overwritten(place.log_of(self.path), "this is another log than before")

    def _connect(self, create: bool) -> sqlite3.Connection:
        if not create and not self.file.exists():
            raise StudyError(
                f"there is no study {self.path}: check the name, or create one, by giving a "
                "space or with `partita create`"
            )
        if str(self.path).startswith(("sqlite:", ":memory:")):
            raise StudyError(f"{self.path} is not a file: give the name of one, such as tune.db")
        if self.file.is_dir():
            raise StudyError(f"{self.path} is a folder: give the name of a file, such as tune.db")
        if 0 < _size(self.file) < SMALLEST:
            raise self._no_study()
        if not self.file.parent.is_dir():
            raise StudyError(f"{self.path}: there is no folder {self.path.parent}, create it first")
        if place.lacks_log(self.file):
            raise place.log_is_missing(self.path)
        place.check_locks(self.file.parent)
        try:
            db = self._raw("rwc" if create else "rw")
            try:
                self._retried(lambda: db.execute("PRAGMA schema_version").fetchone())
            except BaseException:
                db.close()
                raise
        except Unreadable as error:
            if self._is_still(error):
                self._still = True
                return self._raw("ro&immutable=1")
            raise self._explained(error) from error
        return db

    def _is_still(self, error: Exception) -> bool:
        """Whether SQLite cannot open a file only because the medium is read-only.

        Then it can still be read, if its log is empty: reading a log needs write access.
        """
        return (
            code_of(error) in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
            and not os.access(self.file.parent, os.W_OK)
            and _size(self.file) > 0
            and _size(place.log_of(self.file)) == 0
        )

    def _raw(self, mode: str) -> sqlite3.Connection:
        return place.connect(self.file, mode)

    def _is_new(self, db: sqlite3.Connection) -> bool:
        """Whether nothing has been stored in the file yet, by any program."""
        query = "SELECT 1 FROM sqlite_master LIMIT 1"
        with place.bounded(db):
            tables = self._retried(lambda: db.execute(query).fetchall())
        return not tables and not db.execute("PRAGMA application_id").fetchone()[0]

    def _is_there(self, db: sqlite3.Connection) -> bool:
        """Whether there is a study, on a temporary connection; any other content is refused."""
        if self._is_new(db):
            return False
        self._check(db)
        self._settle(db)
        return True

    def _check(self, db: sqlite3.Connection) -> None:
        """Refuse a file that is not a study, or in another format; nothing is written."""
        if self._is_new(db):
            raise StudyError(f"{self.path} is empty: give a space to create a study in it")
        if db.execute("PRAGMA application_id").fetchone()[0] != formats.APPLICATION:
            raise self._no_study()
        with place.bounded(db):
            formats.check(db, self.path)

    def _upgrade(self, db: sqlite3.Connection) -> None:
        """Upgrade a study of an older format."""
        try:
            formats.upgrade(db, lambda: self._begin(db))
        except Unreadable as error:
            if code_of(error) == sqlite3.SQLITE_READONLY:
                raise outdated(self.path) from error
            raise
        except Broken as error:
            raise damaged(self.path, str(error)) from error
        formats.check(db, self.path)  # a newer Partita may have upgraded it meanwhile

    def _configure(self, db: sqlite3.Connection) -> None:
        mode = self._retried(lambda: db.execute("PRAGMA journal_mode").fetchone()[0])
        if mode != "wal" and not self._still:
            mode = self._retried(lambda: db.execute("PRAGMA journal_mode = WAL").fetchone()[0])
            if mode != "wal":
                raise without_log(self.path)
        full = self.durability == "power"
        db.execute(f"PRAGMA synchronous = {'FULL' if full else 'NORMAL'}")
        if full:  # macOS: through the disk's own cache as well
            db.execute("PRAGMA fullfsync = 1")
        db.execute("PRAGMA wal_autocheckpoint = 0")  # see _move_log
        db.execute(f"PRAGMA journal_size_limit = {LOG_SIZE}")

    def close(self) -> None:
        """Close the connection; it is reopened at the next use."""
        with self.lock:
            db, self._db, self._marked = self._db, None, False  # first, so no closed one is used
            if db is not None:
                try:
                    self._settle(db)
                finally:
                    try:
                        self._settle(db)  # again, in case the first call was interrupted
                    finally:
                        db.close()
                self._open.remove(db)

    def _settle(self, db: sqlite3.Connection) -> None:
        """Mark the content as complete, if the last process to move the log did not: see `_moved`.

        If that fails because the file is locked or read-only, the next process to use it does it.
        """
        if self._still:
            return
        with contextlib.suppress(sqlite3.Error):
            if place.head(db).endswith(MORE):
                self._all_or_nothing(db, lambda: place.say(db, WHOLE))

    # -- reading and writing -------------------------------------------------------------------

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
        if meta.keys() != {"settings", "checksum", "written_by", "head"}:
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
        if seq and self._db is not None and _identity(self.file) == self._place:
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

    def transact(self, work: Callable[[sqlite3.Connection], T], size: int = 0) -> T:
        """Run `work` in a transaction and return its result; it is rolled back if `work` raises.

        `size` is the number of bytes it stores, if large.
        """
        if not self._marked:
            self._mark()
        result = self._locked(work)
        self._pages += PAGES + size // PAGE
        if self._pages >= LOG_PAGES:
            self._move_log()
        return result

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

    def _locked(self, work: Callable[[sqlite3.Connection], T]) -> T:
        def checked_work() -> T:
            self._check_place()
            self._check_log()
            self._check_format()
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

    def _all_or_nothing(self, db: sqlite3.Connection, work: Callable[[], T]) -> T:
        """Run `work` in a transaction, safe against interrupts at any moment; return its result.

        A context manager would not be safe: an interrupt may come when `__exit__` is entered, or
        between the beginning of the transaction and the block, and the file would stay locked.
        """
        try:
            self._begin(db)
            result = work()
            db.execute("COMMIT")
        finally:
            try:
                _roll_back(db)
            finally:  # again, in case the first call was interrupted before it did anything
                _roll_back(db)
        return result

    def _begin(self, db: sqlite3.Connection) -> None:
        self._retried(lambda: db.execute("BEGIN IMMEDIATE"))

    def _retried(self, action: Callable[[], T]) -> T:
        """Call an action that may have to wait for a lock, and return its result."""
        end = time.monotonic() + self.timeout
        while True:
            try:
                return action()
            except sqlite3.OperationalError as error:
                if code_of(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= end:
                    raise

    def _no_study(self) -> StudyError:
        return StudyError(f"{self.path} is not a study of Partita: it was not changed")

    def _explained(self, error: Exception) -> StudyError:
        if code_of(error) == sqlite3.SQLITE_NOTADB:
            return self._no_study()
        return explained(error, self.path, self.timeout)


def _absolute(path: Path) -> Path:
    try:
        return path.absolute()
    except OSError as error:  # the current folder was deleted
        raise StudyError(
            f"{path}: there is no current folder ({error}): give an absolute path"
        ) from error


def _identity(path: str | Path) -> tuple[int, int]:
    """The identity of the file at a path."""
    try:
        status = os.stat(path)  # noqa: PTH116  # at every change: a `Path` takes longer
    except OSError:
        return (-1, -1)
    return status.st_dev, status.st_ino


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _roll_back(db: sqlite3.Connection) -> None:
    """Undo a transaction that has not been committed, if there is one."""
    if db.in_transaction:
        with contextlib.suppress(sqlite3.Error):
            db.execute("ROLLBACK")


def _end(connections: list[sqlite3.Connection]) -> None:
    """Close connections that are still open when the process ends or the store is deleted.

    SQLite would also close them, but would delete the log of a file that says it has one.
    """
    for db in connections:
        with contextlib.suppress(sqlite3.Error):
            _roll_back(db)
            if place.head(db).endswith(MORE):
                db.execute("BEGIN IMMEDIATE")
                place.say(db, WHOLE)
                db.execute("COMMIT")
        with contextlib.suppress(sqlite3.Error):
            db.close()


# -- forks -----------------------------------------------------------------------------------------

# A forked process does not inherit SQLite's locks, although its memory says that it holds them. If
# a file were open in both, what the child writes would be lost. So no connection is open in a fork.

_STORES: weakref.WeakSet[Store] = weakref.WeakSet()


def _close_all() -> None:
    for store in list(_STORES):
        if store._db is not None and not store._db.in_transaction:
            store.close()


at_fork(_close_all)
