"""Studies with contexts: stored, replayed to the same choices, refused where they differ."""

import json
import sqlite3

import numpy as np
import pytest

import partita as pt
from partita.errors import InvalidInput
from partita.study import Study, replica

SPACE = {"x": (0.0, 1.0), "k": ["a", "b"]}
CONTEXT = {"hour": (0, 24), "segment": ["new", "old", "vip"]}


def use(player, rounds, seed=0):
    """Asks for contexts, with values fixed now and then; some stay pending, some are added."""
    random = np.random.default_rng(seed)
    for i in range(rounds):
        context = {"hour": float(random.uniform(0, 24)), "segment": ["new", "old"][i % 2]}
        trial = player.ask(context=context, fixed={"k": "b"} if i % 5 == 0 else None)
        assert trial.context == context
        if i % 6:
            value = (trial.params["x"] - context["hour"] / 24) ** 2
            player.tell(trial, value + 0.1 * random.standard_normal())
        if i % 8 == 0:
            player.add({"x": random.random(), "k": "a"}, 0.5, context=context)


def test_a_study_with_contexts_is_replayed_to_the_same_choices(tmp_path, monkeypatch):
    monkeypatch.setattr(replica, "SNAPSHOT_AFTER", 1e9)  # replay the whole log
    path = tmp_path / "online.db"
    optimizer = pt.Optimizer(SPACE, context=CONTEXT)
    use(optimizer, 50)
    with Study.open(path, SPACE, context=CONTEXT) as study:
        use(study, 50)
        assert np.array_equal(study.trials.units, optimizer.trials.units)
    again = Study.open(path)
    assert again.differing == 0
    context = {"hour": 3.25, "segment": "vip"}
    assert again.recommend(context=context) == optimizer.recommend(context=context)
    assert again.ask(context=context).params == optimizer.ask(context=context).params
    assert again.differing == 0


def test_a_snapshot_goes_on_with_the_same_choices(tmp_path, monkeypatch):
    monkeypatch.setattr(replica, "SNAPSHOT_AFTER", 0.0)
    monkeypatch.setattr(replica, "SNAPSHOT_EVENTS", 1)
    path = tmp_path / "online.db"
    optimizer = pt.Optimizer(SPACE, context=CONTEXT)
    use(optimizer, 40)
    with Study.open(path, SPACE, context=CONTEXT) as study:
        use(study, 40)
    assert sqlite3.connect(path).execute("SELECT count(*) FROM snapshot").fetchone() == (1,)
    use(optimizer, 20, seed=5)
    again = Study.open(path)
    use(again, 20, seed=5)
    assert np.array_equal(again.trials.units, optimizer.trials.units)


def test_the_file_has_the_contexts_for_other_readers(tmp_path):
    path = tmp_path / "online.db"
    with Study.open(path, SPACE, context=CONTEXT) as study:
        study.ask(context={"hour": 6.5, "segment": "new"})
    params, data = sqlite3.connect(path).execute("SELECT params, data FROM events").fetchone()
    assert json.loads(params).items() >= {"hour": 6.5, "segment": "new"}.items()
    assert json.loads(data) == {"fixed": [2, 3, 4, 5]}


def test_reopening_with_another_context_is_refused(tmp_path):
    path = tmp_path / "online.db"
    Study.open(path, SPACE, context=CONTEXT).close()
    Study.open(path, SPACE, context=CONTEXT).close()
    with pytest.raises(InvalidInput, match="other settings"):
        Study.open(path, SPACE, context={"hour": (0, 12)})
    with pytest.raises(InvalidInput, match="other settings"):
        Study.open(path, SPACE)
    with pytest.raises(InvalidInput, match="the context hour, segment is missing"):
        Study.open(path).ask()
    assert len(Study.open(path).trials) == 0
    assert "0 values" in Study.open(path)._repr_html_()
