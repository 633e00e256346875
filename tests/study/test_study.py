"""Durable studies: what they keep, what they refuse, and that they open to what they were."""

import logging
import math
import pickle
import sqlite3
import time
from contextlib import closing

import numpy as np
import pytest
from support.studies import (
    PLANE,
    SPACE,
    asks,
    change,
    events,
    is_sound,
    plain,
    play,
    rechained,
    value,
)
from support.studies import without_snapshots as replayed

import partita as pt
from partita.errors import InvalidInput, NotPending, StudyError
from partita.policies.registry import METHODS
from partita.study import Study, replica, snapshot


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tune.db"


@pytest.fixture
def snapshots(monkeypatch):
    """A snapshot after every few events."""
    monkeypatch.setattr(replica, "SNAPSHOT_AFTER", 0.0)
    monkeypatch.setattr(replica, "SNAPSHOT_BYTES", math.inf)
    monkeypatch.setattr(replica, "SNAPSHOT_EVENTS", 7)


def test_trials_chosen_elsewhere_are_kept(path):
    study = Study.open(path, PLANE)
    study.ask()
    trial = study.expect([0.25, 0.5])
    assert plain(trial.params) == [0.25, 0.5]
    with pytest.raises(InvalidInput):
        study.expect([2.0, 0.5])
    assert [kind for _, kind, *_ in events(path)] == ["ask", "expect"]
    other = Study.open(path)
    assert (other.n_pending, other.policy.pending, other.differing) == (2, 2, 0)
    assert plain(other.trials.params[1]) == [0.25, 0.5]
    other.tell(trial, 1.0)
    assert (study.n_told, study.n_pending) == (1, 1)
    assert plain(replayed(path).trials.params[1]) == [0.25, 0.5]


def test_a_trial_of_another_study_is_refused(path, tmp_path):
    study, other = Study.open(path, PLANE, seed=1), Study.open(tmp_path / "b.db", PLANE, seed=2)
    trial, foreign = study.ask(), other.ask()
    with pytest.raises(InvalidInput, match="other parameters"):
        study.tell(foreign, 1.0)
    study.tell(trial, 1.0)


def allowed(rate, depth, kind):
    return depth < 7


class Greedy(pt.UniformSampling):
    """A policy of the user's own."""


KNOWN = {"norm_bound": 2.0, "noise": pt.Uniform(-0.1, 0.1), "kernel": pt.Matern(2.5, [0.2, 0.3])}
CASES = {
    "mixed": (SPACE, {}),
    "plane": (PLANE, {"direction": "maximize", "seed": 4}),
    "constrained": (SPACE, {"feasible": allowed}),
    "proven": (PLANE, {**KNOWN, "n_evals": 100, "delta": 0.05}),
    "thompson": (PLANE, {**KNOWN, "policy": "pi-gp-ts", "n_evals": 100}),
    "grid": (pt.Grid(9, dim=2), {"policy": "hoo[rho=0.6]", "noise": pt.Gaussian(0.1)}),
    "arms": (pt.Arms([[0.0, 1], [0.5, 2], [3, 3]], [0, 0], [4, 4]), {"policy": "uniform"}),
    "own policy": (PLANE, {"policy": Greedy}),
}


# -- the same as an optimizer, and the same again ----------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_a_study_asks_what_an_optimizer_asks_and_opens_to_what_it_was(path, case, snapshots):
    space, settings = CASES[case]
    again = {
        name: settings[name] for name in ("feasible", "policy") if callable(settings.get(name))
    }
    twin = pt.Optimizer(space, **settings)
    study = Study.open(path, space, **settings)
    assert play(study, 15) == play(twin, 15)
    for player in (study, twin):  # pending, cancelled and added
        first, second = player.ask(), player.ask()
        player.cancel(second)
        player.tell(first.number, 0.25)
        player.add(first.params, 0.5)
    # Never closed, opened with the snapshot, opened by a full replay: all go on alike.
    with_snapshot = Study.open(path, **again)
    assert with_snapshot.n_told == twin.n_told == 17
    assert (with_snapshot.n_pending, with_snapshot.n_failed) == (0, 1)
    assert with_snapshot.guarantee == study.guarantee == twin.guarantee
    expected = asks(twin, 4)
    assert asks(study, 2) == expected[:2]
    assert asks(with_snapshot, 2) == expected[2:]
    stored = study._store.rows("SELECT seq FROM snapshot")
    assert (stored == []) == (case == "own policy")  # its class is not ours to unpickle
    change(path, "DELETE FROM snapshot")
    full = Study.open(path, **again)
    full_next = asks(full, 1)
    assert full_next == asks(twin, 1)
    assert full.differing == 0
    np.testing.assert_array_equal(full.trials.units, twin.trials.units)
    np.testing.assert_array_equal(full.trials.values, twin.trials.values)
    best, other = full.recommend(), twin.recommend()
    assert plain(best.params) == plain(other.params)
    assert best[2:] == other[2:]


