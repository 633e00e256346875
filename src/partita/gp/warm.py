"""Which posteriors keep their covariance, when there is no room for all."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from partita._state import Saved

from .posterior import Posterior

#: Covariances kept at once, in numbers (8 bytes each).
WARM_NUMBERS = 2**26


class WarmCovariances:
    """The posteriors that keep a covariance, the longest unused first, and their numbers."""

    def __init__(self) -> None:
        self._sizes: OrderedDict[Posterior, int] = OrderedDict()
        self._numbers = 0
        #: Whether there is more than fits: `trim` is due.
        self.exceed = False

    def note(self, posterior: Posterior) -> None:
        """Note that a posterior was computed, and so used."""
        size = posterior.kept_numbers
        self._numbers += size - self._sizes.pop(posterior, 0)
        if size:
            self._sizes[posterior] = size
        self.exceed = self._numbers > WARM_NUMBERS

    def use(self, posterior: Posterior) -> None:
        """Note that a posterior was used."""
        try:
            self._sizes.move_to_end(posterior)
        except KeyError:  # it keeps no covariance
            return

    def cool(self, posterior: Posterior) -> None:
        """Give up the covariance of a posterior."""
        posterior.cool()
        self.note(posterior)

    def order(self, posteriors: Sequence[Posterior]) -> list[int]:
        """Numbers of the posteriors that keep a covariance, the longest unused first."""
        numbers = {posterior: i for i, posterior in enumerate(posteriors)}
        return [numbers[posterior] for posterior in self._sizes]

    def restore(self, saved: Saved, name: str, posteriors: Sequence[Posterior]) -> None:
        """Keep covariances in a saved order, the field `name`."""
        warm = [i for i, posterior in enumerate(posteriors) if posterior.kept_numbers]
        order = saved.numbers(name, len(posteriors))
        saved.require(sorted(order) == warm, f"{name} names each covariance once")
        self._sizes.clear()
        self._numbers = 0
        for i in order:
            self.note(posteriors[i])

    def trim(self) -> None:
        """Give up covariances, the longest unused first, until the others fit."""
        while self.exceed:
            self.cool(next(iter(self._sizes)))
