"""The wire format: what requests take, what answers hold, and what bad ones get."""

import json

import pytest
from support.service import SPACE, evaluate

import partita as pt
from partita.service.openapi import description


def problem(answer, status, *words):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert body["status"] == status
    for word in words:
        assert word in body["detail"], body
    return body


def test_a_study_is_created_asked_and_told(tune, folder):
    answer = tune.post("/studies/tune/ask", json={"count": 2}).json()
    assert [sorted(trial) for trial in answer["trials"]] == [["number", "params"]] * 2
    assert [trial["number"] for trial in answer["trials"]] == [0, 1]
    assert tune.post("/studies/tune/tell", json={"number": 0, "value": 0.5}).json() == {"number": 0}
    assert tune.post("/studies/tune/cancel", json={"number": 1}).json() == {"number": 1}
    params = {"x": 0.5, "n": 3, "kind": "a"}
    added = tune.post("/studies/tune/add", json={"params": params, "value": 1.5, "std": 0.1})
    assert added.json() == {"numbers": [2]}
    page = tune.get("/studies/tune/trials").json()
    assert [row["state"] for row in page["trials"]] == ["finished", "failed", "finished"]
    assert page["trials"][2] == {
        "number": 2,
        "params": params,
        "value": 1.5,
        "state": "finished",
        "std": 0.1,
    }
    assert page["next"] is None
    study = pt.Study.open(folder / "tune.db")  # another process sees the same
    assert study.n_told == 2


def test_the_trials_are_those_of_python(tune, folder):
    evaluate(tune, 25)
    twin = pt.Optimizer(pt.Space.from_json(json.dumps({"format": 1, **SPACE})))
    for row in tune.get("/studies/tune/trials").json()["trials"]:
        trial = twin.ask()
        assert trial.params == row["params"]
        twin.tell(trial, row["value"])
    answer = tune.get("/studies/tune/recommend").json()
    assert answer["params"] == twin.recommend().params
    assert answer["mean"] == pytest.approx(twin.recommend().mean)
    bound = twin.certificate()
    assert answer["certificate"] == (pytest.approx(bound) if bound < float("inf") else None)


def test_prediction_by_get_and_post(tune):
    evaluate(tune, 6)
    points = [{"x": 0.1, "n": 2, "kind": "a"}, {"x": 0.9, "n": 8, "kind": "b"}]
    got = tune.get("/studies/tune/predict", params={"params": json.dumps(points)}).json()
    assert got == tune.post("/studies/tune/predict", json={"params": points}).json()
    assert set(got) == {"mean", "std", "lower", "upper"}
    assert len(got["mean"]) == 2


def test_creating_twice_finds_the_same_study(tune):
    again = tune.post("/studies", json={"name": "tune", "space": SPACE})
    assert (again.status_code, again.json()) == (200, {"id": "tune", "created": False})
    other = tune.post("/studies", json={"name": "tune", "space": {"bounds": [[0, 1]]}})
    problem(other, 409, "other settings")