def test_looking_does_not_change_what_is_asked(path):
    """Processes look at different times, and must agree all the same."""
    study, other = Study.open(path, SPACE), Study.open(path)
    for _ in range(25):
        trial = study.ask()
        other.recommend(), other.certificate(), other.predict([trial.params])
        study.tell(trial, value(trial.params))
    assert asks(other) == asks_of_twin(25)
    assert other.differing == 0


def asks_of_twin(n):
    twin = pt.Optimizer(SPACE)
    play(twin, n)
    return asks(twin)


def test_two_openings_of_a_file_share_one_study(path):
    one, two = Study.open(path, PLANE), Study.open(path)
    for _ in range(10):
        first, second = one.ask(), two.ask()
        assert second.number == first.number + 1
        one.tell(second.number, value(second.params))  # asked there, told here
        two.tell(first, value(first.params))
    assert one.n_told == two.n_told == 20
    assert (one.differing, two.differing) == (0, 0)
    assert one.recommend()[2:] == two.recommend()[2:]


def test_the_log_has_everything_in_order(path):
    study = Study.open(path, PLANE, policy="uniform")
    a, b = study.ask(), study.ask()
    study.tell(b, 2.0)
    study.cancel(a)
    added = study.add([0.5, 0.5], -1.0)
    assert events(path) == [
        (1, "ask", 0, None),
        (2, "ask", 1, None),
        (3, "tell", 1, 2.0),
        (4, "cancel", 0, None),
        (5, "add", 2, -1.0),
    ]
    assert added == 2
    assert study.trials.states == ["failed", "finished", "finished"]


def test_it_pickles_as_the_file_that_it_is(path):
    study = Study.open(path, SPACE, feasible=allowed, durability="power", timeout=3.0)
    play(study, 3)
    copy = pickle.loads(pickle.dumps(study))
    copy.tell(copy.ask(), 1.0)
    assert study.n_told == 4
    assert (copy._store.durability, copy._store.timeout) == ("power", 3.0)


def test_closing_is_no_end(path):
    with Study.open(path, PLANE, policy="uniform") as study:
        trial = study.ask()
    assert not path.with_name("tune.db-wal").exists()  # one file, to copy or to send
    study.tell(trial, 1.0)
    assert Study.open(path).n_told == 1


@pytest.mark.parametrize(("durability", "level"), [("process", 1), ("power", 2)])
def test_durability_is_what_sqlite_is_told(path, durability, level):
    """1 is NORMAL: the log is written; 2 is FULL: and flushed to the disk at every commit."""
    study = Study.open(path, PLANE, policy="uniform", durability=durability)
    assert study._store.rows("PRAGMA synchronous") == [(level,)]
    assert study._store.rows("PRAGMA journal_mode") == [("wal",)]


# -- a log from elsewhere ----------------------------------------------------------------------


