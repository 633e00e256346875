"""Contexts on the command line: `--context hour:0:24` of a new study, `--context hour=13.5`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from partita.errors import InvalidInput

from .params import Spec, read_param
from .program import argument

if TYPE_CHECKING:
    from partita.study.study import Study


def add_ranges_option(parser: argparse.ArgumentParser) -> None:
    """Add `--context NAME:...`, for the contexts of a new study, and `--drift`."""
    parser.add_argument(
        "--context",
        action="append",
        default=[],
        metavar="NAME:...",
        help="known before each trial and not chosen, in the form of --param; may be repeated",
    )
    parser.add_argument(
        "--drift",
        action="store_true",
        help="the function changes in time: forget what no longer holds",
    )


def add_context_option(parser: argparse.ArgumentParser, text: str) -> None:
    """Add `--context NAME=VALUE`, which may be repeated."""
    parser.add_argument(
        "--context", action="append", default=[], metavar="NAME=VALUE", help=f"{text}; once each"
    )


def read_ranges(texts: list[str]) -> dict[str, Spec] | None:
    """The contexts of a new study, from the texts of all `--context` options."""
    contexts: dict[str, Spec] = {}
    for text in texts:
        try:
            name, spec = read_param(text)
        except InvalidInput as error:
            raise InvalidInput(str(error).replace("--param", "--context")) from None
        if name in contexts:
            raise InvalidInput(f"--context {text}: {name} is already given. Give each name once.")
        contexts[name] = spec
    return contexts or None


def read_context(texts: list[str], study: Study) -> dict[str, Any] | None:
    """The context that words such as hour=13.5 give; None if there are none."""
    context: dict[str, Any] = {}
    names = study.contexts.names
    for text in texts:
        name, equals, word = text.partition("=")
        if not equals or name not in names:
            known = ", ".join(f"{one}=..." for one in names)
            what = f"give {known}" if names else "the study has no context. Leave it out"
            raise InvalidInput(f"--context {text}: {what}")
        if name in context:
            raise InvalidInput(f"--context {text}: {name} is given twice. Give each name once")
        context[name] = _value(study, name, word, text)
    return context or None


def _value(study: Study, name: str, word: str, text: str) -> Any:
    """The value of a context that a word stands for, as `ask` prints it."""
    parameter = study.space.parameters[(study.space.names or ()).index(name)]
    choices = getattr(parameter, "choices", None)
    if choices is not None:
        for choice in choices:
            if argument(choice) == word:
                return choice
        raise InvalidInput(f"--context {text}: give one of {', '.join(map(argument, choices))}")
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    raise InvalidInput(f"--context {text}: {word} is not a number")
