"""A status line on stderr that is updated in place: on a terminal only, and erased at the end."""

from __future__ import annotations

import shutil
import sys
from typing import TextIO

_WIDTH = 30


class StatusLine:
    """A line on a terminal; writes nothing anywhere else, unless `shown` says otherwise."""

    def __init__(self, stream: TextIO | None = None, shown: bool | None = None) -> None:
        # In some windowed programs there is no stderr at all.
        self._stream = sys.stderr if stream is None else stream
        self.shown = (
            (self._stream is not None and self._stream.isatty()) if shown is None else shown
        )
        self._dirty = False

    def write(self, text: str) -> None:
        """Replace the text, cut to the terminal's width."""
        if self.shown:
            columns = shutil.get_terminal_size().columns
            self._put(text if len(text) < columns else text[: max(columns - 2, 0)] + "…")
            self._dirty = True

    def wipe(self) -> None:
        """Erase the line."""
        if self._dirty:
            self._put("")
            self._dirty = False

    def _put(self, text: str) -> None:
        self._stream.write(f"\r\x1b[K{text}")
        self._stream.flush()


def bar(done: float, width: int = _WIDTH) -> str:
    """A progress bar for the fraction that is done, from 0 to 1."""
    full = int(width * min(max(done, 0.0), 1.0))
    return "█" * full + "░" * (width - full)
