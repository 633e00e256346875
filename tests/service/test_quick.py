"""Requests that are read without h11: the same answers and refusals, and nothing else is read."""

import json
import socket

import pytest
from support.service import SPACE, Server

from partita.service.quick import MOST_BODY, read_head

HEAD = b"POST /studies/tune/ask HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


def request(act="ask", body=b"{}", *more, host="127.0.0.1", kind="application/json"):
    lines = [f"POST /studies/tune/{act} HTTP/1.1", f"Host: {host}", f"Content-Type: {kind}"]
    lines += [f"Content-Length: {len(body)}", *more]
    return "\r\n".join([*lines, "", ""]).encode() + body


def test_plain_requests_are_read():
    data = request("tell?counts", b'{"a": 1}', "Idempotency-Key: k-1", "Connection: Keep-Alive")
    head = read_head(data)
    assert (head.name, head.act, head.counted) == ("tune", "tell", True)
    assert head.headers["idempotency-key"] == "k-1"
    assert data[head.start : head.end] == b'{"a": 1}'
    assert read_head(HEAD + b"Content-Length: 2\r\n\r\n").end > 0  # the body may come later


@pytest.mark.parametrize(
    "data",
    [
        b"",
        HEAD,
        HEAD + b"\r\n{}",
        HEAD + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        HEAD + b"Content-Length: 2\r\nHost: evil.example\r\n\r\n{}",
        HEAD + b"Content-Length: +2\r\n\r\n{}",
        HEAD + b"Content-Length: 2, 2\r\n\r\n{}",
        HEAD + b"Content-Length: %d\r\n\r\n{}" % (MOST_BODY + 1),
        HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        HEAD + b"Content-Length: 2\r\nExpect: 100-continue\r\n\r\n{}",
        HEAD + b"Content-Length: 2\r\nConnection: close\r\n\r\n{}",
        HEAD + b"Content-Length: 2\r\nUpgrade: websocket\r\n\r\n{}",
        HEAD + b"Content-Length: 2\r\n folded\r\n\r\n{}",
        HEAD + b"Content-Length : 2\r\n\r\n{}",
        HEAD + b"Content-Length: 2\nX: y\r\n\r\n{}",
        HEAD + b"Content-Length: 2\r\nX: \xff\r\n\r\n{}",
        HEAD + b"Content-Length: 2\r\nX: \x00\r\n\r\n{}",
        HEAD.replace(b"Host: 127.0.0.1\r\n", b"") + b"Content-Length: 2\r\n\r\n{}",
        HEAD.replace(b"HTTP/1.1", b"HTTP/1.0") + b"Content-Length: 2\r\n\r\n{}",
        HEAD.replace(b"POST", b"GET") + b"Content-Length: 2\r\n\r\n{}",
        HEAD.replace(b"tune", b"..%2ftune") + b"Content-Length: 2\r\n\r\n{}",
        HEAD.replace(b"tune", b".tune") + b"Content-Length: 2\r\n\r\n{}",
        HEAD.replace(b"/ask", b"/ask?counts&x") + b"Content-Length: 2\r\n\r\n{}",
        HEAD.replace(b"/ask", b"/predict") + b"Content-Length: 2\r\n\r\n{}",
        HEAD + b"X: " + b"y" * 10_000 + b"\r\nContent-Length: 2\r\n\r\n{}",
    ],
)
def test_all_else_is_left_to_h11(data):
    assert read_head(data) is None


