"""What the runs say: a cell for each player, problem, noise and budget, and who was first."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from . import bbob, problems, wide
from .roster import PLAYERS
from .runs import Run, Task

#: What is measured, by the name of the method of `Run`.
MEASURES = {"regret_at": "cumulative regret", "simple_at": "regret of the answer"}
#: One-sided 95 % points of Student's distribution by degrees of freedom.
_STUDENT = {1: 6.31, 2: 2.92, 3: 2.35, 4: 2.13, 5: 2.02, 6: 1.94, 7: 1.89, 8: 1.86, 9: 1.83}
_NORMAL = 1.645


class Scoring(NamedTuple):
    """How values are averaged, and whether a cell is level with the best one."""

    average: Callable[[Sequence[float]], float]
    level: Callable[[Cell, Cell], bool]
    #: Whether being level counts as being first, as where many reach the same.
    shared: bool = False


def _level(cell: Cell, best: Cell) -> bool:
    """Behind it, seed by seed, by at most Student's 95 % point of the standard error."""
    seeds = sorted(cell.values.keys() & best.values.keys())
    if len(seeds) < 2:
        return False
    behind = np.array([cell.values[seed] - best.values[seed] for seed in seeds])
    error = float(behind.std(ddof=1)) / math.sqrt(len(seeds))
    return float(behind.mean()) <= _STUDENT.get(len(seeds) - 1, _NORMAL) * error


#: Means, and differences between seeds.
BY_SEEDS = Scoring(lambda values: float(np.mean(values)), _level)


@dataclass
class Cell:
    """A player on a problem: values by seed, steps of runs out of time, errors of failed ones."""

    values: dict[int, float] = field(default_factory=dict)
    stopped: list[int] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    #: Seeds that others have played and this player has not yet.
    missing: int = 0
    scoring: Scoring = BY_SEEDS

    @property
    def complete(self) -> bool:
        """Every seed was played, and every run reached the budget."""
        return bool(self.values) and not (self.stopped or self.failed or self.missing)

    @property
    def mean(self) -> float:
        """Over the seeds that reached the budget, nan if none did."""
        return self.scoring.average(list(self.values.values())) if self.values else math.nan

    @property
    def runs(self) -> int:
        """How many there are."""
        return len(self.values) + len(self.stopped) + len(self.failed)


class Board:
    """All runs, by what the tables ask for."""

    def __init__(
        self,
        runs: Mapping[Task, Run],
        budgets: Iterable[int] | None = None,
        scoring: Scoring = BY_SEEDS,
    ) -> None:
        self.runs = dict(runs)
        self._scoring = scoring
        self._groups: dict[tuple[str, str, str], list[Run]] = defaultdict(list)
        for task, run in self.runs.items():
            self._groups[task.player, task.problem, task.noise].append(run)
        tasks = self.runs.keys()
        self.players = [name for name in PLAYERS if any(t.player == name for t in tasks)]
        met = {t.problem for t in tasks}
        self.problems = [name for name in problems.EVERY if name in met]
        noises = (*problems.NOISES, wide.NONE, bbob.OWN)
        self.noises = [name for name in noises if any(t.noise == name for t in tasks)]
        played = {task.budget for task in tasks}
        self.budgets = sorted(played if budgets is None else played & set(budgets))
        self.seeds = len({task.seed for task in tasks})

    @property
    def settings(self) -> list[tuple[str, int]]:
        """Noises and budgets that somebody played."""
        played = {(t.noise, t.budget) for t in self.runs}
        return [(n, b) for n in self.noises for b in self.budgets if (n, b) in played]

    def column(self, measure: str, problem: str, noise: str, budget: int) -> dict[str, Cell]:
        """What all players did on a problem."""
        runs = {player: self.by_seed(player, problem, noise, budget) for player in self.players}
        seeds = set().union(*runs.values())
        return {
            player: _cell(measure, budget, runs[player], len(seeds), self._scoring)
            for player in runs
        }

    def by_seed(self, player: str, problem: str, noise: str, budget: int) -> dict[int, Run]:
        """The run that answers for a budget, by seed: of that budget, else a longer one.

        A run of a player that is told its budget answers for no other.
        """
        chosen: dict[int, Run] = {}
        for run in self._groups[player, problem, noise]:
            task = run.task
            longer = task.budget > budget and not PLAYERS[player].told_budget
            if task.budget == budget or (longer and task.seed not in chosen):
                chosen[task.seed] = run
        return chosen

    def longest(self, player: str, noise: str) -> list[Run]:
        """Runs of a player at the largest budget that it has on most problems."""
        by_budget: dict[int, list[Run]] = defaultdict(list)
        for run in self.runs.values():
            if (run.task.player, run.task.noise) == (player, noise):
                by_budget[run.task.budget].append(run)
        if not by_budget:
            return []
        spread = {b: len({run.task.problem for run in group}) for b, group in by_budget.items()}
        return by_budget[max(by_budget, key=lambda b: (spread[b], b))]

    def of(self, player: str) -> list[Run]:
        """All runs of a player."""
        return [run for task, run in self.runs.items() if task.player == player]


def _cell(measure: str, budget: int, runs: Mapping[int, Run], seeds: int, scoring: Scoring) -> Cell:
    cell = Cell(missing=seeds - len(runs), scoring=scoring)
    for seed, run in sorted(runs.items()):
        value = getattr(run, measure)(budget)
        if value is not None:
            cell.values[seed] = value
        elif run.status == "failed":
            cell.failed.append(run.error)
        else:
            cell.stopped.append(run.steps)
    return cell


class Ranking(NamedTuple):
    """The player with the least mean, and those behind it by no more than the noise."""

    first: str | None
    level: frozenset[str]


def rank(column: Mapping[str, Cell]) -> Ranking:
    """Who was first on a problem.

    Players that are told the truth are not ranked.
    """
    ranked = {p: c for p, c in column.items() if c.complete and not PLAYERS[p].told_truth}
    if not ranked:
        return Ranking(None, frozenset())
    best = min(ranked, key=lambda player: ranked[player].mean)
    others = (p for p in ranked if p != best and ranked[p].scoring.level(ranked[p], ranked[best]))
    return Ranking(best, frozenset(others))


def median(values: Iterable[float]) -> float:
    """The median, nan of nothing."""
    kept = list(values)
    return float(np.median(kept)) if kept else math.nan
