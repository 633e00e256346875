"""Build a policy with the arguments that its signature names."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from partita.errors import InvalidInput
from partita.model.assumptions import Assumptions
from partita.model.domains import Arms, Box, Grid
from partita.model.mixed import Mixed

P = TypeVar("P")

NOTHING = Assumptions()

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def construct(
    make: Callable[..., P],
    domain: Grid | Arms | Box | Mixed,
    assumptions: Assumptions = NOTHING,
    *,
    horizon: int | None = None,
    seed: int | None = None,
    settings: Mapping[str, Any] | None = None,
) -> P:
    """A policy on `domain`, with those known facts about the problem that its signature names.

    Parameters
    ----------
    make
        A policy class, or anything called like one: a classmethod such as `PiGPUCB.paper`, a
        function, a `functools.partial`. The domain is its first argument. A signature with
        `**keywords` gets everything that is known. Arguments fixed by a partial are not changed.
    domain
    assumptions, horizon, seed
        What is known of the problem; None if unknown.
    settings
        Further arguments by name, which override those above. The signature must name each.
    """
    parameters = _parameters(make)
    open_ended = any(p.kind is p.VAR_KEYWORD for p in parameters)
    named = [p.name for p in parameters if p.kind in {p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY}]
    given = dict(settings or {})
    foreign = [name for name in given if name not in named and not open_ended]
    if foreign:
        raise InvalidInput(
            f"{name_of(make)} has no setting {', '.join(foreign)}: it takes "
            f"{', '.join(named) or 'only a domain'}."
        )
    fixed = make.keywords if isinstance(make, functools.partial) else {}
    problem = {"horizon": horizon, **assumptions.keywords(), "seed": seed}
    for name, value in problem.items():
        if value is not None and name not in fixed and (open_ended or name in named):
            given.setdefault(name, value)
    missing = [
        p.name
        for p in parameters
        if p.default is p.empty and p.name not in given and p.kind not in _VARIADIC
    ]
    if missing:
        flags = ["--" + name.replace("_", "-") for name in missing if name in problem]
        options = f" (on the command line, {', '.join(flags)})" if flags else ""
        raise InvalidInput(
            f"{name_of(make)} needs {', '.join(missing)}, which is unknown here: give "
            f"{', '.join(f'{name}=...' for name in missing)}{options}, or fix it with "
            "functools.partial. Known: "
            f"{', '.join(['domain', *(name for name in problem if name in given)])}."
        )
    return make(domain, **given)


def name_of(make: Callable[..., Any]) -> str:
    """The name of a policy class or factory, such as "PiGPUCB.paper"."""
    if isinstance(make, functools.partial):
        return name_of(make.func)
    name = getattr(make, "__qualname__", None) or type(make).__qualname__
    owner = getattr(make, "__self__", None)
    if isinstance(owner, type):  # a classmethod, named for where it was called, not defined
        name = f"{owner.__qualname__}.{name.rpartition('.')[2]}"
    return str(name)


def _parameters(make: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters of `make` after the one that takes the domain."""
    if not callable(make):
        raise InvalidInput(f"{make!r} is not a policy class: give a class or a function.")
    try:
        parameters = list(inspect.signature(make).parameters.values())
    except (TypeError, ValueError) as error:
        raise InvalidInput(
            f"{name_of(make)} has no signature that can be read ({error}): wrap it in a function "
            "that names its arguments."
        ) from error
    first = parameters[0] if parameters else None
    if first is None or first.kind not in {*_POSITIONAL, inspect.Parameter.VAR_POSITIONAL}:
        raise InvalidInput(
            f"{name_of(make)} takes no domain: its first argument must be one, as in "
            "make(domain, *, seed=0)."
        )
    return parameters[1:] if first.kind in _POSITIONAL else parameters
