"""What the calibrated policy remembers: values by site, and which region a site lies in."""

from __future__ import annotations

import numpy as np

from partita._types import FloatArray, IntArray
from partita.gp.fitting import Data
from partita.partition.sites import ArmSites, BoxSites

from .region import Region

#: Points of a region at which it is cut in two, those that it knows with others around it, and how
#: many of the latter it keeps in any case.
REGION_POINTS, MOST_DATA, AROUND = 256, 304, 48
#: Values at the same site agree if they differ by less than this part of the variance between
#: sites, on average. They have no noise if that is so for so many replicates, and sites.
EXACT, EXACT_AGAIN, EXACT_SITES = 4e-6, 3, 4
#: Points nearer than this to others, in lengthscales, say little more then.
NEAR = 0.1
#: A region narrower than this, in sides of the domain, is not cut.
NARROWEST = 1e-6


class Records:
    """Replicate counts, means and squares of the sites, and the regions that they lie in.

    Attributes
    ----------
    agree : whether values at the same site have been the same so far, so that one counts for all
    exact : whether values are taken to have no noise: they agree at several sites
    """

    def __init__(self, sites: ArmSites | BoxSites) -> None:
        self._sites = sites
        dim = sites.scaled.shape[1]
        #: Means of the values, and sums of their squares about them, a site.
        self._mean = np.zeros(len(sites.count))
        self._within = np.zeros(len(sites.count))
        self.regions = [Region(np.zeros(dim), np.ones(dim), [], np.empty(0, np.int64))]
        #: Cuts by the number of the region that was cut, oldest first: axis, where, and the number
        #: of the region above.
        self._cuts: dict[int, list[tuple[int, float, int]]] = {}
        #: The number of the region of each site that has values, in the order of their first.
        self.home: dict[int, int] = {}
        self.agree = self.exact = False
        self._little = 0.0

    def add(self, site: int, value: float) -> None:
        """Take in a value at a site."""
        sites = self._sites
        if site >= len(self._within):
            missing = np.zeros(len(sites.count) - len(self._within))
            self._mean = np.concatenate([self._mean, missing])
            self._within = np.concatenate([self._within, missing])
        sites.count[site] += 1
        # Welford's update: sums of large values, and squares, would cancel.
        away = value - self._mean[site]
        self._mean[site] += away / sites.count[site]
        self._within[site] += away * (value - self._mean[site])
        if self.agree and self._within[site] > sites.count[site] * self._little:
            self.agree = self.exact = False
        if site not in self.home:
            number = self.number_at(sites.scaled[site])
            region = self.regions[number]
            self.home[site] = number
            region.sites.append(site)
            region.revive()
            region.trim(MOST_DATA, AROUND)
        self.region_of(site).changes += 1

    def remove(self, site: int, value: float) -> None:
        """Take a value at a site out again; the site keeps its place."""
        count = int(self._sites.count[site])
        if count == 1:
            self.forget(site)
            return
        before = self._mean[site]
        self._sites.count[site] = count - 1
        self._mean[site] += (before - value) / (count - 1)
        squares = self._within[site] - (value - before) * (value - self._mean[site])
        self._within[site] = max(squares, 0.0)
        self.region_of(site).changes += 1

    def forget(self, site: int) -> None:
        """Drop the values at a site, which keeps its place."""
        self._sites.count[site] = self._mean[site] = self._within[site] = 0
        self.region_of(site).changes += 1

    def region_of(self, site: int) -> Region:
        """The region of a site that has values."""
        return self.regions[self.home[site]]

    def number_at(self, point: FloatArray) -> int:
        """The number of the region that a point (d,) lies in."""
        number: int | None = 0
        while number is not None:
            found, cuts = number, self._cuts.get(number, [])
            number = next((above for axis, where, above in cuts if point[axis] >= where), None)
        return found

    def data(self, sites: IntArray) -> Data:
        """Replicate means of sites that have values."""
        means = self._mean[sites]
        if self.agree:
            return Data(self._sites.scaled[sites], np.ones(len(sites)), means, np.zeros(len(sites)))
        counts = self._sites.count[sites].astype(float)
        return Data(self._sites.scaled[sites], counts, means, self._within[sites])

    def highest(self, region: Region) -> float:
        """The highest replicate mean in a region."""
        return float(self._mean[np.array(region.sites, np.int64)].max(initial=-np.inf))

    def spread_out(self, number: int) -> Data:
        """Replicate means of so many sites at most, each as far from those before as can be.

        The points played most lie around the best ones; a fit that looked at them alone would take
        the rest of the domain to be as flat.
        """
        played = np.array(list(self.home), dtype=np.int64)
        if len(played) > number:
            played = played[farthest(self._sites.scaled[played], number)]
        return self.data(played)

    def far_apart(self, number: int, scales: FloatArray) -> Data:
        """The same, without points very near to others, in lengthscales.

        Where values have no noise, those are foretold so well that the amplitude seems small.
        """
        played = np.array(list(self.home), dtype=np.int64)
        points = self._sites.scaled[played] / scales
        return self.data(played[farthest(points, min(number, len(points)), NEAR)])

    def find_noise(self) -> None:
        """See whether values at the same sites differ.

        If they do not, but for a little, replicates are counted once: as many values with hardly
        any noise, less than the model can have, would make the amplitude seem small. They are taken
        to have no noise if there are several replicates and no two sites have the same mean: values
        that are often the same by chance, as yes and no are, do not pass.
        """
        played = np.array(list(self.home), dtype=np.int64)
        again = played[self._sites.count[played] > 1]
        more = float((self._sites.count[again] - 1).sum())
        self._little = EXACT * float(np.var(self._mean[played]))
        self.agree = float(self._within[again].sum()) <= more * self._little
        differ = len(np.unique(self._mean[played])) == len(played) >= EXACT_SITES
        self.exact = self.agree and more >= EXACT_AGAIN and differ

    def cut(self, number: int, scales: FloatArray) -> bool:
        """Cut a region in two across its longest side, in lengthscales; whether that could be."""
        region = self.regions[number]
        points = self._sites.scaled[region.data]
        axis, first, second = region.split(scales, points, MOST_DATA, AROUND)
        if not first.sites or not second.sites:  # all on one side: keep halving that one
            full = first if first.sites else second
            if float((full.upper - full.lower).max()) < NARROWEST:
                return False
        self.regions[number] = first
        self._cuts.setdefault(number, []).append(
            (axis, float(second.lower[axis]), len(self.regions))
        )
        self.regions.append(second)
        for site in second.sites:
            self.home[site] = len(self.regions) - 1
        return True


def farthest(points: FloatArray, number: int, least: float = 0.0) -> IntArray:
    """Numbers of so many of the points (n, d), each as far from those before as can be.

    Fewer, where the next would be nearer than `least`.
    """
    chosen = [0]
    away = np.full(len(points), np.inf)
    while len(chosen) < number:
        away = np.minimum(away, ((points - points[chosen[-1]]) ** 2).sum(axis=1))
        found = int(np.argmax(away))
        if away[found] < least**2:
            break
        chosen.append(found)
    return np.array(chosen, dtype=np.int64)
