"""Learning a Gaussian process's settings from data: amplitude, lengthscales, noise and mean.

Notation: P distinct points, n_j plays of point j with mean ȳ_j, N = Σ n_j, S the sum of squares
within points, R the kernel matrix with k(x, x) = 1, τ the noise variance over the amplitude's
square, A = R + diag(τ/n_j).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np

from partita._threads import one_thread
from partita._types import FloatArray
from partita.errors import NumericalError

from . import _loops

Number = TypeVar("Number", float, FloatArray)

#: Smoothnesses that are tried, by their number in `_loops.matern`: 1 is ν = 3/2, 2 is ν = 5/2.
FORMS = (1, 2)
#: Bounds of the lengthscales, in sides of the domain, and of the noise ratio τ.
SHORTEST, LONGEST = 0.01, 10.0
LEAST_NOISE, MOST_NOISE = 1e-6, 1e4
#: The most that τ can be where values are known to have no noise.
EXACT_NOISE = 1e-4
#: Weak priors, normal in the logarithm: their middle and spread.
SCALE_PRIOR = (math.log(0.5), 0.7)
NOISE_PRIOR = (math.log(0.05), 3.0)
#: Added to the diagonal of A: rounding.
JITTER = 1e-9
#: Curvatures below this are taken for this: a draw must not leave where the fit looked.
LEAST_CURVATURE = 0.5
#: Given noise below this part of the values' spread says nothing about the amplitude.
LITTLE_NOISE = 0.01
#: Iterations of the search for the best settings.
ITERATIONS = 20


class Data(NamedTuple):
    """Replicate means: points (P, d) in the unit cube, counts, means, and squares within, (P,)."""

    points: FloatArray
    counts: FloatArray
    means: FloatArray
    within: FloatArray


@dataclass(frozen=True)
class Settings:
    """What a Gaussian process assumes: GP(mean, amplitude² k), noise of variance amplitude² τ."""

    scales: FloatArray
    noise: float
    form: int
    mean: float
    amplitude: float

    @property
    def vector(self) -> FloatArray:
        """Logarithms of the lengthscales and of τ, (d + 1,)."""
        return np.append(np.log(self.scales), math.log(self.noise))

    @property
    def noise_std(self) -> float:
        """Standard deviation of the noise."""
        return self.amplitude * math.sqrt(self.noise)

    def in_units(self, value: Number) -> Number:
        """A value, or values, in amplitudes from the mean, in the units of what was told."""
        return self.mean + self.amplitude * value


@dataclass(frozen=True)
class Fixed:
    """What the user gave, and is not estimated."""

    scales: FloatArray | None = None
    form: int | None = None
    noise_std: float | None = None
    amplitude: float | None = None


def first_settings(dim: int, fixed: Fixed) -> Settings:
    """Settings before anything is learned."""
    scales = np.full(dim, 0.3) if fixed.scales is None else fixed.scales
    amplitude = 1.0 if fixed.amplitude is None else fixed.amplitude
    noise = 0.1 if fixed.noise_std is None else _ratio(fixed.noise_std, amplitude)
    return Settings(scales, noise, 2 if fixed.form is None else fixed.form, 0.0, amplitude)


@dataclass(frozen=True)
class Fit:
    """The most likely settings, and how far off they may be."""

    best: Settings
    #: A matrix whose product with white noise is a draw of `Settings.vector` around the best.
    spread: FloatArray
    #: Whether the noise was given, so that amplitude and τ go together.
    tied: bool = False

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
    data: Data, start: Settings, fixed: Fixed, restart: bool = False, exact: bool = False
) -> Fit:
    """Maximise the marginal likelihood with weak priors, from `start` and, if asked, afresh.

    Data that are `exact` have hardly any noise: what looks like it is a rough function.
    """
    posterior = _Posterior(data, fixed, EXACT_NOISE if exact else MOST_NOISE)
    starts = [start.vector]
    if restart:
        starts.append(np.append(np.full(data.points.shape[1], math.log(0.3)), math.log(0.1)))
    forms = FORMS if fixed.form is None else (fixed.form,)
    with one_thread():
        optima = [posterior.descend(vector, form) for form in forms for vector in starts]
        best = min(optima, key=lambda optimum: optimum.loss)
        if not math.isfinite(best.loss):
            raise NumericalError("the settings could not be fitted: are all points the same?")
        likely = posterior.settings(best.vector, best.form)
        return Fit(likely, posterior.spread(best.vector, best.form), posterior.tied)


class _Optimum(NamedTuple):
    """Where a search for the least loss has ended."""

    loss: float
    vector: FloatArray
    form: int


class _Posterior:
    """The negative log posterior of the settings, mean and amplitude at their best."""

    def __init__(self, data: Data, fixed: Fixed, most_noise: float = MOST_NOISE) -> None:
        self._data = data
        self._most_noise = most_noise
        self._fixed = fixed
        self._total = float(data.counts.sum())
        self._within = float(data.within.sum())
        differences = data.points[:, None, :] - data.points[None, :, :]
        self._squares = np.ascontiguousarray(np.moveaxis(differences**2, -1, 0))
        dim = data.points.shape[1]
        #: The vector where it is given; the rest of it is free.
        self._given = np.full(dim + 1, np.nan)
        if fixed.scales is not None:
            self._given[:-1] = np.log(fixed.scales)
        #: The noise, if the amplitude is to follow from it and τ.
        self._tied: float | None = None
        if fixed.noise_std is not None:
            spread = float(np.std(data.means))
            if fixed.amplitude is not None:
                self._given[-1] = math.log(_ratio(fixed.noise_std, fixed.amplitude))
            elif fixed.noise_std < LITTLE_NOISE * spread:  # too little to tell an amplitude from
                self._given[-1] = math.log(_ratio(fixed.noise_std, spread))
            else:
                self._tied = fixed.noise_std
        self._free = np.isnan(self._given)

    @property
    def tied(self) -> bool:
        """Whether the amplitude follows from the noise, which was given, and τ."""
        return self._tied is not None

    def _bounds(self) -> list[tuple[float, float]]:
        """Where the search may look."""
        limits = [(math.log(SHORTEST), math.log(LONGEST))] * (len(self._given) - 1)
        limits.append((math.log(LEAST_NOISE), math.log(self._most_noise)))
        return [
            limit if free else (float(given), float(given))
            for limit, free, given in zip(limits, self._free, self._given, strict=True)
        ]

    def descend(self, vector: FloatArray, form: int) -> _Optimum:
        """Lower the loss from a vector, with what is given put in."""
        from scipy.optimize import minimize

        result = minimize(
            self.loss,
            self._settled(vector),
            args=(form,),
            jac=True,
            method="L-BFGS-B",
            bounds=self._bounds(),
            options={"maxiter": ITERATIONS},
        )
        return _Optimum(float(result.fun), np.asarray(result.x), form)

    def _settled(self, vector: FloatArray) -> FloatArray:
        """A vector with what the user fixed put in, and no more noise than may be."""
        limited = np.append(vector[:-1], min(vector[-1], math.log(self._most_noise)))
        return np.where(self._free, limited, self._given)

    def _square(self, best: float, noise: float) -> float:
        """The amplitude's square: given, or by the given noise, or the most likely."""
        if self._fixed.amplitude is not None:
            return self._fixed.amplitude**2
        return best if self._tied is None else self._tied**2 / noise

    def loss(self, vector: FloatArray, form: int) -> tuple[float, FloatArray]:
        """Value and gradient."""
        from scipy.linalg import LinAlgError, blas, cholesky, lapack

        counts, means = self._data.counts, self._data.means
        points, total, within = len(counts), self._total, self._within
        scales, noise = np.exp(vector[:-1]), math.exp(vector[-1])
        kernel, slope = _loops.matern_slopes(self._squares, 1.0 / scales**2, form)
        kernel[np.diag_indices(points)] += noise / counts + JITTER
        try:
            factor = cholesky(kernel, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return 1e100, np.zeros(len(vector))
        inverse, _ = lapack.dpotri(factor, lower=1)
        ones = blas.dsymv(1.0, inverse, np.ones(points), lower=1)
        residual = means - float(ones @ means) / float(ones.sum())
        weights = blas.dsymv(1.0, inverse, residual, lower=1)
        misfit = float(residual @ weights) + within / noise
        square = self._square(max(misfit / total, 1e-300), noise)
        value = 0.5 * (
            total * math.log(square)
            + misfit / square
            + 2.0 * float(np.log(np.diagonal(factor)).sum())
            + (total - points) * vector[-1]
        )
        gradient = _loops.likelihood_slopes(inverse, weights, square, slope, self._squares, counts)
        gradient[:-1] /= scales**2
        gradient[-1] = gradient[-1] * noise + 0.5 * (total - points - within / noise / square)
        if self._tied is not None:  # the amplitude falls as τ rises
            gradient[-1] -= 0.5 * (total - misfit / square)
        for part, (middle, spread) in ((slice(0, -1), SCALE_PRIOR), (slice(-1, None), NOISE_PRIOR)):
            away = (vector[part] - middle) / spread
            value += 0.5 * float(away @ away)
            gradient[part] += away / spread
        gradient[~self._free] = 0.0
        return value, gradient

    def settings(self, vector: FloatArray, form: int) -> Settings:
        """All settings, mean and amplitude included."""
        scales, noise = np.exp(vector[:-1]), math.exp(vector[-1])
        mean, square = profile(self._data, scales, noise, form)
        return Settings(scales, noise, form, mean, math.sqrt(self._square(square, noise)))

    def spread(self, vector: FloatArray, form: int) -> FloatArray:
        """H^(−1/2), H the curvature of the loss by differences of its gradient."""
        size, step = len(vector), 1e-3
        free = np.ix_(self._free, self._free)
        curvature = np.zeros((size, size))
        for i in np.flatnonzero(self._free):
            shift = np.zeros(size)
            shift[i] = step
            above = self.loss(vector + shift, form)[1]
            curvature[i] = (above - self.loss(vector - shift, form)[1]) / (2 * step)
        values, vectors = np.linalg.eigh(0.5 * (curvature + curvature.T)[free])
        root = np.zeros((size, size))
        root[free] = vectors / np.sqrt(np.maximum(values, LEAST_CURVATURE))
        return root


class Profile(NamedTuple):
    """The most likely mean and square of the amplitude, given the other settings."""

    mean: float
    square: float


def profile(data: Data, scales: FloatArray, noise: float, form: int) -> Profile:
    """The most likely mean and amplitude, given lengthscales, τ and form."""
    from scipy.linalg import cho_solve, cholesky

    scaled = data.points / scales
    kernel = _loops.matern(scaled, scaled, form)
    kernel[np.diag_indices(len(kernel))] += noise / data.counts + JITTER
    factor = cholesky(kernel, lower=True, overwrite_a=True, check_finite=False)
    ones = cho_solve((factor, True), np.ones(len(kernel)))
    mean = float(ones @ data.means) / float(ones.sum())
    residual = data.means - mean
    misfit = float(residual @ cho_solve((factor, True), residual))
    square = (misfit + float(data.within.sum()) / noise) / float(data.counts.sum())
    return Profile(mean, max(square, 1e-300))


def _ratio(noise_std: float, amplitude: float) -> float:
    """τ within its bounds."""
    return float(np.clip((noise_std / amplitude) ** 2, LEAST_NOISE, MOST_NOISE))
