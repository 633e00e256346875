"""Finished runs on disk: one small file each, written whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import time
import zipfile
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
_NUMBERS = ("setup_seconds", "uniform_regret")
#: A temporary file this old (in seconds) was left by a process that was killed.
_STALE = 3600.0


class _Damaged(Exception):
    """A file that does not hold what was written."""


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
            with np.load(path, allow_pickle=False) as members:
                content = {name: members[name] for name in members.files}
            if str(content["digest"]) != _digest(content):
                raise _Damaged("its checksum is wrong")
            version, settings = str(content["version"]), str(content["task"])
        except FileNotFoundError:
            return None
        except (_Damaged, KeyError, ValueError, EOFError, OSError, zipfile.BadZipFile) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            log.warning("%s is damaged, so this run is made again (%s)", path, error)
            return None
        if version != __version__:
            raise VersionMismatch(
                f"{path} was made by Partita {version}, and this is {__version__}: give another "
                "folder."
            )
        if settings != task.as_json():
            raise InvalidInput(f"{path} holds a run with other settings: give another folder.")
        numbers = {name: float(content[name]) for name in _NUMBERS}
        return Trace(task=task, **{name: content[name] for name in _ARRAYS}, **numbers)

    def save(self, trace: Trace) -> None:
        """Write a trace under a temporary name, and rename it once it is whole."""
        content: dict[str, Any] = {
            **{name: np.asarray(getattr(trace, name), kind) for name, kind in _ARRAYS.items()},
            **{name: np.float64(getattr(trace, name)) for name in _NUMBERS},
            "task": np.array(trace.task.as_json()),
            "version": np.array(__version__),
        }
        content["digest"] = np.array(_digest(content))
        path = self.path(trace.task)
        self.folder.mkdir(parents=True, exist_ok=True)
        temporary = self.folder / f".{path.stem}.{os.getpid()}.tmp"
        try:
            with temporary.open("wb") as file:
                np.savez_compressed(file, **content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove temporary files that a killed process left behind."""
        for path in self.folder.glob(".*.tmp"):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > _STALE:
                    path.unlink()


def _digest(content: Mapping[str, npt.NDArray[Any]]) -> str:
    """Checksum of every member but the checksum."""
    total = hashlib.sha256()
    for name in sorted(set(content) - {"digest"}):
        array = np.ascontiguousarray(content[name])
        total.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        total.update(array.tobytes())
    return total.hexdigest()
