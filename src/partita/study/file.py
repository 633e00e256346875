"""The file of a study as SQLite has it open: whether it is a study, and transactions in it."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, TypeVar

from partita._locks import at_fork, is_under_way, new_lock
from partita.errors import StudyError

from . import formats, place
from .events import MORE, WHOLE, Broken
from .failures import Unreadable, code_of, damaged, explained, outdated, overwritten, without_log

T = TypeVar("T")

#: The smallest size of a database. SQLite would take a shorter file for an empty one and overwrite
#: it.
SMALLEST = 512
#: The bytes that the write-ahead log keeps on the disk after it was moved into the file.
LOG_SIZE = 20_000_000


class File:
    """The connection to the file of a study. It is reopened automatically after a fork.

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
        #: How many times longer than usual a snapshot, and moving the log, may wait for `tidy`.
        self.patience = 1.0
        self.lock = new_lock()
        self._db: sqlite3.Connection | None = None
        #: How many times it was opened, and the version in the last transaction: `Store.version`.
        self._opens, self.checked = 0, (0, 0)
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
        _FILES.add(self)
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
            self._log, self._place = None, self._place or identity_of(self.file)
            self._open.append(db)
            self._db, self._opens = db, self._opens + 1
        elif self._db.in_transaction and not is_under_way(File._all_or_nothing, self):
            _roll_back(self._db)  # left by a call that was interrupted twice
        return self._db

    def _check_place(self) -> None:
        """Refuse to write to a file that was moved, deleted or replaced."""
        if identity_of(self.file) != self._place:
            raise StudyError(
                f"{self.path} was moved, deleted or replaced while it was open. Put it back, or "
                "open the new file with Study.open"
            )

    def _check_log(self) -> None:
        """Refuse to write to a log that was replaced or deleted, during a transaction.

        SQLite deletes the log when it believes that the last process has closed the file.
        """
        log = identity_of(self._log_file)
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

    # -- transactions --------------------------------------------------------------------------

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


def identity_of(path: str | Path) -> tuple[int, int]:
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

_FILES: weakref.WeakSet[File] = weakref.WeakSet()


def _close_all() -> None:
    for file in list(_FILES):
        if file._db is not None and not file._db.in_transaction:
            file.close()


at_fork(_close_all)
