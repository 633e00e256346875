"""What the benchmarks of single questions share: options, runs side by side, regrets, tables."""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from versus.bbob import NoisyFunction

import partita as pt
from partita.experiments.play import Step, steps
from partita.experiments.specs import Problem

R = TypeVar("R")


def parser(doc: str) -> argparse.ArgumentParser:
    """A parser whose help is the script's text, with an option for runs made at once."""
    made = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    made.add_argument("--jobs", type=int, default=1)
    return made


def grouped(
    run: Callable[..., R], groups: Iterable[Sequence[Hashable]], runs: int, jobs: int
) -> dict[tuple[Hashable, ...], list[R]]:
    """`run(*group, seed)` of every group and of seeds 0 to runs − 1, by group."""
    from joblib import Parallel, delayed

    tasks = [(tuple(group), seed) for group in groups for seed in range(runs)]
    made = Parallel(jobs)(delayed(run)(*group, seed) for group, seed in tasks)
    results: dict[tuple[Hashable, ...], list[R]] = defaultdict(list)
    for (group, _), result in zip(tasks, made, strict=True):
        results[group].append(result)
    return results


def played(
    policy: pt.Policy,
    problem: Problem,
    random: np.random.Generator,
    count: int,
    half_width: float | None = None,
) -> Iterable[Step]:
    """Steps of a policy on a problem, with its noise; uniform of another width if it is given."""
    width = problem.half_width if half_width is None else half_width
    if isinstance(problem, NoisyFunction):
        noisy = problem.noise(random)
    else:
        noisy = lambda f: f + width * random.uniform(-1, 1)  # noqa: E731
    return steps(policy, lambda x: at(problem, x), noisy, count)


def at(problem: Problem, x: np.ndarray) -> float:
    """f at one point, (d,), without noise."""
    return float(problem.function(x[None, :])[0])


class Regret(NamedTuple):
    """Cumulative regret and regret of the answer, as parts of uniform sampling's."""

    cumulative: float
    answer: float


def regrets(
    policy: pt.CalibratedUCB,
    problem: Problem,
    random: np.random.Generator,
    count: int,
    checkpoints: Collection[int],
) -> dict[int, Regret]:
    """What a policy lost, by evaluations made."""
    lost, by_step, scale = 0.0, {}, problem.uniform_regret
    for t, step in enumerate(played(policy, problem, random, count), start=1):
        lost += problem.best - step.value
        if t in checkpoints:
            answer = problem.best - at(problem, policy.recommend().x)
            by_step[t] = Regret(lost / t / scale, answer / scale)
    return by_step


def print_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table in Markdown."""
    print("| " + " | ".join(head) + " |")
    print("|" + " --- |" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")
