"""Partita and other optimisers in 20, 50 and 100 dimensions.

    python benchmarks/high_dim.py                 make every run that is missing, then the tables
    python benchmarks/high_dim.py run --players partita pycma --functions sphere rover --dims 20
    python benchmarks/high_dim.py --budget 1000 --seeds 1 --noises tenth
    python benchmarks/high_dim.py list            who plays, with which settings and version

Regret is a part of uniform sampling's. That of the rover and of the linear policy is from a cost
that no point reaches, so it does not go to 0. Runs are kept in `--out`, a file each, as by
benchmarks/peers.py: stop whenever you like, the same command goes on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from versus import command, problems, report, runs, wide
from versus.board import MEASURES, Board
from versus.runs import Run, Task

from partita.experiments.store import replace_file

PLAYERS = (
    "partita",
    "pycma",
    "pycma-once",
    "cmaes",
    "cmaes-restarts",
    "nevergrad-tbpsa",
    "turbo-1",
    "uniform",
)
BUDGETS = (1_000, 5_000, 20_000)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    return command.carry_out(
        options,
        lambda players: plan(players, options),
        lambda made, _: write(made, options),
    )


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = command.parser(__doc__, PLAYERS, "results/high_dim")
    add = parser.add_argument
    names, dims = list(wide.FUNCTIONS), list(wide.DIMENSIONS)
    add("--functions", nargs="+", default=names, choices=names, metavar="NAME")
    add("--dims", nargs="+", type=int, default=dims, choices=[*dims, wide.ROVER], metavar="D")
    noises = problems.NOISES
    add("--noises", nargs="+", default=list(noises), choices=[*noises, wide.NONE])
    add("--budget", type=command.count, default=max(BUDGETS), metavar="T")
    add("--seeds", type=command.count, default=5, metavar="N")
    return parser.parse_args(arguments)


def plan(players: Sequence[str], options: argparse.Namespace) -> list[Task]:
    """The runs that players are to make."""
    names = [f"{title}-{dim}" for dim in options.dims for title in options.functions]
    tasks = runs.plan(players, names, options.noises, budgets(options), options.seeds)
    return sorted(tasks, key=lambda task: task.seed)  # a seed is complete before the next


def budgets(options: argparse.Namespace) -> list[int]:
    """Those below the one that was asked for, and that."""
    return [*(b for b in BUDGETS if b < options.budget), options.budget]


def write(made: dict[Task, Run], options: argparse.Namespace) -> list[Path]:
    """Write the tables, one for each number of dimensions, noise, budget and measure."""
    parts = []
    for dim in options.dims:
        names = {f"{title}-{dim}" for title in options.functions}
        here = {t: r for t, r in made.items() if t.problem in names and t.player in options.players}
        board = Board(here)
        for noise, budget in board.settings:
            parts.append(f"## {dim} dimensions, {budget:,} evaluations, noise: {noise}")
            for measure, title in MEASURES.items():
                parts += [
                    f"{title.capitalize()}:",
                    report.by_problem(board, measure, noise, budget),
                ]
        if here:
            parts += [f"Time in {dim} dimensions:", report.times(board)]
    if not parts:
        raise report.nothing(Path(options.out))
    path = Path(options.out) / "report.md"
    replace_file(path, ("\n\n".join(parts) + "\n").encode())
    return [path]


if __name__ == "__main__":
    sys.exit(main())
