"""Functions drawn from the posterior of a Gaussian process, to be evaluated at any points.

Pathwise conditioning (Wilson et al. 2020, "Efficiently sampling functions from Gaussian process
posteriors"): a draw of the prior, moved by what it misses the data by,
f(x) + k(x, X)(K + N)⁻¹(y − f(X) − ε). The draw of the prior is a sum of random waves (Rahimi and
Recht 2007); the update has the exact kernel.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from partita._threads import one_thread
from partita._types import FloatArray
from partita.errors import NumericalError

from . import _loops
from .data import Data
from .fitting import JITTER
from .settings import Settings

#: Waves that a draw of the prior is made of.
WAVES = 256
#: Data that cannot be factorised are tried with this much more noise, in squares of the amplitude.
MORE_NOISE = (0.0, 1e-6, 1e-4, 1e-2)


@dataclass(frozen=True, eq=False)
class Paths:
    """Draws of the posterior by data at P points; made by `draw_paths`.

    Attributes
    ----------
    settings
    scaled
        Points of the data over the lengthscales, (P, d).
    waves, phases
        Frequencies (d, W) and phases (W,) of the waves.
    heights
        Of the waves in each draw, (W, draws).
    weights
        Of the kernels to the data in each draw, (P, draws).
    """

    settings: Settings
    scaled: FloatArray
    waves: FloatArray
    phases: FloatArray
    heights: FloatArray
    weights: FloatArray

    def at(self, points: FloatArray) -> FloatArray:
        """The values (n, draws) of the drawn functions at points (n, d) of the unit cube."""
        scaled = points / self.settings.scales
        across = _loops.matern(scaled, self.scaled, self.settings.form)
        with one_thread():
            values = self._prior(scaled) + across @ self.weights
        return np.asarray(self.settings.mean + self.settings.amplitude * values)

    def _prior(self, scaled: FloatArray) -> FloatArray:
        return np.asarray(np.cos(scaled @ self.waves + self.phases) @ self.heights)


def draw_paths(
    data: Data, settings: Settings, random: np.random.Generator, draws: int, waves: int = WAVES
) -> Paths:
    """Functions drawn from the posterior by the data under settings of the identity shape."""
    from scipy.linalg import cho_factor, cho_solve

    scaled, d = data.points / settings.scales, data.points.shape[1]
    # A Matérn kernel's spectral density is that of Student's t with 2ν degrees of freedom.
    freedom = 2 * settings.form + 1
    stretch = np.sqrt(freedom / random.chisquare(freedom, waves))
    frequencies = random.standard_normal((d, waves)) * stretch
    phases = random.uniform(0.0, 2 * math.pi, waves)
    heights = random.standard_normal((waves, draws)) * math.sqrt(2 / waves)
    paths = Paths(settings, scaled, frequencies, phases, heights, np.zeros((len(scaled), draws)))
    noise = data.diagonal(settings.noise, settings.amplitude**2)
    values = (data.means - settings.mean) / settings.amplitude
    kernel = _loops.matern_among(scaled, settings.form)
    for more in MORE_NOISE:
        total = noise + more
        noisy = kernel + np.diag(total + JITTER)
        missed = values[:, None] - paths._prior(scaled)
        missed -= np.sqrt(total)[:, None] * random.standard_normal(missed.shape)
        try:
            with one_thread():
                weights = cho_solve(cho_factor(noisy, lower=True, check_finite=False), missed)
        except np.linalg.LinAlgError:
            continue
        return Paths(settings, scaled, frequencies, phases, heights, np.asarray(weights))
    raise NumericalError("the data could not be fitted: are values of very different sizes?")