def test_all_settings_reach_the_study(client, folder):
    settings = {
        "direction": "maximize",
        "seed": 7,
        "n_evals": 50,
        "norm_bound": 2.0,
        "noise": {"kind": "Uniform", "low": -0.5, "high": 0.5},
        "kernel": {"nu": 1.5, "lengthscale": 0.3},
        "delta": 0.05,
        "expire_after": 60,
    }
    body = {"name": "full", "space": {"bounds": [[0, 1]]}, **settings}
    assert client.post("/studies", json=body).status_code == 201
    shown = client.get("/studies/full").json()
    assert {name: shown[name] for name in settings} == settings
    assert shown["guarantee"] == "proven"
    assert pt.Study.open(folder / "full.db").seed == 7


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"space": SPACE}, ["name"]),
        ({"name": "a"}, ["space"]),
        ({"name": "../a", "space": SPACE}, ["name="]),
        ({"name": ".a", "space": SPACE}, ["name="]),
        ({"name": "a/b", "space": SPACE}, ["name="]),
        ({"name": 3, "space": SPACE}, ["name="]),
        ({"name": "a", "space": {"x": [0, 1]}}, ["is not a space"]),
        ({"name": "a", "space": {"bounds": [[1, 0]]}}, ["x[0]"]),
        ({"name": "a", "space": SPACE, "policy": "os:system"}, ["policy="]),
        ({"name": "a", "space": SPACE, "noise": {"kind": "Matern"}}, ["noise="]),
        ({"name": "a", "space": SPACE, "noise": {"kind": "Gaussian", "x": 1}}, ["its fields are"]),
        ({"name": "a", "space": SPACE, "kernel": [1.5]}, ["kernel="]),
        ({"name": "a", "space": SPACE, "direction": "up"}, ["direction"]),
        ({"name": "a", "space": SPACE, "feasible": "x"}, ["'feasible' is not a field"]),
        ([1], ["JSON object"]),
    ],
)
def test_bad_studies_are_refused_and_leave_nothing(client, folder, body, words):
    problem(client.post("/studies", json=body), 422, *words)
    assert not [path for path in folder.rglob("*") if path.suffix == ".db"]


@pytest.mark.parametrize(
    ("act", "body", "status", "words"),
    [
        ("ask", {"count": 0}, 422, ["count"]),
        ("ask", {"count": 10**9}, 422, ["at most"]),
        ("ask", {"counts": 1}, 422, ["'counts' is not a field"]),
        ("ask", {"fixed": {"y": 1}}, 422, ["y"]),
        ("tell", {"value": 1.0}, 422, ["number"]),
        ("tell", {"number": 0, "value": "abc"}, 422, ["number"]),
        ("tell", {"number": 99, "value": 1.0}, 404, ["there is no trial 99"]),
        ("tell", {"number": "0", "value": 1.0}, 422, ["give the trial"]),
        ("cancel", {"number": 99}, 404, ["there is no trial 99"]),
        ("add", {"params": {"x": 2.0, "n": 1, "kind": "a"}, "value": 1}, 422, ["x"]),
    ],
)
def test_bad_acts_get_the_message_of_python_and_change_nothing(tune, act, body, status, words):
    tune.post("/studies/tune/ask", json={})
    before = tune.get("/studies/tune/trials").json()
    problem(tune.post(f"/studies/tune/{act}", json=body), status, *words)
    assert tune.get("/studies/tune/trials").json() == before


def test_a_value_that_is_not_finite_is_refused_in_the_words_of_python(tune):
    tune.post("/studies/tune/ask", json={})
    headers = {"content-type": "application/json"}
    text = '{"number": 0, "value": NaN}'
    problem(tune.post("/studies/tune/tell", content=text, headers=headers), 422, "finite")


def test_a_trial_is_told_once(tune):
    tune.post("/studies/tune/ask", json={})
    assert tune.post("/studies/tune/tell", json={"number": 0, "value": 1}).status_code == 200
    body = problem(
        tune.post("/studies/tune/tell", json={"number": 0, "value": 1}), 409, "already has a value"
    )
    assert body["error"] == "Settled"


@pytest.mark.parametrize("name", ["none", "%2e%2e%2fetc", ".hidden", "a" * 200])
def test_other_names_lead_nowhere(tune, name):
    assert tune.get(f"/studies/{name}/trials").status_code == 404
    assert tune.get(f"/page/{name}").status_code == 404


