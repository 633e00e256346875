"""Studies keep the noise of values that is known, and tell it to the policy again."""

import csv
import io
import math

import numpy as np
import pytest
from support.stds import BAD_STDS, Deaf, Listener
from support.studies import (
    PLANE,
    SPACE,
    Process,
    asks,
    change,
    events,
    rechained,
    value,
    without_snapshots,
)

import partita as pt
from partita.errors import InvalidInput, StudyError
from partita.study import Study
from partita.study.export import columns, export, write_csv


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tune.db"


def play(player, n):
    """Ask and tell n times, every third value without its noise."""
    for _ in range(n):
        trial = player.ask()
        std = None if trial.number % 3 == 2 else 0.1 * (trial.number % 3)
        player.tell(trial, value(trial.params), std=std)


def test_it_is_stored_and_the_policy_told_again(path):
    study = Study.open(path, PLANE, policy=Listener)
    trials = [study.ask() for _ in range(3)]
    study.tell(trials[0], 1.5, std=0.25)
    study.tell(1, 2.5)
    study.tell(trials[2], 3.5, 0)
    assert study.add([0.5, 0.5], 4.5, std=2) == 3
    heard = [(-1.5, 0.25), (-2.5, None), (-3.5, 0.0), (-4.5, 2.0)]
    assert study.policy.heard == heard
    again = Study.open(path, policy=Listener)
    assert again.policy.heard == heard
    assert [trial.std for trial in again.trials] == [0.25, None, 0.0, 2.0]
    rows = again._store.rows("SELECT kind, value, std FROM events WHERE value IS NOT NULL")
    expected = [("tell", 1.5, 0.25), ("tell", 2.5, None), ("tell", 3.5, 0.0), ("add", 4.5, 2.0)]
    assert rows == expected


@pytest.mark.parametrize("space", [PLANE, SPACE], ids=["plane", "named"])
def test_a_study_is_its_optimizer_by_snapshot_and_by_replay(path, space, monkeypatch):
    monkeypatch.setattr("partita.study.replica.SNAPSHOT_AFTER", 0.0)
    monkeypatch.setattr("partita.study.replica.SNAPSHOT_EVENTS", 10)
    twin = pt.Optimizer(space, seed=2)
    study = Study.open(path, space, seed=2)
    play(twin, 30)
    play(study, 20)
    study.close()
    assert len(Study.open(path)._store.rows("SELECT seq FROM snapshot")) == 1
    study = Study.open(path)  # by the snapshot
    play(study, 10)
    study.close()
    np.testing.assert_array_equal(study.trials.stds, twin.trials.stds)
    np.testing.assert_array_equal(study.trials.units, twin.trials.units)
    full = without_snapshots(path)
    np.testing.assert_array_equal(full.trials.stds, twin.trials.stds)
    assert full.differing == 0
    assert full.recommend()[2:] == twin.recommend()[2:]
    assert asks(full) == asks(twin)


def test_an_expired_trial_may_come_with_it(path):
    study = Study.open(path, PLANE, policy=Listener, expire_after=1e-9)
    trial = study.ask()
    study.ask()
    assert study.expired == (0,)
    study.tell(trial, 1.0, std=0.5)
    assert study.trials[0].std == 0.5
    assert Study.open(path, policy=Listener).trials[0].std == 0.5


@pytest.mark.parametrize(("std", "message"), BAD_STDS)
def test_what_is_no_deviation_is_refused_with_nothing_stored(path, std, message):
    study = Study.open(path, SPACE)
    trial = study.ask()
    before, state = events(path), study._replica.current()
    with pytest.raises(InvalidInput, match=message):
        study.tell(trial, 1.0, std=std)
    with pytest.raises(InvalidInput, match=message):
        study.add({"rate": 0.1, "depth": 3, "kind": "a"}, 1.0, std=std)
    assert events(path) == before
    assert study._replica.current() is state  # refused before anything was begun
    study.tell(trial, 1.0, std=0.1)


@pytest.mark.parametrize("policy", ["uniform", Deaf])
def test_what_the_policy_refuses_is_not_stored(path, policy):
    study = Study.open(path, PLANE, policy=policy)
    trial = study.ask()
    before, state = events(path), study._replica.current()
    with pytest.raises(InvalidInput, match="does not use the noise of single values"):
        study.tell(trial, 1.0, std=0.5)
    with pytest.raises(InvalidInput, match="does not use the noise of single values"):
        study.add([0.5, 0.5], 1.0, std=0.5)
    assert events(path) == before
    assert study._replica.current() is state
    study.tell(trial, 1.0)
    assert Study.open(path, policy=policy).n_told == 1


