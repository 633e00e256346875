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
import functools
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from versus import problems, runs
from versus.roster import PLAYERS
from versus.runs import Run, Task

from partita.experiments.parallel import run_all
from partita.experiments.store import RunStore

BUDGETS = (200, 1_000, 10_000)
SEEDS = 5
TIME_LIMIT = 15 * 60.0
#: What shells use for Ctrl-C.
INTERRUPTED = 130
DOCS = Path(__file__).parents[1] / "docs"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    if options.what == "list":
        _list()
        return 0
    store = runs.kept_in(options.out)
    if options.what in ("all", "run"):
        try:
            _make(options, store)
        except KeyboardInterrupt:
            print("stopped: finished runs are kept, the same command goes on", file=sys.stderr)
            return INTERRUPTED
    if options.what in ("all", "report"):
        from versus import report
        from versus.board import Board

        board = Board(_chosen(options, runs.newest(store)), options.budgets)
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


def _make(options: argparse.Namespace, store: RunStore[Run]) -> None:
    players = []
    for name in dict.fromkeys(options.players):
        reason = PLAYERS[name].missing()
        if reason is None:
            players.append(name)
        else:
            print(f"{name} is left out: {reason}", file=sys.stderr)
    chosen = (players, options.problems, options.noise, options.budgets)
    limit = options.time_limit
    run_all(
        runs.plan(*chosen, seeds=options.seeds, beyond=options.beyond),
        functools.partial(runs.play, time_limit=limit),
        store=store,
        jobs=options.jobs,
        progress=Lines(),
        enough=functools.partial(runs.enough, time_limit=limit, again=options.again),
    )


class Lines:
    """Says how far it is, a line a run."""

    def start(self, total: int, left: Sequence[float], jobs: int) -> None:
        self._begin, self._done, self._of = time.time(), 0, len(left)
        print(f"{total} runs, {len(left)} to be made", flush=True)

    def finished(self, run: Run, expected: float) -> None:
        self._done += 1
        task = run.task
        reached = run.regret_at(run.steps) if run.steps else float("nan")
        end = {"done": "", "stopped": f"  stopped at {run.steps}", "failed": f"  {run.error}"}
        print(
            f"{self._done:5}/{self._of} {time.time() - self._begin:7.0f} s  {task.player:16} "
            f"{task.problem:10} {task.noise:6}T = {task.budget:<7,} seed {task.seed}  "
            f"regret {reached:.3f}{end[run.status]}",
            flush=True,
        )


if __name__ == "__main__":
    sys.exit(main())
