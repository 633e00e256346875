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
    """The BLAS libraries of the process."""
    import scipy.linalg  # noqa: F401  # the controller knows only libraries that are loaded by now
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


class _OneThread:
    """Limit BLAS in the process: the first thread to enter sets it, the last to leave removes it.

    If each thread restored the limit it found, the last one could restore another thread's limit,
    and BLAS would be limited forever. threadpoolctl's own limit looks up more than is needed here,
    which takes longer than a small matrix.
    """

    def __init__(self) -> None:
        self._lock = new_lock()
        self._inside = 0
        self._limited: list[tuple[Any, int]] = []

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._limited = []
                for library in _libraries():
                    threads = library.get_num_threads()
                    if threads is not None and threads != 1:
                        library.set_num_threads(1)
                        self._limited.append((library, threads))
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                for library, threads in self._limited:
                    library.set_num_threads(threads)
                self._limited = []


_one_thread = _OneThread()


def one_thread() -> AbstractContextManager[Any]:
    """A context in which BLAS uses one thread."""
    return _one_thread
