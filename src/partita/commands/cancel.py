"""`partita cancel`: cancel a trial."""

from __future__ import annotations

import argparse
from typing import Any

from .shared import add_study_command, guarded, opened


def add_parser(commands: Any) -> None:
    """Add the command to `commands`, which `add_subparsers` returned."""
    text = "cancel a trial whose evaluation failed"
    parser = add_study_command(commands, "cancel", text, run)
    parser.add_argument("number", type=int, help="number of the trial, as printed by ask")


@guarded
def run(options: argparse.Namespace) -> int:
    """Cancel the trial."""
    with opened(options) as study:
        study.cancel(options.number)
    return 0
