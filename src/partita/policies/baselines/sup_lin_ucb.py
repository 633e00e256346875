"""SupLinUCB: phased elimination for linear functions. Chu, Li, Reyzin & Schapire, AISTATS 2011."""

from __future__ import annotations

import numpy as np

from partita._checks import as_positive
from partita.gp.linear import (
    LinearPosterior,
    check_intercept,
    check_ridge,
    largest_norm,
    linear_features,
)
from partita.model.assumptions import Assumptions
from partita.model.domains import Arms, Grid
from partita.model.noise import Noise
from partita.policies.checks import check_finite

from .arms import Model
from .phased import PhasedPolicy


class SupLinUCB(PhasedPolicy):
    """Phased elimination for a linear function f(x) = ⟨θ, (x, c)⟩, ‖θ‖ ≤ B, on finitely many arms.

    SupLinRel (Auer 2002) with ridge regression for a model. Its regret bound, of order √(dT), has
    the best dependence on d; in practice `OFUL` is far better. A step costs the same whatever its
    number.

    Parameters
    ----------
    domain
        A `Grid` or `Arms`. Features are the coordinates in the user's own units.
    horizon
        The planned number of evaluations, T. The choice, the bounds and the regret bound depend on
        it.
    norm_bound
        B, a bound on ‖θ‖, constant included.
    noise
        The noise model.
    delta
        The probability that a bound may fail.
    seed
        Breaks ties.
    alpha
        The regulariser, 1 in Chu et al.
    intercept
        c, the constant feature; 0 for f(x) = θᵀx as in the paper.
    """

    state_version = 1

    def __init__(
        self,
        domain: Grid | Arms,
        *,
        horizon: int,
        norm_bound: float,
        noise: Noise,
        delta: float = 0.1,
        seed: int = 0,
        alpha: float = 1.0,
        intercept: float = 1.0,
    ) -> None:
        arms = check_finite(domain, "SupLinUCB")
        self.intercept = check_intercept(intercept)
        ridge = as_positive("alpha", alpha)
        self._features = linear_features(arms.points, self.intercept)
        check_ridge(ridge, largest_norm(self._features, arms.points))
        norms = np.sqrt(np.einsum("ij,ij->i", self._features, self._features))
        assumptions = Assumptions(None, norm_bound, noise, delta)
        super().__init__(arms, horizon, assumptions, seed, ridge, norms)

    def _new_model(self) -> Model:
        return LinearPosterior(self._features, self.alpha)
