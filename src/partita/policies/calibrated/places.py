"""Where points of a domain lie in the unit cube, which the policy works in, and where it begins."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from partita._types import FloatArray
from partita.errors import InvalidInput
from partita.model.domains import TOLERANCE, Arms, Box, Grid
from partita.model.mixed import Mixed
from partita.model.sobol import sobol
from partita.partition.cover import Geometry
from partita.partition.sites import ArmSites, BoxSites
from partita.policies.fixed import Fixing

Domain = Grid | Arms | Box | Mixed


def new_sites(domain: Domain, seed: int) -> ArmSites | BoxSites:
    """The sites of a domain before anything is told."""
    geometry = Geometry(domain.dim, 1)
    if isinstance(domain, Box | Mixed):
        return BoxSites(domain, geometry)
    return ArmSites(domain, geometry, seed)


def quasi_random(dim: int, number: int, seeds: Sequence[int]) -> FloatArray:
    """Points (n, d) that fill the unit cube evenly, scrambled."""
    scramble = np.random.default_rng(list(seeds))
    return sobol(dim, 2 ** math.ceil(math.log2(number)), scramble=scramble)[:number]


def unit_points(domain: Domain, sites: ArmSites | BoxSites, points: FloatArray) -> FloatArray:
    """Points (n, d) of a domain in the unit cube."""
    if isinstance(domain, Box | Mixed):
        return domain.to_unit(points)
    return np.asarray(sites.scaled[sites.locate(points)])


def unit_slice(domain: Domain, arms: FloatArray | None, fixed: Mapping[int, float]) -> Fixing:
    """The slice of the unit cube where coordinates of a domain have values.

    `arms` (n, d) are the points of a finite domain, in the unit cube.
    """
    given = Fixing.of(fixed, domain.dim)
    lower, upper = domain.lower, domain.upper
    low = lower[given.numbers]
    side = upper[given.numbers] - low
    values = (given.values - low) / np.where(side > 0.0, side, 1.0)
    if arms is not None:
        columns = arms[:, given.numbers]
        away = np.abs(columns - values).max(axis=1, initial=0.0)
        nearest = int(np.argmin(away))
        if away[nearest] > TOLERANCE:
            raise InvalidInput(
                f"fixed={dict(fixed)!r}: no point of the domain has these values. Fix values that "
                "points have"
            )
        return Fixing(given.numbers, columns[nearest].copy())
    if values.size and not (values.min() >= 0.0 and values.max() <= 1.0):
        raise InvalidInput(
            f"fixed={dict(fixed)!r}: outside the domain, which goes from {lower} to {upper}"
        )
    return Fixing(given.numbers, values)
