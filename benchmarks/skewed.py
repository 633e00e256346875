"""Skewed noise that differs over the domain: is the answer best on average, or only mostly?

    python benchmarks/skewed.py                          20 runs of 1,000 evaluations a problem
    python benchmarks/skewed.py --runs 5 --jobs 2 --problems rare-loss-2
    python benchmarks/skewed.py --settings "" outliers=keep outliers=keep,delta=0.05

Every problem has two peaks on the unit cube. The one with the higher mean has the lower median, so
that who transforms values, clips them or goes by ranks may answer with the wrong one. A cell holds
the regret of the answer in the mean, as a part of uniform sampling's, and how many of the answers
were nearer to the wrong peak. `--settings` are keywords of CalibratedUCB, "" its defaults.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from common import at, grouped, parser, print_table
from versus.cube import on_cube
from versus.players import Calibrated, Player, Setting
from versus.roster import PLAYERS

from partita.experiments.play import steps
from partita.experiments.specs import Problem
from partita.problems import average

CHECKPOINTS = (200, 1_000)
#: With the dimensions from which they play: pycma does not optimise in one.
PEERS = {"uniform": 1, "pycma": 2}
#: Of the peaks, in the unit of the domain, for one dimension.
WIDTH = 0.15
#: The mean at the peak with the lower mean; the other has 1.
LOWER = 0.7
#: How often a rare loss or gain occurs.
RARE = 0.05
RIGHT, WRONG = np.array([0.72, 0.31, 0.64]), np.array([0.27, 0.76, 0.22])


class Law(NamedTuple):
    """The noise is sign · spread(x) · (Z − 1), Z ≥ 0 of mean 1.

    Attributes
    ----------
    sign : −1 for losses, 1 for gains
    rare : whether Z is 1/p with probability p, else 0; or exponential
    low, high : the spread far from the peak where it is large, and there
    """

    sign: int
    rare: bool
    low: float
    high: float

    def draw(self, random: np.random.Generator, size: int | None = None) -> Any:
        """Noise where the spread is 1."""
        if self.rare:
            return self.sign * ((random.random(size) < RARE) / RARE - 1.0)
        return self.sign * (random.exponential(size=size) - 1.0)

    @property
    def median(self) -> float:
        """The median of the noise where the spread is 1."""
        return self.sign * ((0.0 if self.rare else np.log(2)) - 1.0)


_LAWS = {
    "exponential-loss": Law(-1, False, 0.2, 1.6),
    "exponential-gain": Law(1, False, 0.2, 1.6),
    "rare-loss": Law(-1, True, 0.05, 0.5),
    "rare-gain": Law(1, True, 0.05, 0.5),
}
NAMES = (
    "exponential-loss-1",
    "exponential-loss-2",
    "exponential-gain-3",
    "rare-loss-1",
    "rare-loss-2",
    "rare-loss-3",
    "rare-gain-2",
)


@dataclass(frozen=True, eq=False)
class Skewed(Problem):
    """A problem whose `function` is E[y]; `half_width` means nothing."""

    law: Law
    #: The peaks of the mean and of the median, (d,).
    right: np.ndarray
    wrong: np.ndarray

    def spread(self, U: np.ndarray) -> np.ndarray:
        """The spread of the noise at points (n, d), (n,): large where losses or gains are."""
        # Losses hide behind the wrong peak's median, gains behind the right one's.
        centre = self.wrong if self.law.sign < 0 else self.right
        return self.law.low + (self.law.high - self.law.low) * _bump(U, centre)

    def median(self, U: np.ndarray) -> np.ndarray:
        """The median of y at points (n, d), (n,)."""
        return self.function(U) + self.law.median * self.spread(U)


def _bump(U: np.ndarray, centre: np.ndarray) -> np.ndarray:
    width = WIDTH * np.sqrt(len(centre))
    return np.exp(-np.sum((np.asarray(U) - centre) ** 2, axis=-1) / (2 * width**2))


def build(name: str) -> Skewed:
    """The problem of a name. Not cached: what a worker is sent must be sent by value."""
    kind, _, digit = name.rpartition("-")
    dim = int(digit)
    right, wrong = RIGHT[:dim], WRONG[:dim]

    def mean(U: np.ndarray) -> np.ndarray:
        return np.maximum(_bump(U, right), LOWER * _bump(U, wrong))

    more = {"law": _LAWS[kind], "right": right, "wrong": wrong}
    return on_cube(Skewed, dim, mean, 1.0, average(mean, dim), **more)


class _Varied(Calibrated):
    """CalibratedUCB with keywords."""

    def __init__(self, setting: Setting, keywords: Mapping[str, object]) -> None:
        self._keywords = keywords
        super().__init__(setting)

    def _knobs(self, setting: Setting) -> dict[str, object]:
        return dict(self._keywords)


def keywords(text: str) -> dict[str, object]:
    """`outliers=keep,delta=0.05` as keywords."""
    pairs = (part.split("=", 1) for part in text.split(",") if part)
    return {name.strip(): _value(value.strip()) for name, value in pairs}


def _value(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


class Answer(NamedTuple):
    """Regret in the mean as a part of uniform sampling's, and whether the wrong peak is nearer."""

    regret: float
    fooled: bool


def run(name: str, who: str, seed: int) -> dict[int, Answer]:
    problem = build(name)
    setting = Setting(problem.dim, max(CHECKPOINTS), seed, problem)
    player: Player = PLAYERS[who](setting) if who in PEERS else _Varied(setting, keywords(who))
    random, spread = np.random.default_rng([seed, 37]), 0.0

    def value(x: np.ndarray) -> float:
        nonlocal spread
        spread = float(problem.spread(x[None, :])[0])
        return at(problem, x)

    def noisy(mean: float) -> float:
        return mean + spread * problem.law.draw(random)

    answers = {}
    for t, _ in enumerate(steps(player, value, noisy, max(CHECKPOINTS)), start=1):
        if t in CHECKPOINTS:
            x = player.recommend()
            lost = (problem.best - at(problem, x)) / problem.uniform_regret
            nearer = np.linalg.norm(x - problem.wrong) < np.linalg.norm(x - problem.right)
            answers[t] = Answer(lost, bool(nearer))
    return answers


def cell(answers: list[Answer]) -> str:
    """Mean regret, and how many were fooled."""
    if not answers:
        return "–"
    fooled = sum(answer.fooled for answer in answers)
    return f"{np.mean([answer.regret for answer in answers]):.3f}, {fooled}/{len(answers)}"


def main() -> None:
    command = parser(__doc__)
    add = command.add_argument
    add("--runs", type=int, default=20, help="seeds a problem")
    add("--problems", nargs="+", default=list(NAMES), choices=NAMES, metavar="NAME")
    add("--settings", nargs="+", default=["", "outliers=keep"], metavar="KEYWORDS")
    options = command.parse_args()
    players = [*options.settings, *PEERS]
    groups = [
        (name, who)
        for name in options.problems
        for who in players
        if build(name).dim >= PEERS.get(who, 1)
    ]
    results = grouped(run, groups, options.runs, options.jobs)
    for t in CHECKPOINTS:
        print(f"\nAfter {t:,} evaluations:\n")
        rows = []
        for name in [*options.problems, "all"]:
            named = options.problems if name == "all" else [name]
            made = {
                who: [r[t] for n in named for r in results.get((n, who), [])] for who in players
            }
            rows.append([name, *(cell(made[who]) for who in players)])
        print_table(["", *(who or "as it is" for who in players)], rows)


if __name__ == "__main__":
    main()
