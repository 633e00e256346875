"""What a run will cost, roughly: enough to start the longest first and to say what is left."""

from __future__ import annotations

import os
from pathlib import Path

from .specs import Task

#: Seconds, by measurement on one core of a 2020s server: of a step, a step's part for each entry
#: of a covariance, for each arm of a convolution, and for each entry of an inverse factor.
_STEP, _ENTRY, _ARM, _FACTOR_ENTRY = 4e-5, 2.3e-10, 2.5e-7, 8e-10
#: Bytes a run takes besides the large matrices.
_BASE_BYTES = 400e6


def _is_large(task: Task) -> bool:
    """Whether IGP-UCB has too many arms for a covariance of all (`partita.rows`)."""
    from partita.partition import DENSE_LIMIT

    return task.policy.name == "igp-ucb" and task.problem.arms > DENSE_LIMIT


def expected_seconds(task: Task) -> float:
    """How long a run will take."""
    arms, steps = task.problem.arms, task.horizon
    if task.policy.name != "igp-ucb":
        return steps * _STEP * (1 + task.problem.dim) / 2
    if _is_large(task):
        return steps * (_ARM * arms + _FACTOR_ENTRY * steps**2 / 3)
    return steps * (_STEP + _ENTRY * arms**2)


def expected_bytes(task: Task) -> float:
    """How much memory a run will take, at most."""
    arms, steps = task.problem.arms, task.horizon
    if task.policy.name != "igp-ucb":
        return _BASE_BYTES
    return _BASE_BYTES + 8.0 * (steps**2 if _is_large(task) else 3 * arms**2)


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
