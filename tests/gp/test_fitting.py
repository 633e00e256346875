"""Fitting a Gaussian process: against SciPy's densities, scikit-learn, differences and samples."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from support.draws import case, replicates, sample, start

from partita.gp import fitting, likelihood
from partita.gp.data import Data, uniform_noise
from partita.gp.fitting import EXACT_NOISE, fit
from partita.gp.likelihood import profile
from partita.gp.settings import Fixed, first_settings
from partita.gp.shapes import frame_of
from partita.model.kernels import Matern

GIVEN = [Fixed(), Fixed(amplitude=1.5), Fixed(noise_std=0.4)]


def prior(vector):
    out = 0.0
    for part, (middle, spread) in (
        (vector[:-1], likelihood.SCALE_PRIOR),
        (vector[-1:], likelihood.NOISE_PRIOR),
    ):
        out += 0.5 * float((((part - middle) / spread) ** 2).sum())
    return out


def exact(points, where, values, vector, form, mean, square):
    """−log density of all single observations, by SciPy, and the priors."""
    points = points[where]
    kernel = Matern(form + 0.5, np.exp(vector[:-1]))(points)
    same = where[:, None] == where[None, :]
    covariance = kernel + likelihood.JITTER * same + math.exp(vector[-1]) * np.eye(len(points))
    density = multivariate_normal(np.full(len(points), mean), square * covariance)
    return -density.logpdf(values) + prior(vector)


@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("form", [1, 2])
@pytest.mark.parametrize("replicated", [False, True])
@pytest.mark.parametrize("fixed", GIVEN)
def test_loss_is_the_density_of_single_observations(dim, form, replicated, fixed):
    points, where, values, data = case(dim, replicated)
    posterior = likelihood.SettingsPosterior(data, fixed)
    rng = np.random.default_rng(1)
    differences = []
    for _ in range(4):
        vector = np.append(rng.normal(-1, 0.5, dim), rng.normal(-2, 1))
        settings = posterior.settings(vector, form)
        loss = posterior.loss(vector, form)[0]
        square = settings.amplitude**2
        naive = exact(points, where, values, vector, form, settings.mean, square)
        differences.append(loss - naive)
        # no other mean, nor amplitude if that is free, is more likely
        for shift in (-0.01, 0.01):
            other = settings.mean + shift
            assert exact(points, where, values, vector, form, other, square) > naive
            if fixed == Fixed():
                other = square * (1 + shift)
                assert exact(points, where, values, vector, form, settings.mean, other) > naive
    np.testing.assert_allclose(differences, differences[0], atol=1e-6)


@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("form", [1, 2])
@pytest.mark.parametrize("fixed", GIVEN)
def test_gradient_is_the_difference_of_losses(dim, form, fixed):
    *_, data = case(dim, True)
    posterior = likelihood.SettingsPosterior(data, fixed)
    vector = np.append(np.linspace(-1.5, -0.5, dim), -1.7)
    gradient = posterior.loss(vector, form)[1]
    for i in range(dim + 1):
        shift = np.zeros(dim + 1)
        shift[i] = 1e-5
        above, below = (posterior.loss(vector + s, form)[0] for s in (shift, -shift))
        assert gradient[i] == pytest.approx((above - below) / 2e-5, rel=1e-5, abs=1e-6)


# -- shapes, noise by place, and noise that was told -----------------------------------------------

#: Noise ratios of nine points.
RATIOS = np.geomspace(0.05, 20.0, 9)


def uneven(dim, ratios, known, single=False):
    """Nine points, with ratios or told noise if asked to; the latter at two of them as well."""
    points, where, values, data = case(dim, not single)
    if ratios:
        data = data._replace(ratios=RATIOS)
    if known:
        again = np.array([0, 2, 5])
        told = data.take(again)._replace(
            counts=np.ones(3),
            means=data.means[again] + np.array([0.4, -0.1, 0.2]),
            within=np.zeros(3),
            ratios=np.ones(3),
            known=np.array([0.3, 0.01, 1.5]),
        )
        rest = np.array([0, 1, 2, 3, 4, 6, 7, 8])  # 5 has told noise only
        data = Data(*(np.concatenate(pair) for pair in zip(data.take(rest), told, strict=True)))
    return points, where, values, data


KINDS = [
    (frame, ratios, known)
    for frame in (False, True)
    for ratios in (False, True)
    for known in (False, True)
]


@pytest.mark.parametrize(("frame", "ratios", "known"), KINDS)
@pytest.mark.parametrize("fixed", [*GIVEN, Fixed(noise_std=0.01), Fixed(np.array([0.2, 0.5]), 2)])
def test_gradient_of_every_kind_of_data_is_the_difference_of_losses(frame, ratios, known, fixed):
    *_, data = uneven(2, ratios, known)
    posterior = likelihood.SettingsPosterior(
        data, fixed, frame=frame_of(data.means) if frame else None
    )
    place = np.array([0.7, -0.6] * frame)
    vector = np.concatenate([[-1.1, -0.6, -1.7], place, [0.9] * posterior._searched])
    vector = np.where(posterior._free, vector, posterior._given)
    assert len(vector) == 3 + 2 * frame + (known and fixed.amplitude is None and not posterior.tied)
    for form in fitting.FORMS:
        gradient = posterior.loss(vector, form)[1]
        for i in np.flatnonzero(posterior._free):
            shift = np.zeros(len(vector))
            shift[i] = 1e-5
            above, below = (posterior.loss(vector + s, form)[0] for s in (shift, -shift))
            assert gradient[i] == pytest.approx((above - below) / 2e-5, rel=1e-5, abs=1e-6)
        assert (gradient[~posterior._free] == 0.0).all()
        assert (gradient[posterior._free] != 0.0).all()


def density(points, noise, values, vector, form, mean, square):
    """−log density of values at points, with noise of given variances, by SciPy, and the priors."""
    kernel = Matern(form + 0.5, np.exp(vector[:-1]))(points)
    same = (points[:, None, :] == points[None, :, :]).all(axis=2)
    covariance = square * (kernel + likelihood.JITTER * same) + np.diag(noise)
    normal = multivariate_normal(np.full(len(points), mean), covariance)
    return -normal.logpdf(values) + prior(vector)


def losses_and_densities(posterior, data, where, values, place=()):
    """Losses for several vectors, and what they are of: all single values."""
    unknown, told = np.isnan(data.known), ~np.isnan(data.known)
    rng, pairs = np.random.default_rng(3), []
    for form in (1, 2, 2, 1, 2):
        vector = np.append(rng.normal(-1, 0.5, data.points.shape[1]), rng.normal(-2, 1))
        log_square = rng.normal(1.0, 0.5)
        whole = np.concatenate([vector, place, [log_square] * posterior._searched])
        settings = posterior.settings(whole, form)
        square, shape = settings.amplitude**2, settings.shape
        if posterior._searched:
            assert square == pytest.approx(math.exp(log_square))
        points = np.concatenate([data.points[where], data.points[told]])
        ratios = np.append(data.ratios[where], np.ones(told.sum()))
        noise = square * settings.noise * ratios
        noise[len(where) :] = data.known[told]
        assert unknown[where].all()
        y = np.append(values, data.means[told])
        naive = density(points, noise, shape.forward(y), vector, form, settings.mean, square)
        if not shape.identity:
            naive -= np.log(shape.slope(y)).sum()
            away = (np.array(place) - likelihood.SHAPE_PRIOR[0]) / likelihood.SHAPE_PRIOR[1]
            naive += 0.5 * away @ away
        pairs.append((posterior.loss(whole, form)[0], naive))
    return np.array(pairs).T


@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("fixed", GIVEN)
@pytest.mark.parametrize(("ratios", "known"), [(True, False), (False, True), (True, True)])
def test_loss_of_uneven_noise_is_the_density_of_single_observations(dim, fixed, ratios, known):
    points, where, values, data = uneven(dim, ratios, known)
    if known:  # the last point but three of `points` is gone, and those after it move up
        values, where = values[where != 5], where[where != 5]
        where = where - (where > 5)
    np.testing.assert_array_equal(data.points[where[0]], points[0])
    losses, naive = losses_and_densities(
        likelihood.SettingsPosterior(data, fixed), data, where, values
    )
    np.testing.assert_allclose(losses - losses[0], naive - naive[0], atol=1e-5)
    assert np.ptp(naive) > 1.0


def test_loss_of_ratios_counts_their_determinant():
    """Ratios differ between two maps of the noise: the constant terms count there."""
    _, where, values, data = uneven(2, True, False)
    gaps = []
    for ratios in (np.ones(9), RATIOS, RATIOS[::-1] ** 0.5):
        other = data._replace(ratios=ratios)
        posterior = likelihood.SettingsPosterior(other, Fixed(amplitude=1.5))
        losses, naive = losses_and_densities(posterior, other, where, values)
        gaps += list(losses - naive)
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-6)


@pytest.mark.parametrize("fixed", GIVEN)
@pytest.mark.parametrize("ratios", [False, True])
def test_loss_of_a_shape_is_the_density_with_its_jacobian(fixed, ratios):
    """Of single values: means of several are shaped to first order only."""
    _, where, values, data = uneven(2, ratios, False, single=True)
    frame, gaps = frame_of(data.means), []
    for place in ((0.0, 0.0), (2.0, -1.5), (-3.0, 1.0)):
        posterior = likelihood.SettingsPosterior(data, fixed, frame=frame)
        losses, naive = losses_and_densities(posterior, data, where, values, place)
        gaps += list(losses - naive)
    np.testing.assert_allclose(gaps, gaps[0], atol=1e-6)
    plain = likelihood.SettingsPosterior(data, fixed)  # and so can the identity be compared with it
    losses, naive = losses_and_densities(plain, data, where, values)
    np.testing.assert_allclose(losses - naive, gaps[0], atol=1e-6)


def drawn(seed, number=60):
    """Points, and values of a process of amplitude 2 with noise at them."""
    rng = np.random.default_rng(seed)
    points = rng.random((number, 2))
    return points, sample(points, np.array([0.4, 0.6]), 0.3, 2, rng, amplitude=2.0)[1]


def shape_of(points, values):
    data = uniform_noise(points, np.ones(len(values)), values, np.zeros(len(values)))
    return fit(data, start(2), Fixed(), restart=True, shaped=True).best.shape


def test_values_of_a_process_stay_as_they_are():
    assert sum(shape_of(*drawn(seed)).identity for seed in range(6)) >= 5


@pytest.mark.parametrize("sign", [-1.0, 1.0])
@pytest.mark.parametrize("scale", [1e-6, 1e5])
def test_values_that_span_orders_of_magnitude_are_shaped(sign, scale):
    """Both skews: the shape makes the exponential of a process's values into such values."""
    for seed in range(3):
        points, values = drawn(seed)
        y = sign * scale * np.exp(values) + 7.0 * scale
        shape = shape_of(points, y)
        assert not shape.identity
        assert abs(np.corrcoef(shape.forward(y), values)[0, 1]) > 0.95
        assert abs(np.corrcoef(y, values)[0, 1]) < 0.85
        still = uniform_noise(points, np.ones(len(y)), y, 0 * y)
        assert fit(still, start(2), Fixed(), restart=True).best.shape.identity  # not asked for


