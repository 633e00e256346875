"""Files of earlier versions open as they were, and older formats are brought up to date.

tests/study/data holds studies in all formats of before, and what Partita said of each at the time.
They are never written again: each test works on a copy.
"""

import hashlib
import json
import logging
import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.studies import PLANE, Process, change, is_sound, plain, play, without_snapshots

import partita as pt
from partita.errors import StudyError, VersionMismatch
from partita.study import Study, formats
from partita.study.events import ORIGIN, checked, digest_of
from partita.study.store import Store

DATA = Path(__file__).parent / "data"
#: The beginning of each file's SHA-256.
FILES = {
    "v0.1/calibrated": "bae1680ec13d230c",
    "v0.1/igp": "79a333c2b1d0a163",
    "v0.1/killed": "f90e5df1343ea1fe",
    "v0.1/proven": "578820222f8d102b",
    "v0.2-format2/calibrated": "0a8470003ad49899",
    "v0.2-format2/upgraded": "37c2dc8431ef4439",
}


@pytest.fixture(params=FILES)
def kept(request, tmp_path):
    """A copy of a study that an earlier Partita wrote, and what it said of it."""
    source = DATA / f"{request.param}.db"
    assert hashlib.sha256(source.read_bytes()).hexdigest().startswith(FILES[request.param])
    said = json.loads(source.with_suffix(".json").read_text(encoding="utf-8"))
    return Path(shutil.copy(source, tmp_path)), said


def close_to(params):
    """Parameters up to the rounding of another processor."""
    return pytest.approx(params, rel=1e-6) if isinstance(params, list) else Near(params)


class Near(dict):
    def __eq__(self, other):
        number = (int, float)
        return self.keys() == other.keys() and all(
            other[name] == (pytest.approx(v, rel=1e-6) if type(v) in number else v)
            for name, v in self.items()
        )

    __hash__ = None


def test_a_study_of_before_opens_as_it_was(kept, caplog):
    path, said = kept
    with caplog.at_level(logging.WARNING):
        study = Study.open(path)
        trials = study.trials
    # Its snapshot is of other modules: replayed without a word, or with one if the policy of today
    # chooses other points, as the calibrated one does once it has fitted a model.
    same = study.differing == 0
    assert same or path.stem == "calibrated"
    assert (
        caplog.text.count("the policy chooses another point") == (not same) == len(caplog.records)
    )
    assert [plain(trial.params) for trial in trials] == said["params"]
    assert [trial.number for trial in trials] == list(range(len(said["params"])))
    assert [trial.value for trial in trials] == said["values"]
    assert [trial.state for trial in trials] == said["states"]
    assert list(study.expired) == said["expired"]
    assert (study.direction, study.guarantee) == (said["direction"], said["guarantee"])
    best = study.recommend()
    assert best.mean == pytest.approx(said["mean"], rel=1e-6 if same else 0.2)
    if same:
        assert plain(best.params) == close_to(said["recommend"])
        assert plain(study.ask().params) == close_to(said["next"])
    else:
        assert best.lower <= said["mean"] <= best.upper
        study.tell(study.ask(), 0.0)


@pytest.mark.parametrize("kept", ["v0.1/killed"], indirect=True)
def test_a_run_that_was_killed_under_version_0_1_resumes_with_what_it_had_under_way(kept):
    path, said = kept
    asked = []

    def f(u, v):
        asked.append({"u": u, "v": v})
        return u + v

    told = sum(value is not None for value in said["values"])
    pt.minimize(f, {"u": (0.0, 1.0), "v": (0.0, 1.0)}, n_evals=told + 2, study=path)
    assert asked[0] == said["params"][said["states"].index("pending")]
    assert len(asked) == 2
    assert Study.open(path).n_pending == 0


def test_a_study_of_before_is_brought_to_todays_format_and_loses_nothing(kept):
    path, _ = kept
    before = tables(path)
    columns = {1: 8, 2: 9}[before.pop("user_version")]
    Study.open(path).close()
    after = tables(path)
    assert after.pop("user_version") == formats.FORMAT
    digest = ORIGIN
    for row in after["events"]:
        digest = digest_of(digest, checked(row))
        assert row[columns:] == (*(None,) * (10 - columns), digest)
    after["events"] = [row[:columns] for row in after["events"]]
    after["meta"].remove(("head", f"{len(after['events'])} {digest.hex()} whole"))
    assert after == before
    assert is_sound(path)


def test_a_study_of_before_with_a_damaged_row_is_refused_and_keeps_its_rows(kept):
    path, _ = kept
    change(path, "UPDATE events SET time = 'noon' WHERE seq = 7")
    before = tables(path)
    with pytest.raises(StudyError, match="damaged at event 7: time is of type str"):
        Study.open(path)
    after = tables(path)
    assert after.pop("user_version") == 2  # the last that was reached
    columns = {1: 8, 2: 9}[before.pop("user_version")]
    after["events"] = [row[:columns] for row in after["events"]]
    assert after == before


@pytest.mark.parametrize("kept", ["v0.1/calibrated"], indirect=True)
def test_a_study_of_version_0_1_takes_values_of_known_noise(kept):
    path, said = kept
    with Study.open(path) as study:
        number = study.ask().number
        study.tell(number, 0.25, std=0.5)
    study = without_snapshots(path)
    assert (study.trials[number].value, study.trials[number].std) == (0.25, 0.5)
    assert [trial.std for trial in study.trials[:number]] == [None] * number
    assert study.n_told == 1 + sum(value is not None for value in said["values"])


