"""How values get into the calibrated policy's records: past the fences, or as far as those."""

from __future__ import annotations

import logging

from partita.partition.sites import ArmSites, BoxSites

from .fences import Change, Fences
from .records import Records

_log = logging.getLogger(__name__)


class Intake:
    """Puts values into the records, as they are or as outliers count.

    Parameters
    ----------
    first
        How many values come from all over the domain.
    keep
        Whether outliers count as they are.
    """

    def __init__(
        self, sites: ArmSites | BoxSites, records: Records, first: int, keep: bool
    ) -> None:
        self._sites = sites
        self._records = records
        self._keep = keep
        self.fences = Fences(first)
        self._warned = False
        #: A site with one value that is too good to be believed.
        self._doubted: int | None = None

    @property
    def seen(self) -> int:
        """How many values have come."""
        return self.fences.seen

    @property
    def clipped(self) -> int:
        """How many of them were far outside all others, and count as less extreme, or not."""
        return self.fences.clipped

    def take(self, site: int, value: float) -> tuple[float | None, bool]:
        """Remember a value at a site: what it counts as, if at all; whether others changed."""
        if self._keep:
            self.fences.seen += 1
            self._records.add(site, value)
            return value, False
        amended = False
        if self.fences.see(site, value):
            amended = self._fence_first()
            amended |= self._amend(self.fences.held())
        counted, more = self._put(site, value)
        return counted, amended or more

    def take_doubted(self) -> int | None:
        """A site with one value that is too good to be believed, to be played again; once."""
        site, self._doubted = self._doubted, None
        return site

    def _put(self, site: int, value: float) -> tuple[float | None, bool]:
        """Remember a value that the fences have seen."""
        fences, count = self.fences, self._sites.count
        counted = fences.clip(site, value, int(count[site]))
        if counted is not None:
            self._records.add(site, counted)
        if counted == value:
            return counted, self._amend(fences.lucky(site))
        if not self._warned:
            self._warned = True
            _log.warning(
                "a value lies far outside all others, and counts as less extreme; "
                "CalibratedUCB(outliers='keep') takes such values as they are"
            )
        amended = self._amend(fences.confirmed(site, int(count[site])))
        if fences.doubted(site):
            self._doubted = site
        return counted, amended

    def _amend(self, changes: list[Change]) -> bool:
        """Have other values count than before; whether there are any."""
        for site, before, after in changes:
            if before is not None:
                self._records.remove(site, before)
            if after is not None:
                self._records.add(site, after)
        return bool(changes)

    def _fence_first(self) -> bool:
        """Put the values that came before the first fences within them, too; whether any were."""
        first = self.fences.take_first()
        for site in {site for site, _ in first}:
            self._records.forget(site)
        for site, value in first:
            self._put(site, value)
        return bool(first)
