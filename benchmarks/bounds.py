"""How often the calibrated policy's bounds hold: of its answer, of its certificate, anywhere.

    python benchmarks/bounds.py                      20 runs of 1,000 evaluations a problem
    python benchmarks/bounds.py --runs 5 --problems branin rkhs-2 --jobs 2
    python benchmarks/bounds.py --noise none         the same functions without noise
    python benchmarks/bounds.py --problems bbob      BBOB's noisy functions in 2 and 5 dimensions
    python benchmarks/bounds.py --problems unseen    twelve functions that nothing was designed on,
                                                     six of them spiky
    python benchmarks/bounds.py --problems later     ten made after the certificate, to check it
    python benchmarks/bounds.py --tolerance 0.2      certificates of runs that end at the first
                                                     within so much of uniform sampling's regret

With delta = 0.1 each bound is meant to hold nine times in ten. *answer*: f at the recommended point
lies between its bounds. *certificate*: the recommended point is no farther below the optimum than
it says. *anywhere*: f at random points of the domain lies between the bounds of `predict`.

The last table has the certificates by dimension, all moments together: how many were finite, and
how many of those held. An infinite one says nothing, and is counted in neither. What the library
says of such certificates (`partita.policies.held`) is this table of

    python benchmarks/bounds.py --problems measured --runs 1

BBOB's noise is not centred: there the bounds are compared with E[y] instead of f, and where the
noise is Cauchy's, which has no mean, with the median of y. A run is an instance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from common import at, grouped, parser, played, print_table
from versus import bbob, later, problems, unseen

import partita as pt
from partita.experiments.play import Step
from partita.experiments.specs import Problem

CHECKPOINTS = (100, 300, 1_000)
#: Random points at which the bounds of `predict` are checked.
ANYWHERE = 200
#: What --noise calls values without any.
NONE = "none"
#: What --problems calls BBOB's noisy functions, and their dimensions.
BBOB = "bbob"
BBOB_DIMS = (2, 5)
#: What --problems calls the twelve functions of `unseen`, and these with all of `problems.NAMES`.
UNSEEN, MEASURED = "unseen", "measured"
#: And the ten that only check what was built.
LATER = "later"
#: With a tolerance, certificates are looked at once in this number of evaluations.
LOOK_EVERY = 5


class Game(NamedTuple):
    """A policy, its steps on a problem, and random points of it, (n, d)."""

    policy: pt.CalibratedUCB
    problem: Problem
    steps: Iterable[tuple[int, Step]]
    points: np.ndarray


def begun(name: str, noise: str, seed: int, evaluations: int) -> Game:
    problem = problems.build(name, "tenth" if noise == NONE else noise, seed)
    random = np.random.default_rng([seed, 17])
    points = random.random((ANYWHERE, problem.dim))
    policy = pt.CalibratedUCB(problem.domain, seed=seed)
    steps = played(policy, problem, random, evaluations, 0.0 if noise == NONE else None)
    return Game(policy, problem, enumerate(steps, start=1), points)


class Check(NamedTuple):
    """What held at one moment of one run."""

    told: int
    answer: bool
    certificate: bool
    anywhere: float
    wider: float
    regret: float
    certified: float


def run(name: str, noise: str, seed: int, evaluations: int, first: int = 0) -> list[Check]:
    policy, problem, steps, points = begun(name, noise, first + seed, evaluations)
    values = problems.expected(problem, problem.function(points))
    checks = []
    for t, _ in steps:
        if t in CHECKPOINTS:
            answer, certificate = policy.recommend(), policy.certificate()
            f = at(problem, answer.x)
            mean = float(problems.expected(problem, np.array([f]))[0])
            everywhere, there = policy.predict(points), policy.predict(answer.x[None, :])
            held = (everywhere.lower <= values) & (values <= everywhere.upper)
            checks.append(
                Check(
                    t,
                    answer.lower <= mean <= answer.upper,
                    problem.best - f <= certificate,
                    float(held.mean()),
                    (answer.upper - answer.lower) / float(there.upper[0] - there.lower[0]),
                    (problem.best - f) / problem.uniform_regret,
                    certificate / problem.uniform_regret,
                )
            )
    return checks


class Ended(NamedTuple):
    """A run that ended at the first certificate within a tolerance."""

    told: int
    reached: bool
    held: bool


def run_until(
    name: str, noise: str, seed: int, evaluations: int, tolerance: float, first: int = 0
) -> Ended:
    policy, problem, steps, _ = begun(name, noise, first + seed, evaluations)
    t, reached = 0, False
    for t, _ in steps:
        if t % LOOK_EVERY == 0:
            reached = policy.certificate() <= tolerance * problem.uniform_regret
            if reached:
                break
    lost = problem.best - at(problem, policy.recommend().x)
    return Ended(t, reached, lost <= policy.certificate())


def print_groups(
    head: Sequence[str],
    results: Mapping[Any, Sequence[Any]],
    cells: Callable[[Sequence[Any]], Sequence[str]],
) -> None:
    """A row a problem and noise, and one of all."""
    rows = [[label(*names), *cells(group)] for names, group in results.items()]
    everything = [result for group in results.values() for result in group]
    print_table(["", *head], [*rows, ["all", *cells(everything)]])


def label(name: str, noise: str) -> str:
    """What a row is called."""
    title = problems.TITLES[name]
    return f"{title}, d = {bbob.DIMS[name]}" if noise == bbob.OWN else f"{title}, {noise}"


def cells_of_ends(ends: Sequence[Ended]) -> list[str]:
    done = [end for end in ends if end.reached]
    held = f"{100 * np.mean([end.held for end in done]):.0f} %" if done else "–"
    steps = f"{np.median([end.told for end in done]):,.0f}" if done else "–"
    return [f"{len(done)} of {len(ends)}", steps, held]


def report(
    runs: Mapping[Any, Sequence[Sequence[Check]]],
    number: int,
    heads: Sequence[str] = ("answer", "certificate", "anywhere"),
) -> None:
    results = {group: [check for run in made for check in run] for group, made in runs.items()}
    checks = [check for group in results.values() for check in group]
    times = sorted({check.told for check in checks})
    columns = [(head, t) for head in heads for t in times]

    def cells(group: Sequence[Check]) -> list[str]:
        parts = [[float(getattr(c, head)) for c in group if c.told == t] for head, t in columns]
        return [f"{100 * np.mean(held):.0f} %" for held in parts]

    print_groups([f"{head}, {t:,}" for head, t in columns], results, cells)
    ratio = [c.certified / max(c.regret, 1e-3) for c in checks if c.told == max(CHECKPOINTS)]
    print(f"\n{number} runs each; certificate over regret, median: {np.median(ratio):.1f}")
    for t in times:
        lost = np.mean([check.regret for check in checks if check.told == t])
        wider = [check.wider for check in checks if check.told == t]
        print(
            f"bounds of the answer over the model's alone after {t:,}: "
            f"mean {np.mean(wider):.2f}, median {np.median(wider):.2f}"
        )
        print(f"regret of the answer after {t:,}, a part of uniform sampling's: {lost:.4f}")
    if "certificate" in heads:
        print_by_dimension(results)


def print_by_dimension(results: Mapping[Any, Sequence[Check]]) -> None:
    """How many certificates were finite, and how many of those held, by dimension."""
    ordinary: dict[int, list[Check]] = {}
    spiky: dict[int, list[Check]] = {}
    for (name, _), group in results.items():
        part = spiky if name in unseen.SPIKY else ordinary
        part.setdefault(problems.EVERY[name][0], []).extend(group)

    def cells(group: Sequence[Check]) -> list[str]:
        finite = [check for check in group if np.isfinite(check.certified)]
        held = sum(check.certificate for check in finite)
        share = f"{held / len(finite):.0%}" if finite else "–"
        return [f"{len(finite)} of {len(group)}", f"{held} of {len(finite)}", share]

    head = ["dimensions", "finite", "held", "share", "spiky: finite", "held", "share"]
    parts = ordinary, spiky
    dims = sorted({*ordinary, *spiky})
    rows = [[str(dim), *(text for p in parts for text in cells(p.get(dim, [])))] for dim in dims]
    print()
    print_table(head, rows)


def main() -> None:
    command = parser(__doc__)
    sets = {
        BBOB: [bbob.name(number, dim) for dim in BBOB_DIMS for number in bbob.FUNCTIONS],
        UNSEEN: list(unseen.DIMS),
        LATER: list(later.DIMS),
        MEASURED: [*problems.NAMES, *unseen.DIMS],
    }
    add = command.add_argument
    add("--runs", type=int, default=20, help="seeds a problem")
    add("--first", type=int, default=0, help="the first seed")
    add(
        "--problems",
        nargs="+",
        default=list(problems.NAMES),
        choices=[*problems.EVERY, *sets],
        metavar="NAME",
    )
    add("--noise", nargs="+", choices=(*problems.NOISES, NONE), default=list(problems.NOISES))
    add("--evaluations", type=int, default=max(CHECKPOINTS))
    add("--tolerance", type=float, help="end at the first certificate within it")
    options = command.parse_args()
    chosen = [name for given in options.problems for name in sets.get(given, [given])]
    groups = [(name, noise) for noise in options.noise for name in chosen if name not in bbob.DIMS]
    skewed = [(name, bbob.OWN) for name in chosen if name in bbob.DIMS]
    if options.tolerance is None:
        play = partial(run, evaluations=options.evaluations, first=options.first)
        make = partial(grouped, play, runs=options.runs, jobs=options.jobs)
        if groups:
            report(make(groups), options.runs)
        for cauchy in (False, True):
            part = [g for g in skewed if (bbob.NUMBERS[g[0]] in bbob.CAUCHY) == cauchy]
            if part:
                print("\nAgainst the median of y:\n" if cauchy else "\nAgainst E[y]:\n")
                report(make(part), options.runs, ("answer", "anywhere"))
        return
    if skewed:
        command.error("--tolerance is for functions whose noise is centred, not for BBOB's")
    play = partial(
        run_until,
        evaluations=options.evaluations,
        tolerance=options.tolerance,
        first=options.first,
    )
    head = ["ended within", "evaluations, median", "certificate held"]
    print_groups(head, grouped(play, groups, options.runs, options.jobs), cells_of_ends)


if __name__ == "__main__":
    main()
