"""Durable studies: ask and tell through a file that survives whatever happens to the program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .study import Study

__all__ = ["Study"]


def __getattr__(name: str) -> Any:
    if name != "Study":
        raise AttributeError(f"module 'partita.study' has no attribute {name!r}")
    from .study import Study  # late: the command line imports this package for its commands alone

    return Study
