"""An estimate, before a run begins, of how many evaluations a proven certificate takes."""

from __future__ import annotations

import copy
import math
import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from partita._types import FloatArray
from partita.model.domains import Arms, Box, Grid

from .optional import CERTAIN
from .ucb import UCBPolicy

#: The rehearsal has at most this many evaluations, which take a second or a few; beyond, its curve
#: is continued. On a box in two, and in more dimensions certificates take longer, and so does an
#: evaluation where one cell has many arms. No clock decides: the same run says the same.
MOST_STEPS, PLANE_STEPS, SPACE_STEPS = 2_000, 1_000, 300
MANY_ARMS, MANY_ARMS_STEPS = 4_000, 200
#: Looked at each time the number of evaluations has grown by this factor.
FACTOR = 1.25
#: The certificate falls as a power of the evaluations. The power is fitted to the last part of the
#: rehearsal, in which their number grows by the first factor, and kept between the other two.
FITTED, SLOWEST, FASTEST = 4.0, 0.15, 0.4
#: Centres of the random function in each dimension. Janz et al. 2020, "Synthetic functions".
CENTRES = 30
#: A number of evaluations beyond which an estimate only says "more than".
MOST_ESTIMATED = 10**12


class Reach(NamedTuple):
    """How far a policy is expected to come.

    Attributes
    ----------
    evaluations
        About how many evaluations it takes until the certificate is at most the tolerance.
    certificate
        About what the certificate is after all evaluations that are planned.
    """

    evaluations: float
    certificate: float


def reach(policy: Any, tolerance: float, planned: int) -> Reach | None:
    """Estimate when a policy's certificate is at most `tolerance`, of `planned` evaluations.

    A copy of the policy runs on a random function of the stated kernel and norm with Gaussian noise
    of the stated constant. Where that ends, the certificate goes on falling as a power. The policy
    itself is not changed. None for a policy without proven bounds, or one that has values already.
    """
    if not isinstance(policy, UCBPolicy) or policy.guarantee not in CERTAIN or policy.told:
        return None
    if policy.pending or tolerance >= 2.0 * policy.assumptions.constants.norm_bound:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        most = min(planned, _most_steps(policy))
        steps, certificates = _rehearse(copy.deepcopy(policy), tolerance, most)
    if len(steps) < 2:
        return None
    last, lowest = steps[-1], certificates[-1]
    late = [i for i, n in enumerate(steps) if n * FITTED >= last]
    logs = np.log(np.array(steps)[late]), np.log(np.array(certificates)[late])
    power = -float(np.polyfit(*logs, 1)[0]) if len(late) > 1 else FASTEST
    power = min(max(power, SLOWEST), FASTEST)
    if lowest <= tolerance:
        return Reach(float(last), lowest)
    needed = math.inf if tolerance == 0.0 else last * (lowest / tolerance) ** (1.0 / power)
    return Reach(needed, lowest * (last / max(planned, last)) ** power)


def _most_steps(policy: UCBPolicy) -> int:
    """The most evaluations of a rehearsal."""
    domain = policy.domain
    if not isinstance(domain, Box):
        assert isinstance(domain, Arms | Grid)
        many = policy.cells == 1 and domain.size > MANY_ARMS
        return MANY_ARMS_STEPS if many else MOST_STEPS
    return {1: MOST_STEPS, 2: PLANE_STEPS}.get(domain.dim, SPACE_STEPS)


def _rehearse(policy: UCBPolicy, tolerance: float, most: int) -> tuple[list[int], list[float]]:
    """Numbers of evaluations and the finite certificates then, until one is within tolerance."""
    random = np.random.default_rng(0)
    function = _drawn(policy, random)
    noise = policy.assumptions.sub_gaussian
    steps: list[int] = []
    certificates: list[float] = []
    following = 8.0
    for n in range(1, most + 1):
        x = policy.ask()
        policy.tell(x, float(function(x)) + float(random.normal(0.0, noise)))
        if n < following and n < most:
            continue
        following = n * FACTOR
        certificate = policy.certificate()
        if 0.0 < certificate < math.inf:
            steps.append(n)
            certificates.append(certificate)
        if certificate <= tolerance:
            break
    return steps, certificates


def _drawn(policy: UCBPolicy, random: np.random.Generator) -> Any:
    """A random function of norm B on the policy's domain."""
    domain, kernel = policy.domain, policy.assumptions.kernel
    assert kernel is not None
    assert isinstance(domain, Arms | Box | Grid)
    centres = random.random((CENTRES * domain.dim, domain.dim))
    weights = random.uniform(-1.0, 1.0, len(centres))
    norm = math.sqrt(float(weights @ kernel(centres) @ weights))
    weights *= policy.assumptions.constants.norm_bound / norm

    def function(x: npt.ArrayLike) -> FloatArray:
        point = np.asarray(x, dtype=float)[None, :]
        if isinstance(domain, Box):
            unit = domain.to_unit(point)
        else:
            unit = domain.unit_points[domain.index_of(point)]
        return np.asarray((kernel(unit, centres) @ weights)[0])

    return function


def says(found: Reach, tolerance: float, planned: int) -> str | None:
    """A sentence that the tolerance is out of reach, or None if it is not."""
    if found.evaluations <= planned:
        return None
    many = (
        "no number of evaluations is enough"
        if math.isinf(found.evaluations)
        else f"it takes about {_rounded(found.evaluations)}"
    )
    return (
        f"a tolerance of {tolerance:.3g} is likely out of reach in {planned:,} evaluations: "
        f"{many}, by an estimate on a random function of this kernel, norm_bound and noise. After "
        f"{planned:,} the certificate would be about {found.certificate:.2g}"
    )


def _rounded(number: float) -> str:
    """A number to one digit: it is an estimate."""
    if number > MOST_ESTIMATED:
        return f"more than {MOST_ESTIMATED:,}"
    unit = 10 ** math.floor(math.log10(number))
    return f"{math.ceil(number / unit) * unit:,}"
