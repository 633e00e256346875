"""Durable studies: ask and tell through a file that survives a crash of the program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partita._lazy import lazy_names as _lazy_names

if TYPE_CHECKING:
    from .remote import RemoteStudy, connect
    from .study import Study

__all__ = ["RemoteStudy", "Study", "connect"]

__getattr__, __dir__ = _lazy_names(
    __name__, {"RemoteStudy": "remote", "Study": "study", "connect": "remote"}
)
