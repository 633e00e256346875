"""Ctrl-C, and other requests to end, that wait while a policy is being changed, and no longer."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import ClassVar, Self


class Interrupts:
    """While entered, Ctrl-C raises KeyboardInterrupt as ever, but not within `held()`.

    A policy that was left half changed could not be asked for its answer. Only Python's own
    handler is replaced, and only in the main thread, where signals arrive. A second Ctrl-C does
    not wait.
    """

    #: Those of the run that the main thread makes.
    current: ClassVar[Interrupts | None] = None

    def __init__(self) -> None:
        self._installed = False
        self._outer: Interrupts | None = None
        self._main = threading.current_thread() is threading.main_thread()
        self._busy = self._came = False

    def __enter__(self) -> Self:
        """Take over Python's handler of Ctrl-C."""
        if self._main:
            self._outer, Interrupts.current = Interrupts.current, self
        if self._main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._arrived)
            self._installed = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Give it back."""
        if self._main:
            Interrupts.current = self._outer
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._installed = False

    @contextmanager
    def held(self) -> Iterator[None]:
        """Not to be interrupted: Ctrl-C is raised at its end."""
        self._busy = True
        try:
            yield
        finally:
            self._busy = False
        if self._came:
            self._came = False
            raise KeyboardInterrupt

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        self._request()

    def _request(self) -> None:
        if self._busy and not self._came:
            self._came = True
        else:
            self._came = False
            raise KeyboardInterrupt


def as_ctrl_c(number: int, frame: FrameType | None) -> None:
    """A handler that lets another signal end a run as Ctrl-C does, even where that is ignored."""
    if Interrupts.current is None:
        raise KeyboardInterrupt
    Interrupts.current._request()
