"""Errors as the service answers them: problem+json (RFC 9457), with the messages of Python."""

from __future__ import annotations

from typing import Any

from partita.errors import (
    InvalidInput,
    NotPending,
    PartitaError,
    Settled,
    StudyError,
    StudyLocked,
    VersionMismatch,
)


class Refused(PartitaError):
    """A request that is refused before it reaches a study."""

    def __init__(self, status: int, title: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.title = status, title


#: The status and the title of each kind of error; the first that fits counts.
_STATUS: tuple[tuple[type[Exception], int, str], ...] = (
    (Settled, 409, "The trial has ended"),
    (NotPending, 404, "There is no such trial"),
    (VersionMismatch, 500, "The study was written by a newer Partita"),
    (StudyLocked, 503, "The study is locked"),
    (StudyError, 503, "The study cannot be used"),
    (InvalidInput, 422, "The request cannot be used"),
    (PartitaError, 500, "The study cannot answer"),
)


def no_study(name: str) -> Refused:
    """The error for a name that no study has."""
    return Refused(
        404,
        "There is no such study",
        f"there is no study {name!r:.120}: GET /studies lists those there are, POST /studies "
        "creates one",
    )


def problem_of(error: Exception) -> dict[str, Any]:
    """An error as a problem+json object."""
    if isinstance(error, Refused):
        return _problem(error.status, error.title, str(error), "Refused")
    for kind, status, title in _STATUS:
        if isinstance(error, kind):
            return _problem(status, title, str(error), type(error).__name__)
    detail = f"{type(error).__name__}: the log of the service has the details"
    return _problem(500, "The service failed", detail, "InternalError")


def _problem(status: int, title: str, detail: str, error: str) -> dict[str, Any]:
    return {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": detail,
        "error": error,
    }
