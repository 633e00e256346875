"""The tolerance that was chosen: stored with the study, and of no consequence to its trials."""

import sqlite3
from contextlib import closing

import pytest

import partita as pt
from partita.errors import InvalidInput


@pytest.fixture
def study(tmp_path):
    return pt.Study.open(tmp_path / "tune.db", [(0, 1)])


def test_it_is_stored_and_can_be_removed(study):
    assert study.tolerance is None
    study.tolerance = 0.1
    assert study.tolerance == 0.1
    assert pt.Study.open(study.path).tolerance == 0.1  # by another process
    study.tolerance = None
    assert pt.Study.open(study.path).tolerance is None


@pytest.mark.parametrize("bad", [0, -0.1, float("nan"), float("inf"), "0.1", [1]])
def test_what_is_no_tolerance_is_refused(study, bad):
    study.tolerance = 0.1
    with pytest.raises(InvalidInput, match=r"tolerance|number"):
        study.tolerance = bad
    assert study.tolerance == 0.1


def test_it_changes_no_trial_and_no_event(study, tmp_path):
    other = pt.Study.open(tmp_path / "other.db", [(0, 1)])
    for i in range(8):
        study.tolerance = i + 1
        trial, twin = study.ask(), other.ask()
        assert trial.x == twin.x
        study.tell(trial, trial.x[0])
        other.tell(twin, twin.x[0])
    with closing(sqlite3.connect(study.path)) as db:
        assert db.execute("SELECT count(*) FROM events").fetchone() == (16,)


def test_a_value_that_someone_wrote_into_the_file_is_ignored(study):
    study.close()
    for text in ("wide", "nan", "-1", "1e999"):
        with closing(sqlite3.connect(study.path)) as db, db:
            db.execute("INSERT OR REPLACE INTO meta VALUES ('tolerance', ?)", (text,))
        assert pt.Study.open(study.path).tolerance is None, text


def test_any_other_row_is_damage(study):
    study.close()
    with closing(sqlite3.connect(study.path)) as db, db:
        db.execute("INSERT INTO meta VALUES ('other', '1')")
    with pytest.raises(pt.errors.StudyError, match="meta"):
        pt.Study.open(study.path)
