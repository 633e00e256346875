"""`partita tell`: the value of a trial."""

from __future__ import annotations

import argparse
import shlex
from typing import Any

from partita.errors import InvalidInput

from .shared import add_study_command, guarded, opened


def add_parser(commands: Any) -> None:
    """Add the command to those of a parser, as `add_subparsers` returned them."""
    parser = add_study_command(commands, "tell", "the value of a trial", run)
    parser.add_argument("number", type=int, help="of the trial, as ask printed it")
    # What remains: numbers such as -1e-5 look like options to argparse.
    parser.add_argument("value", nargs=argparse.REMAINDER, metavar="VALUE", help="a number")


@guarded
def run(options: argparse.Namespace) -> int:
    """Tell the study a value."""
    try:
        (word,) = options.value
        value = float(word)
    except ValueError:
        given = shlex.join(options.value) or "nothing"
        raise InvalidInput(f"tell {options.number}: {given} was given, give one number") from None
    with opened(options) as study:
        study.tell(options.number, value)
    return 0
