"""Posteriors that are kept from ask to ask, and take in values one at a time.

A choice with coordinates fixed is made among points that no ask before had, so candidates cannot be
kept for it. The factor of the data can: it is made once for a region, and each value that comes is
one row more. After some rows it is made again.

Notation: K + D = L Lᵀ of the data with their noise. With the values since, L is [[L₀, 0], [B, L₁]].
"""

from __future__ import annotations

import math
from dataclasses import InitVar, dataclass

import numpy as np

from partita._state import Saved, State
from partita._types import FloatArray, IntArray
from partita.gp import _loops
from partita.gp.data import Data
from partita.gp.fitting import JITTER
from partita.gp.settings import Settings

from .model import Conditioned, Moments


def kernel_between(left: FloatArray, right: FloatArray, form: int) -> FloatArray:
    """Matérn kernel (n, m) between rows (n, d) and (m, d) divided by the lengthscales.

    It is `gp._loops.matern` up to the last bits, and faster: NumPy's exponentials are vectorised.
    """
    from scipy.spatial.distance import cdist

    z = cdist(left, right)
    z *= math.sqrt(3.0 if form == 1 else 5.0)
    decay = np.exp(-z)
    if form == 2:
        decay *= 1.0 + z * (1.0 + z / 3.0)
    else:
        decay *= 1.0 + z
    return np.asarray(decay)


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
        self._factor = np.asfortranarray(factor)
        solved = _solved(self._factor, self.targets[:base])
        self._values = np.concatenate([solved, np.empty(room)])  # L⁻¹ of the targets
        self._below, self._last = np.empty((room, base)), np.zeros((room, room))
        self._weights: FloatArray | None = None
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

    def add(self, site: int, point: FloatArray, target: float, noise: float) -> None:
        """Take in a value at a site, which is at a point (d,)."""
        row = self.used
        self.points[row], self.targets[row] = point, target
        self.noise[row] = max(noise, JITTER)
        self.scaled[row] = point / self.settings.scales
        if not (self.sites == site).any():
            self.sites, self.rows = np.append(self.sites, site), np.append(self.rows, row)
        self._append(row)

    def _append(self, row: int) -> None:
        """Make row `row` of the factor: ℓ = L⁻¹k, and √(1 + noise − ℓ·ℓ) on the diagonal."""
        base, m = self.base, row - self.base
        column = kernel_between(self.scaled[:row], self.scaled[row : row + 1], self.settings.form)
        solved = self.solve(column)[:, 0]
        rest = max(1.0 + float(self.noise[row]) - float(solved @ solved), JITTER)
        self._below[m], self._last[m, :m] = solved[:base], solved[base:]
        self._last[m, m] = math.sqrt(rest)
        left = float(self.targets[row]) - float(solved @ self._values[:row])
        self._values[row] = left / self._last[m, m]
        self.used, self._weights = row + 1, None

    def solve(self, across: FloatArray) -> FloatArray:
        """V = L⁻¹ `across`, (used, n), where `across` (used, n) is the kernel to the data."""
        base, m = self.base, self.used - self.base
        above = _solved(self._factor, across[:base])
        if not m:
            return above
        rest = across[base:] - self._below[:m] @ above
        return np.concatenate([above, _solved(self._last[:m, :m], rest)])

    @property
    def weights(self) -> FloatArray:
        """(K + D)⁻¹ of the targets, (used,): a mean is the kernel to the data times these."""
        if self._weights is None:
            base, m = self.base, self.used - self.base
            values, last = self._values[: self.used], np.empty(0)
            if m:
                last = _solved(self._last[:m, :m], values[base:], transposed=True)
            rest = values[:base] - last @ self._below[:m]
            first = _solved(self._factor, rest, transposed=True)
            self._weights = np.concatenate([first, last])
        return self._weights

    def means(self) -> FloatArray:
        """Means at the sites, (s,): K w = targets − D w."""
        used = self.used
        means = self.targets[:used] - self.noise[:used] * self.weights
        return np.asarray(means[self.rows])

    def across(self, points: FloatArray) -> FloatArray:
        """The kernel (n, used) between points (n, d) and the data."""
        scaled = points / self.settings.scales
        return kernel_between(scaled, self.scaled[: self.used], self.settings.form)

    def spread(self, across: FloatArray) -> FloatArray:
        """Upper bounds (n,) on the variances where the kernel to the data is `across` (n, used).

        They are the variances by one row of the data alone, the best.
        """
        told = across * across
        told *= 1.0 / (1.0 + self.noise[: self.used])
        return np.asarray(1.0 - told.max(axis=1))

    def moments(self, across: FloatArray) -> Moments:
        """Means and variances where the kernel to the data is `across` (n, used)."""
        rows = self.solve(across.T)
        variance = np.maximum(1.0 - np.einsum("ij,ij->j", rows, rows), 0.0)
        return Moments(np.asarray(self._values[: self.used] @ rows), variance, rows)

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


def _solved(factor: FloatArray, right: FloatArray, transposed: bool = False) -> FloatArray:
    """L⁻¹ or L⁻ᵀ of `right` (n,) or (n, m).

    LAPACK's own function: SciPy's `solve_triangular` takes longer to check its arguments than that
    takes for so few numbers. Callers limit the threads.
    """
    from scipy.linalg.lapack import dtrtrs

    if not right.size:
        return right
    solved, info = dtrtrs(factor, right, lower=1, trans=int(transposed))
    assert info == 0, "the factor has a positive diagonal"
    return np.asarray(solved)
