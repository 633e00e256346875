"""What certificates say, in words: a proof, or an estimate and how often such ones held."""

from __future__ import annotations

import math

from partita.policies.held import held_text
from partita.policies.optional import CERTAIN

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
