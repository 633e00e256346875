"""`partita export`: write all trials of a study as a table."""

from __future__ import annotations

import argparse
import io
import sys
from typing import Any

from partita._text import printable_lines

from .shared import add_study_command, guarded, opened


def add_parser(commands: Any) -> None:
    """Add the command to `commands`, which `add_subparsers` returned."""
    parser = add_study_command(commands, "export", "write all trials of a study as a table", run)
    parser.add_argument(
        "out", metavar="OUT", help="a .csv or .parquet file, or - for CSV on stdout"
    )


@guarded
def run(options: argparse.Namespace) -> int:
    """Write the table."""
    from partita.study.export import export, write_csv

    with opened(options) as study:
        if options.out == "-" and sys.stdout.isatty():
            text = io.StringIO()
            write_csv(study, text)
            sys.stdout.write(printable_lines(text.getvalue()))
        elif options.out == "-":
            write_csv(study, sys.stdout)
        else:
            export(study, options.out)
    return 0
