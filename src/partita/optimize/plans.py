"""Plans: few points, each to be evaluated many times before the next answer.

A point is chosen as `ask` does it, and gets as many evaluations as lower the variance of its
posterior by a constant factor, since its bound hardly moves before that. Then these count as
pending, and the next point is chosen. Calandriello, Carratino, Lazaric, Valko & Rosasco 2022,
"Scaling Gaussian process optimization by evaluating a few unique candidates multiple times".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from partita._state import Saved, State, wholes
from partita.errors import InvalidInput
from partita.policies.repeats import MOST_VALUES

from .aggregates import Aggregate

#: The factor by which the variance at a row's point may fall before its values are looked at.
GROWTH = 1.5
#: Values that may be pending at the same time, as a share of those that are known, and at least.
SHARE, FIRST = 0.5, 4
#: Rows of one plan, at most; the share of what is asked for that a row has at least, so that those
#: of very large plans are worth the time of choosing them.
MOST_ROWS, LEAST_SHARE = 256, 1000


class Room(NamedTuple):
    """How many values the next row of a plan may have, at most and at least."""

    most: int
    least: int


def least_of(n: int) -> int:
    """How many values a row of a plan of at most n has at least."""
    return max(1, n // LEAST_SHARE)


def budget(n: int, known: int, awaited: int) -> int:
    """How many values a plan of at most n may ask for, where some are known and awaited.

    While little is known a plan is short: looking at few values first is worth more.
    """
    least = least_of(n)
    return max(least, min(n, max(FIRST * least, int(SHARE * known)) - awaited))


def replicates(worth: float, awaited: int) -> int:
    """How many evaluations of a point lower its variance by the factor `GROWTH`.

    The posterior there is worth as many evaluations as `worth` says, and `awaited` are pending: n
    more divide its variance by 1 + n/(worth + awaited).
    """
    if not math.isfinite(worth):
        return 1
    return max(1, math.floor(min((GROWTH - 1.0) * (worth + awaited), MOST_VALUES)))


def check_plans(policy: Any, names: Any, contexts: Any) -> None:
    """Refuse a plan where means cannot be told."""
    if names or contexts:
        what = "constraints" if names else "contexts"
        raise InvalidInput(f"plan: not with {what}, where each value is told by itself. Use ask()")
    if not getattr(policy, "takes_count", False):
        raise InvalidInput(
            f"plan: {type(policy).__name__} needs each value by itself. Use ask(count=n), or a "
            "policy that takes means, such as PiGPUCB or CalibratedUCB"
        )


def check_part(left: int | None, planned: int, count: int, std: float | None, verb: str) -> None:
    """Refuse a part of a plan's row that is larger than what is left of it."""
    if left is None:
        return
    if count > left:
        raise InvalidInput(
            f"{verb}(..., count={count}): {planned} values were planned for this trial, of which "
            f"{left} are left. Tell at most these, and add(params, mean, std, count=n) the others"
        )
    if count == 1 and planned > 1 and std is not None:
        raise InvalidInput(
            f"{verb}(..., std={std!r}): a single value of a plan's row has no known noise. Leave "
            "std out, or use ask() for values whose noise is known"
        )


# -- saved state -----------------------------------------------------------------------------------


def plans_state(planned: Mapping[int, int], parts: Mapping[int, Aggregate]) -> State:
    """The rows of plans that are pending, as plain data."""
    rows = list(parts.values())
    return {
        "planned": wholes(planned),
        "planned_counts": wholes(planned.values()),
        "parts": wholes(parts),
        "part_counts": wholes(row.count for row in rows),
        "part_means": np.array([row.mean for row in rows], dtype=float),
        "part_stds": np.array([row.std for row in rows], dtype=float),
    }


def restored_plans(saved: Saved, pending: list[int]) -> tuple[dict[int, int], dict[int, Aggregate]]:
    """What `plans_state` returned; there is nothing if no rows were pending."""
    if not saved.has("planned"):
        return {}, {}
    end = max(pending, default=-1) + 1
    numbers = saved.numbers("planned", end)
    counts = saved.wholes("planned_counts", (len(numbers),), 1, MOST_VALUES).tolist()
    planned = dict(zip(numbers, counts, strict=True))
    saved.require(set(planned) <= set(pending), "plans of pending trials")
    keys = saved.numbers("parts", end)
    size = (len(keys),)
    told = saved.wholes("part_counts", size, 1, MOST_VALUES).tolist()
    means = saved.floats("part_means", size).tolist()
    stds = saved.floats("part_stds", size, 0.0, math.inf, nan=True).tolist()
    known = [None if math.isnan(std) else std for std in stds]
    parts = {n: Aggregate(*row) for n, *row in zip(keys, means, known, told, strict=True)}
    good = all(n in planned and part.count < planned[n] for n, part in parts.items())
    saved.require(good, "parts of plans")
    return planned, parts
