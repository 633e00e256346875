"""Confidence widths β: how many posterior standard deviations the bounds on f are wide.

Every width here is β = offset + factor·√(γ + constant(level) + clock(t)), with γ the information
gain of a cell, or 0 where the width does not count it: compiled loops compute it from these four.
`drifts` says whether it depends on t; if so it grows with t, and by no more for γ > 0 than for
γ = 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from partita._state import BadState, Saved, State
from partita.gp.gains import GreedyGain

from .cover import cell_exponent

#: No saved information gain is larger.
MOST_GAIN = 1e12


class Width:
    """A confidence width; a concrete one sets `offset` and `factor`, and says what it adds."""

    #: Whether it depends on t.
    drifts: ClassVar[bool] = False
    #: Whether γ is part of it.
    counts_gain: ClassVar[bool] = True
    #: The part that does not depend on the cell.
    offset: float
    #: The factor of the square root.
    factor: float

    def constant(self, level: int) -> float:
        """The part under the root that depends on the cell's level."""
        return 0.0

    def clock(self, t: int) -> float:
        """The part under the root that depends on the step."""
        return 0.0

    def log_inverse_delta(self, level: int) -> float | None:
        """log(1/δ_A) of a cell whose confidence set is that of `sets`; None where it is not."""
        return None

    def state(self) -> State:
        """What changes, as plain data: mostly nothing."""
        return {}

    def restore(self, saved: Saved) -> None:
        """Restore a saved state."""


def width_of(width: Width, gain: float, level: int, t: int) -> float:
    """β of a cell with information gain `gain` at a level, for choosing the t-th point."""
    counted = gain if width.counts_gain else 0.0
    root = math.sqrt(counted + width.constant(level) + width.clock(t))
    return width.offset + width.factor * root


@dataclass
class PaperWidth(Width):
    """β = B + L √(2(γ + 1 + log(Ñ_t/δ))), Ñ_t = 4(t+1)^{bd}. Janz et al. 2020, "Point selection".

    Needs a regulariser α ≥ 1. Ñ_t does not count every cell that could exist (two observations at
    the centre of the cube make 73 cells in three dimensions, where Ñ_2 = 36), hence the guarantee
    "published".
    """

    norm_bound: float
    sub_gaussian: float
    delta: float
    dim: int
    nu: float
    drifts: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.offset = self.norm_bound
        self.factor = self.sub_gaussian * math.sqrt(2.0)
        self._power = cell_exponent(self.dim, self.nu) * self.dim
        self._shift = 1.0 + math.log(4.0 / self.delta)

    def cell_count_bound(self, t: int) -> float:
        """Ñ_t = 4(t+1)^{bd}, the paper's bound on the number of cells by step t."""
        return 4.0 * math.pow(t + 1, self._power)

    def clock(self, t: int) -> float:
        """1 + log(Ñ_t/δ)."""
        return self._shift + self._power * math.log(t + 1)


@dataclass
class SingleCellWidth(Width):
    """β = B + L √(2(γ + 1 + log(1/δ))), for one cell. Chowdhury & Gopalan 2017, Theorem 2.

    For α ≥ 1 it is wider than `MixtureWidth` with the same γ, so it holds wherever that does.
    """

    norm_bound: float
    sub_gaussian: float
    delta: float

    def __post_init__(self) -> None:
        self.offset = self.norm_bound
        self.factor = self.sub_gaussian * math.sqrt(2.0)

    def constant(self, level: int) -> float:
        """1 + log(1/δ)."""
        return 1.0 + math.log(1.0 / self.delta)

    def log_inverse_delta(self, level: int) -> float:
        """log(1/δ): the one cell has all of it."""
        return math.log(1.0 / self.delta)


