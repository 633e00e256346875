"""What `check` finds wrong with a file, and what `save` saves of it."""

import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.studies import PLANE, change, events, looking, play, rechained

from partita.errors import InvalidInput, StudyError
from partita.study import Study, formats, place
from partita.study.check import check
from partita.study.rescue import save

DATA = Path(__file__).parent / "data"


@pytest.fixture
def path(tmp_path):
    """A study of twelve trials: ten told, one cancelled, one pending."""
    path = tmp_path / "tune.db"
    with Study.open(path, PLANE, policy="uniform") as study:
        play(study, 8)
        study.cancel(study.ask())
        study.ask()
        play(study, 2)
    return path


def values(study):
    return {trial.number: trial.value for trial in study.trials if trial.value is not None}


def test_all_is_well(path):
    before = path.read_bytes()
    report = check(path)
    assert (report.faults, report.notes) == ([], ["23 events, 10 values"])
    assert path.read_bytes() == before


@pytest.mark.parametrize("file", ["v0.1/proven.db", "v0.1/igp.db", "v0.2-format2/upgraded.db"])
def test_files_of_before_are_well_and_can_be_saved(file, tmp_path):
    path = shutil.copy(DATA / file, tmp_path / "old.db")
    report = check(path)
    assert report.faults == []
    assert any("when it is opened" in note for note in report.notes)
    saved = save(report, tmp_path / "new.db")
    assert saved.lost == []
    assert values(Study.open(saved.path)) == values(Study.open(path))


def test_a_study_in_use_is_well(path):
    study = Study.open(path)
    play(study, 3)
    assert check(path).faults == []
    play(study, 3)
    assert study.n_told == 16


@pytest.mark.parametrize(
    ("statements", "words", "lost"),
    [
        (["UPDATE events SET value = 9 WHERE seq = 4"], "event 4 of the log: its checksum", {1}),
        (["UPDATE events SET value = 'x' WHERE seq = 4"], "event 4 of the log: value is of", {1}),
        (["UPDATE events SET point = x'00' WHERE seq = 3"], "event 3 of the log: its check", {1}),
        (["DELETE FROM events WHERE seq = 3"], "event 3 of the log: missing", {1}),
        (["DELETE FROM events WHERE seq IN (5, 6)"], "events 5 to 6 of the log: missing", {2, 3}),
        (
            ["DELETE FROM events WHERE seq > 20"],
            "the log ends at event 20, but should end at '23'",
            {10, 11},
        ),
        (["UPDATE events SET digest = NULL WHERE seq = 6"], "event 6 of the log", {2, 3}),
        (
            ["CREATE TRIGGER t AFTER INSERT ON owners BEGIN SELECT 1; END"],
            "there is also 't'",
            set(),
        ),
        (["CREATE VIEW v AS SELECT 1"], "there is also 'v'", set()),
        (["INSERT INTO owners VALUES (7, x'00')"], "the table owners", set()),
        (["INSERT INTO progress VALUES (7, 'x', 1, 1, 1, 1)"], "the table progress", set()),
    ],
)
def test_what_is_sound_is_saved_and_what_is_lost_is_said(path, tmp_path, statements, words, lost):
    original = values(Study.open(path))
    change(path, *statements)
    before = path.read_bytes()
    report = check(path)
    assert any(words in fault for fault in report.faults), report.faults
    saved = save(report, tmp_path / "new.db")
    assert path.read_bytes() == before
    assert bool(saved.lost) == (bool(lost) and "ends at" not in words)
    new = Study.open(saved.path)
    assert values(new) == {n: v for n, v in original.items() if n not in lost}
    assert saved.values == new.n_told
    assert check(saved.path).faults == []
    play(new, 2)


def test_a_row_that_cannot_be_replayed_is_named(path, tmp_path):
    rechained(path, "UPDATE events SET trial = 0 WHERE seq = 4")
    report = check(path)
    assert any("event 4" in fault and "already has a value" in fault for fault in report.faults)
    assert Study.open(save(report, tmp_path / "new.db").path).n_told == 9


