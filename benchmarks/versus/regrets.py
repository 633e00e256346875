"""A policy of ours on a problem, with noise of its own: what it lost by some moments."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

import partita as pt

from .problems import Problem


def unit_box(problem: Problem) -> pt.Box:
    """The cube that a problem is on."""
    return pt.Box([0.0] * problem.dim, [1.0] * problem.dim)


def regrets(
    policy: pt.CalibratedUCB,
    problem: Problem,
    random: np.random.Generator,
    evaluations: int,
    checkpoints: Collection[int],
) -> dict[int, tuple[float, float]]:
    """Cumulative regret and regret of the answer, by evaluations made, as parts of uniform's."""
    lost, found, scale = 0.0, {}, problem.uniform_regret
    for t in range(1, evaluations + 1):
        x = policy.ask()
        f = float(problem.function(x[None, :])[0])
        policy.tell(x, f + problem.half_width * random.uniform(-1, 1))
        lost += problem.best - f
        if t in checkpoints:
            answer = float(problem.function(policy.recommend().x[None, :])[0])
            found[t] = (lost / t / scale, (problem.best - answer) / scale)
    return found