def test_where_the_policy_would_choose_otherwise_the_log_is_right(path, caplog):
    study = Study.open(path, PLANE, seed=1)
    play(study, 12)
    open_trial, before = study.ask(), study.trials
    moved = np.array([0.123, 0.456])
    rechained(
        path,
        "DELETE FROM snapshot",
        ("UPDATE events SET point = ? WHERE kind = 'ask' AND trial IN (4, 12)", (moved.tobytes(),)),
    )
    with caplog.at_level(logging.WARNING):
        other = Study.open(path)
        assert other.differing >= 2
    assert caplog.text.count("The study continues with the logged points") == 1
    trials = other.trials
    np.testing.assert_array_equal(trials.units[[4, 12]], [moved, moved])
    kept, were = (np.delete(units, [4, 12], 0) for units in (trials.units, before.units))
    np.testing.assert_array_equal(kept, were)
    np.testing.assert_array_equal(trials.values, before.values)
    with pytest.raises(StudyError, match="event 25 of the log has changed"):
        study.ask()  # it was open, and knows better
    # It was told twelve values, one of them at the moved point.
    assert other.policy.told == 12
    other.tell(open_trial.number, 0.1)
    assert other.policy.pending == 0
    assert (other.n_told, other.n_pending) == (13, 0)
    play(other, 5)
    assert other.n_told == 18


def test_other_processes_go_on_with_forged_asks_too(path):
    study = Study.open(path, PLANE)
    play(study, 5)
    point = np.array([0.25, 0.75])
    rechained(
        path,
        (
            "INSERT INTO events VALUES (11, 'ask', 5, 0.0, NULL, '[]', ?, NULL, NULL, NULL, NULL)",
            (point.tobytes(),),
        ),
    )
    assert study.n_pending == 1  # caught up, although its policy would have chosen otherwise
    study.tell(5, 1.0)
    np.testing.assert_array_equal(study.trials.units[5], point)
    assert study.differing == 1


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("DELETE FROM events WHERE seq = 3", "event 3 is missing"),
        ("UPDATE events SET trial = 9 WHERE seq = 3", "trial 1 comes next"),
        ("UPDATE events SET value = NULL WHERE seq = 4", "event 4 (tell of trial 1)"),
        ("UPDATE events SET kind = 'sing' WHERE seq = 4", "there is no kind 'sing'"),
        ("UPDATE events SET trial = 0 WHERE seq = 4", "already has a value"),
        (
            "UPDATE meta SET value = replace(value, 'uniform', 'os') WHERE key = 'settings'",
            "edited",
        ),
    ],
)
def test_a_damaged_log_is_refused_with_the_place(path, statement, words):
    with Study.open(path, PLANE, policy="uniform") as study:
        play(study, 4)
    change(path, statement)
    with pytest.raises(StudyError, match=r"tune\.db: .*(checksum differs|is missing)"):
        Study.open(path).ask()
    rechained(path)  # by one who knows how the checksums are made
    with pytest.raises(StudyError, match=r"tune\.db|log is damaged") as caught:
        Study.open(path).ask()
    assert words in str(caught.value)


# -- snapshots ---------------------------------------------------------------------------------


def tampered(path, **columns):
    """A study with its snapshot changed."""
    for column, content in columns.items():
        change(path, (f"UPDATE snapshot SET {column} = ?", (content,)))
    return Study.open(path)


@pytest.mark.parametrize(
    "columns",
    [
        {"digest": "0" * 64},
        {"state": b"garbage"},
        {"written_by": "1.1 Partita 0.0"},
        {"seq": 10_000},
        {"seq": 3},
    ],
)
def test_a_snapshot_that_does_not_fit_is_not_used(path, snapshots, columns):
    study = Study.open(path, SPACE)
    play(study, 10)
    assert study._store.rows("SELECT count(*) FROM snapshot") == [(1,)]
    other = tampered(path, **columns)
    assert asks(other) == asks_of_twin(10)


