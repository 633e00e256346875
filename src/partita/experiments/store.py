"""Finished runs on disk: one small file each, written whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from partita._version import __version__
from partita.errors import InvalidInput, VersionMismatch

from .specs import Task
from .trace import Trace

log = logging.getLogger(__name__)

#: Fields of a trace that are arrays, and their types.
_ARRAYS = {
    "regret": np.float32,
    "choices": np.int32,
    "seconds": np.float32,
    "sampled": np.int32,
    "cells": np.int32,
    "information_gain": np.float64,
}
_NUMBERS = ("setup_seconds", "simple_regret", "uniform_regret")
#: A temporary file this old (in seconds) was left by a process that was killed.
_STALE = 3600.0


class Store:
    """A folder of finished runs."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, task: Task) -> Path:
        """Where a task's trace is kept."""
        return self.folder / task.file_name()

    def load(self, task: Task) -> Trace | None:
        """The trace of a task, None if it is not there or its file is damaged.

        A trace of another version or other settings is refused.
        """
        path = self.path(task)
        try:
            written = path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            content = _read(written)
        except Exception as error:  # what a damaged archive raises is nowhere listed
            log.warning("%s is damaged, so this run is made again (%s)", path, error)
            return None
        version, settings = str(content["version"]), str(content["task"])
        if version != __version__:
            raise VersionMismatch(
                f"{path} was made by Partita {version}, and this is {__version__}: give another "
                "folder."
            )
        if settings != task.as_json():
            raise InvalidInput(f"{path} holds a run with other settings: give another folder.")
        fields: dict[str, Any] = {name: content[name] for name in _ARRAYS}
        fields |= {name: float(content[name]) for name in _NUMBERS}
        return Trace(task=task, **fields)

    def save(self, trace: Trace) -> None:
        """Add a trace."""
        content: dict[str, Any] = {
            **{name: np.asarray(getattr(trace, name), kind) for name, kind in _ARRAYS.items()},
            **{name: np.float64(getattr(trace, name)) for name in _NUMBERS},
            "task": np.array(trace.task.as_json()),
            "version": np.array(__version__),
        }
        content["digest"] = np.array(_digest(content))
        file = io.BytesIO()
        np.savez_compressed(file, **content)
        self.folder.mkdir(parents=True, exist_ok=True)
        replace_file(self.path(trace.task), file.getvalue())

    def sweep(self) -> None:
        """Remove temporary files that a killed process left behind."""
        for path in self.folder.glob(".*.tmp"):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > _STALE:
                    path.unlink()


def replace_file(path: Path, content: bytes) -> None:
    """Write a file under a temporary name, and rename it once it is whole and on disk."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _read(written: bytes) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a file, if they are those that were written."""
    with np.load(io.BytesIO(written), allow_pickle=False) as members:
        content = {name: members[name] for name in members.files}
    if str(content["digest"]) != _digest(content):
        raise ValueError("its checksum is wrong")
    return content


def _digest(content: Mapping[str, npt.NDArray[Any]]) -> str:
    """Checksum of every member but the checksum."""
    total = hashlib.sha256()
    for name in sorted(set(content) - {"digest"}):
        array = np.ascontiguousarray(content[name])
        total.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        total.update(array.tobytes())
    return total.hexdigest()
