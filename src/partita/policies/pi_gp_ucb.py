"""π-GP-UCB: Gaussian-process bandits on a partition. Janz, Burt & González, AISTATS 2020."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from partita._checks import as_positive, check_choice, check_flag, check_horizon
from partita.errors import InvalidInput, warn_theory
from partita.model.assumptions import Assumptions
from partita.model.domains import Arms, Box, Grid
from partita.model.kernels import Matern
from partita.model.noise import Noise
from partita.partition.cover import CLOSED_DIMS, Geometry, SplitRule, paper_cells_per_side
from partita.partition.engine import Engine
from partita.partition.lattice import default as default_lattice
from partita.partition.partition import Partition
from partita.partition.scores import TightenedBounds
from partita.partition.widths import MixtureWidth, PaperWidth, Width

from .checks import check_domain, check_kernel
from .ucb import UCBPolicy

#: Variances are accurate to about 1e−15, and the width divides them by alpha.
SMALLEST_ALPHA = 1e-10
#: With this many distinct points a cell splits even if its information gain is small (information
#: split).
POINT_LIMIT = 256
#: The largest number of arms per cell of the default first cover, unless that needs more than the
#: second number of cells, which is also the most that are created at once.
CELL_CANDIDATES = 1000
MOST_FIRST_CELLS = 100_000
#: A cell of a box splits where the deviation at a candidate is less than this part of what f can
#: differ by between candidates, both over B (information split).
FINENESS = 0.1
#: On a box, every how manyth evaluation is in the cell that holds the upper bound on max f.
CEILING_EVERY = 500
#: The largest dimension of a box in which all parts of a cell are created at once.
EXPLICIT_DIMS = 6
#: In a box of more dimensions a warning says what can be expected of bounds.
MANY_DIMS = 10


class PiGPUCB(UCBPolicy):
    """π-GP-UCB: GP-UCB on a partition, with proven bounds.

    By default the confidence width is tighter and cells split later than in the paper; both are
    proven. `PiGPUCB.paper` is the paper's version.

    Parameters
    ----------
    domain : Grid, Arms or Box
    horizon : int
        The planned number of evaluations. More are allowed, with a `TheoryWarning`.
    kernel : Matern
    norm_bound : float
        B, a bound on the norm of f in the kernel's space.
    noise : a noise model, such as Uniform(-1, 1), Gaussian(0.1) or SubGaussian(0.5)
    delta : float
        The probability with which any of the bounds may fail.
    seed : int
        Breaks ties; nothing else is random.
    alpha : float, optional
        The regulariser. Default: see `default_alpha`. The paper's width needs at least 1.
    width : "mixture" or "paper"
    split : "information", "count" or "optimal"
        "optimal" is the information split with ρ^(−2ν) points in the place of ρ^(−1/b), after
        Vakili & Olkhovskaya 2023: docs/core.md has an argument that its regret on finite domains
        meets the lower bound. No outside expert has reviewed that argument, so it is not the
        default.
    initial_cells : int, optional
        The number of cells per side of the first cover. Default: see `default_cells_per_side`.
    tightening : bool, optional
        Successive tightening: a cell's bounds of this width are never looser than the last ones
        of the cell it was split from. All these bounds hold at the same time, so the smallest one
        does. It needs the mixture width, and creates all parts of a cell at once, so a box may have
        at most six dimensions.
    index_slack : bool, optional
        On a box, use the bound on f over the whole cell (its candidates and the slack between them)
        instead of over its candidates only. The regret theorem on a box needs it; without it,
        regret is bounded relative to the best candidate. `certificate` always includes the slack.
    ceiling_every : int, optional
        On a box, every `ceiling_every`-th evaluation is in the cell whose bound on f, slack
        included, is the highest, so that the certificate converges; 0 for none. Fewer, such as 20,
        make it smaller sooner and lose more on the way. Without effect with `index_slack`, on
        finite domains and with the paper's width.

    Notes
    -----
    `tell(x, y, std=s)` says that the noise of this value is s-sub-Gaussian, where s may be smaller
    or larger than the constant L of `noise`. The value then has the regulariser α(s/L)², and all
    bounds still hold, also with the paper's width; docs/core.md has the proof. s must not depend on
    the value's own noise. An exact value, s = 0, is treated as s = L/1000, or larger if α(s/L)²
    would be below 1e−10.
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
        width: Literal["mixture", "paper"] = "mixture",
        split: Literal["information", "count", "optimal"] = "information",
        initial_cells: int | None = None,
        tightening: bool = False,
        index_slack: bool = False,
        ceiling_every: int = CEILING_EVERY,
    ) -> None:
        super().__init__(domain)
        self.horizon = check_horizon(horizon)
        self.kernel = check_kernel(kernel, domain)
        self._assume(Assumptions(self.kernel, norm_bound, noise, delta), seed)
        check_choice("width", width, ("mixture", "paper"))
        check_choice("split", split, ("information", "count", "optimal"))
        check_flag("index_slack", index_slack)
        period = check_period("ceiling_every", ceiling_every)
        check_flag("tightening", tightening)
        self.takes_fixed = not tightening
        if tightening and width == "paper":
            raise InvalidInput(
                'tightening=True: it is for width="mixture", whose bounds hold for every cell at '
                "all times."
            )
        if alpha is None:
            alpha = (
                1.0
                if width == "paper"
                else default_alpha(self.assumptions, domain.dim, self.horizon)
            )
        self.alpha = check_alpha(alpha)
        if width == "paper" and self.alpha < 1:
            raise InvalidInput(
                f"alpha={alpha}: the paper's width holds only for alpha of at least 1. "
                'Give alpha=1 or more, or width="mixture".'
            )
        rule = split_rule(domain, self.kernel.nu, self.horizon, initial_cells, split)
        confidence: Width = mixture_width(self.assumptions, self.alpha, rule)
        if width == "paper":
            confidence = PaperWidth(*self.assumptions.constants, domain.dim, self.kernel.nu)
            self.guarantee = "published"
        if self.kernel.nu <= 1:
            warn_theory(
                f"nu={self.kernel.nu}: the regret bound of π-GP-UCB is proven for nu > 1. "
                "The confidence bounds hold nevertheless."
            )
        self._engine = Engine(
            make_partition(domain, self.kernel, self.alpha, self.seed, rule, explicit=tightening),
            confidence,
            self.assumptions,
            index_slack,
            TightenedBounds(confidence) if tightening else None,
            tightening,
            0 if index_slack or width == "paper" else period,
        )
        if isinstance(domain, Box) and domain.dim > MANY_DIMS and 2**domain.dim > self.horizon:
            _warn_many_dims(self.kernel, self.assumptions.constants[0], domain.dim, self.horizon)

    @classmethod
    def paper(
        cls,
        domain: Grid | Arms | Box,
        *,
        horizon: int,
        kernel: Matern,
        norm_bound: float,
        noise: Noise,
        delta: float = 0.1,
        seed: int = 0,
        alpha: float | None = None,
    ) -> PiGPUCB:
        """The paper's algorithm: its width with Ñ_t, its count split, about T^q initial cells.

        `alpha` defaults to 1 + 2/T, as in the algorithm; the paper's experiments use 1.
        """
        steps = check_horizon(horizon)
        check_kernel(kernel, check_domain(domain))
        return cls(
            domain,
            horizon=steps,
            kernel=kernel,
            norm_bound=norm_bound,
            noise=noise,
            delta=delta,
            seed=seed,
            alpha=1 + 2 / steps if alpha is None else alpha,
            width="paper",
            split="count",
            initial_cells=paper_cells_per_side(steps, domain.dim, kernel.nu),
        )


