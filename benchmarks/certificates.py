"""What the proven certificate is worth: how it falls, what it costs, and whether it holds.

    python benchmarks/certificates.py falls       on boxes from 10^4 to 10^6 evaluations, as a power
    python benchmarks/certificates.py cost        regret with and without evaluations at the ceiling
    python benchmarks/certificates.py target      d = 2, noise on [−0.1, 0.1], 20,000 evaluations
    python benchmarks/certificates.py holds       200 runs of each family: bounds that failed
    python benchmarks/certificates.py paper       the paper's functions on a grid, T = 10,000
    python benchmarks/certificates.py splits      the same with split="optimal" beside the default
    python benchmarks/certificates.py levels      γ/log n of cells by level, split="optimal"

Functions are the paper's (`RKHSFunction.sample`) for the kernel named, with B their norm. Regret is
a part of uniform sampling's. "Before" are the choices of the code without the split by fineness and
without evaluations at the ceiling, on the same functions with the same noise. `--first 1000` uses
functions and noise of seeds from 1,000 on. `--keep FOLDER` keeps every run in a file of the folder
and makes only those that are not there. `--short` makes all of it a tenth as long.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
from common import grouped, parser, print_table

import partita as pt
from partita.experiments.play import added, steps
from partita.policies import pi_gp_ucb
from partita.problems import RKHSFunction

#: Dimension and kernel of the functions on boxes.
FAMILIES = [(dim, nu) for dim in (1, 2) for nu in (1.5, 2.5)]
LENGTHSCALE = 0.2
#: What `settings` says for the choices of the code before.
BEFORE = (("before", True),)
#: Random points at which the bounds of `predict` are checked.
CHECKED = 500


class Seen(NamedTuple):
    """What a run had come to after `told` values.

    `plain` is the certificate without the dual bounds, `levels` the largest γ/log n of the cells
    of each level that have at least 16 values.
    """

    told: int
    regret: float
    loss: float
    certificate: float
    plain: float
    held: bool
    cells: int
    levels: list[float]


class Options(NamedTuple):
    """What the command line said."""

    short: bool
    runs: int
    jobs: int
    first: int
    keep: Path | None


def run(
    dim: int,
    nu: float,
    half_width: float,
    marks: tuple[int, ...],
    domain: str,
    settings: tuple[tuple[str, object], ...],
    first: int,
    keep: Path | None,
    seed: int,
) -> list[Seen]:
    """A run of π-GP-UCB on a random function, looked at after each of `marks` values."""
    key = (dim, nu, half_width, marks, domain, settings, first + seed)
    if keep is None:
        return made(*key)
    name = json.dumps(key).translate(str.maketrans(", ", "__", '[]"'))
    path = keep / f"{name}.json"
    if not path.exists():
        found = made(*key)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(found))
        part.rename(path)
    return [Seen(*row) for row in json.loads(path.read_text())]


def made(
    dim: int,
    nu: float,
    half_width: float,
    marks: tuple[int, ...],
    domain: str,
    settings: tuple[tuple[str, object], ...],
    seed: int,
) -> list[Seen]:
    """The run itself."""
    warnings.simplefilter("ignore", pt.TheoryWarning)
    kernel = pt.Matern(nu, LENGTHSCALE)
    f = RKHSFunction.sample(dim, kernel, seed=seed)
    place = pt.Box([0.0] * dim, [1.0] * dim) if domain == "box" else pt.Grid(30, dim=dim)
    policy = policy_of(place, f, half_width, marks[-1], seed, dict(settings))
    sample = place.points if domain == "grid" else np.random.default_rng(0).random((20_000, dim))
    values = f(sample)
    best = float(values.max()) if domain == "grid" else f.maximum()
    noises = half_width * np.random.default_rng([seed, 1]).uniform(-1, 1, marks[-1])
    lost, seen, known = 0.0, [], dict[bytes, float]()

    def value(x: np.ndarray) -> float:
        place = x.tobytes()
        if place not in known:
            known[place] = float(f(x[None, :])[0])
        return known[place]

    for told, step in enumerate(steps(policy, value, added(noises), marks[-1]), start=1):
        lost += best - step.value
        if told in marks:
            regret = lost / told / (best - float(values.mean()))
            loss = best - value(policy.recommend().x)
            certificate = policy.certificate()
            bounds = policy.predict(sample[:CHECKED])
            held = loss <= certificate + 1e-9 and certificate <= 2 * f.norm + 1e-9
            held &= bool((bounds.lower <= values[:CHECKED] + 1e-9).all())
            held &= bool((bounds.upper >= values[:CHECKED] - 1e-9).all())
            with without_duals(policy):
                plain = policy.certificate()
            levels = gains(policy)
            seen.append(Seen(told, regret, loss, certificate, plain, held, policy.cells, levels))
    return seen


def policy_of(
    place: pt.Box | pt.Grid,
    f: RKHSFunction,
    half_width: float,
    horizon: int,
    seed: int,
    settings: dict[str, Any],
) -> pt.PiGPUCB:
    """π-GP-UCB with these settings, or with `before` as its choices were."""
    before = settings.pop("before", False)
    if before:
        settings["ceiling_every"] = 0
    with patch.object(pi_gp_ucb, "FINENESS", 0.0 if before else pi_gp_ucb.FINENESS):
        return pt.PiGPUCB(
            place,
            horizon=horizon,
            kernel=f.kernel,
            norm_bound=f.norm,
            noise=pt.Uniform(-half_width, half_width),
            seed=seed,
            **settings,
        )


@contextmanager
def without_duals(policy: pt.PiGPUCB) -> Iterator[None]:
    """Bounds with the regulariser α alone, and one slack a cell."""
    with patch.object(policy._engine._bounds, "_sets", None):
        yield


def gains(policy: pt.PiGPUCB) -> list[float]:
    """The largest γ/log n of the cells with data of each level; 0 for a level without any."""
    highest: dict[int, float] = {}
    for cell in policy._engine.partition.leaves.values():
        if cell.count >= 16:
            ratio = cell.posterior.gain / math.log(cell.count)
            highest[cell.key[0]] = max(highest.get(cell.key[0], 0.0), ratio)
    return [highest.get(level, 0.0) for level in range(max(highest, default=-1) + 1)]


def grouped_runs(groups: Sequence[tuple[Any, ...]], o: Options, number: int | None = None) -> Any:
    """The runs of each group: those that are kept, and the others."""
    every = [(*group, o.first, o.keep) for group in groups]
    return grouped(run, every, o.runs if number is None else number, o.jobs)


def falls(o: Options) -> None:
    """How the certificate falls on boxes, and the regret over that of the code before."""
    scale = 1 if o.short else 10
    marks = tuple(scale * n for n in (1_000, 3_000, 10_000, 30_000, 100_000))
    ways = ((), BEFORE)
    groups = [(*family, 0.1, marks, "box", way) for family in FAMILIES for way in ways]
    made = grouped_runs(groups, o)
    rows = []
    for dim, nu in FAMILIES:
        now, before = (
            [r for g, r in made.items() if g[:2] == (dim, nu) and g[5] == w] for w in ways
        )
        curve = geometric(now[0])
        power = float(np.polyfit(np.log(marks), np.log(curve), 1)[0])
        regret, old = (np.mean([one[-1].regret for one in way[0]]) for way in (now, before))
        held = all(s.held for one in now[0] for s in one)
        rows.append(
            (
                str(dim),
                str(nu),
                *(f"{c:.3f}" for c in curve),
                f"{power:.2f}",
                f"{geometric(before[0])[-1]:.3f}",
                f"{regret:.4f}",
                f"{old:.4f}",
                f"{regret / old:.2f}",
                "yes" if held else "NO",
            )
        )
    head = ("d", "ν", *(f"T = {m:,}" for m in marks), "power", "last, before")
    print_table((*head, "regret", "before", "ratio", "held"), rows)


def geometric(results: Sequence[Sequence[Seen]]) -> np.ndarray:
    """The geometric mean over runs of the certificates at each mark."""
    logs = [[math.log(seen.certificate) for seen in one] for one in results]
    return np.asarray(np.exp(np.mean(logs, axis=0)))


def cost(o: Options) -> None:
    """What evaluations at the ceiling cost and bring."""
    marks = (1_000 if o.short else 10_000,)
    ways = [BEFORE, *((("ceiling_every", every),) for every in (0, 20, 100, 500))]
    groups = [(*family, 0.1, marks, "box", way) for family in FAMILIES for way in ways]
    made = grouped_runs(groups, o)
    rows = [
        (
            str(group[0]),
            str(group[1]),
            str(dict(group[5]).get("ceiling_every", "before")),
            f"{np.mean([one[-1].regret for one in results]):.4f}",
            f"{np.mean([one[-1].certificate for one in results]):.3f}",
        )
        for group, results in made.items()
    ]
    print_table(("d", "ν", "ceiling_every", "regret", "certificate"), rows)


def target(o: Options) -> None:
    """The certificate in two dimensions with little noise."""
    marks = (2_000 if o.short else 20_000,)
    ways = ((), BEFORE)
    groups = [(2, nu, 0.1, marks, "box", way) for nu in (1.5, 2.5) for way in ways]
    rows = [
        (
            str(nu),
            "before" if way else "now",
            f"{np.median([o[-1].certificate for o in results]):.3f}",
            f"{max(o[-1].certificate for o in results):.3f}",
            f"{max(o[-1].loss for o in results):.4f}",
            f"{np.mean([o[-1].regret for o in results]):.4f}",
        )
        for (_, nu, _, _, _, way, *_), results in grouped_runs(groups, o).items()
    ]
    print_table(("ν", "", "certificate, median", "largest", "largest loss", "regret"), rows)


def holds(o: Options) -> None:
    """Runs in which a bound failed, of 200 a family; delta allows a tenth."""
    marks, number = (30, 100, 300, 1_000), 20 if o.short else 200
    groups = [(*family, 0.3, marks, "box", ()) for family in FAMILIES]
    rows = []
    for (dim, nu, *_), results in grouped_runs(groups, o, number).items():
        failed = sum(not all(s.held for s in one) for one in results)
        rows.append((str(dim), str(nu), str(len(results)), str(failed)))
    print_table(("d", "ν", "runs", "failed"), rows)


def paper(o: Options) -> None:
    """The paper's functions, on its grid and with its noise; what the dual bounds bring."""
    marks = (1_000 if o.short else 10_000,)
    groups = [(dim, 1.5, 1.0, marks, "grid", ()) for dim in (1, 2, 3)]
    rows = [
        (
            str(dim),
            str(len(results)),
            f"{np.mean([one[-1].regret for one in results]):.3f}",
            f"{np.mean([one[-1].plain for one in results]):.3f}",
            f"{np.mean([one[-1].certificate for one in results]):.3f}",
            f"{np.mean([one[-1].certificate / one[-1].plain for one in results]):.2f}",
        )
        for (dim, *_), results in grouped_runs(groups, o).items()
    ]
    print_table(("d", "runs", "regret", "certificate, λ = α", "five λ", "ratio"), rows)


