"""Learning a Gaussian process's settings from data: amplitude, lengthscales, noise, mean, shape."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from partita._state import Saved, State
from partita._threads import one_thread
from partita._types import FloatArray
from partita.errors import NumericalError

from . import likelihood
from .data import Data
from .journal import Journal
from .likelihood import ITERATIONS, LEAST_CURVATURE, LONGEST, SHORTEST, Optimum, SettingsPosterior
from .settings import LEAST_NOISE, MOST_NOISE, Fixed, Settings, unit_of
from .shapes import frame_of

#: Added to the diagonal of a kernel matrix: rounding.
JITTER = likelihood.JITTER
#: Smoothnesses that are tried, by their number in `_loops.matern`: 1 is ν = 3/2, 2 is ν = 5/2.
FORMS = (1, 2)
#: The most that τ can be where values are known to have no noise.
EXACT_NOISE = 1e-4
#: Iterations of a search that only checks.
CHECKED = 10
#: How much more likely another shape than the identity must be, in nats, and of how many points.
EVIDENCE, FEWEST_SHAPED = 3.0, 6


@dataclass(frozen=True)
class Fit:
    """The most likely settings, and how far off they may be."""

    best: Settings
    #: A matrix whose product with white noise is a draw of `Settings.vector` around the best.
    spread: FloatArray
    #: Whether the noise was given, so that amplitude and τ go together.
    tied: bool = False

    def state(self) -> State:
        """The fit as plain data."""
        return {"best": self.best.state(), "spread": self.spread, "tied": bool(self.tied)}

    @staticmethod
    def restored(saved: Saved, dim: int) -> Fit:
        """The fit that was saved."""
        best = Settings.restored(saved.part("best"), dim)
        limit = math.sqrt(1.0 / LEAST_CURVATURE) + 1e-6
        spread = saved.floats("spread", (dim + 1, dim + 1), -limit, limit)
        return Fit(best, spread, saved.flag("tied"))

    def draw(self, random: np.random.Generator, temperature: float) -> Settings:
        """Settings from their posterior, by Laplace's approximation; the mean is the best.

        So is the amplitude, unless the noise was given: then it follows from τ.
        """
        white = random.standard_normal(len(self.spread))
        vector = self.best.vector + temperature * (self.spread @ white)
        scales = np.clip(
            np.exp(vector[:-1]),
            np.minimum(SHORTEST, self.best.scales),  # given ones may be outside
            np.maximum(LONGEST, self.best.scales),
        )
        noise = float(np.clip(math.exp(vector[-1]), LEAST_NOISE, MOST_NOISE))
        amplitude = self.best.noise_std / math.sqrt(noise) if self.tied else self.best.amplitude
        return replace(self.best, scales=scales, noise=noise, amplitude=amplitude)


def fit(
    data: Data,
    start: Settings,
    fixed: Fixed,
    restart: bool = False,
    exact: bool = False,
    shaped: bool = False,
    journal: Journal | None = None,
) -> Fit:
    """Maximise the marginal likelihood with weak priors, from `start` and, if asked, afresh.

    Data that are `exact` have hardly any noise: what looks like it is a rough function. If they may
    be `shaped`, the shape is fitted along, by the likelihood of the values as they were told (with
    the Jacobian); the identity is preferred unless another is more likely by EVIDENCE. With a
    `journal`, it stops when that says so.
    """
    unit = unit_of(data.means)
    given = unit.data(data), unit.settings(start), unit.fixed(fixed)
    found = _fit(*given, restart, exact, shaped, Journal() if journal is None else journal)
    best = unit.restored(found.best)
    if fixed.amplitude is not None:
        best = replace(best, amplitude=fixed.amplitude)  # to the last digit
    return replace(found, best=best)


def _fit(
    data: Data,
    start: Settings,
    fixed: Fixed,
    restart: bool,
    exact: bool,
    shaped: bool,
    journal: Journal,
) -> Fit:
    """The same for values in a unit of their own: the search ends where its steps are small."""
    most_noise = EXACT_NOISE if exact else MOST_NOISE
    forms = FORMS if fixed.form is None else (fixed.form,)
    frame = frame_of(data.means) if shaped and len(data.means) >= FEWEST_SHAPED else None
    warm = frame is not None and not start.shape.identity and not restart
    plain = SettingsPosterior(data, fixed, most_noise, journal=journal)
    with one_thread():
        starts = [start.vector]
        if restart:
            starts.append(np.append(np.full(data.points.shape[1], math.log(0.3)), math.log(0.1)))
        # A shape that is there already must only be no worse than a rough idea of the identity.
        many = data.points.shape[1] > likelihood.MANY
        tried = (start.form,) if warm or (many and not restart) else forms
        iterations = CHECKED if warm or many else ITERATIONS
        best = _least(plain.descend(v, form, iterations) for form in tried for v in starts)
        posterior = plain
        if frame is not None:
            by_shape = SettingsPosterior(data, fixed, most_noise, frame, journal)
            if warm:
                again, steps = ((start.form,), CHECKED) if many else (forms, ITERATIONS)
                optima = [by_shape.descend(start.vector, f, steps, start.shape) for f in again]
            else:
                top = (float(data.means.max()) - frame.middle) / frame.spread
                places = [frame.shape(np.array(ab)) for ab in ((0.0, 0.0), (top, -1.0))]
                if not start.shape.identity:
                    places.append(start.shape)
                vector = best.vector[: len(start.vector)]
                steps = iterations if many else ITERATIONS
                optima = [by_shape.descend(vector, best.form, steps, shape) for shape in places]
            other = _least(optima)
            if other.loss < best.loss - EVIDENCE:
                posterior, best = by_shape, other
        if not math.isfinite(best.loss):
            raise NumericalError("the settings could not be fitted: are all points the same?")
        likely = posterior.settings(best.vector, best.form)
        return Fit(likely, posterior.spread(best.vector, best.form), posterior.tied)


def _least(optima: Iterable[Optimum]) -> Optimum:
    return min(optima, key=lambda optimum: optimum.loss)
