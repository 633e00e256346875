"""What ending evaluations early saves: steps spent to reach a regret, with and without pruning.

    python benchmarks/pruning.py                        5 seeds of each family of learning curves
    python benchmarks/pruning.py --families crossing --runs 10 --jobs 2

A training has 27 steps and reports after each. What it ends with is a function of two settings plus
noise; how it gets there is the family's. A cell holds the regret of the answer once a number of
steps was spent, without and with pruning, and the steps after which the regret was at most a
threshold for good, as a median.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from common import grouped, parser, print_table

import partita as pt

STEPS = 27
#: Whole evaluations whose steps a run may spend.
BUDGET = 40
#: Regret that counts as found, of a function whose values span about 1.
FOUND = 0.02
SPACE = {"rate": (1e-4, 1e-1, "log"), "size": (0.0, 1.0)}


def final(rate: float, size: float) -> float:
    """What a training ends with in the mean; the least is 0, at rate 3e-3 and size 0.6."""
    away = (math.log10(rate) + math.log10(1 / 3e-3)) / 1.5
    return 1.0 - math.exp(-(away**2) - 2.0 * (size - 0.6) ** 2 - 1.5 * away * (size - 0.6))


# Each family: the reading after step s of STEPS, given the settings, the end and a draw for noise.
Curve = Callable[[float, float, float, int, np.random.Generator], float]


def steady(rate: float, size: float, end: float, s: int, random: np.random.Generator) -> float:
    """All go down alike, to where they end."""
    return end + 2.0 * math.exp(-5 * s / STEPS)


def noisy(rate: float, size: float, end: float, s: int, random: np.random.Generator) -> float:
    """Readings are far noisier than ends."""
    return end + 2.0 * math.exp(-5 * s / STEPS) + 0.3 * random.normal()


def crossing(rate: float, size: float, end: float, s: int, random: np.random.Generator) -> float:
    """The better a training ends, the slower it begins: small rates win late."""
    speed = 1.5 + 6.0 * end
    return end + 1.5 * (1.0 - 0.6 * end) * math.exp(-speed * s / STEPS)


def late(rate: float, size: float, end: float, s: int, random: np.random.Generator) -> float:
    """Nothing is seen in the first two thirds."""
    shown = 1.0 / (1.0 + math.exp(-(s - 0.8 * STEPS)))
    return shown * end + (1.0 - shown) * (0.7 + 0.1 * random.normal())


def diverging(rate: float, size: float, end: float, s: int, random: np.random.Generator) -> float:
    """Large rates diverge."""
    if rate > 0.02:
        return end + math.exp(min(0.5 * s, 20.0))
    return steady(rate, size, end, s, random)


FAMILIES: dict[str, Curve] = {
    curve.__name__: curve for curve in (steady, noisy, crossing, late, diverging)
}


def run(name: str, prunes: str, seed: int) -> tuple[list[tuple[int, float]], int, int]:
    """Steps spent and regret of the answer now and then, and the trials made and pruned."""
    curve, random = FAMILIES[name], np.random.default_rng([seed, 41])
    optimizer = pt.Optimizer(SPACE, seed=seed)
    spent, due, trace = 0, 0, []
    while spent < BUDGET * STEPS:
        trial = optimizer.ask()
        end = final(**trial.params) + 0.03 * random.normal()
        if name == "diverging" and trial.params["rate"] > 0.02:
            end = 50.0 + end
        for s in range(1, STEPS + 1):
            reading = end if s == STEPS else curve(**trial.params, end=end, s=s, random=random)
            trial.report(reading, s)
            spent += 1
            if prunes == "pruned" and s < STEPS and trial.should_prune():
                optimizer.prune(trial)
                break
        else:
            optimizer.tell(trial, end)
        if optimizer.n_told and spent >= due:
            trace.append((spent, final(**optimizer.recommend().params)))
            due = spent + STEPS
    return trace, len(optimizer.trials), optimizer.n_pruned


def regret_at(trace: list[tuple[int, float]], steps: float) -> float:
    """The regret of the answer when this many steps were spent."""
    past = [regret for spent, regret in trace if spent <= steps]
    return past[-1] if past else 1.0


def steps_to(trace: list[tuple[int, float]], regret: float) -> float:
    """Steps after which the regret was never more."""
    reached = math.inf
    for spent, now in reversed(trace):
        if now > regret:
            break
        reached = spent
    return reached


def main() -> None:
    command = parser(__doc__)
    command.add_argument("--runs", type=int, default=5)
    command.add_argument("--families", nargs="+", default=list(FAMILIES), choices=list(FAMILIES))
    options = command.parse_args()
    groups = [(name, how) for name in options.families for how in ("whole", "pruned")]
    rows: list[list[Any]] = []
    for (name, how), runs in grouped(run, groups, options.runs, options.jobs).items():
        traces = [trace for trace, _, _ in runs]
        regrets = [[regret_at(t, part * BUDGET * STEPS) for t in traces] for part in (0.25, 0.5, 1)]
        means = [f"{np.mean(r):.4f} ({max(r):.4f})" for r in regrets]
        found = np.median([steps_to(trace, FOUND) for trace in traces])
        made, pruned = (np.mean([entry[i] for entry in runs]) for i in (1, 2))
        shown = "–" if math.isinf(found) else f"{found:,.0f}"
        rows.append([name, how, *means, shown, f"{pruned:.0f} of {made:.0f}"])
    parts = [f"regret at {part * BUDGET * STEPS:,.0f} steps" for part in (0.25, 0.5, 1)]
    print_table(["family", "", *parts, f"steps to {FOUND}", "pruned"], rows)


if __name__ == "__main__":
    main()