def test_no_module_is_imported_because_a_file_says_so(path):
    import hashlib
    import json

    with Study.open(path, PLANE) as study:
        rows = dict(study._store.rows("SELECT * FROM meta"))
    stored = json.loads(rows["settings"]) | {"policy": "antigravity:Popen[args=true]"}
    text = json.dumps(stored, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    change(
        path,
        ("UPDATE meta SET value = ? WHERE key = 'settings'", (text,)),
        ("UPDATE meta SET value = ? WHERE key = 'checksum'", (digest,)),
    )
    with pytest.raises(StudyError, match="there is no policy 'antigravity"):
        Study.open(path)


def test_snapshots_are_few_and_the_tail_short(path, monkeypatch):
    """By time: what must be replayed took about `SNAPSHOT_AFTER` seconds at most."""
    monkeypatch.setattr(replica, "SNAPSHOT_AFTER", 0.05)
    written = []
    write = snapshot.write
    monkeypatch.setattr(snapshot, "write", lambda state: written.append(state.seq) or write(state))
    study = Study.open(path, PLANE)
    play(study, 400)
    assert 2 <= len(written) <= 8
    assert min(np.diff(written)) >= replica.SNAPSHOT_EVENTS
    assert study._store.rows("SELECT seq FROM snapshot") == [(written[-1],)]


# -- expiry ------------------------------------------------------------------------------------


def test_trials_expire_and_their_late_values_are_welcome(path, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    study = Study.open(path, PLANE, expire_after=60.0)
    slow, quick = study.ask(), study.ask()
    now[0] += 50.0
    study.tell(quick, 1.0)
    third = study.ask()
    assert study.n_pending == 2
    now[0] += 11.0  # slow is 61 s old, third 11 s
    other = Study.open(path)  # any process that does anything
    fourth = other.ask()
    assert (study.expired, study.n_failed, study.n_pending) == ((slow.number,), 1, 2)
    assert events(path)[-2:] == [(5, "expire", 0, None), (6, "ask", 3, None)]
    study.cancel(slow)  # no more than has happened
    assert len(events(path)) == 6
    study.tell(slow, 3.0)
    assert (study.expired, study.n_failed, study.n_told) == ((), 0, 2)
    assert study.trials.values[slow.number] == 3.0
    assert study.policy.told == 2
    with pytest.raises(NotPending, match="already has a value"):
        study.tell(slow, 3.0)
    study.tell(third, 1.0)
    study.tell(fourth, 1.0)
    full = replayed(path)
    asks(full), asks(other)  # each replays what the other asks
    assert full.differing == other.differing == 0


@pytest.mark.parametrize("place", [0, 1])
def test_a_trial_stamped_in_the_future_keeps_no_other_from_expiring(path, monkeypatch, place):
    """The clock of one machine was wrong for a moment."""
    now = [1000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    study = Study.open(path, PLANE, policy="uniform", expire_after=60.0)
    for i in range(3):
        now[0] = 1e6 if i == place else 1000.0
        study.ask()
    now[0] = 1100.0
    study.ask()
    assert study.expired == tuple({0, 1, 2} - {place})
    now[0] = 1e6 + 61.0
    study.ask()
    assert study.expired == (0, 1, 2, 3)
    assert Study.open(path).expired == (0, 1, 2, 3)


def test_without_a_limit_nothing_expires(path, monkeypatch):
    study = Study.open(path, PLANE, policy="uniform")
    study.ask()
    later = time.time() + 1e9
    monkeypatch.setattr(time, "time", lambda: later)
    study.ask()
    assert study.n_pending == 2


# -- bad input ---------------------------------------------------------------------------------


def unchanged(path, action, error, match):
    """Refused with these words, and the file is as it was, as is what comes next."""
    before = events(path)
    with pytest.raises(error, match=match) as caught:
        action()
    assert events(path) == before
    assert is_sound(path)
    return caught.value


@pytest.mark.parametrize(
    ("trial", "given", "error", "match"),
    [
        (9, 1.0, NotPending, "there is no trial 9"),
        (-1, 1.0, NotPending, "there is no trial -1"),
        (0, 1.0, NotPending, "already has a value"),
        (1, 1.0, NotPending, "was cancelled"),
        ("2", 1.0, InvalidInput, "give the trial that ask"),
        (True, 1.0, InvalidInput, "give the trial that ask"),
        ([2], 1.0, InvalidInput, "give the trial that ask"),
        (2, math.nan, InvalidInput, "give a finite number"),
        (2, math.inf, InvalidInput, "give a finite number"),
        (2, 1e200, InvalidInput, "in other units"),
        (2, None, InvalidInput, "give one number"),
        (2, "1.0", InvalidInput, "give one number"),
    ],
)
def test_bad_tells_change_nothing(path, trial, given, error, match):
    study = Study.open(path, PLANE)
    first, second, _ = study.ask(), study.ask(), study.ask()
    study.tell(first, 0.0)
    study.cancel(second)
    unchanged(path, lambda: study.tell(trial, given), error, match)
    study.tell(2, 1.0)
    assert study.n_told == replayed(path).n_told == 2


def test_bad_adds_change_nothing(path):
    study = Study.open(path, SPACE, feasible=allowed)
    play(study, 2)
    good = {"rate": 0.1, "depth": 3, "kind": "a"}
    unchanged(path, lambda: study.add(good | {"depth": 8}, 1.0), InvalidInput, "feasible")
    unchanged(path, lambda: study.add(good | {"depth": 80}, 1.0), InvalidInput, "depth")
    unchanged(path, lambda: study.add(good, math.nan), InvalidInput, "finite")
    assert study.add(good, 1.0) == 2


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"space": [(0.0, 1.0), (-1.0, 3.0)]}, "space is Space"),
        ({"space": SPACE}, "space is Space"),
        (
            {"direction": "maximize"},
            "direction is 'minimize' in the study, but 'maximize' was given",
        ),
        ({"seed": 3}, "seed is 2 in the study, but 3 was given"),
        ({"delta": 0.2}, "delta is 0.1"),
        ({"noise": pt.Gaussian(0.2)}, "noise is .*0.1.*but.*0.2"),
        ({"kernel": pt.Matern(1.5, 0.3)}, "kernel is None"),
        ({"norm_bound": 3.0}, "norm_bound is None"),
        ({"policy": "uniform"}, "policy is None"),
        ({"expire_after": 5}, "expire_after is None"),
        ({"feasible": allowed}, "constrained is False"),
    ],
)
def test_other_settings_are_refused_and_the_same_accepted(path, settings, match):
    created = {"seed": 2, "noise": pt.Gaussian(0.1), "n_evals": 50}
    Study.open(path, PLANE, **created).ask()
    space = settings.pop("space", None)
    unchanged(path, lambda: Study.open(path, space, **settings), InvalidInput, match)
    same = Study.open(path, np.array(PLANE), **created | {"n_evals": 500})  # plans change
    assert same.n_pending == 1


