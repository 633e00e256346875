"""Repeated requests, broken studies, and who may ask."""

import sqlite3
from contextlib import closing

import pytest
from support.service import SPACE, evaluate

import partita as pt
from partita.service.guards import MOST_BYTES, Guard, is_loopback

# -- repeated requests -----------------------------------------------------------------------------


def post(client, act, body, key):
    return client.post(f"/studies/tune/{act}", json=body, headers={"Idempotency-Key": key})


def test_a_key_makes_a_repeated_request_the_same_also_after_a_restart(tune, served, folder):
    requests = [
        ("ask", {"count": 2}, "a"),
        ("tell", {"number": 0, "value": 0.5}, "b"),
        ("cancel", {"number": 1}, "c"),
        (
            "add",
            {"params": {"x": [0.1, 0.2], "n": [1, 2], "kind": ["a", "b"]}, "value": [1, 2]},
            "d",
        ),
        ("ask", {"params": {"x": 0.5, "n": 3, "kind": "a"}}, "e"),
    ]
    first = [post(tune, *request).json() for request in requests]
    assert [post(tune, *request).json() for request in requests] == first
    after = served()  # another process would read the same from the file
    assert [post(after, *request).json() for request in requests] == first
    assert len(pt.Study.open(folder / "tune.db").trials) == 5


def test_a_key_belongs_to_one_request(tune, served):
    post(tune, "ask", {}, "a")
    assert post(tune, "ask", {"count": 3}, "a").status_code == 422
    assert post(tune, "tell", {"number": 0, "value": 1}, "a").status_code == 422
    post(tune, "tell", {"number": 0, "value": 1}, "b")
    assert post(served(), "tell", {"number": 3, "value": 1}, "b").status_code == 422
    for key in ("", "k" * 201):
        assert post(tune, "ask", {}, key).status_code == 422


def test_a_key_does_not_change_choices(tune, client):
    client.post("/studies", json={"name": "plain", "space": SPACE})
    for i in range(15):
        keyed = post(tune, "ask", {}, f"ask {i}").json()
        plain = client.post("/studies/plain/ask", json={}).json()
        assert keyed == plain
        value = keyed["trials"][0]["params"]["x"]
        post(tune, "tell", {"number": i, "value": value}, f"tell {i}")
        client.post("/studies/plain/tell", json={"number": i, "value": value})


# -- broken studies --------------------------------------------------------------------------------


def test_a_broken_study_shows_its_error_and_others_go_on(tune, folder):
    (folder / "broken.db").write_bytes(b"not a study" * 100)
    (folder / "other.db").write_bytes(b"")
    with closing(sqlite3.connect(folder / "foreign.db")) as db:
        db.execute("CREATE TABLE t (a)")
    rows = {row["id"]: row for row in tune.get("/studies").json()["studies"]}
    assert {row["state"] for name, row in rows.items() if name != "tune"} == {"error"}
    assert rows["tune"]["state"] == "new"
    answer = tune.post("/studies/broken/ask", json={})
    assert answer.status_code == 503
    assert "broken.db" in answer.json()["detail"]
    evaluate(tune, 2)


def test_a_file_that_is_removed_is_an_error_of_that_study(tune, folder):
    tune.post("/studies", json={"name": "gone", "space": SPACE})
    tune.post("/studies/gone/ask", json={})
    for path in folder.glob("gone.db*"):
        path.unlink()
    answer = tune.post("/studies/gone/ask", json={})
    assert answer.status_code == 503
    assert "moved, deleted or replaced" in answer.json()["detail"]
    evaluate(tune, 2)


def test_a_full_disk_is_an_error_of_that_request_and_others_go_on(tune, folder):
    """SQLite's own limit of pages stands for a full disk: it fails in the same way."""
    tune.post("/studies", json={"name": "small", "space": SPACE})
    tune.post("/studies/small/ask", json={})
    desk = tune.app.state.service._shelf.desk("small")
    db = desk.study()._store._opened()
    (pages,) = db.execute("PRAGMA page_count").fetchone()
    db.execute(f"PRAGMA max_page_count = {pages}")
    points = {"x": [0.5] * 3000, "n": [3] * 3000, "kind": ["a"] * 3000}
    answer = tune.post("/studies/small/add", json={"params": points, "value": [1.0] * 3000})
    assert answer.status_code == 503
    assert "full" in answer.json()["detail"]
    evaluate(tune, 2)
    db.execute(f"PRAGMA max_page_count = {10**6}")  # there is room again
    answer = tune.post("/studies/small/add", json={"params": points, "value": [1.0] * 3000})
    assert answer.status_code == 200
    assert len(pt.Study.open(folder / "small.db").trials) == 3001


def test_a_damaged_log_is_an_error_of_that_study(tune, served, folder):
    tune.post("/studies", json={"name": "bad", "space": SPACE})
    evaluate(tune, 3, "bad")
    tune.app.state.service._shelf.desk("bad").close()
    with closing(sqlite3.connect(folder / "bad.db")) as db, db:
        db.execute("UPDATE events SET value = 7 WHERE kind = 'tell' AND trial = 1")
    after = served()
    answer = after.post("/studies/bad/ask", json={})
    assert answer.status_code == 503
    assert "damaged" in answer.json()["detail"]
    evaluate(after, 2)


