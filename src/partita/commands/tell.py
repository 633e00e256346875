"""`partita tell`: report the value of a trial."""

from __future__ import annotations

import argparse
import shlex
from typing import Any

from partita.errors import InvalidInput

from .named import read_values
from .shared import add_study_command, guarded, opened


def add_parser(commands: Any) -> None:
    """Add the command to `commands`, which `add_subparsers` returned."""
    parser = add_study_command(commands, "tell", "report the value of a trial", run)
    parser.usage = "partita tell [-h] FILE NUMBER VALUE [--std S]"
    parser.add_argument(
        "number", type=int, metavar="NUMBER", help="number of the trial, as printed by ask"
    )
    # argparse.REMAINDER, since numbers such as -1e-5 look like options to argparse.
    parser.add_argument(
        "value",
        nargs=argparse.REMAINDER,
        metavar="VALUE",
        help="a number; with constraints loss=0.3 cost=9.1",
    )
    parser.add_argument(
        "--std", metavar="S", help="standard deviation of this value's noise, if known; 0: exact"
    )


@guarded
def run(options: argparse.Namespace) -> int:
    """Report a value, and its noise if known, to the study."""
    words, std = _split(options.value, options.std)
    value: float | dict[str, float] | None = read_values(words)
    try:
        if value is None:
            (word,) = words
            value = float(word)
    except ValueError:
        given = shlex.join(options.value) or "nothing"
        raise InvalidInput(
            f"tell {options.number}: {given} was given; give one number, followed by --std S if "
            "its noise is known; with constraints, name=value for each"
        ) from None
    with opened(options) as study:
        study.tell(options.number, value, None if std is None else _std(std))
    return 0


def _split(words: list[str], std: str | None) -> tuple[list[str], str | None]:
    """The words after the trial's number without --std, and the argument of --std if any."""
    rest: list[str] = []
    left = iter(words)
    for word in left:
        name, equals, text = word.partition("=")
        if name != "--std":
            rest.append(word)
            continue
        given = text if equals else next(left, "")
        if std is not None:
            raise InvalidInput(f"--std {given}: --std {std} was given already. Give it once")
        std = given
    return rest, std


def _std(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        given = text or "nothing"
        raise InvalidInput(f"--std: {given} was given; give one number of at least 0") from None
