"""Read what a user writes for a parameter: a tuple, a list, a range or bool."""

from __future__ import annotations

import logging
import math
from typing import Any, TypeAlias

from partita._checks import as_number
from partita.errors import InvalidInput

from .choices import Categorical
from .parameters import Float, Integer, Stepped, plain

Parameter: TypeAlias = Float | Integer | Stepped | Categorical

_log = logging.getLogger(__name__)

_WORDS = {"log": {"log"}, "int": {"int"}, "log-int": {"log", "int"}, "int-log": {"log", "int"}}


def as_parameter(spec: Any, name: str) -> Parameter:
    """A parameter, from what a user writes for it; `name` is for messages."""
    try:
        if isinstance(spec, Float | Integer | Stepped | Categorical):
            return spec
        if spec is bool:
            return Categorical((False, True))
        if isinstance(spec, range):
            return _from_range(spec)
        if isinstance(spec, list):
            return _from_list(spec, name)
        if isinstance(spec, tuple):
            return _from_tuple(spec)
    except InvalidInput as error:
        raise InvalidInput(f"parameter {name!r}: {error}") from None
    raise InvalidInput(
        f'parameter {name!r}: {spec!r} is no range. Give (low, high), with "log", "int" or a '
        "step if need be, a list of choices, or bool; a list of one choice holds it fixed"
    )


def _from_range(spec: range) -> Integer:
    if not len(spec):
        raise InvalidInput(f"{spec!r} is empty: give a range of at least one number")
    low, high = min(spec[0], spec[-1]), max(spec[0], spec[-1])
    return Integer(low, high, step=abs(spec.step) if len(spec) > 1 else 1)


def _from_list(spec: list[Any], name: str) -> Categorical:
    parts = [plain(part) for part in spec]
    numbers = [part for part in parts if not math.isnan(as_number(part))]
    words = [part for part in spec if isinstance(part, str) and part in _WORDS]
    if len(numbers) >= 2 and words and len(numbers) + len(words) == len(spec):
        raise InvalidInput(
            f"{spec!r} is a list, of choices: give a range as a tuple, {tuple(spec)!r}"
        )
    if len(numbers) == len(spec) == 2 and any(isinstance(part, float) for part in parts):
        _log.warning(
            "parameter %r: %r is a list, of two choices; for all values between them give %r",
            name,
            parts,
            tuple(parts),
        )
    return Categorical(tuple(spec))


def _from_tuple(spec: tuple[Any, ...]) -> Parameter:
    if spec and all(isinstance(part, str) for part in spec):
        raise InvalidInput(f"{spec!r} is a tuple of words: give choices as a list, {list(spec)!r}")
    if len(spec) < 2 or any(math.isnan(as_number(plain(part))) for part in spec[:2]):
        raise InvalidInput(
            f'{spec!r}: give (low, high), two numbers, and "log", "int" or a step after them '
            "if need be; choices are a list"
        )
    low, high = plain(spec[0]), plain(spec[1])
    words: set[str] = set()
    step = None
    for part in spec[2:]:
        if isinstance(part, str) and part in _WORDS:
            words |= _WORDS[part]
        elif step is None and not math.isnan(as_number(plain(part))):
            step = plain(part)
        else:
            raise InvalidInput(
                f'{spec!r}: {part!r} is not understood. After the bounds come "log", "int" or '
                "one step; choices are a list"
            )
    if "int" in words:
        return Integer(low, high, "log" in words, 1 if step is None else step)
    if step is None:
        return Float(low, high, "log" in words)
    if "log" in words:
        raise InvalidInput(f'{spec!r}: give a step or "log", not both')
    try:
        return Stepped(low, high, step)
    except InvalidInput as error:
        raise InvalidInput(
            f"{error}. Three numbers are (low, high, step); choices are a list, {list(spec)!r}"
        ) from None
