"""IGP-UCB: one Gaussian process for the whole domain. Chowdhury & Gopalan, ICML 2017."""

from __future__ import annotations

from partita._checks import as_positive
from partita.errors import InvalidInput
from partita.model.assumptions import Assumptions
from partita.model.domains import Arms, Box, Grid
from partita.model.kernels import Matern
from partita.model.noise import Noise
from partita.partition.engine import Engine
from partita.partition.lattice import whole
from partita.partition.partition import one_cell
from partita.partition.widths import SingleCellWidth
from partita.policies.checks import check_kernel
from partita.policies.ucb import UCBPolicy

#: Candidates on a box, at most.
BOX_CANDIDATES = 1100
#: On a box, every how manyth evaluation is where the upper bound is highest on all of it.
PEAK_EVERY = 50


class IGPUCB(UCBPolicy):
    """Improved GP-UCB, the predecessor of π-GP-UCB: exact, on one cell that never splits.

    The posterior of all arms is kept exactly: as a full covariance up to a few thousand arms (the
    cost per evaluation is then constant), above that by rows or, on a grid, by convolution (the
    cost grows with t). On a box the candidates are a lattice of about a thousand points, and every
    50th evaluation is where the upper bound is highest on the whole box, as far as a search finds
    it: that point becomes a candidate, unless one is so near that f can hardly differ there.

    Parameters are those of `PiGPUCB`; `alpha` must be at least 1 for the width to hold. So is what
    `tell(x, y, std=s)` does with a value of known noise.
    """

    guarantee = "proven"
    takes_std = True
    state_version = 1

    def __init__(
        self,
        domain: Grid | Arms | Box,
        *,
        kernel: Matern,
        norm_bound: float,
        noise: Noise,
        delta: float = 0.1,
        seed: int = 0,
        alpha: float = 1.0,
    ) -> None:
        super().__init__(domain)
        self.takes_fixed = not isinstance(domain, Box)
        self.kernel = check_kernel(kernel, domain)
        self._assume(Assumptions(self.kernel, norm_bound, noise, delta), seed)
        self.alpha = as_positive("alpha", alpha)
        if self.alpha < 1:
            raise InvalidInput(
                f"alpha={alpha}: the width of IGP-UCB holds for alpha of at least 1 only."
            )
        lattice = whole(domain.dim, BOX_CANDIDATES) if isinstance(domain, Box) else None
        partition = one_cell(domain, kernel, self.alpha, self.seed, lattice)
        width = SingleCellWidth(*self.assumptions.constants)
        self._engine = Engine(partition, width, self.assumptions, ceiling_every=PEAK_EVERY)
