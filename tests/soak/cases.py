"""Cases of the fuzz, each made from its seed: a policy, what it plays, and what is done to it.

A case is plain data, so that a failing one can be made shorter and shown.
"""

import math
import random
from dataclasses import dataclass

import numpy as np

import partita as pt
from partita.model.assumptions import Assumptions
from partita.policies import registry
from partita.policies.construct import construct
from partita.space import as_space

#: What is done to the policy or optimizer, and how often of a hundred times.
VERBS = {
    "ask": 34,
    "tell": 30,
    "tell many": 4,
    "add": 5,
    "cancel": 5,
    "expect": 2,
    "recommend": 4,
    "predict": 3,
    "certificate": 2,
    "pickle": 2,
    "copy": 2,
    "restore": 2,
    "refuse": 5,
}
#: Values at the edges of what is accepted.
EXTREMES = (0.0, -0.0, 5e-324, 1e-300, 1e-12, 1.0, 1e12, 1e75, 1e149, 1e150)
EXTREMES += tuple(-value for value in EXTREMES)
#: Of boxes, for policies that make all corners or parts of one at once: they refuse more.
MOST_DIMENSIONS = {"oful": 12, "confidence-ball": 12, "pi-gp-ts": 6, "pi-gp-ucb-tight": 6}
STDS = (0.0, 1e-300, 1e-6, 0.1, 1.0, 1e6, 1e150)


@dataclass(frozen=True)
class Op:
    """One call: what, which of the pending points or of the wrong inputs, with which numbers."""

    verb: str
    pick: int = 0
    value: float | None = None  # None: that of the function
    std: float | None = None
    seed: int = 0


@dataclass(frozen=True)
class Case:
    """What a seed stands for."""

    seed: int
    policy: str | None  # None: an optimizer chooses by what it is told
    kind: str  # grid, arms, box or mixed
    by_optimizer: bool
    known: bool  # whether norm, noise and kernel are told
    scale: float  # of the function's values
    noise: float
    nu: float
    lengthscale: float
    horizon: int
    direction: str
    ops: tuple[Op, ...]


def case_of(seed):
    """The case of a seed."""
    draw = random.Random(f"case {seed}")
    policy = draw.choice(registry.names())
    by_optimizer = draw.random() < 0.4
    kind = draw.choice(registry.get(policy).domains)
    if policy in ("calibrated-ucb", "uniform") and draw.random() < 0.4:
        kind = "mixed"
    if by_optimizer and policy == "calibrated-ucb" and draw.random() < 0.5:
        policy = None
    temper = draw.random()  # ordinary values, some at the edges, or hardly any but those
    edges = 0.0 if temper < 0.6 else 0.05 if temper < 0.85 else 0.6
    length = min(int(draw.expovariate(1 / 30)) + 3, 150)
    verbs, weights = list(VERBS), list(VERBS.values())
    ops = tuple(_op(draw, verb, edges) for verb in draw.choices(verbs, weights, k=length))
    return Case(
        seed,
        policy,
        kind,
        by_optimizer,
        known=policy is not None or (kind != "mixed" and draw.random() < 0.3),
        scale=10.0 ** draw.choice([0, 0, 0, -8, -3, 3, 8]),
        noise=draw.choice([1e-3, 0.1, 1.0]),
        nu=draw.choice([0.5, 1.5, 1.5, 2.5]),
        lengthscale=draw.choice([0.05, 0.3, 1.0]),
        horizon=draw.choice([1, 5, 50, 1000, 10**6]),
        direction=draw.choice(["minimize", "maximize"]),
        ops=ops,
    )


def _op(draw, verb, edges):
    value = draw.choice(EXTREMES) if draw.random() < edges else None
    std = draw.choice(STDS) if draw.random() < 0.1 else None
    return Op(verb, draw.randrange(1000), value, std, draw.randrange(2**30))


def dimensions(case, draw):
    """One to thirty, mostly few; no more than a policy takes that looks at every corner."""
    dim = draw.choice([1, 1, 2, 2, 2, 3, 3, 4, 5, 6, 8, 10, 15, 20, 30])
    most = MOST_DIMENSIONS.get(case.policy or "", 30) if case.kind == "box" else 30
    return min(dim, most)


