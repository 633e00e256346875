"""Information gain and effective dimension of given points, and the largest gain of any.

Notation: n points of the unit cube, K their kernel matrix, regulariser α; γ = ½ log det(I + K/α).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from partita._checks import as_number, as_positive, as_rows
from partita._state import Saved, State
from partita._threads import one_thread
from partita._types import FloatArray, IntArray
from partita.errors import InvalidInput
from partita.model.domains import Arms, Box, Grid
from partita.model.kernels import Matern

from .posterior import DensePosterior, Prior, dense_state, factorise, restore_dense
from .rows import RowPosterior, new_posterior


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

    The lower bound comes from evaluating the point of largest variance each time. It is at least
    1 − 1/e of the largest, since the gain is submodular (Nemhauser, Wolsey & Fisher 1978; Srinivas
    et al. 2010). The upper bound is never above e/(e−1) times the lower: t points add to
    what s greedy ones have at most t times what the next greedy one adds, so
    γ_t ≤ γ_s + (t/2) log(1 + max σ²_s/α) for every s, and the smallest of these is taken.

    Parameters
    ----------
    kernel
        The kernel.
    points
        A finite domain, or points (m, d) of the unit cube. Each may be evaluated any number of
        times.
    alpha
        The regulariser.
    steps
        The number of evaluations.
    """
    rows = _points(kernel, points)
    regulariser = as_positive("alpha", alpha)
    count = as_number(steps)
    if not (1 <= count < np.inf and count == int(count)):
        raise InvalidInput(f"steps={steps!r}: give a whole number of at least 1.")
    if not len(rows):
        raise InvalidInput(f"points has shape {rows.shape}: give at least one point.")
    greedy = GreedyGain(kernel, points, regulariser)
    lower, upper = np.empty(int(count)), np.empty(int(count))
    chosen = np.empty(int(count), dtype=np.int64)
    for t in range(1, int(count) + 1):
        chosen[t - 1] = greedy.play()
        lower[t - 1], upper[t - 1] = greedy.gain, greedy(t)
    return GainBounds(lower, upper, chosen)


class GreedyGain:
    """An upper bound on the largest information gain of t points of a finite set, for growing t.

    See `greedy_information_gain`. Of the lines γ_s + t a_s, a_s the gain of one more evaluation,
    only those are kept that are lowest for some later t: a few, however many evaluations.
    """

    def __init__(self, kernel: Matern, points: Grid | Arms | npt.ArrayLike, alpha: float) -> None:
        rows = _points(kernel, points)
        shape = (points.n,) * points.dim if isinstance(points, Grid) else None
        self._alpha = alpha
        self._prior = Prior(kernel, rows / kernel.scales(rows.shape[1]))
        self._posterior = new_posterior(len(rows), alpha, shape)
        self._counts = np.zeros(len(rows), dtype=np.int64)
        self._plays = 0
        self._refit()
        self._lines: list[tuple[float, float]] = []
        self._add_line()

    @property
    def gain(self) -> float:
        """Information gain of the evaluations so far."""
        return self._posterior.gain

    def __call__(self, t: int) -> float:
        """A bound on the largest information gain of t points; t should not fall."""
        while self._plays < t:
            self.play()
        lines = self._lines
        while len(lines) > 1 and _at(lines[1], t) <= _at(lines[0], t):
            del lines[0]
        return _at(lines[0], t)

    def play(self) -> int:
        """Evaluate the point of largest variance, and return its number."""
        with one_thread():
            if self._posterior.wants_refit(int(np.count_nonzero(self._counts))):
                self._refit()
            best = int(np.argmax(self._posterior.std))
            self._posterior.observe(best, 0.0)
        self._counts[best] += 1
        self._plays += 1
        self._add_line()
        return best

    def _add_line(self) -> None:
        """Add the line of the evaluations so far, which is flatter than all before."""
        added = 0.5 * float(np.log1p(self._posterior.std.max() ** 2 / self._alpha))
        line, lines = (self._posterior.gain, added), self._lines
        while lines and lines[-1][1] <= added:  # no steeper after rounding: the lower one serves
            if lines[-1][0] <= line[0]:
                return
            lines.pop()
        while len(lines) > 1 and _crossing(lines[-2], line) <= _crossing(lines[-2], lines[-1]):
            lines.pop()
        lines.append(line)

    def state(self) -> State:
        """The evaluations, their posterior and the lines, as plain data."""
        posterior = self._posterior
        return {
            "counts": self._counts.copy(),
            "lines": np.array(self._lines).reshape(-1, 2),
            "dense": dense_state([posterior]) if isinstance(posterior, DensePosterior) else None,
            "by_rows": posterior.state() if isinstance(posterior, RowPosterior) else None,
        }

    def restore(self, saved: Saved) -> None:
        """Restore a saved state."""
        self._counts = saved.wholes("counts", (len(self._prior),), 0, 2**40)
        self._plays = int(self._counts.sum())
        lines = saved.floats("lines", (None, 2), 0.0)
        steeper = (np.diff(lines[:, 1]) < 0).all()
        saved.require(len(lines) and steeper, "lines that become flatter")
        self._lines = [(float(gain), float(added)) for gain, added in lines]
        if isinstance(self._posterior, DensePosterior):
            restore_dense(saved.part("dense"), [self._posterior], [len(self._prior)])
            saved.require(not self._posterior.is_cold, "a covariance")
        elif isinstance(self._posterior, RowPosterior):
            self._posterior.restore(saved.part("by_rows"), self._prior)

    def _refit(self) -> None:
        played = np.flatnonzero(self._counts)
        counts = self._counts[played].astype(float)
        self._posterior.refit(self._prior, played, np.zeros(len(played)), counts)


def _at(line: tuple[float, float], t: int) -> float:
    return line[0] + t * line[1]


def _crossing(steep: tuple[float, float], flat: tuple[float, float]) -> float:
    """From which t on the flatter of two lines is lower."""
    return (flat[0] - steep[0]) / (steep[1] - flat[1])


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
