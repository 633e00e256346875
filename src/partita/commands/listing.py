"""`partita policies` and `partita problems`: lists, one line each."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Sequence
from typing import Any

from .shared import guarded


def add_parser(commands: Any) -> None:
    """Add the commands to `commands`, which `add_subparsers` returned."""
    for name, text, lines in (
        ("policies", "list the policies, one line each", policies),
        ("problems", "list the test problems, one line each", problems),
    ):
        parser = commands.add_parser(name, help=text, description=text)
        parser.set_defaults(run=run, lines=lines)


@guarded
def run(options: argparse.Namespace) -> int:
    """Print the list."""
    sys.stdout.write(options.lines())
    return 0


def policies() -> str:
    """Every policy: its name, who published it and when to use it."""
    from partita.policies.registry import METHODS

    rows = [(m.name, f"{m.title} ({m.citation}): {m.use}") for m in METHODS.values()]
    return _lines(rows)


def problems() -> str:
    """Every test problem: its name, dimension and character."""
    from partita.problems import describe, names

    rows = [
        (
            "synthetic",
            "30d random Matérn bumps of known norm, any number of dimensions (synthetic-3d): new "
            "for each run (Janz, Burt & González 2020)",
        )
    ]
    return _lines([*rows, *((name, describe(name)) for name in names())])


def _lines(rows: Sequence[tuple[str, str]]) -> str:
    width = max(len(name) for name, _ in rows)
    return "".join(f"{name:<{width}}  {textwrap.shorten(text, 400)}\n" for name, text in rows)
