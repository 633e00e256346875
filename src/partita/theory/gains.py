"""Information gain and effective dimension of given points, and the largest gain of any.

Notation: n points of the unit cube, K their kernel matrix, regulariser α; γ = ½ log det(I + K/α).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from partita._checks import as_number, as_positive, as_rows
from partita._threads import one_thread
from partita.domains import Arms, Box, Grid
from partita.errors import InvalidInput
from partita.kernels import Matern

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


class GainBounds(NamedTuple):
    """Bounds on the largest information gain of t points, t = 1, …, steps.

    `lower` (steps,) is the gain of the greedy points, numbers `chosen` (steps,); no t points of the
    set, repeated or not, have a gain above `upper` (steps,).
    """

    lower: FloatArray
    upper: FloatArray
    chosen: IntArray


def information_gain(
    kernel: Matern, points: Grid | Arms | npt.ArrayLike, alpha: float = 1.0
) -> float:
    """γ = ½ log det(I + K/α) of points (n, d) of the unit cube, or of all points of a domain.

    Janz et al. 2020, "Effective dimension". A point that occurs twice counts as two observations.
    """
    from partita.posterior import factorise

    rows = _points(kernel, points)
    regulariser = as_positive("alpha", alpha)
    if not len(rows):
        return 0.0
    with one_thread():
        return factorise(kernel(rows), np.full(len(rows), regulariser))[1]


def effective_dimension(
    kernel: Matern, points: Grid | Arms | npt.ArrayLike, alpha: float = 1.0
) -> float:
    """d̃ = Tr(K(K + αI)⁻¹) of points (n, d) of the unit cube, or of all points of a domain.

    Janz et al. 2020, "Effective dimension". Calandriello et al. 2019, Proposition 5:
    d̃ ≤ 2γ ≤ d̃ (1 + log(1 + ‖K‖/α)).
    """
    rows = _points(kernel, points)
    regulariser = as_positive("alpha", alpha)
    if not len(rows):
        return 0.0
    with one_thread():
        # Rounding puts the smallest eigenvalues of a kernel matrix on either side of 0.
        spectrum = np.maximum(np.linalg.eigvalsh(kernel(rows)), 0.0)
    return float((spectrum / (spectrum + regulariser)).sum())


def greedy_information_gain(
    kernel: Matern, points: Grid | Arms | npt.ArrayLike, alpha: float, steps: int
) -> GainBounds:
    """Bounds on the largest information gain of 1, …, `steps` points of a finite set.

    The lower bound comes from playing the point of largest variance each time. It is at least
    1 − 1/e of the largest, since the gain is submodular (Nemhauser, Wolsey & Fisher 1978; Srinivas
    et al. 2010). The upper bound is never above e/(e−1) times the lower: t points add to
    what s greedy ones have at most t times what the next greedy one adds, so
    γ_t ≤ γ_s + (t/2) log(1 + max σ²_s/α) for every s, and the smallest of these is taken.

    Parameters
    ----------
    kernel
        The kernel.
    points
        A finite domain, or points (m, d) of the unit cube. Each may be played any number of times.
    alpha
        The regulariser.
    steps
        How many points are played.
    """
    rows = _points(kernel, points)
    regulariser = as_positive("alpha", alpha)
    count = as_number(steps)
    if not (1 <= count < np.inf and count == int(count)):
        raise InvalidInput(f"steps={steps!r}: give a whole number of at least 1.")
    if not len(rows):
        raise InvalidInput(f"points has shape {rows.shape}: give at least one point.")
    greedy = GreedyGain(kernel, points, regulariser)
    greedy.play(int(count))
    upper = np.array([greedy(t) for t in range(1, int(count) + 1)])
    return GainBounds(np.array(greedy.gains[1:]), upper, np.array(greedy.chosen[: int(count)]))


class GreedyGain:
    """An upper bound on the largest information gain of t points of a finite set, for any t.

    See `greedy_information_gain`. Plays as far as it was asked, and remembers.
    """

    def __init__(self, kernel: Matern, points: Grid | Arms | npt.ArrayLike, alpha: float) -> None:
        from partita.partition import DENSE_LIMIT
        from partita.posterior import DensePosterior, Posterior, Prior
        from partita.rows import RowPosterior

        rows = _points(kernel, points)
        shape = (points.n,) * points.dim if isinstance(points, Grid) else None
        self._alpha = alpha
        self._prior = Prior(kernel, rows / kernel.scales(rows.shape[1]))
        dense = len(rows) <= DENSE_LIMIT
        self._posterior: Posterior = DensePosterior(alpha) if dense else RowPosterior(alpha, shape)
        self._counts = np.zeros(len(rows), dtype=np.int64)
        self._refit()
        #: Gain of the first t plays, t = 0, 1, …
        self.gains: list[float] = [0.0]
        #: The plays.
        self.chosen: list[int] = []
        #: What one more play after t adds at most.
        self._added = [self._largest()]

    def __call__(self, t: int) -> float:
        """A bound on the largest information gain of t points."""
        self.play(t)
        return float((np.array(self.gains[: t + 1]) + t * np.array(self._added[: t + 1])).min())

    def play(self, steps: int) -> None:
        """Play the point of largest variance until there are so many plays."""
        with one_thread():
            while len(self.chosen) < steps:
                if self._posterior.wants_refit(int(np.count_nonzero(self._counts))):
                    self._refit()
                best = int(np.argmax(self._posterior.std))
                self._posterior.observe(best, 0.0)
                self._counts[best] += 1
                self.chosen.append(best)
                self.gains.append(self._posterior.gain)
                self._added.append(self._largest())

    def _largest(self) -> float:
        return 0.5 * float(np.log1p(self._posterior.std.max() ** 2 / self._alpha))

    def _refit(self) -> None:
        played = np.flatnonzero(self._counts)
        counts = self._counts[played].astype(float)
        self._posterior.refit(self._prior, played, np.zeros(len(played)), counts)


def _points(kernel: object, points: Any) -> FloatArray:
    """Points (n, d) of the unit cube, once the kernel is known to fit them."""
    if not isinstance(kernel, Matern):
        raise InvalidInput(
            f"kernel={kernel!r}: give a kernel, such as Matern(nu=1.5, lengthscale=0.2)."
        )
    if isinstance(points, Box):
        raise InvalidInput(f"points={points!r}: a box has no end of points. Give a Grid or Arms.")
    finite = isinstance(points, Grid | Arms)
    rows = points.unit_points if finite else as_rows(points, "points")
    kernel.scales(rows.shape[1])
    return rows
