"""Compiled functions, kept on disk where possible.

Numba raises an error if it finds no folder for compiled code (a read-only installation without a
writable home), and if a stored file is empty or damaged. Neither is a reason to fail: the functions
are then compiled in memory, which takes some seconds in each process.

An interrupt during a compilation may leave Numba's own tables half changed, so that every later
call of the function fails. So Ctrl-C is delayed until a function is compiled.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from numba import njit

from ._signals import uninterrupted
from .errors import CacheWarning, warn

_ADVICE = (
    "so they are compiled again in every process, which takes some seconds. Set the environment "
    "variable NUMBA_CACHE_DIR to a folder that only you can write to."
)
_warned = False


def compiled(function: Callable[..., Any] | None = None, *, nogil: bool = False) -> Any:
    """Like `numba.njit`, with compiled code kept on disk if possible."""
    if function is None:
        return lambda function: compiled(function, nogil=nogil)
    made = _made(function, nogil)
    compile_for = getattr(made, "compile", None)
    if compile_for is not None:  # the compiler is not off
        made.compile = lambda signature: uninterrupted(lambda: compile_for(signature))
    return made


def _made(function: Callable[..., Any], nogil: bool) -> Any:
    try:
        made: Any = njit(cache=True, nogil=nogil)(function)
    except RuntimeError as error:
        if "no locator" not in str(error):
            raise
        _warn_once(f"there is no folder to keep compiled functions in, {_ADVICE}")
        return njit(nogil=nogil)(function)
    if hasattr(made, "_cache"):  # not with the compiler off
        made._cache = _Kept(made._cache)
    return made


class _Kept:
    """Numba's cache of one function, which never fails: if it cannot read, it compiles again."""

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Compiled code for a signature, or None if there is none that can be read."""
        try:
            return self._cache.load_overload(signature, context)
        except Exception:  # a file that is empty or damaged can raise anything
            with contextlib.suppress(Exception):
                self._cache.flush()  # write the index again, and then whatever is saved
            return None

    def save_overload(self, signature: Any, data: Any) -> None:
        """Keep compiled code on disk, if possible."""
        try:
            self._cache.save_overload(signature, data)
        except Exception as error:  # disk full or read-only, or an index that cannot be repaired
            _warn_once(
                f"compiled functions cannot be kept in {self._cache.cache_path} "
                f"({type(error).__name__}: {error}), {_ADVICE}"
            )


def _warn_once(message: str) -> None:
    global _warned  # noqa: PLW0603
    if not _warned:
        _warned = True
        warn(message, CacheWarning)
