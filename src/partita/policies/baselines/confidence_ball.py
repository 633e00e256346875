"""ConfidenceBall: the first optimism for linear functions. Dani, Hayes & Kakade, COLT 2008."""

from __future__ import annotations

import math

import numpy as np

from partita._types import FloatArray, IntArray
from partita.gp.linear import LinearPosterior, linear_features
from partita.model.domains import Arms, Box, Grid
from partita.model.noise import Noise, reach

from .linear import LinearUCB

#: Every arm is a combination of the spanner with coefficients of at most this size.
SPANNER_LIMIT = 1.0 + 1e-6
#: Directions in which the arms vary less than this, in units of the widest, are rounding.
SPAN_TOLERANCE = 1e-10


class ConfidenceBall(LinearUCB):
    """ConfidenceBall₂, the predecessor of OFUL, for f(x) = ⟨θ, (x, c)⟩ with ‖θ‖ ≤ B.

    It chooses the highest φᵀθ̂ + √β_t‖φ‖_{A⁻¹}, with A = Σ b_i b_iᵀ + Σ φφᵀ, b_1, …, b_n a
    barycentric spanner of the arms (Awerbuch & Kleinberg 2004), n the dimension that they span, and
    β_t = max(128 n ln t ln(t²/δ), (8/3 ln(t²/δ))²). In coordinates of the spanner A starts as the
    identity, and every arm's coordinates are in [−1, 1].

    These constants make it explore almost uniformly for a long time: with n = 2, δ = 0.1 and two
    arms evaluated in turn the bounds say more than |f| ≤ R only from step 160,000 on. That is the
    algorithm, not a fault; `OFUL` is what to use.

    Parameters are those of `OFUL`; there is no regulariser to choose.

    Notes
    -----
    The paper has costs in [−1, 1]. Here values are in units of R = B·max ‖φ‖ plus the reach of the
    noise, so the second term of the index is R√β_t‖φ‖_{A⁻¹}.

    Deviates: noise that has no reach, such as Gaussian, counts with its constant L. The bounds hold
    all the same. In coordinates of the spanner |θ_i| = |f(b_i)| ≤ R, and ‖φ‖² ≤ n, so by Theorem 2
    of Abbasi-Yadkori et al. 2011 with α = 1 the radius L √(n ln t + 2 ln(1/δ)) + R√n is enough
    after t − 1 values; L ≤ R, and from t = 2 on R√β_t is larger than that.

    Deviates: β_2 stands for β_1, which has no factor n and can be too small for the bounds. The
    first choice is the same, since nothing is known yet.
    """

    guarantee = "proven"
    state_version = 1

    def __init__(
        self,
        domain: Grid | Arms | Box,
        *,
        norm_bound: float,
        noise: Noise,
        delta: float = 0.1,
        seed: int = 0,
        intercept: float = 1.0,
    ) -> None:
        super().__init__(domain, norm_bound, noise, delta, seed, intercept)
        # Noise without a limit counts with its constant: see the docstring.
        farthest = reach(noise)
        self._unit = self._range + (self.sub_gaussian if farthest == math.inf else farthest)
        spanner, self._to_spanner = barycentric_spanner(
            linear_features(self._points, self.intercept)
        )
        self._rank = len(spanner)
        self._model = LinearPosterior(self._features(self._points), 1.0)

    def _features(self, points: FloatArray) -> FloatArray:
        return linear_features(points, self.intercept) @ self._to_spanner

    def _width(self, t: int) -> float:
        """R√β_t, in the spanner's coordinates, where σ = ‖φ‖_{A⁻¹}."""
        t = max(t, 2)
        term = 2 * math.log(t) - math.log(self.delta)
        beta = max(128 * self._rank * math.log(t) * term, (8 / 3 * term) ** 2)
        return self._unit * math.sqrt(beta)


def barycentric_spanner(vectors: FloatArray) -> tuple[IntArray, FloatArray]:
    """Rows (n,) of `vectors` (m, p) that span them all, with coefficients in [−1, 1].

    Also the matrix (p, n) that takes any vector of their span to its coefficients. Awerbuch &
    Kleinberg 2004, Proposition 2.2 and figure 2: exchange a row for another while that makes the
    determinant larger. Deviates: we start from a pivoted QR factorisation and exchange where the
    gain is greatest; both save exchanges.
    """
    from scipy.linalg import qr

    left, sizes, right = np.linalg.svd(vectors, full_matrices=False)
    rank = int((sizes > SPAN_TOLERANCE * sizes[0]).sum())
    whitened = left[:, :rank]  # the same span and the same coefficients, well conditioned
    rows = np.array(qr(whitened.T, mode="economic", pivoting=True)[2][:rank], dtype=np.int64)
    while True:
        coefficients = whitened @ np.linalg.inv(whitened[rows])
        arm, place = divmod(int(np.abs(coefficients).round(9).argmax()), rank)
        if abs(coefficients[arm, place]) <= SPANNER_LIMIT:
            break
        rows[place] = arm
    return rows, (right[:rank].T / sizes[:rank]) @ np.linalg.inv(whitened[rows])