def test_pages_of_trials_are_sorted_and_filtered(tune):
    evaluate(tune, 25)
    tune.post("/studies/tune/ask", json={})
    seen, after = [], 0
    while after is not None:
        page = tune.get("/studies/tune/trials", params={"limit": 10, "after": after}).json()
        seen += [row["number"] for row in page["trials"]]
        after = page["next"]
    assert seen == list(range(26))
    get = lambda **query: tune.get("/studies/tune/trials", params=query).json()  # noqa: E731
    values = [row["value"] for row in get(sort="value", state="finished")["trials"]]
    assert values == sorted(values)
    falling = [row["value"] for row in get(sort="value", order="desc")["trials"]]
    assert falling[-1] is None  # pending: last in any order
    assert falling[:-1] == sorted(values, reverse=True)
    for name in ("x", "n"):
        column = [row["params"][name] for row in get(sort=name)["trials"]]
        assert column == sorted(column)
    kinds = [row["params"]["kind"] for row in get(sort="kind")["trials"]]
    assert kinds == sorted(kinds)
    middle = values[10]
    assert get(most=middle)["total"] == sum(value <= middle for value in values)
    assert get(state="pending")["total"] == 1
    for query in ({"sort": "y"}, {"order": "up"}, {"limit": "-1"}, {"least": "a"}, {"q": "1"}):
        assert tune.get("/studies/tune/trials", params=query).status_code == 422


def test_one_trial_and_csv(tune):
    evaluate(tune, 3)
    trial = tune.get("/studies/tune/trials/1").json()
    assert [event["kind"] for event in trial["events"]] == ["ask", "tell"]
    assert tune.get("/studies/tune/trials/7").status_code == 404
    lines = tune.get("/studies/tune/trials.csv").text.splitlines()
    assert lines[0] == "number,state,value,asked,ended,x,n,kind"
    assert len(lines) == 4


def test_the_description_names_every_address(client):
    described = client.get("/openapi.json").json()
    assert described == json.loads(json.dumps(description(pt.__version__)))
    served = {
        (route.path.replace(":int", ""), method)
        for route in client.app.routes
        for method in route.methods - {"HEAD"}
        if not route.path.startswith("/page") and route.path not in ("/", "/openapi.json")
    }
    named = {
        (path, method.upper()) for path, methods in described["paths"].items() for method in methods
    }
    assert named == served


def test_a_plan_has_counts_and_is_told_in_parts(client):
    body = {"name": "p", "space": {"bounds": [[0, 1]]}, "norm_bound": 1.0}
    body |= {"noise": {"kind": "Gaussian", "std": 0.5}, "kernel": {"nu": 1.5, "lengthscale": 0.3}}
    assert client.post("/studies", json=body).status_code == 201
    points = [[i / 20] for i in range(21)]
    known = {"params": points, "value": [p[0] ** 2 for p in points], "count": [50] * 21}
    assert client.post("/studies/p/add", json=known).status_code == 200
    keyed = {"Idempotency-Key": "plan"}
    rows = client.post("/studies/p/ask", json={"plan": 40}, headers=keyed).json()["trials"]
    known = {"norm_bound": 1.0, "noise": pt.Gaussian(0.5), "kernel": pt.Matern(1.5, 0.3)}
    twin = pt.Optimizer([(0, 1)], **known)
    twin.add(points, [p[0] ** 2 for p in points], count=[50] * 21)
    assert [(t.number, t.count) for t in twin.plan(40)] == [(r["number"], r["count"]) for r in rows]
    assert max(row["count"] for row in rows) > 2
    assert client.post("/studies/p/ask", json={"plan": 40}, headers=keyed).json()["trials"] == rows
    rows.sort(key=lambda row: -row["count"])
    first = rows[0]["number"]
    tell = lambda **told: client.post("/studies/p/tell", json={"number": first, **told})  # noqa: E731
    assert tell(value=0.5, count=rows[0]["count"] - 2).status_code == 200
    assert client.get(f"/studies/p/trials/{first}").json()["state"] == "pending"
    assert tell(values=[0.4, 0.6]).status_code == 200
    assert client.get(f"/studies/p/trials/{first}").json()["state"] == "finished"
    problem(client.post("/studies/p/ask", json={"plan": 40, "count": 2}), 422, "'count'")
    problem(client.post("/studies/p/ask", json={"plan": 10**9}), 422, "at most")
    problem(tell(), 422, "value")


