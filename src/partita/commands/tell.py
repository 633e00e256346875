"""`partita tell`: report the value of a trial."""

from __future__ import annotations

import argparse
import shlex
from typing import Any

from partita.errors import InvalidInput

from .named import read_values, spoken
from .shared import add_study_command, guarded, opened


def add_parser(commands: Any) -> None:
    """Add the command to `commands`, which `add_subparsers` returned."""
    parser = add_study_command(commands, "tell", "report the value of a trial", run)
    parser.usage = (
        "partita tell [-h] FILE NUMBER VALUE [--std S] [--count N]\n"
        "       partita tell [-h] FILE NUMBER --values V [V ...]"
    )
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
        "--std",
        metavar="S",
        help="standard deviation of this value's noise, if known; 0: exact. With --count, the "
        "sample deviation (ddof = 1) of the values",
    )
    parser.add_argument("--count", metavar="N", help="how many values VALUE is the mean of")
    parser.add_argument(
        "--values", action="store_true", help="what follows are several values at these parameters"
    )


@guarded
def run(options: argparse.Namespace) -> int:
    """Report a value, and its noise if known, to the study."""
    given = {"--std": options.std, "--count": options.count}
    words = _split([*(["--values"] if options.values else []), *options.value], given)
    std, count = _number("--std", given["--std"]), _number("--count", given["--count"])
    if "--values" in words:
        words.remove("--values")
        with opened(options) as study:
            numbers = [_value(word) for word in words]
            study.tell(options.number, std=std, count=count, values=numbers)
        return 0
    value: float | dict[str, float] | None = read_values(words)
    try:
        if value is None:
            (word,) = words
            value = float(word)
    except ValueError:
        shown = shlex.join(options.value) or "nothing"
        raise InvalidInput(
            f"tell {options.number}: {shown} was given; give one number, followed by --std S if "
            "its noise is known; with constraints, name=value for each; for several, --values"
        ) from None
    with opened(options) as study:
        try:
            study.tell(options.number, value, std, count=count)
        except InvalidInput as error:
            raise type(error)(spoken(str(error))) from error
    return 0


def _split(words: list[str], given: dict[str, str | None]) -> list[str]:
    """The words after the trial's number without options, whose arguments go into `given`."""
    rest: list[str] = []
    left = iter(words)
    for word in left:
        name, equals, text = word.partition("=")
        if name not in given:
            rest.append(word)
            continue
        argument = text if equals else next(left, "")
        if given[name] is not None:
            raise InvalidInput(
                f"{name} {argument}: {name} {given[name]} was given already. Give it once"
            )
        given[name] = argument
    return rest


def _number(name: str, text: str | None) -> Any:
    """The argument of an option: a whole number for --count; None if it was not given."""
    if text is None:
        return None
    try:
        return int(text) if name == "--count" else float(text)
    except ValueError:
        least = "a whole number of at least 1" if name == "--count" else "one number of at least 0"
        raise InvalidInput(f"{name}: {text or 'nothing'} was given; give {least}") from None


def _value(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        raise InvalidInput(f"--values: {word} was given; give numbers, such as 0.3 -1e-5") from None
