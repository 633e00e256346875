"""How often evaluations fail, and how good the answer is, where failures depend on place.

    python benchmarks/constraints.py --runs 5                    # failing places
    python benchmarks/constraints.py --runs 5 --crashes 0.1      # and failures by chance
    python benchmarks/constraints.py --runs 5 --measured         # constraints that are measured

Each run makes 100 evaluations that give a value (`--evals`), one after the other. Optuna's TPE is
told of failures by `constraints_func`. A table shows the failures (with `--measured`, the values
that break the constraint) for 100 values, and the regret of the answer: how much worse it is than
the best feasible point. Of TPE's trials the answer is the best that is feasible. With `--measured`
there is a row for Partita as Optuna's sampler, too.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import partita as pt

Point = np.ndarray


class Problem(NamedTuple):
    """A function to maximise over the unit cube, where g is at most 0."""

    dim: int
    f: Callable[[Point], float]
    g: Callable[[Point], float]
    best: float


PROBLEMS = {
    "hyperbola": Problem(2, lambda x: x[0] + x[1], lambda x: x[0] * x[1] - 0.3, 1.3),
    "half line": Problem(1, lambda x: x[0], lambda x: x[0] - 0.62, 0.62),
    "disc": Problem(
        2,
        lambda x: -((x[0] - 0.65) ** 2) - (x[1] - 0.55) ** 2,
        lambda x: 0.09 - (x[0] - 0.6) ** 2 - (x[1] - 0.6) ** 2,
        -((0.3 - math.hypot(0.05, 0.05)) ** 2),
    ),
    "stripe": Problem(
        2,
        lambda x: -((x[0] - 0.52) ** 2) - (x[1] - 0.3) ** 2,
        lambda x: 0.15 - abs(x[0] - 0.5),
        -(0.13**2),
    ),
    "ball": Problem(
        3, lambda x: x.sum(), lambda x: ((x - 0.2) ** 2).sum() - 0.3, 0.6 + math.sqrt(0.9)
    ),
    "corner": Problem(5, lambda x: -((x - 0.8) ** 2).sum(), lambda x: x.sum() - 3.0, -0.2),
    "none": Problem(4, lambda x: -((x - 0.3) ** 2).sum(), lambda x: -1.0, 0.0),
}


class Run(NamedTuple):
    """What a run came to."""

    broken: int
    values: int
    regret: float
    seconds: float


class Failed(RuntimeError):
    """An evaluation that gives no value."""


def evaluated(problem: Problem, x: Point, crashes: float, random: Any, measured: bool) -> float:
    """The value at a point; `Failed` where there is none."""
    if random.random() < crashes or (not measured and problem.g(x) > 0):
        raise Failed
    return float(problem.f(x))


def with_partita(problem: Problem, n: int, crashes: float, measured: bool, seed: int) -> Run:
    """A run of `maximize`."""
    random, start = np.random.default_rng(1000 + seed), time.perf_counter()

    def f(x: Point) -> Any:
        value = evaluated(problem, x, crashes, random, measured)
        return {"value": value, "g": problem.g(x)} if measured else value

    found = pt.maximize(
        f,
        [(0.0, 1.0)] * problem.dim,
        n_evals=n,
        seed=seed,
        progress=False,
        **({"constraints": ["g <= 0"]} if measured else {}),
    )
    broken = int((found.history.trials.measured[:, 0] > 0).sum()) if measured else found.nfail
    regret = problem.best - problem.f(found.x) if problem.g(found.x) <= 1e-9 else math.inf
    return Run(broken, found.nfev, regret, time.perf_counter() - start)


def with_optuna(problem: Problem, n: int, crashes: float, measured: bool, seed: int) -> Run:
    """A run of TPE."""
    import optuna

    return in_optuna(optuna.samplers.TPESampler, problem, n, crashes, measured, seed)


def with_sampler(problem: Problem, n: int, crashes: float, measured: bool, seed: int) -> Run:
    """A run of Partita as Optuna's sampler."""
    from partita.integrations.optuna import PartitaSampler

    return in_optuna(PartitaSampler, problem, n, crashes, measured, seed)


def in_optuna(
    make: Any, problem: Problem, n: int, crashes: float, measured: bool, seed: int
) -> Run:
    """A run of one of Optuna's samplers."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    random, start = np.random.default_rng(1000 + seed), time.perf_counter()
    sampler = make(seed=seed, constraints_func=lambda trial: trial.user_attrs["constraint"])
    study = optuna.create_study(direction="maximize", sampler=sampler)
    values = broken = 0
    best = -math.inf
    while values < n and broken < 10 * n:
        trial = study.ask()
        x = np.array([trial.suggest_float(f"x{i}", 0.0, 1.0) for i in range(problem.dim)])
        try:
            value = evaluated(problem, x, crashes, random, measured)
        except Failed:  # a trial that failed would tell the sampler nothing
            broken += 1
            trial.set_user_attr("constraint", (1.0,))
            study.tell(trial, -1e3)
            continue
        values += 1
        g = problem.g(x)
        broken += measured and g > 0
        trial.set_user_attr("constraint", (g if measured else -1.0,))
        study.tell(trial, value)
        best = max(best, value) if g <= 0 else best
    if hasattr(sampler, "recommend"):
        answer = sampler.recommend(study).params
        x = np.array([answer[f"x{i}"] for i in range(problem.dim)])
        best = problem.f(x) if problem.g(x) <= 1e-9 else -math.inf
    return Run(broken, values, problem.best - best, time.perf_counter() - start)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--evals", type=int, default=100)
    parser.add_argument("--crashes", type=float, default=0.0, help="chance of a failure anywhere")
    parser.add_argument("--measured", action="store_true", help="the constraint is a number")
    parser.add_argument("--only", default="", help="problems whose name has this in it")
    parser.add_argument("--without-optuna", action="store_true")
    options = parser.parse_args()
    ways: dict[str, Callable[..., Run]] = {"Partita": with_partita, "Optuna TPE": with_optuna}
    if options.measured:
        ways["sampler"] = with_sampler
    if options.without_optuna:
        ways = {"Partita": with_partita}
    print("problem        by           broken / 100    (least, most)   regret: mean, worst   s/run")
    for name, problem in PROBLEMS.items():
        if options.only not in name:
            continue
        for way, run in ways.items():
            args = (problem, options.evals, options.crashes, options.measured)
            runs = [run(*args, seed) for seed in range(options.runs)]
            rate = [100.0 * r.broken / max(r.values, 1) for r in runs]
            regret = [r.regret for r in runs]
            print(
                f"{f'{name} ({problem.dim})':<14} {way:<12} {np.mean(rate):12.1f}    "
                f"({min(rate):5.1f}, {max(rate):5.1f})   {np.mean(regret):9.4f} "
                f"{max(regret):9.4f}   {np.mean([r.seconds for r in runs]):6.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
