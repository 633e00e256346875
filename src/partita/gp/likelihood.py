"""How likely settings of a Gaussian process are, given data: the loss that a fit lowers.

Notation: P points, n_j evaluations of point j with mean ȳ_j, N = Σ n_j, r_j the noise variance
there over the overall one, S the sum of squares within points over r_j, R the kernel matrix with
k(x, x) = 1, τ the noise variance over the amplitude's square, A = R + diag(τ r_j/n_j), or the told
variance over the amplitude's square instead of τ r_j/n_j.
"""

from __future__ import annotations

import math
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt

from partita._types import FloatArray

from . import _loops
from .data import MOST_VARIANCE, Data
from .journal import Journal
from .settings import LEAST_NOISE, MOST_NOISE, Fixed, Settings, noise_ratio
from .shapes import IDENTITY, Frame, Shape

#: Bounds of the lengthscales, in sides of the domain.
SHORTEST, LONGEST = 0.01, 10.0
#: Weak priors, normal in the logarithm: their middle and spread.
SCALE_PRIOR = (math.log(0.5), 0.7)
#: Above this number of dimensions the middle of the lengthscales' prior grows as √d.
WIDENS_FROM = 10
NOISE_PRIOR = (math.log(0.05), 3.0)
#: Added to the diagonal of A: rounding.
JITTER = 1e-9
#: Curvatures below this are taken for this: a draw must not leave where the fit looked.
LEAST_CURVATURE = 0.5
#: Given noise below this part of the values' spread says nothing about the amplitude.
LITTLE_NOISE = 0.01
#: Iterations of the search for the best settings.
ITERATIONS = 20
#: Above this number of dimensions a fit takes short cuts, so that it does not hold up an ask.
MANY = 10
#: The loss where the data cannot be factorised.
FAILED = 1e100
#: Bounds of the logarithm of the amplitude's square, in a unit of the values' own.
SQUARES = (-280.0, 280.0)
#: Where the place of a shape in its frame may lie, and its weak normal prior.
CENTRES, SIZES = (-20.0, 20.0), (math.log(1e-2), math.log(1e2))
SHAPE_PRIOR = (0.0, 2.0)


def scale_prior(dim: int) -> tuple[float, float]:
    """Middle and spread of the prior of the logarithm of a lengthscale.

    Points are farther apart in more dimensions, by √d (Hvarfner et al. 2024, "Vanilla Bayesian
    optimization performs great in high dimensions").
    """
    middle, spread = SCALE_PRIOR
    return middle + 0.5 * math.log(dim / WIDENS_FROM if dim > WIDENS_FROM else 1.0), spread


def step_cost(points: int, dim: int) -> float:
    """About how many microseconds one evaluation of the likelihood takes."""
    return 100.0 + 1.2e-4 * points**3 + (0.015 + 0.002 * dim) * points**2


class Optimum(NamedTuple):
    """Where a search for the least loss has ended."""

    loss: float
    form: int
    vector: FloatArray


