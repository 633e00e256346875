"""Evaluations that end early: what they reported, and what that foretells.

A trial reports readings after steps, such as the loss after each epoch. Trials that finish show how
a reading at a step leads to a value: a straight line is fitted to them by least squares, by which a
reading foretells a value with the error of a prediction (Student's t with n − 2 degrees of
freedom). The function differs from that value by this error and by the noise of values. A trial is
hopeless once the function there is worse than the best one known, even if both turn out well. So
where early readings say little, or values are noisy, hardly anything is pruned.

Whether a trial is pruned depends on its readings alone, and what is foretold is the mean of its
value given its reading. So the model is told of all trials, not of those that were lucky early: a
pruned trial counts with the value foretold, whose noise is that of values and the error. Without
that, values that were reported would be selected by their own noise.
"""

from __future__ import annotations

import bisect
import itertools
import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from partita._state import Saved, State, joined, lengths, wholes
from partita._types import FloatArray, IntArray
from partita.errors import InvalidInput

from .values import Observation, as_reading

_log = logging.getLogger(__name__)

#: Finished trials with a reading at a step before it foretells anything, before any is pruned by
#: that, and the latest that count.
FEWEST, ENOUGH, MOST = 6, 10, 500
#: Reports in a row that must leave no hope.
IN_A_ROW = 2
#: Chance that a hopeless trial would turn out no better than the best.
SURE = 0.975
#: Readings and values farther from the quartiles than this, in distances between these, count as
#: if they were there: a training that diverged says nothing of how others go on.
FENCE = 3.0
#: Reports of a trial, and the last step that can be stored.
MOST_REPORTS, LAST_STEP = 100_000, 2**53


class Relation(NamedTuple):
    """How readings at a step lead to values, by n trials: a straight line and its error.

    Attributes
    ----------
    n
    reading, value
        Means.
    slope
        At least 0: better readings are no worse sign.
    squares
        Of the readings about their mean.
    variance
        Of the values about the line.
    lowest, highest
        Readings seen, less those beyond the fences.
    """

    n: int
    reading: float
    value: float
    slope: float
    squares: float
    variance: float
    lowest: float
    highest: float

    def foretold(self, reading: float) -> Observation:
        """The value to expect after a reading, and the standard deviation of the prediction."""
        away = reading - self.reading
        leverage = away * away / self.squares if self.squares > 0.0 else 0.0
        std = math.sqrt(self.variance * (1.0 + 1.0 / self.n + leverage))
        return Observation(self.value + self.slope * away, std)

    def beyond(self, reading: float) -> float:
        """How far a reading lies outside those seen."""
        return max(self.lowest - reading, reading - self.highest, 0.0)


def relation_of(readings: FloatArray, values: FloatArray) -> Relation | None:
    """The line through values (n,) by readings (n,); None if there are too few."""
    n = len(readings)
    if n < FEWEST:
        return None
    readings, values = _fenced(readings), _fenced(values)
    x, y = float(readings.mean()), float(values.mean())
    across, along = readings - x, values - y
    squares = float(across @ across)
    slope = max(float(across @ along) / squares, 0.0) if squares > 0.0 else 0.0
    left = along - slope * across
    variance = float(left @ left) / (n - 2)
    ends = float(readings.min()), float(readings.max())
    relation = Relation(n, x, y, slope, squares, variance, *ends)
    return relation if all(map(math.isfinite, relation)) else None


def _fenced(numbers: FloatArray) -> FloatArray:
    low, high = np.quantile(numbers, (0.25, 0.75))
    reach = FENCE * (high - low)
    return np.clip(numbers, low - reach, high + reach)


