"""The command line: `partita COMMAND`.

Each command is a file with `add_parser`, which adds it to a parser, and `run`, which returns its
exit code. None imports another, nor anything heavy before it runs; they share `shared.py`,
`params.py` and `program.py`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from partita._version import __version__

from . import (
    ask,
    cancel,
    check,
    compare,
    create,
    demo,
    export,
    listing,
    minimize,
    reproduce,
    serve,
    show,
    tell,
    theory,
)

#: In the order in which the help lists them.
COMMANDS = (
    *(minimize, create, ask, tell, cancel, show, export, check, serve),
    *(demo, compare, listing, reproduce, theory),
)


def parser() -> argparse.ArgumentParser:
    """The command-line parser."""
    top = argparse.ArgumentParser(
        prog="partita", description="Optimise noisy black-box functions with many evaluations."
    )
    top.add_argument("--version", action="version", version=f"partita {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in COMMANDS:
        module.add_parser(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    ours, program = minimize.split_program(given)
    options = parser().parse_args(ours)
    options.program = program
    code: int = options.run(options)
    return code
