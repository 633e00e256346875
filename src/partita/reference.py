"""π-GP-UCB from the paper, line by line, in plain NumPy with inverse matrices: read it first.

Janz, Burt & González, "Bandit optimisation of functions in the Matérn kernel RKHS", AISTATS 2020.
Quotations below are theirs. The fast policies must choose the same sequence of points; they share
with this file only the geometry (`cover.py`), the kernel and the rule for ties.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from partita._types import FloatArray
from partita.model.domains import Arms, Grid
from partita.model.kernels import Matern
from partita.partition.cover import (
    CLOSED_DIMS,
    CellKey,
    Geometry,
    paper_cells_per_side,
    split_threshold,
)
from partita.partition.sites import arm_priorities, tie_resolution


@dataclass
class Reference:
    """The algorithm on a finite domain. `regulariser` is α, `norm_bound` B, `sub_gaussian` L."""

    domain: Grid | Arms
    horizon: int
    kernel: Matern
    norm_bound: float
    sub_gaussian: float
    delta: float = 0.1
    seed: int = 0
    regulariser: float | None = None
    cells_per_side: int | None = None
    observations: list[tuple[int, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        d, nu = self.domain.dim, self.kernel.nu
        if self.regulariser is None:
            self.regulariser = 1 + 2 / self.horizon
        # "For our method, π-GP-UCB, we use an initial partition A_1 of cardinality approximately
        # T^q."
        if self.cells_per_side is None:
            self.cells_per_side = paper_cells_per_side(self.horizon, d, nu)
        # The paper does not say which cells a point on a shared face belongs to. Here it belongs to
        # all that touch it; above six dimensions, where more than 64 can meet, to the upper one.
        self.geometry = Geometry(d, self.cells_per_side, closed=d <= CLOSED_DIMS)
        self.scaled = self.geometry.scale(self.domain.unit_points)
        self.cover: list[CellKey] = list(self.geometry.first_cells())
        self.splits = 0
        self.priority = arm_priorities(self.seed, self.domain.size)

    def ask(self) -> int:
        """The arm x_t that maximises UCB_t(x) = max_{A∋x} μ^A_{t−1}(x) + β^A_t σ^A_{t−1}(x)."""
        index = np.full(self.domain.size, -np.inf)
        for cell in self.cover:
            arms = np.flatnonzero(self.geometry.holds(cell, self.scaled))
            if len(arms):
                mean, std, gain = self.posterior(cell, arms)
                index[arms] = np.maximum(index[arms], mean + self.width(gain) * std)
        resolution = tie_resolution(self.norm_bound, self.sub_gaussian)
        rounded = np.rint(index * resolution)
        best = np.flatnonzero(rounded == rounded.max())
        return int(best[np.argmin(self.priority[best])])

    def tell(self, arm: int, value: float) -> None:
        """Add an observation and split.

        "Split any element A for which ρ_A^(−1/b) < |D_A| + 1 along the middle of each side."
        """
        self.observations.append((arm, value))
        while due := [cell for cell in self.cover if self.is_due(cell)]:
            for cell in due:
                self.cover.remove(cell)
                self.cover += [self.geometry.child(cell, i) for i in range(2**self.domain.dim)]
                self.splits += 1

    def is_due(self, cell: CellKey) -> bool:
        """The splitting rule."""
        arms = [arm for arm, _ in self.observations]
        inside = int(self.geometry.holds(cell, self.scaled[arms]).sum())
        per_side, d, nu = self.geometry.per_side, self.domain.dim, self.kernel.nu
        return split_threshold(per_side, cell[0], d, nu) < inside + 1

    def posterior(
        self, cell: CellKey, arms: npt.NDArray[np.int64]
    ) -> tuple[FloatArray, FloatArray, float]:
        """μ and σ at arms, and γ, "conditioned only on data within A"."""
        seen = np.array([arm for arm, _ in self.observations], dtype=int)
        values = np.array([value for _, value in self.observations])
        inside = self.geometry.holds(cell, self.scaled[seen])
        points, data, y = self.domain.unit_points, seen[inside], values[inside]
        if not len(data):
            return np.zeros(len(arms)), np.ones(len(arms)), 0.0
        k = self.kernel(points[arms], points[data])
        gram = self.kernel(points[data], points[data])
        alpha = float(self.regulariser or 1.0)
        inverse = np.linalg.inv(gram + alpha * np.eye(len(data)))
        mean = k @ inverse @ y
        variance = 1.0 - np.einsum("ij,jk,ik->i", k, inverse, k)
        gain = 0.5 * np.linalg.slogdet(np.eye(len(data)) + gram / alpha)[1]
        return mean, np.sqrt(np.maximum(variance, 0.0)), float(gain)

    def width(self, gain: float) -> float:
        """β^A_t = B + L √(2(γ^A + 1 + log(Ñ_t/δ))), Ñ_t = 4(t+1)^{bd}, before the t-th choice."""
        d, nu = self.domain.dim, self.kernel.nu
        b = (d + 1) / (d + 2 * nu)
        t = len(self.observations) + 1
        n_tilde = 4 * (t + 1) ** (b * d)
        return float(
            self.norm_bound
            + self.sub_gaussian * np.sqrt(2 * (gain + 1 + np.log(n_tilde / self.delta)))
        )
