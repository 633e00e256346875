"""The formats of study files, and how a file of an older one is brought up to date.

A file has the number of its format in SQLite's `user_version`. To change the tables:

1. raise `FORMAT` by one, and change `TABLES`, which new files are made with;
2. add to `UPGRADES`, under the number of the format until then, a function that changes the tables
   of such a file and carries over what is in them;
3. keep a file of the old format in tests/study/data, with what it says, and never touch it again.

A file is upgraded when it is opened, one format after the other, each in a transaction of its own,
under the lock that writers need. So a process that is killed in the middle leaves the file in the
last format that was reached, whole; and of two processes that open it at once the second finds the
work done. A file in a newer format than `FORMAT`, or one too old for `UPGRADES`, is refused and
left as it is; so is an older one that cannot be written. An older Partita that has a file open
while it is upgraded is stopped at its next change.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path

from partita._version import __version__
from partita.errors import VersionMismatch

#: Marks the file as a study of Partita's: "Part" in ASCII.
APPLICATION = 0x50617274
#: The format of new files. 1: Partita 0.1; 2: events have `std`.
FORMAT = 2

TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    trial INTEGER NOT NULL,
    time REAL NOT NULL,
    value REAL,
    params TEXT,
    point BLOB,
    owner INTEGER,
    std REAL
);
CREATE TABLE owners (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE progress (
    told INTEGER PRIMARY KEY,
    time REAL NOT NULL,
    mean REAL, lower REAL, upper REAL, certificate REAL
);
CREATE TABLE snapshot (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    seq INTEGER NOT NULL,
    written_by TEXT NOT NULL,
    digest TEXT NOT NULL,
    state BLOB NOT NULL
);
"""


def _add_std(db: sqlite3.Connection) -> None:
    """Values may have a known noise; of those that are there it is not known."""
    db.execute("ALTER TABLE events ADD COLUMN std REAL")


#: By the number of a format: what makes its tables those of the next, in a transaction that is
#: under way and is committed by the caller.
UPGRADES: Mapping[int, Callable[[sqlite3.Connection], None]] = {1: _add_std}


def create(db: sqlite3.Connection, meta: Mapping[str, str]) -> None:
    """Make the tables of a new study, in a transaction that is under way."""
    for statement in filter(str.strip, TABLES.split(";")):
        db.execute(statement)
    db.executemany("INSERT INTO meta VALUES (?, ?)", list(meta.items()))
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {FORMAT}")


def is_current(db: sqlite3.Connection) -> bool:
    """Whether a study is in today's format."""
    return version_of(db) == FORMAT


def version_of(db: sqlite3.Connection) -> int:
    """The format of a study."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def check(db: sqlite3.Connection, path: Path) -> None:
    """Refuse a study that is in no format of today, and cannot be brought to it."""
    version = version_of(db)
    if version <= FORMAT and all(older in UPGRADES for older in range(version, FORMAT)):
        return
    by = db.execute("SELECT value FROM meta WHERE key = 'written_by'").fetchone()
    raise VersionMismatch(
        f"{path} was written by Partita {by[0] if by else '?'} in format {version}, "
        f"but Partita {__version__} reads format {FORMAT}: "
        + ("upgrade Partita" if version > FORMAT else "open it with the Partita it is from")
    )


def upgrade(db: sqlite3.Connection, begin: Callable[[], object]) -> None:
    """Bring a study that `check` has passed to today's format.

    Parameters
    ----------
    db
    begin
        Begins a transaction that holds the lock of writers.
    """
    while version_of(db) < FORMAT:
        try:
            begin()
            version = version_of(db)  # another process may have been quicker
            if version < FORMAT:
                UPGRADES[version](db)
                db.execute(f"PRAGMA user_version = {version + 1}")
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise
