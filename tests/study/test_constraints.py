"""Constraints and failures in a study: kept, replayed, and refused where they cannot be."""

import json
import multiprocessing
import os
import signal

import numpy as np
import pytest
from support.studies import change, rechained

import partita as pt
from partita.errors import InvalidInput, StudyError
from partita.study import Study
from partita.study.export import columns, export

SQUARE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
LIMITS = ["cost <= 0.3"]


def f(x, y):
    if x > 0.6:
        raise RuntimeError("no")
    return {"gain": x + y, "cost": x * y}


def play(player, n):
    for _ in range(n):
        trial = player.ask()
        try:
            values = f(**trial.params)
        except RuntimeError:
            player.fail(trial)
        else:
            player.tell(trial, values)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tune.db"


@pytest.mark.parametrize("snapshots", [True, False])
def test_a_study_goes_on_as_an_optimizer_that_never_stopped(path, snapshots):
    optimizer = pt.Optimizer(SQUARE, direction="maximize", constraints=LIMITS)
    play(optimizer, 16)
    with Study.open(path, SQUARE, direction="maximize", constraints=LIMITS) as study:
        play(study, 10)
    if not snapshots:
        change(path, "DELETE FROM snapshot")
    with Study.open(path) as study:
        play(study, 6)
        assert study.differing == 0
        assert np.array_equal(study.trials.units, optimizer.trials.units)
        assert np.array_equal(study.trials.measured, optimizer.trials.measured, equal_nan=True)
        assert study.n_failed == optimizer.n_failed > 0
        best = study.recommend().params
        assert study.constraints_at(best) == optimizer.constraints_at(best)
        assert study.constraints.texts == ("cost <= 0.3",)


def test_constraints_are_settings(path):
    with Study.open(path, SQUARE, constraints=LIMITS) as study:
        play(study, 3)
    with pytest.raises(InvalidInput, match=r"constraints is \['cost <= 0.3'\] in the study, but"):
        Study.open(path, constraints=["cost <= 0.4"])
    with Study.open(path, SQUARE, constraints=["cost  <= 0.3"]) as study:
        assert study.n_told
    with pytest.raises(InvalidInput, match="about x, a parameter"):
        Study.open(path.with_name("other.db"), SQUARE, constraints=["x <= 0.3"])
    assert not path.with_name("other.db").exists()


def test_a_study_without_constraints_says_nothing_of_them(path):
    with Study.open(path, SQUARE) as study:
        study.tell(study.ask(), 1.0)
        assert study.constraints.names == ()
        with pytest.raises(InvalidInput, match="needs constraints"):
            study.tell(study.ask(), {"gain": 1.0, "cost": 2.0})
    with Study.open(path) as study:
        assert "constraints" not in study.settings.to_meta()["settings"]


@pytest.mark.parametrize(
    "data",
    [
        None,
        '{"values": {}}',
        '{"values": {"cost": 1, "time": 2}}',
        '{"values": {"time": 2}}',
        '{"values": [1.0]}',
        '{"values": {"cost": "dear"}}',
        '{"values": {"cost": true}}',
        '{"values": {"cost": null}}',
        '{"values": {"cost": 1e300}}',
        '{"failed": true}',
    ],
)
def test_edited_values_are_refused(path, data):
    with Study.open(path, SQUARE, constraints=LIMITS) as study:
        for _ in range(3):
            study.tell(study.ask(), {"gain": 1.0, "cost": 0.2})
    change(path, "DELETE FROM snapshot")
    rechained(path, ("UPDATE events SET data = ? WHERE seq = 4", (data,)))
    with pytest.raises(StudyError, match="event 4"):
        assert Study.open(path).n_told


def test_values_where_nobody_asked_for_them_are_refused(path):
    with Study.open(path, SQUARE) as study:
        study.tell(study.ask(), 1.0)
    change(path, "DELETE FROM snapshot")
    rechained(path, ("UPDATE events SET data = ? WHERE seq = 2", ('{"values": {"cost": 1}}',)))
    with pytest.raises(StudyError, match="event 2"):
        assert Study.open(path).n_told


def test_tables_have_a_column_for_each(path, tmp_path):
    with Study.open(path, {**SQUARE, "value_": (0, 3, "int")}, constraints=["state < 9"]) as study:
        study.tell(study.ask(), {"loss": 1.0, "state": 2.5})
        study.fail(study.ask())
        table = columns(study)
        assert list(table)[-1] == "value_state"
        assert table["value_state"] == [2.5, None]
        export(study, tmp_path / "out.csv")
    assert "value_state" in (tmp_path / "out.csv").read_text().splitlines()[0]


def _tune(path, kill_at):
    calls = 0

    def killed(x, y):
        nonlocal calls
        calls += 1
        if calls == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return f(x, y)

    pt.maximize(killed, SQUARE, n_evals=14, constraints=LIMITS, study=path)


def test_a_killed_run_goes_on(path):
    process = multiprocessing.get_context("fork").Process(target=_tune, args=(path, 9))
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL
    with Study.open(path) as study:
        assert study.n_told + study.n_failed == 8
    result = pt.maximize(f, SQUARE, n_evals=14, constraints=LIMITS, study=path)
    assert result.nfev == 14
    assert result.constraints["cost"].probability >= 0.9
    with Study.open(path) as study:
        rows = study._store.rows("SELECT data FROM events WHERE kind IN ('tell', 'cancel')")
    fields = [json.loads(data) for (data,) in rows if data is not None]
    assert len(fields) >= 14
    assert {name for field in fields for name in field} <= {"values", "failed"}


@pytest.mark.parametrize("snapshots", [True, False])
def test_many_values_by_name_survive(path, snapshots):
    points = np.random.default_rng(2).random((40, 2))
    values = {"gain": points.sum(axis=1), "cost": points.prod(axis=1)}
    optimizer = pt.Optimizer(SQUARE, direction="maximize", constraints=LIMITS)
    optimizer.add(points, values)
    with Study.open(path, SQUARE, direction="maximize", constraints=LIMITS) as study:
        assert study.add(points, values) == list(range(40))
    if not snapshots:
        change(path, "DELETE FROM snapshot")
    with Study.open(path) as study:
        assert np.array_equal(study.trials.measured, optimizer.trials.measured)
        assert study.trials[5].values == {"cost": points[5].prod()}
        play(study, 3)
        play(optimizer, 3)
        assert np.array_equal(study.trials.units, optimizer.trials.units)
        best = study.recommend().params
        assert study.constraints_at(best) == optimizer.constraints_at(best)
