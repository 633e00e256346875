"""Posteriors that are kept from ask to ask, and take in values one at a time.

A choice with coordinates fixed is made among points that no ask before had, so candidates cannot be
kept for it. The factor of the data can: it is made once for a region, and each value that comes is
one row more. After some rows it is made again.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass
from typing import NamedTuple

import numpy as np

from partita._state import Saved, State
from partita._types import FloatArray, IntArray
from partita.gp import _loops
from partita.gp.data import Data
from partita.gp.fitting import JITTER
from partita.gp.settings import Settings
from partita.policies.fixed import Fixing

from . import _loops as _slice_loops
from .factors import Looked, Rows, Screened, kernel_at, kernel_between, left, new_factor
from .model import Conditioned, Moments
from .regions import Region


class Hopeful(NamedTuple):
    """Squared distances of the data from a slice, in lengthscales, and the best sites near it."""

    toward: FloatArray  # (used,)
    points: FloatArray  # (b, d), best first
    hopes: FloatArray  # (b,), in amplitudes


@dataclass(eq=False)
class Kept:
    """The posterior of a region, by data and by the values since.

    The first rows are of `sites`, then there may be others for values whose noise was told. Sites
    that had no value then are added to `sites` as their values come; `rows` says where each is.
    """

    settings: Settings
    sites: IntArray  # (s,)
    rows: IntArray  # (s,) of the sites
    points: FloatArray  # (p, d) in the unit cube, and room for more
    targets: FloatArray  # (p,) values in amplitudes from the mean, and room
    noise: FloatArray  # (p,) variances of the values' noise over the amplitude's square, and room
    base: int  # rows that were factorised at once
    used: int  # rows in all
    factor: InitVar[FloatArray | None] = None  # L₀, if it has been made

    def __post_init__(self, factor: FloatArray | None) -> None:
        from scipy.linalg import cholesky

        room, base = len(self.points) - self.base, self.base
        self.scaled = self.points / self.settings.scales
        if factor is None:  # as `model.condition` does
            factor = _loops.matern_among(self.scaled[:base], self.settings.form)
            factor[np.diag_indices(base)] += self.noise[:base]
            factor = cholesky(factor, lower=True, overwrite_a=True, check_finite=False)
        self._factor = new_factor(factor, room)
        self._values = np.empty(base + room)  # L⁻¹ of the targets
        self._values[:base] = self._factor.solve(self.targets[:base, None])[:, 0]
        self._weights: FloatArray | None = None
        self._at: FloatArray | None = None
        again, self.used = self.used, base
        for row in range(base, again):
            self._append(row)

    @staticmethod
    def of(posterior: Conditioned, data: Data, sites: IntArray, square: float, room: int) -> Kept:
        """The posterior at sites by data of shaped values, with room for more.

        `square` is the square of the overall amplitude.
        """
        settings, base = posterior.settings, len(data.means)
        more = np.empty(room)
        targets = (data.means - settings.mean) / settings.amplitude
        noise = data.diagonal(settings.noise, square) + JITTER
        return Kept(
            settings,
            sites,
            np.arange(len(sites)),
            np.concatenate([data.points, np.empty((room, data.points.shape[1]))]),
            np.concatenate([targets, more]),
            np.concatenate([noise, more]),
            base,
            base,
            posterior.factor,
        )

    @property
    def full(self) -> bool:
        """Whether there is no room for another value."""
        return self.used >= len(self.points)

    @property
    def at(self) -> FloatArray:
        """The points (s, d) of the sites."""
        if self._at is None:
            self._at = self.points[self.rows]
        return self._at

    def add(self, site: int, point: FloatArray, target: float, noise: float) -> None:
        """Take in a value at a site, which is at a point (d,)."""
        row = self.used
        self.points[row], self.targets[row] = point, target
        self.noise[row] = max(noise, JITTER)
        self.scaled[row] = point / self.settings.scales
        if not (self.sites == site).any():
            self.sites, self.rows = np.append(self.sites, site), np.append(self.rows, row)
            self._at = None
        self._append(row)

    def _append(self, row: int) -> None:
        """Take row `row` into the factor."""
        noise, target = float(self.noise[row]), float(self.targets[row])
        self._factor.append(self.scaled, row, noise, target, self._values, self.settings.form)
        self.used, self._weights = row + 1, None

    @property
    def weights(self) -> FloatArray:
        """(K + D)⁻¹ of the targets, (used,): a mean is the kernel to the data times these."""
        if self._weights is None:
            self._weights = self._factor.weights(self._values[: self.used])
        return self._weights

    def means(self) -> FloatArray:
        """Means at the sites, (s,): K w = targets − D w."""
        used = self.used
        means = self.targets[:used] - self.noise[:used] * self.weights
        return np.asarray(means[self.rows])

    @property
    def compiled(self) -> bool:
        """Whether compiled loops are used."""
        return isinstance(self._factor, Rows)

    def hopeful(self, where: Fixing, number: int) -> Hopeful:
        """The `number` sites whose points, moved into a slice, are best: by their means here.

        f there differs from f here by a standard deviation of √(2 − 2k), k the kernel between the
        two points, which is taken off.
        """
        numbers, settings, used = where.numbers, self.settings, self.used
        row = where.values / settings.scales[numbers]
        if self.compiled:
            told = self.targets, self.noise, self.weights, self.rows
            toward, best, hopes = _slice_loops.hopeful(
                self.scaled[:used], numbers, row, settings.form, *told, number
            )
            return Hopeful(toward, self.at[best], hopes)
        away = self.scaled[:used, numbers] - row
        toward = (away * away).sum(axis=1)
        likeness = kernel_at(np.sqrt(toward[self.rows]), settings.form)
        hope = self.means() - np.sqrt(np.maximum(2.0 - 2.0 * likeness, 0.0))
        best = np.argsort(-hope, kind="stable")[:number]
        return Hopeful(toward, self.at[best], hope[best])

    def held(self, where: Fixing, region: Region) -> IntArray:
        """Which sites are in a slice and in a region: their numbers in `sites`, in order."""
        if self.compiled:
            corners = region.lower, region.upper
            numbers = _slice_loops.inside(self.at, where.numbers, where.values, *corners)
            return np.asarray(numbers)
        return np.flatnonzero(where.holds(self.at) & region.holds(self.at))

    def screen(
        self, points: FloatArray, where: Fixing, toward: FloatArray, width: float, least: float
    ) -> Screened:
        """Means at points (n, d) of a slice, and the variances that a choice needs.

        See `Factor.screen`; `toward` (used,) is what `hopeful` says of the slice.
        """
        free, used = where.free(points.shape[1]), self.used
        scaled = points[:, free] / self.settings.scales[free]
        noise, form = self.noise[:used], self.settings.form
        at = Looked(scaled, self.scaled[:used], free, toward, noise, form)
        return self._factor.screen(at, self.weights, width, least)

    def across(self, points: FloatArray) -> FloatArray:
        """The kernel (used, n) between the data and points (n, d)."""
        scaled = points / self.settings.scales
        return kernel_between(self.scaled[: self.used], scaled, self.settings.form)

    def moments(self, across: FloatArray) -> Moments:
        """Means and variances where the kernel to the data is `across` (used, n)."""
        rows = self._factor.solve(across)
        return Moments(np.asarray(self._values[: self.used] @ rows), left(rows), rows)

    # -- saved state -------------------------------------------------------------------------------

    def state(self) -> State:
        """The data, from which the factor is made again in the same way."""
        used = self.used
        return {
            "settings": self.settings.state(),
            "sites": self.sites,
            "rows": self.rows,
            "points": self.points[:used],
            "targets": self.targets[:used],
            "noise": self.noise[:used],
            "base": self.base,
            "room": len(self.points) - used,
        }

    @staticmethod
    def restored(saved: Saved, sites: int, dim: int, most: int, most_room: int) -> Kept:
        """The saved posterior, of at most `most` rows and with room for `most_room` more."""
        settings = Settings.restored(saved.part("settings"), dim)
        points = saved.floats("points", (None, dim), 0.0, 1.0)
        used = len(points)
        numbers = saved.numbers("sites", sites)
        rows = saved.wholes("rows", (len(numbers),), 0, used - 1)
        base = saved.integer("base", 1, min(used, most))
        room = saved.integer("room", 0, most_room)
        saved.require(used - base + room <= most_room, "few values since the factor was made")
        more = np.empty(room)
        try:
            return Kept(
                settings,
                np.array(numbers, dtype=np.int64),
                rows,
                np.concatenate([points, np.empty((room, dim))]),
                np.concatenate([saved.floats("targets", (used,)), more]),
                np.concatenate([saved.floats("noise", (used,), JITTER), more]),
                base,
                used,
            )
        except np.linalg.LinAlgError:
            saved.refuse("data that can be factorised does not hold")
