"""Runs of benchmarks/versus that were never made; tests/benchmarks lets them be imported."""

from __future__ import annotations

from typing import Any

import numpy as np
from versus.runs import Run, Task


def run_of(player: str, values: float, budget: int = 10, seed: int = 0, **facts: Any) -> Run:
    """A run that lost the same at every step."""
    problem, key = facts.pop("problem", "branin"), facts.pop("key", "0" * 8)
    noise, steps = facts.pop("noise", "tenth"), facts.pop("steps", budget)
    task = Task(budget, seed, noise, problem, player, key)
    made: dict[str, Any] = {
        "status": "done",
        "error": "",
        "regret": np.full(steps, 2 * values, np.float32),
        "seconds": np.full(steps, 1e-3, np.float32),
        "marks": np.array([steps], np.int32),
        "simple": np.array([values]),
        "uniform_regret": 2.0,
        "setup_seconds": 0.0,
        "time_limit": 60.0,
        "versions": "numpy 2",
    }
    return Run(task=task, **made | facts)
