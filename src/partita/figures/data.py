"""What the figure of a run shows, as plain numbers and words.

Notation: n values, c checkpoints, k places along an axis, m evaluations that failed. NaN stands for
what is not known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from partita._types import BoolArray, FloatArray, IntArray

from .style import Limits


class Band(NamedTuple):
    """A mean and its bounds, (k,) each."""

    mean: FloatArray
    lower: FloatArray
    upper: FloatArray

    @property
    def has_mean(self) -> bool:
        """Whether there is a mean anywhere."""
        return bool(np.isfinite(self.mean).any())


class Place(NamedTuple):
    """A point of a panel."""

    x: float
    y: float


@dataclass(frozen=True, eq=False)
class Axis:
    """An axis of a panel; "whole" has its ticks at whole numbers."""

    name: str
    scale: Literal["linear", "log", "whole"] = "linear"
    limits: Limits | None = None  # None leaves them to Matplotlib
    words: tuple[str, ...] | None = None  # at 0, 1, 2, …, for what is not a number


@dataclass(frozen=True, eq=False)
class Progress:
    """The values of a run, and what was known at the checkpoints."""

    values: FloatArray  # (n,)
    evaluations: IntArray  # their number at each checkpoint, (c,)
    band: Band  # of the best point, (c,)
    certificate: FloatArray  # (c,)
    says: str = ""  # what the certificate says
    broken: BoolArray | None = None  # whether values break a constraint, (n,); None without any


@dataclass(frozen=True, eq=False)
class Curve:
    """A function along one axis."""

    axis: Axis
    at: FloatArray  # where the band is given, (k,)
    band: Band  # (k,)
    separate: bool  # whether the places are drawn one by one, not joined
    answer: Place
    dots: FloatArray  # places and values of evaluations, (n, 2)
    failed: FloatArray  # places of those that failed, (m,)
    edges: Sequence[float]  # places that divide cells


@dataclass(frozen=True, eq=False)
class Map:
    """A function over two axes."""

    across: Axis
    up: Axis
    x: FloatArray  # where the mean is given, (k,)
    y: FloatArray  # the same for the other axis, (l,)
    mean: FloatArray  # (l, k)
    smooth: bool  # whether to shade between those places
    low_is_good: bool
    answer: Place
    dots: FloatArray  # places of evaluations, (n, 2)
    failed: FloatArray  # places of those that failed, (m, 2)
    cells: FloatArray  # lower and upper corners, (cells, 2, 2)
    broken: BoolArray | None = None  # whether evaluations break a constraint, (n,)


@dataclass(frozen=True, eq=False)
class ArmMap:
    """Arms of two coordinates, with a number each."""

    points: FloatArray  # (n, 2)
    numbers: FloatArray  # (n,)
    what: str  # the numbers are
    low_is_good: bool
    answer: Place


@dataclass(frozen=True, eq=False)
class ArmBars:
    """Arms beside each other."""

    label: str  # of the axis
    at: FloatArray  # places on it, (n,)
    band: Band  # (n,)
    text: str  # what is drawn
    answer: Place | None = None


@dataclass(frozen=True, eq=False)
class Shares:
    """How much each of n parameters matters, with intervals: see `partita.optimize.importance`."""

    title: str
    text: str
    names: tuple[str, ...]
    total: Band  # (n,)
    first: Band  # (n,)


@dataclass(frozen=True, eq=False)
class Slices:
    """A function along several axes through the answer."""

    title: str
    text: str
    curves: tuple[Curve, ...]
    values: FloatArray  # of the run, (n,)


@dataclass(frozen=True, eq=False)
class Pairs:
    """A function along each of k axes, and over each pair of them."""

    title: str
    text: str
    curves: tuple[Curve, ...]  # (k,)
    values: FloatArray  # of the run, (n,)
    maps: Mapping[tuple[int, int], Map]  # of the mean, by the axes across and up: across < up
    widths: Mapping[tuple[int, int], FloatArray]  # half of what lies between bounds, as maps have
    left_out: tuple[str, ...]
    why: str  # they are left out


@dataclass(frozen=True, eq=False)
class Timeline:
    """When n evaluations were under way, in the order in which they were begun."""

    title: str
    text: str
    begun: FloatArray  # seconds, (n,)
    ended: FloatArray  # (n,)
    failed: BoolArray  # (n,)


@dataclass(frozen=True, eq=False)
class RunFigure:
    """The figure of a run: the answer, where it is, progress, and a view of the function.

    The function is seen along one axis, along several (slices), over two, or at arms.
    """

    title: str
    text: str
    progress: Progress
    view: Curve | tuple[Curve, ...] | Map | ArmMap | ArmBars


class Line(NamedTuple):
    """One line of a panel with its band, (k,) each, and its name."""

    name: str
    band: Band


@dataclass(frozen=True, eq=False)
class Choices:
    """A panel along a context: the value of the best choice, or one parameter of it."""

    axis: Axis
    lines: Sequence[Line]


@dataclass(frozen=True, eq=False)
class Along:
    """The best choice along one context: its value, then its parameters."""

    title: str
    text: str
    axis: Axis
    at: FloatArray  # (k,)
    separate: bool  # whether the places are drawn one by one, not joined
    panels: Sequence[Choices]
