"""Values by name on the command line: `--constraint`, name=value lines, `tell` with several."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from partita._text import bounded
from partita.errors import InvalidInput

if TYPE_CHECKING:
    from partita.optimize.constraints import Known

#: What the library says of values by name.
_DICT = re.compile(r"with constraints give a dict, such as \{(?P<names>[^}]*)\}")
_PAIR = re.compile(r"\s*(?P<name>[^\W\d][\w.]*)\s*=\s*(?P<value>[^\s=]+)\s*")


def add_constraint_option(parser: argparse.ArgumentParser) -> None:
    """Add `--constraint`, which may be repeated."""
    parser.add_argument(
        "--constraint",
        action="append",
        default=[],
        metavar='"NAME <= NUMBER"',
        help="another value must be so; it then takes name=value for all; may be repeated",
    )


def read_constraints(options: argparse.Namespace) -> list[str] | None:
    """The constraints that the options name; None if there are none."""
    if options.constraint and getattr(options, "std", False):
        raise InvalidInput(
            "--std and --constraint: with constraints values are printed by name, without a "
            "standard deviation. Leave --std out"
        )
    return options.constraint or None


def named_values(text: str) -> dict[str, float]:
    """Numbers of the lines name=value, the last of each name."""
    values: dict[str, float] = {}
    for line in text.splitlines():
        match = _PAIR.fullmatch(line)
        number = None if match is None else _number(match["value"])
        if match is not None and number is not None:
            values[match["name"]] = number
    return values


def read_values(words: Sequence[str]) -> dict[str, float] | None:
    """Values of words such as loss=0.3 cost=9.1; None if the words are something else."""
    values: dict[str, float] = {}
    for word in words:
        match = _PAIR.fullmatch(word)
        if match is None:
            return None
        number, name = _number(match["value"]), match["name"]
        if number is None:
            raise InvalidInput(f"{word}: {match['value']} is not a number")
        if name in values:
            raise InvalidInput(f"{word}: {name} is there already. Give each name once")
        values[name] = number
    return values or None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def spoken(message: str) -> str:
    """A message about a dict of values, for a user who writes name=value."""
    return _DICT.sub(_as_pairs, message)


def _as_pairs(match: re.Match[str]) -> str:
    names = re.findall(r"'([^']*)': \.\.\.", match["names"])
    return "give name=value for each, such as " + " ".join(f"{name}=..." for name in names)


def constraint_rows(known: Mapping[str, Known]) -> list[tuple[str, str]]:
    """What is known of each constrained value at the answer, for a reader: name and text."""
    return [
        (
            name,
            f"{bounded(each.mean, each.lower, each.upper)}: {each.constraint} with probability "
            f"{each.probability:.3g}",
        )
        for name, each in known.items()
    ]


def constraints_json(known: Mapping[str, Known]) -> dict[str, dict[str, Any]]:
    """The same for a script, by name."""
    return {name: dict(each._asdict()) for name, each in known.items()}


def infeasible_text(message: str) -> Iterable[str]:
    """The sentence of a result's message that says that no point is feasible, if it does."""
    start = message.find("No point evaluated is feasible")
    return [message[start:]] if start >= 0 else []
