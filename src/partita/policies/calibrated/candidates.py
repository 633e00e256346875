"""The candidates of a region: their posterior as values come in, and plans for pending plays.

Notation: m candidates, those with data first, then fresh ones; V = L⁻¹K(data, candidates) as in
`posterior`. Means and variances are in units of the amplitude, from the mean.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from partita._types import FloatArray, IntArray
from partita.gp import _loops
from partita.gp.fitting import Settings
from partita.partition.sites import ArmSites, BoxSites

from .posterior import Conditioned, Moments
from .regions import Region

#: Standard deviations in the index. Fewer at the beginning gain nothing, nor do more in long runs:
#: probes look further up.
EXPLORATION = 2.0
#: Candidates that are kept until the next renewal: those of the highest index and upper bound.
KEPT, KEPT_OPEN = 160, 16
#: Pending points that are planned for, in a region.
MOST_PLANNED = 128


@dataclass
class Candidates:
    """Candidates of a region and their posterior under one draw of the settings.

    Each observation at one of them is a rank-one update, until the room for those is used up.
    """

    settings: Settings
    points: FloatArray  # (m, d) in the unit cube, the region's sites first
    scaled: FloatArray  # (m, d), divided by the lengthscales
    sites: IntArray  # (s,) sites of the first s candidates
    mean: FloatArray  # (m,)
    variance: FloatArray  # (m,)
    rows: FloatArray  # (r, m): V and room for more
    used: int
    ceiling: float  # the highest upper bound when they were drawn, those not kept included
    played: npt.NDArray[np.bool_]  # (m,)

    @property
    def full(self) -> bool:
        """Whether there is no room for another observation."""
        return self.used >= len(self.rows)

    def number_of(self, site: int, point: FloatArray) -> int | None:
        """The number of the candidate at a site, which is at a point (d,), or None."""
        same = np.flatnonzero(self.sites == site)
        if not len(same):
            same = np.flatnonzero((self.points == point).all(axis=1))
        return int(same[0]) if len(same) else None

    def observe(self, j: int, value: float) -> None:
        """Condition on a value at candidate j."""
        settings, column = self.settings, self._column(j)
        scaled = (value - settings.mean) / settings.amplitude
        _loops.observe_rows(
            self.rows, self.used, self.mean, self.variance, column, j, scaled, settings.noise
        )
        self.used += 1
        self.played[j] = True

    def planned(self, plays: dict[int, int]) -> Candidates:
        """Candidates as if some had been observed as often as `plays` says, at their means.

        So the means stay, and only the variances are lowered (Desautels et al. 2014).
        """
        if not plays:
            return self
        variance, mean, played = self.variance.copy(), self.mean.copy(), self.played.copy()
        rows = np.concatenate([self.rows[: self.used], np.empty((len(plays), len(mean)))])
        for k, (j, times) in enumerate(plays.items()):
            noise, column = self.settings.noise / times, self._column(j)
            _loops.observe_rows(rows, self.used + k, mean, variance, column, j, mean[j], noise)
            played[j] = True
        return replace(self, variance=variance, played=played)

    def _column(self, j: int) -> FloatArray:
        """Kernel between candidate j and all, a new (m,)."""
        row = self.scaled[j : j + 1]
        return np.asarray(_loops.matern(row, self.scaled, self.settings.form)[0])


def keep_best(
    known: Conditioned,
    held: FloatArray,
    at_held: Moments,
    sites: IntArray,
    fresh: FloatArray,
    *,
    room: int,
    reach: float,
    awaited: int = 0,
    uncertain: bool = False,
) -> Candidates:
    """The best candidates of those `held` (s, d), at `sites` (s,), and `fresh` ones (f, d).

    Those of the highest index are kept: the others would have to overtake them within the `room`
    for more observations. So are those of the highest bound, `reach` standard deviations up, the
    last `awaited` of the fresh ones, which are pending, and the most `uncertain` if asked for.
    """
    at_fresh = known.moments_at(fresh)
    mean = np.concatenate([at_held.mean, at_fresh.mean])
    variance = np.concatenate([at_held.variance, at_fresh.variance])
    kept = _highest(mean, np.sqrt(variance), reach, awaited, uncertain)
    s = int(np.searchsorted(kept, len(held)))
    of_held, of_fresh = kept[:s], kept[s:] - len(held)
    points = np.concatenate([held[of_held], fresh[of_fresh]])
    used = len(at_held.rows)
    rows = np.empty((used + room, len(points)))
    rows[:used, :s], rows[:used, s:] = at_held.rows[:, of_held], at_fresh.rows[:, of_fresh]
    return Candidates(
        settings=known.settings,
        points=points,
        scaled=points / known.settings.scales,
        sites=sites[of_held],
        mean=mean[kept],
        variance=variance[kept],
        rows=rows,
        used=used,
        ceiling=max(at_held.highest(reach), at_fresh.highest(reach)),
        played=np.arange(len(points)) < s,
    )


def _highest(
    mean: FloatArray, std: FloatArray, reach: float, awaited: int, uncertain: bool
) -> IntArray:
    """Numbers of the candidates to keep, in their order."""
    if len(mean) <= KEPT:
        return np.arange(len(mean))
    best = np.argpartition(-mean - EXPLORATION * std, KEPT)[:KEPT]
    open_ = np.argpartition(-mean - reach * std, KEPT_OPEN)[:KEPT_OPEN]
    last = np.arange(len(mean) - awaited, len(mean))
    most = np.argpartition(-std, KEPT_OPEN)[:KEPT_OPEN] if uncertain else last
    return np.unique(np.concatenate([best, open_, last, most]))


class Plan:
    """Plays that are under way, which count as observed at what the model expects there.

    Variances are lowered by them, means are untouched (`Candidates.planned`). They are
    planned for where they are candidates, so renewals keep them among those.

    Parameters
    ----------
    plays : how often each site is awaited
    """

    def __init__(
        self, plays: dict[int, int], sites: ArmSites | BoxSites, home: dict[int, int]
    ) -> None:
        self._plays = [(sites.scaled[site].tobytes(), times) for site, times in plays.items()]
        new = [site for site in plays if site not in home]
        self._new = sites.scaled[np.array(new, dtype=np.int64)]

    def new_in(self, region: Region) -> FloatArray:
        """Points (n, d) of a region that are awaited and have no value yet, the latest."""
        return np.asarray(self._new[region.holds(self._new)][-MOST_PLANNED:])

    def plays_of(self, candidates: Candidates | None) -> dict[int, int]:
        """How often candidates are awaited, by number; of many, those of the highest index."""
        if not self._plays or candidates is None:
            return {}
        numbers = {row.tobytes(): j for j, row in enumerate(candidates.points)}
        plays: dict[int, int] = {}
        for word, times in self._plays:
            j = numbers.get(word)
            if j is not None:
                plays[j] = plays.get(j, 0) + times
        if len(plays) > MOST_PLANNED:
            index = candidates.mean + EXPLORATION * np.sqrt(candidates.variance)
            plays = {j: plays[j] for j in sorted(plays, key=lambda j: -index[j])[:MOST_PLANNED]}
        return plays
