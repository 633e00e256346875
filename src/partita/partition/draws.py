"""Draws from the posterior of a cell."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from partita._state import Saved, State, generator_state
from partita._threads import one_thread
from partita._types import FloatArray, IntArray
from partita.errors import NumericalError
from partita.gp.posterior import DensePosterior, factorise, unit_kernel

from .cell import Cell
from .partition import Partition
from .scores import Scores

#: Added to the diagonal of a prior, in steps, until its factor exists.
JITTERS = (0.0, 1e-12, 1e-10, 1e-8)
#: Below this noise of a replicate mean, Σ_D N⁻¹ would be rounding: Σ is known to about 1e−15.
SMALLEST_NOISE = 1e-9
#: Numbers kept in factors of priors, 8 bytes each; all are given up beyond that.
FACTOR_NUMBERS = 2**25
#: Candidates are rounded to this part of a lengthscale before cells are compared.
SAME_SHAPE = 2.0**36


class PosteriorDraws:
    """One function a cell, drawn from scale² times the covariance around the posterior mean.

    By Matheron's rule a draw costs O(m²), no factor of the posterior: with g a draw from the prior
    and e noise, s = μ + v (g − Σ_D N⁻¹(g_D + e)), where N = diag(α/w_j) is the noise of the
    replicate means, w_j their weight, and Σ_D the posterior covariance with the points D that have
    data, because Σ_D N⁻¹ = K_D (K_DD + N)⁻¹.
    """

    def __init__(
        self,
        partition: Partition,
        scale: float,
        random: np.random.Generator,
        redraws: int | None,
    ) -> None:
        self.redraws = redraws
        self._partition = partition
        self._scale = scale
        self._random = random
        #: Factors of priors by the shape of a cell, and shapes of cells without extras.
        self._factors: dict[bytes, FloatArray] = {}
        self._shapes: dict[Cell, bytes] = {}
        self._numbers = 0

    def scores(self, cell: Cell, std: FloatArray, t: int) -> Scores:
        """A draw at the candidates, with no width left to add."""
        with one_thread():
            draw = self._draw(cell)
        return Scores(cell.posterior.mean + self._scale * draw, np.zeros(len(draw)), 0.0)

    def forget(self, cell: Cell) -> None:
        """A cell is gone; its factor may serve another."""
        self._shapes.pop(cell, None)

    def __getstate__(self) -> dict[str, Any]:
        """State without the factors, which are computed again when they are needed."""
        return {**self.__dict__, "_factors": {}, "_shapes": {}, "_numbers": 0}

    def state(self) -> State:
        """The random generator; factors are computed again."""
        return {"random": generator_state(self._random)}

    def restore(self, saved: Saved) -> None:
        """Restore a saved generator."""
        saved.generator("random", self._random)

    def _draw(self, cell: Cell) -> FloatArray:
        """A draw from N(0, Σ) at the candidates, (m,)."""
        partition, posterior = self._partition, cell.posterior
        if not isinstance(posterior, DensePosterior):
            raise AssertionError("draws need a full covariance")
        white = self._random.standard_normal(len(posterior.mean))
        where, held = partition.data(cell)
        if len(where) and where[-1] >= len(white):  # data off the candidates: the rule lacks rows
            partition.warm(cell)
            return np.asarray(_factor(np.asarray(posterior.cov)) @ white)
        prior = np.asarray(self._prior_factor(cell) @ white)
        if not len(where):
            return prior
        noises = partition.alpha / partition.sites.weight_of(held)
        noisy = prior[where] + self._random.standard_normal(len(where)) * np.sqrt(noises)
        if noises.min() < SMALLEST_NOISE:
            return prior - self._regress(cell, where, noises, noisy)
        partition.warm(cell)
        return np.asarray(prior - (noisy / noises) @ np.asarray(posterior.cov)[where])

    def _regress(
        self, cell: Cell, where: IntArray, noises: FloatArray, values: FloatArray
    ) -> FloatArray:
        """K_D (K_DD + N)⁻¹ values at the candidates, (m,), by a solve."""
        from scipy.linalg import cho_solve

        gram, across = self._partition.candidates.prior(cell.layout).data(where)
        factor, _ = factorise(gram, noises)
        return np.asarray(cho_solve((factor, True), values) @ across)

    def _prior_factor(self, cell: Cell) -> FloatArray:
        """Factor of the kernel between a cell's candidates, one for all cells of a shape."""
        partition, lattice = self._partition, self._partition.lattice
        stays = lattice is None or len(cell.layout.sites) == len(
            lattice.offsets
        )  # no extras to change
        shape = self._shapes.get(cell) if stays else None
        points = None
        if shape is None:
            points = _offsets(partition, cell)
            shape = hashlib.blake2b(points.tobytes(), digest_size=16).digest()
            if stays:
                self._shapes[cell] = shape
        factor = self._factors.get(shape)
        if factor is None:
            points = _offsets(partition, cell) if points is None else points
            factor = _factor(unit_kernel(partition.kernel, points, points))
            if self._numbers + factor.size > FACTOR_NUMBERS:
                self._factors, self._numbers = {}, 0
            self._factors[shape] = factor
            self._numbers += factor.size
        return factor


def _offsets(partition: Partition, cell: Cell) -> FloatArray:
    """Candidates over lengthscales, from the first on; equal for cells that differ by a shift."""
    points = partition.kernel_points(partition.candidates.points(cell.layout))
    return np.asarray(np.rint((points - points[0]) * SAME_SHAPE) / SAME_SHAPE + 0.0)


def _factor(matrix: FloatArray) -> FloatArray:
    """Lower triangular factor of a covariance, (m, m), which rounding may have made singular."""
    from scipy.linalg import LinAlgError, cholesky

    for jitter in JITTERS:
        try:
            return np.asarray(
                cholesky(matrix + jitter * np.eye(len(matrix)), lower=True, check_finite=False)
            )
        except LinAlgError:
            continue
    raise NumericalError(
        "a draw from the posterior failed: candidates are too close together for the kernel. Give "
        "a shorter lengthscale or fewer points."
    )
