"""One BLAS thread for matrices of middling size.

BLAS threads that wait for a busy core spin, which makes the factorisation of a few hundred rows up
to a hundred times slower; with one thread it is as fast as ever.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """A context in which BLAS uses one thread."""
    limit: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limit
