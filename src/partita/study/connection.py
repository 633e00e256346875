"""A connection to a service, kept between requests.

`http.client` spends most of the time of a request on headers that are not needed. So it only opens
the connection here, with TLS where that is wanted.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import SplitResult

#: The longest line of a head, and the most lines.
LONGEST_LINE, MOST_LINES = 65_536, 200


class Raw(NamedTuple):
    """An answer: its status and its body."""

    status: int
    body: bytes


class _Head(NamedTuple):
    """What the head of an answer says of its body, and whether the connection ends with it."""

    status: int
    size: int | None
    chunked: bool
    last: bool


class Connection:
    """An open connection.

    Parameters
    ----------
    parts
        The address.
    timeout
        Seconds to wait for one answer.
    """

    def __init__(self, parts: SplitResult, timeout: float) -> None:
        kind: type[http.client.HTTPConnection] = http.client.HTTPConnection
        if parts.scheme == "https":
            kind = http.client.HTTPSConnection
        self._opened = kind(parts.hostname or "", parts.port, timeout=timeout)
        self._opened.connect()
        self._opened.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self._opened.sock.makefile("rb")
        self._host = parts.netloc.rpartition("@")[2]
        #: Whether there can be no further request.
        self.closed = False

    def ask(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Raw:
        """Send a request, and read its answer."""
        fields = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        if method != "GET":
            fields += f"Content-Length: {len(body)}\r\n"
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\n{fields}\r\n"
        self._opened.sock.sendall(head.encode("ascii") + body)
        said = self._head()
        while said.status < 200:  # it goes on
            said = self._head()
        data = b"".join(iter(self._chunk, b"")) if said.chunked else self._file.read(said.size)
        if said.size is not None and len(data) < said.size:
            raise http.client.IncompleteRead(data, said.size - len(data))
        if said.last:
            self.close()
        return Raw(said.status, data)

    def _head(self) -> _Head:
        line = self._line()
        version, _, rest = line.partition(b" ")
        if not version.startswith(b"HTTP/1.") or not rest[:3].isdigit():
            raise http.client.BadStatusLine(repr(line[:60]))
        size, chunked, last = None, False, version == b"HTTP/1.0"
        for _ in range(MOST_LINES):
            name, _, value = self._line().partition(b":")
            if not name:
                return _Head(int(rest[:3]), size, chunked, last or (size is None and not chunked))
            name, value = name.lower(), value.strip().lower()
            if name == b"content-length" and value.isdigit():
                size = int(value)
            elif name == b"transfer-encoding":
                chunked = value == b"chunked"
            elif name == b"connection":
                last = value == b"close"
        raise http.client.HTTPException(f"more than {MOST_LINES} headers")

    def _chunk(self) -> bytes:
        """The next piece of a body; b"" after the last."""
        line = self._line().partition(b";")[0]
        try:
            size = int(line, 16)
        except ValueError:
            raise http.client.HTTPException(f"{line[:60]!r} is not the size of a piece") from None
        data = self._file.read(size)
        if len(data) < size:
            raise http.client.IncompleteRead(data, size - len(data))
        while self._line() and not size:  # the end of a piece, or of what follows the last
            continue
        return data

    def _line(self) -> bytes:
        """The next line, without its end."""
        line = self._file.readline(LONGEST_LINE)
        if not line.endswith(b"\n"):
            raise http.client.RemoteDisconnected("the connection was closed")
        return line.rstrip(b"\r\n")

    def close(self) -> None:
        """Close the connection."""
        self.closed = True
        with contextlib.suppress(OSError):
            self._file.close()
        with contextlib.suppress(OSError):
            self._opened.close()
