"""Fitting a Gaussian process: against SciPy's densities, scikit-learn, differences and samples."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from support.draws import case, replicates, sample, start

from partita.gp import fitting
from partita.gp.data import Data, uniform_noise
from partita.gp.fitting import EXACT_NOISE, Fixed, first_settings, fit, profile
from partita.model.kernels import Matern

GIVEN = [Fixed(), Fixed(amplitude=1.5), Fixed(noise_std=0.4)]


def prior(vector):
    out = 0.0
    for part, (middle, spread) in (
        (vector[:-1], fitting.SCALE_PRIOR),
        (vector[-1:], fitting.NOISE_PRIOR),
    ):
        out += 0.5 * float((((part - middle) / spread) ** 2).sum())
    return out


def exact(points, where, values, vector, form, mean, square):
    """−log density of all single observations, by SciPy, and the priors."""
    points = points[where]
    kernel = Matern(form + 0.5, np.exp(vector[:-1]))(points)
    same = where[:, None] == where[None, :]
    covariance = kernel + fitting.JITTER * same + math.exp(vector[-1]) * np.eye(len(points))
    density = multivariate_normal(np.full(len(points), mean), square * covariance)
    return -density.logpdf(values) + prior(vector)


@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("form", [1, 2])
@pytest.mark.parametrize("replicated", [False, True])
@pytest.mark.parametrize("fixed", GIVEN)
def test_loss_is_the_density_of_single_observations(dim, form, replicated, fixed):
    points, where, values, data = case(dim, replicated)
    posterior = fitting._Posterior(data, fixed)
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
    posterior = fitting._Posterior(data, fixed)
    vector = np.append(np.linspace(-1.5, -0.5, dim), -1.7)
    gradient = posterior.loss(vector, form)[1]
    for i in range(dim + 1):
        shift = np.zeros(dim + 1)
        shift[i] = 1e-5
        above, below = (posterior.loss(vector + s, form)[0] for s in (shift, -shift))
        assert gradient[i] == pytest.approx((above - below) / 2e-5, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("form", [1, 2])
def test_loss_is_scikit_learns(form):
    from sklearn.gaussian_process import GaussianProcessRegressor, kernels

    points, _, _, data = case(3, False)
    posterior = fitting._Posterior(data, Fixed())
    found = []
    for vector in (np.array([-1.0, -0.3, -0.8, -2.0]), np.array([-0.2, -1.3, 0.1, -0.5])):
        settings = posterior.settings(vector, form)
        kernel = settings.amplitude**2 * (
            kernels.Matern(settings.scales, nu=form + 0.5)
            + kernels.WhiteKernel(settings.noise + fitting.JITTER)
        )
        model = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None)
        model.fit(points, data.means - settings.mean)
        theirs = -model.log_marginal_likelihood(model.kernel_.theta) + prior(vector)
        found.append(posterior.loss(vector, form)[0] - theirs)
    assert found[0] == pytest.approx(found[1], abs=1e-8)


def test_profile_is_weighted_least_squares():
    *_, data = case(2, True)
    scales = np.array([0.3, 0.5])
    kernel = Matern(2.5, scales)(data.points) + np.diag(0.2 / data.counts + fitting.JITTER)
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
