"""The assumptions about a function and its noise, in one object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from partita._checks import check_delta, check_scale

from .kernels import Matern
from .noise import Noise, sub_gaussian_constant


class Constants(NamedTuple):
    """The constants of confidence widths: B, L and δ."""

    norm_bound: float
    sub_gaussian: float
    delta: float


@dataclass(frozen=True, slots=True)
class Assumptions:
    """The assumptions about the function that a policy optimises; None for unknown ones.

    Attributes
    ----------
    kernel
        The kernel whose reproducing-kernel Hilbert space (RKHS) contains f.
    norm_bound
        B, a bound on the norm of f in that space.
    noise
        The noise model of the values.
    delta
        The probability with which a bound may fail. If it is None, a policy uses its own default.
    """

    kernel: Matern | None = None
    norm_bound: float | None = None
    noise: Noise | None = None
    delta: float | None = None

    @property
    def complete(self) -> bool:
        """Whether nothing has to be learned, so that bounds can be proven."""
        return None not in (self.kernel, self.norm_bound, self.noise)

    @property
    def sub_gaussian(self) -> float:
        """L, the constant of the noise; an error if it is missing or out of range."""
        return check_scale("noise constant", sub_gaussian_constant(self.noise))

    @property
    def constants(self) -> Constants:
        """B, L and δ; an error if one is missing or out of range."""
        norm_bound = check_scale("norm_bound", self.norm_bound)
        return Constants(norm_bound, self.sub_gaussian, check_delta(self.delta))

    def keywords(self) -> dict[str, Any]:
        """The four assumptions as keywords of a policy."""
        return {
            "kernel": self.kernel,
            "norm_bound": self.norm_bound,
            "noise": self.noise,
            "delta": self.delta,
        }
