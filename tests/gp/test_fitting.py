"""Fitting a Gaussian process: against SciPy's densities, scikit-learn, differences and samples."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from partita.gp import fitting as calibration
from partita.gp.fitting import EXACT_NOISE, Data, Fixed, Settings, first_settings, fit, profile
from partita.model.kernels import Matern
from partita.policies.calibrated import region as _region
from partita.policies.calibrated.proposals import Proposals
from partita.policies.calibrated.region import Moments, Region, condition

START = Settings(np.array([0.3]), 0.1, 2, 0.0, 1.0)


def start(dim):
    return Settings(np.full(dim, 0.3), 0.1, 2, 0.0, 1.0)


def sample(points, scales, noise_std, form, rng, counts=None, mean=0.0, amplitude=1.0):
    """Single observations of a draw of the process: numbers of their points, and values."""
    where = np.repeat(np.arange(len(points)), 1 if counts is None else counts)
    kernel = Matern(form + 0.5, scales)(points) + 1e-10 * np.eye(len(points))
    f = mean + amplitude * np.linalg.cholesky(kernel) @ rng.standard_normal(len(points))
    return where, f[where] + noise_std * rng.standard_normal(len(where))


def replicates(points, where, values):
    counts = np.bincount(where, minlength=len(points)).astype(float)
    means = np.bincount(where, values, len(points)) / counts
    return Data(points, counts, means, np.bincount(where, (values - means[where]) ** 2))


def prior(vector):
    out = 0.0
    for part, (middle, spread) in (
        (vector[:-1], calibration.SCALE_PRIOR),
        (vector[-1:], calibration.NOISE_PRIOR),
    ):
        out += 0.5 * float((((part - middle) / spread) ** 2).sum())
    return out


def exact(points, where, values, vector, form, mean, square):
    """−log density of all single observations, by SciPy, and the priors."""
    points = points[where]
    kernel = Matern(form + 0.5, np.exp(vector[:-1]))(points)
    same = where[:, None] == where[None, :]
    covariance = kernel + calibration.JITTER * same + math.exp(vector[-1]) * np.eye(len(points))
    density = multivariate_normal(np.full(len(points), mean), square * covariance)
    return -density.logpdf(values) + prior(vector)


def case(dim, replicated, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.random((9, dim))
    counts = rng.integers(1, 5, 9) if replicated else None
    where, values = sample(points, np.full(dim, 0.4), 0.3, 1, rng, counts, mean=5.0, amplitude=2.0)
    return points, where, values, replicates(points, where, values)


GIVEN = [Fixed(), Fixed(amplitude=1.5), Fixed(noise_std=0.4)]


@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("form", [1, 2])
@pytest.mark.parametrize("replicated", [False, True])
@pytest.mark.parametrize("fixed", GIVEN)
def test_loss_is_the_density_of_single_observations(dim, form, replicated, fixed):
    points, where, values, data = case(dim, replicated)
    posterior = calibration._Posterior(data, fixed)
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
    posterior = calibration._Posterior(data, fixed)
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
    posterior = calibration._Posterior(data, Fixed())
    found = []
    for vector in (np.array([-1.0, -0.3, -0.8, -2.0]), np.array([-0.2, -1.3, 0.1, -0.5])):
        settings = posterior.settings(vector, form)
        kernel = settings.amplitude**2 * (
            kernels.Matern(settings.scales, nu=form + 0.5)
            + kernels.WhiteKernel(settings.noise + calibration.JITTER)
        )
        model = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None)
        model.fit(points, data.means - settings.mean)
        theirs = -model.log_marginal_likelihood(model.kernel_.theta) + prior(vector)
        found.append(posterior.loss(vector, form)[0] - theirs)
    assert found[0] == pytest.approx(found[1], abs=1e-8)


def test_profile_is_weighted_least_squares():
    *_, data = case(2, True)
    scales = np.array([0.3, 0.5])
    kernel = Matern(2.5, scales)(data.points) + np.diag(0.2 / data.counts + calibration.JITTER)
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
        assert overall.noise == pytest.approx(calibration.LEAST_NOISE)
    assert 0.3 < overall.amplitude < 20
    both = Fixed(noise_std=0.3, amplitude=3.0)
    found = fit(data, start(2), both)
    assert found.best.amplitude == 3.0
    drawn = found.draw(np.random.default_rng(0), 1.0)
    known = condition(data, drawn, found.best, both).settings
    assert (known.amplitude, known.noise_std) == pytest.approx((3.0, 0.3))


def test_draws_keep_given_noise_and_vary_the_amplitude():
    *_, data = case(2, True)
    fixed, rng = Fixed(noise_std=0.3), np.random.default_rng(0)
    found = fit(data, start(2), fixed)
    sizes = []
    for _ in range(20):
        drawn = found.draw(rng, 1.0)
        assert drawn.noise_std == pytest.approx(0.3)
        known = condition(data, drawn, found.best, fixed).settings
        assert (known.amplitude, known.noise_std) == pytest.approx((drawn.amplitude, 0.3))
        sizes.append(drawn.amplitude)
    assert min(sizes) < found.best.amplitude < max(sizes)


def test_a_given_amplitude_does_not_spoil_the_noise():
    rng = np.random.default_rng(2)
    points = rng.random((60, 1))
    where, values = sample(points, np.array([0.3]), 0.1, 2, rng, np.full(60, 3))
    found = fit(replicates(points, where, values), START, Fixed(amplitude=20.0))
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


# -- the posterior of a region -----------------------------------------------------------------


def settled(data, form=2, noise=0.2):
    drawn = Settings(np.array([0.3, 0.5]), noise, form, 4.0, 2.0)
    return condition(data, drawn, drawn, Fixed())


@pytest.mark.parametrize("form", [1, 2])
def test_moments_are_a_plain_solve_and_scikit_learns(form):
    from sklearn.gaussian_process import GaussianProcessRegressor, kernels

    *_, data = case(2, True)
    known = settled(data, form)
    queries = np.random.default_rng(5).random((7, 2))
    mean, variance, rows = known.moments_at(queries)
    settings = known.settings
    kernel = Matern(form + 0.5, settings.scales)
    noise = settings.noise / data.counts + calibration.JITTER
    inverse = np.linalg.inv(kernel(data.points) + np.diag(noise))
    across = kernel(queries, data.points)
    scaled = (data.means - settings.mean) / settings.amplitude
    np.testing.assert_allclose(mean, across @ inverse @ scaled, atol=1e-9)
    naive = 1 - np.einsum("ij,jk,ik->i", across, inverse, across)
    np.testing.assert_allclose(variance, naive, atol=1e-9)
    np.testing.assert_allclose(rows.T @ rows, across @ inverse @ across.T, atol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GaussianProcessRegressor(
            kernels.Matern(settings.scales, nu=form + 0.5), alpha=noise, optimizer=None
        ).fit(data.points, scaled)
        theirs = model.predict(queries, return_std=True)
    np.testing.assert_allclose(mean, theirs[0], atol=1e-7)
    np.testing.assert_allclose(np.sqrt(variance), theirs[1], atol=1e-7)


def test_the_regions_mean_and_amplitude_are_the_most_likely_with_their_priors():
    *_, data = case(2, True)
    overall = Settings(np.array([0.3, 0.5]), 0.2, 2, 4.0, 2.0)
    got = settled(data).settings
    kernel = Matern(2.5, overall.scales)(data.points)
    inverse = np.linalg.inv(kernel + np.diag(0.2 / data.counts + calibration.JITTER))
    ones = np.ones(len(kernel))
    shift = ones @ inverse @ (data.means - 4.0) / (ones @ inverse @ ones + 1.0)
    residual = data.means - 4.0 - shift
    misfit = residual @ inverse @ residual + data.within.sum() / 0.2
    square = (misfit + 10.0 * 2.0**2) / (data.counts.sum() + 10.0)
    assert (got.mean, got.amplitude) == pytest.approx((4.0 + shift, math.sqrt(square)))


def test_what_is_known_to_be_exact_is_rough_not_noisy():
    x = np.linspace(0, 1, 40)[:, None]
    data = Data(x, np.ones(40), np.sin(60 * x[:, 0]) + np.cos(47 * x[:, 0]), np.zeros(40))
    start = replace(first_settings(1, Fixed()), noise=1.0)
    found = fit(data, start, Fixed(), exact=True).best
    assert found.noise <= EXACT_NOISE * (1 + 1e-9)
    assert found.scales[0] < 0.2
    assert fit(data, start, Fixed()).best.noise > 0.1  # from there, it is taken for noise


def test_observing_is_conditioning_afresh():
    *_, data = case(2, True)
    known = settled(data)
    fresh = np.random.default_rng(6).random((5, 2))
    points = np.concatenate([data.points, fresh])
    there = known.moments_of(len(data.points))
    np.testing.assert_array_equal(there.mean, known.moments_at(data.points).mean)
    sites = np.arange(len(data.points))
    moments = known.candidates(data.points, there, fresh, sites, room=4, reach=3.0, awaited=0)
    seen = [(2, 6.0), (11, 3.0), (2, 5.0), (10, 4.0)]
    planned = moments.planned({2: 2, 11: 1, 10: 1})  # how often each is pending
    before = moments.mean.copy(), moments.variance.copy(), moments.used
    assert (planned <= before[1] + 1e-12).all()
    for j, value in seen:
        assert not moments.full
        moments.observe(j, value)
    assert moments.full
    mean, variance = textbook(data, moments, points, seen)
    np.testing.assert_allclose(moments.mean, mean, atol=1e-7)
    np.testing.assert_allclose(moments.variance, variance, atol=1e-7)
    np.testing.assert_allclose(planned, variance, atol=1e-7)  # values do not matter
    assert before[2] == len(data.points)


def test_the_highest_candidates_are_kept_and_those_awaited(monkeypatch):
    monkeypatch.setattr(_region, "KEPT", 4)
    monkeypatch.setattr(_region, "KEPT_OPEN", 1)
    *_, data = case(2, True)
    known, sites = settled(data), np.arange(len(data.points))
    fresh = np.random.default_rng(7).random((20, 2))
    there, new = known.moments_of(len(sites)), known.moments_at(fresh)
    got = known.candidates(data.points, there, fresh, sites, room=1, reach=5.0, awaited=2)
    mean = np.concatenate([there.mean, new.mean])
    std = np.sqrt(np.concatenate([there.variance, new.variance]))
    best = set(np.argsort(-(mean + 2.0 * std))[:4].tolist())
    wanted = sorted(best | {int(np.argmax(mean + 5.0 * std)), len(mean) - 2, len(mean) - 1})
    points = np.concatenate([data.points, fresh])
    np.testing.assert_array_equal(got.points, points[wanted])
    np.testing.assert_array_equal(got.sites, [k for k in wanted if k < len(sites)])
    np.testing.assert_array_equal(got.mean, mean[wanted])
    assert got.ceiling == pytest.approx((mean + 5.0 * std).max())


def textbook(data: Data, moments: Moments, points, seen):
    """Mean and variance at points given the replicate means and single values besides."""
    settings = moments.settings
    kernel = Matern(settings.form + 0.5, settings.scales)
    where = np.concatenate([data.points, points[[j for j, _ in seen]]])
    noise = np.append(settings.noise / data.counts, np.full(len(seen), settings.noise))
    values = np.append(data.means, [value for _, value in seen])
    inverse = np.linalg.inv(kernel(where) + np.diag(noise))
    across = kernel(points, where)
    mean = across @ inverse @ ((values - settings.mean) / settings.amplitude)
    return mean, 1 - np.einsum("ij,jk,ik->i", across, inverse, across)


# -- regions -------------------------------------------------------------------------------------


def test_halves_share_out_the_sites_and_keep_the_nearest():
    rng = np.random.default_rng(7)
    points = np.concatenate([rng.random((40, 2)), [[0.5, 0.2], [1.0, 1.0], [0.0, 0.5]]])
    region = Region(np.zeros(2), np.ones(2), list(range(len(points))), np.empty(0, np.int64))
    scales = np.array([0.2, 0.7])  # the first side is the longer in lengthscales
    region.score, region.ceiling, region.best_lower = 3.0, 4.0, 2.0
    axis, *halves = region.split(scales, points, 30, 5)
    assert axis == 0
    assert [(h.score, h.ceiling, h.best_lower) for h in halves] == [(3.0, 4.0, 2.0)] * 2
    assert [h.upper[0] for h in halves] == [0.5, 1.0]
    assert sorted(halves[0].sites + halves[1].sites) == list(range(len(points)))
    assert 40 in halves[1].sites  # on the face
    for half in halves:
        assert half.holds(points[half.sites]).all()
        assert len(half.around) == max(5, 30 - len(half.sites))
        assert not set(half.around.tolist()) & set(half.sites)
        away = np.maximum(half.lower - points, points - half.upper).clip(min=0) / scales
        away = np.sqrt((away**2).sum(axis=1))
        left = np.setdiff1d(np.arange(len(points)), [*half.sites, *half.around])
        assert away[half.around].max() <= away[left].min()


@pytest.mark.parametrize("kind", ["box", "grid", "arms"])
def test_candidates_are_of_the_region_and_of_the_domain(kind):
    import partita as pt

    rng = np.random.default_rng(8)
    domain = {
        "box": pt.Box([-1, 5], [1, 9]),
        "grid": pt.Grid(33, dim=2),
        "arms": pt.Arms(rng.random((900, 2)) ** 2, lower=[-1, -1], upper=[2, 2]),
    }[kind]
    proposals = Proposals(domain)
    for lower, upper in (([0, 0], [1, 1]), ([0.25, 0.5], [0.5, 1.0]), ([0.5, 0.375], [0.75, 0.5])):
        region = Region(np.array(lower, float), np.array(upper, float), [], np.empty(0, np.int64))
        centre = np.array([[upper[0], 0.5 * (lower[1] + upper[1])]])
        drawn = proposals.draw(rng, region.lower, region.upper, centre)
        assert len(drawn) > 5
        # A point on an inner face would be told to the region beyond it, and tried for ever.
        assert region.holds(drawn).all()
        if kind != "box":
            known = {row.tobytes() for row in domain.unit_points}
            assert all(row.tobytes() in known for row in drawn)
            assert len({row.tobytes() for row in drawn}) == len(drawn)
