"""What the choice between regions knows of each of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from partita._types import FloatArray
from partita.gp.fitting import Fit
from partita.gp.settings import Settings

from .candidates import Candidates
from .model import Conditioned, Moments
from .regions import Region


class Forecast(NamedTuple):
    """What the model says of a point (d,) that is asked for: mean and variance of f there."""

    settings: Settings
    point: FloatArray
    mean: float
    variance: float


class Preparation(NamedTuple):
    """The first half of the renewal of a region: its posterior under drawn settings.

    It holds while the fit, and the values of the sites that inform the region, stay the same.
    """

    region: Region
    drawn: Settings
    posterior: Conditioned
    at_held: Moments  # at the region's own sites
    fit: Fit
    changes: int  # of the values of the sites
    agree: bool  # whether replicates counted once


@dataclass
class Outlook:
    """What the choice knows of a region. `Search` alone writes it."""

    region: Region
    #: Its candidates, if they are kept, and whether they are to be renewed before they are used.
    candidates: Candidates | None = None
    stale: bool = True
    #: When it was last used, by the clock of the search.
    used_at: int = 0
    #: The highest index of the candidates, their highest upper bound, and the highest mean less one
    #: standard deviation of those that were evaluated, when they were last computed.
    index: float = math.inf
    ceiling: float = math.inf
    floor: float = -math.inf

    def of_part(self, region: Region) -> Outlook:
        """The outlook of a part of the region, which is thought as good as the whole."""
        return Outlook(region, index=self.index, ceiling=self.ceiling, floor=self.floor)

    def revive(self) -> None:
        """Look for candidates again, if there were none."""
        if self.index == -math.inf:
            self.index, self.candidates, self.stale = math.inf, None, True