def _warn_many_dims(kernel: Matern, bound: float, dim: int, horizon: int) -> None:
    """Warn that bounds of a box of many dimensions hold, but are wide."""
    corner = 0.25 * float(np.linalg.norm(1.0 / kernel.scales(dim)))
    slack = bound * math.sqrt(2.0 - 2.0 * float(kernel.radial(corner)))
    expected = f"about {slack:.3g}" if slack < bound else "about norm_bound less the best value"
    warn_theory(
        f"the box has {dim} dimensions: all bounds hold, but they are wide. f may differ by "
        f"{slack:.3g} between the centre and a corner of a cell of half the box's side, and there "
        f"are 2^{dim} such cells, more than the {horizon:,} evaluations. So expect a "
        f"certificate of {expected}. CalibratedUCB finds better points there, without a proof."
    )


# -- shared by policies on a partition -------------------------------------------------------------


def make_partition(
    domain: Grid | Arms | Box,
    kernel: Matern,
    alpha: float,
    seed: int,
    rule: SplitRule,
    explicit: bool = False,
) -> Partition:
    """An empty partition with the first cover of the rule."""
    if explicit and isinstance(domain, Box) and domain.dim > EXPLICIT_DIMS:
        raise InvalidInput(
            f"the box has {domain.dim} dimensions, but this policy creates all 2^d parts of a cell "
            f"at once, so it supports at most {EXPLICIT_DIMS}. Use PiGPUCB without tightening."
        )
    cells = rule.per_side**domain.dim
    if explicit and isinstance(domain, Box) and cells > MOST_FIRST_CELLS:
        raise InvalidInput(
            f"initial_cells={rule.per_side} gives {cells:,} cells in {domain.dim} dimensions, but "
            f"this policy creates all cells at once: give fewer, so that there are at most "
            f"{MOST_FIRST_CELLS:,}."
        )
    lattice = default_lattice(domain.dim) if isinstance(domain, Box) else None
    closed = domain.dim <= CLOSED_DIMS if lattice is None else lattice.closed
    geometry = Geometry(domain.dim, rule.per_side, closed)
    return Partition(domain, geometry, rule, kernel, alpha, seed, lattice, explicit)


