"""Ending a run of Ray Tune by Partita's certificate."""

from __future__ import annotations

import logging
from typing import Any

from ray.tune import Stopper

from partita._checks import as_number
from partita.errors import InvalidInput
from partita.optimize.loop import CERTIFICATE_EVERY

from .search import PartitaSearch

logger = logging.getLogger(__name__)


class CertificateStopper(Stopper):  # type: ignore[misc]
    """Ends a run once no other configuration can be better than the recommended one by much.

    Give it to `RunConfig(stop=...)`. It looks at the certificate after each value up to 40, then
    each time there are 2.5 % more. Trials that are under way then are stopped, too.

    Parameters
    ----------
    search : PartitaSearch
        The searcher of the same run, in a `ConcurrencyLimiter` or not.
    tolerance : float
        In the units of the metric, at least 0.
    """

    def __init__(self, search: PartitaSearch, tolerance: float) -> None:
        inner: Any = getattr(search, "searcher", search)  # of a limiter
        if not isinstance(inner, PartitaSearch):
            raise InvalidInput(
                f"CertificateStopper({search!r:.100}, ...): give the PartitaSearch of the run"
            )
        number = as_number(tolerance)
        if not number >= 0.0:
            raise InvalidInput(f"tolerance={tolerance!r}: give a number of at least 0")
        self._search, self.tolerance = inner, number
        self._next, self._stopped = 1, False

    def __call__(self, trial_id: str, result: dict[str, Any]) -> bool:
        """False: no single trial is stopped."""
        return False

    def stop_all(self) -> bool:
        """Whether the certificate has been small enough."""
        if self._stopped or self._search._optimizer is None:
            return self._stopped
        told = self._search.optimizer.n_told
        if told >= self._next:
            self._next = told + max(1, told // CERTIFICATE_EVERY)
            certificate = self._search.certificate()
            self._stopped = certificate <= self.tolerance
            if self._stopped:
                logger.info("the certificate, %.3g, is within the tolerance", certificate)
        return self._stopped
