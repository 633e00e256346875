"""Domains and functions for the hierarchical policies."""

import numpy as np

import partita as pt


def scattered(dim, count=40, seed=0):
    """Arms in clusters, in a box of unequal sides."""
    rng = np.random.default_rng(seed)
    unit = np.concatenate(
        [rng.random((count // 2, dim)), 0.7 + 0.02 * rng.random((count - count // 2, dim))]
    )
    lower, upper = -np.arange(1.0, dim + 1), np.arange(1.0, dim + 1) ** 2
    return pt.Arms(lower + unit * (upper - lower), lower, upper)


DOMAINS = {
    "box 1d": lambda: pt.Box([-2.0], [3.0]),
    "box 2d": lambda: pt.Box([0.0, -1.0], [1.0, 4.0]),
    "box 3d": lambda: pt.Box([0.0, 1.0, -1.0], [0.5, 4.0, 1.0]),
    "grid 1d": lambda: pt.Grid(33),
    "grid 2d": lambda: pt.Grid(9, dim=2),
    "arms 2d": lambda: scattered(2),
    "arms 3d": lambda: scattered(3),
}


def bumpy(domain, seed=1):
    """A function without symmetries, of values around [0, 1]."""
    rng = np.random.default_rng(seed)
    peak, phase = rng.random(domain.dim), rng.uniform(1, 9, domain.dim)

    def f(x):
        u = (np.asarray(x) - domain.lower) / (domain.upper - domain.lower)
        return float(1 - np.abs(u - peak).mean() + 0.2 * np.sin(phase * 3 * u).mean())

    return f


def anywhere(domain, rng, count):
    if domain.finite:
        return domain.points[rng.integers(0, domain.size, count)]
    return domain.from_unit(rng.random((count, domain.dim)))
