"""Study files of a stranger: what is in their schema is never run, and refused at once."""

import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from support.studies import PLANE, change, play

from partita.errors import StudyError
from partita.study import Study, formats

DATA = Path(__file__).parent / "data"
#: A file of every format: 0 stands for a new one.
FILES = {1: "v0.1/proven.db", 2: "v0.2-format2/upgraded.db"}


@pytest.fixture(params=[0, 1, 2])
def path(request, tmp_path):
    path = tmp_path / "tune.db"
    if request.param:
        return Path(shutil.copy(DATA / FILES[request.param], path))
    with Study.open(path, PLANE, policy="uniform") as study:
        play(study, 5)
    return path


#: A view that never ends, with as many columns as a table has.
ENDLESS = (
    "CREATE VIEW {0} AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
    "SELECT {1} FROM n"
)
REWRITES = (
    "CREATE TRIGGER t AFTER INSERT ON events WHEN NEW.kind = 'tell' "
    "BEGIN UPDATE events SET value = 0 WHERE seq = NEW.seq; END"
)
ATTACKS = {
    "a trigger": (REWRITES,),
    "an endless view": ("DROP TABLE meta", ENDLESS.format("meta", "i AS key, i AS value")),
    "an endless log": ("DROP TABLE events", ENDLESS.format("events", "i AS seq")),
    "a view besides": ("CREATE VIEW more AS SELECT * FROM events",),
    "a table besides": ("CREATE TABLE more (x)",),
    "a virtual table": ("CREATE VIRTUAL TABLE more USING fts5(x)",),
    "a generated column": ("ALTER TABLE owners ADD COLUMN more AS (zeroblob(1000000000))",),
    "a column": ("ALTER TABLE meta ADD COLUMN more TEXT",),
    "a column less": ("ALTER TABLE progress DROP COLUMN upper",),
    "another type": (
        "DROP TABLE owners",
        "CREATE TABLE owners (id INTEGER PRIMARY KEY, name BLOB NOT NULL)",
    ),
    "a check that runs": (
        "DROP TABLE owners",
        "CREATE TABLE owners (id INTEGER PRIMARY KEY, name TEXT NOT NULL CHECK (abs(1)))",
    ),
    "a default that runs": (
        "DROP TABLE owners",
        "CREATE TABLE owners (id INTEGER PRIMARY KEY, name TEXT NOT NULL DEFAULT (random()))",
    ),
    "an index": ("CREATE INDEX i ON events (trial)",),
    "a partial index": ("CREATE INDEX i ON events (trial) WHERE value > 0",),
    "no table": ("DROP TABLE snapshot",),
    "statistics": ("ANALYZE",),
    "other letters": (
        "DROP TABLE owners",
        "CREATE TABLE OWNERS (id INTEGER PRIMARY KEY, name TEXT NOT NULL)",
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_schema_that_is_not_ours_is_refused_at_once(path, attack):
    change(path, *ATTACKS[attack])
    before = path.read_bytes()
    for space in (None, PLANE):
        start = time.monotonic()
        with pytest.raises(StudyError, match="its schema is not the one that Partita makes"):
            Study.open(path, space)
        assert time.monotonic() - start < 2.0
    assert path.read_bytes() == before


def test_a_trigger_that_comes_while_a_study_is_open_does_not_rewrite_values_unnoticed(tmp_path):
    """The schema is read when a file is opened; rows are checked whenever they are read."""
    path = tmp_path / "tune.db"
    study = Study.open(path, PLANE, policy="uniform")
    play(study, 3)
    change(path, REWRITES)
    play(study, 2)
    with pytest.raises(StudyError, match="schema"):
        Study.open(path)
    change(path, "DROP TRIGGER t")
    with pytest.raises(StudyError, match=r"event 8 \('tell' of trial 3\): its checksum differs"):
        Study.open(path).ask()


def test_tables_that_share_a_page_are_refused(path):
    """The text of a schema may be ours, and its pages those of another table."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA writable_schema = ON")
        page = "(SELECT rootpage FROM sqlite_master WHERE name = 'events')"
        db.execute(f"UPDATE sqlite_master SET rootpage = {page} WHERE name = 'progress'")
        db.commit()
    with pytest.raises(StudyError, match="is not our table"):
        Study.open(path)


def test_a_table_named_twice_is_refused(path):
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA writable_schema = ON")
        db.execute("INSERT INTO sqlite_master SELECT * FROM sqlite_master WHERE name = 'owners'")
        db.commit()
    with pytest.raises(StudyError):
        Study.open(path)


def test_the_message_of_a_newer_format_reads_no_view(path):
    """The name of the version that wrote a file is in `meta`, which may be anything."""
    change(path, *ATTACKS["an endless view"], "PRAGMA user_version = 99")
    start = time.monotonic()
    with pytest.raises(ValueError, match=r"written by Partita \? in format 99"):
        Study.open(path)
    assert time.monotonic() - start < 2.0


@pytest.mark.parametrize(("table", "column"), [("events", "params"), ("events", "point")])
def test_a_huge_cell_is_refused_before_the_next_is_read(tmp_path, table, column):
    path = tmp_path / "tune.db"
    with Study.open(path, PLANE, policy="uniform") as study:
        play(study, 2)
    huge = "CAST(zeroblob(30000000) AS TEXT)" if column == "params" else "zeroblob(30000000)"
    change(path, f"UPDATE {table} SET {column} = {huge} WHERE seq = 1")
    with pytest.raises(StudyError, match="damaged at event 1"):
        Study.open(path).ask()


def test_every_format_that_we_made_is_ours(path):
    """Also the text that ALTER TABLE leaves in a file that was upgraded."""
    with closing(sqlite3.connect(path)) as db:
        assert formats.schema_faults(db) == []
        assert formats.has_ours(db, "meta", "events", "owners", "progress", "snapshot")
    Study.open(path).close()
    with closing(sqlite3.connect(path)) as db:
        assert formats.version_of(db) == formats.FORMAT
        assert formats.schema_faults(db) == []
