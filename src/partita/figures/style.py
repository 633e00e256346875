"""How our figures look: their style, titles, and labels that keep apart."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from partita._optional import require

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


@contextmanager
def drawing() -> Iterator[Any]:
    """A function that makes a new figure, in our style whatever the user's is."""
    matplotlib = require("matplotlib")
    module = require("matplotlib.figure")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield lambda size: module.Figure(figsize=size)


def saved(figure: Any, title: str, text: str) -> dict[str, bytes]:
    """The figure as PNG and SVG, by their endings."""
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
