"""The exact Gaussian-process posterior on m candidates, however often each is evaluated.

Notation: m candidates, k of them with data, regulariser α. An observation of weight w has noise
variance α/w; w is 1 unless the noise of single values is known. Several observations of candidate j
are exactly one of their weighted mean ȳ_j, with the sum w_j of their weights: n evaluations of
weight 1 are one with noise variance α/n.

`DensePosterior` keeps the covariance of all candidates, (m, m): an observation is a rank-one
update, O(m²) whatever the number of observations. `rows.RowPosterior` serves tens of thousands of
candidates.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from partita._state import Saved, State, joined
from partita._threads import one_thread
from partita._types import FloatArray, IntArray
from partita.errors import NumericalError
from partita.model.kernels import Matern

from . import _loops

#: From this many conditioning points on, LAPACK beats our own loops.
FACTOR_FROM = 256
#: Rank-one updates before a dense posterior is computed afresh, so that rounding cannot pile up.
REFRESH_AFTER = 4096
#: How far a saved covariance of unit variance may be outside [−1, 1], by rounding.
ROUNDING = 1e-6


def lost(what: str) -> NumericalError:
    """The error for a variance that is negative beyond rounding."""
    return NumericalError(
        f"{what}: a posterior variance fell below zero. The regulariser alpha is too small for "
        "points this close together: give a larger alpha."
    )


class Prior:
    """The kernel between candidates, and between them and data, as a matrix or by columns.

    `points` (m, d) are divided by the lengthscales already; `matrix` may be given where it is
    known. `silent` (s, d) are points that may carry data but are no candidates; they are numbered
    from m on.
    """

    __slots__ = ("_kernel", "_matrix", "_points", "_silent")

    def __init__(
        self,
        kernel: Matern,
        points: FloatArray,
        matrix: FloatArray | None = None,
        silent: FloatArray | None = None,
    ) -> None:
        self._kernel, self._points, self._matrix, self._silent = kernel, points, matrix, silent

    def __len__(self) -> int:
        return len(self._points)

    @property
    def has_silent(self) -> bool:
        """Whether data may lie at points that are no candidates."""
        return self._silent is not None

    @property
    def kernel(self) -> Matern:
        """The kernel."""
        return self._kernel

    @property
    def points(self) -> FloatArray:
        """The candidates divided by the lengthscales, (m, d)."""
        return self._points

    def data(self, where: IntArray, across: bool = True) -> tuple[FloatArray, FloatArray]:
        """Kernel of points `where` (k,) with each other, (k, k), and the candidates, (k, m).

        The latter is left empty unless asked for.
        """
        if self._silent is None:
            held = self._points[where]
        else:
            held = np.concatenate([self._points, self._silent])[where]
        return (
            unit_kernel(self._kernel, held, held),
            unit_kernel(self._kernel, held, self._points[: None if across else 0]),
        )

    def matrix(self) -> FloatArray:
        """A new (m, m) matrix."""
        if self._matrix is not None:
            return np.asarray(self._matrix.copy())
        return unit_kernel(self._kernel, self._points, self._points)

    def column(self, j: int) -> FloatArray:
        """A new (m,) column: the kernel between candidate j and all candidates."""
        row = self._points[j : j + 1]
        return np.ravel(unit_kernel(self._kernel, row, self._points))


def unit_kernel(kernel: Matern, left: FloatArray, right: FloatArray) -> FloatArray:
    """Kernel between points (n, d) and (m, d) already divided by the lengthscales, (n, m)."""
    if kernel.closed_form >= 0:
        return np.asarray(_loops.matern(left, right, kernel.closed_form))
    from scipy.spatial.distance import cdist

    return kernel.radial(cdist(left, right))


def factorise(gram: FloatArray, noises: FloatArray) -> tuple[FloatArray, float]:
    """Factor of gram (k, k) plus diagonal noise (k,), overwriting it, and the information gain."""
    from scipy.linalg import LinAlgError, cholesky

    gram[np.diag_indices(len(gram))] += noises
    try:
        factor = cholesky(gram, lower=True, overwrite_a=True)
    except LinAlgError:
        raise lost("fit") from None
    return factor, float(np.log(np.diagonal(factor)).sum() - 0.5 * np.log(noises).sum())


def deviation(variance: FloatArray) -> FloatArray:
    """Standard deviations from variances (m,), which rounding may have put just below zero."""
    if variance.min() < -_loops.VARIANCE_TOLERANCE:
        raise lost("fit")
    return np.sqrt(np.maximum(variance, 0.0))


class Plan(Protocol):
    """Standard deviations as if pending evaluations had been observed; means are untouched."""

    std: FloatArray

    def add(self, j: int, times: int = 1) -> None:
        """Lower the standard deviation by `times` more evaluations of candidate j."""
        ...


class Posterior(Protocol):
    """What a cell needs of its posterior."""

    mean: FloatArray
    std: FloatArray
    gain: float

    def observe(self, j: int, value: float, weight: float = 1.0) -> None:
        """Condition on one value at candidate j, of noise variance α/weight."""
        ...

    def refit(
        self,
        prior: Prior,
        where: IntArray,
        values: FloatArray,
        weights: FloatArray,
        moments_only: bool = False,
    ) -> None:
        """Compute the posterior afresh from replicate means and weights at candidates `where`."""
        ...

    def wants_refit(self, distinct: int) -> bool:
        """Whether it is time to compute the posterior afresh."""
        ...

    def plan(self) -> Plan:
        """A plan with no pending evaluations yet."""
        ...

    @property
    def kept_numbers(self) -> int:
        """The number of entries of its covariance."""
        ...

    @property
    def is_cold(self) -> bool:
        """Whether it must be computed afresh before it can be updated or planned with."""
        ...

    def cool(self) -> None:
        """Give up the covariance, if it has one."""
        ...


def absorb(posterior: Posterior, j: int, value: float, distinct: int, weight: float = 1.0) -> bool:
    """Condition on a value at candidate j, or return False: it must be computed afresh.

    `distinct` is the number of candidates with data, this one included.
    """
    if posterior.wants_refit(distinct):
        return False
    try:
        posterior.observe(j, value, weight)
    except NumericalError:  # rounding, or too small an alpha: a fit from scratch tells
        return False
    return True


class DensePosterior:
    """Means (m,) and the full covariance (m, m) of the candidates."""

    __slots__ = ("_updates", "alpha", "cov", "gain", "mean", "std")

    def __init__(self, alpha: float) -> None:
        """Empty until its first `refit`."""
        self.alpha = alpha
        self.mean = np.zeros(0)
        self.std = np.zeros(0)
        self.cov: FloatArray | None = None
        self.gain = 0.0
        self._updates = 0

    def observe(self, j: int, value: float, weight: float = 1.0) -> None:
        """One rank-one update. The caller makes sure that the covariance is there (`refit`)."""
        gain = _loops.observe(self.mean, self.std, self.cov, j, value, self.alpha / weight)
        if gain == _loops.LOST:
            raise lost("observation")
        self.gain += gain
        self._updates += 1

    def refit(
        self,
        prior: Prior,
        where: IntArray,
        values: FloatArray,
        weights: FloatArray,
        moments_only: bool = False,
    ) -> None:
        """Posterior from replicate means `values` (k,) of `weights` (k,) at `where` (k,).

        With `moments_only`, the covariance is left out where it costs most of the work.
        """
        if len(prior) != len(self.mean):
            self.mean, self.std = np.zeros(len(prior)), np.ones(len(prior))
        self._updates = 0
        if moments_only and len(where) == 0:
            self.mean[:], self.std[:], self.cov, self.gain = 0.0, 1.0, None, 0.0
            return
        noises = self.alpha / weights
        if moments_only and len(where) < FACTOR_FROM:
            self._fit_moments(prior, where, values, noises)
            return
        if len(where) >= FACTOR_FROM or prior.has_silent:
            with one_thread():
                self._factor(prior, where, values, noises, moments_only)
            return
        self.cov = prior.matrix()
        self.mean[:] = 0.0
        gain = _loops.condition(self.mean, self.std, self.cov, where, values, noises)
        if gain == _loops.LOST:
            raise lost("fit")
        self.gain = float(gain)

    def _fit_moments(
        self, prior: Prior, where: IntArray, values: FloatArray, noises: FloatArray
    ) -> None:
        """Means, deviations and gain without the covariance, for few conditioning points."""
        k = len(where)
        gram, across = prior.data(where)
        gram[np.diag_indices(k)] += noises
        work = np.concatenate([gram, across, values[:, None]], axis=1)
        if not _loops.eliminate(work):
            raise lost("fit")
        rows = work[:, k:-1]
        self.cov = None
        self.mean[:] = np.einsum("i,ij->j", work[:, -1], rows)
        self.std[:] = deviation(1.0 - np.einsum("ij,ij->j", rows, rows))
        self.gain = float(np.log(np.diagonal(work)).sum() - 0.5 * np.log(noises).sum())

    def _factor(
        self,
        prior: Prior,
        where: IntArray,
        values: FloatArray,
        noises: FloatArray,
        moments_only: bool,
    ) -> None:
        from scipy.linalg import solve_triangular

        gram, across = prior.data(where)
        factor, self.gain = factorise(gram, noises)
        rows = solve_triangular(factor, across, lower=True, overwrite_b=True)
        self.mean[:] = solve_triangular(factor, values, lower=True) @ rows
        if moments_only:
            self.cov = None
            self.std[:] = deviation(1.0 - np.einsum("ij,ij->j", rows, rows))
        else:
            self.cov = prior.matrix()
            self.cov -= rows.T @ rows
            self.std[:] = deviation(np.diagonal(self.cov))

    def wants_refit(self, distinct: int) -> bool:
        """When the covariance was given up, or enough rank-one updates have been made."""
        return self.cov is None or self._updates >= REFRESH_AFTER

    def plan(self) -> Plan:
        """A copy of the covariance, to be lowered by pending evaluations."""
        if self.cov is None:
            raise AssertionError("plan() of a cold posterior")
        return _DensePlan(self.cov.copy(), self.std.copy(), self.alpha)

    @property
    def kept_numbers(self) -> int:
        """m², or 0 where the covariance was given up."""
        return 0 if self.cov is None else self.cov.size

    @property
    def is_cold(self) -> bool:
        """Whether the covariance was given up."""
        return self.cov is None

    def cool(self) -> None:
        """Give up the covariance."""
        self.cov = None


def dense_state(posteriors: list[DensePosterior]) -> State:
    """The state of several posteriors, in arrays for all of them."""
    return {
        "mean": joined(p.mean for p in posteriors),
        "std": joined(p.std for p in posteriors),
        "gain": np.array([p.gain for p in posteriors], dtype=float),
        "updates": np.array([p._updates for p in posteriors], dtype=np.int64),
        "warm": np.array([p.cov is not None for p in posteriors], dtype=bool),
        "cov": joined(p.cov for p in posteriors if p.cov is not None),
    }


def restore_dense(saved: Saved, posteriors: list[DensePosterior], sizes: list[int]) -> None:
    """Put posteriors of `sizes` candidates into their saved state."""
    number, ends, top = len(posteriors), np.cumsum(sizes)[:-1], 1.0 + ROUNDING
    warm = saved.flags("warm", (number,))
    squares = np.cumsum([m * m for m, kept in zip(sizes, warm.tolist(), strict=True) if kept])
    mean = np.split(saved.floats("mean", (sum(sizes),)), ends)
    std = np.split(saved.floats("std", (sum(sizes),), 0.0, top), ends)
    gain = saved.floats("gain", (number,), -ROUNDING).tolist()
    updates = saved.wholes("updates", (number,)).tolist()
    cov = saved.floats("cov", (int(squares[-1]) if len(squares) else 0,), -top, top)
    covs = iter(np.split(cov, squares[:-1]))
    for i, (posterior, m) in enumerate(zip(posteriors, sizes, strict=True)):
        posterior.mean, posterior.std = mean[i].copy(), std[i].copy()
        posterior.gain, posterior._updates = gain[i], updates[i]
        posterior.cov = next(covs).reshape(m, m).copy() if warm[i] else None


class _DensePlan:
    __slots__ = ("_alpha", "_cov", "std")

    def __init__(self, cov: FloatArray, std: FloatArray, alpha: float) -> None:
        self._cov, self.std, self._alpha = cov, std, alpha

    def add(self, j: int, times: int = 1) -> None:
        if _loops.shrink(self._cov, self.std, j, self._alpha / times) == _loops.LOST:
            raise lost("pending evaluation")