def test_functions_must_be_given_again(path, tmp_path):
    Study.open(path, SPACE, feasible=allowed).ask()
    unchanged(path, lambda: Study.open(path), InvalidInput, "give feasible again")
    assert Study.open(path, feasible=allowed).n_pending == 1
    own = tmp_path / "own.db"
    Study.open(own, PLANE, policy=Greedy).ask()
    unchanged(own, lambda: Study.open(own), InvalidInput, "Greedy.*give policy again")
    unchanged(own, lambda: Study.open(own, policy=pt.UniformSampling), InvalidInput, "own_policy")
    assert Study.open(own, policy=Greedy).n_pending == 1


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "is empty: give a space"),
        (b"rate,loss\n0.1,3\n" * 500, "is not a study"),
        (b"notes of mine", "is not a study"),
        (None, "is not a study"),
    ],
    ids=["empty", "text", "a few words", "another database"],
)
def test_what_is_no_study_is_left_alone(path, content, match):
    if content is None:
        change(path, "CREATE TABLE events (x)", "INSERT INTO events VALUES (1)")
        content = path.read_bytes()
    path.write_bytes(content)
    with pytest.raises(StudyError, match=match):
        Study.open(path)
    if content:
        with pytest.raises(StudyError, match=match):
            Study.open(path, PLANE)
    assert path.read_bytes() == content
    assert [p.name for p in path.parent.iterdir()] == ["tune.db"]


def test_an_empty_file_may_be_begun_in(path):
    path.touch()
    assert Study.open(path, PLANE, policy="uniform").ask().number == 0


def test_a_creation_that_was_cut_short_is_begun_again(path):
    """Killed between the first write and the tables."""
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
    with pytest.raises(StudyError, match="is empty"):
        Study.open(path)
    assert Study.open(path, PLANE, policy="uniform").ask().number == 0


def test_there_must_be_a_file_or_a_space(path, tmp_path):
    for where, match in (
        (path, "there is no study .*tune.db"),
        (tmp_path, "is a folder"),
        (tmp_path / "no" / "tune.db", "there is no"),
    ):
        with pytest.raises(StudyError, match=match):
            Study.open(where)
    with pytest.raises(StudyError, match="there is no folder"):
        Study.open(tmp_path / "no" / "tune.db", PLANE)
    assert not list(tmp_path.iterdir())


