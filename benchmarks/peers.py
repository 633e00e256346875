"""Partita against every peer: regret, the loss of the answer, and the time of a step.

    python benchmarks/peers.py                    make every run that is missing, then the report
    python benchmarks/peers.py run                make the runs only
    python benchmarks/peers.py report             the report from the runs there are
    python benchmarks/peers.py list               who plays, with which settings and version

Runs are kept in `--out`, a file each: stop whenever you like, the same command goes on. A player
that fails is shown with its error, one that is too slow with the step it reached in `--time-limit`.
Players are ranked once they have played every seed that others have: `report --seeds 3` compares
the first three. `--docs` writes the report into docs/peers.md and docs/figures as well.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from versus import command, problems, runs
from versus.roster import PEERS
from versus.runs import Run, Task

BUDGETS = (200, 1_000, 10_000)
SEEDS = 5


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)

    def plan(players: Sequence[str]) -> list[Task]:
        chosen = (players, options.problems, options.noise, options.budgets)
        return runs.plan(*chosen, seeds=options.seeds, beyond=options.beyond)

    def write(made: dict[Task, Run], docs: Path | None) -> list[Path]:
        from versus import report
        from versus.board import Board

        return report.write(Board(_chosen(options, made), options.budgets), Path(options.out), docs)

    return command.carry_out(options, plan, write)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = command.parser(__doc__, PEERS, "results/peers")
    add, names, noises = parser.add_argument, list(problems.NAMES), list(problems.NOISES)
    add("--problems", nargs="+", default=names, choices=names, metavar="NAME")
    add("--noise", nargs="+", default=noises, choices=noises)
    add("--budgets", nargs="+", type=command.count, default=list(BUDGETS), metavar="T")
    add("--seeds", type=command.count, default=SEEDS, metavar="N", help="seeds 0 to N−1")
    add("--beyond", action="store_true", help="try players past the budget they usually follow")
    return parser.parse_args(arguments)


def _chosen(options: argparse.Namespace, made: dict[Task, Run]) -> dict[Task, Run]:
    """Runs of the players, problems, noise and seeds that were asked for."""
    return {
        task: run
        for task, run in made.items()
        if task.player in options.players
        and task.problem in options.problems
        and task.noise in options.noise
        and task.seed < options.seeds
    }


if __name__ == "__main__":
    sys.exit(main())
