"""Means and plans in a study's file."""

import sqlite3

import numpy as np
import pytest

import partita as pt
from partita.commands.main import main
from partita.errors import InvalidInput

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
PROVEN = {"norm_bound": 3.0, "noise": pt.Gaussian(0.3), "kernel": pt.Matern(1.5, 0.3)}
BOTH = pytest.mark.parametrize("settings", [{}, {**PROVEN, "n_evals": 10_000}], ids=["cal", "pi"])


def play(study, plans, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(plans):
        for trial in study.plan(200):
            study.tell(trial, values=trial.params["x"] + 0.3 * rng.standard_normal(trial.count))


def replayed(path, tmp_path):
    """The study at another place, without its snapshot."""
    target = tmp_path / "replayed.db"
    with sqlite3.connect(path) as db, sqlite3.connect(target) as copy:
        db.backup(copy)
        copy.execute("DELETE FROM snapshot")
    copy.close()
    return pt.Study.open(target)


@BOTH
def test_a_study_goes_on_with_its_plans(tmp_path, settings):
    path = tmp_path / "a.db"
    study = pt.Study.open(path, SPACE, **settings)
    play(study, 12)
    rows = study.plan(100)
    row = max(rows, key=lambda trial: trial.count)
    study.tell(row, 0.1, 0.3, count=1 + row.count // 2)
    study.add([{"x": 0.1, "y": 0.2}, {"x": 0.3, "y": 0.4}], [1.0, 2.0], 0.2, count=[5, 1])
    study.close()
    again, other = pt.Study.open(path), replayed(path, tmp_path)
    assert other.differing == 0
    for one in (again, other):
        assert one.trials[:] != []
        assert one.trials[row.number].count == row.count
        assert one.policy.told == study.policy.told
        assert one.policy.pending == study.policy.pending
        with pytest.raises(InvalidInput, match="left"):
            one.tell(row.number, 0.0, 0.1, count=row.count)
    assert again.ask().params == other.ask().params
    plans = [[(t.count, t.params) for t in one.plan(60)] for one in (again, other)]
    assert plans[0] == plans[1]


def test_a_snapshot_holds_rows_and_parts(tmp_path):
    from partita.study import snapshot

    study = pt.Study.open(tmp_path / "a.db", SPACE, **PROVEN, n_evals=10_000)
    play(study, 9)
    row = max(study.plan(500), key=lambda trial: trial.count)
    study.tell(row, 0.1, 0.3, count=2)
    state = study._replica.current()
    data = snapshot.write(state)
    made = snapshot.read(
        data,
        snapshot.digest_of(data),
        snapshot.WRITTEN_BY,
        lambda: type(state)(study.settings.build(None, None)),
    )
    assert made is not None
    assert made.game.ledger.parts == state.game.ledger.parts
    assert made.game.ledger.planned == state.game.ledger.planned
    assert made.game.policy.pending == study.policy.pending
    np.testing.assert_array_equal(made.game.policy.ask(), study.policy.ask())


def test_an_expired_row_keeps_its_parts(tmp_path):
    path = tmp_path / "a.db"
    study = pt.Study.open(path, SPACE, **PROVEN, expire_after=1e-9)
    study.add({"x": 0.5, "y": 0.5}, 0.0, 0.3, count=500)
    for row in study.plan(100):
        if row.count > 3:
            break
    study.ask()
    assert study.trials[row.number].state == "failed"
    study.tell(row, 0.1, 0.3, count=2)  # it is accepted all the same
    assert study.trials[row.number].count == 2


def test_the_command_line_tells_means_and_values(tmp_path, capsys):
    path = str(tmp_path / "a.db")
    study = pt.Study.open(path, SPACE)
    study.ask(4)
    study.close()
    assert main(["tell", path, "0", "-0.5", "--std", "0.1", "--count", "12"]) == 0
    assert main(["tell", path, "1", "--values", "-1", "3"]) == 0
    assert main(["tell", path, "2", "1.0", "--count", "0"]) == 2
    assert main(["tell", path, "2", "1.0", "--count", "2.5", "--std", "1"]) == 2
    assert main(["tell", path, "2", "--values", "1.0", "x"]) == 2
    assert main(["tell", path, "2", "--values"]) == 2
    records = pt.Study.open(path).trials
    assert (records[0].value, records[0].std, records[0].count) == (-0.5, 0.1, 12)
    assert (records[1].value, records[1].count) == (1.0, 2)
    assert records[2].state == "pending"
    capsys.readouterr()
    assert main(["export", path, "-"]) == 0
    header, first, *_ = capsys.readouterr().out.splitlines()
    assert first.split(",")[header.split(",").index("count")] == "12"
