"""Delay Ctrl-C, and other requests to stop, while a policy is being changed."""

from __future__ import annotations

import signal
import threading
from types import FrameType
from typing import ClassVar, Self


class Interrupts:
    """A context in which Ctrl-C raises KeyboardInterrupt as usual, but not within `held()`.

    A half-changed policy could not give a recommendation. Only Python's own handler is replaced,
    and only in the main thread, where signals arrive. A second Ctrl-C is not delayed.
    """

    #: The instance of the run in the main thread.
    current: ClassVar[Interrupts | None] = None

    def __init__(self) -> None:
        self._installed = False
        self._outer: Interrupts | None = None
        self._main = threading.current_thread() is threading.main_thread()
        self._busy = self._came = False
        self._held = _Held(self)

    def __enter__(self) -> Self:
        """Replace Python's handler of Ctrl-C."""
        if self._main:
            self._outer, Interrupts.current = Interrupts.current, self
        if self._main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._arrived)
            self._installed = True
        return self

    def __exit__(self, *error: object) -> None:
        """Restore Python's handler of Ctrl-C."""
        if self._main:
            Interrupts.current = self._outer
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._installed = False

    def held(self) -> _Held:
        """A context that Ctrl-C does not interrupt: KeyboardInterrupt is raised at its end."""
        return self._held

    def begin(self) -> None:
        """Delay Ctrl-C from now on."""
        self._busy = True

    def end(self, raising: bool) -> None:
        """Stop delaying; raise a delayed Ctrl-C now, unless another error is being raised."""
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
    """The context of `Interrupts.held`. It is entered twice per evaluation, so it must be fast."""

    def __init__(self, interrupts: Interrupts) -> None:
        self._interrupts = interrupts

    def __enter__(self) -> None:
        self._interrupts.begin()

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        self._interrupts.end(kind is not None)


def as_ctrl_c(number: int, frame: FrameType | None) -> None:
    """A signal handler that ends a run as Ctrl-C does, even where Ctrl-C is ignored."""
    if Interrupts.current is None:
        raise KeyboardInterrupt
    Interrupts.current.request()
