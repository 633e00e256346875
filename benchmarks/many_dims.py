"""What each part of the calibrated policy for many dimensions brings, on functions of their own.

    python benchmarks/many_dims.py                                20 dimensions, 500 evaluations
    python benchmarks/many_dims.py --dim 50 --evaluations 2000 --noise 0.5 --jobs 2
    python benchmarks/many_dims.py --ways process all --names network arm

None of the functions is one of `benchmarks/high_dim.py`. Their optimum is at a random place, the
noise is uniform, up to a tenth of the range over uniform points, or the part that is given. A cell
holds cumulative regret and regret of the answer, as parts of uniform sampling's; the last row has
the mean, the regret of the box's centre, and processor time: the mean and the longest of an ask and
a tell, in milliseconds.
"""

from __future__ import annotations

import time
from functools import partial
from typing import NamedTuple

import numpy as np
from common import grouped, parser, print_table

import partita as pt
from partita.gp import likelihood
from partita.policies.calibrated import calibrated_ucb, doubles, follow, guard, search, trend

OFF = 10**6
#: What is set, and to what, to leave a part out.
PARTS = {
    "prior": (likelihood, "WIDENS_FROM", OFF),
    "climbs": (search, "MANY", OFF),
    "fits": (likelihood, "MANY", OFF),
    "trend": (calibrated_ucb, "FOLLOWED_FROM", OFF),
    "player": (follow, "PROCESS", 0),
    "doubles": (doubles, "LEAST", OFF),
    "guard": (guard, "COMPARED", OFF),
    "bowl": (trend, "ALIKE", 0.0),
}
USUAL = {part: getattr(module, name) for part, (module, name, _) in PARTS.items()}
#: Which parts are left out: of the process, wider prior, climbs of the mean and shorter fits; the
#: trend and the evolution, and of these the process as a player, the measured noise, the guard, and
#: the prior that prefers bowls.
WAYS = {
    "plain process": ("prior", "climbs", "fits", "trend"),
    "process": ("trend",),
    "no player": ("player",),
    "no doubles": ("doubles",),
    "no guard": ("guard",),
    "no bowl": ("bowl",),
    "all": (),
}
NAMES = (
    "ellipsoid",
    "levy",
    "styblinski",
    "powers",
    "six",
    "network",
    "arm",
    "ripples",
    "farthest",
)


class Outcome(NamedTuple):
    """Regrets as parts of uniform sampling's, and milliseconds of an ask and a tell."""

    cumulative: float
    answer: float
    centre: float
    mean_ms: float
    worst_ms: float


