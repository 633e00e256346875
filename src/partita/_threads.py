"""One BLAS thread for matrices of medium size.

BLAS threads that wait for a busy core use it in vain. That makes the factorisation of a few hundred
rows up to a hundred times slower; with one thread it is always fast.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from ._locks import new_lock


@cache
def _controller() -> Any:
    import scipy.linalg  # noqa: F401  # the controller knows only libraries that are loaded by now
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


class _OneThread:
    """Limit BLAS in the process: the first thread to enter sets it, the last to leave removes it.

    If each thread restored the limit it found, the last one could restore another thread's limit,
    and BLAS would be limited forever.
    """

    def __init__(self) -> None:
        self._lock = new_lock()
        self._inside = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._limit = _controller().limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limit.restore_original_limits()


_one_thread = _OneThread()


def one_thread() -> AbstractContextManager[Any]:
    """A context in which BLAS uses one thread."""
    return _one_thread
