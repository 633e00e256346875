"""Compiled functions that are kept on disk where that can be done, and work where it cannot.

Numba raises when it finds no folder to keep compiled code in (a read-only installation without a
writable home), and when a file that it kept is empty or damaged. Neither is a reason to fail: the
functions are compiled in memory then, which takes some seconds a run.

An interrupt in the middle of a compilation may leave Numba's own tables half changed, and every
later call of the function failing. So Ctrl-C waits until a function is compiled.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from numba import njit

from ._signals import uninterrupted
from .errors import CacheWarning, warn

_ADVICE = (
    "so they are compiled anew in every run, which takes some seconds. Set the environment "
    "variable NUMBA_CACHE_DIR to a folder that you, and nobody else, can write to."
)
_warned = False


def compiled(function: Callable[..., Any] | None = None, *, nogil: bool = False) -> Any:
    """`numba.njit`, with compiled code kept on disk if possible."""
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
    """Numba's cache of one function, which never fails: what it cannot read is compiled anew."""

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
                self._cache.flush()  # the index is written anew, and what is saved then as well
            return None

    def save_overload(self, signature: Any, data: Any) -> None:
        """Keep compiled code, if the disk lets us."""
        try:
            self._cache.save_overload(signature, data)
        except Exception as error:  # full, read-only by now, or an index that cannot be mended
            _warn_once(
                f"compiled functions cannot be kept in {self._cache.cache_path} "
                f"({type(error).__name__}: {error}), {_ADVICE}"
            )


def _warn_once(message: str) -> None:
    global _warned  # noqa: PLW0603
    if not _warned:
        _warned = True
        warn(message, CacheWarning)
