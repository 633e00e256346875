"""Thompson sampling on the partition of π-GP-UCB."""

from __future__ import annotations

import math

import numpy as np

from partita._checks import check_horizon, check_scale
from partita.errors import InvalidInput
from partita.gp.rows import DENSE_LIMIT
from partita.model.assumptions import Assumptions
from partita.model.domains import Arms, Box, Grid
from partita.model.kernels import Matern
from partita.model.noise import Noise
from partita.partition.draws import PosteriorDraws
from partita.partition.engine import Engine

from .checks import check_kernel
from .pi_gp_ucb import check_alpha, default_alpha, make_partition, mixture_width, split_rule
from .ucb import UCBPolicy

#: Keeps the draws independent of a test function or noise drawn under the same seed.
STREAM = 3


class PiGPTS(UCBPolicy):
    """Thompson sampling: draws a function from the posterior of every cell and takes its maximum.

    The prior is that of the mixture width, GP(0, (L²/α)k), with Gaussian noise of standard
    deviation L, or s for a value with `std=s`. Bounds, `recommend` and `certificate` are those of
    `PiGPUCB`, which hold however points are chosen. No regret bound is known for draws this narrow;
    Chowdhury & Gopalan 2017 prove one for a single cell and draws widened by β ("GP-TS").

    Deviates: at each ask, only the cells that changed and `redraws` others, in turn, are drawn
    again, so that the cost does not grow with the number of cells; `redraws=None` draws all.

    Parameters are those of `PiGPUCB`, and:

    scale : float, optional
        A factor on the posterior's standard deviation in a draw.
    redraws : int or None, optional
        The number of cells drawn again at each ask, in addition to those that changed. With 0, a
        cell whose draw was low may never be evaluated again; 1, 2 and 8 have about the same regret
        (docs/algorithms.md).
    """

    guarantee = "proven"
    takes_std = True
    state_version = 1

    def __init__(
        self,
        domain: Grid | Arms | Box,
        *,
        horizon: int,
        kernel: Matern,
        norm_bound: float,
        noise: Noise,
        delta: float = 0.1,
        seed: int = 0,
        alpha: float | None = None,
        initial_cells: int | None = None,
        scale: float = 1.0,
        redraws: int | None = 2,
    ) -> None:
        super().__init__(domain)
        self.horizon = check_horizon(horizon)
        self.kernel = check_kernel(kernel, domain)
        self._assume(Assumptions(self.kernel, norm_bound, noise, delta), seed)
        self.scale = check_scale("scale", scale)
        self.redraws = _check_redraws(redraws)
        if alpha is None:
            alpha = default_alpha(self.assumptions, domain.dim, self.horizon)
        self.alpha = check_alpha(alpha)
        rule = split_rule(domain, self.kernel.nu, self.horizon, initial_cells)
        partition = make_partition(domain, self.kernel, self.alpha, self.seed, rule, explicit=True)
        most = max((len(cell.layout.sites) for cell in partition.leaves.values()), default=0)
        if most > DENSE_LIMIT:
            raise InvalidInput(
                f"a cell of the first cover has {most:,} arms, but draws are limited to "
                f"{DENSE_LIMIT:,}: give more initial_cells."
            )
        draws = PosteriorDraws(
            partition,
            self.scale * self.sub_gaussian / math.sqrt(self.alpha),
            np.random.default_rng([self.seed, STREAM]),
            self.redraws,
        )
        width = mixture_width(self.assumptions, self.alpha, rule)
        self._engine = Engine(partition, width, self.assumptions, scorer=draws)


def _check_redraws(redraws: object) -> int | None:
    if redraws is None:
        return None
    if isinstance(redraws, bool) or not isinstance(redraws, int | np.integer) or redraws < 0:
        raise InvalidInput(
            f"redraws={redraws!r}: give a whole number of at least 0, or None for all cells."
        )
    return int(redraws)
