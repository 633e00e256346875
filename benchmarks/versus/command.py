"""What the commands share: options, making the runs that are missing, a line for each."""

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from partita.experiments.parallel import run_all
from partita.experiments.store import RunStore

from . import runs
from .roster import PLAYERS
from .runs import Run, Task

TIME_LIMIT = 15 * 60.0
#: What shells use for Ctrl-C.
INTERRUPTED = 130
DOCS = Path(__file__).parents[2] / "docs"


def parser(doc: str, players: Iterable[str], out: str) -> argparse.ArgumentParser:
    """Options that every command has: what to do, who plays by default, where runs are kept."""
    made = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = made.add_argument
    add("what", nargs="?", default="all", choices=("all", "run", "report", "list"))
    add("--players", nargs="+", default=list(players), choices=list(PLAYERS), metavar="NAME")
    add("--time-limit", type=float, default=TIME_LIMIT, metavar="S", help="seconds a run")
    add("--jobs", type=count, default=1, metavar="N", help="runs made at once")
    add("--out", default=out, metavar="FOLDER")
    add("--again", action="store_true", help="make failed runs again")
    add("--docs", action="store_true", help="write the report into docs/ as well")
    return made


def count(text: str) -> int:
    """A number of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is too small: give at least 1")
    return number


def carry_out(
    options: argparse.Namespace,
    plan: Callable[[Sequence[str]], list[Task]],
    report: Callable[[dict[Task, Run], Path | None], Iterable[Path]],
) -> int:
    """Do what the options say; returns what the process ends with.

    `plan` says which runs players are to make. `report` is given all runs and the folder of the
    docs, if the report is to be written there too, and says which files it wrote.
    """
    if options.what == "list":
        _list(options.players)
        return 0
    store = runs.kept_in(options.out)
    if options.what in ("all", "run"):
        try:
            _make(options, store, plan)
        except KeyboardInterrupt:
            print("stopped: finished runs are kept, the same command goes on", file=sys.stderr)
            return INTERRUPTED
    if options.what in ("all", "report"):
        for path in report(runs.newest(store), DOCS if options.docs else None):
            print(f"wrote {path}")
    return 0


def _list(names: Iterable[str]) -> None:
    for name in names:
        player = PLAYERS[name]
        state = player.missing() or ", ".join(runs.versions(player))
        print(f"{name:18}{state}\n{'':18}{player.settings}")


def _make(
    options: argparse.Namespace,
    store: RunStore[Run],
    plan: Callable[[Sequence[str]], list[Task]],
) -> None:
    players = []
    for name in dict.fromkeys(options.players):
        reason = PLAYERS[name].missing()
        if reason is None:
            players.append(name)
        else:
            print(f"{name} is left out: {reason}", file=sys.stderr)
    limit = options.time_limit
    run_all(
        plan(players),
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
