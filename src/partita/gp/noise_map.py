"""Where the noise is loud: its variance at each place, over the overall one.

A local estimate of the kind of restricted maximum likelihood. Notation as in `likelihood`: with
α = A⁻¹ × the residuals over the amplitude and v_j = τ r_j/n_j, E[α_j² v_j] = v_j [A⁻¹]_jj =: h_j if
the ratios r are right: what the residual of point j says of its noise counts h_j ≤ 1 of an
observation, and its n_j − 1 replicates one each. The ratio at x is what was observed over what was
expected of the points around x, each weighted by exp(−|x − x_j|²/2w²), and of PRIOR more at 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from partita._state import Saved, State
from partita._threads import one_thread
from partita._types import FloatArray

from . import _loops
from .data import Data
from .journal import Journal
from .likelihood import JITTER, loss_of, step_cost
from .settings import Fixed, Settings

#: Observations that the overall noise counts for at each place.
PRIOR = 10.0
#: Widths of the neighbourhood that are tried, in sides of the domain, times √d.
WIDTHS = (0.05, 0.1, 0.2)
#: The number of iterations for the ratios, and their range.
ROUNDS, LEAST, MOST = 3, 1e-4, 1e4
#: How much more likely the data must be with a map, in nats, beside its degrees of freedom.
EVIDENCE = 3.0


@dataclass(frozen=True)
class NoiseMap:
    """Ratios of the noise's variance; at points (n, d) of the unit cube."""

    points: FloatArray  # (P, d)
    observed: FloatArray  # (P,)
    expected: FloatArray  # (P,)
    width: float

    def at(self, points: FloatArray) -> FloatArray:
        """Ratios (n,) at points (n, d)."""
        observed, expected = self._around(points)
        return np.asarray(np.clip((PRIOR + observed) / (PRIOR + expected), LEAST, MOST))

    def state(self) -> State:
        """The map as plain data."""
        return {
            "points": self.points,
            "observed": self.observed,
            "expected": self.expected,
            "width": float(self.width),
        }

    @staticmethod
    def restored(saved: Saved, dim: int) -> NoiseMap:
        """The map that was saved."""
        points = saved.floats("points", (None, dim), 0.0, 1.0)
        observed, expected = (
            saved.floats(name, (len(points),), 0.0) for name in ("observed", "expected")
        )
        return NoiseMap(points, observed, expected, saved.real("width", 1e-3))

    def freedom(self) -> float:
        """Degrees of freedom: by how much the ratio of each point follows its own residual.

        That is how much more likely (in nats, Akaike's criterion) even noise is made by chance.
        """
        _, expected = self._around(self.points)
        return float((self.expected / (PRIOR + expected)).sum())

    def _around(self, points: FloatArray) -> FloatArray:
        """What was observed and expected around points (n, d), (2, n)."""
        args = points, self.points, self.observed, self.expected, self.width
        return np.asarray(_loops.gaussian_sums(*args))


def learn_map(
    data: Data, settings: Settings, fixed: Fixed, journal: Journal | None = None
) -> NoiseMap | None:
    """The map that makes shaped data most likely under given settings, None if none does.

    With a `journal`, it stops when that says so.
    """
    journal = Journal() if journal is None else journal
    even = data._replace(ratios=np.ones(len(data.means)))
    cost = 2.0 * step_cost(*data.points.shape)
    best, least = None, loss_of(even, settings, fixed, journal) - EVIDENCE
    with one_thread():
        for width in WIDTHS:
            ratios = even.ratios
            for _ in range(ROUNDS):
                given = even._replace(ratios=ratios)
                sums = journal.step(cost, partial(_sums_of, given, settings, width))
                ratios, one = sums[2], NoiseMap(data.points, sums[0], sums[1], _side(width, data))
            loss = loss_of(even._replace(ratios=ratios), settings, fixed, journal) + one.freedom()
            if loss < least:
                best, least = one, loss
    return best


def _sums_of(data: Data, settings: Settings, width: float) -> FloatArray:
    """What was observed and expected at the points, and the ratios there by that, (3, P)."""
    made = _map_of(data, settings, width)
    return np.stack([made.observed, made.expected, made.at(data.points)])


def _map_of(data: Data, settings: Settings, width: float) -> NoiseMap:
    """The map by the residuals and replicates of shaped data, under the ratios that they have."""
    from scipy.linalg import cho_factor, lapack

    scaled = data.points / settings.scales
    noisy = _loops.matern_among(scaled, settings.form)
    square = settings.amplitude**2
    noise = data.diagonal(settings.noise, square)
    noisy[np.diag_indices(len(noisy))] += noise + JITTER
    factor, _ = cho_factor(noisy, lower=True, overwrite_a=True, check_finite=False)
    inverse, _ = lapack.dpotri(factor, lower=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    weights = inverse @ (data.means - settings.mean) / settings.amplitude
    within = data.within / (square * settings.noise)
    unknown = np.isnan(data.known)
    observed = np.where(unknown, data.ratios * weights**2 * noise + within, 0.0)
    expected = np.where(unknown, np.diagonal(inverse) * noise + data.counts - 1.0, 0.0)
    return NoiseMap(data.points, observed, expected, _side(width, data))


def _side(width: float, data: Data) -> float:
    return width * math.sqrt(data.points.shape[1])
