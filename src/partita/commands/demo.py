"""`partita demo`: π-GP-UCB on one of the paper's synthetic functions."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from .shared import guarded

if TYPE_CHECKING:
    from partita import PiGPUCB
    from partita._types import Recommendation
    from partita.problems import RKHSFunction

#: The first evaluations, during which compiled code is loaded, are not timed.
WARM_UP = 100


def add_parser(commands: Any) -> None:
    """Add the command to `commands`, which `add_subparsers` returned."""
    parser = commands.add_parser(
        "demo", help="run π-GP-UCB on one of the paper's synthetic functions"
    )
    parser.add_argument("--dim", type=int, default=2, choices=(1, 2, 3), help="dimensions (2)")
    parser.add_argument("--horizon", type=int, default=10_000, help="evaluations (10000)")
    parser.add_argument("--seed", type=int, default=1, help="function, noise and ties (1)")
    parser.set_defaults(run=run)


@guarded
def run(options: argparse.Namespace) -> int:
    """Run the demo, and print its report."""
    sys.stdout.write(report(options.dim, options.horizon, options.seed) + "\n")
    return 0


class Outcome(NamedTuple):
    """The result of one run, and its cost."""

    best: Recommendation
    certificate: float
    regret: float  # as a fraction of the regret of uniform sampling
    microseconds: float  # median of one ask and tell
    cells: int


def play(policy: PiGPUCB, f: RKHSFunction, horizon: int, seed: int) -> Outcome:
    """Run a policy on f over its grid, with noise uniform on [−1, 1]."""
    import numpy as np

    points = f(policy.domain.points)  # type: ignore[union-attr]
    noise = np.random.default_rng([seed, 1]).uniform(-1, 1, horizon)
    lost = np.empty(horizon)
    seconds = np.empty(horizon)
    for t in range(horizon):
        begin = time.perf_counter()
        x = policy.ask()
        asked = time.perf_counter()
        value = float(f(x[None, :])[0])
        resumed = time.perf_counter()
        policy.tell(x, value + noise[t])
        seconds[t] = time.perf_counter() - resumed + asked - begin
        lost[t] = points.max() - value
    return Outcome(
        policy.recommend(),
        policy.certificate(),
        float(lost.mean() / (points.max() - points.mean())),
        1e6 * float(np.median(seconds[min(WARM_UP, horizon // 2) :])),
        len(policy.cover),
    )


def report(dim: int = 2, horizon: int = 10_000, seed: int = 1) -> str:
    """Run the paper's preset and Partita's default, and return a table of the results."""
    from partita import Grid, Matern, PiGPUCB, SubGaussian, Uniform
    from partita.problems import RKHSFunction

    kernel = Matern(nu=1.5, lengthscale=0.2)
    f = RKHSFunction.sample(dim, kernel, seed=seed)
    domain = Grid(30, dim=dim)
    settings: dict[str, Any] = {
        "horizon": horizon,
        "kernel": kernel,
        "norm_bound": f.norm,
        "seed": seed,
    }
    policies = {
        "the paper's preset": PiGPUCB.paper(domain, noise=SubGaussian(1.0), alpha=1.0, **settings),
        "Partita's default": PiGPUCB(domain, noise=Uniform(-1, 1), **settings),
    }
    outcomes = {name: play(policy, f, horizon, seed) for name, policy in policies.items()}
    values = f(domain.points)
    rows: dict[str, Callable[[Outcome], str]] = {
        "recommended x": lambda o: "(" + ", ".join(f"{c:.3f}" for c in o.best.x) + ")",
        "f there, by its bounds": lambda o: f"{o.best.lower:.2f} to {o.best.upper:.2f}",
        "f there, true value": lambda o: f"{float(f(o.best.x[None, :])[0]):.3f}",
        "certificate": lambda o: f"at most {o.certificate:.2f} below the maximum",
        "regret": lambda o: f"{o.regret:.2f} of uniform's",
        "cells at the end": lambda o: f"{o.cells}",
        "one ask and tell": lambda o: f"{o.microseconds:.0f} µs",
    }
    side = " × ".join(["30"] * dim)
    lines = [
        "π-GP-UCB (Janz, Burt & González 2020) on one of the paper's synthetic functions:",
        f"{len(f.weights)} Matérn-3/2 bumps on a {side} grid, norm {f.norm:.2f}, "
        f"maximum {values.max():.3f}, mean {values.mean():.3f};",
        f"{horizon:,} evaluations with noise uniform on [−1, 1], seed {seed}.",
        "",
        " " * 24 + "".join(f"{name:<24}" for name in outcomes).rstrip(),
    ]
    for name, show in rows.items():
        cells = "".join(f"{show(outcome):<24}" for outcome in outcomes.values())
        lines.append(f"{name:<24}{cells}".rstrip())
    return "\n".join(lines)
