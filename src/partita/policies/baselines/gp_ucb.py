"""GP-UCB, with the widths of Srinivas, Krause, Kakade & Seeger, ICML 2010."""

from __future__ import annotations

import math
from typing import Literal

import numpy.typing as npt

from partita._checks import check_choice, check_delta, check_scale, check_seed
from partita._types import Prediction
from partita.errors import InvalidInput
from partita.gp.gains import GreedyGain
from partita.model.assumptions import Assumptions
from partita.model.domains import Arms, Grid
from partita.model.kernels import Matern
from partita.model.noise import Noise, SubGaussian, reach
from partita.partition.engine import Engine
from partita.partition.partition import one_cell
from partita.partition.widths import BayesianWidth, SrinivasWidth, Width
from partita.policies.checks import check_finite, check_kernel
from partita.policies.pi_gp_ucb import SMALLEST_ALPHA
from partita.policies.ucb import UCBPolicy


class GPUCB(UCBPolicy):
    """The Gaussian-process bandit that the others grew from.

    Parameters
    ----------
    domain : Grid or Arms
    kernel : Matern
    noise : a noise model
        Its constant L is the standard deviation of the model's noise. bound="rkhs" needs noise that
        is bounded: Uniform, Bounded or Bernoulli.
    norm_bound : float, optional
        B, for bound="rkhs" only.
    bound : "bayesian" or "rkhs"
        "bayesian": β_t = 2 log(|D| t² π²/(6δ)), right if f is drawn from the Gaussian process
        (Theorem 1). "rkhs": β_t = 2B² + 300 γ_t log³(t/δ), right for ‖f‖ ≤ B (Theorem 3); so wide
        that it explores uniformly for millions of steps. γ_t is bounded by greedy choice
        (`partita.theory.greedy_information_gain`), once a step.
    amplitude : float, optional
        Standard deviation of f under the prior, for bound="bayesian".
    delta, seed
        As in `PiGPUCB`.

    With bound="bayesian", `tell(x, y, std=s)` takes the standard deviation of a value's Gaussian
    noise where it is known. bound="rkhs" refuses it: γ_t there is the most that t values of noise L
    can tell, and quieter ones tell more.
    """

    state_version = 1

    def __init__(
        self,
        domain: Grid | Arms,
        *,
        kernel: Matern,
        noise: Noise,
        norm_bound: float | None = None,
        delta: float = 0.1,
        seed: int = 0,
        bound: Literal["bayesian", "rkhs"] = "bayesian",
        amplitude: float = 1.0,
    ) -> None:
        arms = check_finite(domain, "GPUCB")
        super().__init__(arms)
        self.kernel = check_kernel(kernel, arms)
        self.noise = noise
        self.bound = check_choice("bound", bound, ("bayesian", "rkhs"))
        self.delta = check_delta(delta)
        self.seed = check_seed(seed)
        self.amplitude = check_scale("amplitude", amplitude)
        deviation = Assumptions(noise=noise).sub_gaussian
        width: Width
        if self.bound == "bayesian":
            self.guarantee = "bayesian"
            self.takes_std = True
            size = self.amplitude
            self.alpha = _regulariser(deviation / size)
            width = BayesianWidth(size, arms.size, self.delta)
        else:
            self.guarantee = "published"
            if norm_bound is None:
                raise InvalidInput('bound="rkhs": give norm_bound as well.')
            size = self.norm_bound = check_scale("norm_bound", norm_bound)
            deviation = reach(noise)
            if deviation == math.inf:
                raise InvalidInput(
                    f'noise={noise!r}: bound="rkhs" is for noise that is bounded. Give Uniform, '
                    "Bounded or Bernoulli."
                )
            self.alpha = _regulariser(deviation)
            width = SrinivasWidth(size, self.delta, GreedyGain(self.kernel, arms, self.alpha))
        self.assumptions = Assumptions(self.kernel, size, SubGaussian(deviation), self.delta)
        partition = one_cell(arms, kernel, self.alpha, self.seed)
        self._engine = Engine(partition, width, self.assumptions, bounded=self.bound == "rkhs")

    def predict(self, X: npt.ArrayLike) -> Prediction:
        """Posterior and bounds at arms (n, d); deviations are those of f, amplitude and all."""
        got = super().predict(X)
        return got._replace(std=self.amplitude * got.std) if self.bound == "bayesian" else got


def _regulariser(ratio: float) -> float:
    """α from the noise's deviation over that of f under the prior."""
    if ratio**2 < SMALLEST_ALPHA:
        raise InvalidInput(
            f"the noise is {ratio:g} of the scale of f under the prior: below "
            f"{math.sqrt(SMALLEST_ALPHA):g} rounding would drown the posterior. Give noise with a "
            "larger constant."
        )
    return ratio**2
