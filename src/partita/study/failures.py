"""What failures of SQLite mean to a user."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from partita.errors import StudyError, StudyLocked

#: By SQLite's primary code.
_REASONS = {
    sqlite3.SQLITE_FULL: "the disk is full. Nothing was changed; free some space and try again",
    sqlite3.SQLITE_IOERR: "the file could not be read or written: is the disk full, or a limit on "
    "the size of files reached? What was acknowledged is safe; try again once that is mended",
    sqlite3.SQLITE_READONLY: "the file, or its folder, is read-only, so that nothing can be stored."
    " Nothing was changed",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened or made: may you write into its folder, "
    "where SQLite needs files of its own beside it?",
    sqlite3.SQLITE_CORRUPT: "the file is damaged. Keep a copy, and see what `sqlite3 FILE .recover`"
    " can save",
}


def code_of(error: sqlite3.Error) -> int:
    """SQLite's primary code of an error, 0 if it gave none."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def explained(error: sqlite3.Error, path: Path, timeout: float) -> StudyError:
    """The error to raise in place of SQLite's."""
    code = code_of(error)
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StudyLocked(
            f"{path} has been locked by another process for {timeout:g} seconds: see what holds "
            "it, or give a longer timeout. Nothing was changed"
        )
    return StudyError(f"{path}: {_REASONS.get(code, 'SQLite failed')} ({error})")


def outdated(path: Path) -> StudyError:
    """The error for a study in an older format that cannot be brought up to date."""
    return StudyError(
        f"{path} is a study in an older format, and the file, or its folder, is read-only, so that "
        "it cannot be brought up to date. Nothing was changed; copy it to where you may write"
    )