def test_few_points_are_not_shaped():
    points, values = drawn(0, fitting.FEWEST_SHAPED - 1)
    assert shape_of(points, np.exp(9 * values)).identity


@pytest.mark.parametrize("form", [1, 2])
def test_loss_is_scikit_learns(form):
    from sklearn.gaussian_process import GaussianProcessRegressor, kernels

    points, _, _, data = case(3, False)
    posterior = likelihood.SettingsPosterior(data, Fixed())
    found = []
    for vector in (np.array([-1.0, -0.3, -0.8, -2.0]), np.array([-0.2, -1.3, 0.1, -0.5])):
        settings = posterior.settings(vector, form)
        kernel = settings.amplitude**2 * (
            kernels.Matern(settings.scales, nu=form + 0.5)
            + kernels.WhiteKernel(settings.noise + likelihood.JITTER)
        )
        model = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None)
        model.fit(points, data.means - settings.mean)
        theirs = -model.log_marginal_likelihood(model.kernel_.theta) + prior(vector)
        found.append(posterior.loss(vector, form)[0] - theirs)
    assert found[0] == pytest.approx(found[1], abs=1e-8)


def test_profile_is_weighted_least_squares():
    *_, data = case(2, True)
    scales = np.array([0.3, 0.5])
    kernel = Matern(2.5, scales)(data.points) + np.diag(0.2 / data.counts + likelihood.JITTER)
    inverse, ones = np.linalg.inv(kernel), np.ones(len(kernel))
    mean = ones @ inverse @ data.means / (ones @ inverse @ ones)
    misfit = (data.means - mean) @ inverse @ (data.means - mean)
    square = (misfit + data.within.sum() / 0.2) / data.counts.sum()
    assert profile(data, scales, 0.2, 2) == pytest.approx((mean, square))