def test_a_study_that_cannot_be_played_is_not_begun(path):
    for space, settings in (
        ([(1.0, 0.0)], {}),
        (PLANE, {"policy": "oful"}),
        (PLANE, {"policy": "no-such"}),
        (PLANE, {"seed": -1}),
        (PLANE, {"timeout": -1}),
        (PLANE, {"durability": "none"}),
        (PLANE, {"expire_after": 0}),
        (PLANE, {"noise": 0.1}),
        ({"kind": [object(), "b"]}, {}),
        ({"kind": [(1, 2), (3, 4)]}, {}),
    ):
        with pytest.raises(InvalidInput):
            Study.open(path, space, **settings)
        assert not path.exists()


def test_a_new_study_can_be_insisted_on(path):
    Study.open(path, PLANE, must_be_new=True)
    with pytest.raises(InvalidInput, match="is already a study"):
        Study.open(path, PLANE, must_be_new=True)


def test_a_file_that_is_taken_away_is_missed(path):
    """What is told must be found again."""
    study = Study.open(path, PLANE, policy="uniform")
    trial = study.ask()
    study.close()
    kept = path.rename(path.with_name("moved.db"))
    study_moved = Study.open(kept)
    with pytest.raises(StudyError, match="there is no study"):
        study.tell(trial, 1.0)
    other = Study.open(path, PLANE, policy="uniform", seed=5)
    other.ask()
    with pytest.raises(StudyError, match="was moved, deleted or replaced"):
        study.tell(trial, 1.0)
    assert (other.n_pending, other.n_told) == (1, 0)
    path.rename(path.with_name("other.db"))
    with pytest.raises(StudyError, match="was moved, deleted or replaced"):
        other.ask()
    study_moved.close()
    other.close()
    # Its log stays with it: SQLite takes what is called so for the log of whatever is there.
    path.with_name("tune.db-wal").rename(path.with_name("other.db-wal"))
    path.with_name("tune.db-shm").unlink(missing_ok=True)
    kept.rename(path)
    study.tell(trial, 1.0)  # put back
    assert study.n_told == Study.open(path).n_told == 1
    assert Study.open(path.with_name("other.db")).n_pending == 1


def test_an_error_in_the_middle_leaves_what_was_there(path, monkeypatch):
    """Whatever is raised while the policy thinks, Ctrl-C included."""
    study = Study.open(path, PLANE)
    play(study, 8)
    pending = study.ask()
    for verb, action in (("ask", study.ask), ("tell", lambda: study.tell(pending, 0.5))):
        policy = study.policy
        method = getattr(policy, verb)

        def interrupted(*arguments, method=method):
            method(*arguments)
            raise KeyboardInterrupt

        monkeypatch.setattr(policy, verb, interrupted)
        unchanged(path, action, KeyboardInterrupt, None)
        assert (study.n_told, study.n_pending) == (8, 1)
    study.tell(pending, value(pending.params))
    assert asks(study) == asks_of_plane(9)
    assert study.differing == 0


def asks_of_plane(n):
    twin = pt.Optimizer(PLANE)
    play(twin, n)
    return asks(twin)


@pytest.mark.parametrize("name", METHODS)
def test_the_snapshot_of_every_policy_can_be_read_again(path, name, snapshots):
    """Else there would be a full replay at every opening."""
    space = pt.Grid(7, dim=2) if "box" not in METHODS[name].domains else PLANE
    study = Study.open(path, space, policy=name, n_evals=60, **KNOWN)
    play(study, 12)
    ((seq, written_by, digest, data),) = study._store.rows(
        "SELECT seq, written_by, digest, state FROM snapshot"
    )
    read = snapshot.read(data, digest, written_by, study._replica._first)
    assert read is not None
    assert read.seq == seq
    twin = Study.open(path)
    assert asks(twin, 2) + asks(study, 2) == [plain(p) for p in study.trials.params][12:]
    assert study.differing == twin.differing == 0
