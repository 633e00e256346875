"""Several changes in one transaction: all are stored at once, and what is refused leaves others."""

import sqlite3
from contextlib import closing

import pytest

import partita as pt
from partita.errors import HalfChanged, InvalidInput, Settled
from partita.study import ahead

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


@pytest.fixture
def study(tmp_path):
    return pt.Study.open(tmp_path / "tune.db", SPACE)


def events(study):
    with closing(sqlite3.connect(study.path)) as db:
        return db.execute("SELECT seq, kind, trial, value FROM events ORDER BY seq").fetchall()


def play(study, n, together):
    for _ in range(n):
        if together:
            trials = study.together([study.ask] * 3)
            pieces = [lambda t=t: study.tell(t, t.params["x"] + t.number % 2) for t in trials]
            assert study.together(pieces) == [None] * 3
        else:
            for trial in [study.ask() for _ in range(3)]:
                study.tell(trial, trial.params["x"] + trial.number % 2)


def test_the_log_is_the_same_as_one_by_one_and_its_replay_is_exact(study, tmp_path):
    other = pt.Study.open(tmp_path / "other.db", SPACE)
    play(study, 20, together=True)
    play(other, 20, together=False)
    assert events(study) == events(other)
    twin = pt.Study.open(study.path)
    assert (twin.differing, twin.n_told) == (0, 60)
    assert twin.ask().params == other.ask().params


def test_it_is_one_transaction(study, monkeypatch):
    commits = []
    transact = type(study._store).transact
    monkeypatch.setattr(
        type(study._store), "transact", lambda *a, **k: commits.append(1) or transact(*a, **k)
    )
    study.together([study.ask] * 5)
    assert (len(commits), len(events(study))) == (1, 5)


def test_what_is_refused_leaves_the_others(study):
    trial = study.ask()
    outcomes = study.together(
        [
            lambda: study.tell(trial, 1.0),
            lambda: study.tell(trial, 2.0),
            lambda: study.tell(7, 2.0),
            study.ask,
            lambda: study.n_told,
        ]
    )
    assert outcomes[0] is None
    assert isinstance(outcomes[1], Settled)
    assert isinstance(outcomes[2], pt.errors.NotPending)
    assert outcomes[3].number == 1
    assert outcomes[4] == 1  # questions see what was changed before them
    assert [row[1:] for row in events(study)] == [
        ("ask", 0, None),
        ("tell", 0, 1.0),
        ("ask", 1, None),
    ]


def test_a_failure_half_way_stores_nothing(study, monkeypatch):
    study.ask()

    def broken(*args):
        raise sqlite3.OperationalError("disk full")

    def fails():
        monkeypatch.setattr(type(study._replica), "_insert", broken)
        study.ask()

    stored = []
    with pytest.raises(pt.errors.StudyError):
        study.together([study.ask, fails, study.ask], stored.append)
    monkeypatch.undo()
    assert (len(events(study)), stored) == (1, [])
    assert study.ask().number == 1


def test_outcomes_are_passed_on_once_they_are_on_the_disk(study):
    seen = []
    study.together([study.ask] * 2, lambda outcomes: seen.append((len(outcomes), events(study))))
    assert seen == [(2, [(1, "ask", 0, None), (2, "ask", 1, None)])]


def test_the_pieces_may_stop_early(study):
    def pieces():
        yield study.ask

    assert len(study.together(pieces())) == 1
    assert study.together(()) == []


def test_a_change_within_a_change_is_refused(study):
    study.ask()
    (outcome,) = study.together([lambda: study.changed(lambda change: study.ask())])
    assert isinstance(outcome, HalfChanged)
    assert study.n_pending == 1


def test_changes_of_other_processes_are_seen_first(study):
    other = pt.Study.open(study.path)
    other.tell(other.ask(), 0.5)
    outcomes = study.together([study.ask, lambda: study.n_told])
    assert (outcomes[0].number, outcomes[1]) == (1, 1)
    other.tell(1, 0.25)
    assert study.n_told == 2


def test_keys_and_suggestions_prepared_ahead_are_in_it(study):
    trial = ahead.prepare(study)
    taken, asked = study.together(
        [lambda: ahead.take(study.keyed("a"), trial), study.keyed("b").ask]
    )
    assert (taken, asked.number) == (True, 1)
    with closing(sqlite3.connect(study.path)) as db:
        data = [row[0] for row in db.execute("SELECT data FROM events ORDER BY seq")]
    assert data == ['{"ahead":true}', '{"key":"a"}', '{"key":"b"}']


def test_expired_trials_are_given_up_before(tmp_path):
    study = pt.Study.open(tmp_path / "brief.db", SPACE, expire_after=1e-9)
    study.ask()
    study.together([study.ask])
    assert study.expired[0] == 0


def test_what_is_put_off_is_done_when_there_is_time(study, monkeypatch):
    from partita.study import replica

    monkeypatch.setattr(replica, "SNAPSHOT_AFTER", 1e-9)
    monkeypatch.setattr(replica, "SNAPSHOT_EVENTS", 1)
    study.put_off(1e12)
    play(study, 3, together=True)

    def snapshots():
        with closing(sqlite3.connect(study.path)) as db:
            return db.execute("SELECT seq FROM snapshot").fetchall()

    assert snapshots() == []
    study.tidy()
    assert snapshots() == [(18,)]
    with pytest.raises(InvalidInput):
        study.tell(study.ask(), "nothing")
