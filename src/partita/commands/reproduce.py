"""`partita reproduce`: the paper's table and figures."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from partita._text import listed
from partita.errors import InvalidInput

from .shared import INTERRUPTED, add_running_options, guarded

if TYPE_CHECKING:
    from partita.experiments.folder import Folder
    from partita.experiments.paper import Plan
    from partita.experiments.specs import Task
    from partita.experiments.trace import Trace

NAME = "reproduce"


def add_parser(commands: Any) -> None:
    """Add the command to `commands`, which `add_subparsers` returned."""
    parser = commands.add_parser(
        NAME,
        help="reproduce the table and figures of the paper",
        description="Run the experiments of Janz, Burt & González (2020) and write Table 1, "
        "figure 1 and figure 2. Finished runs are kept: the same command continues where it "
        "stopped.",
    )
    parser.add_argument("experiment", help="table1, figure1, figure2 or all")
    parser.add_argument("--runs", type=int, metavar="N", help="runs per setting (12; --quick: 5)")
    parser.add_argument("--horizon", type=int, metavar="T", help="evaluations per run (10000)")
    parser.add_argument(
        "--dims", type=int, nargs="+", metavar="D", help="dimensions of table 1 (1 2 3)"
    )
    parser.add_argument(
        "--policies",
        nargs="+",
        metavar="NAME",
        help="some of igp-ucb, pi-gp-ucb-paper, pi-gp-ucb, uniform (default: the first three)",
    )
    add_running_options(parser, "results")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="done within two minutes: 5 runs, and IGP-UCB in 3-D for 1,000 evaluations only",
    )
    parser.set_defaults(run=run)


@guarded
def run(options: argparse.Namespace) -> int:
    """Make the runs, and write the table and figures."""
    from partita._optional import require
    from partita.experiments import paper, run_many
    from partita.experiments.folder import Folder
    from partita.experiments.parallel import check_backend
    from partita.experiments.progress import Progress

    experiments, plan = _read(options)
    check_backend(options.backend)
    if experiments != ["table1"]:
        require("matplotlib")
    folder = Folder(options.out)
    folder.claim(experiments, plan)
    wanted = dict.fromkeys(task for name in experiments for task in paper.tasks(name, plan))
    try:
        with Progress() as progress:
            traces = run_many(
                wanted,
                store=folder.store,
                jobs=options.jobs,
                backend=options.backend,
                progress=progress,
            )
        for experiment in experiments:
            _write(experiment, plan, dict(zip(wanted, traces, strict=True)), folder)
    except KeyboardInterrupt:
        kept = sum(folder.store.path(task).exists() for task in wanted)
        folder.tidy()
        sys.stderr.write(
            f"partita: stopped. {kept} of {len(wanted)} runs are kept in {folder.path}; the same "
            "command continues from there.\n"
        )
        return INTERRUPTED
    except BaseException:
        folder.tidy()
        raise
    return 0


def _read(options: argparse.Namespace) -> tuple[list[str], Plan]:
    """The names of the experiments, and their plan, from checked options."""
    from partita.experiments import paper

    choices = (*paper.EXPERIMENTS, "all")
    if options.experiment not in choices:
        raise InvalidInput(
            f"experiment {options.experiment!r} is unknown: give {listed(choices, 'or')}."
        )
    experiments = list(paper.EXPERIMENTS) if options.experiment == "all" else [options.experiment]
    if options.dims is not None and "table1" not in experiments:
        raise InvalidInput(f"--dims is for table1: {options.experiment} has two dimensions.")
    if options.jobs is not None and options.jobs < 1:
        raise InvalidInput(f"--jobs {options.jobs}: give at least 1.")
    runs = paper.QUICK_RUNS if options.quick else paper.RUNS
    plan = paper.Plan(
        runs=runs if options.runs is None else options.runs,
        horizon=paper.HORIZON if options.horizon is None else options.horizon,
        dims=paper.DIMS if options.dims is None else tuple(options.dims),
        policies=paper.COMPARED if options.policies is None else tuple(options.policies),
        quick=options.quick,
    )
    return experiments, plan


def _write(experiment: str, plan: Plan, traces: dict[Task, Trace], folder: Folder) -> None:
    """Write the table or figure of finished runs, and print its path."""
    from partita.experiments import figures, paper, table

    if experiment == "table1":
        of_table = {k: [traces[t] for t in group] for k, group in paper.table1(plan).items()}
        text = table.render(plan, of_table)
        path = folder.write("table1.md", text.encode())
        sys.stdout.write(f"{text}\nwritten to {path}\n")
        return
    if experiment == "figure1":
        of_policies = {k: [traces[t] for t in group] for k, group in paper.figure1(plan).items()}
        files = figures.figure1(plan, of_policies)
    else:
        of_functions = {k: [traces[t] for t in group] for k, group in paper.figure2(plan).items()}
        files = figures.figure2(plan, of_functions)
    paths = [folder.write(f"{experiment}.{kind}", content) for kind, content in files.items()]
    sys.stdout.write(f"{experiment} written to {listed(paths)}\n")