def test_files_are_served_by_name_and_no_study_is_created_beside_them(served, folder):
    pt.Study.open(folder / "one.db", [(0, 1)]).close()
    pt.Study.open(folder / "two.db", [(0, 1)]).close()
    client = served(folder / "one.db")
    assert [row["id"] for row in client.get("/studies").json()["studies"]] == ["one"]
    assert client.get("/studies/two").status_code == 404
    answer = client.post("/studies", json={"name": "new", "space": {"bounds": [[0, 1]]}})
    assert answer.status_code == 403
    assert client.post("/studies", json={"name": "one", "space": {"bounds": [[0, 1]]}}).is_success


def test_bad_places_are_refused(served, folder, tmp_path_factory):
    with pytest.raises(pt.errors.InvalidInput, match="no such file"):
        served(folder / "none.db")
    with pytest.raises(pt.errors.InvalidInput, match="one folder"):
        served(folder, tmp_path_factory.mktemp("other"))


# -- who may ask -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "own"),
    [
        *((host, True) for host in ("127.0.0.1", "localhost", "[::1]", "::1", "127.9.9.9")),
        *((host, False) for host in ("0.0.0.0", "example.org", "10.0.0.1", "")),
    ],
)
def test_loopback(host, own):
    assert is_loopback(host) is own


def test_a_name_that_resolves_here_is_not_enough(tune):
    for host in ("evil.example:8420", "127.0.0.1.evil.example", ""):
        answer = tune.get("/studies", headers={"host": host})
        assert answer.status_code == 403, host
    for host in ("localhost:1234", "127.0.0.1", "[::1]:8420"):
        assert tune.get("/studies", headers={"host": host}).status_code == 200, host


def test_pages_of_other_sites_may_not_ask(tune):
    ask = lambda **headers: tune.post(  # noqa: E731
        "/studies/tune/ask", json={}, headers={k.replace("_", "-"): v for k, v in headers.items()}
    )
    assert ask(origin="http://evil.example").status_code == 403
    assert ask(origin="null").status_code == 403
    assert ask(origin="http://127.0.0.1:9999").status_code == 403
    assert ask(sec_fetch_site="cross-site").status_code == 403
    assert ask(origin="http://127.0.0.1:8420", sec_fetch_site="same-origin").status_code == 200
    form = tune.post("/studies/tune/ask", data={"count": 1})
    assert form.status_code == 415
    assert tune.get("/studies/tune/trials").json()["total"] == 1


def test_a_token_is_needed_for_data_and_not_for_the_page(served):
    client = served(guard=Guard("s3cret-s3cret-s3cret", loopback=False), base="http://box:8420")
    for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "s3cret"}):
        answer = client.get("/studies", headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
    right = {"authorization": "Bearer s3cret-s3cret-s3cret"}
    assert client.get("/studies", headers=right).status_code == 200
    assert client.get("/studies/x/events").status_code == 401
    assert client.get("/").status_code == 200


def test_tokens_are_compared_in_constant_time(served, monkeypatch):
    from partita.service import guards

    compared = []

    class Watched:
        @staticmethod
        def compare_digest(a, b):
            compared.append((a, b))
            return a == b

    monkeypatch.setattr(guards, "hmac", Watched)
    client = served(guard=Guard("s3cret-s3cret-s3cret", loopback=False), base="http://box:8420")
    assert client.get("/studies", headers={"authorization": "Bearer no"}).status_code == 401
    assert compared == [(b"no", b"s3cret-s3cret-s3cret")]


def test_there_are_no_cookies(tune):
    evaluate(tune, 1)
    for path in ("/", "/studies", "/studies/tune", "/studies/tune/trials", "/nothing"):
        assert "set-cookie" not in tune.get(path).headers
    assert not tune.cookies


def test_read_only_changes_nothing(served, folder):
    pt.Study.open(folder / "tune.db", [(0, 1)]).close()
    client = served(guard=Guard(read_only=True))
    for act in ("ask", "tell", "cancel", "add"):
        assert client.post(f"/studies/tune/{act}", json={}).status_code == 403
    assert client.post("/studies", json={"name": "b", "space": SPACE}).status_code == 403
    assert client.get("/studies/tune/trials").status_code == 200


def test_bodies_have_a_limit(tune):
    headers = {"content-type": "application/json"}
    answer = tune.post("/studies/tune/add", content=b" " * (MOST_BYTES + 1), headers=headers)
    assert answer.status_code == 413
    for text in (b"{", b"\xff", b"[" * 100_000):
        answer = tune.post("/studies/tune/add", content=text, headers=headers)
        assert answer.status_code == 422


def test_every_answer_has_the_headers(tune):
    for path in ("/", "/studies", "/studies/none", "/nothing", "/openapi.json"):
        headers = tune.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"], path
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
