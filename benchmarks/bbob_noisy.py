"""Partita and other optimisers on BBOB's noisy functions, f101 to f130, in 2, 5 and 20 dimensions.

    python benchmarks/bbob_noisy.py               make every run that is missing, then the report
    python benchmarks/bbob_noisy.py run --players partita pycma --functions 101 107 --dims 2 5
    python benchmarks/bbob_noisy.py run --budget 2000 --instances 1 --jobs 2
    python benchmarks/bbob_noisy.py report --docs into docs/bbob.md and docs/figures as well
    python benchmarks/bbob_noisy.py list          who plays, with which settings and version

Answers are looked at after 500, 2,000 and 10,000 evaluations, of which `--budget` is the largest. A
run of 10,000 answers for the shorter ones, unless its player is told the budget. Optuna's TPE and
nevergrad's NGOpt are slow: they play nine functions, one instance of each, to 2,000 evaluations.

Runs are kept in `--out`, a file each, as by benchmarks/peers.py: stop whenever you like, the same
command goes on. A run is made again when its library's version or its settings change, Partita's
also when its code does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from versus import bbob, command, runs
from versus.roster import BBOB
from versus.runs import Run, Task

BUDGETS = (500, 2_000, 10_000)
DIMS = (2, 5, 20)
INSTANCES = 3
#: What the slow players play: one or two functions of each kind, with each kind of noise.
SLOW = ("optuna-tpe", "nevergrad-ngopt")
SLOW_FUNCTIONS = (101, 107, 109, 113, 116, 119, 122, 125, 128)
SLOW_BUDGET = 2_000
SLOW_INSTANCES = 1


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)

    def write(made: dict[Task, Run], docs: Path | None) -> list[Path]:
        from versus import bbob_report

        chosen = {task: run for task, run in made.items() if _wanted(options, task)}
        few = [bbob.name(f, d) for d in options.dims for f in SLOW_FUNCTIONS]
        return bbob_report.write(chosen, budgets(options), few, Path(options.out), docs)

    return command.carry_out(options, lambda players: plan(players, options), write)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = command.parser(__doc__, BBOB, "results/bbob")
    add, number = parser.add_argument, command.count
    functions = list(bbob.FUNCTIONS)
    add("--functions", nargs="+", type=int, default=functions, choices=functions, metavar="F")
    add("--dims", nargs="+", type=int, default=list(DIMS), choices=bbob.DIMENSIONS, metavar="D")
    add("--budget", type=int, default=max(BUDGETS), choices=BUDGETS, metavar="T")
    add("--instances", type=number, default=INSTANCES, metavar="N", help="instances 1 to N")
    return parser.parse_args(arguments)


def budgets(options: argparse.Namespace) -> list[int]:
    """Those up to the one that was asked for."""
    return [budget for budget in BUDGETS if budget <= options.budget]


def plan(players: Sequence[str], options: argparse.Namespace) -> list[Task]:
    """The runs that players are to make."""
    tasks = []
    for player in players:
        functions, reached, instances = options.functions, budgets(options), options.instances
        if player in SLOW:
            functions = [function for function in functions if function in SLOW_FUNCTIONS]
            reached = [budget for budget in reached if budget <= SLOW_BUDGET]
            instances = min(instances, SLOW_INSTANCES)
        names = [bbob.name(function, dim) for dim in options.dims for function in functions]
        tasks += runs.plan([player], names, [bbob.OWN], reached, seeds=instances)
    return sorted(tasks, key=lambda task: task.seed)  # an instance is complete before the next


def _wanted(options: argparse.Namespace, task: Task) -> bool:
    return (
        task.player in options.players
        and bbob.NUMBERS.get(task.problem) in options.functions
        and bbob.DIMS[task.problem] in options.dims
        and task.seed < options.instances
    )


if __name__ == "__main__":
    sys.exit(main())
