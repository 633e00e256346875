"""Asks and tells, read and answered without the machinery that other requests go through.

With h11 and Starlette, HTTP costs more than the study and its policy together. So a request that
is one of these few, whole and plain, is read here. What this file does not know for certain, down
to a header that comes twice, it passes on to h11 unread.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, NamedTuple

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from .guards import HEADERS

#: The most bytes of a head, and of a body, that are read here.
MOST_HEAD, MOST_BODY = 8192, 65_536
_LINE = re.compile(
    rb"POST /studies/([A-Za-z0-9][A-Za-z0-9._-]{0,99})/(ask|tell|cancel|add)(\?counts)? "
    rb"HTTP/1\.1\r\n"
)
_FIELD = re.compile(
    rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*((?:[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?)?)[ \t]*"
)
_LENGTH = re.compile(rb"[0-9]{1,6}")
#: Headers that make a request more than plain.
_OTHER = frozenset((b"transfer-encoding", b"expect", b"upgrade", b"trailer", b"te"))
_FIXED = "".join(f"{name.lower()}: {value}\r\n" for name, value in HEADERS.items()).encode()


class Head(NamedTuple):
    """The head of a request to ask, tell, cancel or add.

    Attributes
    ----------
    name
        Of the study.
    act
    counted
        Whether the answer is to have counts.
    headers
        By their names in small letters.
    start, end
        Where the body is in the bytes that were received.
    """

    name: str
    act: str
    counted: bool
    headers: Mapping[str, str]
    start: int
    end: int


def read_head(data: bytes) -> Head | None:
    """The head with which some bytes begin; None if it is not whole, or not plain."""
    line = _LINE.match(data)
    close = data.find(b"\r\n\r\n", 0, MOST_HEAD)
    if line is None or close < line.end():
        return None
    fields: dict[bytes, bytes] = {}
    for text in data[line.end() : close].split(b"\r\n"):
        field = _FIELD.fullmatch(text)
        name = b"" if field is None else field[1].lower()
        if field is None or name in fields or name in _OTHER:
            return None
        fields[name] = field[2]
    length = fields.get(b"content-length", b"")
    if not _LENGTH.fullmatch(length) or int(length) > MOST_BODY or b"host" not in fields:
        return None
    if fields.get(b"connection", b"keep-alive").lower() != b"keep-alive":
        return None
    headers = {name.decode(): value.decode() for name, value in fields.items()}
    name, act, counted = line.groups()
    start = close + 4
    return Head(
        name.decode(), act.decode(), counted is not None, headers, start, start + int(length)
    )


#: Called with the status of an answer, its content type and its body.
Answer = Callable[[int, str, bytes], None]


class Quick(H11Protocol):  # type: ignore[misc]  # its types are not read
    """A connection. `take` is called with each request that was read here, and how to answer it.

    Bytes that come before the answer wait for it.
    """

    take: Callable[[Head, bytes, Answer], None]  # of the class of one service

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._held = bytearray()
        self._head: Head | None = None
        self._busy = self._ending = False
        #: When the last answer went out.
        self._last = 0.0

    def data_received(self, data: bytes) -> None:
        """Read a request here if it is a plain one, or pass its bytes on."""
        if self._head is None:
            head = read_head(data) if self._is_idle() else None
            if head is None:
                super().data_received(data)
                return
            self._head = head
        self._held += data
        if self._busy:
            if len(self._held) > MOST_BODY:
                self.flow.pause_reading()
        elif len(self._held) >= self._head.end:
            body = bytes(self._held[self._head.start : self._head.end])
            del self._held[: self._head.end]
            self._busy = True
            self.take(self._head, body, self._answer)

    def _is_idle(self) -> bool:
        """Whether h11 waits for the first byte of a request."""
        states = self.conn.states
        idle = states[h11.CLIENT] is h11.IDLE and states[h11.SERVER] is h11.IDLE
        return idle and not self.conn.trailing_data[0]

    def _answer(self, status: int, kind: str, body: bytes) -> None:
        self._busy, self._head = False, None
        if self.transport.is_closing():
            return
        self.transport.write(self._response(status, kind, body))
        if self._ending:
            super().shutdown()
            return
        self.server_state.total_requests += 1
        self._last = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._wait_for_more(self.timeout_keep_alive)
        self.flow.resume_reading()
        if self._held:
            held = bytes(self._held)
            self._held.clear()
            self.data_received(held)

    def _wait_for_more(self, seconds: float) -> None:
        handler = self.timeout_keep_alive_handler
        self.timeout_keep_alive_task = self.loop.call_later(seconds, handler)

    def timeout_keep_alive_handler(self) -> None:
        """End a connection that has been silent for long; the timer is not set at each request."""
        left = self._last + self.timeout_keep_alive - self.loop.time()
        if self._busy or left > 0.0:
            self._wait_for_more(max(left, 1.0))
        else:
            super().timeout_keep_alive_handler()

    def _response(self, status: int, kind: str, body: bytes) -> bytes:
        usual = b"".join(b"%b: %b\r\n" % pair for pair in self.server_state.default_headers)
        first = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: {kind}\r\n"
        if status == HTTPStatus.UNAUTHORIZED:
            first += "www-authenticate: Bearer\r\n"
        length = b"content-length: %d\r\n\r\n" % len(body)
        return b"".join((first.encode(), usual, _FIXED, length, body))

    def shutdown(self) -> None:
        """End the connection, after the answer that is awaited."""
        if self._busy:
            self._ending = True
        else:
            super().shutdown()
