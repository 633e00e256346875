"""Checks of a long run: how much a step costs and the state takes, late against early."""

from __future__ import annotations

import math
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from .case import AskTell, Case, Departure, play
from .rules import Rule

#: Between a quarter of the run and its end, t grows by this.
_RATIO = 4.0
#: What state and time may grow by beyond the promise: logarithms, arrays that double, caches.
STATE_SLACK = TIME_SLACK = 2.0
#: What is too little to matter, in bytes, and in seconds a step.
STATE_FLOOR, TIME_FLOOR = 1024, 10e-6
#: Steps are timed by the block, and the quickest of several blocks counts: others may have been
#: disturbed. A block is long enough that work put off for a while falls into it.
_BLOCKS, _BLOCK = 5, 100


@dataclass(frozen=True)
class LongRun:
    """What was measured at a quarter of a run and at its end: bytes, and seconds a step.

    The bytes are 0 if the state cannot be pickled.
    """

    steps: int
    early_bytes: int
    late_bytes: int
    early_seconds: float
    late_seconds: float


def state_growth(case: Case) -> None:
    """In 10,000 steps the state grows no faster than promised."""
    run = long_run(case, 0)
    if not run.early_bytes:
        raise Departure(
            "the state can be pickled, and so measured", "it cannot", "See the check `pickling`."
        )
    exponent = case.promises.exponent("memory", case.kind)
    allowed = STATE_SLACK * _RATIO**exponent * run.early_bytes + STATE_FLOOR
    if run.late_bytes > allowed:
        grown = math.log(run.late_bytes / run.early_bytes, _RATIO)
        raise Departure(
            f"the pickled state grows as t^{exponent:g}: at most {allowed:,.0f} bytes after "
            f"{run.steps:,} steps",
            f"{run.early_bytes:,} bytes after {run.steps // 4:,} steps, {run.late_bytes:,} after "
            f"{run.steps:,}, as t^{grown:.1f}",
            "Keep sums and counts instead of every observation; or promise memory="
            f"{math.ceil(grown)}.",
        )


def step_time(case: Case) -> None:
    """In 10,000 steps the time of a step grows no faster than promised."""
    exponent = case.promises.exponent("time", case.kind)
    factor = TIME_SLACK * _RATIO**exponent
    for attempt in range(2):
        run = long_run(case, attempt)
        if run.late_seconds <= factor * run.early_seconds + TIME_FLOOR:
            return
    grown = math.log(run.late_seconds / run.early_seconds, _RATIO)
    raise Departure(
        f"the time of a step grows as t^{exponent:g}: at most {factor:g} times from step "
        f"{run.steps // 4:,} to step {run.steps:,}",
        f"{1e6 * run.early_seconds:,.0f} µs at step {run.steps // 4:,}, "
        f"{1e6 * run.late_seconds:,.0f} µs at step {run.steps:,}, as t^{grown:.1f}, and much the "
        "same when repeated",
        "Update what is kept instead of computing it afresh from all data; or promise "
        f"time={math.ceil(grown)}.",
    )


@lru_cache(maxsize=8)
def long_run(case: Case, attempt: int) -> LongRun:
    """Play a long run. Remembered, so that two checks can share it."""
    problem, steps = case.problem(), case.promises.steps
    # The same twice: one stays as it is and is timed in turn with the other, when that is done, so
    # that the machine is as busy for both.
    early, policy = (case.build(problem, horizon=steps + _BLOCKS * _BLOCK) for _ in range(2))
    play(early, problem, steps // 4)
    play(policy, problem, steps // 4)
    early_bytes = _size(policy)
    play(policy, problem, steps - steps // 4, stream=1)
    late_bytes = _size(policy)
    seconds: list[list[float]] = [[], []]
    clock = _clock()
    for block in range(_BLOCKS):
        for player, times in zip((early, policy), seconds, strict=True):
            begin = clock()
            play(player, problem, _BLOCK, stream=2 + block)
            times.append((clock() - begin) / _BLOCK)
    return LongRun(steps, early_bytes, late_bytes, min(seconds[0]), min(seconds[1]))


def _size(policy: AskTell) -> int:
    """Bytes of the state, pickled; 0 if it cannot be."""
    try:
        return len(pickle.dumps(policy))
    except (pickle.PicklingError, TypeError, AttributeError):
        return 0


def _clock() -> Callable[[], float]:
    """The time this thread has had, which other processes do not lengthen, if it is fine enough."""
    fine = time.get_clock_info("thread_time").resolution <= 1e-6
    return time.thread_time if fine else time.perf_counter


RULES = (
    Rule("state-growth", state_growth, long=True),
    Rule("step-time", step_time, long=True),
)
