"""One BLAS thread for matrices of middling size.

BLAS threads that wait for a busy core spin, which makes the factorisation of a few hundred rows up
to a hundred times slower; with one thread it is as fast as ever. Needs threadpoolctl, which comes
with the extra `threads` (and with joblib and scikit-learn); without it BLAS does as it likes.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any


@cache
def _controller() -> Any:
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()


def one_thread() -> AbstractContextManager[Any]:
    """A context in which BLAS uses one thread, if that can be arranged."""
    controller = _controller()
    if controller is None:
        return nullcontext()
    limit: AbstractContextManager[Any] = controller.limit(limits=1, user_api="blas")
    return limit
