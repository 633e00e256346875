"""Requests to a service of studies, sent again until they are answered. Standard library only."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, quote, urlencode, urlsplit

from partita.errors import (
    HalfChanged,
    InvalidInput,
    NotPending,
    NumericalError,
    PartitaError,
    Settled,
    StudyError,
    StudyLocked,
)

from .connection import Connection

#: Seconds of the first and of the longest pause before a request is sent again.
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
#: Seconds to wait for one answer.
ANSWER = 120.0
#: Statuses after which the same request may succeed later.
AGAIN = (502, 504)
#: Errors of a study that the service names; all others are `InvalidInput` or `StudyError`.
ERRORS: dict[str, type[PartitaError]] = {
    kind.__name__: kind
    for kind in (
        *(HalfChanged, InvalidInput, NotPending),
        *(NumericalError, Settled, StudyError, StudyLocked),
    )
}


def address_of(url: str) -> tuple[SplitResult, str | None]:
    """The address of a service and the name of a study, which may be missing.

    "http://host:8420", "http://host:8420/tune" and "http://host:8420/studies/tune" are understood.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidInput(f"{url!r} is not the address of a service: give http://HOST:8420/NAME")
    names = [name for name in parts.path.split("/") if name]
    if names[:1] == ["studies"]:
        names = names[1:]
    if len(names) > 1 or parts.query or parts.username:
        raise InvalidInput(f"{url!r}: give http://HOST:8420/NAME, with the name of a study")
    return parts, names[0] if names else None


class Line:
    """A line to one service, which threads may share: each has a connection of its own.

    Parameters
    ----------
    parts
        The address.
    token
        What the service wants to see, or None.
    patience
        Seconds for which a request is sent again while the service cannot be reached.
    """

    def __init__(self, parts: SplitResult, token: str | None, patience: float) -> None:
        if token is not None and not (token.isascii() and token.isprintable()):
            raise InvalidInput(f"token: it has {len(token)} characters, but some are not ASCII")
        self.parts, self.token, self.patience = parts, token, patience
        self._local = threading.local()

    @property
    def base(self) -> str:
        """The address as text."""
        return f"{self.parts.scheme}://{self.parts.netloc}"

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Any:
        """The answer to a question."""
        kept = {k: v for k, v in (query or {}).items() if v is not None}
        return self._sent("GET", f"{path}?{urlencode(kept)}" if kept else path, None, None)

    def post(self, path: str, body: Mapping[str, Any], key: str | None = None) -> Any:
        """The answer to a request; with a key, it happens once however often it is sent."""
        try:
            text = json.dumps({name: part for name, part in body.items() if part is not None})
        except (TypeError, ValueError) as error:
            raise InvalidInput(f"{body!r:.200} cannot be sent as JSON: {error}") from error
        return self._sent("POST", path, text, key)

    def _sent(self, method: str, path: str, text: str | None, key: str | None) -> Any:
        headers = {"Accept": "application/json"}
        if text is not None:
            headers["Content-Type"] = "application/json"
        if key is not None:
            headers["Idempotency-Key"] = key
        if self.token is not None:
            headers["Authorization"] = f"Bearer {self.token}"
        end, pause = time.monotonic() + self.patience, FIRST_PAUSE
        while True:
            try:
                status, answer = self._once(method, path, text, headers)
                if status not in AGAIN:
                    return _checked(status, answer)
                error: Exception = _error(status, answer)
            except (OSError, http.client.HTTPException) as failed:
                error = failed
            if isinstance(error, PartitaError) and not isinstance(error, StudyError):
                raise error
            self.close()
            if time.monotonic() + pause > end:
                why = str(error) or type(error).__name__
                raise StudyError(
                    f"{self.base} cannot be reached ({why}): check the address, and that "
                    "`partita serve` runs there"
                ) from error
            time.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(2 * pause, LONGEST_PAUSE)

    def _once(
        self, method: str, path: str, text: str | None, headers: Mapping[str, str]
    ) -> tuple[int, Any]:
        connection = getattr(self._local, "connection", None)
        if connection is None or connection.closed:
            connection = self._local.connection = Connection(self.parts, ANSWER)
        answer = connection.ask(method, path, b"" if text is None else text.encode(), headers)
        try:
            return answer.status, json.loads(answer.body)
        except ValueError:
            return answer.status, {"detail": answer.body[:200].decode("utf-8", "replace")}

    def close(self) -> None:
        """Close this thread's connection; it is opened again when it is needed."""
        connection = getattr(self._local, "connection", None)
        if connection is not None:
            connection.close()
            self._local.connection = None


def path_of(name: str, *rest: str) -> str:
    """The path of a study, or of something of it."""
    return "/".join(("/studies", quote(name, safe=""), *rest))


def _checked(status: int, answer: Any) -> Any:
    if status < 400:
        return answer
    raise _error(status, answer)


def _error(status: int, answer: Any) -> PartitaError:
    """The error that Python would have raised for a local study."""
    answer = answer if isinstance(answer, dict) else {}
    name, detail = str(answer.get("error")), str(answer.get("detail", f"status {status}"))
    if name in ERRORS:
        return ERRORS[name](detail)
    return (InvalidInput if status < 500 else StudyError)(f"the service refuses: {detail}")