class Picky(Listener):
    """Refuses what it does not like only when it is told."""

    def tell(self, x, y, *, std=None):
        if std is not None and std > 1:
            raise InvalidInput("too noisy")
        super().tell(x, y, std=std)


def test_what_a_policy_refuses_when_it_is_told_is_not_stored_either(path):
    study = Study.open(path, PLANE, policy=Picky)
    trial = study.ask()
    before = events(path)
    with pytest.raises(InvalidInput, match="too noisy"):
        study.tell(trial, 1.0, std=2.0)
    assert events(path) == before
    study.tell(trial, 1.0, std=0.5)
    assert Study.open(path, policy=Picky).policy.heard == [(-1.0, 0.5)]


@pytest.mark.parametrize("bad", ["-0.5", "'wide'", "x'00'", "9e999", "-9e999"])
@pytest.mark.parametrize("kind", ["tell", "add"])
def test_an_edited_row_with_a_bad_deviation_is_refused_with_its_place(path, bad, kind):
    with Study.open(path, PLANE) as study:
        play(study, 2)
        study.add([0.5, 0.5], 1.0, std=0.5)
    seq, trial = {"tell": (2, 0), "add": (5, 2)}[kind]
    change(path, f"UPDATE events SET std = {bad} WHERE seq = {seq}")
    with pytest.raises(StudyError, match=f"log is damaged at event {seq}"):
        Study.open(path).recommend()
    rechained(path)  # by one who knows how the checksums are made
    with pytest.raises(StudyError, match=r"give the standard deviation|std is of type") as caught:
        Study.open(path).recommend()
    assert f"log is damaged at event {seq}" in str(caught.value)
    assert "of type" in str(caught.value) or f"({kind} of trial {trial})" in str(caught.value)


def test_a_policy_that_no_longer_takes_it_is_refused_with_the_reason(path):
    with Study.open(path, PLANE, policy=Listener) as study:
        play(study, 2)

    class Listener2(Listener):
        takes_std = False

    Listener2.__name__, Listener2.__qualname__ = Listener.__name__, Listener.__qualname__
    Listener2.__module__ = Listener.__module__
    with pytest.raises(
        StudyError, match=r"trial 0 was reported with std=0\.0.*the policy that the"
    ):
        Study.open(path, policy=Listener2).recommend()


def test_it_survives_a_kill_and_another_process_sees_it(path):
    study = Study.open(path, PLANE)
    trial = study.ask()

    def tells(out):
        Study.open(path).tell(trial.number, 0.5, std=0.125)
        out.write("told\n")
        while True:
            pass

    process = Process(tells)
    assert process.line() == "told"
    process.kill()
    assert study.trials[0].std == 0.125
    assert without_snapshots(path).trials[0].std == 0.125


def test_tables_have_a_column_of_it_if_any_is_known(path, tmp_path):
    space = {"std": (0.0, 1.0), "kind": ["a", "b"]}
    study = Study.open(path, space)
    study.tell(study.ask(), 1.0)
    assert list(columns(study)) == [
        "number",
        "state",
        "value",
        "asked",
        "ended",
        "param_std",
        "kind",
    ]
    study.tell(study.ask(), 2.0, std=0.5)
    study.tell(study.ask(), 3.0, std=0)
    study.ask()
    table = columns(study)
    assert list(table)[:4] == ["number", "state", "value", "std"]
    assert table["std"] == [None, 0.5, 0.0, None]
    out = io.StringIO()
    write_csv(study, out)
    assert [row["std"] for row in csv.DictReader(io.StringIO(out.getvalue()))] == [
        "",
        "0.5",
        "0.0",
        "",
    ]
    parquet = pytest.importorskip("pyarrow.parquet")
    export(study, tmp_path / "table.parquet")
    stored = parquet.read_table(tmp_path / "table.parquet")
    assert stored.column("std").to_pylist() == [None, 0.5, 0.0, None]
    assert math.isclose(stored.column("param_std").to_pylist()[0], study.trials[0].params["std"])
