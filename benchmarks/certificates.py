"""What the proven certificate is worth: how it falls, what it costs, and whether it holds.

    python benchmarks/certificates.py falls       on boxes from 10^4 to 10^6 evaluations, as a power
    python benchmarks/certificates.py cost        regret with and without evaluations at the ceiling
    python benchmarks/certificates.py target      d = 2, noise on [−0.1, 0.1], 20,000 evaluations
    python benchmarks/certificates.py holds       200 runs of each family: bounds that failed
    python benchmarks/certificates.py paper       the paper's functions on a grid, T = 10,000

Functions are the paper's (`RKHSFunction.sample`) for the kernel named, with B their norm. Regret is
a part of uniform sampling's. `--short` makes all of it a tenth as long.
"""

from __future__ import annotations

import math
import warnings
from typing import NamedTuple

import numpy as np
from common import grouped, parser, print_table

import partita as pt
from partita.experiments.play import added, steps
from partita.problems import RKHSFunction

#: Dimension and kernel of the functions on boxes.
FAMILIES = [(dim, nu) for dim in (1, 2) for nu in (1.5, 2.5)]
LENGTHSCALE = 0.2


class Seen(NamedTuple):
    """What a run had come to after `told` values."""

    told: int
    regret: float
    loss: float
    certificate: float
    held: bool
    cells: int


def run(
    dim: int,
    nu: float,
    half_width: float,
    marks: tuple[int, ...],
    domain: str,
    settings: tuple[tuple[str, object], ...],
    seed: int,
) -> list[Seen]:
    """A run of π-GP-UCB on a random function, looked at after each of `marks` values."""
    kernel = pt.Matern(nu, LENGTHSCALE)
    f = RKHSFunction.sample(dim, kernel, seed=seed)
    place = pt.Box([0.0] * dim, [1.0] * dim) if domain == "box" else pt.Grid(30, dim=dim)
    noise = pt.Uniform(-half_width, half_width)
    policy = pt.PiGPUCB(
        place,
        horizon=marks[-1],
        kernel=kernel,
        norm_bound=f.norm,
        noise=noise,
        seed=seed,
        **dict(settings),
    )
    sample = place.points if domain == "grid" else np.random.default_rng(0).random((20_000, dim))
    values = f(sample)
    best = float(values.max()) if domain == "grid" else f.maximum()
    noises = half_width * np.random.default_rng([seed, 1]).uniform(-1, 1, marks[-1])
    lost, seen = 0.0, []
    value = lambda x: float(f(x[None, :])[0])  # noqa: E731
    for told, step in enumerate(steps(policy, value, added(noises), marks[-1]), start=1):
        lost += best - step.value
        if told in marks:
            answer, certificate = policy.recommend(), policy.certificate()
            loss = best - value(answer.x)
            bounds = policy.predict(sample[:500])
            held = loss <= certificate + 1e-9 and certificate <= 2 * f.norm
            held &= bool((bounds.lower <= values[:500] + 1e-9).all())
            held &= bool((bounds.upper >= values[:500] - 1e-9).all())
            regret = lost / told / (best - float(values.mean()))
            seen.append(Seen(told, regret, loss, certificate, held, policy.cells))
    return seen


def falls(short: bool, runs: int, jobs: int) -> None:
    """How the certificate falls on boxes."""
    scale = 1 if short else 10
    marks = tuple(scale * n for n in (1_000, 3_000, 10_000, 30_000, 100_000))
    made = grouped(run, [(*family, 0.1, marks, "box", ()) for family in FAMILIES], runs, jobs)
    rows = []
    for (dim, nu, *_), results in made.items():
        curve = np.exp(np.mean([[math.log(s.certificate) for s in one] for one in results], axis=0))
        power = float(np.polyfit(np.log(marks), np.log(curve), 1)[0])
        regret = np.mean([one[-1].regret for one in results])
        held = all(s.held for one in results for s in one)
        rows.append(
            (
                str(dim),
                str(nu),
                *(f"{c:.3f}" for c in curve),
                f"{power:.2f}",
                f"{regret:.4f}",
                "yes" if held else "NO",
            )
        )
    print_table(("d", "ν", *(f"T = {m:,}" for m in marks), "power", "regret", "held"), rows)


def cost(short: bool, runs: int, jobs: int) -> None:
    """What evaluations at the ceiling cost and bring."""
    marks = (1_000 if short else 10_000,)
    ways = [(("ceiling_every", every),) for every in (0, 20, 100)]
    groups = [(*family, 0.1, marks, "box", way) for family in FAMILIES for way in ways]
    made = grouped(run, groups, runs, jobs)
    rows = [
        (
            str(group[0]),
            str(group[1]),
            str(dict(group[5])["ceiling_every"]),
            f"{np.mean([one[-1].regret for one in results]):.4f}",
            f"{np.mean([one[-1].certificate for one in results]):.3f}",
        )
        for group, results in made.items()
    ]
    print_table(("d", "ν", "ceiling_every", "regret", "certificate"), rows)


def target(short: bool, runs: int, jobs: int) -> None:
    """The certificate in two dimensions with little noise."""
    marks = (2_000 if short else 20_000,)
    made = grouped(run, [(2, nu, 0.1, marks, "box", ()) for nu in (1.5, 2.5)], runs, jobs)
    rows = [
        (
            str(nu),
            f"{max(o[-1].certificate for o in results):.3f}",
            f"{max(o[-1].loss for o in results):.4f}",
        )
        for (_, nu, *_), results in made.items()
    ]
    print_table(("ν", "largest certificate", "largest loss"), rows)


def holds(short: bool, runs: int, jobs: int) -> None:
    """Runs in which a bound failed, of 200 a family; delta allows a tenth."""
    marks, number = (30, 100, 300, 1_000), 20 if short else 200
    made = grouped(run, [(*family, 0.3, marks, "box", ()) for family in FAMILIES], number, jobs)
    rows = []
    for (dim, nu, *_), results in made.items():
        failed = sum(not all(s.held for s in one) for one in results)
        rows.append((str(dim), str(nu), str(len(results)), str(failed)))
    print_table(("d", "ν", "runs", "failed"), rows)


def paper(short: bool, runs: int, jobs: int) -> None:
    """The paper's functions, on its grid and with its noise."""
    marks = (1_000 if short else 10_000,)
    made = grouped(run, [(dim, 1.5, 1.0, marks, "grid", ()) for dim in (1, 2, 3)], runs, jobs)
    rows = [
        (
            str(dim),
            f"{np.mean([one[-1].regret for one in results]):.3f}",
            f"{np.mean([one[-1].certificate for one in results]):.3f}",
        )
        for (dim, *_), results in made.items()
    ]
    print_table(("d", "regret", "certificate"), rows)


def main() -> None:
    options = parser(__doc__)
    options.add_argument("what", choices=("falls", "cost", "target", "holds", "paper"))
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--short", action="store_true")
    chosen = options.parse_args()
    warnings.simplefilter("ignore", pt.TheoryWarning)
    {"falls": falls, "cost": cost, "target": target, "holds": holds, "paper": paper}[chosen.what](
        chosen.short, chosen.runs, chosen.jobs
    )


if __name__ == "__main__":
    main()
