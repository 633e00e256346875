"""Ticks and labels that fit the room they have."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from partita._optional import require

from .style import Limits

#: Width of a character, in parts of the size of the font; width and height of one of a tick's, and
#: the gap between two labels, in inches.
CHARACTER, LETTER, HEIGHT, GAP = 0.6, 0.085, 0.14, 0.08
#: Characters of a word at a tick that is turned, and that is beside a vertical axis.
TURNED, BESIDE = 13, 11
#: Steps between ticks, times powers of ten.
STEPS = [1, 2, 2.5, 5, 10]
#: Multiples of each power of ten that may have ticks, the most first.
_MULTIPLES = ((1, 2, 3, 5), (1, 2, 5), (1, 3), (1,))


def log_ticks(limits: Limits, inches: float, upright: bool = False) -> dict[float, str]:
    """Round places on a log axis of some length, at least 2, and labels that do not overlap.

    None if there are no such places. `upright` is for labels beneath each other.
    """
    low, high = limits
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    choices: list[list[float]] = [
        [m * 10.0**k for k in range(first, last + 1) for m in multiples]
        for multiples in (_MULTIPLES if last - first <= 4 else _MULTIPLES[-1:])
    ]
    choices += [[10.0**k for k in range(first, last + 1) if k % n == 0] for n in range(2, 40)]
    scale = inches / math.log10(high / low)
    for choice in choices:
        inside = [tick for tick in choice if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]
        if len(inside) < 2:
            continue
        powers = any(not -3 <= math.log10(tick) < 4 for tick in inside)
        labels = [_log_label(tick, powers) for tick in inside]
        sizes = [HEIGHT if upright else label.width for label in labels]
        gaps = [scale * math.log10(b / a) for a, b in pairwise(inside)]
        if all(g >= (v + w) / 2 + GAP for g, (v, w) in zip(gaps, pairwise(sizes), strict=True)):
            return {tick: label.text for tick, label in zip(inside, labels, strict=True)}
    return {}


class _Label(NamedTuple):
    """A label, and about how wide it is, in inches."""

    text: str
    width: float


def _log_label(value: float, power: bool) -> _Label:
    """A round number: 0.01 or 500, or as a power of ten."""
    if not power:
        return _Label(f"{value:g}", LETTER * len(f"{value:g}"))
    exponent = math.floor(math.log10(value) + 1e-9)
    factor = round(value / 10.0**exponent)
    width = LETTER * (2 + 0.75 * len(str(exponent)) + (0 if factor == 1 else 1.6))
    text = f"10^{{{exponent}}}"
    return _Label(f"${text}$" if factor == 1 else f"${factor}{{\\cdot}}{text}$", width)


def set_log_axis(panel: Any, which: str, limits: Limits | None) -> None:
    """Put ticks that do not overlap on a log axis of a panel."""
    ticker = require("matplotlib.ticker")
    axis = getattr(panel, f"{which}axis")
    getattr(panel, f"set_{which}scale")("log")
    axis.set_minor_formatter(ticker.NullFormatter())
    ends = Limits(*getattr(panel, f"get_{which}lim")()) if limits is None else limits
    if not 0.0 < ends.low < ends.high < math.inf:
        return
    if limits is not None:
        getattr(panel, f"set_{which}lim")(*limits)
    ticks = log_ticks(ends, inches_of(panel, which), upright=which == "y")
    if ticks:
        axis.set_ticks(list(ticks), list(ticks.values()))
    else:  # less than a factor of two or three: as on a linear axis
        axis.set_major_locator(ticker.MaxNLocator(3, steps=STEPS))
        axis.set_major_formatter("{x:g}")


def set_linear_axis(panel: Any, which: str, whole: bool) -> None:
    """Put round ticks with room between them on a linear axis, at whole numbers if needed."""
    most = max(int(inches_of(panel, which) / (0.5 if which == "x" else 0.3)), 2)
    locator = require("matplotlib.ticker").MaxNLocator(most, steps=STEPS, integer=whole)
    getattr(panel, f"{which}axis").set_major_locator(locator)


def inches_of(panel: Any, which: str) -> float:
    """The length of a panel's x or y axis."""
    box = panel.get_window_extent()
    return float((box.width if which == "x" else box.height) / panel.figure.dpi)


def fitted(text: str, inches: float, size: float = 9.5, lines: int = 2) -> str:
    """A label for a width: in `lines` lines at most, its middle left out if needed."""
    most = max(int(inches * 72 / (CHARACTER * size)), 4)
    wrapped = _wrapped(text, most)
    if len(wrapped) <= lines:
        return "\n".join(wrapped)
    room = most * lines - 1
    short = text[: room - room // 2] + "…" + text[len(text) - room // 2 :]
    return "\n".join(short[i : i + most] for i in range(0, len(short), most))


def _wrapped(text: str, most: int) -> list[str]:
    """Lines of at most `most` characters, broken after spaces and underscores where it can be."""
    lines = [""]
    for word in re.split(r"(?<=[\s_.-])", text):
        if len(lines[-1]) + len(word.rstrip()) > most and lines[-1]:
            lines.append("")
        lines[-1] += word
        while len(lines[-1].rstrip()) > most:
            lines[-1:] = [lines[-1][:most], lines[-1][most:]]
    return [line.strip() for line in lines]


def shortened(text: str, most: int) -> str:
    """A text of at most `most` characters, its end left out if needed."""
    return text if len(text) <= most else text[: most - 1] + "…"


def set_words(panel: Any, which: str, words: Sequence[str]) -> None:
    """Put words at 0, 1, 2, … on an axis, turned or left out where they have no room."""
    axis, n, inches = getattr(panel, f"{which}axis"), len(words), inches_of(panel, which)
    getattr(panel, f"set_{which}lim")(-0.5, n - 0.5)
    if which == "y":
        every = math.ceil(n * 0.2 / inches)
        places = range(0, n, every)
        axis.set_ticks(places, [shortened(words[i], BESIDE) for i in places])
        return
    level = words_fit(words, inches)
    every = 1 if level else math.ceil(n * 0.2 / inches)
    places = range(0, n, every)
    axis.set_ticks(places, [words[i] if level else shortened(words[i], TURNED) for i in places])
    if not level:
        for label in panel.get_xticklabels():
            label.set(rotation=30, ha="right", rotation_mode="anchor")


def write_left_out(figure: Any, names: Sequence[str], why: str) -> None:
    """Write under a figure which parameters are not in it, and why; nothing if all are."""
    if not names:
        return
    width, height = figure.get_size_inches()
    text = f"Left out, since {why}: "
    text += listed_names(names, int(14 * width) - len(text) - 24)
    figure.text(0.25 / width, 0.12 / height, text, color="#555555", fontsize=8.5, va="bottom")


def words_fit(words: Sequence[str], inches: float) -> bool:
    """Whether words have room beside each other on an axis."""
    return max(map(len, words)) * LETTER + 0.1 <= inches / len(words)


def listed_names(names: Sequence[str], most: int) -> str:
    """Names in a line of about `most` characters: "a, b, c and 4 more"."""
    shown: list[str] = []
    for name in names:
        if shown and len(", ".join(shown)) + len(name) > most:
            break
        shown.append(shortened(name, 40))
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
