"""One run → a trace; many runs, stored as they finish; the table and figures of the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partita._lazy import lazy_names as _lazy_names

if TYPE_CHECKING:
    from partita.policies.named import PolicySpec

    from .specs import ProblemSpec, Task
    from .trace import Store, Trace, run, run_many

_HOME = {
    "PolicySpec": "partita.policies.named",
    "ProblemSpec": "specs",
    "Store": "trace",
    "Task": "specs",
    "Trace": "trace",
    "run": "trace",
    "run_many": "trace",
}

__all__ = ["PolicySpec", "ProblemSpec", "Store", "Task", "Trace", "run", "run_many"]

__getattr__, __dir__ = _lazy_names(__name__, _HOME)
