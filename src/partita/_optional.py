"""Optional packages, imported when they are needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from partita.errors import PartitaError

#: The extra that brings each package: `pip install 'partita[plot]'`.
_EXTRAS = {
    "anywidget": "notebook",
    "joblib": "experiments",
    "matplotlib": "plot",
    "pandas": "tables",
    "pyarrow": "tables",
    "starlette": "web",
    "traitlets": "notebook",
    "uvicorn": "web",
}


class MissingPackage(PartitaError, ImportError):
    """An optional package is not installed. The message says how to get it."""


def require(name: str) -> Any:
    """Import a module of an optional package."""
    try:
        return import_module(name)
    except ImportError as error:
        package = name.partition(".")[0]
        what = f"'partita[{_EXTRAS[package]}]'" if package in _EXTRAS else package
        raise MissingPackage(
            f"{package} is needed for this ({error}): pip install {what}"
        ) from error
