"""Means over runs and how far they can be trusted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from partita._types import FloatArray

from .trace import Trace

#: The probability that an interval contains the mean of infinitely many runs.
LEVEL = 0.95


class Estimate(NamedTuple):
    """A mean over runs, and half the width of its 95 % confidence interval: NaN for one run."""

    mean: float
    half_width: float


class Band(NamedTuple):
    """The same at each of n steps, (n,) each."""

    mean: FloatArray
    half_width: FloatArray


class Entry(NamedTuple):
    """What Table 1 says of one policy in one dimension."""

    regret: Estimate
    seconds: float
    runs: int
    horizon: int


def student(runs: int) -> float:
    """Half the width of the interval in standard errors; NaN for one run."""
    from scipy.stats import t

    return float(t.ppf(0.5 + LEVEL / 2, runs - 1)) if runs > 1 else math.nan


def band(values: npt.ArrayLike) -> Band:
    """Mean over runs, values (runs, n), with Student's interval at each step."""
    rows = np.asarray(values, dtype=np.float64)
    runs = len(rows)
    if runs == 1:
        return Band(rows[0], np.full(rows.shape[1], np.nan))
    return Band(rows.mean(axis=0), student(runs) * rows.std(axis=0, ddof=1) / math.sqrt(runs))


def entry(traces: Sequence[Trace]) -> Entry:
    """Mean over runs of R_T / (T (f* − mean f)), and of the time of a run.

    The denominator is what uniform sampling loses in expectation on the same function, exactly, so
    every run, and with it every function, counts the same.
    """
    fractions = band([[trace.regret_fraction] for trace in traces])
    seconds = float(np.mean([trace.total_seconds for trace in traces]))
    estimate = Estimate(float(fractions.mean[0]), float(fractions.half_width[0]))
    return Entry(estimate, seconds, len(traces), traces[0].task.horizon)


def smooth(values: npt.ArrayLike, width: int) -> FloatArray:
    """Moving average along the last axis over `width` steps: (..., n) → (..., n − width + 1)."""
    rows = np.asarray(values, dtype=np.float64)
    sums = np.cumsum(np.concatenate([np.zeros((*rows.shape[:-1], 1)), rows], axis=-1), axis=-1)
    return np.asarray((sums[..., width:] - sums[..., :-width]) / width)