def test_several_values_at_once(tune):
    tune.post("/studies/tune/ask", json={"count": 2})
    told = {"number": 0, "value": 0.5, "std": 0.1, "count": 4}
    assert tune.post("/studies/tune/tell", json=told).status_code == 200
    told = {"number": 1, "values": [0.25, 0.5, 0.75]}
    assert tune.post("/studies/tune/tell", json=told).status_code == 200
    added = {"params": {"x": 0.5, "n": 3, "kind": "a"}, "value": 1.5, "std": 0.2, "count": 3}
    assert tune.post("/studies/tune/add", json=added).status_code == 200
    rows = tune.get("/studies/tune/trials").json()["trials"]
    assert [(row["value"], row["count"]) for row in rows] == [(0.5, 4), (0.5, 3), (1.5, 3)]


def test_parquet(tune):
    parquet = pytest.importorskip("pyarrow.parquet")
    evaluate(tune, 3)
    answer = tune.get("/studies/tune/trials.parquet")
    assert answer.headers["content-disposition"] == 'attachment; filename="tune.parquet"'
    import io

    assert parquet.read_table(io.BytesIO(answer.content)).num_rows == 3


def test_plans_means_and_values_pass_through(tune, folder):
    for _ in range(10):
        rows = tune.post("/studies/tune/ask", json={"plan": 100}).json()["trials"]
        for row in rows:
            first, count = row["number"], row.get("count", 1)
            values = [0.5 + 0.25 * (i % 2) for i in range(first, first + count)]
            body = {"number": first, "values": values}
            assert tune.post("/studies/tune/tell", json=body).status_code == 200
    rows = tune.post("/studies/tune/ask", json={"plan": 100}).json()["trials"]
    row = max(rows, key=lambda row: row.get("count", 1))
    assert row["count"] > 1
    assert sum(row.get("count", 1) for row in rows) <= 100
    mean = {"number": row["number"], "value": 0.5, "std": 0.25, "count": row["count"]}
    tune.post("/studies/tune/tell", json=mean)
    params = {"x": 0.5, "n": 3, "kind": "a"}
    body = {"params": params, "value": 1.5, "std": 0.1, "count": 40}
    (number,) = tune.post("/studies/tune/add", json=body).json()["numbers"]
    shown = tune.get("/studies/tune/trials?limit=5000").json()["trials"]
    assert (shown[number]["count"], shown[number]["std"]) == (40, 0.1)
    assert shown[row["number"]]["count"] == row["count"]
    study = pt.Study.open(folder / "tune.db")
    assert tune.get("/studies/tune").json()["counts"]["values"] == study.n_values
    assert study.trials[number].count == 40


def test_a_repeated_plan_gets_the_same_answer(tune, folder):
    for number in range(8):
        tune.post("/studies/tune/ask", json={})
        tune.post("/studies/tune/tell", json={"number": number, "values": [0.1, 0.3, 0.2]})
    key = {"Idempotency-Key": "once"}
    first = tune.post("/studies/tune/ask", json={"plan": 50}, headers=key).json()
    again = tune.post("/studies/tune/ask", json={"plan": 50}, headers=key).json()
    assert first == again
    assert any("count" in trial for trial in first["trials"])
    study = pt.Study.open(folder / "tune.db")
    assert study.n_pending == len(first["trials"])


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"value": 0.5, "count": 0}, "count=0"),
        ({"value": 0.5, "count": 2.5}, "count=2.5"),
        ({"value": 0.5, "count": "3"}, "count="),
        ({"value": 0.5, "count": True}, "count=True"),
        ({"value": 0.5, "std": -1, "count": 3}, "std=-1"),
        ({"value": "x", "std": 1, "count": 3}, "x"),
        ({"values": []}, "at least one value"),
        ({"values": [0.5, "x"]}, "values[1]"),
        ({"values": 0.5}, "list or array"),
        ({"values": [0.5, 0.6], "count": 2}, "Leave out"),
        ({"values": [0.5, 0.6], "std": 2}, "Leave out"),
    ],
)
def test_bad_means_are_refused_and_nothing_changes(tune, folder, body, words):
    tune.post("/studies/tune/ask", json={})
    problem(tune.post("/studies/tune/tell", json={"number": 0, **body}), 422, words)
    study = pt.Study.open(folder / "tune.db")
    assert (study.n_told, study.n_pending, study.n_values) == (0, 1, 0)


