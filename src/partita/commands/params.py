"""`--param` on the command line: lr:1e-4:1e-1:log, depth:1:12:int, kind:a,b,c, fast:bool.

One that is there only with some choices has them before its name: kind=a/rate:0:1, and
kind=a,b/rate:0:1 for several. And `--x0`: lr=0.01,depth=3,kind=a,fast=true.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from partita.errors import InvalidInput

#: The forms of a parameter's text, for messages and for help.
FORMS = (
    "NAME:LOW:HIGH, NAME:LOW:HIGH:log, NAME:LOW:HIGH:int, NAME:LOW:HIGH:STEP, NAME:a,b,c or "
    "NAME:bool, and KIND=a/ before one that is there only where KIND is a"
)
_NAME = re.compile(r"[^\W\d]\w*")
#: The choices that a parameter is there with, before its name.
_WITH = re.compile(r"([^\W\d]\w*)=([^/:]+)/")

Number = int | float
#: The specification of one parameter for `partita.Space`, without branches.
Plain = tuple[Number | str, ...] | list[str] | type[bool]
#: The same, or a dict of branches.
Spec = Any


def read_params(texts: Iterable[str]) -> dict[str, Spec]:
    """Named parameters from the texts of all `--param` options, in their order."""
    params: dict[str, Spec] = {}
    for text in texts:
        within, rest = [params], text
        while step := _WITH.match(rest):
            within = [branch for tree in within for branch in _branches(text, tree, step)]
            rest = rest[step.end() :]
        name, spec = read_param(rest)
        for tree in within:
            if name in tree:
                raise InvalidInput(f"--param {text}: {name} is already given. Give each name once.")
            tree[name] = spec
    if not params:
        raise InvalidInput(f"no parameters: give --param once for each, as {FORMS}.")
    return params


def _branches(text: str, tree: dict[str, Spec], step: re.Match[str]) -> list[dict[str, Spec]]:
    """The branches that a step such as kind=a,b names, of a choice that is made to have some."""
    name, words = step[1], step[2].split(",")
    spec = tree.get(name)
    if spec is bool:
        spec = [False, True]
    if isinstance(spec, list):
        spec = tree[name] = {choice: {} for choice in spec}
    if not isinstance(spec, dict):
        raise InvalidInput(
            f"--param {text}: there is no choice called {name} before it. Give --param "
            f"{name}:{step[2] if len(words) > 1 else f'{step[2]},OTHER'} first."
        )
    choices = {str(c).lower() if isinstance(c, bool) else c: c for c in spec}
    for word in words:
        if word not in choices:
            raise InvalidInput(
                f"--param {text}: {word!r} is not a choice of {name}. Give one of "
                f"{', '.join(choices)}, or several with commas."
            )
    return [spec[choices[word]] for word in words]


def names_of(params: Mapping[str, Spec]) -> dict[str, bool]:
    """All names in their order, and whether each is always there."""
    names = dict.fromkeys(params, True)
    for spec in params.values():
        for branch in spec.values() if isinstance(spec, dict) else ():
            names |= {name: names.get(name, False) for name in names_of(branch)}
    return names


def read_param(text: str) -> tuple[str, Plain]:
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
    names, words = names_of(params), dict[str, str]()
    for part in text.split(","):
        name, equals, word = part.partition("=")
        if not equals or name not in names or name in words:
            raise InvalidInput(
                f"--x0 {text}: {part!r} is not understood. Give each parameter once, as "
                f"{','.join(f'{each}=VALUE' for each in names)}."
            )
        words[name] = word
    point = _active(words, params, text)
    extra = [name for name in words if name not in point]
    if extra:
        raise InvalidInput(
            f"--x0 {text}: {', '.join(extra)} is not there with these choices. Leave it out."
        )
    return point


def _active(
    words: Mapping[str, str], params: Mapping[str, Spec], text: str
) -> dict[str, Number | str | bool]:
    """Values of the parameters that are there with the choices given."""
    missing = [name for name in params if name not in words]
    if missing:
        raise InvalidInput(
            f"--x0 {text}: {', '.join(missing)} is missing. Give a value for each parameter."
        )
    point: dict[str, Number | str | bool] = {}
    for name, spec in params.items():
        point[name] = value = _value(words[name], spec, text)
        if isinstance(spec, dict):
            point |= _active(words, spec.get(value, {}), text)
    return point


def _value(word: str, spec: Spec, text: str) -> Number | str | bool:
    if isinstance(spec, dict):
        spec = bool if all(isinstance(choice, bool) for choice in spec) else list(spec)
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
