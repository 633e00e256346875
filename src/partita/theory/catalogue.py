"""The registry as a table: what docs/algorithms.md shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from partita import theory
from partita.policies.registry import METHODS, Method

#: Where the table begins and ends in the page.
BEGIN, END = "<!-- made by `make docs`: begin -->", "<!-- made by `make docs`: end -->"

_HEAD = ("method", "assumes", "regret: exponent of T", "a step costs", "domains", "when to use it")


def table() -> str:
    """All methods in Markdown."""
    rows = [_HEAD, ("---",) * len(_HEAD), *map(_row, METHODS.values())]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def page(text: str) -> str:
    """A page with a new table between its marks."""
    return between(text, BEGIN, END, table())


def between(text: str, begin: str, end: str, content: str) -> str:
    """A text with what stands between two marks replaced."""
    before, _, rest = text.partition(begin)
    if begin not in text or end not in rest:
        raise ValueError(f"the page has no {begin} … {end}")
    return f"{before}{begin}\n\n{content}\n{end}{rest.partition(end)[2]}"


def _row(method: Method) -> Sequence[str]:
    return (
        f"**{method.title}** (`{method.name}`, {class_name(method)}), {method.citation}",
        method.assumes,
        "; ".join(_exponents(method)) or "none known",
        method.step,
        ", ".join(method.domains),
        method.use,
    )


def class_name(method: Method) -> str:
    """What a user calls to make it, such as `PiGPUCB(tightening=True)`."""
    name = method.home.partition(":")[2]
    options = {k: v for k, v in method.settings.items() if isinstance(v, bool | str)}
    given = ", ".join(
        f'{k}="{v}"' if isinstance(v, str) else f"{k}={v}" for k, v in options.items()
    )
    return f"`{name}({given})`" if given else f"`{name}`"


def _exponents(method: Method) -> Iterable[str]:
    for name in method.exponents:
        exponent = theory.get(name)
        what = "" if exponent.kind == "regret" else f"{exponent.kind}: "
        later = ", with Vakili et al. 2021’s gain" if name.endswith("-vakili") else ""
        printed = ", as Janz et al. 2020 print it" if name.endswith("-printed") else ""
        yield f"{what}{exponent.formula}{later}{printed}"