class SettingsPosterior:
    """The negative log posterior of the settings, the mean at its best.

    A vector is the logarithms of the lengthscales and of τ; with a frame, the place of the shape in
    it; where noise was told, the logarithm of the amplitude's square, which is at its best
    elsewhere.
    """

    def __init__(
        self,
        data: Data,
        fixed: Fixed,
        most_noise: float = MOST_NOISE,
        frame: Frame | None = None,
        journal: Journal | None = None,
    ) -> None:
        self._raw, self._fixed, self._frame = data, fixed, frame
        self._most_noise, self._journal = most_noise, Journal() if journal is None else journal
        self._total = float(data.counts.sum())
        #: Evaluations over noise ratios; infinite where the noise was told, which τ says nothing
        #: about.
        self._plays = np.where(np.isnan(data.known), data.counts / data.ratios, np.inf)
        self._loudness = float(((data.counts - 1.0) * np.log(data.ratios)).sum())
        self._dim = dim = data.points.shape[1]
        #: The vector where it is given; the rest of it is free.
        self._given = np.full(dim + 1, np.nan)
        if fixed.scales is not None:
            self._given[:-1] = np.log(fixed.scales)
        #: The noise, if the amplitude is to follow from it and τ.
        self._tied: float | None = None
        if fixed.noise_std is not None:
            spread = float(np.std(data.means))
            if fixed.amplitude is not None:
                self._given[-1] = math.log(noise_ratio(fixed.noise_std, fixed.amplitude))
            elif fixed.noise_std < LITTLE_NOISE * spread:  # too little to tell an amplitude from
                self._given[-1] = math.log(noise_ratio(fixed.noise_std, spread))
            else:
                self._tied = fixed.noise_std
        #: Whether the amplitude is searched for, and not at its best in closed form.
        self._searched = data.told and fixed.amplitude is None and self._tied is None
        extra = 2 * (frame is not None) + self._searched
        self._given = np.append(self._given, np.full(extra, np.nan))
        self._free = np.isnan(self._given)

    @property
    def _squares(self) -> FloatArray:
        """Squared differences of the points, (d, P, P)."""
        points = self._raw.points

        def compute() -> FloatArray:
            differences = points[:, None, :] - points[None, :, :]
            return np.ascontiguousarray(np.moveaxis(differences**2, -1, 0))

        return cast(FloatArray, self._journal.shared("squares", points, compute))

    @property
    def tied(self) -> bool:
        """Whether the amplitude follows from the noise, which was given, and τ."""
        return self._tied is not None

    def _bounds(self) -> list[tuple[float, float]]:
        """Where the search may look."""
        limits = [(math.log(SHORTEST), math.log(LONGEST))] * self._dim
        limits.append((math.log(LEAST_NOISE), math.log(self._most_noise)))
        if self._frame is not None:
            limits += [CENTRES, SIZES]
        if self._searched:
            limits.append(SQUARES)
        return [
            limit if free else (float(given), float(given))
            for limit, free, given in zip(limits, self._free, self._given, strict=True)
        ]

    def descend(
        self, vector: FloatArray, form: int, iterations: int = ITERATIONS, place: Shape = IDENTITY
    ) -> Optimum:
        """Lower the loss from a vector of lengthscales and τ, with what is given put in.

        With a frame, from the shape `place`.
        """
        from scipy.optimize import minimize

        def search() -> FloatArray:
            result = minimize(
                self.step,
                self._started(vector, place),
                args=(form,),
                jac=True,
                method="L-BFGS-B",
                bounds=self._bounds(),
                options={"maxiter": iterations},
            )
            return np.append(result.x, result.fun)

        found = self._journal.section(search)
        loss = float(found[-1])
        return Optimum(loss if loss < FAILED else math.inf, form, found[:-1].copy())

    def step(self, vector: FloatArray, form: int) -> tuple[float, FloatArray]:
        """The loss, as a step of the journal."""
        cost = step_cost(len(self._raw.means), self._dim)
        both = self._journal.step(cost, lambda: np.append(*self.loss(vector, form)[::-1]))
        return float(both[-1]), both[:-1].copy()

    def _started(self, vector: FloatArray, place: Shape) -> FloatArray:
        """A vector with what the user fixed put in, and no more noise than may be."""
        noise = min(float(vector[self._dim]), math.log(self._most_noise))
        parts: list[npt.ArrayLike] = [vector[: self._dim], [noise]]
        shape = place
        if self._frame is not None:
            low, high = np.array([CENTRES, SIZES]).T
            at = np.clip(self._frame.place(place), low, high)
            parts.append(at)
            shape = self._frame.shape(at)
        if self._searched:
            spread = float(np.var(shape.forward(self._raw.means)))
            parts.append([math.log(max(spread, 1e-300))])
        return np.where(self._free, np.hstack(parts), self._given)

    def vector_of(self, settings: Settings) -> FloatArray:
        """The vector of settings for shaped data, without a frame."""
        amplitude = [2.0 * math.log(settings.amplitude)] if self._searched else []
        return np.append(settings.vector, amplitude)

    def _shape(self, vector: FloatArray) -> Shape:
        if self._frame is None:
            return IDENTITY
        return self._frame.shape(vector[self._dim + 1 : self._dim + 3])

    def _square(self, best: float, vector: FloatArray) -> float:
        """The amplitude's square: given, or by the given noise, searched for, or the best."""
        if self._fixed.amplitude is not None:
            return self._fixed.amplitude**2
        if self._tied is not None:
            return self._tied**2 / math.exp(vector[self._dim])
        return math.exp(vector[-1]) if self._searched else best

    def loss(self, vector: FloatArray, form: int) -> tuple[float, FloatArray]:
        """Value and gradient."""
        from scipy.linalg import LinAlgError, blas, cholesky, lapack

        dim, shape = self._dim, self._shape(vector)
        data = shape.data(self._raw)
        points, total, within = len(data.counts), self._total, data.within_points()
        scales, noise = np.exp(vector[:dim]), math.exp(vector[dim])
        kernel, slope = _loops.matern_slopes(self._squares, 1.0 / scales**2, form)
        told = None
        if data.told:  # never where the amplitude is at its best in closed form
            scale = self._square(1.0, vector)
            told = np.where(np.isnan(data.known), 0.0, data.known)
            told = np.minimum(told, MOST_VARIANCE * scale) / scale
            kernel[np.diag_indices(points)] += told
        kernel[np.diag_indices(points)] += noise / self._plays + JITTER
        try:
            factor = cholesky(kernel, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            return FAILED, np.zeros(len(vector))
        inverse, _ = lapack.dpotri(factor, lower=1)
        ones = blas.dsymv(1.0, inverse, np.ones(points), lower=1)
        residual = data.means - float(ones @ data.means) / float(ones.sum())
        weights = blas.dsymv(1.0, inverse, residual, lower=1)
        misfit = float(residual @ weights) + within / noise
        square = self._square(max(misfit / total, 1e-300), vector)
        value = 0.5 * (
            total * math.log(square)
            + misfit / square
            + 2.0 * float(np.log(np.diagonal(factor)).sum())
            + (total - points) * vector[dim]
            + self._loudness
        )
        gradient = np.zeros(len(vector))
        gradient[: dim + 1] = _loops.likelihood_slopes(
            inverse, weights, square, slope, self._squares, self._plays
        )
        gradient[:dim] /= scales**2
        gradient[dim] = gradient[dim] * noise + 0.5 * (total - points - within / noise / square)
        if self._tied is not None or self._searched:
            by_square = 0.5 * (total - misfit / square)
            if told is not None:
                excess = np.diagonal(inverse) - weights**2 / square
                by_square -= 0.5 * float(excess @ told)
            if self._tied is not None:  # the amplitude falls as τ rises
                gradient[dim] -= by_square
            else:
                gradient[-1] = by_square
        if not shape.identity:
            jacobian, by_shape = self._of_shape(
                shape, data, inverse, weights / square, noise, square, told
            )
            value += jacobian
            gradient[dim + 1 : dim + 3] = by_shape
        for part, (middle, spread) in self._priors():
            away = (vector[part] - middle) / spread
            value += 0.5 * float(away @ away)
            gradient[part] += away / spread
        gradient[~self._free] = 0.0
        return float(value), gradient

    def _priors(self) -> list[tuple[slice, tuple[float, float]]]:
        dim = self._dim
        priors = [(slice(0, dim), scale_prior(dim)), (slice(dim, dim + 1), NOISE_PRIOR)]
        return priors + [(slice(dim + 1, dim + 3), SHAPE_PRIOR)] * (self._frame is not None)

    def _of_shape(
        self,
        shape: Shape,
        data: Data,
        inverse: FloatArray,
        by_mean: FloatArray,
        noise: float,
        square: float,
        told: FloatArray | None,
    ) -> tuple[float, FloatArray]:
        """The Jacobian's part of the loss, and the gradient by the place of the shape.

        With u = (ȳ − c)/s: ∂z/∂log s = −u/√(1 + u²), ∂z/∂c = −g', and for log g':
        ∂/∂log s = −1/(1 + u²), ∂/∂c = u/(1 + u²)/s. Squares within points, and variances that were
        told, scale with g'².
        """
        assert self._frame is not None
        counts = data.counts
        away = (self._raw.means - shape.centre) / shape.size
        root = np.sqrt(1.0 + away * away)
        slope = 1.0 / (shape.size * root)
        log_slope = np.stack([away / root**2 / shape.size, -1.0 / root**2])
        shaped = np.stack([-slope, -away / root])
        by_log_slope = data.within / data.ratios / (noise * square) - counts
        if told is not None:
            by_log_slope = by_log_slope + (np.diagonal(inverse) - by_mean**2 * square) * told
        by_place = shaped @ by_mean + log_slope @ by_log_slope
        by_place[0] *= self._frame.spread
        return -float((counts * np.log(slope)).sum()), np.asarray(by_place)

    def settings(self, vector: FloatArray, form: int) -> Settings:
        """All settings, mean and amplitude included."""
        scales, noise = np.exp(vector[: self._dim]), math.exp(vector[self._dim])
        shape = self._shape(vector)
        data, given = shape.data(self._raw), self._square(1.0, vector)
        cost = step_cost(len(data.means), self._dim)
        mean, square = self._journal.step(
            cost, lambda: np.array(profile(data, scales, noise, form, given))
        ).tolist()
        square = self._square(square, vector)
        return Settings(scales, noise, form, mean, math.sqrt(square), shape)

    def spread(self, vector: FloatArray, form: int) -> FloatArray:
        """H^(−1/2) of lengthscales and τ, H the curvature by differences of the gradient."""
        found = self._rough_spread if self._dim > MANY else self._whole_spread
        return self._journal.section(lambda: found(vector, form)).copy()

    def _whole_spread(self, vector: FloatArray, form: int) -> FloatArray:
        """The same with the curvature in all directions."""
        size, step = self._dim + 1, 1e-3
        varied = self._free[:size]
        curvature = np.zeros((size, size))
        for i in np.flatnonzero(varied):
            shift = np.zeros(len(vector))
            shift[i] = step
            above = self.step(vector + shift, form)[1][:size]
            curvature[i] = (above - self.step(vector - shift, form)[1][:size]) / (2 * step)
        free = np.ix_(varied, varied)
        values, vectors = np.linalg.eigh(0.5 * (curvature + curvature.T)[free])
        root = np.zeros((size, size))
        root[free] = vectors / np.sqrt(np.maximum(values, LEAST_CURVATURE))
        return root

    def _rough_spread(self, vector: FloatArray, form: int) -> FloatArray:
        """The same from two differences instead of d + 1: a diagonal of the rows' sums.

        One moves all lengthscales together, the other τ. A lengthscale that the data say nothing
        of varies as in its prior.
        """
        size, step = self._dim + 1, 1e-3
        shifts = np.zeros((2, len(vector)))
        shifts[0, : self._dim], shifts[1, self._dim] = step, step
        rises = [
            (self.step(vector + shift, form)[1] - self.step(vector - shift, form)[1]) / (2 * step)
            for shift in shifts
        ]
        curvature = np.append(rises[0][: self._dim], rises[1][self._dim])
        prior = scale_prior(self._dim)[1]
        least = np.append(np.full(self._dim, 1.0 / prior**2), LEAST_CURVATURE)
        root = 1.0 / np.sqrt(np.maximum(curvature, least))
        return np.diag(np.where(self._free[:size], root, 0.0))


def loss_of(data: Data, settings: Settings, fixed: Fixed, journal: Journal | None = None) -> float:
    """The negative log posterior of settings by shaped data, with mean and amplitude at their best.

    Where noise was told, the amplitude is that of the settings. With a `journal`, it is one step.
    """
    posterior = SettingsPosterior(data, fixed, journal=journal)
    return posterior.step(posterior.vector_of(settings), settings.form)[0]


class Profile(NamedTuple):
    """The most likely mean and square of the amplitude, given the other settings."""

    mean: float
    square: float


def profile(
    data: Data, scales: FloatArray, noise: float, form: int, square: float = 1.0
) -> Profile:
    """The most likely mean and amplitude, given lengthscales, τ and form.

    Noise that was told counts over `square`.
    """
    from scipy.linalg import cho_solve, cholesky

    scaled = data.points / scales
    kernel = _loops.matern(scaled, scaled, form)
    kernel[np.diag_indices(len(kernel))] += data.diagonal(noise, square) + JITTER
    factor = cholesky(kernel, lower=True, overwrite_a=True, check_finite=False)
    ones = cho_solve((factor, True), np.ones(len(kernel)))
    mean = float(ones @ data.means) / float(ones.sum())
    residual = data.means - mean
    misfit = float(residual @ cho_solve((factor, True), residual))
    best = (misfit + data.within_points() / noise) / float(data.counts.sum())
    return Profile(mean, max(best, 1e-300))