@dataclass
class MixtureWidth(Width):
    """β = √(B² + (2L²/α)(γ + log(1/δ_A))), with δ shared between cells by depth.

    Why it holds: mix the likelihood ratio over g ~ GP(0, (L²/α)k); Ville's inequality gives, at all
    times at once, ‖y−f‖² ≤ yᵀ(I+K/α)⁻¹y + L²(log det(I+K/α) + 2 log(1/δ)); add α‖f‖² ≤ αB² and
    complete the square. It is never wider than B + (L/√α)√(2γ + 2 log(1/δ)), and needs no α ≥ 1. A
    cell of level h over a first cover of C cells gets δ_A = δ·(6/π²)/((h+1)²·C·2^{dh}): summed over
    every cell that could exist this is δ, so the width does not depend on t and an untouched cell's
    index never changes.

    An observation whose noise is s_i-sub-Gaussian has weight w_i = (L/s_i)²: multiplied by √w_i its
    noise is L-sub-Gaussian. So α/w_i takes the place of α and nothing else changes, with
    γ = ½ log det(I + W^½KW^½/α). docs/core.md has the proof.
    """

    norm_bound: float
    sub_gaussian: float
    delta: float
    alpha: float
    dim: int
    first_cells: int
    _constants: list[float] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        self.offset = 0.0
        self.factor = self.sub_gaussian * math.sqrt(2.0 / self.alpha)

    def log_inverse_delta(self, level: int) -> float:
        """log(1/δ_A) for a cell of this level."""
        return (
            math.log(self.first_cells)
            + math.log(math.pi**2 / 6)
            + 2 * math.log(level + 1)
            + self.dim * level * math.log(2)
            - math.log(self.delta)
        )

    def constant(self, level: int) -> float:
        """log(1/δ_A) + B²α/(2L²)."""
        constants = self._constants
        while len(constants) <= level:
            constants.append(
                self.log_inverse_delta(len(constants)) + (self.norm_bound / self.factor) ** 2
            )
        return constants[level]


@dataclass
class FixedWidth(Width):
    """The same β forever, such as KernelUCB's η/√α. Valko et al. 2013."""

    value: float
    counts_gain: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self.offset = self.value
        self.factor = 0.0


@dataclass
class BayesianWidth(Width):
    """β_t = a √(2 log(|D| t² π²/(6δ))) for f ~ GP(0, a²k) on |D| arms.

    Srinivas et al. 2010, Theorem 1.
    """

    amplitude: float
    arms: int
    delta: float
    drifts: ClassVar[bool] = True
    counts_gain: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self.offset = 0.0
        self.factor = self.amplitude * math.sqrt(2.0)

    def constant(self, level: int) -> float:
        """log(|D| π²/(6δ))."""
        return math.log(self.arms) + math.log(math.pi**2 / 6) - math.log(self.delta)

    def clock(self, t: int) -> float:
        """2 log t."""
        return 2.0 * math.log(t)


@dataclass
class SrinivasWidth(Width):
    """β_t = √(2B² + 300 γ_t log³(t/δ)) for ‖f‖ ≤ B. Srinivas et al. 2010, Theorem 3.

    `largest_gain(t)` bounds γ_t, the largest information gain of t observations. It is called for
    t = 0, 1, … in turn. Results are kept, because t decreases when a pending point is cancelled,
    and bounds from observed values use a smaller t than the choice.
    """

    norm_bound: float
    delta: float
    largest_gain: Callable[[int], float]
    _gains: list[float] = field(default_factory=list, repr=False)
    drifts: ClassVar[bool] = True
    counts_gain: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self.offset = 0.0
        self.factor = 1.0

    def constant(self, level: int) -> float:
        """2B²."""
        return 2.0 * self.norm_bound**2

    def clock(self, t: int) -> float:
        """300 γ_t log³(t/δ)."""
        gains = self._gains
        while len(gains) <= t:
            gains.append(self.largest_gain(len(gains)))
        return 300.0 * gains[t] * math.log(t / self.delta) ** 3

    def state(self) -> State:
        """The bounds so far, and what the next ones come from."""
        if not isinstance(self.largest_gain, GreedyGain):
            raise BadState(f"{self.largest_gain!r} is not saved")
        return {"gains": np.array(self._gains, dtype=float), "greedy": self.largest_gain.state()}

    def restore(self, saved: Saved) -> None:
        """Go on from the bounds so far."""
        if not isinstance(self.largest_gain, GreedyGain):
            raise BadState(f"{self.largest_gain!r} is not saved")
        self._gains[:] = saved.floats("gains", (None,), 0.0, MOST_GAIN).tolist()
        self.largest_gain.restore(saved.part("greedy"))
