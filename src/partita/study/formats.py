"""The formats of study files, and how files of older formats are upgraded.

A file has the number of its format in SQLite's `user_version`. Its schema must be exactly the one
that Partita made in that format, without any further or missing table, column, index, view or
trigger. So nothing that a stranger wrote into a schema is ever run. To change the tables:

1. raise `FORMAT` by one, change `TABLES`, which new files are made with, and note the change in
   `SINCE`: new columns come last in their table;
2. add to `UPGRADES`, under the number of the old format, a function that changes the tables of such
   a file and keeps their content;
3. keep a file of the old format in tests/study/data, with its expected content, and never change
   it.

A file is upgraded when it is opened, one format after the other, each in a transaction of its own,
under the writers' lock. If the process is killed in between, the file is intact in the last format
that was reached. If two processes open it at the same time, the second finds it upgraded. A file in
a newer format than `FORMAT`, or one too old for `UPGRADES`, is refused and left unchanged, and so
is an older one that cannot be written. An older Partita that has the file open during the upgrade
gets an error at its next change.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path

from partita._version import __version__
from partita.errors import StudyError, VersionMismatch

from .events import ORIGIN, checked, digest_of, head_of

#: Marks the file as a Partita study: "Part" in ASCII.
APPLICATION = 0x50617274
#: The format of new files. 1: Partita 0.1; 2: events have `std`; 3: events have `data` and
#: `digest`, the snapshot has the digest of its event as `chain`, and `meta` has the row `head`.
FORMAT = 3

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
    std REAL,
    data TEXT,
    digest BLOB
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
    state BLOB NOT NULL,
    chain BLOB
);
"""
#: The format that introduced each of these columns of `TABLES`; a table has no column here.
SINCE: Mapping[tuple[str, str], int] = {
    ("events", "std REAL"): 2,
    ("events", "data TEXT"): 3,
    ("events", "digest BLOB"): 3,
    ("snapshot", "chain BLOB"): 3,
}


def _add_std(db: sqlite3.Connection) -> None:
    """Add the column for the noise of values; it is unknown for existing values."""
    db.execute("ALTER TABLE events ADD COLUMN std REAL")


def _add_digests(db: sqlite3.Connection) -> None:
    """Rows have a checksum, from what they say today, and room for more."""
    db.execute("ALTER TABLE events ADD COLUMN data TEXT")
    db.execute("ALTER TABLE events ADD COLUMN digest BLOB")
    db.execute("ALTER TABLE snapshot ADD COLUMN chain BLOB")
    seq, digest, digests = 0, ORIGIN, []
    for row in db.execute("SELECT * FROM events ORDER BY seq"):
        event = checked(row)
        seq, digest = event.seq, digest_of(digest, event)
        digests.append((digest, seq))
    db.executemany("UPDATE events SET digest = ? WHERE seq = ?", digests)
    db.execute(
        "UPDATE snapshot SET chain = (SELECT digest FROM events WHERE events.seq = snapshot.seq)"
    )
    db.execute("INSERT OR REPLACE INTO meta VALUES ('head', ?)", (head_of(seq, digest),))


#: For each format, the function that converts its tables to the next format, in an open transaction
#: that the caller commits.
UPGRADES: Mapping[int, Callable[[sqlite3.Connection], None]] = {1: _add_std, 2: _add_digests}


def create(db: sqlite3.Connection, meta: Mapping[str, str]) -> None:
    """Create the tables of a new study, in an open transaction."""
    for statement in filter(str.strip, TABLES.split(";")):
        db.execute(statement)
    db.executemany("INSERT INTO meta VALUES (?, ?)", [*meta.items(), ("head", head_of(0, ORIGIN))])
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {FORMAT}")


def is_current(db: sqlite3.Connection) -> bool:
    """Whether a study is in the current format."""
    return version_of(db) == FORMAT


def version_of(db: sqlite3.Connection) -> int:
    """The format of a study."""
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def check(db: sqlite3.Connection, path: Path) -> None:
    """Refuse a study in a format that cannot be read or upgraded, or with a foreign schema."""
    version = version_of(db)
    if not (version <= FORMAT and all(older in UPGRADES for older in range(version, FORMAT))):
        raise VersionMismatch(
            f"{path} was written by Partita {_written_by(db)} in format {version}, "
            f"but Partita {__version__} reads format {FORMAT}: "
            + ("upgrade Partita" if version > FORMAT else "open it with the Partita that wrote it")
        )
    faults = schema_faults(db)
    if faults:
        raise StudyError(
            f"{path}: its schema is not the one that Partita makes ({'; '.join(faults)}). Nothing "
            "in it was run, and the file was not changed. If you do not know who changed it, do "
            "not trust its numbers; `partita check --save` writes what is intact to a new file"
        )


def _written_by(db: sqlite3.Connection) -> str:
    """The version that created a study, if it can be looked up safely."""
    if _schema(db).get("meta") != _expected(FORMAT)["meta"]:
        return "?"
    row = db.execute("SELECT value FROM meta WHERE key = 'written_by'").fetchone()
    return str(row[0])[:40] if row else "?"


def upgrade(db: sqlite3.Connection, begin: Callable[[], object]) -> None:
    """Upgrade a study that has passed `check` to the current format.

    Parameters
    ----------
    db
    begin
        Begins a transaction that holds the writers' lock.
    """
    while version_of(db) < FORMAT:
        try:
            begin()
            version = version_of(db)  # another process may have upgraded it meanwhile
            if version < FORMAT:
                UPGRADES[version](db)
                db.execute(f"PRAGMA user_version = {version + 1}")
            db.execute("COMMIT")
        except BaseException:
            if db.in_transaction:
                db.execute("ROLLBACK")
            raise


# -- the schema ------------------------------------------------------------------------------------


def schema_faults(db: sqlite3.Connection) -> list[str]:
    """The differences between a file's schema and that of its format, a few words each."""
    stored, expected = _schema(db), _expected(version_of(db))
    return [
        *(f"there is no table {name}" for name in expected if name not in stored),
        *(f"there is also {name!r:.60}" for name in stored if name not in expected),
        *(f"{n} is not our table" for n in expected if stored.get(n, expected[n]) != expected[n]),
    ]


def has_ours(db: sqlite3.Connection, *names: str) -> bool:
    """Whether the named tables are Partita's, so that they can be read safely."""
    stored, expected = _schema(db), _expected(version_of(db))
    return all(stored.get(name, "") == expected.get(name) for name in names)


def _schema(db: sqlite3.Connection) -> dict[str, str]:
    """The normalised statement of each table in a schema; "" for anything but a table."""
    schema: dict[str, str] = {}
    pages: set[object] = {1}
    for kind, name, table, page, sql in db.execute(
        "SELECT type, name, tbl_name, rootpage, sql FROM sqlite_master"
    ):
        good = kind == "table" and name == table and isinstance(sql, str) and page not in pages
        pages.add(page)
        schema[str(name)] = _words(sql) if good and name not in schema else ""
    return schema


def _expected(version: int) -> dict[str, str]:
    """The normalised statement of each table of a format, by the table's name."""
    tables: dict[str, str] = {}
    for statement in filter(None, map(_words, TABLES.split(";"))):
        name = statement.split()[2]
        if SINCE.get((name, ""), 0) <= version:
            tables[name] = statement
    for (name, column), since in SINCE.items():
        if since > version and name in tables:
            tables[name] = tables[name].replace(f" , {column}", "")
    return tables


def _words(statement: str) -> str:
    """A statement with single spaces between all tokens, since ALTER TABLE changes the spacing."""
    return " ".join(re.findall(r"\w+|[^\w\s]", statement))
