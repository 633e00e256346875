"""Snapshots: the state of a study as bytes, to save the replay of a long log.

A snapshot is a pickle, and a study may come from a stranger, so it is read by an unpickler that
knows the classes of our own policies, arrays, random generators and nothing else that could run
code. A snapshot that is damaged, of another version, or holds anything more is not used, and the
log is replayed in full.
"""

from __future__ import annotations

import hashlib
import io
import logging
import pickle
import sys
from importlib import import_module
from typing import Any

import numpy as np

from partita._version import __version__
from partita.partition.partition import Partition
from partita.policies.base import STATE_VERSION
from partita.space import Space

from .state import State

_log = logging.getLogger(__name__)

#: Raised by one whenever what is in a snapshot changes.
FORMAT = 3
#: A snapshot is used by what wrote it only: a full replay is right for any other.
WRITTEN_BY = (
    f"{FORMAT}.{STATE_VERSION} Partita {__version__} NumPy {np.__version__} "
    f"Python {sys.version_info[0]}.{sys.version_info[1]}"
)

#: Modules of ours whose classes a state may hold, and rooms all of whose modules may.
_MODULES = ("optimize.game", "optimize.optimizer", "optimize.trials")
_ROOMS = ("gp", "model", "partition", "policies", "space")
_OTHERS = frozenset(
    {
        ("array", "_array_reconstructor"),
        ("array", "array"),
        ("builtins", "bytearray"),
        ("builtins", "complex"),
        ("builtins", "frozenset"),
        ("builtins", "range"),
        ("builtins", "set"),
        ("builtins", "slice"),
        ("collections", "OrderedDict"),
        ("collections", "deque"),
        ("decimal", "Decimal"),
        ("fractions", "Fraction"),
        ("numpy", "dtype"),
        ("numpy", "ndarray"),
        ("numpy._core.multiarray", "_reconstruct"),
        ("numpy._core.multiarray", "scalar"),
        ("numpy._core.numeric", "_frombuffer"),
        ("numpy.core.multiarray", "_reconstruct"),
        ("numpy.core.multiarray", "scalar"),
        ("numpy.core.numeric", "_frombuffer"),
        ("numpy.random._pcg64", "PCG64"),
        ("numpy.random._pickle", "__bit_generator_ctor"),
        ("numpy.random._pickle", "__generator_ctor"),
        ("numpy.random.bit_generator", "SeedSequence"),
        ("numpy.random.bit_generator", "__pyx_unpickle_SeedSequence"),
        ("partita.study.state", "Answer"),
        ("partita.study.state", "State"),
    }
)
#: Stands for the space of the study, which has the user's constraint and is not pickled.
_SPACE = "space"


class _Pickler(pickle.Pickler):
    """Leaves the space out: it comes with the settings, its constraint from the user."""

    def persistent_id(self, obj: Any) -> str | None:
        return _SPACE if type(obj) is Space else None


class _Unpickler(pickle.Unpickler):
    """Reads what `_Pickler` wrote and refuses all else."""

    def __init__(self, data: bytes, space: Space) -> None:
        super().__init__(io.BytesIO(data))
        self._space = space

    def persistent_load(self, pid: Any) -> Any:
        if pid != _SPACE:
            raise pickle.UnpicklingError(f"{pid!r} is unknown")
        return self._space

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _OTHERS:
            return super().find_class(module, name)
        if (module, name) == ("builtins", "getattr"):  # how a method is pickled
            return _method
        if _is_ours(module):
            named = getattr(import_module(module), name, None)
            if isinstance(named, type) and named.__module__ == module:
                return named
        raise pickle.UnpicklingError(f"{module}.{name} has no place in a snapshot")


def _is_ours(module: str) -> bool:
    package, _, rest = module.partition(".")
    return package == "partita" and (rest in _MODULES or rest.partition(".")[0] in _ROOMS)


def _method(owner: Any, name: Any) -> Any:
    """The one method that policies keep."""
    if type(owner) is not Partition or name != "state":
        raise pickle.UnpicklingError(f"{name!r} has no place in a snapshot")
    return owner.state


def write(state: State) -> bytes | None:
    """A state as bytes, or None if it has parts that could not be read again."""
    out = io.BytesIO()
    try:
        _Pickler(out, protocol=5).dump(state)
    except Exception as error:  # a policy of the user's own may hold anything
        _log.debug("no snapshot: %s", error)
        return None
    return out.getvalue()


def read(data: bytes, digest: str, written_by: str, space: Space) -> State | None:
    """The state that `write` wrote, or None if it cannot be used here."""
    if written_by != WRITTEN_BY or digest != digest_of(data):
        return None
    try:
        state = _Unpickler(data, space).load()
    except Exception as error:  # whatever a damaged pickle leads to
        _log.warning("the snapshot of the study cannot be read (%s): its log is replayed", error)
        return None
    return state if isinstance(state, State) else None


def digest_of(data: bytes) -> str:
    """A checksum."""
    return hashlib.sha256(data).hexdigest()
