"""`partita compare`: compare policies on test problems."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from partita._text import listed
from partita.errors import InvalidInput

from .shared import INTERRUPTED, add_running_options, guarded

if TYPE_CHECKING:
    from partita.experiments.compare import Plan

NAME = "compare"


def add_parser(commands: Any) -> None:
    """Add the command to `commands`, which `add_subparsers` returned."""
    parser = commands.add_parser(
        NAME,
        help="compare policies on test problems",
        description="Run policies on test problems, print a table and draw the regret curves. "
        "Finished runs are kept: the same command continues where it stopped.",
    )
    parser.add_argument(
        "--policies",
        nargs="+",
        metavar="NAME",
        help="names from `partita policies`, optionally with settings in brackets (hoo[nu1=2]), or "
        "module:Class for your own "
        "(default: igp-ucb pi-gp-ucb-paper pi-gp-ucb pi-gp-ts uniform)",
    )
    parser.add_argument(
        "--problems",
        nargs="+",
        metavar="NAME",
        help="names from `partita problems`, optionally with a dimension, such as synthetic-3d "
        "(default: synthetic)",
    )
    parser.add_argument("--horizon", type=int, metavar="T", help="evaluations per run (1000)")
    parser.add_argument("--runs", type=int, metavar="N", help="runs per policy and problem (5)")
    parser.add_argument(
        "--box", action="store_true", help="use the continuous box instead of a grid"
    )
    parser.add_argument("--side", type=int, metavar="N", help="arms per side of the grid (30)")
    parser.add_argument(
        "--noise", type=float, metavar="W", help="noise is uniform on [-W, W] (1 or 0.1)"
    )
    parser.add_argument(
        "--norm-bound",
        type=float,
        metavar="B",
        help="norm bound given to the policies (default: the true norm if known, else 1)",
    )
    add_running_options(parser, "results/compare")
    parser.set_defaults(run=run)


@guarded
def run(options: argparse.Namespace) -> int:
    """Make the runs, print the table and write the files."""
    from pathlib import Path

    from partita._optional import require
    from partita.experiments import Store, compare, figures, run_many
    from partita.experiments.parallel import check_backend
    from partita.experiments.progress import Progress
    from partita.experiments.store import replace_file

    plan = _read(options)
    check_backend(options.backend)
    require("matplotlib")
    folder = Path(options.out)
    store = Store(folder / "runs")
    groups = plan.groups()
    wanted = [task for group in groups.values() for task in group]
    try:
        with Progress() as progress:
            traces = run_many(
                wanted, store=store, jobs=options.jobs, backend=options.backend, progress=progress
            )
    except KeyboardInterrupt:
        kept = sum(store.path(task).exists() for task in wanted)
        sys.stderr.write(
            f"partita: stopped. {kept} of {len(wanted)} runs are kept in {folder}; the same "
            "command continues from there.\n"
        )
        return INTERRUPTED
    made = dict(zip(wanted, traces, strict=True))
    traces_of = {key: [made[task] for task in group] for key, group in groups.items()}
    text = compare.render(plan, traces_of)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / "compare.md"]
    replace_file(paths[0], text.encode())
    for kind, content in figures.comparison(plan, traces_of).items():
        paths.append(folder / f"compare.{kind}")
        replace_file(paths[-1], content)
    sys.stdout.write(f"{text}\nwritten to {listed(paths)}\n")
    return 0


def _read(options: argparse.Namespace) -> Plan:
    """The plan of the comparison, from checked options."""
    from partita.experiments import compare
    from partita.policies.named import read_policy

    if options.jobs is not None and options.jobs < 1:
        raise InvalidInput(f"--jobs {options.jobs}: give at least 1.")
    if options.box and options.side is not None:
        raise InvalidInput("--box, --side: a box has no arms. Give only one of the two.")
    policies = options.policies or compare.POLICIES
    problems = options.problems or compare.PROBLEMS
    return compare.Plan(
        policies=tuple(dict.fromkeys(read_policy(text) for text in policies)),
        problems=tuple(
            dict.fromkeys(
                compare.read_problem(
                    text,
                    side=options.side,
                    noise=options.noise,
                    norm_bound=options.norm_bound,
                    continuous=options.box,
                )
                for text in problems
            )
        ),
        horizon=compare.HORIZON if options.horizon is None else options.horizon,
        runs=compare.RUNS if options.runs is None else options.runs,
    )
