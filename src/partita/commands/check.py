"""`partita check`: what is wrong with the file of a study, and what can be saved of it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import Any

from partita._text import printable

from .shared import FAILED, add_study_command, guarded

#: Lines of what was lost that are shown.
SHOWN = 20


def add_parser(commands: Any) -> None:
    """Add the command to those of a parser, as `add_subparsers` returned them."""
    text = "what is wrong with the file of a study, and what can be saved of it"
    parser = add_study_command(commands, "check", text, run)
    parser.add_argument("--save", metavar="NEW", help="write what is sound to this new file")
    parser.epilog = "The file is only read. Exit code 0 if all is well, 1 if something is wrong."


@guarded
def run(options: argparse.Namespace) -> int:
    """Print what is wrong, and save what is not."""
    from partita.study.check import check
    from partita.study.rescue import save

    report = check(options.file)
    lines = [*report.faults, *report.notes]
    lines.append("something is wrong with it" if report.faults else "all is well")
    _print(f"{options.file}: {line}" for line in lines)
    if options.save is not None:
        saved = save(report, options.save)
        what = f"{saved.events:,} events saved, {saved.values:,} of them values"
        lost = saved.lost[:SHOWN]
        if len(saved.lost) > SHOWN:
            lost.append(f"{len(saved.lost) - SHOWN:,} more")
        _print(f"{options.save}: {line}" for line in [*(f"lost: {line}" for line in lost), what])
    return FAILED if report.faults else 0


def _print(lines: Iterable[str]) -> None:
    sys.stdout.write("".join(f"{printable(line)}\n" for line in lines))
