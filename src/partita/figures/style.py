"""How our figures look: colours, headings, limits, and labels that keep apart."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from partita._optional import require
from partita._types import FloatArray, IntArray

#: Okabe & Ito's colours, which colour-blind readers can tell apart; the same in every figure.
COLOURS = {
    "igp-ucb": "#D55E00",
    "pi-gp-ucb-paper": "#0072B2",
    "pi-gp-ucb": "#009E73",
    "uniform": "#777777",
    "pi-gp-ts": "#CC79A7",
    "gp-ucb": "#E69F00",
    "hoo": "#56B4E9",
}
BLUE, ORANGE, RED = "#0072B2", "#D55E00", "#C03030"
GREY, INK = "#8A8A8A", "#333333"
#: Values drawn as dots, at most.
MOST_DOTS = 3000
#: Labels are at least this far apart, as a part of the panel's height.
LABEL_GAP = 0.062
_STYLE = {
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#999999",
    "axes.labelcolor": "#333333",
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#ECECEC",
    "xtick.color": "#666666",
    "ytick.color": "#666666",
    "xtick.labelcolor": "#333333",
    "ytick.labelcolor": "#333333",
    "svg.hashsalt": "partita",
}


def spread(heights: Sequence[float], gap: float) -> list[float]:
    """Ascending heights moved as little as needed to be `gap` apart: clusters keep their centre."""
    clusters: list[tuple[float, int]] = []  # centre and size
    for height in heights:
        centre, size = height, 1
        while clusters:
            below, count = clusters[-1]
            if (centre - (size - 1) * gap / 2) - (below + (count - 1) * gap / 2) >= gap:
                break
            clusters.pop()
            centre = (centre * size + below * count) / (size + count)
            size += count
        clusters.append((centre, size))
    return [centre + (i - (size - 1) / 2) * gap for centre, size in clusters for i in range(size)]


def within_panel(heights: Sequence[float], gap: float) -> list[float]:
    """Ascending heights pushed into [0, 1], still `gap` apart: over the top if there are many."""
    kept = list(heights)
    for i in reversed(range(len(kept))):
        kept[i] = min(kept[i], 1.0 if i == len(kept) - 1 else kept[i + 1] - gap)
    for i in range(len(kept)):
        kept[i] = max(kept[i], 0.0 if i == 0 else kept[i - 1] + gap)
    return kept


def evenly(n: int, most: int = MOST_DOTS) -> IntArray:
    """The numbers of at most `most` of n things, spaced evenly."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))


class Limits(NamedTuple):
    """The ends of an axis."""

    low: float
    high: float


def limits_of(values: FloatArray, *whole: FloatArray) -> Limits:
    """Limits that hold most of `values`, without a few wild ones, and all of the other arrays."""
    finite = values[np.isfinite(values)]
    parts = [np.quantile(finite, [0.01, 0.99])] if len(finite) else []
    parts += [part[np.isfinite(part)] for part in whole]
    inside = np.concatenate(parts) if parts else np.empty(0)
    if not len(inside):
        return Limits(0.0, 1.0)
    low, high = float(inside.min()), float(inside.max())
    room = 0.05 * (high - low) or 0.1 * max(abs(low), 1.0)
    return Limits(low - room, high + room)


def write_heading(panel: Any, title: str, text: str) -> None:
    """Write a title over a panel, and under it a line that says what is drawn."""
    lines = text.count("\n")
    panel.set_title(title, pad=17 + 10 * lines)
    look = {"color": "#777777", "va": "bottom", "fontsize": 8.5}
    # This number of points above the panel, however tall that is.
    panel.annotate(text, (0, 1), (0, 4), "axes fraction", "offset points", **look)


def write_title(figure: Any, title: str, text: str) -> None:
    """Write a title over a figure, and under it a text of two lines at most."""
    width, height = figure.get_size_inches()
    lines = textwrap.wrap(text, int(13.5 * width) - 8)
    if len(lines) > 2:
        lines = [lines[0], lines[1] + " …"]
    title = title.replace("-", "−")
    figure.text(0.25 / width, 1 - 0.16 / height, title, fontsize=13, fontweight="bold", va="top")
    figure.text(0.25 / width, 1 - 0.46 / height, "\n".join(lines), color="#555555", va="top")


@contextmanager
def drawing() -> Iterator[Any]:
    """Yield a function that makes a figure of a given size, in our style whatever the user's is."""
    matplotlib = require("matplotlib")
    made = require("partita.figures.shown").ShownFigure
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield lambda size: made(figsize=size)


def saved(figure: Any, title: str, text: str) -> dict[str, bytes]:
    """The figure under a title and a text, as PNG and SVG: bytes by the endings of their files."""
    width, height = figure.get_size_inches()
    figure.text(0.3 / width, 1 - 0.18 / height, title, fontsize=13, fontweight="bold", va="top")
    lines = "\n".join(textwrap.fill(part, int(13.2 * width) - 8) for part in text.split("\n"))
    figure.text(0.3 / width, 1 - 0.5 / height, lines, color="#555555", va="top", linespacing=1.4)
    files = {}
    for kind, metadata in (("png", {"Software": "Partita"}), ("svg", {"Date": None})):
        file = io.BytesIO()
        figure.savefig(file, format=kind, dpi=160, metadata=metadata, facecolor="white")
        files[kind] = file.getvalue()
    return files