class Rule:
    """Which trials are hopeless, by those that had finished when it was made.

    It never changes, and can be sent to other processes.

    Parameters
    ----------
    curves
        Steps, readings and the value of each finished trial.
    best
        The best value known; `sign` is -1.0 where less is better, else 1.0.
    noise
        The standard deviation of values about the function.
    """

    def __init__(
        self,
        curves: Sequence[tuple[IntArray, FloatArray, float]],
        best: float,
        sign: float,
        noise: float = 0.0,
    ) -> None:
        self._curves, self._best, self._sign, self._noise = curves, best, sign, noise
        self._steps = sorted({int(step) for steps, _, _ in curves for step in steps})
        self._relations: dict[int, Relation | None] = {}

    def relation(self, step: int) -> Relation | None:
        """How readings lead to values at a step; of trials without one there, those before it."""
        place = bisect.bisect_right(self._steps, step)
        if not place:
            return None
        last = self._steps[place - 1]
        if last not in self._relations:
            pairs = np.array(list(self._pairs(last))).reshape(-1, 2)
            self._relations[last] = relation_of(pairs[:, 0], pairs[:, 1])
        return self._relations[last]

    def _pairs(self, step: int) -> Iterator[tuple[float, float]]:
        for steps, readings, value in self._curves:
            place = int(np.searchsorted(steps, step, side="right"))
            if place and math.isfinite(readings[place - 1]):
                yield float(readings[place - 1]), value

    def is_hopeless(self, step: int, reading: float) -> bool:
        """Whether a trial with this reading can hardly become the best."""
        relation = self.relation(step)
        if relation is None or relation.n < ENOUGH or not math.isfinite(self._best):
            return False
        from scipy.special import stdtrit  # late: most runs report nothing

        # One that is worse than all before is judged as the worst of them: the line ends there.
        worst = relation.lowest if self._sign > 0 else relation.highest
        seen = self._sign * max(self._sign * reading, self._sign * worst)
        value, std, *_ = relation.foretold(seen)
        assert std is not None
        reach = float(stdtrit(relation.n - 2, SURE)) * math.hypot(std, self._noise)
        return self._sign * value + reach < self._sign * self._best

    def estimate(self, step: int, reading: float) -> Observation | None:
        """What a reading says of the value to come, with its noise; None if that is not known.

        Beyond the readings seen, the line may be wrong by as much as it rises there.
        """
        relation = self.relation(step)
        if relation is None or not math.isfinite(reading):
            return None
        fence = FENCE * (relation.highest - relation.lowest)
        within = min(max(reading, relation.lowest - fence), relation.highest + fence)
        value, std, *_ = relation.foretold(within)
        assert std is not None
        beyond = relation.slope * relation.beyond(within)
        return Observation(value, math.hypot(std, beyond, self._noise))

    def __getstate__(self) -> dict[str, Any]:
        """What has been learned at each step, without the trials."""
        for step in self._steps:
            self.relation(step)
        return {**self.__dict__, "_curves": ()}


class Progress:
    """What one trial has reported, and the rule that says when to end it.

    Attributes
    ----------
    readings
        By step, in the order of the steps.
    rule
        None while too few trials have finished.
    """

    __slots__ = ("readings", "rule")

    def __init__(self, rule: Rule | None = None) -> None:
        self.readings: dict[int, float] = {}
        self.rule = rule

    def report(self, value: Any, step: Any) -> None:
        """Take in a reading after a step; the first of a step counts."""
        at, reading = as_step(step), as_reading(value)
        if at in self.readings:
            _log.warning("step %d was reported already: its first value counts", at)
            return
        if len(self.readings) >= MOST_REPORTS:
            raise InvalidInput(
                f"report({value!r}, {step!r}): a trial reports at most {MOST_REPORTS:,} times. "
                "Report less often, such as once an epoch"
            )
        out_of_order = bool(self.readings) and at < next(reversed(self.readings))
        self.readings[at] = reading
        if out_of_order:
            self.readings = dict(sorted(self.readings.items()))

    def is_hopeless(self) -> bool:
        """Whether the last readings leave no hope.

        Two in a row must, as a trial is judged after every report: being unlucky once is no end.
        """
        last = list(itertools.islice(reversed(self.readings.items()), IN_A_ROW))
        if last and not math.isfinite(last[0][1]):
            return True
        if self.rule is None or len(last) < IN_A_ROW:
            return False
        return all(itertools.starmap(self.rule.is_hopeless, last))


def as_step(step: Any) -> int:
    """A step as an integer of at least 0."""
    if isinstance(step, bool) or not isinstance(step, int | np.integer) or step < 0:
        raise InvalidInput(f"report(..., step={step!r}): give a whole number of at least 0")
    if step > LAST_STEP:
        raise InvalidInput(f"report(..., step={step!r}): give a step of at most 2**53")
    return int(step)


class Curves:
    """The reports of all trials that have ended, by the number of the trial."""

    def __init__(self) -> None:
        self._all: dict[int, tuple[IntArray, FloatArray]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def __iter__(self) -> Iterator[int]:
        return iter(self._all)

    def add(self, number: int, readings: Mapping[int, float]) -> None:
        """Keep what a trial has reported, if anything."""
        if readings:
            steps = np.fromiter(readings, np.int64, len(readings))
            self._all[number] = steps, np.fromiter(readings.values(), float, len(readings))

    def of(self, number: int) -> dict[int, float]:
        """What a trial reported after each step."""
        steps, readings = self._all.get(number, ((), ()))
        return {int(step): float(reading) for step, reading in zip(steps, readings, strict=True)}

    def latest(self, values: FloatArray) -> list[tuple[IntArray, FloatArray, float]]:
        """Steps, readings and value of the trials that have one, the last of them.

        `values` are those of all trials, NaN where there is none.
        """
        found: list[tuple[IntArray, FloatArray, float]] = []
        for number in reversed(self._all):
            if not math.isnan(values[number]):
                found.append((*self._all[number], float(values[number])))
                if len(found) == MOST:
                    break
        return found[::-1]

    # -- as plain data ---------------------------------------------------------------------------

    def as_data(self) -> State:
        """All of it, as plain data."""
        return {
            "numbers": wholes(self._all),
            "lengths": lengths(steps for steps, _ in self._all.values()),
            "steps": joined([steps for steps, _ in self._all.values()], np.int64),
            "readings": joined([readings for _, readings in self._all.values()], np.float64),
        }

    def restore(self, saved: Saved, trials: int) -> None:
        """Go on from what `as_data` returned, of this many trials."""
        numbers = saved.numbers("numbers", trials)
        steps = saved.wholes("steps", (None,), 0, LAST_STEP)
        readings = saved.floats("readings", (len(steps),), nan=True)
        pieces = [saved.cut("lengths", array, len(numbers)) for array in (steps, readings)]
        for part in pieces[0]:
            saved.require(len(part) and (np.diff(part) > 0).all(), "steps in order")
        self._all = dict(zip(numbers, zip(*pieces, strict=True), strict=True))


# -- in a study's log ------------------------------------------------------------------------------


def as_json(readings: Mapping[int, float]) -> list[list[float | int | None]] | None:
    """Reports as JSON, pairs of step and reading, null for one that is not finite."""
    pairs: list[list[float | int | None]] = [
        [step, reading if math.isfinite(reading) else None] for step, reading in readings.items()
    ]
    return pairs or None


def from_json(pairs: Any) -> dict[int, float]:
    """The reports that `as_json` wrote; refused if they cannot be that."""
    readings: dict[int, float] = {}
    last = -1
    for pair in _checked(pairs):
        step, reading = pair
        if type(step) is not int or not last < step <= LAST_STEP:
            raise InvalidInput(f"reports have a step {step!r:.40} where it cannot be")
        if reading is not None and type(reading) not in (int, float):
            raise InvalidInput(f"reports have {reading!r:.40} where a number should be")
        readings[step] = math.nan if reading is None else as_reading(float(reading))
        last = step
    return readings


def _checked(pairs: Any) -> list[Any]:
    if pairs is None:
        return []
    if not isinstance(pairs, list) or not 0 < len(pairs) <= MOST_REPORTS:
        raise InvalidInput("reports are not a list of pairs")
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        raise InvalidInput("reports are not pairs of a step and a number")
    return pairs
