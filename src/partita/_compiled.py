"""Loops that Numba compiles when that pays, once for each machine.

Numba takes half a second to import and as long again for its first loop; each further loop takes a
third of a second. So it is imported when the first loop is called. A loop that has a `plain` form
in NumPy does without it until its calls have been worth a compilation.

What is compiled is kept on disk where that can be done (`_kept`). Numba raises where it finds no
folder for it (a read-only installation without a writable home). That is no reason to fail: loops
are compiled in memory then, which takes some seconds a run.

An interrupt during a compilation may leave Numba's own tables half changed, so that every later
call of the function fails. So Ctrl-C is delayed until a function is compiled.
"""

from __future__ import annotations

import functools
import logging
import sys
import time
from collections.abc import Callable
from typing import Any

from ._kept import Kept
from ._locks import new_lock
from ._signals import uninterrupted
from .errors import CacheWarning, warn

_log = logging.getLogger(__name__)

_ADVICE = (
    "so they are compiled again in every process, which takes some seconds. Set the environment "
    "variable NUMBA_CACHE_DIR to a folder that only you can write to."
)
_warned = False

#: Work of a loop's plain form after which it is compiled, in entries of about ten nanoseconds:
#: twice what a run of 300 evaluations needs. What a call costs beside its entries.
WORTH_COMPILING = 10_000_000
CALL = 3_000
#: Seconds of compiling after which a line says so.
LONG = 2.0


def compiled(
    function: Callable[..., Any] | None = None,
    *,
    nogil: bool = False,
    plain: Callable[..., Any] | None = None,
    work: Callable[..., int] | None = None,
) -> Any:
    """`numba.njit`, later and kept on disk.

    `plain` is a function with the same results to the last bit, to be called while `work`, the
    entries that a call with these arguments computes, adds up to less than a compilation costs.
    """
    if function is None:
        return lambda function: compiled(function, nogil=nogil, plain=plain, work=work)
    return _Loop(function, nogil, plain, work)


def awake(loop: Any) -> Any:
    """Numba's function of a loop; anything else is returned as it is."""
    return loop._wake() if isinstance(loop, _Loop) else loop


class _Loop:
    """A loop that was not compiled yet.

    When it is, Numba's function takes its name in its module, so that a call costs no more than
    one of Numba's. So do all others of the module without a plain form: those that it calls.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        nogil: bool,
        plain: Callable[..., Any] | None,
        work: Callable[..., int] | None,
    ) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._nogil = nogil
        self._plain = plain
        self._work = work
        self._spent = 0
        self._made: Any = None

    def __call__(self, *args: Any) -> Any:
        if self._plain is not None and self._work is not None and self._made is None:
            self._spent += CALL + self._work(*args)
            if self._spent < WORTH_COMPILING:
                return self._plain(*args)
        return self._wake()(*args)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked for by copy, pickle and inspect
            raise AttributeError(name)
        return getattr(self._wake(), name)

    def _wake(self) -> Any:
        with _waking:
            if self._made is None:
                module = self._function.__globals__
                self._put(module)
                for other in list(module.values()):
                    if isinstance(other, _Loop) and other._plain is None:
                        other._put(module)
            return self._made

    def _put(self, module: dict[str, Any]) -> None:
        if self._made is None:
            self._made = _made(self._function, self._nogil)
        name = self._function.__name__
        if module.get(name) is self:
            module[name] = self._made


_waking = new_lock()


def _made(function: Callable[..., Any], nogil: bool) -> Any:
    """Numba's function, with our cache, and compilations that are timed and not interrupted."""
    from numba import njit

    try:
        made: Any = njit(cache=True, nogil=nogil)(function)
    except RuntimeError as error:
        if "no locator" not in str(error):
            raise
        _warn_once(f"there is no folder to keep compiled functions in, {_ADVICE}")
        made = njit(nogil=nogil)(function)
    if not hasattr(made, "compile"):  # the compiler is off
        return made
    kept = None
    if hasattr(made._cache, "_impl"):
        made._cache = kept = Kept(made._cache, _complain)
    compile_for = made.compile
    made.compile = lambda signature: uninterrupted(lambda: _compile(compile_for, signature, kept))
    return made


def _compile(compile_for: Callable[[Any], Any], signature: Any, kept: Kept | None) -> Any:
    with _stopwatch:
        try:
            return compile_for(signature)
        finally:
            if kept is not None:
                kept.release()
                _stopwatch.folder = kept.folder


class _Stopwatch:
    """Adds up the time that compilations take, and says so once it is long."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._inside = 0
        self._begin = 0.0
        self._total = 0.0
        self._said = False
        self.folder: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._begin = time.perf_counter()
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside:  # a loop that another calls
                return
            self._total += time.perf_counter() - self._begin
            if self._total < LONG or self._said:
                return
            self._said = True
        _say(self.folder)


_stopwatch = _Stopwatch()


def _say(folder: Any) -> None:
    """Say what the wait is for: in the log, and in a line of its own on a terminal."""
    text = "Partita is compiling its loops for this processor, which takes some seconds"
    text += "." if folder is None else f", once: they are kept in {folder}."
    _log.info("%s", text)
    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write(f"\r\x1b[K{text}\n")
        sys.stderr.flush()


def _complain(reason: str) -> None:
    _warn_once(f"compiled functions cannot be kept in {reason}, {_ADVICE}")


def _warn_once(message: str) -> None:
    global _warned  # noqa: PLW0603
    if not _warned:
        _warned = True
        warn(message, CacheWarning)
