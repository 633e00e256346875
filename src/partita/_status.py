"""A status line that is updated in place: on a terminal or in a notebook; erased at the end."""

from __future__ import annotations

import html
import shutil
import sys
from importlib import import_module
from typing import Any, TextIO

_WIDTH = 30


class StatusLine:
    """A line on a terminal or in a notebook; writes nothing elsewhere, unless `shown` says so."""

    def __init__(self, stream: TextIO | None = None, shown: bool | None = None) -> None:
        # In some windowed programs there is no stderr at all.
        self._stream = sys.stderr if stream is None else stream
        self._page = _Page() if stream is None and in_notebook() else None
        if shown is None:
            on_terminal = self._stream is not None and self._stream.isatty()
            shown = on_terminal or self._page is not None
        self.shown = shown
        self._dirty = False

    def write(self, text: str) -> None:
        """Replace the text, cut to the terminal's width."""
        if self.shown:
            columns = shutil.get_terminal_size().columns
            if self._page is not None or len(text) < columns:
                self._put(text)
            else:
                self._put(text[: max(columns - 2, 0)] + "…")
            self._dirty = True

    def wipe(self) -> None:
        """Erase the line."""
        if self._dirty:
            self._put("")
            self._dirty = False

    def _put(self, text: str) -> None:
        if self._page is not None:
            self._page.put(text)
            return
        self._stream.write(f"\r\x1b[K{text}")
        self._stream.flush()


def bar(done: float, width: int = _WIDTH) -> str:
    """A progress bar for the fraction that is done, from 0 to 1."""
    full = int(width * min(max(done, 0.0), 1.0))
    return "█" * full + "░" * (width - full)


# -- notebooks -------------------------------------------------------------------------------------


def in_notebook() -> bool:
    """Whether this runs in the kernel of a notebook. IPython is not imported to find out."""
    ipython = sys.modules.get("IPython")
    shell = getattr(ipython, "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


class _Page:
    """A line in the output of a notebook's cell, changed in its place."""

    def __init__(self) -> None:
        self._handle: Any = None

    def put(self, text: str) -> None:
        """Show a text in place of the one before."""
        shown = _Shown(text)
        if self._handle is None:
            self._handle = import_module("IPython.display").display(shown, display_id=True)
        else:
            self._handle.update(shown)


class _Shown:
    """A text as a notebook shows it, in the colours of the page."""

    def __init__(self, text: str) -> None:
        self._text = text

    def _repr_html_(self) -> str:
        return f'<div style="font-family:monospace;white-space:pre">{html.escape(self._text)}</div>'

    def __repr__(self) -> str:
        return self._text
