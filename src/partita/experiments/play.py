"""One run, step by step: what a player chooses, what that is worth, and the time it takes.

Everything that plays a policy or a peer plays it with this loop.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol

from partita._types import FloatArray


class Player(Protocol):
    """Anything that chooses points and is told values."""

    def ask(self) -> Any:
        """The next point."""

    def tell(self, x: Any, y: float, /) -> Any:
        """The value y was seen at the point x, which was asked for."""


class Step(NamedTuple):
    """A point, its value without noise, and the time that its ask and tell took together."""

    x: FloatArray
    value: float
    seconds: float


def steps(
    player: Player,
    value: Callable[[Any], float],
    noise: Iterable[float],
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[Step]:
    """Steps of a run, one for each number of the noise, which is added to the value.

    Only asks and tells are timed. What the caller does between steps is not.
    """
    for added in noise:
        begin = clock()
        x = player.ask()
        asked = clock() - begin
        worth = value(x)
        told = worth + added
        begin = clock()
        player.tell(x, told)
        yield Step(x, worth, asked + clock() - begin)


class TimeUp(BaseException):
    """The time of a run is up; a BaseException, so that no player catches it."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise `TimeUp` once this much wall time has passed; only in a main thread with signals."""
    if not hasattr(signal, "SIGALRM") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(*_: object) -> None:
        raise TimeUp

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
