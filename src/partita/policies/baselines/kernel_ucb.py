"""KernelUCB: kernel ridge regression and a width of its own. Valko et al., UAI 2013."""

from __future__ import annotations

import math

from partita._checks import check_horizon, check_scale
from partita.model.assumptions import Assumptions
from partita.model.domains import Arms, Grid
from partita.model.kernels import Matern
from partita.model.noise import Noise
from partita.partition.engine import Engine
from partita.partition.partition import one_cell
from partita.partition.widths import FixedWidth
from partita.policies.checks import check_finite, check_kernel
from partita.policies.pi_gp_ucb import check_alpha
from partita.policies.ucb import UCBPolicy


class KernelUCB(UCBPolicy):
    """KernelUCB: chooses the highest μ + (η/√α) σ over the arms, with constant η.

    The paper analyses it through SupKernelUCB, whose data are independent; here they are not, so
    the bounds are no more than an indication (`guarantee == "none"`).

    Parameters
    ----------
    domain : Grid or Arms
    horizon : int
        T, the planned number of evaluations.
    kernel : Matern
    norm_bound : float
        B, a bound on the norm of f.
    noise : a noise model
    delta : float
    seed : int
        Decides between equals.
    alpha : float
        The paper's γ, the regulariser of the ridge regression.
    exploration : float, optional
        The paper's η. Default: √α B + L √(2 log(2TN/δ)), N the number of arms, the width of a
        fixed design. With values in [−1, 1] (L = 1) the second term is the paper's η; the first is
        the bias of ridge regression.
    """

    guarantee = "none"
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
        exploration: float | None = None,
    ) -> None:
        arms = check_finite(domain, "KernelUCB")
        super().__init__(arms)
        self.horizon = check_horizon(horizon)
        self.kernel = check_kernel(kernel, arms)
        self._assume(Assumptions(self.kernel, norm_bound, noise, delta), seed)
        self.alpha = check_alpha(alpha)
        self.exploration = (
            math.sqrt(self.alpha) * self.norm_bound
            + self.sub_gaussian * math.sqrt(2 * math.log(2 * self.horizon * arms.size / self.delta))
            if exploration is None
            else check_scale("exploration", exploration)
        )
        partition = one_cell(arms, kernel, self.alpha, self.seed)
        width = FixedWidth(self.exploration / math.sqrt(self.alpha))
        self._engine = Engine(partition, width, self.assumptions)
