"""What the calibrated policy says of f by all that was told; it changes nothing of the choice."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from partita._state import Saved, State, wholes
from partita._types import FloatArray, IntArray, Prediction, Recommendation
from partita.gp.settings import Settings
from partita.partition.sites import ArmSites, BoxSites

from .candidates import Proposals, best_of
from .limits import Limits
from .model import CHANCE, Conditioned, Model, Moments, bounds_at, left_out
from .regions import Region, Regions
from .values import Sums

#: Upper bounds are noted each time there are this many times the values.
NOTE_FACTOR = 2.5
#: How much wider the bounds of the answer are where values are shaped.
SHAPED = 1.2
#: The number of searches for the highest bound, around the best means, then around the highest
#: bounds.
LOOKS = 3


class _Answer(NamedTuple):
    """A site that may be recommended, and its mean.

    `worth` is whether it is feasible, and its mean less one standard deviation; of one that is not,
    how likely it is.
    """

    worth: tuple[bool, float]
    site: int
    mean: float
    posterior: Conditioned
    informed_by: IntArray  # the sites that the posterior is by


class _Bound(NamedTuple):
    """The highest upper bound in a region, and what it was computed from.

    That is the number of its own sites, and the changes of the values of all sites that inform it.
    """

    own: int
    changes: int
    upper: float


class Note(NamedTuple):
    """The highest upper bound on f, as it was after `told` values."""

    told: int
    upper: float


class Draft(NamedTuple):
    """A note that is being made: the highest upper bound in the first `number` regions."""

    told: int
    number: int
    upper: float


@dataclass(eq=False)
class Answers:
    """Answers under given settings, by the posterior of each region."""

    _sites: ArmSites | BoxSites
    _sums: Sums
    _regions: Regions
    _model: Model
    _proposals: Proposals
    notes: list[Note] = field(default_factory=list)
    _draft: Draft | None = None
    #: The highest bounds in the regions, and the settings that they were computed under.
    _bounds: dict[Region, _Bound] = field(default_factory=dict)
    _under: Settings | None = None
    #: What must hold besides, if anything must.
    limits: Limits | None = None

    def recommend(self, likely: list[Region], settings: Settings) -> Recommendation:
        """The site of the likely regions with the highest mean less one standard deviation.

        Of those that are feasible, or else the site that most likely is.
        """
        answers = [self._best_in(region, settings) for region in likely if region.sites]
        return self._described(max(answers, key=lambda answer: answer.worth), settings)

    def at(self, site: int, settings: Settings) -> Recommendation:
        """What is known at a site that is recommended for other reasons."""
        region = self._regions[self._regions.home[site]]
        posterior = self._model.answering(region.informed_by, settings)
        mean = float(posterior.moments_at(self._sites.scaled[site][None, :]).mean[0])
        mean = posterior.settings.in_units(mean)
        answer = _Answer((True, mean), site, mean, posterior, region.informed_by)
        return self._described(answer, settings)

    def _described(self, best: _Answer, settings: Settings) -> Recommendation:
        point = self._sites.scaled[best.site]
        reach = self._model.reach(settings)
        if not settings.shape.identity:
            reach *= SHAPED  # the shape is learned, too
        bounds = bounds_at(best.posterior, point, reach)
        more = left_out(best.posterior, self._sums.data(best.informed_by), point, best.mean)
        return Recommendation(
            self._sites.x(best.site),
            best.mean + more.mean,
            bounds.lower + more.mean - CHANCE * more.error,
            bounds.upper + more.mean + CHANCE * more.error,
        )

    def _best_in(self, region: Region, settings: Settings) -> _Answer:
        informed_by = region.informed_by
        posterior = self._model.answering(informed_by, settings)
        at = posterior.moments_of(len(region.sites))
        lowered = at.mean - np.sqrt(at.variance)
        feasible = None
        if self.limits is not None and self.limits.quantities:
            points = self._sites.scaled[region.own]
            feasible = self.limits.feasible(points)
            lowered = np.where(feasible, lowered, -math.inf)
        j, units = int(np.argmax(lowered)), posterior.settings.in_units
        if feasible is None or feasible[j]:
            worth = True, units(float(lowered[j]))
        else:
            assert self.limits is not None
            likelihood = self.limits.likelihood(points)
            j = int(np.argmax(likelihood))
            worth = False, float(likelihood[j])
        return _Answer(worth, region.sites[j], units(float(at.mean[j])), posterior, informed_by)

    def predict(self, points: FloatArray, settings: Settings) -> Prediction:
        """Posterior and bounds at points (n, d) of the unit cube.

        The mean is that of the shaped values, taken back, and the standard deviation half of what
        lies between one above and one below.
        """
        reach, places = self._model.reach(settings), np.array([0.0, -1.0, 1.0])
        places = np.append(places, [-reach, reach])
        values = np.tile(settings.in_units(places)[:, None], len(points))
        for region in self._regions:
            rows = np.flatnonzero(region.holds(points))
            sites = region.informed_by
            if len(rows) and len(sites):
                posterior = self._model.answering(sites, settings)
                at = posterior.moments_at(points[rows])
                away = places[:, None] * np.sqrt(at.variance)
                values[:, rows] = posterior.settings.in_units(at.mean + away)
        mean, below, above, lower, upper = values
        return Prediction(mean, 0.5 * (above - below), lower, upper)

    # -- saved state -------------------------------------------------------------------------------

    def state(self) -> State:
        """Notes, as plain data; bounds follow from the values."""
        return {
            "told": wholes(note.told for note in self.notes),
            "uppers": np.array([note.upper for note in self.notes], dtype=float),
            "draft": None if self._draft is None else self._draft._asdict(),
        }

    def restore(self, saved: Saved) -> None:
        """Restore saved notes."""
        told = saved.wholes("told", (None,), 1).tolist()
        uppers = saved.floats("uppers", (len(told),), high=math.inf).tolist()
        self.notes = [Note(*note) for note in zip(told, uppers, strict=True)]
        self._draft = None
        if "draft" in saved:
            part = saved.part("draft")
            number = part.integer("number", 0, len(self._regions))
            self._draft = Draft(
                part.integer("told", 1), number, part.real("upper", -math.inf, math.inf)
            )

    # -- certificates ------------------------------------------------------------------------------

    def certificate(self, answer: Recommendation, settings: Settings, told: int) -> float:
        """What f can be above the answer, and more if it has risen above what was noted."""
        return self._ceiling(answer, settings) - answer.lower + self.shortfall(answer, told)

    def shortfall(self, answer: Recommendation, told: int) -> float:
        """How far f has risen above what was noted, in proportion to the values since."""
        short = [note.told / told * (answer.lower - note.upper) for note in self.notes]
        return max([0.0, *short])

    def note_due(self, told: int) -> bool:
        """Whether it is time to note what f is at most, to see later whether that was so."""
        return not self.notes or told >= NOTE_FACTOR * self.notes[-1].told

    @property
    def noting(self) -> bool:
        """Whether a note is being made."""
        return self._draft is not None

    def begin_note(self, told: int) -> None:
        """Begin to note what f is at most, by what was told so far."""
        self._draft = Draft(told, 0, -math.inf)

    def carry_on_note(self, best: Callable[[], Recommendation], settings: Settings) -> None:
        """Look at one region more for the note that is being made, or end it with the answer."""
        assert self._draft is not None
        told, number, upper = self._draft
        if number < len(self._regions):
            self._draft = None  # given up if this raises an error
            upper = max(upper, self._bound(self._regions[number], settings))
            self._draft = Draft(told, number + 1, upper)
            return
        self._draft = None
        self.notes.append(Note(told, max(upper, best().upper)))

    def _ceiling(self, answer: Recommendation, settings: Settings) -> float:
        """The highest upper bound on f, in any region and at the answer."""
        return max(answer.upper, *(self._bound(region, settings) for region in self._regions))

    def _bound(self, region: Region, settings: Settings) -> float:
        """The highest upper bound in a region, computed again only if something has changed."""
        if settings is not self._under:
            self._under, self._bounds = settings, {}
        # Sites around a region change as well, and leave it only when it gains one of its own.
        own, changes = len(region.sites), int(self._sums.changes[region.informed_by].sum())
        known = self._bounds.get(region)
        if known is None or (known.own, known.changes) != (own, changes):
            known = self._bounds[region] = _Bound(own, changes, self._highest_in(region, settings))
        return known.upper

    def _highest_in(self, region: Region, settings: Settings) -> float:
        """The highest upper bound found in a region, whatever was asked before."""
        own, reach = region.own, self._model.reach(settings)
        posterior = self._model.doubting(region.informed_by, settings)
        held, at_held = self._sites.scaled[own], posterior.moments_of(len(own))
        top = self._possible(held, at_held).highest(reach)
        best = best_of(held, at_held.mean, region)
        random = np.random.default_rng(LOOKS)
        for _ in range(LOOKS):
            fresh = self._proposals.draw(random, region.lower, region.upper, best)
            if not len(fresh):
                break
            new = posterior.moments_at(fresh)
            top = max(top, self._possible(fresh, new).highest(reach))
            best = best_of(fresh, new.mean + reach * np.sqrt(new.variance), region)
        return posterior.settings.in_units(top) if top > -math.inf else top

    def _possible(self, points: FloatArray, moments: Moments) -> Moments:
        """The moments of those of the points (n, d) that may be feasible."""
        if self.limits is None or not self.limits.quantities:
            return moments
        may = self.limits.possible(points)
        return Moments(moments.mean[may], moments.variance[may], moments.rows[:, may])
