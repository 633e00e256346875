"""BKB: a Gaussian process on a sketch that is drawn for each evaluation. Calandriello et al. 2019.

Notation: N arms, S the m arms of the dictionary, z(x) = L⁻¹k_S(x) with K_S = LLᵀ (m,), n_i
evaluations of arm i, V = Σ_i n_i z_i z_iᵀ + αI (m, m). The paper's λ is α here, and its variances
are ours over α.
"""

from __future__ import annotations

import math

import numpy as np

from partita._checks import as_number, as_positive, check_horizon
from partita._state import LARGEST, Saved, State, generator_state
from partita._threads import one_thread
from partita._types import FloatArray, IntArray, Prediction
from partita.errors import InvalidInput, NumericalError
from partita.gp.posterior import unit_kernel
from partita.model.assumptions import Assumptions
from partita.model.domains import Arms, Grid
from partita.model.kernels import Matern
from partita.model.noise import Noise
from partita.policies.checks import check_finite, check_kernel
from partita.policies.pi_gp_ucb import check_alpha

from .arms import ArmsPolicy

#: Keeps the sketch independent of a test function or noise drawn under the same seed.
STREAM = 4
#: Added to the diagonal of K_S, so that arms close together do no harm.
JITTER = 1e-10


class BKB(ArmsPolicy):
    """Budgeted kernelised bandit: μ̃ + β̃σ̃ from a Nyström sketch of the arms evaluated so far.

    After each observation every evaluation of arm i enters the dictionary with probability
    min(1, q̄ σ̃²(i)/α), σ̃² before the observation. A step costs O(N m² + m³).

    Parameters
    ----------
    domain : Grid or Arms
    horizon : int
        T, the planned number of evaluations.
    kernel : Matern
    norm_bound : float
        B, a bound on the norm of f (the paper's F).
    noise : a noise model
    delta : float
    seed : int
        Draws the dictionary and decides between equals.
    alpha : float
        Regulariser (the paper's λ).
    accuracy : float
        The paper's ε: variances are right up to a factor (1+ε)/(1−ε).
    budget : float, optional
        The paper's q̄. Default: 6 (1+ε)/(1−ε) log(4T/δ)/ε², for which its Theorem 1 holds, some 900
        for T = 10,000: nearly every arm that was evaluated. A few units serve in practice and keep
        the dictionary small, but prove nothing (`guarantee == "none"`).
    """

    state_version = 1

    def __init__(
        self,
        domain: Grid | Arms,
        *,
        horizon: int,
        kernel: Matern,
        norm_bound: float,
        noise: Noise,
        delta: float = 0.1,
        seed: int = 0,
        alpha: float = 1.0,
        accuracy: float = 0.5,
        budget: float | None = None,
    ) -> None:
        arms = check_finite(domain, "BKB")
        self.horizon = check_horizon(horizon)
        self.kernel = check_kernel(kernel, arms)
        self._assume(Assumptions(self.kernel, norm_bound, noise, delta), seed)
        super().__init__(arms, arms.points, self.norm_bound)
        self.alpha = check_alpha(alpha)
        self.accuracy = as_number(accuracy)
        if not 0 < self.accuracy < 1:
            raise InvalidInput(f"accuracy={accuracy!r}: give a number between 0 and 1.")
        self._inflation = (1 + self.accuracy) / (1 - self.accuracy)
        needed = 6 * self._inflation * math.log(4 * self.horizon / self.delta) / self.accuracy**2
        self.budget = needed if budget is None else as_positive("budget", budget)
        self.guarantee = "published" if self.budget >= needed else "none"
        self._count = np.zeros(arms.size, dtype=np.int64)
        self._total = np.zeros(arms.size)
        self._scaled = arms.unit_points / kernel.scales(arms.dim)
        self._random = np.random.default_rng([self.seed, STREAM])
        self._dictionary = np.empty(0, np.int64)
        #: z of every arm, (m, N).
        self._embedding = np.empty((0, arms.size))
        self.mean = np.zeros(arms.size)
        self.std = np.ones(arms.size)
        self._width = self._width_of(0.0)

    @property
    def dictionary(self) -> IntArray:
        """The arms of the present dictionary, by number, (m,)."""
        return self._dictionary.copy()

    @property
    def dictionary_size(self) -> int:
        """m, how many arms the present dictionary has."""
        return len(self._dictionary)

    @property
    def width(self) -> float:
        """β̃ in our units: bounds are mean ± width · std.

        β̃_t = 2L √(ᾱ log(t) Σ_{s ≤ t} σ̃²_t(x_s)/α + log(1/δ)) + (1 + 1/√(1−ε)) √α B, over √α, with
        ᾱ = (1+ε)/(1−ε). Theorem 2 of the paper, κ = 1.
        """
        return self._width

    def _bounds(self) -> Prediction:
        reach = self._width * self.std
        return Prediction(self.mean, self.std, self.mean - reach, self.mean + reach)

    def _propose(self) -> tuple[int, FloatArray]:
        self._watch_horizon("the dictionary was sized for that")
        std = self._planned_std() if self._pending else self.std
        best = self._best(self.mean + self._width * std)
        return best, np.array(self._points[best])

    def _record(self, site: int, value: float, asked: bool, std: float | None = None) -> None:
        self._record_many(np.array([site]), np.array([value]))

    def _record_many(
        self, sites: IntArray, values: FloatArray, stds: FloatArray | None = None
    ) -> None:
        np.add.at(self._count, sites, 1)
        np.add.at(self._total, sites, values)
        with one_thread():
            self._dictionary = self._draw_dictionary()
            self._embed(self._dictionary)
            self._fit()

    def _released(self, site: int) -> None:
        pass

    def _state(self) -> State:
        return {
            **super()._state(),
            "count": self._count.copy(),
            "total": self._total.copy(),
            "dictionary": self._dictionary.copy(),
            "random": generator_state(self._random),
        }

    def _restore(self, saved: Saved) -> None:
        size = len(self._points)
        self._restore_plays(saved, self._points)
        self._count = saved.wholes("count", (size,))
        saved.require(int(self._count.sum()) == self._told, "all values")
        most = LARGEST * self._count.astype(float)
        self._total = saved.floats("total", (size,), -most, most)
        saved.generator("random", self._random)
        dictionary = saved.numbers("dictionary", size)
        saved.require(self._count[dictionary].all(), "a dictionary of evaluated arms")
        self._dictionary = np.array(dictionary, dtype=np.int64)
        if self._told:  # the rest follows
            with one_thread():
                self._embed(self._dictionary)
                self._fit()

    def _draw_dictionary(self) -> IntArray:
        """Arms of which at least one evaluation was drawn; each is drawn independently."""
        played = np.flatnonzero(self._count)
        chance = np.minimum(1.0, self.budget * self.std[played] ** 2 / self.alpha)
        with np.errstate(divide="ignore"):
            missed = np.exp(self._count[played] * np.log1p(-chance))
        kept = self._random.random(len(played)) >= missed
        return np.asarray(played[kept])

    def _embed(self, dictionary: IntArray) -> None:
        """z of every arm, (m, N)."""
        from scipy.linalg import LinAlgError, cholesky, solve_triangular

        held = self._scaled[dictionary]
        gram = unit_kernel(self.kernel, held, held)
        gram[np.diag_indices(len(held))] += JITTER
        try:
            factor = cholesky(gram, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            raise NumericalError(
                "the dictionary's kernel matrix is singular: arms are too close together for the "
                "kernel. Give a shorter lengthscale or fewer arms."
            ) from None
        across = unit_kernel(self.kernel, held, self._scaled)
        self._embedding = solve_triangular(
            factor, across, lower=True, overwrite_b=True, check_finite=False
        )

    def _fit(self) -> None:
        """Means, deviations and the width from the embedding and all data."""
        from scipy.linalg import cho_solve

        count, total = self._count, self._total
        played = np.flatnonzero(count)
        factor = self._precision_factor(count[played], played)
        z = self._embedding
        self.mean = cho_solve((factor, True), z[:, played] @ total[played]) @ z
        self.std = self._deviation(factor)
        self._width = self._width_of(float(count[played] @ self.std[played] ** 2))

    def _precision_factor(self, counts: IntArray, arms: IntArray) -> FloatArray:
        """Lower factor of V for these evaluations, (m, m)."""
        from scipy.linalg import cholesky

        z = self._embedding[:, arms]
        precision = (z * counts) @ z.T
        precision[np.diag_indices(len(z))] += self.alpha
        return np.asarray(cholesky(precision, lower=True, check_finite=False))

    def _deviation(self, factor: FloatArray) -> FloatArray:
        """σ̃ of every arm, σ̃² = 1 − zᵀz + α zᵀV⁻¹z."""
        from scipy.linalg import solve_triangular

        z = self._embedding
        half = solve_triangular(factor, z, lower=True, check_finite=False)
        variance = (
            1.0 - np.einsum("ij,ij->j", z, z) + self.alpha * np.einsum("ij,ij->j", half, half)
        )
        return np.asarray(np.sqrt(np.maximum(variance, 0.0)))

    def _planned_std(self) -> FloatArray:
        """Deviations as if pending evaluations had been observed."""
        counts = self._count.copy()
        for site, plays in self._pending_plays().items():
            counts[site] += plays
        arms = np.flatnonzero(counts)
        with one_thread():
            return np.asarray(self._deviation(self._precision_factor(counts[arms], arms)))

    def _width_of(self, variances: float) -> float:
        """β̃/√α from Σ_s σ̃²(x_s) over all observations."""
        gain = self._inflation * math.log(max(self._told, 1)) * variances / self.alpha
        noise = 2 * self.sub_gaussian * math.sqrt(gain + math.log(1 / self.delta))
        bias = (1 + 1 / math.sqrt(1 - self.accuracy)) * math.sqrt(self.alpha) * self.norm_bound
        return (noise + bias) / math.sqrt(self.alpha)
