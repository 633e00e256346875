"""What failures of SQLite mean to a user."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from partita.errors import StudyError, StudyLocked

#: What reading a file may raise: a message of SQLite's that quotes a damaged schema is no text.
Unreadable = (sqlite3.Error, UnicodeDecodeError)

#: By SQLite's primary code.
_REASONS = {
    sqlite3.SQLITE_FULL: "the disk is full. Nothing was changed; free some space and try again",
    sqlite3.SQLITE_IOERR: "the file could not be read or written: is the disk full, or a limit on "
    "the size of files reached? What was acknowledged is safe; try again once that is mended",
    sqlite3.SQLITE_READONLY: "the file, or its folder, is read-only, so that nothing can be stored."
    " Nothing was changed",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened or made: may you write into its folder, "
    "where SQLite needs files of its own beside it?",
    sqlite3.SQLITE_CORRUPT: "the file is damaged. Keep a copy, and see what `partita check` with "
    "--save, or `sqlite3 FILE .recover`, can save",
    sqlite3.SQLITE_INTERRUPT: "it takes far too long to read: it is damaged, or was made to be so",
    sqlite3.SQLITE_TOOBIG: "a row is far too long: the file is damaged, or was made to be so",
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
            f"{path} has been locked by another process for {timeout:g} seconds: see what holds "
            "it, or give a longer timeout. Nothing was changed"
        )
    return StudyError(f"{path}: {_REASONS.get(code, 'SQLite failed')} ({error})")


def overwritten(path: Path, what: str) -> StudyError:
    """The error for a file that was changed under the hands of a process that had it open."""
    return StudyError(
        f"{path}: {what}. Either somebody edited, replaced or deleted it while the study was open, "
        "or processes wrote over each other because locks do not work on its file system: what was "
        "told last may be lost. Keep the study on a disk of this machine, and see what `partita "
        "check` says of it"
    )


def without_log(path: Path) -> StudyError:
    """The error for a place where SQLite cannot keep a write-ahead log."""
    return StudyError(
        f"{path}: SQLite cannot keep a write-ahead log there, which needs locks and memory that "
        "processes share. Keep the study on a disk of this machine"
    )


def damaged(path: Path, what: str) -> StudyError:
    """The error for a file whose content is not what was written."""
    return StudyError(
        f"{path}: {what}. Restore the file from a copy, or see what `partita check` says of it: "
        "with --save it writes what is sound to a new file"
    )


def outdated(path: Path) -> StudyError:
    """The error for a study in an older format that cannot be brought up to date."""
    return StudyError(
        f"{path} is a study in an older format, and the file, or its folder, is read-only, so that "
        "it cannot be brought up to date. Nothing was changed; copy it to where you may write"
    )
