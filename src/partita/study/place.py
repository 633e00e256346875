"""The place of a study's file: how SQLite opens it, its log beside it, and locks that work there.

A file whose write-ahead log was left behind, when it was copied, lacks what stands in the log, and
SQLite does not notice. So the content that is moved from the log into the file says, in the row
`head` of `meta`, that there is more; the next transaction, which stands in the log, says that this
is all. Who reads the file with its log finds it whole; who reads it without finds that there is
more, and no log. When the last process closes the file, SQLite moves all of the log into it.
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

#: A lock is waited for in turns of this many seconds, between which Ctrl-C is heard.
TURN = 0.25
#: Bytes of the longest row that is read or written. No snapshot that is stored is longer.
LONGEST_ROW = 2**28
#: What SQLite adds to the name of a file at most, and how many bytes it takes in all.
LONGEST_SUFFIX, LONGEST_PATH = "-journal", 511
#: Steps of SQLite's machine after which a look at a schema is given up: it takes a few hundred.
MOST_STEPS = 5_000_000
#: How often, and after how many seconds each, a log that seems to be missing is looked for again:
#: another process may be opening or closing the file at this moment.
LOOKS, PAUSE = 5, 0.02


def as_path(path: object) -> Path:
    """What a user gives as the file of a study, refused if no file can be called so."""
    try:
        named = Path(path)  # type: ignore[arg-type]  # that is what is found out
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
            f"{str(named)[:40]!r}…: the name of the file, or that of a folder on the way, is too "
            f"long. Give a shorter one: SQLite takes {LONGEST_PATH} bytes for all, with those that "
            "it adds"
        )
    return named


def connect(path: Path, mode: str) -> sqlite3.Connection:
    """A connection that trusts nothing in the file; `mode` is that of SQLite's addresses."""
    db = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=TURN,
        isolation_level=None,
        check_same_thread=False,
    )
    # Neither reads the file. Functions with side effects and virtual tables are not for a schema.
    db.execute("PRAGMA trusted_schema = OFF")
    db.execute("PRAGMA cell_size_check = ON")
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_ROW)
    return db


@contextlib.contextmanager
def bounded(db: sqlite3.Connection) -> Iterator[None]:
    """Give up what takes too many steps: a schema can be made to have no end."""
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
    """Whether a file says that there is more in its log, and there is no log."""
    for look in range(LOOKS):
        if look:
            time.sleep(PAUSE)
        if log_of(path).exists() or not says_more(path):
            return False
    return True


def says_more(path: Path) -> bool:
    """Whether the file, read without its log, says that there is more in the log."""
    with contextlib.suppress(*Unreadable):  # such as a file that is being written just now
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
    """The row `head` of `meta`, which must be our table; nothing if there is none."""
    row = db.execute("SELECT value FROM meta WHERE key = 'head'").fetchone()
    return row[0] if row and isinstance(row[0], str) else ""


def say(db: sqlite3.Connection, word: str) -> None:
    """End the row `head` of `meta` with `WHOLE` or `MORE`, in a transaction that is under way."""
    text = head(db).removesuffix(MORE).removesuffix(WHOLE) + word
    db.execute("UPDATE meta SET value = ? WHERE key = 'head'", (text,))


def log_is_missing(path: Path) -> StudyError:
    """The error for a file whose log is missing."""
    return StudyError(
        f"{path} was copied without its write-ahead log, or {log_of(path).name} was deleted: there "
        "is more in it than in this file. Copy both files, or close the study before you copy it. "
        f"`partita check` with --save writes what this file has to a new one"
    )


# -- locks -----------------------------------------------------------------------------------------

#: File systems, by their numbers, on which locks were found to work.
_good: set[int] = set()


def check_locks(folder: Path) -> None:
    """Refuse a folder on whose file system locks do not keep others out.

    Where that cannot be tried, it is taken for granted: in a folder that cannot be written, and on
    systems that do not have locks of single descriptors, as Linux has.
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
        f"{folder}: locks of files do not work on this file system, so that processes would write "
        "over what others have stored. Keep the study on a disk of this machine"
    )


def _locks_work(folder: Path) -> bool:
    """Whether what one descriptor has locked is refused to another."""
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
        except OSError:  # SQLite says so itself, if it cannot lock
            return True
        finally:
            os.close(two)
