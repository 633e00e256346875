"""Ray: a searcher and a stopper for Ray Tune, and an executor that runs evaluations as tasks."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .executor import RayExecutor
    from .search import PartitaSearch
    from .stopper import CertificateStopper

__all__ = ["CertificateStopper", "PartitaSearch", "RayExecutor"]

#: The executor needs Ray alone, the searcher Ray Tune with its own dependencies: each is loaded
#: when used.
_HOME = {
    "CertificateStopper": "stopper",
    "PartitaSearch": "search",
    "RayExecutor": "executor",
}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(import_module(f"{__name__}.{home}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("partita"):
            raise
        raise ModuleNotFoundError(
            f"{name} needs Ray, but its module {error.name!r} is not installed: pip install "
            "'partita[ray]'",
            name=error.name,
        ) from error


def __dir__() -> list[str]:
    return sorted(__all__)
