"""What to say where the data contradict the stated norm or noise."""

from __future__ import annotations

import math

from partita.errors import warn_theory


def warn_contradiction(reason: str = "") -> None:
    """Say that the data contradict the norm bound or the noise constant."""
    reason = reason or (
        "a lower bound on f exceeds an upper one: norm_bound or the noise constant is too small "
        "for this function"
    )
    warn_theory(
        f"{reason}. So the bounds do not hold. Give larger ones. (With both right this happens "
        "with probability delta at most.)"
    )


def noise_reason(stated: float, least: float) -> str:
    """That the noise constant is too small: it is at least `least`."""
    return (
        f"the noise constant of {stated:.3g} is too small: values told at the same points differ "
        f"as with one of at least {least:.3g}"
    )


def norm_reason(stated: float, least: float) -> str:
    """That the norm bound is too small: it is at least `least`."""
    return (
        f"no function of norm {stated:.3g} fits the data: norm_bound is too small, if the noise "
        f"constant is right. With this kernel it is at least {least:.3g}"
    )


def least_noise(scatter: float, repeats: int, delta: float) -> float:
    """The least noise constant with which values at the same points differ that much.

    Hsu, Kakade & Zhang 2012: if the noise is L-sub-Gaussian, the sum of squares is at most
    L²(n + 2√(nu) + 2u) with probability 1 − e^(−u); here e^(−u) is δ/n².
    """
    if repeats == 0:
        return 0.0
    rare = math.log(repeats**2 / delta)
    return math.sqrt(scatter / (repeats + 2.0 * math.sqrt(repeats * rare) + 2.0 * rare))
