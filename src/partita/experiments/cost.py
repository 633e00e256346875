"""What a run will cost, roughly: enough to start the longest first and to say what is left."""

from __future__ import annotations

import os
from pathlib import Path

from .specs import Task

#: Seconds, by measurement on one core of a 2020s server.
_STEP, _COVARIANCE_ENTRY, _ROW_ENTRY, _KERNEL_ENTRY = 4e-5, 2.3e-10, 5.7e-10, 5e-8
#: Bytes a run takes besides the large matrices.
_BASE_BYTES = 400e6


def _by_rows(task: Task) -> bool:
    """Whether the posterior is kept as one row an observation."""
    from partita.partition import DENSE_LIMIT

    return task.policy.name == "igp-ucb" and task.problem.arms > DENSE_LIMIT


def expected_seconds(task: Task) -> float:
    """How long a run will take."""
    arms, steps = task.problem.arms, task.horizon
    if task.policy.name != "igp-ucb":
        return steps * _STEP * (1 + task.problem.dim)
    if _by_rows(task):
        return steps * arms * (_KERNEL_ENTRY + _ROW_ENTRY * steps / 2)
    return steps * (_STEP + _COVARIANCE_ENTRY * arms**2)


def expected_bytes(task: Task) -> float:
    """How much memory a run will take."""
    arms = task.problem.arms
    if task.policy.name != "igp-ucb":
        return _BASE_BYTES
    return _BASE_BYTES + 8.0 * (arms * task.horizon if _by_rows(task) else 3 * arms**2)


def available_bytes() -> float | None:
    """Memory that new processes can have; None where the system does not say."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * float(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    try:
        return 0.5 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
