"""The file of a study: SQLite with a write-ahead log, and a transaction for every change.

Tables: `meta` (what the study is about, written once), `events` (every ask, tell and cancel, in
order, never changed), `owners` (runs that asked), `progress` (what was known at some moments) and
`snapshot` (the state at one event, to save its replay; it may be missing).
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

#: No database is shorter. SQLite takes such a file for an empty one, and would write over it.
SMALLEST = 512
#: Pages after which a process moves the write-ahead log into the file, which waits for the disk:
#: rarely, for the mean cost of a change. Bytes that the log keeps on the disk once that is done.
LOG_PAGES, LOG_SIZE = 4000, 20_000_000
#: What is read of the log, and how many rows of it at once.
COLUMNS, BATCH = ", ".join(Event._fields), 5000
#: How often the log is tried to be moved, while others write.
TRIES = 5
#: Pages that a small transaction writes, about, and the size of one.
PAGES, PAGE = 3, 4096


class Store:
    """The connection to one file; opened again by itself after a fork.

    Parameters
    ----------
    path
    durability : "process" or "power"
        What a committed transaction survives: the end of the process, or a power cut.
    timeout
        Seconds to wait for a lock.
    """

    def __init__(self, path: Path, durability: Literal["process", "power"], timeout: float) -> None:
        #: The name as it was given, for messages.
        self.path = path
        #: The file, wherever the process goes meanwhile.
        self.file = _absolute(path)
        self.durability, self.timeout = durability, timeout
        self.lock = new_lock()
        self._db: sqlite3.Connection | None = None
        #: Pages written since the log was moved last, about.
        self._pages = 0
        #: Whether the file, without its log, says that there is more in the log.
        self._marked = False
        #: Whether nobody can write where the file is.
        self._still = False
        #: Which file it is, and which log it has, so that others in their place are noticed.
        self._place: tuple[int, int] | None = None
        self._log: tuple[int, int] | None = None
        _STORES.add(self)
        #: The connection, and any whose closing was interrupted: ended with the store.
        self._open: list[sqlite3.Connection] = []
        weakref.finalize(self, _end, self._open)

    # -- opening -------------------------------------------------------------------------------

    def is_new(self) -> bool:
        """Whether there is no file, or nothing in it."""
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
        """Make the file a study unless it is one, and return whether this call did."""
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
        if not self._is_new(db):  # another process was quicker
            return False
        formats.create(db, meta)
        return True

    def _opened(self) -> sqlite3.Connection:
        if self._db is None:
            db = self._connect(create=False)
            try:
                if self._place is not None:  # opened before: the memory of it must be of this file
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
            _roll_back(self._db)  # of a call that was cut short twice
        return self._db

    def _check_place(self) -> None:
        """Refuse to write where nobody would find it again."""
        if _identity(self.file) != self._place:
            raise StudyError(
                f"{self.path} was moved, deleted or replaced while it was open. Put it back, or "
                "open what is there now with Study.open"
            )

    def _check_log(self) -> None:
        """Refuse to write to a log that nobody would find again, during a transaction.

        SQLite deletes the log when it takes itself for the last to close the file.
        """
        log = _identity(place.log_of(self.file))
        self._log = self._log or log
        if log != self._log:
            raise overwritten(place.log_of(self.path), "this is not the log that was there")

    def _connect(self, create: bool) -> sqlite3.Connection:
        if not create and not self.file.exists():
            raise StudyError(
                f"there is no study {self.path}: check the name, or begin one, with a "
                "space or by `partita create`"
            )
        if str(self.path).startswith(("sqlite:", ":memory:")):
            raise StudyError(f"{self.path} is not a file: give the name of one, such as tune.db")
        if self.file.is_dir():
            raise StudyError(f"{self.path} is a folder: give the name of a file, such as tune.db")
        if 0 < _size(self.file) < SMALLEST:
            raise self._no_study()
        if not self.file.parent.is_dir():
            raise StudyError(f"{self.path}: there is no folder {self.path.parent}, make it first")
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
        """Whether SQLite cannot open a file because nobody can write there: it may be read.

        A log must be empty: it cannot be read without writing beside it.
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
        """Whether nothing has been stored yet, by us or by anybody."""
        query = "SELECT 1 FROM sqlite_master LIMIT 1"
        with place.bounded(db):
            tables = self._retried(lambda: db.execute(query).fetchall())
        return not tables and not db.execute("PRAGMA application_id").fetchone()[0]

    def _is_there(self, db: sqlite3.Connection) -> bool:
        """Whether there is a study, on a connection that is closed next; what is not is refused."""
        if self._is_new(db):
            return False
        self._check(db)
        self._settle(db)
        return True

    def _check(self, db: sqlite3.Connection) -> None:
        """Refuse what is not a study, or one of another format; nothing is written."""
        if self._is_new(db):
            raise StudyError(
                f"{self.path} is empty, no study has been begun in it: give a space to begin one"
            )
        if db.execute("PRAGMA application_id").fetchone()[0] != formats.APPLICATION:
            raise self._no_study()
        with place.bounded(db):
            formats.check(db, self.path)

    def _upgrade(self, db: sqlite3.Connection) -> None:
        """Bring a study of an older format up to date."""
        try:
            formats.upgrade(db, lambda: self._begin(db))
        except Unreadable as error:
            if code_of(error) == sqlite3.SQLITE_READONLY:
                raise outdated(self.path) from error
            raise
        except Broken as error:
            raise damaged(self.path, str(error)) from error
        formats.check(db, self.path)  # a newer Partita may have been quicker

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
        """Close the connection; it is opened again if need be."""
        with self.lock:
            db, self._db, self._marked = self._db, None, False  # first: a closed one is of no use
            if db is not None:
                try:
                    self._settle(db)
                finally:
                    try:
                        self._settle(db)  # should an interrupt have come in the first
                    finally:
                        db.close()
                self._open.remove(db)

    def _settle(self, db: sqlite3.Connection) -> None:
        """Say that this is all, if the last to move the log has not come to that: see `_moved`.

        Should that fail, because the file is locked or read-only, the next to use it does.
        """
        if self._still:
            return
        with contextlib.suppress(sqlite3.Error):
            if place.head(db).endswith(MORE):
                self._all_or_nothing(db, lambda: place.say(db, WHOLE))

    # -- reading and writing -------------------------------------------------------------------

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """What a query finds."""
        try:
            db = self._opened()
            return self._retried(lambda: db.execute(query, values).fetchall())
        except Unreadable as error:
            raise self._explained(error) from error

    def typed(self, query: str, types: Types, values: Sequence[Any] = ()) -> list[Any]:
        """What a query finds, refused unless its columns are of some types, the first rising."""
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
            raise damaged(self.path, "the table meta has other rows than Partita writes")
        return meta

    def head(self) -> str:
        """The row `head` of `meta`: the last event, and whether there is more in the log."""
        try:
            db = self._opened()
            return self._retried(lambda: place.head(db))
        except Unreadable as error:
            raise self._explained(error) from error

    def events(self, after: int, digest: bytes = ORIGIN) -> Iterator[Event]:
        """The log after an event of some digest, in order, each checked against its digest."""
        while True:
            events = self._events_from(after)
            if len(events) > (after > 0):
                # By a newer Partita, perhaps, which has upgraded the file.
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
        """Refuse a log in which the last event that this process has seen is another, or missing.

        On a file system without working locks, this is how a writer learns of it.
        """
        if seq and self._db is not None and _identity(self.file) == self._place:
            if not self._still:
                self._check_log()
            events = self._events_from(seq, 1)
            self._check_same(seq, digest, events[0] if events else None)

    def _check_same(self, seq: int, digest: bytes, event: Event | None) -> None:
        if event is None or (event.seq, event.digest) != (seq, digest):
            what = f"event {seq} of the log is not the one that was there"
            raise overwritten(self.path, what)

    def _events_from(self, first: int, most: int = BATCH) -> list[Event]:
        """Some rows of the log from one on, each checked before the next is read."""
        query = f"SELECT {COLUMNS} FROM events WHERE seq >= ? ORDER BY seq LIMIT ?"
        try:
            db = self._opened()
            return self._retried(lambda: list(map(checked, db.execute(query, (first, most)))))
        except Unreadable as error:
            raise self._explained(error) from error
        except Broken as error:
            raise damaged(self.path, str(error)) from error

    def _check_format(self) -> None:
        """Refuse a file that another process has brought to a newer format."""
        db = self._opened()
        if not formats.is_current(db):
            formats.check(db, self.path)

    def transact(self, work: Callable[[sqlite3.Connection], T], size: int = 0) -> T:
        """What `work` returns, in a transaction: committed when it ends, undone if it raises.

        `size` is how many bytes it stores, if they are many.
        """
        if not self._marked:
            self._mark()
        result = self._locked(work)
        self._pages += PAGES + size // PAGE
        if self._pages >= LOG_PAGES:
            self._move_log()
        return result

    def _move_log(self) -> None:
        """Move the write-ahead log into the file, while nobody can write.

        SQLite up to 3.51.2 may lose a transaction that is committed while another process does this
        (sqlite.org/wal.html, "The WAL-Reset Bug"). So it never does so by itself here, and we hold
        the lock that writers need while a second connection does.
        """
        self._pages = 0
        # What cannot be moved now stays in the log, and is safe there.
        with contextlib.suppress(StudyError, sqlite3.Error):
            for _ in range(TRIES):
                moved = False
                try:
                    self._locked(lambda db: place.say(db, MORE))
                    moved = self._locked(self._moved)
                finally:
                    try:
                        self._settle(self._opened())
                    finally:  # again, should an interrupt have come in the first
                        self._settle(self._opened())
                if moved:
                    return

    def _moved(self, db: sqlite3.Connection) -> bool:
        """Move the log, in a transaction, if nobody has stored anything since `meta` says MORE.

        The next transaction, the first in the log, says that this is all: see `place`. It is one of
        its own, or SQLite would never begin the log anew; should we be killed before it, whoever
        opens the file, closes it, ends or stores something next says so.
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
        """See to it that the file, without its log, says that there is more in the log."""
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
                    f"{self.path}: a study cannot be changed from within another change of it: "
                    "`feasible` must not use it"
                )
            return self._all_or_nothing(db, checked_work)
        except sqlite3.Error as error:
            raise self._explained(error) from error

    def _all_or_nothing(self, db: sqlite3.Connection, work: Callable[[], T]) -> T:
        """What `work` returns, in a transaction, whenever an interrupt comes.

        A context manager would not do: an interrupt may come as `__exit__` is entered, or between
        the transaction's beginning and the block, and the file would stay locked for everybody.
        """
        try:
            self._begin(db)
            result = work()
            db.execute("COMMIT")
        finally:
            try:
                _roll_back(db)
            finally:  # again, should an interrupt have come before the first did anything
                _roll_back(db)
        return result

    def _begin(self, db: sqlite3.Connection) -> None:
        self._retried(lambda: db.execute("BEGIN IMMEDIATE"))

    def _retried(self, action: Callable[[], T]) -> T:
        """Do something for which SQLite may have to wait."""
        end = time.monotonic() + self.timeout
        while True:
            try:
                return action()
            except sqlite3.OperationalError as error:
                if code_of(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= end:
                    raise

    def _no_study(self) -> StudyError:
        return StudyError(f"{self.path} is not a study of Partita: it was left as it is")

    def _explained(self, error: Exception) -> StudyError:
        if code_of(error) == sqlite3.SQLITE_NOTADB:
            return self._no_study()
        return explained(error, self.path, self.timeout)


def _absolute(path: Path) -> Path:
    try:
        return path.absolute()
    except OSError as error:  # the current folder was deleted
        raise StudyError(
            f"{path}: there is no current folder ({error}): give a full name"
        ) from error


def _identity(path: Path) -> tuple[int, int]:
    """Which file is there now."""
    try:
        status = path.stat()
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
    """Close what nobody has closed, as the process ends or the store is forgotten.

    SQLite would do so as well, and delete the log of a file that says that there is more in it.
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

# SQLite's locks are not inherited by a forked process, although its memory says that they are: a
# file open in both would lose what the child writes. So no connection is open during a fork.

_STORES: weakref.WeakSet[Store] = weakref.WeakSet()


def _close_all() -> None:
    for store in list(_STORES):
        if store._db is not None and not store._db.in_transaction:
            store.close()


at_fork(_close_all)
