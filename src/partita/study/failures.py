"""Error messages for failures of SQLite."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from partita.errors import StudyError, StudyLocked

#: Errors that reading a file may raise. SQLite's message may quote bytes that are not valid text.
Unreadable = (sqlite3.Error, UnicodeDecodeError)

#: By SQLite's primary code.
_REASONS = {
    sqlite3.SQLITE_FULL: "the disk is full. Nothing was changed; free some space and try again",
    sqlite3.SQLITE_IOERR: "the file could not be read or written. Is the disk full, or a limit on "
    "the size of files reached? Calls that have returned are safe; fix the cause and try again",
    sqlite3.SQLITE_READONLY: "the file, or its folder, is read-only, so nothing can be stored."
    " Nothing was changed",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened or created. May you write to its folder, "
    "where SQLite needs further files?",
    sqlite3.SQLITE_CORRUPT: "the file is damaged. Make a copy, and try to rescue it with `partita "
    "check --save` or `sqlite3 FILE .recover`",
    sqlite3.SQLITE_INTERRUPT: "reading takes far too long: the file is damaged, or malicious",
    sqlite3.SQLITE_TOOBIG: "a row is far too long: the file is damaged, or malicious",
}


def code_of(error: Exception) -> int:
    """SQLite's primary code of an error, 0 if it gave none."""
    if isinstance(error, UnicodeDecodeError):
        return sqlite3.SQLITE_CORRUPT
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def explained(error: Exception, path: Path, timeout: float) -> StudyError:
    """The error to raise in place of SQLite's."""
    code = code_of(error)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StudyLocked(
            f"{path} has been locked by another process for {timeout:g} seconds: find out which "
            "one, or give a longer timeout. Nothing was changed"
        )
    return StudyError(f"{path}: {_REASONS.get(code, 'SQLite failed')} ({error})")


def overwritten(path: Path, what: str) -> StudyError:
    """The error for a file that was changed while a process had it open."""
    return StudyError(
        f"{path}: {what}. Either the file was edited, replaced or deleted while the study was "
        "open, or processes overwrote each other because locks do not work on its file system. The "
        "latest values may be lost. Keep the study on a local disk, and run `partita check` on it"
    )


def without_log(path: Path) -> StudyError:
    """The error for a place where SQLite cannot keep a write-ahead log."""
    return StudyError(
        f"{path}: SQLite cannot keep a write-ahead log there, which needs locks and shared memory. "
        "Keep the study on a local disk"
    )


def damaged(path: Path, what: str) -> StudyError:
    """The error for a file with damaged content."""
    return StudyError(
        f"{path}: {what}. Restore the file from a backup, or run `partita check` on it: with "
        "--save it writes what is intact to a new file"
    )


def outdated(path: Path) -> StudyError:
    """The error for a study in an older format that cannot be upgraded."""
    return StudyError(
        f"{path} is a study in an older format. The file, or its folder, is read-only, so it "
        "cannot be upgraded. Nothing was changed; copy it to a folder that you can write to"
    )
