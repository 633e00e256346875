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
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

from versus import problems, runs
from versus.roster import PLAYERS
from versus.runs import Run, Task
from versus.store import Store, left, plan

BUDGETS = (200, 1_000, 10_000)
SEEDS = 5
TIME_LIMIT = 15 * 60.0
DOCS = Path(__file__).parents[1] / "docs"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    if options.what == "list":
        _list()
        return 0
    store = Store(options.out)
    if options.what in ("all", "run"):
        _make(options, store)
    if options.what in ("all", "report"):
        from versus import report
        from versus.board import Board

        board = Board(_chosen(options, store.all()), options.budgets)
        for path in report.write(board, Path(options.out), DOCS if options.docs else None):
            print(f"wrote {path}")
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("what", nargs="?", default="all", choices=("all", "run", "report", "list"))
    add("--players", nargs="+", default=list(PLAYERS), choices=list(PLAYERS), metavar="NAME")
    add(
        "--problems",
        nargs="+",
        default=list(problems.NAMES),
        choices=problems.NAMES,
        metavar="NAME",
    )
    add("--noise", nargs="+", default=list(problems.NOISES), choices=problems.NOISES)
    add("--budgets", nargs="+", type=_count, default=list(BUDGETS), metavar="T")
    add("--seeds", type=_count, default=SEEDS, metavar="N", help="seeds 0 to N−1")
    add("--time-limit", type=float, default=TIME_LIMIT, metavar="S", help="seconds a run")
    add("--jobs", type=_count, default=1, metavar="N", help="runs made at once")
    add("--out", default="results/peers", metavar="FOLDER")
    add("--beyond", action="store_true", help="try players past the budget they usually follow")
    add("--again", action="store_true", help="make failed runs again")
    add("--docs", action="store_true", help="write the report into docs/ as well")
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


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is too small: give at least 1")
    return number


def _list() -> None:
    for name, player in PLAYERS.items():
        state = player.missing() or ", ".join(runs.versions(player))
        print(f"{name:18}{state}\n{'':18}{player.settings}")


def _make(options: argparse.Namespace, store: Store) -> None:
    players = []
    for name in dict.fromkeys(options.players):
        reason = PLAYERS[name].missing()
        if reason is None:
            players.append(name)
        else:
            print(f"{name} is left out: {reason}", file=sys.stderr)
    chosen = (players, options.problems, options.noise, options.budgets)
    tasks = plan(*chosen, seeds=options.seeds, beyond=options.beyond)
    waiting = left(tasks, store, options.time_limit, options.again)
    print(f"{len(tasks)} runs, {len(waiting)} to be made", flush=True)
    begin = time.time()
    for done, run in enumerate(_results(waiting, options.time_limit, options.jobs), start=1):
        store.save(run)
        print(_told(run, done, len(waiting), time.time() - begin), flush=True)


def _results(tasks: list[Task], time_limit: float, jobs: int) -> Iterator[Run]:
    """Runs as they finish."""
    if jobs == 1:
        for task in tasks:
            yield _quiet(task, time_limit)
        return
    from joblib import Parallel, delayed

    parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
    yield from parallel(delayed(_quiet)(task, time_limit) for task in tasks)


def _quiet(task: Task, time_limit: float) -> Run:
    """A run whose libraries keep their warnings to themselves."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return runs.play(task, time_limit)


def _told(run: Run, done: int, of: int, elapsed: float) -> str:
    task = run.task
    reached = run.regret_at(run.steps) if run.steps else float("nan")
    end = {"done": "", "stopped": f"  stopped at {run.steps}", "failed": f"  {run.error}"}
    return (
        f"{done:5}/{of} {elapsed:7.0f} s  {task.player:16} {task.problem:10} {task.noise:6}"
        f"T = {task.budget:<7,} seed {task.seed}  regret {reached:.3f}{end[run.status]}"
    )


if __name__ == "__main__":
    sys.exit(main())
