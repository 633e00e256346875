"""What a run will cost, roughly: enough to start the longest first and to say what is left."""

from __future__ import annotations

import os
from pathlib import Path

from .specs import Task

#: Seconds, by measurement on one core of a 2020s server: of a step, a step's part for each entry
#: of a covariance, for each arm of a convolution, for each entry of an inverse factor, and for each
#: of the N·m² numbers of a sketch.
_STEP, _ENTRY, _ARM, _FACTOR_ENTRY, _SKETCH = 4e-5, 2.3e-10, 2.5e-7, 8e-10, 3e-10
#: Methods with one model of all arms, and how many covariances of them they keep up to date.
_WHOLE = {"igp-ucb": 1, "gp-ucb": 1, "gp-ucb-rkhs": 2, "kernel-ucb": 1, "sup-kernel-ucb": 1}
#: Bytes a run takes besides the large matrices.
_BASE_BYTES = 400e6


def _covariances(task: Task) -> int:
    """How many models of all arms a run keeps: none on a box, or with cells."""
    return 0 if task.problem.continuous else _WHOLE.get(task.policy.name, 0)


def _is_large(task: Task) -> bool:
    """Whether there are too many arms for a covariance of all (`partita.gp.rows`)."""
    from partita.gp.rows import DENSE_LIMIT

    return task.problem.arms > DENSE_LIMIT


def expected_seconds(task: Task) -> float:
    """How long a run will take."""
    arms, steps, models = task.problem.arms, task.horizon, _covariances(task)
    if task.policy.name == "bkb":
        return steps * (_STEP + _SKETCH * arms * min(arms, steps, 300) ** 2)
    if not models:
        slower = 10 if task.policy.name == "pi-gp-ts" else 1
        return steps * _STEP * slower * (1 + task.problem.dim) / 2
    if _is_large(task):
        return models * steps * (_ARM * arms + _FACTOR_ENTRY * steps**2 / 3)
    return steps * (_STEP + models * _ENTRY * arms**2)


def expected_bytes(task: Task) -> float:
    """How much memory a run will take, at most."""
    arms, steps, models = task.problem.arms, task.horizon, _covariances(task)
    if not models:
        return _BASE_BYTES
    return _BASE_BYTES + 8.0 * models * (steps**2 if _is_large(task) else 3 * arms**2)


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
