"""What a program printed, read: its last number, its last two, values by name, many values."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from partita.errors import PartitaError

from .named import named_values
from .processes import Output

if TYPE_CHECKING:
    from partita.optimize.aggregates import Aggregate

#: The number of characters of a program's output that a message quotes.
QUOTED = 200

_COLOURS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
#: Digits, with underscores between them as many languages write thousands.
_DIGITS = r"[0-9]+(?:_[0-9]+)*"
#: A number that is not the end of a word: "model2" and "layer-2" contain none. Anything may follow:
#: "0.93%" and "12ms" contain one. But a part of another token is not a number, such as the 0 of
#: 0x1F or the 1 of 1__000. (Possessive quantifiers would express that, but Python 3.11.2 has a bug
#: in them.) NaN and infinity count as numbers here, so that they are noticed.
_NUMBER = re.compile(
    r"(?<![\w.])(?<![^\W\d][+-])[+-]?"
    rf"(?:(?!0(?:x[0-9a-f]|o[0-7]|b[01]))(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})"
    rf"(?:e[+-]?{_DIGITS})?"
    # Not followed by the rest of a number, which a shorter match would leave.
    r"(?![0-9]|_+[0-9]|\.[0-9]|e[+-]?[0-9])|(?:nan|inf(?:inity)?)(?!\w))",
    re.IGNORECASE,
)


class ProgramFailed(PartitaError, RuntimeError):
    """The program gave no value: it failed, took too long, or printed no number.

    `command` is the program with its arguments, if known.
    """

    command: tuple[str, ...] = ()


def by_name(text: str) -> dict[str, float]:
    """The values of the lines name=value; `ProgramFailed` if there are none."""
    values = named_values(text)
    if not values:
        line = last_line(text)
        what = f", but {line}" if line else ""
        raise ProgramFailed(f"printed no line such as loss=0.3{what}")
    return values


def last_number(text: str) -> float:
    """The last number in a program's output; `ProgramFailed` if there is no usable one."""
    number = _numbers(text)[-1]
    value = float(number)
    if not math.isfinite(value):
        raise ProgramFailed(f"the last number it printed is {number}")
    return value


def last_pair(text: str) -> tuple[float, float]:
    """The last two numbers in a program's output: a value and its standard deviation."""
    numbers = _numbers(text)
    if len(numbers) == 1:
        raise ProgramFailed(
            f"printed one number, {numbers[0]}, but --std needs two: the value, then its standard "
            "deviation"
        )
    value, std = map(float, numbers[-2:])
    if not math.isfinite(value):
        raise ProgramFailed(f"the value, the second to last number it printed, is {numbers[-2]}")
    if not 0.0 <= std < math.inf:
        raise ProgramFailed(
            f"the standard deviation, the last number it printed, is {numbers[-1]}, but must be "
            "a finite number of at least 0"
        )
    return value, std


def _numbers(text: str) -> list[str]:
    """The numbers in a program's output, at least one."""
    numbers = _NUMBER.findall(text.replace("\N{MINUS SIGN}", "-"))
    if not numbers:
        line = last_line(text)
        raise ProgramFailed(f"printed no number, but {line}" if line else "printed nothing")
    return numbers


def text_of(output: Output) -> str:
    """The last part of a program's output, without colours."""
    text = output.content.decode("utf-8", "replace").replace("\N{MINUS SIGN}", "-")
    if output.cut and (match := _NUMBER.match(text)):
        text = f"…{text[match.end() :]}"  # the beginning of the first word may be cut off
    return _COLOURS.sub("", text)


def last_line(text: str) -> str:
    """The last line of a text, quoted and shortened; nothing if it is empty."""
    lines = text.strip().splitlines()
    if not lines:
        return ""
    line = lines[-1].strip()
    return repr(line if len(line) <= QUOTED else line[:QUOTED] + "…")


def replicates_of(text: str, count: int, cut: bool = False) -> list[float] | Aggregate:
    """The values of a program that was asked for `count`: those it printed last, or their sums.

    Sums are lines mean=..., std=... (the sample deviation, not needed for one value) and count=...
    """
    named = named_values(text)
    if "mean" in named:
        return _sums(named, count)
    numbers = _NUMBER.findall(text)[-count:]
    if len(numbers) < count:
        why = ", more than can be read" if cut else ""
        raise ProgramFailed(
            f"was asked for {count:,} values, but printed {len(numbers):,} numbers{why}. Print "
            "{count} values, or lines mean=, std= (their sample deviation) and count="
        )
    values = [float(number) for number in numbers]
    for number, value in zip(numbers, values, strict=True):
        if not math.isfinite(value):
            raise ProgramFailed(f"one of the values it printed is {number}")
    return values


def _sums(named: dict[str, float], count: int) -> Aggregate:
    """The mean, deviation and count that a program printed by name."""
    from partita.optimize.aggregates import Aggregate  # late: other commands do not need it

    if named.get("count") != count:
        given = named.get("count", "no line count=")
        raise ProgramFailed(f"was asked for {count:,} values, but printed count={given}")
    std = named.get("std")
    if not math.isfinite(named["mean"]):
        raise ProgramFailed(f"the mean it printed is {named['mean']}")
    if count == 1:
        return Aggregate(named["mean"], None, 1)
    if std is None or not 0.0 <= std < math.inf:
        raise ProgramFailed(
            f"printed mean= and count=, but {'no' if std is None else std} std=: print the sample "
            "deviation of the values, a finite number of at least 0"
        )
    return Aggregate(named["mean"], std, count)
