"""Sites that were evaluated twice, to tell how loud the noise is where the search is now."""

from __future__ import annotations

import numpy as np

from partita._state import Saved, State, wholes
from partita._types import FloatArray, IntArray
from partita.gp.data import Data

from .model import Model
from .values import Sums

#: A generation evaluates a site again if it is one of the first, or one in this many; in as many of
#: these if values have always agreed.
FIRST, EVERY = 6, 4
#: The number of sites that the noise is computed from: the last ones, and the least.
LAST, LEAST = 32, 4
#: The number of values at sites evaluated before that have to agree with these for there to be no
#: noise.
SURE = 8


class Doubles:
    """Keeps the last sites that were evaluated twice."""

    def __init__(self, sums: Sums, model: Model) -> None:
        self._sums, self._model = sums, model
        self._sites: list[int] = []

    @property
    def exact(self) -> bool:
        """Whether there is no noise.

        Unlike `Sums.exact`, this allows some sites to have the same value, as on a grid.
        """
        if self._sums.exact or not self._sums.agree or self._sums.tied:
            return self._sums.exact
        return int((self._sums.count[self._repeated()] - 1).sum()) >= SURE

    def due(self, generation: int) -> bool:
        """Whether a generation is to evaluate a site again."""
        if self.exact:
            return False
        sites = self._repeated()
        if len(sites) >= LEAST and not self._sums.data(sites).within.any():
            return generation % EVERY**2 == 0
        return generation <= FIRST or generation % EVERY == 0

    def add(self, site: int) -> None:
        """Take note of a site that is evaluated again."""
        if site not in self._sites:
            self._sites = [*self._sites, site][-LAST:]

    def variances(self, data: Data) -> FloatArray | None:
        """The variances (n,) of the noise of shaped means; None if they are not known."""
        told, pooled = ~np.isnan(data.known), self._pooled()
        if pooled is None and not told.all():
            return None
        return np.where(told, data.known, 0.0 if pooled is None else pooled / data.counts)

    def _pooled(self) -> float | None:
        """The variance of one value's noise, in units of shaped values; None if not known."""
        if self.exact:
            return 0.0
        sites = self._repeated()
        if len(sites) < LEAST:
            return None
        data = self._model.shaped(self._sums.data(sites), self._model.fit.best)
        again = float((data.counts - 1.0).sum())
        return float(data.within.sum()) / again if again else 0.0  # values that agree count once

    def _repeated(self) -> IntArray:
        """The sites that have several values by now."""
        sites, count = np.array(self._sites, dtype=np.int64), self._sums.count
        sites = sites[sites < len(count)]  # a pending one may have no sums yet
        return sites[count[sites] > 1]

    def state(self) -> State:
        """The sites, as plain data."""
        return {"sites": wholes(self._sites)}

    def restore(self, saved: Saved, number: int) -> None:
        """Restore saved sites, of a number of them."""
        self._sites = saved.numbers("sites", number)
        saved.require(len(self._sites) <= LAST, "few sites that were evaluated twice")
