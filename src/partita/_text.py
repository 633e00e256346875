"""Format numbers, times, parameters, tables and lists of words for users."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

#: Characters that control a terminal or hide others: control characters, line separators, marks of
#: writing direction, and surrogates.
HIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)


def printable(text: str) -> str:
    """A text on one line, safe for a terminal: hidden characters are escaped as in JSON."""
    return HIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def printable_lines(text: str) -> str:
    """Several lines, each safe for a terminal."""
    return "\n".join(map(printable, text.split("\n")))


def number(value: float) -> str:
    """A number to six digits."""
    return f"{value:.6g}" if math.isfinite(value) else str(value)


def value_text(value: Any) -> str:
    """A parameter's value: a real number to six digits, anything else in full."""
    return number(value) if isinstance(value, float) else str(value)


def params_text(params: Any) -> str:
    """Parameters on one line: "rate = 0.01, depth = 3", or "[0.5, 1]" for an array or a list."""
    if isinstance(params, dict):
        return ", ".join(f"{name} = {value_text(value)}" for name, value in params.items())
    return f"[{', '.join(value_text(value) for value in params)}]"


def message_of(error: BaseException) -> str:
    """The message of an error; users' own error classes may fail to give one."""
    try:
        return str(error)
    except Exception as another:
        return f"(its message cannot be read: __str__ raised {type(another).__name__})"


def error_text(error: BaseException) -> str:
    """An error as one line of text, without a full stop."""
    text = " ".join(message_of(error).split()).rstrip(".")
    name = type(error).__name__
    return f"{name}: {text if len(text) <= 200 else text[:199] + '…'}" if text else name


def bounded(value: float, lower: float | None, upper: float | None, digits: int = 6) -> str:
    """A value and its bounds: "0.3, between 0.2 and 0.4"; only "0.3" if a bound is infinite."""
    if lower is None or upper is None or not math.isfinite(upper - lower):
        return number(value)
    return f"{value:.{digits}g}, between {lower:.{digits}g} and {upper:.{digits}g}"


def duration(seconds: float) -> str:
    """A time in a readable unit: 0.35 s, 97 s, 12 min, 30 h."""
    if seconds < 0.095:
        return f"{seconds:.2g} s"
    if seconds < 9.95:
        return f"{seconds:.2f} s" if seconds < 0.995 else f"{seconds:.1f} s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 150 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds >= 36_000 else f"{seconds / 3600:.1f} h"


def step_time(seconds: float) -> str:
    """A short time in a readable unit: 12 µs, 3.4 ms, 0.35 s."""
    if seconds < 0.9995e-3:
        return f"{1e6 * seconds:.0f} µs" if seconds >= 9.95e-6 else f"{1e6 * seconds:.1f} µs"
    return f"{1e3 * seconds:.1f} ms" if seconds < 0.0995 else duration(seconds)


def listed(words: Sequence[object], last: str = "and") -> str:
    """Words as a sentence lists them: "a, b and c"."""
    texts = [str(word) for word in words]
    return f" {last} ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table with aligned columns; the first row is its header."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in rows]
    return [lines[0], "| " + " | ".join("-" * width for width in widths) + " |", *lines[1:]]
