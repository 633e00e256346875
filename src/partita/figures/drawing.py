"""What the panels of a result's figure share: colours, headings, limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from partita._types import FloatArray

BLUE, ORANGE, RED = "#0072B2", "#D55E00", "#C03030"
GREY, INK = "#8A8A8A", "#333333"
#: Values drawn as dots, at most.
MOST_DOTS = 3000


def head(panel: Any, title: str, text: str) -> None:
    """A title, and a line under it that says what is drawn."""
    panel.set_title(title, pad=17)
    panel.text(0, 1.02, text, transform=panel.transAxes, color="#777777", va="bottom", fontsize=8.5)


def some(n: int, most: int = MOST_DOTS) -> npt.NDArray[np.int64]:
    """Numbers of at most so many of n things, evenly."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))


def reach(values: FloatArray, *known: FloatArray) -> tuple[float, float]:
    """Limits that hold most of the values and all that is known: a few wild values are left out."""
    inside = values[np.isfinite(values)]
    parts = [np.quantile(inside, [0.01, 0.99])] if len(inside) else []
    parts += [part[np.isfinite(part)] for part in known]
    everything = np.concatenate(parts) if parts else np.empty(0)
    if not len(everything):
        return 0.0, 1.0
    low, high = float(everything.min()), float(everything.max())
    room = 0.05 * (high - low) or 0.1 * max(abs(low), 1.0)
    return low - room, high + room
