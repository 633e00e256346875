"""How many standard deviations the calibrated policy looks up, and its bounds reach."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

#: Standard deviations in the index. Fewer at the beginning gain nothing, nor do more in long runs:
#: probes look further up.
EXPLORATION = 2.0
#: Unrelated values of f that share delta, at most: short lengthscales in many dimensions.
MOST_PLACES = 1e6
#: Parts of delta below this are taken for this: 37 deviations.
LEAST_PART = 1e-300


def simultaneous(delta: float, scales: npt.NDArray[np.float64]) -> float:
    """Standard deviations in bounds that hold all over the domain at once, by the fitted model.

    f takes about ∏(1 + 1/ℓ_i) unrelated values, which share δ. A bound for one place by itself
    would not do: the recommended point is where the mean came out highest, often by luck.
    """
    places = math.exp(min(float(np.log1p(1.0 / scales).sum()), math.log(MOST_PLACES)))
    return -NormalDist().inv_cdf(max(delta / (2.0 * places), LEAST_PART))
