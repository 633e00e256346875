"""What a policy promises, and so what the suite holds it to."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from partita._checks import as_number
from partita.errors import InvalidInput

#: The kinds of domain: `Grid`, `Arms` and `Box`.
KINDS = ("grid", "arms", "box")
#: The smallest number of evaluations at which growth can be distinguished from start-up.
SHORTEST_LONG_RUN = 400

_YES_OR_NO = (True, False)
_CHOICES: dict[str, tuple[object, ...]] = {
    "pending": _YES_OR_NO,
    "cancel": _YES_OR_NO,
    "bulk": _YES_OR_NO,
    "unasked": (True, False, "accepted"),
    "order_free": _YES_OR_NO,
    "deterministic": _YES_OR_NO,
    "noisy": _YES_OR_NO,
    "function": ("smooth", "linear"),
    "regret": ("cumulative", "simple", None),
    "bounds": (True, False, None),
}


@dataclass(frozen=True)
class Promises:
    """The promises of a policy, which the suite checks.

    The defaults are those of a policy that keeps all of Partita's conventions at constant cost.

    Parameters
    ----------
    domains
        The kinds of domain it supports, among "grid", "arms" and "box".
    pending
        Points may be asked for, any number of times, before values are reported.
    cancel
        A pending point may be cancelled with `cancel(x)`.
    bulk
        It accepts many observations in one call, `tell(X, Y)`.
    unasked
        It accepts observations of points that it never asked for, and uses them. "accepted": it
        accepts them, but need not use them.
    order_free
        What it recommends does not depend on the order in which the same values arrived. False for
        methods whose structure grows with the data, such as trees.
    deterministic
        The same seed and the same tells give the same asks. If False, all checks that compare a
        policy with its twin are left out or weakened.
    noisy
        It is meant for noisy values. If False, values are exact throughout the suite.
    function
        What it models: a "smooth" function, of norm at most `norm_bound` for the kernel it is
        given, or one that is "linear", f(x) = θᵀx, ‖θ‖ at most `norm_bound`.
    regret
        "cumulative": its regret per evaluation goes to zero. "simple": the regret of its
        recommendation does. None: neither.
    bounds
        The bounds of `recommend` hold with probability 1 − delta, and those of `certificate` where
        it has one. None: whether its `guarantee` is "proven".
    time, memory
        The time of step t grows as t^time and the state as t^memory, logarithms aside. A number, or
        one for each kind of domain that needs another than 0, such as {"box": 1}.
    steps
        Length of the run in which growth is measured. Shorten it for a method whose steps get slow.
    """

    domains: tuple[str, ...] = KINDS
    pending: bool = True
    cancel: bool = True
    bulk: bool = True
    unasked: bool | Literal["accepted"] = True
    order_free: bool = True
    deterministic: bool = True
    noisy: bool = True
    function: Literal["smooth", "linear"] = "smooth"
    regret: Literal["cumulative", "simple"] | None = "cumulative"
    bounds: bool | None = None
    time: float | Mapping[str, float] = 0.0
    memory: float | Mapping[str, float] = 0.0
    steps: int = 10_000

    def __post_init__(self) -> None:
        """Refuse what could not be checked."""
        given: Any = self.domains
        domains = (given,) if isinstance(given, str) else tuple(given)
        object.__setattr__(self, "domains", domains)
        if not domains or not set(domains) <= set(KINDS) or len(set(domains)) < len(domains):
            raise InvalidInput(f"domains={domains!r}: give some of {', '.join(KINDS)}.")
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            if not any(value == choice and type(value) is type(choice) for choice in choices):
                words = ", ".join(map(repr, choices))
                raise InvalidInput(f"{name}={value!r}: give one of {words}.")
        for name in ("time", "memory"):
            value = getattr(self, name)
            exponents = value if isinstance(value, Mapping) else dict.fromkeys(KINDS, value)
            if not set(exponents) <= set(KINDS) or not all(
                0 <= as_number(exponent) <= 10 for exponent in exponents.values()
            ):
                raise InvalidInput(
                    f"{name}={value!r}: give an exponent of t from 0 to 10, or one for each kind "
                    f"of domain ({', '.join(KINDS)})."
                )
        steps = as_number(self.steps)
        if not SHORTEST_LONG_RUN <= steps < math.inf or steps != int(steps):
            raise InvalidInput(
                f"steps={self.steps!r}: give a whole number of at least {SHORTEST_LONG_RUN}."
            )

    def exponent(self, name: Literal["time", "memory"], kind: str) -> float:
        """The exponent of growth promised on one kind of domain."""
        value: float | Mapping[str, float] = getattr(self, name)
        return float(value.get(kind, 0.0) if isinstance(value, Mapping) else value)
