"""Where a study's file is: how SQLite opens it, its write-ahead log, and whether locks work there.

If a file is copied without its write-ahead log, the content of the log is missing, and SQLite does
not notice. To detect this, the row `head` of `meta` says whether there is more in the log. When the
log is moved into the file, the file says that there is more. The next transaction, which is in the
log, says that the content is complete. So the file with its log is complete, and the file alone
says that something is missing. When the last process closes the file, SQLite moves the whole log
into it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from partita.errors import InvalidInput, StudyError

from . import formats
from .events import MORE, WHOLE
from .failures import Unreadable

#: Seconds of each wait for a lock; Ctrl-C is handled between two waits.
TURN = 0.25
#: The largest number of bytes of a row that is read or written, snapshots included.
LONGEST_ROW = 2**28
#: The longest suffix that SQLite adds to a file's name, and the longest path it accepts, in bytes.
LONGEST_SUFFIX, LONGEST_PATH = "-journal", 511
#: The largest number of SQLite's machine steps for reading a schema. A valid one takes a few
#: hundred.
MOST_STEPS = 5_000_000
#: How many times, and after how many seconds each, to look again for a log that seems to be
#: missing: another process may be opening or closing the file at this moment.
LOOKS, PAUSE = 5, 0.02


def as_path(path: object) -> Path:
    """The path that a user gave for a study; refused if it is not a valid file name."""
    try:
        named = Path(path)  # type: ignore[arg-type]  # checked here
    except TypeError:
        raise InvalidInput(
            f"{path!r} is not the name of a file: give one, such as tune.db"
        ) from None
    if "\0" in str(named):
        raise StudyError(
            f"{str(named)!r}: the name of a file cannot have a NUL in it: leave it out"
        )
    try:
        beside = Path(f"{named.absolute()}{LONGEST_SUFFIX}")
    except OSError:  # there is no current folder: the store says so
        return named
    try:
        beside.lstat()
        too_long = False
    except OSError as error:
        too_long = error.errno == errno.ENAMETOOLONG
    if too_long or len(os.fsencode(beside)) > LONGEST_PATH:
        raise StudyError(
            f"{str(named)[:40]!r}…: the name of the file, or of one of its folders, is too long. "
            f"Give a shorter one: SQLite allows {LONGEST_PATH} bytes in all, including those that "
            "it adds"
        )
    return named


def connect(path: Path, mode: str) -> sqlite3.Connection:
    """A connection that trusts nothing in the file; `mode` is that of SQLite's URIs."""
    db = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=TURN,
        isolation_level=None,
        check_same_thread=False,
    )
    # Neither reads the file. A schema must not use functions with side effects or virtual tables.
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("PRAGMA cell_size_check = ON")
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_ROW)
    return db


@contextlib.contextmanager
def bounded(db: sqlite3.Connection) -> Iterator[None]:
    """Abort queries that take too many steps: a malicious schema may never end."""
    step, steps = 10_000, 0

    def enough() -> bool:
        nonlocal steps
        steps += step
        return steps > MOST_STEPS

    db.set_progress_handler(enough, step)
    try:
        yield
    finally:
        with contextlib.suppress(sqlite3.ProgrammingError):  # closed, after an interrupt
            db.set_progress_handler(None, 0)


# -- the log beside the file -----------------------------------------------------------------------


def log_of(path: Path) -> Path:
    """The write-ahead log of a file."""
    return path.with_name(path.name + "-wal")


def lacks_log(path: Path) -> bool:
    """Whether a file says that there is more in its log, but has no log."""
    for look in range(LOOKS):
        if look:
            time.sleep(PAUSE)
        if log_of(path).exists() or not says_more(path):
            return False
    return True


def says_more(path: Path) -> bool:
    """Whether the file, read without its log, says that there is more in the log."""
    with contextlib.suppress(*Unreadable):  # for example, the file is being written just now
        db = connect(path, "ro&immutable=1")
        try:
            with bounded(db):
                ours = db.execute("PRAGMA application_id").fetchone()[
                    0
                ] == formats.APPLICATION and formats.has_ours(db, "meta")
            return ours and head(db).endswith(MORE)
        finally:
            db.close()
    return False


def head(db: sqlite3.Connection) -> str:
    """The row `head` of `meta`, which must be our table; "" if there is none."""
    row = db.execute("SELECT value FROM meta WHERE key = 'head'").fetchone()
    return row[0] if row and isinstance(row[0], str) else ""


def say(db: sqlite3.Connection, word: str) -> None:
    """Set the end of the row `head` of `meta` to `WHOLE` or `MORE`, in an open transaction."""
    text = head(db).removesuffix(MORE).removesuffix(WHOLE) + word
    db.execute("UPDATE meta SET value = ? WHERE key = 'head'", (text,))


def log_is_missing(path: Path) -> StudyError:
    """The error for a file whose log is missing."""
    return StudyError(
        f"{path} was copied without its write-ahead log, or {log_of(path).name} was deleted: part "
        "of the study is missing here. Copy both files, or close the study before you copy it. "
        f"`partita check --save` writes what is in this file to a new one"
    )


# -- locks -----------------------------------------------------------------------------------------

#: The device numbers of file systems on which locks were found to work.
_good: set[int] = set()


def check_locks(folder: Path) -> None:
    """Refuse a folder whose file system has no working locks.

    Where that cannot be tested, locks are assumed to work: in a folder that cannot be written, and
    on systems without open-file-description locks, which Linux has.
    """
    try:
        device = folder.stat().st_dev
        works = device in _good or _locks_work(folder)
    except OSError:
        return
    if not works:
        raise _no_locks(folder)
    _good.add(device)


def _no_locks(folder: Path) -> StudyError:
    return StudyError(
        f"{folder}: file locks do not work on this file system, so processes would overwrite what "
        "others have stored. Keep the study on a local disk"
    )


def _locks_work(folder: Path) -> bool:
    """Whether a lock of one file descriptor keeps out another."""
    try:
        import fcntl

        set_lock = fcntl.F_OFD_SETLK
    except (ImportError, AttributeError):
        return True
    import struct

    # A lock for writing, of all bytes: l_type, l_whence, l_start, l_len, l_pid.
    whole = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    with tempfile.TemporaryFile(dir=folder) as one:
        try:
            two = os.open(f"/proc/self/fd/{one.fileno()}", os.O_RDWR)
        except OSError:  # there is no /proc
            return True
        try:
            fcntl.fcntl(one, set_lock, whole)
            try:
                fcntl.fcntl(two, set_lock, whole)
            except (BlockingIOError, PermissionError):
                return True
            return False
        except OSError:  # if SQLite cannot lock, it reports that itself
            return True
        finally:
            os.close(two)