def build(name: str, dim: int, seed: int):
    """A function of points (n, d) of the unit cube; its maximum is 0, unknown for the arm."""
    random = np.random.default_rng([seed, dim, len(name)])
    best = random.uniform(0.2, 0.8, dim)
    turn = np.linalg.qr(random.standard_normal((dim, dim)))[0]
    matter = random.choice(dim, 6, replace=False)

    def ellipsoid(points):
        return -(((points - best) @ turn) ** 2 @ 10 ** np.linspace(0, 1.5, dim))

    def levy(points):
        w = 1 + 2 * (points - best)
        middle = ((w[:, :-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * w[:, :-1] + 1) ** 2)).sum(axis=1)
        return -(np.sin(np.pi * w[:, 0]) ** 2 + middle + (w[:, -1] - 1) ** 2)

    def styblinski(points):
        z = 6 * (points - best) - 2.903534
        return -0.5 * (z**4 - 16 * z**2 + 5 * z).sum(axis=1) - 39.166166 * dim

    def powers(points):
        return -(np.abs(points - best) ** np.linspace(1, 3, dim)).sum(axis=1)

    def six(points):
        return np.exp(-3 * ((points - best)[:, matter] ** 2).sum(axis=1)) - 1

    def ripples(points):
        z = 4 * (points - best) @ turn
        return -(z**2 + 1.5 * (1 - np.cos(2 * np.pi * z))).sum(axis=1)

    def farthest(points):
        away = np.abs(points - best)
        return -away.max(axis=1) - 0.3 * away.mean(axis=1)

    hidden = max(dim // 5, 2)
    inputs = random.standard_normal((60, 3))

    def outputs(points):
        weights = 8 * (points - 0.5)
        first, second, last = np.split(weights[:, : 5 * hidden], [3 * hidden, 4 * hidden], axis=1)
        into = np.einsum("ki,nih->nkh", inputs, first.reshape(len(points), 3, hidden))
        return np.einsum("nkh,nh->nk", np.tanh(into + second[:, None, :]), last)

    def network(points):
        return -((outputs(points) - outputs(best[None, :])) ** 2).mean(axis=1)

    goal, obstacles = random.uniform(-0.4, 0.4, 2), random.uniform(-0.6, 0.6, (4, 2))

    def arm(points):
        turns = np.cumsum(15.0 / dim**0.5 * (points - 0.5), axis=1)
        joints = np.stack([np.cos(turns), np.sin(turns)], axis=2).cumsum(axis=1) / dim
        cost = 10 * np.linalg.norm(joints[:, -1] - goal, axis=1)
        for obstacle in obstacles:
            near = 0.15 - np.linalg.norm(joints - obstacle, axis=2)
            cost += 30 * np.maximum(near, 0.0).mean(axis=1)
        return -cost

    made = (ellipsoid, levy, styblinski, powers, six, network, arm, ripples, farthest)
    return {f.__name__: f for f in made}[name]


def run(name: str, way: str, seed: int, dim: int, evaluations: int, noise: float) -> Outcome:
    for part, (module, setting, off) in PARTS.items():
        setattr(module, setting, off if part in WAYS[way] else USUAL[part])
    f, random = build(name, dim, seed), np.random.default_rng([seed, 9])
    values = f(np.random.default_rng([seed, 3]).random((2000, dim)))
    scale, width = -values.mean(), noise * np.ptp(values)
    policy = pt.CalibratedUCB(pt.Box([0] * dim, [1] * dim), seed=seed)
    lost, times = 0.0, []
    for _ in range(evaluations):
        start = time.process_time()
        x = policy.ask()
        asked = time.process_time() - start
        value = float(f(x[None, :])[0])
        lost -= value
        start = time.process_time()
        policy.tell(x, value + width * random.uniform(-1, 1))
        times.append(asked + time.process_time() - start)
    answer, centre = (-float(f(at[None, :])[0]) for at in (policy.recommend().x, np.full(dim, 0.5)))
    return Outcome(
        lost / evaluations / scale,
        answer / scale,
        centre / scale,
        1e3 * float(np.mean(times)),
        1e3 * max(times),
    )


def main() -> None:
    command = parser(__doc__)
    command.add_argument("--dim", type=int, default=20)
    command.add_argument("--runs", type=int, default=2)
    command.add_argument("--evaluations", type=int, default=500)
    command.add_argument("--noise", type=float, default=0.1, metavar="PART")
    command.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    command.add_argument("--names", nargs="+", choices=NAMES, default=list(NAMES))
    options = command.parse_args()
    groups = [(name, way) for name in options.names for way in options.ways]
    play = partial(run, dim=options.dim, evaluations=options.evaluations, noise=options.noise)
    made = grouped(play, groups, options.runs, options.jobs)
    rows = []
    for name in options.names:
        means = [np.mean(made[name, way], axis=0) for way in options.ways]
        rows.append([name, *(f"{m[0]:.3f}, {m[1]:.3f}" for m in means)])
    mean = [
        np.mean([made[name, way] for name in options.names], axis=(0, 1)) for way in options.ways
    ]
    rows.append(["mean", *(f"{m[0]:.3f}, {m[1]:.3f} (centre {m[2]:.3f})" for m in mean)])
    rows.append(["ms", *(f"{m[3]:.1f}, {m[4]:.0f}" for m in mean)])
    print_table([f"d = {options.dim}", *options.ways], rows)


if __name__ == "__main__":
    main()
