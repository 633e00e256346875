"""The command line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from partita._version import __version__
from partita.errors import PartitaError

from . import compare, listing, reproduce, study, theory
from . import minimize as minimize_command


def parser() -> argparse.ArgumentParser:
    """The command-line parser."""
    top = argparse.ArgumentParser(
        prog="partita", description="Optimise noisy black-box functions with many evaluations."
    )
    top.add_argument("--version", action="version", version=f"partita {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    minimize_command.add_parsers(commands)
    study.add_parsers(commands)
    demo = commands.add_parser("demo", help="π-GP-UCB on one of the paper's synthetic functions")
    demo.add_argument("--dim", type=int, default=2, choices=(1, 2, 3), help="dimensions (2)")
    demo.add_argument("--horizon", type=int, default=10_000, help="evaluations (10000)")
    demo.add_argument("--seed", type=int, default=1, help="function, noise and ties (1)")
    demo.set_defaults(run=_demo)
    compare.add_parser(commands)
    listing.add_parsers(commands)
    reproduce.add_parser(commands)
    theory.add_parser(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    ours, program = minimize_command.split_program(given)
    options = parser().parse_args(ours)
    options.program = program
    code: int = options.run(options)
    return code


def _demo(options: argparse.Namespace) -> int:
    try:
        from .demo import report

        print(report(options.dim, options.horizon, options.seed))
    except PartitaError as error:
        print(f"partita: {error}", file=sys.stderr)
        return 2
    return 0
