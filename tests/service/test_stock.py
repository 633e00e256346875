"""Suggestions prepared ahead: who gets them, what the log says, and that a replay is exact."""

import sqlite3
import time
from contextlib import closing

import pytest
from support.service import evaluate

import partita as pt
from partita.service import stock
from partita.study import ahead


def events(folder, name="tune"):
    with closing(sqlite3.connect(folder / f"{name}.db")) as db:
        return db.execute("SELECT kind, trial, data FROM events ORDER BY seq").fetchall()


def prepared(client, name="tune"):
    """The numbers of the trials that are prepared, once there is one."""
    for _ in range(200):
        rows = client.get(f"/studies/{name}/trials", params={"state": "pending"}).json()["trials"]
        ready = [row["number"] for row in rows if row["state"] == "prepared"]
        if ready:
            return ready
        time.sleep(0.02)
    raise AssertionError("nothing was prepared")


def ask(client, key=None, **body):
    headers = {} if key is None else {"Idempotency-Key": key}
    return client.post("/studies/tune/ask", json=body, headers=headers).json()["trials"]


@pytest.fixture
def early(monkeypatch):
    monkeypatch.setattr(stock, "FROM", 3)


def test_whoever_asks_gets_what_was_prepared_and_the_log_says_so(early, tune, folder):
    evaluate(tune, 3)
    (first,) = ask(tune)
    (ready,) = prepared(tune)
    assert tune.get("/studies/tune").json()["counts"]["pending"] == 1
    tune.post("/studies/tune/tell", json={"number": first["number"], "value": 0.5})
    (second,) = ask(tune, "a")
    assert second["number"] == ready
    kinds = [(kind, data) for kind, trial, data in events(folder) if trial == ready]
    assert kinds == [("ask", '{"ahead":true}'), ("adopt", '{"key":"a"}')]
    twin = pt.Study.open(folder / "tune.db")  # replayed by another process
    assert twin.differing == 0
    assert twin.trials[ready].params == second["params"]


def test_a_repeated_ask_gets_the_same_also_after_a_restart(early, tune, served):
    evaluate(tune, 3)
    ask(tune)
    prepared(tune)
    got = ask(tune, "a")
    assert ask(tune, "a") == got
    assert ask(served(), "a") == got


def test_other_asks_are_not_answered_from_it(early, tune):
    evaluate(tune, 3)
    ask(tune)
    (ready,) = prepared(tune)
    others = [*ask(tune, count=2), *ask(tune, fixed={"n": 4})]
    others += ask(tune, params={"x": 0.5, "n": 3, "kind": "a"})
    assert ready not in [trial["number"] for trial in others]
    assert ask(tune)[0]["number"] == ready


def test_what_is_too_old_is_cancelled_in_the_log(early, tune, folder, monkeypatch):
    evaluate(tune, 3)
    ask(tune)
    (ready,) = prepared(tune)
    monkeypatch.setattr(stock, "OLD", 0)
    added = {"params": {"x": 0.5, "n": 3, "kind": "a"}, "value": 1.5}
    tune.post("/studies/tune/add", json=added)
    assert ask(tune, "k")[0]["number"] != ready
    assert ("cancel", ready, None) in events(folder)


def test_an_end_cancels_what_nobody_took(early, served, folder):
    client = served()
    client.post("/studies", json={"name": "tune", "space": {"parameters": [["x", [0.0, 1.0]]]}})
    for i in range(4):
        (trial,) = ask(client)
        client.post("/studies/tune/tell", json={"number": i, "value": trial["params"]["x"]})
    (ready,) = prepared(client)
    client.app.state.service._shelf.close()
    assert events(folder)[-1] == ("cancel", ready, None)
    study = pt.Study.open(folder / "tune.db")
    assert (study.n_pending, study.differing) == (0, 0)


def test_a_killed_service_leaves_it_for_the_next(early, tune, folder):
    evaluate(tune, 3)
    left = ahead.prepare(pt.Study.open(folder / "tune.db"))
    ask(tune)
    assert prepared(tune) == [left.number]
    assert ask(tune)[0] == {"number": left.number, "params": left.params}


def test_one_that_was_cancelled_by_its_number_is_not_given(early, tune):
    evaluate(tune, 3)
    ask(tune)
    (ready,) = prepared(tune)
    assert tune.post("/studies/tune/cancel", json={"number": ready}).status_code == 200
    assert ask(tune)[0]["number"] != ready


def test_nothing_is_prepared_while_values_are_few(tune):
    evaluate(tune, 5)
    ask(tune)
    time.sleep(0.1)
    rows = tune.get("/studies/tune/trials", params={"state": "pending"}).json()["trials"]
    assert [row["state"] for row in rows] == ["pending"]
