"""OFUL: optimism for linear functions. Abbasi-Yadkori, Pál & Szepesvári, NeurIPS 2011."""

from __future__ import annotations

import math

from partita._checks import as_positive
from partita._types import FloatArray
from partita.gp.linear import LinearPosterior, check_ridge, linear_features
from partita.model.domains import Arms, Box, Grid
from partita.model.noise import Noise

from .linear import LinearUCB


class OFUL(LinearUCB):
    """Optimism in the face of uncertainty for a linear function f(x) = ⟨θ, (x, c)⟩, ‖θ‖ ≤ B.

    With A = αI + Σ φφᵀ and the ridge estimate θ̂ it chooses the highest φᵀθ̂ + r‖φ‖_{A⁻¹}, with
    r = L √(2 log(det(A)^{1/2} det(αI)^{−1/2}/δ)) + √α·B (Abbasi-Yadkori et al. 2011, Theorem 2): at
    all times at once, with probability at least 1 − δ, θ lies within r of θ̂. A step costs the same
    whatever its number.

    On a box it evaluates corners, where both its index and f are greatest, and `recommend` is a
    corner; values at other points can be reported, and predicted.

    Parameters
    ----------
    domain
        Where f may be evaluated; a `Box` of at most 12 dimensions. Features are the coordinates in
        the user's own units.
    norm_bound
        B, a bound on ‖θ‖, constant included.
    noise
        The noise model.
    delta
        The probability that a bound may fail.
    seed
        Breaks ties.
    alpha
        The regulariser α.
    intercept
        c, the constant feature; 0 for f(x) = θᵀx as in the paper.
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
        alpha: float = 1.0,
        intercept: float = 1.0,
    ) -> None:
        super().__init__(domain, norm_bound, noise, delta, seed, intercept)
        self.alpha = as_positive("alpha", alpha)
        check_ridge(self.alpha, self._largest)
        self._model = LinearPosterior(self._features(self._points), self.alpha)

    def _features(self, points: FloatArray) -> FloatArray:
        return linear_features(points, self.intercept)

    def _width(self, t: int) -> float:
        """r/√α, since σ = √α‖φ‖_{A⁻¹}; γ = ½ log det(A/α) is the logarithm of the ratio."""
        root = math.sqrt(2.0 * (self._model.gain - math.log(self.delta)))
        return self.sub_gaussian * root / math.sqrt(self.alpha) + self.norm_bound
