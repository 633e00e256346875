"""At DEBUG the log shows every trial."""

import logging

import partita as pt
from partita.study import Study

SPACE = {"x": (0.0, 1.0), "kind": ["a", "b\x1b[2J"]}


def played(player, caplog):
    with caplog.at_level(logging.DEBUG, logger="partita"):
        first, second = player.ask(), player.ask()
        player.tell(first, 1.23456789, std=0.5)
        player.cancel(second)
        player.expect({"x": 0.25, "kind": "a"})
        player.add({"x": 0.5, "kind": "b\x1b[2J"}, 2.0)
    lines = [record.getMessage() for record in caplog.records if record.name == "partita.trials"]
    kind = first.params["kind"].replace("\x1b", "\\u001b")
    assert lines[0] == f"trial 0 asked for: x = {first.params['x']:.6g}, kind = {kind}"
    assert lines[2:] == [
        "trial 0 told: 1.23457 ± 0.5",
        "trial 1 cancelled",
        "trial 2 expected: x = 0.25, kind = a",
        "trial 3 added: x = 0.5, kind = b\\u001b[2J",
        "trial 3 told: 2",
    ]


def test_trials_of_an_optimizer(caplog):
    played(pt.Optimizer(SPACE), caplog)


def test_trials_of_a_study_and_none_of_its_replay(caplog, tmp_path):
    study = Study.open(tmp_path / "a.db", SPACE)
    played(study, caplog)
    caplog.clear()
    with caplog.at_level(logging.DEBUG, logger="partita"):
        assert Study.open(tmp_path / "a.db").n_told == 2
    assert not [record for record in caplog.records if record.name == "partita.trials"]


def test_failures_of_a_run_say_why(caplog):
    def f(x):
        if x[0] > 0.5:
            raise OSError("no licence")
        return float(x[0])

    with caplog.at_level(logging.DEBUG, logger="partita.trials"):
        result = pt.minimize(f, [(0, 1)], n_evals=6)
    lines = [record.getMessage() for record in caplog.records if record.name == "partita.trials"]
    assert sum(line.endswith("failed: OSError: no licence") for line in lines) == result.nfail > 0
    assert sum(" told: " in line for line in lines) == 6


def test_nothing_is_written_otherwise(caplog):
    pt.minimize(lambda x: float(x[0]), [(0, 1)], n_evals=3)
    assert not caplog.records
