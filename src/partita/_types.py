"""Common types: arrays, and the answers of policies."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
WordArray = npt.NDArray[np.uint64]


class Recommendation(NamedTuple):
    """The recommended point of a policy, with the posterior mean and bounds of f there."""

    x: FloatArray
    mean: float
    lower: float
    upper: float


class Interval(NamedTuple):
    """Where a quantity must be: from `lower` to `upper`."""

    lower: float = -math.inf
    upper: float = math.inf


class Prediction(NamedTuple):
    """Posterior of f at n points, each field (n,)."""

    mean: FloatArray
    std: FloatArray
    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True, slots=True)
class CellView:
    """A cell of the cover: a cube in the unit cube, and its statistics."""

    lower: FloatArray
    side: float
    level: int
    count: int
    information_gain: float
    width: float
    index: float

    @property
    def upper(self) -> FloatArray:
        """The corner opposite to `lower`."""
        return self.lower + self.side
