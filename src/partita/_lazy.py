"""Names of a package that are loaded on first use, so that importing it stays quick (PEP 562)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, str], modules: tuple[str, ...] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package.

    Parameters
    ----------
    package : the package's `__name__`
    homes : the module that each name is in: of the package, or any of Partita's by its full name
    modules : modules of the package that are loaded on first use themselves
    """

    def load(name: str) -> Any:
        if name in modules:
            return import_module(f"{package}.{name}")
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        full = home if home.startswith("partita.") else f"{package}.{home}"
        value = getattr(import_module(full), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted(sys.modules[package].__all__)

    return load, names