@pytest.mark.parametrize("scale", [0.004, 0.3, 25.0])  # also beyond where a fit looks
def test_a_given_kernel_is_used(scale):
    *_, data = case(2, True)
    scales = np.array([scale, 0.4])
    found = fit(data, start(2), Fixed(scales=scales, form=1), restart=True)
    np.testing.assert_allclose(found.best.scales, scales, rtol=1e-12)
    assert found.best.form == 1
    drawn = found.draw(np.random.default_rng(0), 1.0)
    np.testing.assert_allclose(drawn.scales, scales, rtol=1e-12)
    assert drawn.noise != found.best.noise


@pytest.mark.parametrize("std", [1e-7, 0.3, 1.0])
def test_given_noise_and_amplitude_are_used(std):
    *_, data = case(2, std > 0.1)
    overall = fit(data, start(2), Fixed(noise_std=std)).best
    if std > 0.1:
        assert overall.noise_std == pytest.approx(std)
    else:  # as little as can be computed with
        assert overall.noise == pytest.approx(fitting.LEAST_NOISE)
    assert 0.3 < overall.amplitude < 20
    both = Fixed(noise_std=0.3, amplitude=3.0)
    found = fit(data, start(2), both).best
    assert (found.amplitude, found.noise_std) == (3.0, pytest.approx(0.3))


