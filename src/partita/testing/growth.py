"""Rules of a long run: how much a step costs and the state takes, late against early."""

from __future__ import annotations

import copy
import math
import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from .case import Case, Departure, Game
from .rules import RuleTests, rule

#: Between a quarter of the run and its end, t grows by this.
RATIO = 4
#: What state and time may grow by beyond the promise: logarithms, arrays that double, caches.
SLACK = 2.0
#: What is too little to matter, in bytes, and in seconds a step.
STATE_FLOOR, TIME_FLOOR = 1024, 10e-6
#: Steps are timed by the block, and the quickest of several blocks counts: others may have been
#: disturbed. A block is long enough that work put off for a while falls into it.
BLOCKS, BLOCK = 5, 100


@dataclass(frozen=True)
class LongRun:
    """What was measured at a quarter of a run and at its end: bytes, and seconds a step.

    The bytes are 0 if the state cannot be pickled.
    """

    early_bytes: int
    late_bytes: int
    early_seconds: float
    late_seconds: float


class GrowthTests(RuleTests):
    """State and time of a step in a long run, which the two rules share."""

    @rule(long=True)
    def test_state_growth(self, case: Case) -> None:
        """In 10,000 steps the state grows no faster than promised."""
        steps, run = case.promises.steps, long_run(case, 0)
        if not run.early_bytes:
            raise Departure(
                "the state can be pickled, and so measured", "it cannot", "See the rule `pickling`."
            )
        exponent = case.promises.exponent("memory", case.kind)
        allowed = SLACK * RATIO**exponent * run.early_bytes + STATE_FLOOR
        if run.late_bytes > allowed:
            grown = math.log(run.late_bytes / run.early_bytes, RATIO)
            raise Departure(
                f"the pickled state grows as t^{exponent:g}: at most {allowed:,.0f} bytes after "
                f"{steps:,} steps",
                f"{run.early_bytes:,} bytes after {steps // RATIO:,} steps, {run.late_bytes:,} "
                f"after {steps:,}, as t^{grown:.1f}",
                "Keep sums and counts instead of every observation; or promise memory="
                f"{math.ceil(grown)}.",
            )

    @rule(long=True)
    def test_step_time(self, case: Case) -> None:
        """In 10,000 steps the time of a step grows no faster than promised."""
        steps, exponent = case.promises.steps, case.promises.exponent("time", case.kind)
        factor = SLACK * RATIO**exponent
        for attempt in range(2):
            run = long_run(case, attempt)
            if run.late_seconds <= factor * run.early_seconds + TIME_FLOOR:
                return
        grown = math.log(run.late_seconds / run.early_seconds, RATIO)
        raise Departure(
            f"the time of a step grows as t^{exponent:g}: at most {factor:g} times from step "
            f"{steps // RATIO:,} to step {steps:,}",
            f"{1e6 * run.early_seconds:,.0f} µs at step {steps // RATIO:,}, "
            f"{1e6 * run.late_seconds:,.0f} µs at step {steps:,}, as t^{grown:.1f}, and much the "
            "same when repeated",
            "Update what is kept instead of computing it afresh from all data; or promise "
            f"time={math.ceil(grown)}.",
        )


@lru_cache(maxsize=8)
def long_run(case: Case, attempt: int) -> LongRun:
    """Make a long run. It is cached, so that two rules can share it."""
    steps, horizon = case.promises.steps, case.promises.steps + BLOCKS * BLOCK
    game = case.start(steps=steps // RATIO, horizon=horizon)
    early_state = _pickled(game.policy)
    early = Game(pickle.loads(early_state), game.problem) if early_state else copy.deepcopy(game)
    game.play(steps - steps // RATIO, stream=1)
    late_state = _pickled(game.policy)
    # The policy as it was and as it is take turns, so that the machine is as busy for both.
    clock = _clock()
    seconds: tuple[list[float], list[float]] = [], []
    for block in range(BLOCKS):
        for player, times in zip((early, game), seconds, strict=True):
            begin = clock()
            player.play(BLOCK, stream=2 + block)
            times.append((clock() - begin) / BLOCK)
    return LongRun(len(early_state), len(late_state), min(seconds[0]), min(seconds[1]))


def _pickled(policy: Any) -> bytes:
    """The state, empty if it cannot be pickled."""
    try:
        return pickle.dumps(policy)
    except (pickle.PicklingError, TypeError, AttributeError):
        return b""


def _clock() -> Callable[[], float]:
    """The time this thread has had, which other processes do not lengthen, if it is fine enough."""
    fine = time.get_clock_info("thread_time").resolution <= 1e-6
    return time.thread_time if fine else time.perf_counter
