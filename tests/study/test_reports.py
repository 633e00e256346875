"""Reports and pruned trials in studies: stored, replayed, exported."""

import csv
import json

import numpy as np
import pytest
from support.studies import change, rechained

import partita as pt
from partita.errors import StudyError
from partita.study import Study
from partita.study.check import check

SPACE = {"rate": (0.0, 1.0)}


def play(study, n):
    for i in range(n):
        trial = study.ask()
        rate = trial.params["rate"]
        for step in range(4):
            trial.report((rate - 0.3) ** 2 + 1 / (step + 1), step)
            if i >= 11 and step == 1 and i % 2:
                study.prune(trial)
                break
        else:
            study.tell(trial, (rate - 0.3) ** 2 + 0.25)


@pytest.fixture(params=["snapshot", "log"])
def path(request, tmp_path):
    place = tmp_path / "tune.db"
    with Study.open(place, SPACE) as study:
        play(study, 17)
        trial = study.ask()
        trial.report(float("nan"), 3)
        study.tell(trial, 0.5)
        if request.param == "snapshot":
            study._replica._spent = 99.0
            study._replica._snapshot_seq = -1000
            study._replica._snapshot(study._replica.current())
    if request.param == "log":
        change(place, "DELETE FROM snapshot")
    return place


def test_all_comes_back(path):
    with Study.open(path) as study:
        assert (study.n_told, study.n_pruned, study.n_pending) == (15, 3, 0)
        assert study.trials.states.count("pruned") == 3
        assert list(study.reports(0)) == [0, 1, 2, 3]
        assert list(study.reports(11)) == [0, 1]
        assert np.isnan(study.reports(17)[3])
        assert study.policy.told == 18  # what was expected of the pruned ones, too
        assert study.differing == 0
        trial = study.ask()
        trial.report(9.0, 0)
        trial.report(9.0, 1)
        assert trial.should_prune()  # the rule knows the finished trials again
    assert not check(path).faults


def test_the_table_shows_them(path, tmp_path):
    from partita.study.export import export

    with Study.open(path) as study:
        export(study, tmp_path / "out.csv")
    rows = list(csv.DictReader((tmp_path / "out.csv").open()))
    pruned = [row for row in rows if row["state"] == "pruned"]
    assert len(pruned) == 3
    assert all(row["value"] == "" and row["ended"] for row in pruned)


@pytest.mark.parametrize(
    "data",
    [
        {"reports": [[1, 2.0], [0, 1.0]]},
        {"reports": [[0, 1.0]], "expected": [1.0]},
        {"reports": [[0, 1.0]], "expected": [1.0, None]},
        {"reports": [[0, 1.0]], "expected": ["a", 1.0]},
        {"reports": [[0, 1.0]], "expected": [1.0, -1.0]},
        {"batch": 3},
    ],
    ids=str,
)
def test_a_file_that_says_what_cannot_be_is_refused(tmp_path, data):
    path = tmp_path / "tune.db"
    with Study.open(path, SPACE) as study:
        play(study, 13)
    change(path, "DELETE FROM snapshot")
    rechained(path, f"UPDATE events SET data = '{json.dumps(data)}' WHERE kind = 'prune'")
    with pytest.raises(StudyError, match=r"damaged|does not know"):
        assert Study.open(path).n_told


@pytest.mark.parametrize("batch", ['"two"', "0", "-1", "1.5", "true"])
def test_a_batch_that_cannot_be_is_refused(tmp_path, batch):
    path = tmp_path / "tune.db"
    with Study.open(path, SPACE) as study:
        study.add([{"rate": 0.1}, {"rate": 0.2}], [1.0, 2.0])
    change(path, "DELETE FROM snapshot")
    rechained(path, f"UPDATE events SET data = '{{\"batch\": {batch}}}' WHERE seq = 1")
    with pytest.raises(StudyError, match="batch"):
        assert Study.open(path).n_told


def test_a_log_that_ends_within_a_batch_is_taken_as_it_is(tmp_path):
    """`partita check --save` may leave such a file; nothing that it has is lost."""
    path = tmp_path / "tune.db"
    with Study.open(path, SPACE) as study:
        study.add([{"rate": 0.1}, {"rate": 0.2}, {"rate": 0.3}], [1.0, 2.0, 3.0])
    change(path, "DELETE FROM snapshot")
    rechained(path, "DELETE FROM events WHERE seq = 3")
    with Study.open(path) as study:
        assert study.trials.values.tolist() == [1.0, 2.0]
        study.add({"rate": 0.5}, 4.0)
    with Study.open(path) as study:
        assert study.trials.values.tolist() == [1.0, 2.0, 4.0]


def test_a_run_in_a_study_prunes_and_resumes(tmp_path):
    def train(rate, trial):
        for step in range(6):
            trial.report((rate - 0.3) ** 2 + 1 / (step + 1), step)
            if trial.should_prune():
                raise pt.TrialPruned
        return (rate - 0.3) ** 2

    path = tmp_path / "tune.db"
    first = pt.minimize(train, SPACE, n_evals=20, study=path)
    second = pt.minimize(train, SPACE, n_evals=35, study=path)
    assert first.nfev + first.npruned == 20
    assert second.nfev + second.npruned == 35
    assert second.npruned > 0
    assert abs(second.params["rate"] - 0.3) < 0.05
