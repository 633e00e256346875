"""Answers of services and proxies, read by our own few lines of HTTP."""

import http.client
import socket
import threading
from urllib.parse import urlsplit

import pytest

from partita.errors import InvalidInput
from partita.study.connection import Connection
from partita.study.http import Line


@pytest.fixture
def answering():
    """Make a connection to a server that answers each request with the next of some bytes."""
    servers = []

    def serve(*answers):
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)
        seen = []

        def run():
            peer, _ = server.accept()
            with peer:
                for answer in answers:
                    seen.append(peer.recv(65536))
                    peer.sendall(answer)

        threading.Thread(target=run, daemon=True).start()
        port = server.getsockname()[1]
        return Connection(urlsplit(f"http://127.0.0.1:{port}"), 5.0), seen

    yield serve
    for server in servers:
        server.close()


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "body", "closed"),
    [
        (OK + b"Content-Length: 2\r\n\r\n{}", b"{}", False),
        (OK + b"content-length:0\r\n\r\n", b"", False),
        (CHUNKED + b"1\r\n{\r\n1;a=b\r\n}\r\n0\r\n\r\n", b"{}", False),
        (CHUNKED + b"A\r\n0123456789\r\n0\r\nX: y\r\n\r\n", b"0123456789", False),
        (OK + b"Content-Length: 2\r\nConnection: close\r\n\r\n{}", b"{}", True),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", b"{}", True),
        (OK + b"\r\n{}", b"{}", True),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\n{}", b"{}", False),
    ],
)
def test_bodies_are_read_however_they_come(answering, answer, body, closed):
    connection, seen = answering(answer)
    raw = connection.ask("POST", "/ask", b"[1]", {"A": "b"})
    assert raw.status == 200
    assert raw.body == body
    assert connection.closed is closed
    head, _, sent = seen[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /ask HTTP/1.1\r\nHost: 127.0.0.1:")
    assert b"\r\nA: b\r\n" in head + b"\r\n"
    assert (sent, head.endswith(b"Content-Length: 3")) == (b"[1]", True)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"SSH-2.0-x\r\n",
        OK + b"Content-Length: 5\r\n\r\n{}",
        OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n9\r\n{}",
        OK + b"A: b\r\n" * 300 + b"\r\n",
    ],
)
def test_what_is_no_answer_is_an_error_that_is_tried_again(answering, answer):
    connection, _ = answering(answer)
    with pytest.raises((http.client.HTTPException, OSError)):
        connection.ask("GET", "/", b"", {})


def test_a_connection_serves_many_requests(answering):
    connection, seen = answering(*[OK + b"Content-Length: 1\r\n\r\n%d" % i for i in range(5)])
    assert [connection.ask("GET", "/", b"", {}).body for _ in range(5)] == [
        b"0",
        b"1",
        b"2",
        b"3",
        b"4",
    ]
    assert len(seen) == 5


def test_a_token_cannot_add_headers():
    with pytest.raises(InvalidInput, match="token"):
        Line(urlsplit("http://host"), "a\r\nX: y", 1.0)
