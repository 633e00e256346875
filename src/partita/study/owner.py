"""Which runs of `maximize` and `minimize` are active, and which were killed.

The name of a run consists of the machine's boot, its process and a number. A second name, with the
suffix `HELD`, is for trials that it keeps pending without evaluating them. A run is taken for dead
only if its name proves it; a run in another container is left alone.
"""

from __future__ import annotations

import itertools
import os
import re
from pathlib import Path
from typing import NamedTuple

#: The suffix of an owner whose trials are not being evaluated.
HELD = "/held"

#: The number of a process.
_NUMBER = re.compile("[0-9]{1,9}")
_numbers = itertools.count()
#: The active runs of this process.
_running: set[str] = set()


class Owner(NamedTuple):
    """A run, by its two rows in the table `owners`.

    Attributes
    ----------
    evaluates
        Owns the trials that it evaluates.
    holds
        Owns those that it keeps pending without evaluating them.
    """

    evaluates: int | None = None
    holds: int | None = None


#: Asks for trials that are evaluated elsewhere.
NOBODY = Owner()


def begin() -> str:
    """The name of a new run of this process."""
    name = "/".join([_boot(), _namespace(), str(os.getpid()), _start(os.getpid()) or ""])
    name = f"{name}/{next(_numbers)}"
    _running.add(name)
    return name


def end(name: str) -> None:
    """Record that a run of this process has ended."""
    _running.discard(name)


def is_dead(name: str) -> bool:
    """Whether a run has certainly ended."""
    name = name.removesuffix(HELD)
    parts = name.split("/")
    if len(parts) != 5 or not _NUMBER.fullmatch(parts[2]):
        return False
    boot, namespace, pid, start, _ = parts
    if boot != _boot():
        return True
    if namespace != _namespace():
        return False
    if pid == str(os.getpid()) and start == (_start(os.getpid()) or ""):
        return name not in _running
    return not _exists(int(pid), start)


def _exists(pid: int, start: str) -> bool:
    if Path("/proc/self/stat").exists():
        return _start(pid) == start
    if os.name != "posix":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _start(pid: int) -> str | None:
    """The start time of a process, in ticks since boot; None if it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else fields[19]


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _namespace() -> str:
    """The process namespace of this process: containers have their own."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""
