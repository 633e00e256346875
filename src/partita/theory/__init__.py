"""Exponents and bounds: what is proven of the algorithms here, each with its source.

`EXPONENTS` holds every exponent by name; `get(name)(dim, nu)` is its value. `information_gain`,
`effective_dimension` and `greedy_information_gain` compute what the bounds are made of for given
points.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from partita._lazy import lazy_names as _lazy_names

if TYPE_CHECKING:
    from partita.gp.gains import (
        GainBounds,
        effective_dimension,
        greedy_information_gain,
        information_gain,
    )

    from .exponents import Exponent, cell_count_bound, cell_exponent, cover_exponent
    from .registry import EXPONENTS, KINDS, get, names

_HOME = {
    "EXPONENTS": "registry",
    "KINDS": "registry",
    "Exponent": "exponents",
    "GainBounds": "partita.gp.gains",
    "cell_count_bound": "exponents",
    "cell_exponent": "exponents",
    "cover_exponent": "exponents",
    "effective_dimension": "partita.gp.gains",
    "get": "registry",
    "greedy_information_gain": "partita.gp.gains",
    "information_gain": "partita.gp.gains",
    "names": "registry",
}

__all__ = [
    "EXPONENTS",
    "KINDS",
    "Exponent",
    "GainBounds",
    "cell_count_bound",
    "cell_exponent",
    "cover_exponent",
    "effective_dimension",
    "get",
    "greedy_information_gain",
    "information_gain",
    "names",
]

__getattr__, __dir__ = _lazy_names(__name__, _HOME)
