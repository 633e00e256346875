"""What the policy shows of itself: its regions, and the settings that it has learned."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from partita._types import FloatArray
from partita.gp.settings import Settings

from .outlook import Outlook
from .values import Sums


@dataclass(frozen=True, slots=True)
class RegionView:
    """A region: its corners in the unit cube, its number of values, and its highest index."""

    lower: FloatArray
    upper: FloatArray
    count: int
    index: float


def views_of(outlooks: Iterable[Outlook], sums: Sums) -> list[RegionView]:
    """The regions, which tile the unit cube."""
    count, views = sums.count + sums.known, []
    for outlook in outlooks:
        region, index = outlook.region, outlook.index
        values = int(count[region.own].sum())
        views.append(RegionView(region.lower.copy(), region.upper.copy(), values, index))
    return views


def described(best: Settings, mean: float, ratio: float) -> dict[str, Any]:
    """Settings as a dict, with the noise where the mean is `mean` and its variance has a ratio."""
    settings: dict[str, Any] = {
        "nu": best.form + 0.5,
        "lengthscales": best.scales.copy(),
        "noise_std": best.noise_std * math.sqrt(ratio),
        "amplitude": best.amplitude,
        "mean": best.mean,
        "shape": "identity",
    }
    if not best.shape.identity:
        settings["noise_std"] /= best.shape.slope(mean)
        settings |= {"shape": "asinh", "centre": best.shape.centre, "size": best.shape.size}
    return settings
