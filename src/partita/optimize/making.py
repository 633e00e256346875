"""Choose the domain and the policy for a space.

The policy is π-GP-UCB if everything it needs is known, else the calibrated policy, or the one that
the user names.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from partita._types import FloatArray
from partita.errors import InvalidInput
from partita.model.assumptions import Assumptions
from partita.model.domains import Arms, Box, Grid
from partita.model.kernels import Matern
from partita.model.mixed import Mixed
from partita.policies import optional
from partita.policies.base import Policy
from partita.policies.construct import construct, name_of
from partita.space import Space

#: A finite space of at most this many feasible points becomes a list of arms.
MOST_ARMS = 10_000
#: `feasible` is called at every point of a finite space of at most this size, in chunks.
MOST_TRIED, CHUNK = 20_000, 1000
#: The horizon given to a policy that needs one, if the user does not give `n_evals`.
HORIZON = 100_000


def domain_of(space: Space) -> Grid | Arms | Box | Mixed:
    """The domain that policies get for a space, in coordinates of the unit cube.

    A box if every point is valid; a list of its feasible points if there are at most 10,000 and
    they can be found; else a `Mixed` domain.
    """
    size = space.size
    if size is None and space.continuous and space.constraint is None:
        return Box(np.zeros(space.dim), np.ones(space.dim))
    if space.arms is not None and space.constraint is None:
        return space.played
    most = MOST_ARMS if space.constraint is None else MOST_TRIED
    if size is not None and (size <= most or space.arms is not None):
        points = _feasible(space, MOST_ARMS if space.arms is None else size)
        if points is not None and not len(points):
            raise InvalidInput(
                f"feasible allows none of the {size:,} points of the space, so nothing can be "
                "evaluated: check its conditions"
            )
        if points is not None:
            box = () if space.arms is None else (space.played.lower, space.played.upper)
            return Arms(points, *box)
    return Mixed(space)


def _feasible(space: Space, most: int) -> FloatArray | None:
    """All feasible points of a finite space, (n, D), or None if there are more than `most`."""
    points = space.grid()
    kept: list[FloatArray] = []
    number = 0
    for start in range(0, len(points), CHUNK):  # stop early, since a constraint may be slow
        chunk = points[start : start + CHUNK]
        kept.append(chunk[space.feasible(chunk)])
        number += len(kept[-1])
        if number > most:
            return None
    return np.concatenate(kept)


def check_lengthscales(kernel: object, space: Space) -> None:
    """Refuse a kernel whose number of lengthscales is not that of the space's coordinates."""
    scales = kernel.lengthscale if isinstance(kernel, Matern) else 1.0
    if isinstance(scales, float) or len(scales) == space.dim or space.continuous:
        return
    wide = [
        f"{name} {parameter.width}"
        for name, parameter in zip(space.names or (), space.parameters, strict=False)
        if parameter.width != 1
    ]
    if wide:
        raise InvalidInput(
            f"{kernel!r} has {len(scales)} lengthscales, but the space has {space.dim} "
            "coordinates: a parameter with k > 2 choices has k coordinates, one with one value has "
            f"none ({', '.join(wide)}). Give {space.dim} lengthscales, or one number for all"
        )


def make_policy(
    domain: Grid | Arms | Box | Mixed,
    policy: str | Callable[..., Any] | None,
    assumptions: Assumptions,
    n_evals: int | None,
    seed: int,
    drift: bool = False,
) -> Policy:
    """A policy on `domain`, with the assumptions that are known.

    Parameters
    ----------
    policy
        None: `PiGPUCB` if the assumptions are complete, else `CalibratedUCB`. Or a name of the
        registry, optionally with settings in brackets, a class, or a function of the domain.
    drift
        Whether the function may change in time, which few policies can follow.
    """
    settings: Mapping[str, Any] = {}
    maker: Any
    if policy is None:
        maker = _default(domain, assumptions)
    elif isinstance(policy, str):
        maker, settings = _by_name(policy, domain)
    else:
        maker = check_maker(policy)
    if drift:
        settings = {**settings, "drift": True}
        if not _takes_drift(maker):
            raise InvalidInput(
                f"drift=True: {name_of(maker)} assumes that the function does not change. Leave "
                "out the policy, and norm_bound, for CalibratedUCB, which forgets what no longer "
                "holds"
            )
    made: Any = construct(
        maker,
        domain,
        assumptions,
        horizon=HORIZON if n_evals is None and _needs_horizon(maker) else n_evals,
        seed=seed,
        settings=settings,
    )
    if not optional.is_policy(made):
        raise InvalidInput(
            f"policy={name_of(maker)} returned {made!r}, which lacks one of the methods ask, tell, "
            "cancel and recommend: give a policy"
        )
    return made  # type: ignore[no-any-return]


def check_maker(policy: Any) -> Callable[..., Any]:
    """The given policy class or function, or an error for anything else."""
    if isinstance(policy, Policy) or not callable(policy):
        raise InvalidInput(
            f'policy={policy!r}: give a name such as "pi-gp-ucb", a policy class, or a function '
            "that makes one for a domain"
        )
    return policy  # type: ignore[no-any-return]


def _default(domain: Grid | Arms | Box | Mixed, assumptions: Assumptions) -> Callable[..., Any]:
    if not assumptions.complete:
        from partita.policies.calibrated.calibrated_ucb import CalibratedUCB

        return CalibratedUCB
    if isinstance(domain, Mixed):
        raise InvalidInput(
            "norm_bound, noise and kernel are given, but proven bounds need a space that is fully "
            "continuous and without a constraint, or finite with at most 10,000 points. Give every "
            "number a step, (low, high, step), or leave norm_bound out for calibrated bounds"
        )
    from partita.policies.pi_gp_ucb import PiGPUCB

    return PiGPUCB


def _by_name(
    text: str, domain: Grid | Arms | Box | Mixed
) -> tuple[Callable[..., Any], Mapping[str, Any]]:
    from partita.policies import registry
    from partita.policies.named import read_policy

    spec = read_policy(text)
    if not domain.finite and "box" not in spec.method.domains:
        raise InvalidInput(
            f"policy={text!r} needs a finite space: give every number a step, such as "
            "(low, high, step), or give a Grid, or use another policy"
        )
    # Experiments withhold some assumptions from some policies; here the user decides.
    usual = {name: value for name, value in spec.method.settings.items() if value is not None}
    return registry.maker_of(spec.name), {**usual, **dict(spec.settings)}


def _takes_drift(maker: Callable[..., Any]) -> bool:
    try:
        return "drift" in inspect.signature(maker).parameters
    except (TypeError, ValueError):
        return False


def _needs_horizon(maker: Callable[..., Any]) -> bool:
    try:
        horizon = inspect.signature(maker).parameters.get("horizon")
    except (TypeError, ValueError):
        return False
    return horizon is not None and horizon.default is horizon.empty