def test_a_copy_without_its_log_is_saved_as_far_as_it_goes(path, tmp_path):
    study = Study.open(path)
    play(study, 5)
    copy = shutil.copy(path, tmp_path / "copy.db")
    report = check(copy)
    assert "its write-ahead log, copy.db-wal, is missing" in report.faults[0]
    assert not place.log_of(copy).exists()
    assert Study.open(save(report, tmp_path / "new.db").path).n_told == 10
    assert study.n_told == 15


def test_damaged_settings_are_said_and_nothing_is_made_up(path, tmp_path):
    change(path, "UPDATE meta SET value = replace(value, '2.0', '3.0') WHERE key = 'settings'")
    report = check(path)
    assert any("settings of the study are damaged" in fault for fault in report.faults)
    with pytest.raises(StudyError, match="nothing can be saved as a study"):
        save(report, tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


def test_what_is_there_is_not_written_over(path, tmp_path):
    with pytest.raises(InvalidInput, match="already exists"):
        save(check(path), path)
    with pytest.raises(InvalidInput, match="there is no folder"):
        save(check(path), tmp_path / "no" / "new.db")
    for other in (tmp_path / "no.db", tmp_path):
        with pytest.raises(StudyError, match="there is no study"):
            check(other)


def test_a_constraint_need_not_be_given_to_be_checked(tmp_path):
    path = tmp_path / "tune.db"
    with Study.open(path, PLANE, policy="uniform", feasible=lambda x: x[0] < 0.5) as study:
        play(study, 3)
    report = check(path)
    assert report.faults == []
    assert "was not replayed" in report.notes[0]
    assert check(path, feasible=lambda x: x[0] < 0.5).notes == ["6 events, 3 values"]
    change(path, "DELETE FROM events WHERE seq = 3")  # the beginning of a trial
    saved = save(check(path), tmp_path / "new.db")
    assert Study.open(saved.path, feasible=lambda x: x[0] < 0.5).n_told == 2


def test_a_hostile_schema_is_not_run(path, tmp_path):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, i FROM n"
    change(path, "DROP TABLE meta", f"CREATE VIEW meta AS {endless}")
    report = check(path)
    assert "the schema: meta is not our table" in report.faults
    with pytest.raises(StudyError, match="nothing can be saved"):
        save(report, tmp_path / "new.db")


def damaged_pages(folder, cases, seed):
    """Garble a page of a larger study: what is saved must be a part of what there was."""
    path = folder / "whole.db"
    with Study.open(path, PLANE, policy="uniform") as study:
        play(study, 100)
        original = values(study)
    draw, whole, saved_values = random.Random(seed), path.read_bytes(), []
    for case in range(cases):
        copy, new = folder / f"{case}.db", folder / f"{case}-new.db"
        data = bytearray(whole)
        at = draw.randrange(100, len(data))
        size = draw.choice([1, 100, 4096])
        data[at : at + size] = draw.randbytes(len(data[at : at + size]))
        copy.write_bytes(data)
        try:
            saved = save(check(copy), new)
        except (StudyError, ValueError):
            saved_values.append(0)
            continue
        kept = values(Study.open(new))
        assert kept.items() <= original.items()
        assert saved.values == len(kept)
        assert check(new).faults == []
        saved_values.append(len(kept))
    return saved_values


def test_of_a_garbled_file_only_sound_values_are_saved(tmp_path):
    kept = damaged_pages(tmp_path, 24, seed=1)
    assert sum(number > 60 for number in kept) > 6
    assert any(0 < number < 100 for number in kept)


def test_events_of_a_saved_study_are_those_that_were(path, tmp_path):
    saved = save(check(path), tmp_path / "new.db")
    assert events(saved.path) == events(path)
    with looking(path) as old, closing(sqlite3.connect(saved.path)) as new:
        columns = "seq, kind, trial, time, value, params, point, std, data, digest"
        both = [db.execute(f"SELECT {columns} FROM events").fetchall() for db in (old, new)]
    assert both[0] == both[1]
    assert check(saved.path).format == formats.FORMAT
