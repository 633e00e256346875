"""What certificates say, in words: a proof, or an estimate and how often such ones held."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from partita.policies.held import held_text
from partita.policies.optional import CERTAIN

if TYPE_CHECKING:
    from .trials import Trials

#: A point is described up to this number of parameters.
MOST_NAMED = 4
#: What kind of statement a certificate is, by the guarantee of its bounds.
ESTIMATE = "an estimate: "


def certificate_says(
    certificate: float, guarantee: str, other: str = "no other point is better"
) -> str:
    """What a certificate says; "not known" if it is infinite.

    Parameters
    ----------
    certificate
    guarantee
        That of the policy: see `Policy.guarantee`.
    other
        What it rules out, up to its size.
    """
    if math.isinf(certificate):
        return "not known"
    return f"{'' if guarantee in CERTAIN else ESTIMATE}{other} by more"


def such_held(certificate: float, guarantee: str, dim: int) -> str | None:
    """How often such certificates held in test runs; None for what was not measured, or is proven.

    Parameters
    ----------
    certificate, guarantee
        As for `certificate_says`.
    dim
        The number of coordinates of the space.
    """
    if guarantee != "calibrated" or math.isinf(certificate):
        return None
    return held_text(dim)


def gap_says(certificate: float, guarantee: str, trials: Trials) -> str | None:
    """Where a peak may hide that a certificate does not know of; None if it is proven, or infinite.

    Parameters
    ----------
    certificate, guarantee
        As for `certificate_says`.
    trials
        The evaluations.
    """
    if guarantee != "calibrated" or math.isinf(certificate):
        return None
    gap = trials.unexplored()
    if gap is None:
        return None
    named = isinstance(gap.params, dict)
    values = gap.params.items() if named else ((f"x[{i}]", v) for i, v in enumerate(gap.params))
    place = ", ".join(f"{name} = {value:.3g}" for name, value in values)
    around = f" around {place}" if len(gap.params) <= MOST_NAMED else ""
    return f"a ball {gap.width:.2g} of a side wide{around}, where a peak may hide"
