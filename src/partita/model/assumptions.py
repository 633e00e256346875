"""What is assumed of a function and its noise, in one value."""

from __future__ import annotations

from dataclasses import dataclass

from .kernels import Matern
from .noise import Noise


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What a policy is told of the function that it optimises; None for what it must learn.

    Attributes
    ----------
    kernel
        The kernel in whose space f lies.
    norm_bound
        B, a bound on the norm of f in that space.
    noise
        The noise of the values.
    delta
        Probability that a bound may fail.
    """

    kernel: Matern | None = None
    norm_bound: float | None = None
    noise: Noise | None = None
    delta: float = 0.1

    @property
    def complete(self) -> bool:
        """Whether nothing has to be learned, so that bounds can be proven."""
        return None not in (self.kernel, self.norm_bound, self.noise)
