"""A fit of the settings that is under way: what it looks at, and how far it has come."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from partita._state import Saved, State
from partita._types import FloatArray
from partita.errors import NumericalError
from partita.gp.data import Data, farthest, uniform_noise
from partita.gp.fitting import Fit, fit
from partita.gp.journal import Journal, Paused
from partita.gp.likelihood import step_cost
from partita.gp.noise_map import NoiseMap, learn_map
from partita.gp.settings import Fixed, Settings
from partita.gp.shapes import IDENTITY

#: Without noise, the shape is looked for without points as close as this to others, in sides of
#: the domain: their differences are below the least noise that a model has, and a shape would seem
#: likely that blows them up.
CLOSE = 0.01
#: Steps of a fit, at most, and points that it looks at: some have values of two kinds.
MOST_STEPS, MOST_POINTS = 100_000, 400


class Learned(NamedTuple):
    """What a fit ends with: the settings, and where the noise is large if it differs."""

    fit: Fit
    noise: NoiseMap | None


@dataclass(eq=False)
class Fitting:
    """A fit to data as they were when it began."""

    data: Data
    #: Whether the search also begins afresh, whether values have no noise, and whether a shape of
    #: them is looked for.
    restart: bool
    exact: bool
    shaped: bool
    journal: Journal = field(default_factory=Journal)

    def carry_on(self, last: Settings, fixed: Fixed) -> Learned:
        """Go on from where the fit stopped, with the `last` settings that it began with."""
        return self._with_noise(self._fit(last, fixed), fixed)

    def _fit(self, best: Settings, fixed: Fixed) -> Fit:
        """Fit shape and settings; without noise first the shape, to points not too close."""
        data, restart, exact, journal = self.data, self.restart, self.exact, self.journal
        if not exact or not self.shaped:
            return fit(data, best, fixed, restart, exact, self.shaped, journal)
        cost = step_cost(len(data.means), data.points.shape[1])
        rows = journal.step(cost, self._apart).astype(np.int64)
        apart = data.take(rows)
        shape = fit(apart, best, fixed, restart, exact, True, journal).best.shape
        start = replace(best, shape=IDENTITY)
        found = fit(shape.data(data), start, fixed, restart, exact, journal=journal)
        return replace(found, best=replace(found.best, shape=shape))

    def _apart(self) -> FloatArray:
        """Numbers of the points that are not too close to others."""
        return farthest(self.data.points, len(self.data.points), CLOSE).astype(float)

    def _with_noise(self, found: Fit, fixed: Fixed) -> Learned:
        """Learn where the noise is large, and the settings again if it differs."""
        best = found.best
        if self.exact or fixed.noise_std is not None:
            return Learned(found, None)
        shaped = best.shape.data(self.data)
        noise = learn_map(shaped, best, fixed, self.journal)
        if noise is None:
            return Learned(found, None)
        shaped = shaped._replace(ratios=noise.at(self.data.points))
        plain = replace(best, shape=IDENTITY)
        again = fit(shaped, plain, replace(fixed, form=best.form), journal=self.journal)
        return Learned(replace(again, best=replace(again.best, shape=best.shape)), noise)

    # -- saved state -------------------------------------------------------------------------------

    def state(self) -> State:
        """The data and the number of steps taken, as plain data; results follow from those."""
        data = self.data
        return {
            "points": data.points,
            "counts": data.counts,
            "means": data.means,
            "within": data.within,
            "known": data.known,
            "restart": bool(self.restart),
            "exact": bool(self.exact),
            "shaped": bool(self.shaped),
            "steps": int(self.journal.steps),
        }

    @staticmethod
    def restored(saved: Saved, dim: int) -> Fitting:
        """The fit that was saved, before its first step."""
        points = saved.floats("points", (None, dim), 0.0, 1.0)
        n = len(points)
        saved.require(1 <= n <= MOST_POINTS, "points of a fit")
        counts = saved.floats("counts", (n,), 1.0)
        within = saved.floats("within", (n,), 0.0)
        data = uniform_noise(points, counts, saved.floats("means", (n,)), within)
        known = saved.floats("known", (n,), 0.0, nan=True)
        restart, exact, shaped = (saved.flag(name) for name in ("restart", "exact", "shaped"))
        made = Fitting(data._replace(known=known), restart, exact, shaped)
        made.journal.steps = saved.integer("steps", 0, MOST_STEPS)
        return made

    def repeat(self, last: Settings, fixed: Fixed) -> None:
        """Take the steps again that had been taken."""
        steps, self.journal = self.journal.steps, Journal()
        if not steps:
            return
        self.journal.spend(steps=steps)
        try:
            self.carry_on(last, fixed)
        except (Paused, NumericalError):
            return
