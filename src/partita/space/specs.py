"""Read the specification of a space or a parameter: bounds, tuples, lists, ranges, bool."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from partita._checks import as_number
from partita._text import HIDDEN
from partita.errors import InvalidInput
from partita.model.domains import Arms, Box, Grid

from .branches import Flat, read_nodes
from .choices import Categorical
from .conditions import Condition, Parameter
from .decimals import plain
from .parameters import Float, Integer, Stepped

#: The largest number of characters in the name of a parameter.
LONGEST_NAME = 200

_log = logging.getLogger(__name__)

_WORDS = {"log": {"log"}, "int": {"int"}, "log-int": {"log", "int"}, "int-log": {"log", "int"}}


class Parts(NamedTuple):
    """The parts of a space: see the attributes of `Space`."""

    names: tuple[str, ...] | None
    parameters: tuple[Parameter, ...]
    arms: Grid | Arms | None = None
    #: When each parameter is active: see `Conditions`; none at all if all always are.
    conditions: tuple[tuple[Condition, ...], ...] = ()


def as_parts(spec: Any) -> Parts:
    """The parts of the space specified by `spec`: see `as_space`."""
    if isinstance(spec, Grid | Arms):
        return Parts(None, (), spec)
    if isinstance(spec, Box):
        spec = list(zip(spec.lower.tolist(), spec.upper.tolist(), strict=True))
    elif hasattr(spec, "lb") and hasattr(spec, "ub"):  # scipy.optimize.Bounds
        spec = list(zip(*map(list, np.broadcast_arrays(spec.lb, spec.ub)), strict=True))
    return _from_mapping(spec) if isinstance(spec, Mapping) else _from_pairs(spec)


def _from_mapping(spec: Mapping[Any, Any]) -> Parts:
    if not spec:
        raise InvalidInput("the space is empty: give at least one parameter, {name: (low, high)}")
    flat = Flat(read_nodes(spec, as_parameter, _check_name))
    conditions = flat.conditions if any(flat.conditions) else ()
    return Parts(flat.names, flat.parameters, conditions=conditions)


def _check_name(name: object) -> None:
    """Refuse names that are not strings, too long, or unsafe to print on a terminal."""
    if not isinstance(name, str) or not name:
        raise InvalidInput(f"parameter {name!r}: names must be strings, keywords of the function")
    if len(name) > LONGEST_NAME:
        raise InvalidInput(
            f"parameter {name[:20]!r}…: the name has {len(name):,} characters. Give one of at most "
            f"{LONGEST_NAME}"
        )
    if HIDDEN.search(name):
        raise InvalidInput(
            f"parameter {name!r}: names cannot have control characters, line breaks or other "
            "characters that control a terminal. Leave them out"
        )


def _from_pairs(spec: Any) -> Parts:
    try:
        pairs = [] if isinstance(spec, str | bytes) else [tuple(pair) for pair in spec]
    except TypeError:
        pairs = []
    if isinstance(spec, list | tuple | np.ndarray) and len(spec) == 0:
        raise InvalidInput("the space is empty: give at least one pair of bounds, [(low, high)]")
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise InvalidInput(
            f"{spec!r} is not a valid space: give a list of pairs [(low, high), ...], or a dict of "
            'named parameters such as {"x": (0, 1), "n": (1, 9, "int"), "kind": ["a", "b"]}'
        )
    for i, pair in enumerate(pairs):
        low, high = map(as_number, pair)
        if low == high:  # a list of one choice, the advice for named parameters, is invalid here
            raise InvalidInput(
                f"parameter 'x[{i}]': the bounds are equal, {pair!r}. Leave it out, and insert its "
                "value in the function"
            )
    return Parts(None, tuple(as_parameter(pair, f"x[{i}]") for i, pair in enumerate(pairs)))


def as_parameter(spec: Any, name: str) -> Parameter:
    """The parameter specified by `spec`; `name` is for messages."""
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
        f"parameter {name!r}: {spec!r} is not a valid range. Give (low, high), optionally with "
        '"log", "int" or a step, a list of choices, a dict of branches, or bool; a list of one '
        "choice keeps it fixed"
    )


def _from_range(spec: range) -> Integer:
    if not len(spec):
        raise InvalidInput(f"{spec!r} is empty: give a range of at least one number")
    low, high = min(spec[0], spec[-1]), max(spec[0], spec[-1])
    return Integer(low, high, step=abs(spec.step) if len(spec) > 1 else 1)


def _from_list(spec: list[Any], name: str) -> Categorical:
    if any(isinstance(part, Mapping) for part in spec):
        raise InvalidInput(
            f"{spec!r:.200} is a list of dicts. For branches with parameters of their own give a "
            'dict of them, such as {"svm": {"C": (0.1, 10)}, "forest": {}}. For choices that are '
            "dicts themselves, name each, and look them up in the function"
        )
    parts = [plain(part) for part in spec]
    numbers = [part for part in parts if not math.isnan(as_number(part))]
    words = [part for part in spec if isinstance(part, str) and part in _WORDS]
    if len(numbers) >= 2 and words and len(numbers) + len(words) == len(spec):
        raise InvalidInput(
            f"{spec!r} is a list, which means choices: give a range as a tuple, {tuple(spec)!r}"
        )
    if len(numbers) == len(spec) == 2 and not any(isinstance(part, bool) for part in parts):
        whole = all(isinstance(part, int) for part in parts)
        _log.warning(
            "parameter %r: %r is a list, which means two choices; for a range give the tuple %r%s",
            name,
            parts,
            (min(parts), max(parts)),
            ', with "int" as a third if they are whole numbers' if whole else "",
        )
    return Categorical(tuple(spec))


def _from_tuple(spec: tuple[Any, ...]) -> Parameter:
    if spec and all(isinstance(part, str) for part in spec):
        raise InvalidInput(
            f"{spec!r} is a tuple of strings: give choices as a list, {list(spec)!r}"
        )
    if len(spec) < 2 or any(math.isnan(as_number(plain(part))) for part in spec[:2]):
        raise InvalidInput(
            f'{spec!r}: give two numbers (low, high), optionally followed by "log", "int" or a '
            "step; give choices as a list"
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
                "one step; give choices as a list"
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
            f"{error}. Three numbers mean (low, high, step); give choices as a list, {list(spec)!r}"
        ) from None
