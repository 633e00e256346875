"""Delay Ctrl-C until a piece of work is done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

#: Signals that may have a handler which raises an error.
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def uninterrupted(work: Callable[[], T]) -> T:
    """Run `work` and return its result; signals that arrive meanwhile are handled after it.

    Only for work that ends within seconds. Signals reach Python code in the main thread only, so
    nothing is changed in other threads. A signal that Python does not handle is not delayed: one
    that is ignored, has the default action, or is handled by a program that embeds Python.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()
    held = _Held()
    try:
        held.begin()
        return work()
    finally:
        try:
            held.end()
        finally:  # again, in case the first call was interrupted
            held.end()
        held.deliver()


class _Held:
    """Delayed signals: their original handlers, and which of them arrived."""

    def __init__(self) -> None:
        self._handlers: dict[signal.Signals, Any] = {}
        self._came: list[tuple[int, FrameType | None]] = []

    def begin(self) -> None:
        """Replace the handlers."""
        for number in SIGNALS:
            handler = signal.getsignal(number)
            if not callable(handler):  # ignored, default, or not set from Python
                continue
            self._handlers[number] = handler
            try:
                signal.signal(number, self._note)
            except ValueError:  # a subinterpreter: no signals here
                del self._handlers[number]

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._came.append((number, frame))

    def end(self) -> None:
        """Restore the handlers, unless the work has installed others."""
        for number, handler in self._handlers.items():
            if signal.getsignal(number) == self._note:
                signal.signal(number, handler)

    def deliver(self) -> None:
        """Handle the signals that arrived, each once."""
        came, self._came = dict(self._came), []
        for number, frame in came.items():
            self._handlers[signal.Signals(number)](number, frame)
