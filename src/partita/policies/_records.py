"""What the calibrated policy remembers: sums of values a site, and which region a site lies in."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from partita.calibration import Data
from partita.sites import ArmSites, BoxSites

from ._region import Region

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

#: Points of a region at which it is cut in two, those that it knows with others around it, and how
#: many of the latter it keeps in any case.
REGION_POINTS, MOST_DATA, AROUND = 256, 304, 48
#: A region narrower than this, in sides of the domain, is not cut.
NARROWEST = 1e-6


class Records:
    """Replicate counts, sums and squares of the sites, and the regions that they lie in."""

    def __init__(self, sites: ArmSites | BoxSites) -> None:
        self._sites = sites
        dim = sites.scaled.shape[1]
        #: Sums of squares of values about their mean, a site.
        self._within = np.zeros(len(sites.count))
        self.regions = [Region(np.zeros(dim), np.ones(dim), [], np.empty(0, np.int64))]
        #: The number of the region of each site that has values, in the order of their first.
        self.home: dict[int, int] = {}

    def add(self, site: int, value: float) -> None:
        """Take in a value at a site."""
        sites = self._sites
        if site >= len(self._within):
            missing = len(sites.count) - len(self._within)
            self._within = np.concatenate([self._within, np.zeros(missing)])
        sites.count[site] += 1
        n, total = int(sites.count[site]), float(sites.total[site]) + value
        if n > 1:  # Welford's update: squares of large values would cancel
            before = (total - value) / (n - 1)
            self._within[site] += max((value - before) * (value - total / n), 0.0)
        sites.total[site] = total
        if site not in self.home:
            point = sites.scaled[site : site + 1]
            number = next(i for i, r in enumerate(self.regions) if r.holds(point)[0])
            region = self.regions[number]
            self.home[site] = number
            region.sites.append(site)
            region.revive()
            region.trim(MOST_DATA, AROUND)

    def forget(self, site: int) -> None:
        """Drop the values at a site, which keeps its place."""
        self._sites.count[site] = self._sites.total[site] = self._within[site] = 0

    def region_of(self, site: int) -> Region:
        """The region of a site that has values."""
        return self.regions[self.home[site]]

    def data(self, sites: IntArray) -> Data:
        """Replicate means of sites that have values."""
        counts = self._sites.count[sites].astype(float)
        means = self._sites.total[sites] / counts
        return Data(self._sites.scaled[sites], counts, means, self._within[sites])

    def spread_out(self, number: int) -> Data:
        """Replicate means of so many sites at most, each as far from those before as can be.

        The points played most lie around the best ones; a fit that looked at them alone would take
        the rest of the domain to be as flat.
        """
        played = np.array(list(self.home), dtype=np.int64)
        if len(played) > number:
            played = played[farthest(self._sites.scaled[played], number)]
        return self.data(played)

    def cut(self, number: int, scales: FloatArray) -> None:
        """Cut a region in two across its longest side, in lengthscales."""
        region = self.regions[number]
        points = self._sites.scaled[region.data]
        first, second = region.split(scales, points, MOST_DATA, AROUND)
        if not first.sites or not second.sites:  # all on one side: keep halving that one
            full = first if first.sites else second
            if float((full.upper - full.lower).max()) < NARROWEST:
                return
        self.regions[number] = first
        self.regions.append(second)
        for site in second.sites:
            self.home[site] = len(self.regions) - 1


def farthest(points: FloatArray, number: int) -> IntArray:
    """Numbers of so many of the points (n, d), each as far from those before as can be."""
    chosen = np.empty(number, dtype=np.int64)
    chosen[0] = 0
    away = np.full(len(points), np.inf)
    for k in range(1, number):
        away = np.minimum(away, ((points - points[chosen[k - 1]]) ** 2).sum(axis=1))
        chosen[k] = int(np.argmax(away))
    return chosen
