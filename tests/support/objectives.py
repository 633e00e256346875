"""Functions that are evaluated in worker processes, which must be able to import them."""

from __future__ import annotations

import os
import time

import numpy as np


def bowl(x):
    """Smallest at (0.3, 0.7), noise that differs between calls."""
    noise = np.random.default_rng().normal(scale=0.05)
    return float((x[0] - 0.3) ** 2 + (x[1] - 0.7) ** 2 + noise)


def named(rate, depth):
    return (rate - 0.25) ** 2 + (depth - 3) ** 2 / 10


def nothing_but_noise(x):
    return float(np.random.default_rng().normal())


def worker_of(x):
    """The worker's process as a value: which workers took part."""
    time.sleep(0.01)
    return float(os.getpid())


class Awkward(Exception):
    """Pickles, but cannot be rebuilt: such an error takes a process pool down."""

    def __init__(self, first, second):
        super().__init__("awkward")


def awkward_half(x):
    if x[0] > 0.5:
        raise Awkward(1, 2)
    return float(x[0])


def dies_late(x):
    """Ends its process, now and then."""
    if x[0] > 0.5 and x[1] > 0.5:
        os._exit(3)
    return float(x[0] + x[1])


def sleeps(x):
    time.sleep(float(x[0]))
    return float(x[0])


class Shifted:
    """An objective with data of its own."""

    def __init__(self, centre):
        self.centre = centre

    def __call__(self, x):
        return float(np.abs(np.asarray(x) - self.centre).sum())


def with_std(x):
    """A value and the standard deviation of its noise."""
    return float(x[0] - x[1]), float(x[0])
