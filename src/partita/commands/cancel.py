"""`partita cancel`: cancel a trial."""

from __future__ import annotations

import argparse
from typing import Any

from .shared import add_study_command, guarded, opened


def add_parser(commands: Any) -> None:
    """Add the command to `commands`, which `add_subparsers` returned."""
    text = "cancel a trial whose evaluation failed or was abandoned"
    parser = add_study_command(commands, "cancel", text, run)
    parser.add_argument("number", type=int, help="number of the trial, as printed by ask")
    parser.add_argument(
        "--failed", action="store_true", help="its evaluation failed: learn where that happens"
    )


@guarded
def run(options: argparse.Namespace) -> int:
    """Cancel the trial."""
    with opened(options) as study:
        if options.failed:
            study.fail(options.number)
        else:
            study.cancel(options.number)
    return 0
