"""`partita reproduce`: the paper's table and figures from the command line.

Nothing heavy is imported before a command runs.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from partita.errors import InvalidInput, PartitaError

if TYPE_CHECKING:
    from .folder import Folder
    from .paper import Plan
    from .specs import Task
    from .trace import Trace

NAME = "reproduce"
#: Exit codes: bad input, and what shells use for Ctrl-C.
REFUSED, INTERRUPTED = 2, 130


def add_parser(commands: Any) -> None:
    """Add the command to those of a parser, as `add_subparsers` returned them."""
    parser = commands.add_parser(
        NAME,
        help="the table and figures of the paper",
        description="Run the experiments of Janz, Burt & González (2020) and write Table 1, "
        "figure 1 and figure 2. Finished runs are kept: the same command goes on where it stopped.",
    )
    parser.add_argument("experiment", help="table1, figure1, figure2 or all")
    parser.add_argument("--runs", type=int, metavar="N", help="runs of each (12; --quick: 5)")
    parser.add_argument("--horizon", type=int, metavar="T", help="evaluations a run (10000)")
    parser.add_argument("--dims", type=int, nargs="+", metavar="D", help="of table 1 (1 2 3)")
    parser.add_argument(
        "--policies",
        nargs="+",
        metavar="NAME",
        help="of igp-ucb, pi-gp-ucb-paper, pi-gp-ucb, uniform (the first three)",
    )
    add_running_options(parser, "results")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="all within two minutes: 5 runs, and IGP-UCB in three dimensions for 1,000 steps only",
    )
    parser.set_defaults(run=run)


def add_running_options(parser: argparse.ArgumentParser, out: str) -> None:
    """Options of every command that makes runs: how, and the folder they are kept in."""
    parser.add_argument("--jobs", type=int, metavar="N", help="runs at once (one a core)")
    parser.add_argument(
        "--backend",
        default="loky",
        metavar="NAME",
        help="where runs are made: loky, the cores of this machine (default), or dask or ray, a "
        "cluster (DASK_SCHEDULER_ADDRESS or RAY_ADDRESS says which)",
    )
    parser.add_argument("--out", default=out, metavar="DIR", help=f"folder of the results ({out})")


def run(options: argparse.Namespace) -> int:
    """Run the command; its exit code. Errors are one line on stderr."""
    return guarded(_reproduce, options)


def guarded(command: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    """Run a command; its exit code. Errors are one line on stderr."""
    try:
        return command(options)
    except KeyboardInterrupt:
        sys.stderr.write("partita: stopped before anything was run.\n")
        return INTERRUPTED
    except PartitaError as error:
        return _refuse(str(error))
    except BrokenPipeError:
        return unheard()
    except OSError as error:
        return _refuse(f"{error.filename or options.out}: {error.strerror or error}.")


def unheard() -> int:
    """The exit code once whoever read our output has gone: nobody is left to tell."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1


def _refuse(message: str) -> int:
    sys.stderr.write(f"partita: {' '.join(message.split())}\n")
    return REFUSED


def _reproduce(options: argparse.Namespace) -> int:
    from . import paper
    from .folder import Folder
    from .parallel import check_backend, run_many
    from .progress import Progress

    experiments, plan = _read(options)
    check_backend(options.backend)
    if experiments != ["table1"]:
        _check_matplotlib()
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
            "command goes on from there.\n"
        )
        return INTERRUPTED
    except BaseException:
        folder.tidy()
        raise
    return 0


def _read(options: argparse.Namespace) -> tuple[list[str], Plan]:
    """Experiments and how they are made, or an error."""
    from . import paper

    known = (*paper.EXPERIMENTS, "all")
    if options.experiment not in known:
        raise InvalidInput(
            f"experiment {options.experiment!r} is unknown: give {', '.join(known[:-1])} or all."
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


def _check_matplotlib() -> None:
    from .optional import require

    require("matplotlib")


def _write(experiment: str, plan: Plan, traces: dict[Task, Trace], folder: Folder) -> None:
    """Make the table or figure of finished runs, and say where it is."""
    from . import figures, paper, table

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
    sys.stdout.write(f"{experiment} written to {' and '.join(map(str, paths))}\n")
