"""A progress bar for a terminal; anywhere else it is silent."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from typing import Self, TextIO

from partita._status import StatusLine, bar
from partita._text import duration

from .store import AnyRun

__all__ = ["Progress", "duration"]

#: Seconds between two updates of the line.
_TICK = 1.0


class Progress:
    """Runs done and an estimate of the time left, on one line of stderr.

    What is left is what was expected of the runs left, corrected by how long finished runs took.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._line = StatusLine(stream)
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._ticker: threading.Thread | None = None
        self._total = self._done = self._jobs = 0
        self._left = self._expected = self._spent = 0.0
        self._last = 0.0

    def __enter__(self) -> Self:
        """Nothing is shown before `start`."""
        return self

    def __exit__(self, *_: object) -> None:
        """Wipe the line."""
        self._stop.set()
        if self._ticker is not None:
            self._ticker.join()
            self._line.wipe()

    def start(self, total: int, left: Sequence[float], jobs: int) -> None:
        """There are `total` runs; `left` has the seconds expected of those that are to be made.

        They are made `jobs` at a time.
        """
        self._total, self._done, self._jobs = total, total - len(left), max(1, jobs)
        self._left = sum(left)
        self._last = time.monotonic()
        if self._line.shown and left and self._ticker is None:
            self._draw()
            self._ticker = threading.Thread(target=self._tick, daemon=True)
            self._ticker.start()

    def finished(self, run: AnyRun, expected: float) -> None:
        """One more run is done, of which `expected` seconds were expected."""
        with self._lock:
            self._done += 1
            self._left -= expected
            self._expected += expected
            self._spent += run.total_seconds
            self._last = time.monotonic()
        if self._ticker is not None:
            self._draw()

    def seconds_left(self) -> float:
        """An estimate of the time left."""
        factor = self._spent / self._expected if self._expected else 1.0
        since = time.monotonic() - self._last
        return max(0.0, self._left * factor / self._jobs - since)

    def _tick(self) -> None:
        while not self._stop.wait(_TICK):
            self._draw()

    def _draw(self) -> None:
        with self._lock:
            part = bar(self._done / max(1, self._total))
            seconds = self.seconds_left()
            left = f"{max(1, math.ceil(seconds))} s" if seconds < 10 else duration(seconds)
            self._line.write(f"{part} {self._done}/{self._total} runs, about {left} left")