class Raw:
    """A socket to the service."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.file = self.socket.makefile("rb")

    def send(self, data):
        self.socket.sendall(data)

    def answer(self):
        status = int(self.file.readline().split()[1])
        headers = {}
        while line := self.file.readline().strip():
            name, _, value = line.partition(b":")
            headers[name.lower().decode()] = value.strip().decode()
        return status, headers, self.file.read(int(headers["content-length"]))

    def close(self):
        self.file.close()
        self.socket.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("quick")) as server:
        raw = Raw(server.port)
        body = json.dumps({"name": "tune", "space": SPACE}).encode()
        raw.send(request(body=body).replace(b"/studies/tune/ask", b"/studies"))
        assert raw.answer()[0] == 201
        raw.close()
        yield server


@pytest.fixture
def raw(server):
    raw = Raw(server.port)
    yield raw
    raw.close()


def test_answers_are_those_of_the_other_path(raw):
    """`Connection: close` sends a request through h11 and Starlette."""
    raw.send(request("ask", b'{"count": 2}'))
    status, headers, body = raw.answer()
    assert (status, len(json.loads(body)["trials"])) == (200, 2)
    other = Raw(raw.socket.getpeername()[1])
    other.send(request("ask", b'{"count": 2}', "Connection: close"))
    status, others, body = other.answer()
    assert (status, len(json.loads(body)["trials"])) == (200, 2)
    others.pop("connection")
    different = {"content-length", "date"}
    assert {k: v for k, v in headers.items() if k not in different} == {
        k: v for k, v in others.items() if k not in different
    }


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (request(host="evil.example"), 403),
        (request("ask", b"{}", "Origin: http://evil.example"), 403),
        (request("ask", b"{}", "Sec-Fetch-Site: cross-site"), 403),
        (request(kind="text/plain"), 415),
        (request("tell", b'{"number": 99999, "value": 1}'), 404),
        (request("ask", b'{"coun": 1}'), 422),
        (request("ask", b"{"), 422),
        (request("ask", b"{}", f"Idempotency-Key: {'k' * 201}"), 422),
        (request().replace(b"/tune/", b"/none/"), 404),
    ],
)
def test_refusals_are_those_of_the_other_path(raw, sent, status):
    raw.send(sent)
    quick, headers, body = raw.answer()
    other = Raw(raw.socket.getpeername()[1])
    other.send(sent.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
    slow, _, text = other.answer()
    assert (quick, slow) == (status, status)
    assert headers["content-type"] == "application/problem+json"
    assert json.loads(body) == json.loads(text)


def test_requests_may_come_in_pieces_or_several_at_once(raw):
    sent = request("ask", b"{ }")
    for i in range(len(sent)):
        raw.send(sent[i : i + 1])
    assert raw.answer()[0] == 200
    raw.send(sent[:-2])
    raw.send(sent[-2:])
    assert raw.answer()[0] == 200
    get = b"GET /studies/tune HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    bad = request("ask", b"{")
    raw.send(b"".join([sent, bad, get, sent, *[bad] * 300, get]))
    statuses = [raw.answer()[0] for _ in range(305)]
    assert statuses == [200, 422, 200, 200, *[422] * 300, 200]


def test_a_client_that_goes_away_is_no_trouble(server, raw):
    for data in (request(), request()[:-1], request()[:40]):
        gone = Raw(server.port)
        gone.send(data)
        gone.close()
    raw.send(request())
    assert raw.answer()[0] == 200


def test_a_token_is_needed_here_too(tmp_path):
    token = "s3cret-s3cret-s3cret"
    with Server(tmp_path, PARTITA_TOKEN=token) as server:
        raw = Raw(server.port)
        raw.send(request())
        status, headers, _ = raw.answer()
        assert (status, headers["www-authenticate"]) == (401, "Bearer")
        raw.send(request("ask", b"{}", f"Authorization: Bearer {token}"))
        assert raw.answer()[0] == 404
        raw.close()


def test_sigterm_answers_what_was_accepted(tmp_path):
    with Server(tmp_path) as server:
        raw = Raw(server.port)
        body = json.dumps({"name": "tune", "space": SPACE}).encode()
        raw.send(request(body=body).replace(b"/studies/tune/ask", b"/studies"))
        assert raw.answer()[0] == 201
        raw.send(request("ask", b'{"count": 400}'))
        idle = Raw(server.port)
        idle.send(request("ask", b"{"))
        idle.answer()  # by now the first one is under way
        code, seconds = server.stop()
        assert (code, seconds < 20) == (0, True)
        status, _, body = raw.answer()
        assert (status, len(json.loads(body)["trials"])) == (200, 400)
