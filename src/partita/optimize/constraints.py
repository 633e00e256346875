"""Constraints that only an evaluation shows: "cost <= 10", and values by name.

A function that has constraints returns a dict of numbers. The objective is the one name that no
constraint has.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from partita._types import BoolArray, FloatArray, Interval
from partita.errors import InvalidInput
from partita.policies.checks import LARGEST_VALUE
from partita.space import Space

from .values import Observation, WrongKind, as_observation, as_value, shown

_NAME = r"(?P<name>[^\W\d][\w.]*)"
_NUMBER = r"(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
_SIGN = r"(?P<sign><=|>=|<|>|≤|≥)"
#: A quantity and its bound, on either side.
_FORMS = tuple(
    re.compile(rf"\s*{left}\s*{_SIGN}\s*{right}\s*")
    for left, right in ((_NAME, _NUMBER), (_NUMBER, _NAME))
)
#: A quantity between two bounds.
_RANGE = re.compile(
    r"\s*".join(
        [
            "",
            _NUMBER.replace("number", "left"),
            _SIGN.replace("sign", "first"),
            _NAME,
            _SIGN.replace("sign", "second"),
            _NUMBER.replace("number", "right"),
            "",
        ]
    )
)
_WRITE = 'write a name, a sign and a number, as in "cost <= 10", "accuracy > 0.9" or "1e-3 >= loss"'


class Known(NamedTuple):
    """What is known of a constrained quantity at some parameters.

    Attributes
    ----------
    constraint
        As it was given, such as "cost <= 10"; several are joined by "and".
    mean
        The posterior mean; NaN before there are enough values for a model.
    lower, upper
        Bounds, as those of the function are.
    probability
        How likely the constraint holds there, by the model.
    """

    constraint: str
    mean: float
    lower: float
    upper: float
    probability: float


class Constraints:
    """Constraints on quantities that a function returns by name, read from text.

    Parameters
    ----------
    texts
        Such as `["cost <= 10", "0.9 < accuracy", "1 <= time <= 3"]`. A quantity may have one bound
        from below and one from above.
    space
        The space, whose parameters are no quantities.
    """

    #: The name of the objective, once a value has come.
    _objective: str | None = None

    def __init__(self, texts: Any, space: Space | None = None) -> None:
        self.texts = _as_texts(texts)
        bounds: dict[str, Interval] = {}
        by_name: dict[str, list[str]] = {}
        for text in self.texts:
            for name, interval in _read(text):
                if space is not None and name in (space.names or ()):
                    raise InvalidInput(
                        f"constraints: {text!r} is about {name}, a parameter. Conditions on "
                        "parameters are known before an evaluation: give feasible, a function of "
                        "them"
                    )
                bounds[name] = _both(name, bounds.get(name, Interval()), interval, text)
            by_name.setdefault(name, []).append(text)
        self.names = tuple(bounds)
        self.intervals = tuple(bounds.values())
        self._labels = [" and ".join(by_name[name]) for name in self.names]

    def __repr__(self) -> str:
        return f"Constraints({list(self.texts)!r})"

    def observation(self, result: Any, std: Any = None) -> Observation:
        """What a function returned: a dict with each constrained quantity, and the objective."""
        if isinstance(result, Observation) and result.values is not None:
            return result  # checked already
        if not isinstance(result, Mapping):
            raise WrongKind(f"the value is {shown(result)}: {self._wanted()}")
        missing = [name for name in self.names if name not in result]
        others = [name for name in result if name not in self.names]
        if missing:
            raise WrongKind(f"{shown(result)} has no {missing[0]!r}: {self._wanted()}")
        if len(others) != 1:
            what = f"{len(others)} names" if others else "no name"
            raise WrongKind(
                f"{shown(result)} has {what} that no constraint has: {self._wanted()}. One more "
                "name is the objective"
            )
        objective = others[0]
        if self._objective not in (None, objective):
            raise WrongKind(
                f"{shown(result)} has {objective!r} where earlier values had "
                f"{self._objective!r}: the objective has one name"
            )
        seen = as_observation(result[objective])
        if std is not None:
            seen = as_observation((seen.value, std))
        values = tuple(self._value(result, name) for name in self.names)
        self._objective = objective
        return seen._replace(values=values)

    def _value(self, result: Mapping[str, Any], name: str) -> float:
        try:
            return as_value(result[name])
        except InvalidInput as error:
            raise type(error)(f"{name}: {error}") from None

    def _wanted(self) -> str:
        names = ", ".join(f"{name!r}: ..." for name in self.names)
        return f"with constraints give a dict, such as {{'objective': ..., {names}}}"

    def stored(self, values: Any) -> tuple[float, ...]:
        """Values by name, as a study stored them; refused if they are not those of the quantities.

        They may come from a stranger.
        """
        if not isinstance(values, dict) or sorted(values) != sorted(self.names):
            raise InvalidInput(f"its values {shown(values)} are not those of {self!r}")
        if not all(type(value) in (int, float) for value in values.values()):
            raise InvalidInput(f"its values {shown(values)} are not numbers")
        return tuple(as_value(values[name]) for name in self.names)

    def named(self, values: Iterable[float] | None) -> dict[str, float] | None:
        """Values by name; None for None."""
        return None if values is None else dict(zip(self.names, values, strict=True))

    def met(self, measured: FloatArray) -> BoolArray:
        """Which rows of values (n, C) meet all constraints, (n,)."""
        lower, upper = np.array(self.intervals).reshape(-1, 2).T
        return np.asarray(((measured >= lower) & (measured <= upper)).all(axis=1))

    def constrain(self, policy: Any) -> None:
        """Have a new policy keep to the constraints; refused for one that cannot."""
        if not self.names:
            return
        constrain: Callable[..., None] | None = getattr(policy, "constrain", None)
        if constrain is None:
            raise InvalidInput(
                f"constraints={list(self.texts)!r}: {type(policy).__name__} has no model of other "
                "quantities than the objective, so that no bound of its own would hold for them. "
                "Leave policy and norm_bound out, so that CalibratedUCB is used; conditions on "
                "parameters alone are for feasible"
            )
        constrain(self.intervals)

    def known_at(self, policy: Any, unit: FloatArray) -> dict[str, Known]:
        """What is known of each quantity at a point (D,), by its name."""
        if not self.names:
            return {}
        rows = zip(self.names, self._labels, policy.limits_at(unit), strict=True)
        return {name: Known(label, *limit) for name, label, limit in rows}


def unmet(known: Mapping[str, Known], delta: float) -> str:
    """Why an answer is not feasible, for a message; nothing if it is.

    It is if all constraints hold with probability 1 − delta, by the model.
    """
    if not known or math.prod(each.probability for each in known.values()) >= 1.0 - delta:
        return ""
    where = "; ".join(
        f"{each.constraint}: {each.mean:.4g} there, probability {each.probability:.2g}"
        for each in known.values()
    )
    return (
        f"No point evaluated is feasible with probability {1.0 - delta:g}: the answer is the one "
        f"that most likely is ({where})."
    )


class Measured:
    """A function that returns a dict, made to return an `Observation`; it pickles as f does."""

    def __init__(self, f: Callable[..., Any], constraints: Constraints) -> None:
        self.__wrapped__, self._constraints = f, constraints

    def __call__(self, *args: Any, **params: Any) -> Observation:
        """What the function returns, checked."""
        return self._constraints.observation(self.__wrapped__(*args, **params))


def _as_texts(texts: Any) -> tuple[str, ...]:
    if texts is None:
        return ()
    if isinstance(texts, str):
        texts = [texts]
    try:
        given = tuple(texts)
    except TypeError:
        given = (texts,)
    for text in given:
        if not isinstance(text, str):
            raise InvalidInput(
                f"constraints={shown(texts)}: give a list of text; {_WRITE}. A function of the "
                "parameters alone is for feasible"
            )
    return tuple(" ".join(text.split()) for text in given)


def _read(text: str) -> list[tuple[str, Interval]]:
    """The name and the intervals of a constraint: one, or two for a range."""
    both = _RANGE.fullmatch(text)
    if both is None or _is_below(both["first"]) != _is_below(both["second"]):
        return [_read_bound(text)]
    left, name, right = both["left"], both["name"], both["right"]
    return [
        _read_bound(f"{left} {both['first']} {name}"),
        _read_bound(f"{name} {both['second']} {right}"),
    ]


def _is_below(sign: str) -> bool:
    """Whether a sign says that what is left of it is the lesser."""
    return sign in ("<", "<=", "≤")


def _read_bound(text: str) -> tuple[str, Interval]:
    """The name of a quantity and the interval that one bound leaves."""
    matches = [form.fullmatch(text) for form in _FORMS]
    match = matches[0] or matches[1]
    if match is None:
        hint = ""
        if "==" in text or re.search(r"(?<![<>])=", text):
            hint = " (an equation is never met exactly: give a range, as two constraints)"
        elif len(re.findall(r"[<>≤≥]", text)) > 1:
            hint = ' (write a range as "1 <= cost <= 10")'
        raise InvalidInput(f"constraints: {text!r} is not understood{hint}: {_WRITE}")
    bound = float(match["number"])
    if abs(bound) > LARGEST_VALUE:
        raise InvalidInput(
            f"constraints: {text!r}: give a bound of at most {LARGEST_VALUE:g} in size"
        )
    upper = _is_below(match["sign"]) == (matches[0] is not None)
    return match["name"], Interval(upper=bound) if upper else Interval(lower=bound)


def _both(name: str, first: Interval, second: Interval, text: str) -> Interval:
    """The interval of two constraints on one quantity."""
    for a, b in zip(first, second, strict=True):
        if math.isfinite(a) and math.isfinite(b):
            raise InvalidInput(
                f"constraints: {text!r}: {name} has a bound on that side already. Give the "
                "stricter one alone"
            )
    lower, upper = max(first.lower, second.lower), min(first.upper, second.upper)
    if not lower < upper:
        raise InvalidInput(
            f"constraints: {text!r}: {name} would have to be at least {lower:g} and at most "
            f"{upper:g}, which leaves no room"
        )
    return Interval(lower, upper)
