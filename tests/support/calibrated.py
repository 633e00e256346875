"""Functions and runs of the calibrated policy's tests."""

import math

import numpy as np

import partita as pt

SQUARE = pt.Box([0, 0], [1, 1])
LINE = pt.Box([0], [1])


def bowl(x, centre=0.3):
    return -float(((np.asarray(x) - centre) ** 2).sum())


def dip(x):
    """A needle of width 0.06 beside a gentle wave."""
    return math.exp(-(((x[0] - 0.45) / 0.06) ** 2)) * 6 - math.sin(3 * x[0])


def run(policy, f, steps, noise=0.0, seed=0):
    """f at the points played; noise is a standard deviation, or a function of the point."""
    rng = np.random.default_rng([seed, 77])
    values = np.empty(steps)
    for i in range(steps):
        x = policy.ask()
        values[i] = f(x)
        std = noise(x) if callable(noise) else noise
        policy.tell(x, float(values[i] + std * rng.standard_normal()))
    return values


def played(policy, f, steps, noise=0.0, seed=0):
    """The policy after that many plays."""
    run(policy, f, steps, noise, seed)
    return policy


def told(number, seed=0):
    """A policy that was told values at random points in bulk; the best is at 0.9."""
    rng = np.random.default_rng(seed)
    X = rng.random((number, 2))
    policy = pt.CalibratedUCB(SQUARE, seed=0)
    policy.tell(X, -((X - 0.9) ** 2).sum(axis=1) + 0.01 * rng.normal(size=number))
    return policy
