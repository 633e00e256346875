"""How many standard deviations the calibrated policy looks up, and its bounds reach."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

#: Unrelated values of f that share delta, at most: short lengthscales in many dimensions.
MOST_PLACES = 1e6
#: Standard deviations in the index, at least.
LEAST_WIDTH = 2.0
#: Plays that it takes to know what a place is worth. As many are to come as there have been: a fair
#: guess for who does not know.
PLAYS_TO_KNOW = 4
#: Newton's steps to the width that is worth exploring: enough for all of a float's digits.
STEPS = 6


def simultaneous(delta: float, scales: npt.NDArray[np.float64]) -> float:
    """Standard deviations in bounds that hold all over the domain at once, by the fitted model.

    f takes about ∏(1 + 1/ℓ_i) unrelated values, which share δ. A bound for one place by itself
    would not do: the recommended point is where the mean came out highest, often by luck.
    """
    places = math.exp(min(float(np.log1p(1.0 / scales).sum()), math.log(MOST_PLACES)))
    return NormalDist().inv_cdf(1.0 - delta / (2.0 * places))


def width(told: int, reach: float) -> float:
    """Standard deviations in the index after so many values, of bounds that have `reach`.

    Two, as many set, until looking further up is worth it; and no more than the bounds have, beyond
    which there is nothing to find.
    """
    return max(LEAST_WIDTH, min(worthwhile(told / PLAYS_TO_KNOW), reach))


def worthwhile(plays: float) -> float:
    """How far below the best a place may be expected, in its standard deviations, to be worth it.

    Playing it costs z σ now. It promises σ h(z) more at each play that follows, h(z) = E(Z − z)⁺
    of a standard normal Z. With `plays` to come that is worth it while plays · h(z) > z: up to 1.7
    standard deviations for 100, 2.4 for 1,000, 3.1 for 10,000.
    """
    if plays < 1.0:
        return 0.0
    aim = math.log(plays)
    z = math.sqrt(math.log1p(plays))
    for _ in range(STEPS):  # ln(plays h(z)/z) falls in z and is concave: Newton's steps settle
        above = 0.5 * math.erfc(z / math.sqrt(2.0))
        gain = math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) - z * above
        z = max(z + (aim + math.log(gain / z)) / (above / gain + 1.0 / z), 0.5 * z)
    return z
