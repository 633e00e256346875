"""Finished runs on disk, one small file each, and which runs are still to be made."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from partita.experiments.store import replace_file

from .roster import PLAYERS
from .runs import Run, Task

_ARRAYS = ("regret", "seconds", "marks", "simple")
_FACTS = ("status", "error", "uniform_regret", "setup_seconds", "time_limit", "versions")


class Store:
    """A folder of runs."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def save(self, run: Run) -> None:
        """Add a run, written whole or not at all."""
        facts = {"task": asdict(run.task)} | {name: getattr(run, name) for name in _FACTS}
        file = io.BytesIO()
        arrays = {name: getattr(run, name) for name in _ARRAYS}
        np.savez_compressed(file, facts=np.array(json.dumps(facts)), **arrays)
        self.folder.mkdir(parents=True, exist_ok=True)
        replace_file(self.folder / run.task.file_name(run.key), file.getvalue())

    def load(self, task: Task) -> Run | None:
        """A run by the player as it is now, None if there is none or its file is damaged."""
        return _read(self.folder / task.file_name(PLAYERS[task.player].key()))

    def all(self) -> dict[Task, Run]:
        """The newest run of every task.

        One by an earlier version is left out where the player as it is now has played the same
        function and noise: its longer runs answer for the shorter ones of before.
        """
        found: dict[Task, Run] = {}
        for path in sorted(self.folder.glob("*.npz"), key=lambda path: path.stat().st_mtime):
            run = _read(path)
            if run is not None:
                found[run.task] = run
        now = {name: cls.key() for name, cls in PLAYERS.items() if cls.missing() is None}
        played = {task.met for task, run in found.items() if run.key == now.get(task.player)}
        return {
            task: run
            for task, run in found.items()
            if task.met not in played or run.key == now[task.player]
        }


def _read(path: Path) -> Run | None:
    try:
        with np.load(path, allow_pickle=False) as members:
            facts = json.loads(str(members["facts"]))
            arrays = {name: members[name] for name in _ARRAYS}
    except FileNotFoundError:
        return None
    except Exception:  # what a damaged archive raises is nowhere listed
        return None
    key = path.stem.rpartition("--")[2]
    return Run(task=Task(**facts.pop("task")), key=key, **facts, **arrays)


def plan(
    players: Iterable[str],
    problems: Sequence[str],
    noises: Sequence[str],
    budgets: Sequence[int],
    seeds: int,
    beyond: bool = False,
) -> list[Task]:
    """The runs that answer for every budget.

    One run at the largest budget tells about the smaller ones, unless the player is told its
    budget. `beyond` lets players try budgets larger than they usually follow.
    """
    tasks = []
    for name in players:
        player = PLAYERS[name]
        most = None if beyond else player.follows
        reached = sorted(b for b in set(budgets) if most is None or b <= most)
        for budget in reached if player.told_budget else reached[-1:]:
            tasks += [
                Task(budget, seed, noise, problem, name)
                for seed in range(seeds)
                for noise in noises
                for problem in problems
            ]
    return sorted(tasks)


def left(tasks: Iterable[Task], store: Store, time_limit: float, again: bool = False) -> list[Task]:
    """Tasks without a run, or whose run was stopped by a shorter limit; `again`: or failed."""
    found = []
    for task in tasks:
        run = store.load(task)
        stopped = run is not None and run.status == "stopped" and run.time_limit < time_limit
        if run is None or stopped or (again and run.status == "failed"):
            found.append(task)
    return found
