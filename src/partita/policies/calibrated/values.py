"""What has been told: the replicate sums that the model sees."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from partita._state import Saved, State
from partita._types import FloatArray, IntArray
from partita.gp.data import Data
from partita.gp.shapes import IDENTITY, Shape
from partita.partition.sites import ArmSites, BoxSites

#: Values at the same site agree if they differ by less than this part of the variance between
#: sites, on average. They have no noise if at least EXACT_AGAIN replicates at EXACT_SITES do.
EXACT, EXACT_AGAIN, EXACT_SITES = 4e-6, 3, 4
#: Values that are compared with each other, at most.
MOST_COMPARED = 1024
#: Means this many interquartile ranges from the middle half say nothing of how much f varies.
FAR_OUT = 10.0
#: Noise that was told to be less than this is taken for this: its square must not vanish.
LEAST_STD = 1e-140
#: No saved sum of squares or precision is larger.
MOST_SQUARES = 1e306
#: The arrays of `Sums`, of integers and of floats.
_WHOLES = ("count", "changes", "known")
_REALS = ("_mean", "_known_mean", "_within", "_precision")


def _whole() -> IntArray:
    return np.zeros(0, np.int64)


def _real() -> FloatArray:
    return np.zeros(0)


@dataclass(eq=False)
class Sums:
    """Count, mean and sum of squares about the mean of the values at each site.

    Values whose noise was told have sums of their own: their precision, one over the variance, and
    the mean that it weights.
    """

    _sites: ArmSites | BoxSites
    #: Values at each site, (n,), and how often its sums have changed, (n,).
    count: IntArray = field(default_factory=_whole)
    changes: IntArray = field(default_factory=_whole)
    _mean: FloatArray = field(default_factory=_real)
    _within: FloatArray = field(default_factory=_real)
    #: Values whose noise was told at each site, (n,), and whether some of it is not none.
    known: IntArray = field(default_factory=_whole)
    _precision: FloatArray = field(default_factory=_real)
    _known_mean: FloatArray = field(default_factory=_real)
    _told_noise: bool = False
    #: The first values, at most MOST_COMPARED, and how many of them there were.
    _distinct: set[float] = field(default_factory=set)
    _compared: int = 0
    #: Whether values at the same site have been the same so far, so that one counts for all.
    agree: bool = False
    #: Whether values are taken to have no noise: they agree at several sites.
    exact: bool = False
    #: Squares about a site's mean, for each of its values, that are taken for none, if seen
    #: through this shape.
    _little: float = 0.0
    _shape: Shape = IDENTITY

    def state(self) -> State:
        """The sums as plain data."""
        n = int(self.changes.nonzero()[0].max(initial=-1)) + 1  # those after have no values
        arrays = {name: getattr(self, name)[:n].copy() for name in (*_WHOLES, *_REALS)}
        return {
            **arrays,
            "told_noise": self._told_noise,
            "distinct": np.array(sorted(self._distinct), dtype=float),
            "compared": self._compared,
            "agree": bool(self.agree),
            "exact": bool(self.exact),
            "little": float(self._little),
            "shape": self._shape.state(),
        }

    def restore(self, saved: Saved) -> None:
        """Restore saved sums, at sites that are there already."""
        self.count = saved.wholes("count", (None,))
        shape = (len(self.count),)
        saved.require(len(self.count) <= len(self._sites), "sums of sites that exist")
        self.changes, self.known = (saved.wholes(name, shape) for name in _WHOLES[1:])
        self._mean, self._known_mean = (saved.floats(name, shape) for name in _REALS[:2])
        self._within = saved.floats("_within", shape, 0.0, MOST_SQUARES)
        self._precision = saved.floats("_precision", shape, 0.0, MOST_SQUARES)
        saved.require(
            ((self._precision > 0) == (self.known > 0)).all(), "precisions of known noise"
        )
        self._told_noise = saved.flag("told_noise")
        self._compared = saved.integer("compared", 0, MOST_COMPARED)
        self._distinct = set(saved.floats("distinct", (None,)).tolist())
        saved.require(len(self._distinct) <= self._compared, "no more values than were compared")
        self.agree, self.exact = saved.flag("agree"), saved.flag("exact")
        self._little = saved.real("little", 0.0, MOST_SQUARES)
        self._shape = Shape.restored(saved.part("shape"))

    def _reserve(self, site: int) -> None:
        """Make room for a site."""
        size = len(self.count)
        if site >= size:
            more = max(64, size, site + 1 - size)
            for name in _WHOLES:
                setattr(self, name, np.append(getattr(self, name), np.zeros(more, np.int64)))
            for name in _REALS:
                setattr(self, name, np.append(getattr(self, name), np.zeros(more)))

    def add(self, site: int, value: float, std: float | None = None) -> None:
        """Record a value at a site, with its noise if that was told."""
        self._reserve(site)
        self.changes[site] += 1
        if self._compared < MOST_COMPARED:
            self._distinct.add(value)
            self._compared += 1
        if std is not None:
            self._add_known(site, value, std)
            return
        self.count[site] += 1
        # Welford's update: sums of large values, and squares, would cancel.
        away = value - self._mean[site]
        self._mean[site] += away / self.count[site]
        self._within[site] += away * (value - self._mean[site])
        self._note_disagreement(site)

    def add_repeated(self, site: int, mean: float, count: int, std: float) -> None:
        """Record `count` values at a site by their mean and sample deviation (ddof = 1)."""
        self._reserve(site)
        self.changes[site] += 1
        if self._compared < MOST_COMPARED:
            self._distinct.add(mean)
            # Values that agree are compared with each other; of others only the mean is known.
            self._compared += min(count, MOST_COMPARED - self._compared) if std == 0 else 1
        before = int(self.count[site])
        self.count[site] += count
        # Chan, Golub & LeVeque 1979: means and squares of two samples make those of both.
        away, share = mean - self._mean[site], count / (before + count)
        self._mean[site] += away * share
        more = (count - 1) * std**2 + away * away * before * share
        self._within[site] = min(self._within[site] + more, MOST_SQUARES)
        self._note_disagreement(site)

    def _note_disagreement(self, site: int) -> None:
        """Set `agree` and `exact` to False if the values at a site differ by too much."""
        if self.agree and self._within[site] > 0.0:
            squares = self._within[site] * self._shape.slope(float(self._mean[site])) ** 2
            if squares > self.count[site] * self._little:
                self.agree = self.exact = False

    def _add_known(self, site: int, value: float, std: float) -> None:
        precision = max(std, LEAST_STD) ** -2
        self.known[site] += 1
        self._precision[site] += precision
        self._known_mean[site] += (
            precision / self._precision[site] * (value - self._known_mean[site])
        )
        if std > 0:
            self._told_noise, self.exact = True, False

    @property
    def tied(self) -> bool:
        """Whether values are often equal, such as booleans or ratings."""
        return len(self._distinct) < 0.5 * self._compared

    def data(self, sites: IntArray) -> Data:
        """Replicate means of sites that have values, in the order of the sites.

        Sites with values of both kinds come again at the end, for those whose noise was told.
        """
        count, precision = self.count[sites], self._precision[sites]
        means, within = self._mean[sites], self._within[sites]
        if self.agree:
            count, within = np.minimum(count, 1), np.zeros(len(sites))
        known = np.full(len(sites), np.nan)
        if not precision.any():
            points, even = self._sites.scaled[sites], np.ones(len(sites))
            return Data(points, count.astype(float), means, within, even, known)
        only, both = (precision > 0) & (count == 0), (precision > 0) & (count > 0)
        known[only], means[only] = 1.0 / precision[only], self._known_mean[sites][only]
        again, more = sites[both], np.ones(int(both.sum()))
        return Data(
            self._sites.scaled[np.concatenate([sites, again])],
            np.concatenate([np.maximum(count, 1).astype(float), more]),
            np.concatenate([means, self._known_mean[again]]),
            np.concatenate([within, 0.0 * more]),
            np.ones(len(sites) + len(again)),
            np.concatenate([known, 1.0 / self._precision[again]]),
        )

    def points(self, sites: IntArray) -> FloatArray:
        """The points (n, d) of sites, in the unit cube."""
        return np.asarray(self._sites.scaled[sites])

    def told(self, site: int, value: float, std: float) -> Data:
        """Data of a single value at a site whose noise was told."""
        points, one = self._sites.scaled[site : site + 1], np.ones(1)
        variance = max(std, LEAST_STD) ** 2 * one
        return Data(points, one, value * one, 0.0 * one, one, variance)

    def last_steps(self, site: int, value: float, number: int = 1) -> Data:
        """Data of a site as they are, and as they were before the last values came, if there were.

        `number` values came, of which `value` is the mean. Replicates that agree are one.
        """
        data = self.data(np.array([site]))
        count = float(data.counts[0])
        if count <= number:
            return data.take(np.array([0]))
        both = data.take(np.array([0, 0]))
        both.counts[1], both.means[1] = (
            count - number,
            both.means[0] - number * (value - both.means[0]) / (count - number),
        )
        return both

    def highest(self, sites: IntArray) -> float:
        """The highest replicate mean of the sites."""
        means = np.where(self.count[sites] > 0, self._mean[sites], self._known_mean[sites])
        return float(means.max(initial=-np.inf))

    def detect_noise(self, sites: IntArray, shape: Shape) -> None:
        """Set `agree` and `exact` by the values at all sites that have some, seen through a shape.

        If values at the same site agree, replicates are counted once: many values with less noise
        than the model can have would make the amplitude seem small. They are taken to have no noise
        if there are several replicates and no two sites have the same mean: values that are often
        the same by chance, such as booleans, do not pass.
        """
        ours = sites[self.count[sites] > 0]
        if not len(ours):  # all noise was told
            self.agree = self.exact = not self._told_noise
            return
        means = self._mean[ours]
        again = self.count[ours] > 1
        replicates = float((self.count[ours][again] - 1).sum())
        within = self._within[ours][again] * shape.slope(means[again]) ** 2
        self._shape, self._little = shape, EXACT * _variance(shape.forward(means))
        self.agree = float(within.sum()) <= replicates * self._little
        differ = len(np.unique(means)) == len(ours) >= EXACT_SITES
        self.exact = self.agree and replicates >= EXACT_AGAIN and differ and not self._told_noise


def _variance(means: FloatArray) -> float:
    """The variance of means (n,), of which a few may be accidents."""
    low, high = np.quantile(means, [0.25, 0.75])
    away = FAR_OUT * (high - low)
    return float(np.var(np.clip(means, low - away, high + away) if away > 0 else means))