def domain_of(case):
    """What the policy plays."""
    draw = random.Random(f"domain {case.seed}")
    dim = dimensions(case, draw)
    if case.kind == "grid":
        side = draw.choice([s for s in (2, 3, 5, 9, 17, 100, 1000) if s**dim <= 2000] or [2])
        return pt.Grid(side, dim=min(dim, int(math.log(2000, side))))
    if case.kind == "arms":
        random_rows = np.random.default_rng([case.seed, 1])
        rows = random_rows.random((draw.choice([1, 2, 7, 40, 300]), dim))
        if draw.random() < 0.5:  # on faces, in corners, and in a line
            rows = np.round(rows * 4) / 4
        size = 10.0 ** draw.choice([-6, 0, 3])
        return pt.Arms(np.unique(rows, axis=0) * size, np.zeros(dim), np.full(dim, size))
    if case.kind == "mixed":
        return pt.Mixed(as_space(*space_of(case)))
    lower, upper = _bounds(case.seed, dim)
    return pt.Box(lower, upper)


def _bounds(seed, dim):
    random_units = np.random.default_rng([seed, 2])
    sizes = 10.0 ** random_units.integers(-6, 7, dim)
    lower = random_units.normal(size=dim) * sizes
    return lower, lower + sizes * random_units.uniform(0.5, 2.0, dim)


class Sparse:
    """A constraint that allows a share of all points; it can be pickled."""

    def __init__(self, share):
        self.share = share

    def __call__(self, *given, **params):
        values = params.values() if params else np.ravel(given[0]).tolist()
        total = sum(_number(value) for value in values)
        return math.sin(12.0 * total) < 2.0 * self.share - 1.0

    def __eq__(self, other):
        return isinstance(other, Sparse) and other.share == self.share

    def __hash__(self):
        return hash(self.share)


def _number(value):
    return float(len(value)) if isinstance(value, str) else float(value)


def space_of(case):
    """What an optimizer plays, and its constraint or None."""
    draw = random.Random(f"space {case.seed}")
    if case.kind in ("grid", "arms"):
        return domain_of(case), None
    if case.kind == "box":
        lower, upper = _bounds(case.seed, dimensions(case, draw))
        return list(zip(lower.tolist(), upper.tolist(), strict=True)), None
    kinds = [
        (1e-4, 1e-1, "log"),
        (1, 12, "int"),
        (-3.0, 5.0),
        (0.0, 1.0, 0.25),
        (1, 1000, "int", "log"),
        ["a", "bb", "ccc"],
        ["only", "two"],
        bool,
    ]
    spec = {f"p{i}": draw.choice(kinds) for i in range(draw.choice([1, 2, 3, 4, 6, 9, 12]))}
    spec["real"] = (0.0, 1.0)  # so that it is never a list of a few points
    feasible = Sparse(draw.choice([0.9, 0.5, 0.1])) if draw.random() < 0.5 else None
    return spec, feasible


def assumptions_of(case):
    """What is told of the problem."""
    half = case.noise * case.scale
    noise = [pt.Uniform(-half, half), pt.Gaussian(half), pt.SubGaussian(half)]
    number = 0 if case.policy == "gp-ucb-rkhs" else case.seed % 3  # which needs bounded noise
    return Assumptions(pt.Matern(case.nu, case.lengthscale), 2.0 * case.scale, noise[number], 0.1)


def made(case):
    """A new policy or optimizer; an error of Partita's if there is none for what is played."""
    told = assumptions_of(case)
    if not case.by_optimizer:
        method = registry.get(case.policy)
        return construct(
            method.load(),
            domain_of(case),
            told,
            horizon=case.horizon,
            seed=case.seed % 7,
            settings=method.settings,
        )
    space, feasible = space_of(case)
    known = {"kernel": told.kernel, "norm_bound": told.norm_bound, "noise": told.noise}
    return pt.Optimizer(
        space,
        direction=case.direction,
        seed=case.seed % 7,
        n_evals=case.horizon,
        policy=case.policy,
        feasible=feasible,
        **(known if case.known else {}),
    )
