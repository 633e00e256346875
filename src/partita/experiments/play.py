"""One run, step by step: what a player chooses, what that is worth, and the time it takes.

All runs of policies and peers use this loop.
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
    """Anything that chooses points and gets their values."""

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
    noisy: Callable[[float], float],
    count: int,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[Step]:
    """The first `count` steps of a run.

    Only asks and tells are timed. What the caller does between steps is not.

    Parameters
    ----------
    player : what chooses the points
    value : f at a point, without noise
    noisy : what the player is told of a value
    count : int
    clock : time in seconds
    """
    for _ in range(count):
        begin = clock()
        x = player.ask()
        asked = clock() - begin
        worth = value(x)
        told = noisy(worth)
        begin = clock()
        player.tell(x, told)
        yield Step(x, worth, asked + clock() - begin)


def added(noise: Iterable[float]) -> Callable[[float], float]:
    """A function that adds the next number of the noise to a value."""
    following = iter(noise)
    return lambda value: value + next(following)


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