@pytest.mark.parametrize("plan", [0, -1, 1.5, "7", True])
def test_bad_plans_are_refused(tune, folder, plan):
    problem(tune.post("/studies/tune/ask", json={"plan": plan}), 422, "count=")
    problem(tune.post("/studies/tune/ask", json={"plan": 5, "count": 2}), 422, "'count'")
    assert pt.Study.open(folder / "tune.db").n_pending == 0


def test_contexts_and_fixed_values(client):
    space = {"parameters": [["price", [1, 9]], ["hour", [0, 24]]]}
    body = {"name": "shop", "space": space, "context": ["hour"]}
    assert client.post("/studies", json=body).status_code == 201
    (trial,) = client.post("/studies/shop/ask", json={"context": {"hour": 13.5}}).json()["trials"]
    assert trial["context"] == {"hour": 13.5}
    assert list(trial["params"]) == ["price"]
    problem(client.post("/studies/shop/ask", json={}), 422, "context")
    told = {"number": trial["number"], "value": 1.0}
    assert client.post("/studies/shop/tell", json=told).status_code == 200
    got = client.get("/studies/shop/recommend", params={"context": '{"hour": 20}'})
    assert list(got.json()["params"]) == ["price"]
    client.post("/studies", json={"name": "plane", "space": {"bounds": [[0, 1], [0, 1]]}})
    (trial,) = client.post("/studies/plane/ask", json={"fixed": {"0": 0.25}}).json()["trials"]
    assert trial["params"][0] == 0.25
    (trial,) = client.post("/studies/plane/ask", json={"params": [0.5, 0.75]}).json()["trials"]
    assert trial["params"] == [0.5, 0.75]


def test_values_of_constrained_quantities(client):
    body = {"name": "c", "space": {"bounds": [[0, 1]]}, "constraints": ["cost <= 10"]}
    client.post("/studies", json=body)
    (trial,) = client.post("/studies/c/ask", json={}).json()["trials"]
    told = {"number": trial["number"], "value": {"loss": 0.3, "cost": 9.1}}
    assert client.post("/studies/c/tell", json=told).status_code == 200
    (row,) = client.get("/studies/c/trials").json()["trials"]
    assert row["value"] == 0.3
    assert row["values"] == {"cost": 9.1}


def test_the_tolerance_belongs_to_the_study(tune, served, folder):
    assert tune.get("/studies/tune").json()["tolerance"] is None
    answer = tune.post("/studies/tune/tolerance", json={"tolerance": 0.05})
    assert (answer.status_code, answer.json()) == (200, {"tolerance": 0.05})
    assert served().get("/studies/tune").json()["tolerance"] == 0.05
    assert pt.Study.open(folder / "tune.db").tolerance == 0.05
    for bad in (0, -1, "wide", [1]):
        answer = tune.post("/studies/tune/tolerance", json={"tolerance": bad})
        assert answer.status_code == 422, bad
        assert "tolerance" in answer.json()["detail"]
    assert tune.get("/studies/tune").json()["tolerance"] == 0.05
    assert tune.post("/studies/tune/tolerance", json={}).json() == {"tolerance": None}
    assert tune.get("/studies/tune").json()["tolerance"] is None