def test_draws_keep_given_noise_and_vary_the_amplitude():
    *_, data = case(2, True)
    fixed, rng = Fixed(noise_std=0.3), np.random.default_rng(0)
    found = fit(data, start(2), fixed)
    sizes = []
    for _ in range(20):
        drawn = found.draw(rng, 1.0)
        assert drawn.noise_std == pytest.approx(0.3)
        sizes.append(drawn.amplitude)
    assert min(sizes) < found.best.amplitude < max(sizes)


def test_a_given_amplitude_does_not_spoil_the_noise():
    rng = np.random.default_rng(2)
    points = rng.random((60, 1))
    where, values = sample(points, np.array([0.3]), 0.1, 2, rng, np.full(60, 3))
    found = fit(replicates(points, where, values), start(1), Fixed(amplitude=20.0))
    assert 0.07 < found.best.noise_std < 0.14


def test_fit_recovers_what_the_data_was_drawn_from():
    scales = np.array([0.15, 0.6])
    logs, widths = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        points = rng.random((150, 2))
        where, values = sample(points, scales, 0.6, 2, rng, mean=-7.0, amplitude=3.0)
        data = replicates(points, where, values)
        found = fit(data, start(2), Fixed(), restart=True)
        best = found.best
        logs.append([*np.log(best.scales / scales), math.log(best.noise_std / 0.6)])
        assert 1.2 < best.amplitude < 7.0
        assert abs(best.mean + 7.0) < 4.0
        few = Data(*(part[:20] for part in data))
        widths.append([np.linalg.norm(fit(few, start(2), Fixed()).spread)])
        assert np.linalg.norm(found.spread) < 0.7 * widths[-1][0]
    assert np.abs(np.array(logs)).max() < math.log(2)


def test_what_is_known_to_be_exact_is_rough_not_noisy():
    x = np.linspace(0, 1, 40)[:, None]
    data = uniform_noise(x, np.ones(40), np.sin(60 * x[:, 0]) + np.cos(47 * x[:, 0]), np.zeros(40))
    start = replace(first_settings(1, Fixed()), noise=1.0)
    found = fit(data, start, Fixed(), exact=True).best
    assert found.noise <= EXACT_NOISE * (1 + 1e-9)
    assert found.scales[0] < 0.2
    assert fit(data, start, Fixed()).best.noise > 0.1  # from there, it is taken for noise
