"""`partita check`: find faults in the file of a study, and save what is intact."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import Any

from partita._text import printable

from .shared import FAILED, add_study_command, guarded

#: The number of losses that are shown.
SHOWN = 20


def add_parser(commands: Any) -> None:
    """Add the command to `commands`, which `add_subparsers` returned."""
    text = "check the file of a study for damage, and save what is intact"
    parser = add_study_command(commands, "check", text, run)
    parser.add_argument("--save", metavar="NEW", help="write what is intact to this new file")
    parser.epilog = "The file is not changed. Exit code: 0 if nothing is wrong, 1 if something is."


@guarded
def run(options: argparse.Namespace) -> int:
    """Print what is wrong, and save what is intact."""
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
