"""What the calibrated policy has learned: its settings, and posteriors under them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from partita._types import FloatArray, IntArray
from partita.errors import NumericalError
from partita.gp.fitting import Data, Fit, Fixed, Settings, first_settings, fit, profile

from .posterior import Conditioned, condition, simultaneous
from .values import Sums

#: Points that a fit looks at, at most.
FIT_POINTS = 200
#: Points nearer than this to others, in lengthscales, say little about the amplitude without noise.
NEAR = 0.1
#: Data that cannot be factorised are tried with this many times the noise.
MORE_NOISE = (10.0, 100.0)


class Model:
    """The settings, fitted to the sums of the sites; nothing else holds or writes them."""

    #: The most likely settings, and how far off they may be: the choice draws from these.
    fit: Fit
    #: The settings that answers come from.
    believed: Settings
    _sums: Sums
    _fixed: Fixed
    _delta: float

    def __init__(self, dim: int, sums: Sums, fixed: Fixed, delta: float) -> None:
        self._sums, self._fixed, self._delta = sums, fixed, delta
        self.fit = Fit(first_settings(dim, fixed), np.zeros((dim + 1, dim + 1)))
        self.believed = self.fit.best

    def learn(self, played: IntArray, restart: bool) -> bool:
        """Fit the settings to the values at all sites that have some; False if that failed.

        The search begins at the last settings, and afresh as well to `restart`.
        """
        if self._fixed.noise_std is None:
            self._sums.detect_noise(played)
        data, last = self._spread_out(played), self.fit
        if float(np.ptp(data.means)) == 0.0 and float(data.within.sum()) == 0.0:
            level = replace(last.best, mean=float(data.means[0]))  # flat: nothing else to learn
            self.fit, self.believed = replace(last, best=level), level
            return True
        exact = self._sums.exact
        try:
            self.fit = fit(data, last.best, self._fixed, restart, exact)
        except NumericalError:
            return False
        self.believed = best = self.fit.best
        if exact and self._fixed.amplitude is None:
            _, square = profile(self._far_apart(played), best.scales, best.noise, best.form)
            self.believed = replace(best, amplitude=max(math.sqrt(square), best.amplitude))
        return True

    def guess(self, played: IntArray, enough: bool) -> Settings:
        """Settings for answers while the first design is under way; nothing is learned.

        If there are `enough` values, they are fitted.
        """
        data, best, given = self._spread_out(played), self.fit.best, self._fixed
        width = float(np.ptp(data.means))
        if enough and width > 0:
            try:
                return fit(data, best, given, restart=True).best
            except NumericalError:
                pass
        free = given.amplitude is None and given.noise_std is None and width > 0
        amplitude = width if free else best.amplitude
        return replace(best, mean=float(data.means.mean()), amplitude=amplitude)

    def reach(self, settings: Settings) -> float:
        """Standard deviations of bounds that hold all over the domain."""
        return simultaneous(self._delta, settings.scales)

    def choosing(self, sites: IntArray, drawn: Settings) -> Conditioned:
        """The posterior by the values at sites, for the choice under drawn settings."""
        return self._condition(sites, drawn, self.fit.best, False)

    def answering(self, sites: IntArray, settings: Settings) -> Conditioned:
        """The posterior by the values at sites, for answers under given settings."""
        return self._condition(sites, settings, settings, self._sums.exact)

    def _condition(
        self, sites: IntArray, settings: Settings, overall: Settings, believed: bool
    ) -> Conditioned:
        """The posterior by the values at sites, with more noise where that is needed."""
        data = self._sums.data(sites)
        noise = settings.noise
        for tried in (noise, *(factor * noise + 1e-6 * factor for factor in MORE_NOISE)):
            try:
                noisy = replace(settings, noise=tried)
                return condition(data, noisy, overall, self._fixed, believed)
            except np.linalg.LinAlgError:
                continue
        raise NumericalError("the data could not be fitted: are values of very different sizes?")

    def _spread_out(self, played: IntArray) -> Data:
        """Replicate means of FIT_POINTS sites at most, each as far from those before as can be.

        The points played most lie around the best ones; a fit that looked at them alone would take
        the rest of the domain to be as flat.
        """
        data = self._sums.data(played)
        if len(played) <= FIT_POINTS:
            return data
        return self._sums.data(played[farthest(data.points, FIT_POINTS)])

    def _far_apart(self, played: IntArray) -> Data:
        """The same, without points very near to others, in lengthscales.

        Where values have no noise, those are foretold so well that the amplitude seems small.
        """
        points = self._sums.data(played).points / self.fit.best.scales
        return self._sums.data(played[farthest(points, min(FIT_POINTS, len(points)), NEAR)])


def farthest(points: FloatArray, number: int, least: float = 0.0) -> IntArray:
    """Numbers of `number` of the points (n, d), each as far from those before as can be.

    Fewer, where the next would be nearer than `least`.
    """
    chosen = [0]
    away = np.full(len(points), np.inf)
    while len(chosen) < number:
        away = np.minimum(away, ((points - points[chosen[-1]]) ** 2).sum(axis=1))
        next_one = int(np.argmax(away))
        if away[next_one] < least**2:
            break
        chosen.append(next_one)
    return np.array(chosen, dtype=np.int64)
