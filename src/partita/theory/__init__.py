"""Exponents and bounds: what is proven of the algorithms here, each with its source.

`EXPONENTS` holds every exponent by name; `get(name)(dim, nu)` is its value. `information_gain`,
`effective_dimension` and `greedy_information_gain` compute what the bounds are made of for given
points.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .exponents import (
        Exponent,
        cell_count_bound,
        cell_exponent,
        cover_exponent,
    )
    from .gains import (
        GainBounds,
        effective_dimension,
        greedy_information_gain,
        information_gain,
    )
    from .registry import EXPONENTS, KINDS, get, names

_HOME = {
    "EXPONENTS": "registry",
    "KINDS": "registry",
    "Exponent": "exponents",
    "GainBounds": "gains",
    "cell_count_bound": "exponents",
    "cell_exponent": "exponents",
    "cover_exponent": "exponents",
    "effective_dimension": "gains",
    "get": "registry",
    "greedy_information_gain": "gains",
    "information_gain": "gains",
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


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
