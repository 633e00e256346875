"""`--param` on the command line: lr:1e-4:1e-1:log, depth:1:12:int, kind:a,b,c, fast:bool.

And `--x0`: lr=0.01,depth=3,kind=a,fast=true.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

from partita.errors import InvalidInput

#: The forms of a parameter's text, for messages and for help.
FORMS = (
    "NAME:LOW:HIGH, NAME:LOW:HIGH:log, NAME:LOW:HIGH:int, NAME:LOW:HIGH:STEP, NAME:a,b,c or "
    "NAME:bool"
)
_NAME = re.compile(r"[^\W\d]\w*")

Number = int | float
#: The specification of one parameter for `partita.Space`.
Spec = tuple[Number | str, ...] | list[str] | type[bool]


def read_params(texts: Iterable[str]) -> dict[str, Spec]:
    """Named parameters from the texts of all `--param` options, in their order."""
    params: dict[str, Spec] = {}
    for text in texts:
        name, spec = read_param(text)
        if name in params:
            raise InvalidInput(f"--param {text}: {name} is already given. Give each name once.")
        params[name] = spec
    if not params:
        raise InvalidInput(f"no parameters: give --param once for each, as {FORMS}.")
    return params


def read_param(text: str) -> tuple[str, Spec]:
    """The name and the specification of one parameter.

    If the text after the first colon has a comma, it is a list of choices, so choices may contain
    colons. If the bounds and the step are integers, so are the values: programs that expect 3 often
    cannot read 3.0.
    """
    name, colon, rest = text.partition(":")
    if not colon or not rest:
        raise _refused(text, "a name and its values are needed")
    if not _NAME.fullmatch(name):
        raise _refused(text, f"{name!r} is not a name: use letters, digits and underscores")
    if rest == "bool":
        return name, bool
    if "," in rest:
        return name, _choices(text, rest.split(","))
    low, *others = rest.split(":")
    if not others:
        raise _refused(text, "one value is not a range")
    return name, _range(text, low, *others)


def read_point(text: str, params: Mapping[str, Spec]) -> dict[str, Number | str | bool]:
    """A point from the text of an `--x0` option, as in lr=0.01,depth=3."""
    point: dict[str, Number | str | bool] = {}
    for part in text.split(","):
        name, equals, word = part.partition("=")
        if not equals or name not in params or name in point:
            raise InvalidInput(
                f"--x0 {text}: {part!r} is not understood. Give each parameter once, as "
                f"{','.join(f'{each}=VALUE' for each in params)}."
            )
        point[name] = _value(word, params[name], text)
    missing = [name for name in params if name not in point]
    if missing:
        raise InvalidInput(
            f"--x0 {text}: {', '.join(missing)} is missing. Give a value for each parameter."
        )
    return point


def _value(word: str, spec: Spec, text: str) -> Number | str | bool:
    if isinstance(spec, list):
        return word
    if spec is bool:
        if word not in ("true", "false"):
            raise InvalidInput(f"--x0 {text}: {word!r} is neither true nor false.")
        return word == "true"
    try:
        return float(word)
    except ValueError:
        raise InvalidInput(f"--x0 {text}: {word!r} is not a number.") from None


def _choices(text: str, choices: list[str]) -> list[str]:
    if "" in choices:
        raise _refused(text, "a choice is empty (one comma too many?)")
    twice = [choice for i, choice in enumerate(choices) if choice in choices[:i]]
    if twice:
        raise _refused(text, f"{twice[0]!r} is given twice")
    return choices


def _range(text: str, low: str, high: str, *others: str) -> tuple[Number | str, ...]:
    bounds = (_number(text, low), _number(text, high))
    words = [word for word in others if word in ("log", "int")]
    steps = [_number(text, word) for word in others if word not in ("log", "int")]
    if len(set(words)) < len(words) or len(steps) > 1:
        raise _refused(text, "log, int and a step may each be given only once")
    if steps and "log" in words:
        raise _refused(text, "a step cannot be combined with log")
    if not bounds[0] < bounds[1]:
        raise _refused(text, f"{low} is not below {high}")
    if "log" in words and bounds[0] <= 0:
        raise _refused(text, "on a log scale both bounds must be above 0")
    if steps:
        _check_step(text, *bounds, steps[0])
    whole = all(isinstance(number, int) for number in (*bounds, *steps))
    if "int" in words and not whole:
        raise _refused(text, "with int, every number must be an integer")
    if steps and whole and "int" not in words:
        words.append("int")
    return (*bounds, *steps, *words)


def _check_step(text: str, low: Number, high: Number, step: Number) -> None:
    from partita.space.decimals import decimal_span, steps_between

    if steps_between(low, high, step) < 1:
        most = float(decimal_span(low, high))
        raise _refused(text, f"the step must be above 0 and at most {most:g}")


def _number(text: str, word: str) -> Number:
    try:
        value = float(word)
    except ValueError:
        raise _refused(text, f"{word!r} is not a number") from None
    if not math.isfinite(value):
        raise _refused(text, f"{word} is not finite")
    try:
        return int(word)
    except ValueError:  # 1e3 is whole, 1.0 is meant as a real number
        return int(value) if value.is_integer() and "." not in word else value


def _refused(text: str, why: str) -> InvalidInput:
    return InvalidInput(f"--param {text}: {why}. Give {FORMS}.")
