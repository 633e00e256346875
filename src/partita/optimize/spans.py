"""When evaluations were under way: from when each was begun until its value came or it failed."""

from __future__ import annotations

import math
from array import array
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from partita._types import FloatArray, IntArray


class Spans(NamedTuple):
    """Evaluations in the order in which they were begun, and their times in seconds.

    Attributes
    ----------
    numbers
        Of the trials, (n,).
    begun, ended
        Seconds since the run began, (n,).
    failed
        Whether they failed, (n,).
    """

    numbers: IntArray
    begun: FloatArray
    ended: FloatArray
    failed: npt.NDArray[np.bool_]

    @staticmethod
    def of(numbers: IntArray, begun: FloatArray, ended: FloatArray, failed: npt.ArrayLike) -> Spans:
        """The spans that have a beginning and an end, the first first."""
        known = np.flatnonzero(np.isfinite(begun) & np.isfinite(ended))
        order = known[np.argsort(begun[known], kind="stable")]
        return Spans(
            numbers[order], begun[order], ended[order], np.asarray(failed, dtype=np.bool_)[order]
        )


class Stopwatch:
    """Notes when trials begin and end; 17 bytes a trial, since a run may have a million."""

    def __init__(self) -> None:
        self._begun, self._ended, self._failed = array("d"), array("d"), array("b")

    def begin(self, number: int, seconds: float) -> None:
        """Note that a trial is begun."""
        short = number + 1 - len(self._begun)
        if short > 0:
            self._begun.extend([math.nan] * short)
            self._ended.extend([math.nan] * short)
            self._failed.extend([0] * short)
        self._begun[number] = seconds

    def end(self, number: int, seconds: float, failed: bool = False) -> None:
        """Note that a trial that was begun has ended."""
        self._ended[number], self._failed[number] = seconds, failed

    def spans(self) -> Spans:
        """What was noted of trials that have ended."""
        # Copies: an array that NumPy looks into cannot grow any more.
        begun, ended = np.array(self._begun), np.array(self._ended)
        return Spans.of(np.arange(len(begun)), begun, ended, np.array(self._failed))
