"""What a run will cost, roughly: enough to start the longest first and to say what is left."""

from __future__ import annotations

from .parallel import Cost
from .specs import Task

#: Seconds, by measurement on one core of a 2020s server: of a step, a step's part for each entry
#: of a covariance, for each arm of a convolution, for each entry of an inverse factor, and for each
#: of the N·m² numbers of a sketch.
_STEP, _ENTRY, _ARM, _FACTOR_ENTRY, _SKETCH = 4e-5, 2.3e-10, 2.5e-7, 8e-10, 3e-10
#: Methods with one model of all arms, and how many covariances of them they keep up to date.
_WHOLE = {"igp-ucb": 1, "gp-ucb": 1, "gp-ucb-rkhs": 2, "kernel-ucb": 1, "sup-kernel-ucb": 1}
#: Bytes a run takes besides the large matrices.
_BASE_BYTES = 400e6


def expected_cost(task: Task) -> Cost:
    """How long a run will take, and how much memory at most."""
    from partita.gp.rows import DENSE_LIMIT

    arms, steps, name = task.problem.arms, task.horizon, task.policy.name
    # Models of all arms that the run keeps: none on a box, or with cells.
    models = 0 if task.problem.continuous else _WHOLE.get(name, 0)
    if name == "bkb":
        return Cost(steps * (_STEP + _SKETCH * arms * min(arms, steps, 300) ** 2), _BASE_BYTES)
    if not models:
        slower = 10 if name == "pi-gp-ts" else 1
        return Cost(steps * _STEP * slower * (1 + task.problem.dim) / 2, _BASE_BYTES)
    if arms > DENSE_LIMIT:  # too many for a covariance of all (`partita.gp.rows`)
        seconds = models * steps * (_ARM * arms + _FACTOR_ENTRY * steps**2 / 3)
        return Cost(seconds, _BASE_BYTES + 8.0 * models * steps**2)
    seconds = steps * (_STEP + models * _ENTRY * arms**2)
    return Cost(seconds, _BASE_BYTES + 24.0 * models * arms**2)