def split_rule(
    domain: Grid | Arms | Box,
    nu: float,
    horizon: int,
    initial_cells: object,
    split: str = "information",
) -> SplitRule:
    """The splitting rule for a first cover of `initial_cells` per side; None for the default."""
    per_side = check_cells(initial_cells)
    if per_side is None:
        per_side = default_cells_per_side(domain, horizon, nu)
    if split == "count":
        return SplitRule(per_side, domain.dim, nu)
    power = 2 * nu if split == "optimal" else None
    limits = default_gain_limit(horizon), POINT_LIMIT, FINENESS
    return SplitRule(per_side, domain.dim, nu, *limits, power)


def mixture_width(assumptions: Assumptions, alpha: float, rule: SplitRule) -> MixtureWidth:
    """The mixture width for the first cover of the rule."""
    return MixtureWidth(*assumptions.constants, alpha, rule.dim, rule.per_side**rule.dim)


def check_alpha(alpha: object) -> float:
    """A regulariser, checked to be large enough for floating point."""
    number = as_positive("alpha", alpha)
    if number < SMALLEST_ALPHA:
        raise InvalidInput(
            f"alpha={alpha}: give at least {SMALLEST_ALPHA:g}, because of rounding errors."
        )
    return number


# -- defaults: fixed rules, chosen by measurement -------------------------------------------------


def default_alpha(assumptions: Assumptions, dim: int, horizon: int) -> float:
    """Regulariser of the mixture width: 20 d (L/B)², kept between 1e−4 and T/100 (or 1).

    The lower limit keeps fits stable, the upper one lets T observations outweigh the prior.

    The width is then √(B² + B²(γ + log(1/δ_A))/(10 d)), whatever the scale of f. On the paper's
    functions (T = 10,000) the factor of (L/B)² with the least regret was about 20, 40 and 80 for
    d = 1, 2, 3, with noise from a thirtieth of the paper's to five times it (`docs/core.md`).
    """
    norm_bound, sub_gaussian, _ = assumptions.constants
    return min(max(1e-4, 20 * dim * (sub_gaussian / norm_bound) ** 2), max(1.0, horizon / 100))


def default_gain_limit(horizon: int) -> float:
    """The information gain at which a cell splits: 0.8 log T · log log T, 16 for T = 10,000.

    Between 8 and 30 the regret hardly depends on it; a later split costs more time per evaluation.
    """
    steps = max(horizon, 16)
    return 0.8 * math.log(steps) * math.log(math.log(steps))


def default_cells_per_side(domain: Grid | Arms | Box, horizon: int, nu: float) -> int:
    """Cells per side of the first cover: 1 up to two dimensions, else 4, at most about T^q cells.

    There are more on a finite domain where a cell would have over a thousand arms.
    """
    per_side = 1 if domain.dim <= 2 else 4
    per_side = min(per_side, paper_cells_per_side(horizon, domain.dim, nu))
    if not isinstance(domain, Box):
        while (
            _most_arms(domain, per_side) > CELL_CANDIDATES
            and (per_side + 1) ** domain.dim <= MOST_FIRST_CELLS
        ):
            per_side += 1
    return per_side


def _most_arms(domain: Grid | Arms, per_side: int) -> int:
    """The largest number of arms in a cell of the first cover, without those on shared faces."""
    cells = np.minimum(np.floor(domain.unit_points * per_side), per_side - 1)
    return int(np.unique(cells, axis=0, return_counts=True)[1].max())


def check_period(name: str, value: object) -> int:
    """Every how manyth: a whole number, 0 for never."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise InvalidInput(f"{name}={value!r}: give a whole number of at least 1, or 0 for never.")
    return int(value)


def check_cells(initial_cells: object) -> int | None:
    """The number of cells per side of a first cover, or None for the default."""
    if initial_cells is None:
        return None
    if (
        isinstance(initial_cells, bool)
        or not isinstance(initial_cells, int | np.integer)
        or initial_cells < 1
    ):
        raise InvalidInput(
            f"initial_cells={initial_cells!r}: give the cells per side of the first cover, a whole "
            "number of at least 1."
        )
    return int(initial_cells)
