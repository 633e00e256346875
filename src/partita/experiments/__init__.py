"""One run → a trace; many runs, stored as they finish; the table and figures of the paper."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .parallel import run_many
    from .specs import PolicySpec, ProblemSpec, Task
    from .store import Store
    from .trace import Trace, run

_HOME = {
    "PolicySpec": "specs",
    "ProblemSpec": "specs",
    "Store": "store",
    "Task": "specs",
    "Trace": "trace",
    "run": "trace",
    "run_many": "parallel",
}

__all__ = ["PolicySpec", "ProblemSpec", "Store", "Task", "Trace", "run", "run_many"]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
