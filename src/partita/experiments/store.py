"""Finished runs on disk: one small file each, written whole or not at all.

joblib.Memory does not serve here: it makes a result again once the code of its function changed,
cannot list what it holds, and cannot tell a damaged or foreign file from a good one.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from partita.errors import InvalidInput, VersionMismatch

log = logging.getLogger(__name__)

#: A temporary file this old (in seconds) was left by a process that was killed.
_STALE = 3600.0


class AnyTask(Protocol):
    """A run to be made: a small frozen value that can be hashed and sent to other processes."""

    def as_json(self) -> str:
        """All that the run depends on, as text: the same for equal tasks."""

    def file_name(self) -> str:
        """The name of its file, which no other task has."""


class AnyRun(Protocol):
    """A finished run: a dataclass of a task, arrays, numbers and words."""

    @property
    def task(self) -> Any:
        """The task that it is a run of."""

    @property
    def total_seconds(self) -> float:
        """Time that it took."""


R = TypeVar("R", bound=AnyRun)


def file_name(words: str, task: AnyTask) -> str:
    """A readable name with a checksum of the task at its end."""
    return f"{words}_{hashlib.sha256(task.as_json().encode()).hexdigest()[:8]}.npz"


class RunStore(Generic[R]):
    """A folder of finished runs of one kind.

    Parameters
    ----------
    folder : path
    kind : a dataclass, see `AnyRun`
    version : of what makes these runs; those of another are refused
    """

    def __init__(self, folder: str | Path, kind: Callable[..., R], version: str) -> None:
        self.folder = Path(folder)
        self.version = version
        self._kind = kind
        self._fields = [f.name for f in fields(kind) if f.name != "task"]  # type: ignore[arg-type]

    def path(self, task: AnyTask) -> Path:
        """Where a task's run is kept."""
        return self.folder / task.file_name()

    def load(self, task: AnyTask) -> R | None:
        """The run of a task, None if it is not there or its file is damaged.

        A run of another version or other settings is refused.
        """
        path = self.path(task)
        try:
            content = _read(path)
            run = self._run(task, content)
        except FileNotFoundError:
            return None
        except Exception as error:  # what a damaged archive raises is nowhere listed
            log.warning("%s is damaged, so this run is made again (%s)", path, error)
            return None
        if (version := str(content["version"])) != self.version:
            raise VersionMismatch(
                f"{path} was made by Partita {version}, and this is {self.version}: give another "
                "folder."
            )
        if str(content["task"]) != task.as_json():
            raise InvalidInput(f"{path} holds a run with other settings: give another folder.")
        return run

    def all(self, read_task: Callable[[str], AnyTask]) -> Iterator[R]:
        """Every run of this version that can be read, the oldest first.

        `read_task` makes a task of its text.
        """
        for path in sorted(self.folder.glob("*.npz"), key=lambda path: path.stat().st_mtime):
            with contextlib.suppress(Exception):
                content = _read(path)
                if str(content["version"]) == self.version:
                    yield self._run(read_task(str(content["task"])), content)

    def save(self, run: R) -> None:
        """Add a run."""
        content = {name: np.asarray(getattr(run, name)) for name in self._fields}
        content |= {"task": np.array(run.task.as_json()), "version": np.array(self.version)}
        content["digest"] = np.array(_digest(content))
        file = io.BytesIO()
        np.savez_compressed(file, **content)  # type: ignore[arg-type]
        self.folder.mkdir(parents=True, exist_ok=True)
        replace_file(self.path(run.task), file.getvalue())

    def sweep(self) -> None:
        """Remove temporary files that a killed process left behind."""
        for path in self.folder.glob(".*.tmp"):
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > _STALE:
                    path.unlink()

    def _run(self, task: AnyTask, content: Mapping[str, npt.NDArray[Any]]) -> R:
        """Members of a file as a run: arrays as they are, numbers and words as Python has them."""
        values = {name: content[name] for name in self._fields}
        return self._kind(task=task, **{n: v if v.ndim else v.item() for n, v in values.items()})


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


def _read(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a file, if they are those that were written."""
    with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as members:
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
