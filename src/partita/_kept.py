"""Compiled code on disk: one file for each function and signature, compiled by one process.

Numba's own cache has an index for each function, which two processes that save at once overwrite:
one's code is then lost, or is found under the other's signature. And it compiles again whenever the
source file has another time stamp. Here a file's name has a digest of all that the code depends
on: the source file, the signature, the processor, and the versions of Python and Numba. So there is
no index, and any process that finds the file may use it. A process that is to compile takes a lock
of that name first, so that of several which begin together one compiles and the others wait for its
file.

Nothing here fails: what cannot be read is compiled again, and without a lock no process waits.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows: two processes may compile the same function; both are right
    fcntl = None  # type: ignore[assignment]

#: Seconds that a process waits for another to compile a function, and between two looks.
LONGEST_WAIT = 30.0
_LOOK_EVERY = 0.02
_DIGEST_BYTES = 32


class Kept:
    """The cache of one function, in place of Numba's, whose ways to find a folder are used."""

    def __init__(self, cache: Any, complain: Callable[[str], None]) -> None:
        self._cache = cache
        self._complain = complain
        self._locks: dict[str, IO[bytes] | None] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    @property
    def folder(self) -> Path:
        """Where the files are."""
        return Path(self._cache.cache_path)

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Compiled code for a signature, or None if this process is to compile it.

        In the latter case other processes wait for `release`.
        """
        context.refresh()
        name = self._name(signature, context.codegen())
        code = self._read(name, context)
        if code is None and name not in self._locks:
            self._locks[name] = self._lock(name)
            code = self._read(name, context)  # another may have compiled it meanwhile
        return code

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep compiled code, if the disk lets us."""
        try:
            if not self._cache._impl.check_cachable(result):
                return
            self._cache._impl.locator.ensure_cache_path()
            name = self._name(signature, result.codegen)
            self._write(name, _pickled(self._cache._impl.reduce(result)))
            self._remove_outdated(name)
        except Exception as error:  # full, or read-only by now
            self._complain(f"{self.folder} ({type(error).__name__}: {error})")

    def release(self) -> None:
        """Let other processes compile, or read what was compiled."""
        while self._locks:
            name, lock = self._locks.popitem()
            if lock is not None:
                with contextlib.suppress(OSError):  # who waits reads the file in any case
                    self._path(name, ".lock").unlink()
                with contextlib.suppress(OSError):
                    fcntl.flock(lock, fcntl.LOCK_UN)  # also in forks that have it
                lock.close()

    # -- files ----------------------------------------------------------------------------------

    def _name(self, signature: Any, codegen: Any) -> str:
        """The name of a file, without what it ends with: digests of the source and of the rest."""
        import numba

        source = _digest_of(self._cache._impl.locator, self._cache._py_func.__code__.co_filename)
        rest = repr((numba.__version__, sys.version, self._cache._index_key(signature, codegen)))
        digest = hashlib.sha256(rest.encode()).hexdigest()
        return f"{self._cache._impl.filename_base}.{source[:12]}.{digest[:24]}"

    def _path(self, name: str, suffix: str) -> Path:
        return self.folder / f"{name}{suffix}"

    def _read(self, name: str, context: Any) -> Any:
        try:
            content = self._path(name, ".nbc").read_bytes()
            digest, data = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
            if hashlib.sha256(data).digest() != digest:
                return None
            return self._cache._impl.rebuild(context, pickle.loads(data))
        except Exception:  # not there, or of a kind that this Numba cannot read
            return None

    def _write(self, name: str, data: bytes) -> None:
        temporary = self._path(name, f".{uuid.uuid4().hex[:16]}.tmp")
        try:
            temporary.write_bytes(hashlib.sha256(data).digest() + data)
            temporary.replace(self._path(name, ".nbc"))
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise

    def _remove_outdated(self, name: str) -> None:
        """Remove code of the same function of an earlier source file."""
        base, source, _ = name.rsplit(".", 2)
        function, line = base.rsplit("-", 1)
        _, _, python = line.partition(".")
        for path in self.folder.glob(f"{function}-*.{python}.*.nbc"):
            if path.name.split(".")[-3] != source:
                with contextlib.suppress(OSError):
                    path.unlink()

    def _lock(self, name: str) -> IO[bytes] | None:
        """A lock that is this process's, or None where there are no locks or none comes free."""
        if fcntl is None:
            return None
        try:
            lock = self._path(name, ".lock").open("wb")
        except OSError:
            return None
        for _ in _until(LONGEST_WAIT):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            except OSError:  # a file system without locks
                break
            return lock
        lock.close()
        return None


def _until(seconds: float) -> Iterator[None]:
    """Something now and then, for a time."""
    end = time.monotonic() + seconds
    yield
    while time.monotonic() < end:
        time.sleep(_LOOK_EVERY)
        yield


def _pickled(reduced: Any) -> bytes:
    from numba.core.serialize import dumps

    return bytes(dumps(reduced))  # type: ignore[no-untyped-call]


@lru_cache
def _source_digest(file: str) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()


def _digest_of(locator: Any, file: str) -> str:
    """A digest of a source file, or of Numba's stamp where there is no file, as in an archive."""
    if os.path.isfile(file):  # noqa: PTH113
        return _source_digest(file)
    return hashlib.sha256(repr(locator.get_source_stamp()).encode()).hexdigest()
