"""Which posteriors keep their covariance, when there is no room for all."""

from __future__ import annotations

from collections import OrderedDict

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

    def trim(self) -> None:
        """Give up covariances, the longest unused first, until the others fit."""
        while self.exceed:
            self.cool(next(iter(self._sizes)))
