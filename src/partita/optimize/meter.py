"""The progress bar of a run: the number of evaluations, and the best point so far."""

from __future__ import annotations

import math
import time
from typing import TextIO

from partita._status import StatusLine, bar
from partita._text import duration

from .player import Player
from .trial import Suggestion

#: Seconds between two updates.
EVERY = 0.1
#: Computing the recommendation may take at most this fraction of the run's time.
SHARE = 0.05


class Meter:
    """One line: a bar, the best mean ± its bound, the certificate, evaluations per second.

    It is shown on a terminal and in a notebook only, unless `shown` says otherwise.
    """

    def __init__(
        self,
        player: Player,
        n_evals: int | None,
        max_seconds: float | None,
        shown: bool | None = None,
        stream: TextIO | None = None,
    ) -> None:
        self._line = StatusLine(stream, shown)
        self._player = player
        self._n_evals, self._max_seconds = n_evals, max_seconds
        self._start = self._next = time.monotonic()
        self._next_known = self._start
        self._known = ""

    @property
    def shown(self) -> bool:
        """Whether the line is visible."""
        return self._line.shown

    def know(self, best: Suggestion, certificate: float) -> None:
        """Show this recommendation from now on."""
        if self._line.shown:
            reach = max(best.upper - best.mean, best.mean - best.lower)
            self._known = f"best {best.mean:.4g} ± {reach:.2g}"
            if math.isfinite(certificate):
                self._known += f"  certificate {certificate:.2g}"

    def show(self, done: int, failed: int) -> None:
        """Show the numbers of finished and failed evaluations, if an update is due."""
        if not self._line.shown:
            return
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + EVERY
        if now >= self._next_known and done:
            self.know(self._player.recommend(), self._player.certificate())
            spent = time.monotonic() - now
            self._next_known = now + max(5 * EVERY, spent / SHARE)
        self._line.write(self._text(done, failed, now - self._start))

    def close(self) -> None:
        """Erase the line."""
        self._line.wipe()

    def _text(self, done: int, failed: int, seconds: float) -> str:
        parts = []
        by_count = done / self._n_evals if self._n_evals else 0.0
        by_time = seconds / self._max_seconds if self._max_seconds else 0.0
        part = max(by_count, by_time)
        if part:
            parts.append(bar(part, 20))
        parts.append(f"{done:,}/{self._n_evals:,}" if self._n_evals else f"{done:,} evaluations")
        if self._known:
            parts.append(self._known)
        if done and seconds > 0:
            parts.append(_rate(done / seconds))
        if failed:
            parts.append(f"{failed:,} failed")
        if part > 0 and seconds > 1:
            parts.append(f"{duration(seconds * max(1 / part - 1, 0.0))} left")
        return "  ".join(parts)


def _rate(per_second: float) -> str:
    if per_second >= 10:
        return f"{per_second:,.0f}/s"
    return f"{per_second:.1f}/s" if per_second >= 0.1 else f"{60 * per_second:.1g}/min"
