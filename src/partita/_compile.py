"""Numba's `njit`, with compilations that Ctrl-C does not cut short.

A function is compiled when it is first called with arguments of some types, which takes up to a few
seconds where there is no cache. An interrupt in the middle of that may leave Numba's own tables
half changed, and every later call of the function failing. So it waits until the function is
compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

from ._signals import uninterrupted


def njit(**settings: Any) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that compiles a function, with settings of `numba.njit`."""

    def compiled(function: Callable[..., Any]) -> Any:
        made = numba.njit(**settings)(function)
        compile_for = getattr(made, "compile", None)
        if compile_for is not None:  # the compiler is not off
            made.compile = lambda signature: uninterrupted(lambda: compile_for(signature))
        return made

    return compiled
