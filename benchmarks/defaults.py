"""How the defaults of PiGPUCB were chosen: regret on the paper's functions as each is varied.

    python benchmarks/defaults.py alpha            the factor of (L/B)², for several noises
    python benchmarks/defaults.py split            the information gain at which cells split
    python benchmarks/defaults.py cells            cells a side of the first cover
    python benchmarks/defaults.py box              lattice points a side, and the slack in the index

Regret is a fraction of what uniform sampling loses, mean over the seeds ± its standard error.
"off" is what the recommendation loses in the end, "cert." its proven bound. `--quick` runs a tenth
of the horizon.
"""

from __future__ import annotations

import argparse
from unittest.mock import patch

import numpy as np

import partita as pt
from partita.experiments.play import added, steps
from partita.partition import lattice
from partita.policies import pi_gp_ucb
from partita.problems import RKHSFunction

KERNEL = pt.Matern(nu=1.5, lengthscale=0.2)
PAPER_NOISE = 1 / np.sqrt(3)


def play(domain, f, sub_gaussian, horizon, seed, **settings):
    """Regret fraction, loss of the recommendation, certificate, microseconds a step."""
    policy = pt.PiGPUCB(
        domain,
        horizon=horizon,
        kernel=KERNEL,
        norm_bound=f.norm,
        noise=pt.SubGaussian(sub_gaussian),
        seed=seed,
        **settings,
    )
    rng = np.random.default_rng(seed)
    noise = rng.uniform(-1, 1, horizon) * sub_gaussian * np.sqrt(3)
    sample = domain.points if domain.finite else rng.random((50_000, domain.dim))
    values = f(sample)
    table = dict(zip(map(bytes, sample), values, strict=True)) if domain.finite else None
    best = values.max()
    lost = busy = 0.0
    value = (lambda x: table[x.tobytes()]) if table else (lambda x: f(x[None, :])[0])
    for step in steps(policy, value, added(noise), horizon):
        lost += best - step.value
        busy += step.seconds
    off = best - f(policy.recommend().x[None, :])[0]
    return lost / horizon / (best - values.mean()), off, policy.certificate(), 1e6 * busy / horizon


def row(label, make_domain, dim, sub_gaussian, horizon, seeds, **settings):
    runs = []
    for seed in range(seeds):
        f = RKHSFunction.sample(dim, KERNEL, seed=seed)
        varied = {k: v(f) if callable(v) else v for k, v in settings.items()}
        runs.append(play(make_domain(dim), f, sub_gaussian, horizon, seed, **varied))
    regret, off, certificate, cost = np.mean(runs, axis=0)
    error = np.std([r[0] for r in runs]) / np.sqrt(seeds)
    print(
        f"d = {dim}  L = {sub_gaussian:<7.3g}{label:<34}{regret:7.3f} ± {error:.3f}"
        f"{off:8.3f}{certificate:8.2f}{cost:9.1f}",
        flush=True,
    )


def grid(dim):
    return pt.Grid(30, dim=dim)


def box(dim):
    return pt.Box([0.0] * dim, [1.0] * dim)


def alpha(horizon, seeds):
    for dim in (1, 2, 3):
        for sub_gaussian in (0.02, 0.1, PAPER_NOISE, 3.0):
            for factor in (10, 20, 40, 80, 160):

                def rule(f, factor=factor, sub_gaussian=sub_gaussian):
                    return max(1e-4, factor * (sub_gaussian / f.norm) ** 2)

                label = f"alpha = {factor} (L/B)²"
                row(label, grid, dim, sub_gaussian, horizon, seeds, alpha=rule)


def split(horizon, seeds):
    for dim in (1, 2, 3):
        for length in (horizon // 10, horizon):
            for limit in (4, 8, 12, 16, 20, 30):
                with patch.object(pi_gp_ucb, "default_gain_limit", lambda _, limit=limit: limit):
                    row(f"T = {length:,}, split at {limit}", grid, dim, PAPER_NOISE, length, seeds)


def cells(horizon, seeds):
    for dim, choices in {1: (1, 2, 4), 2: (1, 2, 4), 3: (3, 4, 6, 8)}.items():
        for count in choices:
            label = f"{count} cells a side"
            row(label, grid, dim, PAPER_NOISE, horizon, seeds, initial_cells=count)


def boxes(horizon, seeds):
    sides = {1: (9, 17, 33), 2: (5, 9, 17), 3: (3, 5, 9), 4: (3, 5)}
    for dim, choices in sides.items():
        for per_side in choices:
            with patch.dict(lattice.POINTS_PER_SIDE, {dim: per_side}):
                for slack in (False, True):
                    label = f"{per_side} points a side" + (", slack in the index" if slack else "")
                    row(label, box, dim, PAPER_NOISE, horizon, seeds, index_slack=slack)
        for count in (1, 2, 4):
            label = f"{count} cells a side"
            row(label, box, dim, PAPER_NOISE, horizon, seeds, initial_cells=count)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("what", choices=("alpha", "split", "cells", "box"))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=4)
    options = parser.parse_args()
    horizon = 1_000 if options.quick else 10_000
    print(f"{'':50}{'regret':>9}{'':8}{'off':>8}{'cert.':>8}{'µs/step':>9}")
    {"alpha": alpha, "split": split, "cells": cells, "box": boxes}[options.what](
        horizon, options.seeds
    )


if __name__ == "__main__":
    main()
