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
def _libraries() -> list[Any]:
    """The BLAS libraries of the process.

    `ThreadpoolController.limit` would describe all libraries in words at each call, which takes
    longer than a small factorisation.
    """
    import scipy.linalg  # noqa: F401  # the controller knows only libraries that are loaded by now
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


class _OneThread:
    """Limit BLAS in the process: the first thread to enter sets it, the last to leave removes it.

    If each thread restored the limit it found, the last one could restore another thread's limit,
    and BLAS would be limited forever.
    """

    def __init__(self) -> None:
        self._lock = new_lock()
        self._inside = 0
        #: Libraries that were limited, and the threads that they had.
        self._limited: list[tuple[Any, int]] = []

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._limited = [(one, one.num_threads) for one in _libraries()]
                for library, threads in self._limited:
                    if threads != 1:
                        library.set_num_threads(1)
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                for library, threads in self._limited:
                    if threads != 1:
                        library.set_num_threads(threads)


_one_thread = _OneThread()


def one_thread() -> AbstractContextManager[Any]:
    """A context in which BLAS uses one thread."""
    return _one_thread
