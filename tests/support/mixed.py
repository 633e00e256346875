"""A space of parameters of every kind, constraints on it, and a loss."""

import math

import numpy as np

import partita as pt
from partita.space import as_space

SPEC = {
    "rate": (1e-4, 1e-1, "log"),
    "depth": (1, 12, "int"),
    "share": (0, 0.5),
    "kind": ["a", "b", "c"],
    "flag": bool,
}
ZERO, ONE = np.zeros(7), np.ones(7)


def allowed(depth, share, **_):
    return depth * share < 2


def thin(depth, share, **_):
    """One point in two hundred or so."""
    return abs(share - 0.3 - 0.01 * depth) < 0.00125


def cost(rate, depth, share, kind, flag):
    kinds = {"a": 0.5, "b": 0.0, "c": 1.0}
    return (
        (math.log10(rate) + 2) ** 2
        + 0.05 * (depth - 7) ** 2
        + 3 * (share - 0.2) ** 2
        + kinds[kind]
        + 0.3 * flag
    )


def mixed(feasible=None, spec=SPEC):
    return pt.Mixed(as_space(spec, feasible))


class Counted:
    """A constraint that remembers what it was asked."""

    def __init__(self, rule):
        self.rule, self.asked = rule, []

    def __call__(self, **params):
        self.asked.append(tuple(params.values()))
        return self.rule(**params)


def play(policy, steps, seed=0, noise=0.05):
    random = np.random.default_rng(seed)
    space = policy.domain.rules
    asked = []
    for _ in range(steps):
        x = policy.ask()
        asked.append(x)
        policy.tell(x, -cost(**space.decode(x)) + noise * random.normal())
    return np.array(asked)


def checked(domain, rows, lower=ZERO, upper=ONE):
    """Candidates, known to be valid, feasible, inside and all different."""
    assert (domain.snap(rows) == rows).all()
    assert domain.mask(rows).all()
    below = np.where(upper >= 1, rows <= upper, rows < upper)
    assert ((rows >= lower) & below).all()
    assert len(np.unique(rows, axis=0)) == len(rows)
    return rows
