"""One run → a trace; many runs, stored as they finish; the table and figures of the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partita._lazy import lazy_names as _lazy_names

if TYPE_CHECKING:
    from partita.policies.named import PolicySpec

    from .parallel import run_many
    from .specs import ProblemSpec, Task
    from .store import Store
    from .trace import Trace, run

_HOME = {
    "PolicySpec": "partita.policies.named",
    "ProblemSpec": "specs",
    "Store": "store",
    "Task": "specs",
    "Trace": "trace",
    "run": "trace",
    "run_many": "parallel",
}

__all__ = ["PolicySpec", "ProblemSpec", "Store", "Task", "Trace", "run", "run_many"]

__getattr__, __dir__ = _lazy_names(__name__, _HOME)