def tables(path):
    """All that is in a file, but for the snapshot."""
    with closing(sqlite3.connect(path)) as db:
        names = ("meta", "events", "owners", "progress")
        found = {name: db.execute(f"SELECT * FROM {name}").fetchall() for name in names}
        return found | {"user_version": db.execute("PRAGMA user_version").fetchone()[0]}


# -- older formats, with upgrades that are made up -----------------------------------------

#: Today's format, and two that are still to come.
NOW, NEXT, LAST = (formats.FORMAT + i for i in range(3))


@pytest.fixture
def old(tmp_path, monkeypatch):
    """A study of today's format, and two upgrades: the last has a table `notes` of two columns."""
    path = tmp_path / "tune.db"
    with Study.open(path, PLANE, policy="uniform") as study:
        play(study, 3)
    steps = {
        NOW: lambda db: db.execute("CREATE TABLE notes (trial INTEGER)"),
        NEXT: lambda db: db.execute("ALTER TABLE notes ADD COLUMN text TEXT"),
    }
    tables = f"{formats.TABLES}; CREATE TABLE notes (trial INTEGER, text TEXT);"
    monkeypatch.setattr(formats, "TABLES", tables)
    since = {**formats.SINCE, ("notes", ""): NEXT, ("notes", "text TEXT"): LAST}
    monkeypatch.setattr(formats, "SINCE", since)
    monkeypatch.setattr(formats, "FORMAT", LAST)
    monkeypatch.setattr(formats, "UPGRADES", steps)
    return path


def form(path):
    """The format of a file, and the columns of its notes."""
    with closing(sqlite3.connect(path)) as db:
        columns = [row[1] for row in db.execute("PRAGMA table_info(notes)")]
        return db.execute("PRAGMA user_version").fetchone()[0], columns


def test_an_older_format_is_brought_up_to_date_when_it_is_opened(old):
    before = Study.open(old).trials
    assert form(old) == (LAST, ["trial", "text"])
    study = Study.open(old)
    assert [t.value for t in study.trials] == [t.value for t in before]
    play(study, 2)
    assert study.n_told == 5
    assert is_sound(old)


def test_a_crash_in_the_middle_leaves_the_last_format_that_was_reached(old, monkeypatch):
    steps = dict(formats.UPGRADES)

    def half(db):
        steps[NEXT](db)
        raise KeyboardInterrupt

    monkeypatch.setattr(formats, "UPGRADES", steps | {NEXT: half})
    with pytest.raises(KeyboardInterrupt):
        Study.open(old)
    assert form(old) == (NEXT, ["trial"])
    monkeypatch.setattr(formats, "UPGRADES", steps)
    assert Study.open(old).n_told == 3
    assert form(old) == (LAST, ["trial", "text"])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes as of Unix")
def test_an_upgrade_killed_in_the_middle_is_made_by_the_next(old, monkeypatch):
    steps = dict(formats.UPGRADES)

    def killed(db):
        steps[NOW](db)
        os._exit(9)

    monkeypatch.setattr(formats, "UPGRADES", steps | {NOW: killed})
    assert Process(lambda out: Study.open(old)).end()[1] == 9
    monkeypatch.setattr(formats, "UPGRADES", steps)
    assert form(old) == (NOW, [])
    assert Study.open(old).n_told == 3
    assert form(old) == (LAST, ["trial", "text"])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes as of Unix")
def test_several_processes_that_open_it_at_once_upgrade_it_once(old):
    def opens(out):
        out.write(f"{Study.open(old).n_told}\n")

    ended = [process.end() for process in [Process(opens) for _ in range(4)]]
    assert ended == [(["3"], 0)] * 4
    assert form(old) == (LAST, ["trial", "text"])


def test_a_file_that_cannot_be_written_is_left_in_its_format(old, monkeypatch):
    """Root may write anywhere, so SQLite is asked for a connection that may not."""
    raw = Store._raw
    monkeypatch.setattr(Store, "_raw", lambda store, mode: raw(store, "ro"))
    with pytest.raises(StudyError, match=r"older format.*read-only.*copy it"):
        Study.open(old)
    assert form(old) == (NOW, [])


@pytest.mark.parametrize(
    ("version", "advice"), [(99, "upgrade Partita"), (0, "the Partita that wrote")]
)
def test_a_file_of_an_unknown_format_is_refused(old, version, advice):
    change(old, f"PRAGMA user_version = {version}")
    before = old.read_bytes()
    for space in (None, PLANE):
        with pytest.raises(VersionMismatch, match=f"format {version}.*{advice}"):
            Study.open(old, space)
    assert old.read_bytes() == before


def test_a_study_that_is_upgraded_while_it_is_open_is_written_no_more(old):
    study = Study.open(old)
    trial = study.ask()
    change(old, f"PRAGMA user_version = {LAST + 1}")  # by a later Partita
    for action in (study.ask, lambda: study.tell(trial, 1.0)):
        with pytest.raises(VersionMismatch, match=rf"format {LAST + 1}.*upgrade Partita"):
            action()
    change(old, f"PRAGMA user_version = {LAST}")
    study.tell(trial, 1.0)
    assert study.n_told == 4


def test_what_a_newer_partita_has_logged_is_not_misread(old):
    """A new column of a newer format may say something that changes what a row means."""
    study = Study.open(old)
    assert study.n_told == 3
    with Study.open(old) as newer:
        trial = newer.ask()
        newer.tell(trial, 0.5)
    later = ("ALTER TABLE events ADD COLUMN weight REAL", f"PRAGMA user_version = {LAST + 1}")
    change(old, *later)
    with pytest.raises(VersionMismatch, match=rf"format {LAST + 1}.*upgrade Partita"):
        study.recommend()
    assert is_sound(old)
