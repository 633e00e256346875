"""Problems on the unit cube, which is where all players play."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

import partita as pt
from partita.experiments.specs import Problem

P = TypeVar("P", bound=Problem)


def on_cube(
    kind: type[P],
    dim: int,
    function: Callable[[np.ndarray], np.ndarray],
    best: float,
    mean: float,
    half_width: float = 0.0,
    **more: Any,
) -> P:
    """A problem of a kind; who is told the kernel and the norm is told a guess."""
    return kind(
        domain=pt.Box([0.0] * dim, [1.0] * dim),
        kernel=pt.Matern(nu=1.5, lengthscale=0.2),
        norm_bound=1.0,
        half_width=half_width,
        function=function,
        best=best,
        mean=mean,
        values=np.empty(0),
        **more,
    )