def splits(o: Options) -> None:
    """The paper's functions with the default split and with the optimal one."""
    marks = (1_000 if o.short else 10_000,)
    ways = ((), (("split", "optimal"),))
    groups = [
        (dim, nu, 1.0, marks, "grid", way) for dim in (1, 2, 3) for nu in (1.5, 2.5) for way in ways
    ]
    rows = [
        (
            str(dim),
            str(nu),
            "optimal" if way else "information",
            f"{np.mean([one[-1].regret for one in results]):.4f}",
            f"{np.mean([one[-1].certificate for one in results]):.3f}",
            f"{np.mean([one[-1].cells for one in results]):.0f}",
            str(sum(not one[-1].held for one in results)),
        )
        for (dim, nu, _, _, _, way, *_), results in grouped_runs(groups, o).items()
    ]
    print_table(("d", "ν", "split", "regret", "certificate", "cells", "failed"), rows)


def levels(o: Options) -> None:
    """γ/log n by level with the optimal split: lemma 3 says that it is bounded."""
    marks = (10_000 if o.short else 100_000,)
    way = (("split", "optimal"),)
    groups = [(*family, 0.1, marks, "box", way) for family in [*FAMILIES, (3, 1.5)]]
    rows = []
    for (dim, nu, *_), results in grouped_runs(groups, o).items():
        deepest = max(len(one[-1].levels) for one in results)
        padded = [one[-1].levels + [0.0] * (deepest - len(one[-1].levels)) for one in results]
        highest = np.max(padded, axis=0)
        rows.append((str(dim), str(nu), " ".join(f"{r:.1f}" if r else "–" for r in highest)))
    print_table(("d", "ν", "largest γ/log n, levels 0, 1, …"), rows)


def main() -> None:
    options = parser(__doc__)
    ways = {
        "falls": falls,
        "cost": cost,
        "target": target,
        "holds": holds,
        "paper": paper,
        "splits": splits,
        "levels": levels,
    }
    add = options.add_argument
    add("what", choices=ways)
    add("--runs", type=int, default=3)
    add("--first", type=int, default=0, help="the first seed")
    add("--keep", type=Path, help="a folder for runs that were made")
    add("--short", action="store_true")
    chosen = options.parse_args()
    if chosen.keep is not None:
        chosen.keep.mkdir(parents=True, exist_ok=True)
    given = Options(chosen.short, chosen.runs, chosen.jobs, chosen.first, chosen.keep)
    ways[chosen.what](given)


if __name__ == "__main__":
    main()
