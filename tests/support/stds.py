"""What the tests of known noise share: a policy that remembers what it was told."""

import math

import numpy as np

import partita as pt


class Listener(pt.UniformSampling):
    """Uniform sampling that takes the noise of single values, and keeps what it hears."""

    takes_std = True

    def __init__(self, domain, *, seed=0):
        super().__init__(domain, seed=seed)
        self.heard = []

    def _record(self, site, value, asked, std=None):
        self.heard.append((value, std))
        super()._record(site, value, asked)


class Deaf:
    """A policy of the user's own with no more than the four methods, and no word `std`."""

    def __init__(self, domain):
        self._domain = domain
        self._random = np.random.default_rng(0)
        self.told = []

    def ask(self):
        return self._random.random(self._domain.dim)

    def tell(self, x, y):
        self.told.append(y)

    def cancel(self, x):
        pass

    def recommend(self):
        return pt.Recommendation(np.full(self._domain.dim, 0.5), 0.0, -math.inf, math.inf)


#: What is no standard deviation, and what the message says of it.
BAD_STDS = [
    (-0.1, "std=-0.1: give the standard deviation"),
    (math.nan, "std=nan: give"),
    (math.inf, "std=inf: give"),
    (1e200, "std=1e\\+200: give"),
    ("0.1", "std='0.1': give"),
    (1j, "std=1j: give"),
    ([0.1], "a finite number of at least 0"),
    (np.array([0.1, 0.2]), "a finite number of at least 0"),
    (True, "std=True: give"),
]
