"""Ctrl-C, and other requests to end, that wait while a policy is being changed, and no longer."""

from __future__ import annotations

import signal
import threading
from types import FrameType
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
        self._held = _Held(self)

    def __enter__(self) -> Self:
        """Take over Python's handler of Ctrl-C."""
        if self._main:
            self._outer, Interrupts.current = Interrupts.current, self
        if self._main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._arrived)
            self._installed = True
        return self

    def __exit__(self, *error: object) -> None:
        """Give it back."""
        if self._main:
            Interrupts.current = self._outer
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._installed = False

    def held(self) -> _Held:
        """A context that is not interrupted: Ctrl-C is raised at its end."""
        return self._held

    def begin(self) -> None:
        """From now on Ctrl-C waits."""
        self._busy = True

    def end(self, raising: bool) -> None:
        """It waits no longer, and is raised now if it came, unless an error is under way."""
        self._busy = False
        if self._came and not raising:
            self._came = False
            raise KeyboardInterrupt

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        self.request()

    def request(self) -> None:
        """Raise KeyboardInterrupt, now or when the context of `held` ends."""
        if self._busy and not self._came:
            self._came = True
        else:
            self._came = False
            raise KeyboardInterrupt


class _Held:
    """The context of `Interrupts.held`, entered twice a step: a generator would be slower."""

    def __init__(self, interrupts: Interrupts) -> None:
        self._interrupts = interrupts

    def __enter__(self) -> None:
        self._interrupts.begin()

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self._interrupts.end(kind is not None)


def as_ctrl_c(number: int, frame: FrameType | None) -> None:
    """A handler that lets another signal end a run as Ctrl-C does, even where that is ignored."""
    if Interrupts.current is None:
        raise KeyboardInterrupt
    Interrupts.current.request()
