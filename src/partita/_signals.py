"""Work that Ctrl-C must not cut short: it waits until the work is done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

#: Requests to end that may have a handler which raises.
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def uninterrupted(work: Callable[[], T]) -> T:
    """What `work` returns; signals that come meanwhile are handled after it, as ever.

    Only for work that ends within seconds. Signals reach Python code in the main thread alone, so
    others are left as they are, and so is a signal that Python does not handle: ignored, ending
    the process as by default, or handled by the program that Python is embedded in.
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
        finally:  # again, should an interrupt have come as the first began
            held.end()
        held.deliver()


class _Held:
    """Signals that wait: the handlers that they had, and which of them came."""

    def __init__(self) -> None:
        self._handlers: dict[signal.Signals, Any] = {}
        self._came: list[tuple[int, FrameType | None]] = []

    def begin(self) -> None:
        """Take over from the handlers."""
        for number in SIGNALS:
            handler = signal.getsignal(number)
            if not callable(handler):  # ignored, by default, or not one of Python's
                continue
            self._handlers[number] = handler
            try:
                signal.signal(number, self._note)
            except ValueError:  # a subinterpreter: no signals here
                del self._handlers[number]

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._came.append((number, frame))

    def end(self) -> None:
        """Give the handlers back, unless the work has put others in place of ours."""
        for number, handler in self._handlers.items():
            if signal.getsignal(number) == self._note:
                signal.signal(number, handler)

    def deliver(self) -> None:
        """Handle what came, each signal once."""
        came, self._came = dict(self._came), []
        for number, frame in came.items():
            self._handlers[signal.Signals(number)](number, frame)
