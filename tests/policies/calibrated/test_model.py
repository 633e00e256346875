"""The posterior of a region, against plain solves and scikit-learn; bounds and certificates."""

import math
import warnings
from itertools import pairwise

import numpy as np
import pytest
from support.draws import case, start

import partita as pt
from partita.gp.data import uniform_noise
from partita.gp.fitting import JITTER, fit
from partita.gp.settings import Fixed, Settings
from partita.model.kernels import Matern
from partita.policies.calibrated import candidates
from partita.policies.calibrated import model as _model
from partita.policies.calibrated.answers import NOTE_FACTOR, Note
from partita.policies.calibrated.candidates import keep_best
from partita.policies.calibrated.model import (
    MISFIT,
    NEAR,
    Bounds,
    Conditioned,
    bounds_at,
    condition,
    simultaneous,
)


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
    noise = settings.noise / data.counts + JITTER
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
    inverse = np.linalg.inv(kernel + np.diag(0.2 / data.counts + JITTER))
    ones = np.ones(len(kernel))
    shift = ones @ inverse @ (data.means - 4.0) / (ones @ inverse @ ones + 1.0)
    residual = data.means - 4.0 - shift
    misfit = residual @ inverse @ residual + data.within.sum() / 0.2
    square = (misfit + 10.0 * 2.0**2) / (data.counts.sum() + 10.0)
    assert (got.mean, got.amplitude) == pytest.approx((4.0 + shift, math.sqrt(square)))


@pytest.mark.parametrize("fixed", [Fixed(noise_std=0.3), Fixed(noise_std=0.3, amplitude=3.0)])
def test_given_noise_stays_with_the_amplitude_that_was_drawn(fixed):
    *_, data = case(2, True)
    fitted, rng = fit(data, start(2), fixed), np.random.default_rng(0)
    for _ in range(20):
        drawn = fitted.draw(rng, 1.0)
        known = condition(data, drawn, fitted.best, fixed).settings
        assert (known.amplitude, known.noise_std) == pytest.approx((drawn.amplitude, 0.3))
        if fixed.amplitude is not None:
            assert known.amplitude == pytest.approx(3.0)


# -- candidates ------------------------------------------------------------------------------------


def test_observing_is_conditioning_afresh():
    *_, data = case(2, True)
    known = settled(data)
    fresh = np.random.default_rng(6).random((5, 2))
    points = np.concatenate([data.points, fresh])
    there = known.moments_of(len(data.points))
    np.testing.assert_array_equal(there.mean, known.moments_at(data.points).mean)
    sites = np.arange(len(data.points))
    made = keep_best(known, data.points, there, sites, fresh, room=4, reach=3.0)
    seen = [(2, 6.0), (11, 3.0), (2, 5.0), (10, 4.0)]
    planned = made.planned({2: 2, 11: 1, 10: 1})  # how often each is pending
    assert made.planned({}) is made
    assert (planned.variance <= made.variance + 1e-12).all()
    np.testing.assert_array_equal(planned.mean, made.mean)
    assert made.used == len(data.points)
    for j, value in seen:
        assert not made.full
        made.observe(j, value, made.settings.noise_std**2)
    assert made.full
    mean, variance = textbook(data, made.settings, points, seen)
    np.testing.assert_allclose(made.mean, mean, atol=1e-7)
    np.testing.assert_allclose(made.variance, variance, atol=1e-7)
    np.testing.assert_allclose(planned.variance, variance, atol=1e-7)  # values do not matter
    np.testing.assert_array_equal(planned.played, made.played)


def textbook(data, settings, points, seen):
    """Mean and variance at points given the replicate means and single values besides."""
    kernel = Matern(settings.form + 0.5, settings.scales)
    where = np.concatenate([data.points, points[[j for j, _ in seen]]])
    noise = np.append(settings.noise / data.counts, np.full(len(seen), settings.noise))
    values = np.append(data.means, [value for _, value in seen])
    inverse = np.linalg.inv(kernel(where) + np.diag(noise))
    across = kernel(points, where)
    mean = across @ inverse @ ((values - settings.mean) / settings.amplitude)
    return mean, 1 - np.einsum("ij,jk,ik->i", across, inverse, across)


def test_the_highest_candidates_are_kept_and_those_awaited(monkeypatch):
    monkeypatch.setattr(candidates, "KEPT", 4)
    monkeypatch.setattr(candidates, "KEPT_OPEN", 1)
    *_, data = case(2, True)
    known, sites = settled(data), np.arange(len(data.points))
    fresh = np.random.default_rng(7).random((20, 2))
    there, new = known.moments_of(len(sites)), known.moments_at(fresh)
    got = keep_best(known, data.points, there, sites, fresh, room=1, reach=5.0, awaited=2)
    mean = np.concatenate([there.mean, new.mean])
    std = np.sqrt(np.concatenate([there.variance, new.variance]))
    best = set(np.argsort(-(mean + 2.0 * std))[:4].tolist())
    wanted = sorted(best | {int(np.argmax(mean + 5.0 * std)), len(mean) - 2, len(mean) - 1})
    points = np.concatenate([data.points, fresh])
    np.testing.assert_array_equal(got.points, points[wanted])
    np.testing.assert_array_equal(got.sites, [k for k in wanted if k < len(sites)])
    np.testing.assert_array_equal(got.mean, mean[wanted])
    assert got.ceiling == pytest.approx((mean + 5.0 * std).max())


# -- bounds ----------------------------------------------------------------------------------------


def test_bounds_share_delta_among_the_places_that_lengthscales_leave():
    one = simultaneous(0.1, np.array([1e9]))
    assert one == pytest.approx(1.6449, abs=1e-3)  # one value everywhere: a normal 95 % point
    four = simultaneous(0.1, np.array([1 / 3]))
    assert four == pytest.approx(2.2414, abs=1e-3)  # the 98.75 % point
    many = simultaneous(0.1, np.full(20, 0.01))
    assert many < 6.0


SETTINGS = Settings(scales=np.array([0.3, 0.5]), noise=0.2, form=1, mean=0.4, amplitude=1.3)
REACH = 2.5
POINTS, COUNTS = 60, 8.0


def known(seed: int, tip: float = 0.0, radius: float = 0.03) -> tuple[Conditioned, np.ndarray]:
    """Data drawn from the model, f higher by `tip` within `radius` lengthscales of the point."""
    random = np.random.default_rng(seed)
    points = random.random((POINTS, 2))
    points[:12] = points[0] + 0.03 * random.standard_normal((12, 2)) * SETTINGS.scales
    kernel = model(points, points)
    drawn = np.linalg.cholesky(kernel + 1e-10 * np.eye(POINTS)) @ random.standard_normal(POINTS)
    noise = np.sqrt(SETTINGS.noise / COUNTS) * random.standard_normal(POINTS)
    near = distances(points, points[:1])[:, 0] <= radius
    means = SETTINGS.mean + SETTINGS.amplitude * (drawn + noise + tip * near)
    within = np.full(POINTS, (COUNTS - 1) * SETTINGS.noise_std**2)
    data = uniform_noise(points, np.full(POINTS, COUNTS), means, within)
    return condition(data, SETTINGS, SETTINGS, Fixed()), points[0]


def distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    apart = (a[:, None, :] - b[None, :, :]) / SETTINGS.scales
    return np.sqrt((apart**2).sum(axis=2))


def model(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    r = np.sqrt(3) * distances(a, b)
    return (1 + r) * np.exp(-r)


def naive_bounds(conditioned: Conditioned, point: np.ndarray) -> Bounds:
    """The same by a model whose covariance has the offset in it, with a very wide prior."""
    points = conditioned.scaled * SETTINGS.scales
    noisy = model(points, points) + np.eye(POINTS) * (SETTINGS.noise / COUNTS + JITTER)
    values = conditioned.factor @ conditioned.values
    across = model(points, point[None, :])[:, 0]

    def posterior(offset: np.ndarray, wide: float) -> tuple[float, float]:
        total = noisy + wide * np.outer(offset, offset)
        there = across + wide * offset
        weights = np.linalg.solve(total, there)
        return float(weights @ values), float(np.sqrt(1 + wide - weights @ there))

    mean, std = posterior(np.zeros(POINTS), 0.0)
    lower, upper = [mean - REACH * std], [mean + REACH * std]
    inverse = np.linalg.inv(noisy)
    for radius in NEAR:
        near = (distances(points, point[None, :])[:, 0] <= radius).astype(float)
        score = near @ inverse @ values / np.sqrt(near @ inverse @ near)
        mean, std = posterior(near, 1e5)
        if score > MISFIT:
            upper.append(mean + REACH * std)
        elif score < -MISFIT:
            lower.append(mean - REACH * std)
    return Bounds(
        conditioned.settings.in_units(min(lower)), conditioned.settings.in_units(max(upper))
    )


@pytest.mark.parametrize("tip", [-3.0, -1.0, 0.0, 1.0, 3.0])
@pytest.mark.parametrize("seed", range(4))
def test_bounds_are_those_of_a_model_with_an_offset(seed, tip):
    conditioned, point = known(seed, tip)
    assert bounds_at(conditioned, point, REACH) == pytest.approx(
        naive_bounds(conditioned, point), abs=1e-4
    )


def plain(conditioned: Conditioned, point: np.ndarray) -> Bounds:
    mean, variance, _ = conditioned.moments_at(point[None, :])
    reach = REACH * np.sqrt(variance)
    lower, upper = (
        conditioned.settings.in_units(mean - reach),
        conditioned.settings.in_units(mean + reach),
    )
    return Bounds(float(lower[0]), float(upper[0]))


def test_a_tip_raises_the_upper_bound_and_a_pit_lowers_the_lower_one():
    for seed in range(4):
        below, above = plain(*known(seed, 3.0))
        lower, upper = bounds_at(*known(seed, 3.0), REACH)
        assert lower == pytest.approx(below)
        assert upper > above + 0.1
        below, above = plain(*known(seed, -3.0))
        lower, upper = bounds_at(*known(seed, -3.0), REACH)
        assert upper == pytest.approx(above)
        assert lower < below - 0.1


def test_a_model_that_fits_is_left_alone():
    same = [
        bounds_at(*known(seed), REACH) == pytest.approx(plain(*known(seed))) for seed in range(60)
    ]
    assert np.mean(same) > 0.95  # five scores, three deviations either way


def test_the_answer_at_a_tip(monkeypatch):
    def held(seed):
        random = np.random.default_rng([seed, 3])
        tip = random.uniform(0.2, 0.8, 4)
        policy = pt.CalibratedUCB(pt.Box([0] * 4, [1] * 4), seed=seed, outliers="keep")

        def f(x):
            return -(float(np.linalg.norm(x - tip)) ** 0.5)

        for _ in range(200):
            x = policy.ask()
            policy.tell(x, f(x) + random.uniform(-0.1, 0.1))
        with_it = policy.recommend()
        with monkeypatch.context() as patch:
            patch.setattr(_model, "MISFIT", np.inf)
            without = policy.recommend()
        return [a.lower <= f(a.x) <= a.upper for a in (with_it, without)]

    with_it, without = np.sum([held(seed) for seed in range(8)], axis=0)
    assert with_it >= 7
    assert without <= 5


def ackley(x: np.ndarray, tip: np.ndarray) -> float:
    """Ackley's function, scaled to [−1, 1], highest at the tip."""
    z = 60 * (x - tip)
    fall = 20 * (1 - np.exp(-0.2 * np.sqrt(np.mean(z**2))))
    return float(1 - 2 * (fall + np.e - np.exp(np.mean(np.cos(2 * np.pi * z)))) / 22.3)


def first_certificates(seed: int, within: float) -> list[bool]:
    """Whether the first certificates within so much held: as they are, and without looking back."""
    random = np.random.default_rng([seed, 5])
    tip = random.uniform(0.2, 0.8, 5)
    policy = pt.CalibratedUCB(pt.Box([0] * 5, [1] * 5), seed=seed, outliers="keep")
    held: list[bool | None] = [None, None]
    for t in range(1, 400):
        x = policy.ask()
        policy.tell(x, ackley(x, tip) + random.uniform(-0.1, 0.1))
        if t % 5 or None not in held:
            continue
        noted, lost = policy._answers.notes, 1 - ackley(policy.recommend().x, tip)
        for i, ceilings in enumerate((noted, [])):
            policy._answers.notes = ceilings
            certificate = policy.certificate()
            if held[i] is None and certificate <= within:
                held[i] = lost <= certificate
        policy._answers.notes = noted
    return [h is not False for h in held]


def test_a_run_that_still_climbs_is_not_certified():
    with_it, without = np.sum([first_certificates(seed, 0.4) for seed in range(8)], axis=0)
    assert with_it >= without + 3


def test_bounds_that_were_broken_count_in_proportion_to_what_they_knew():
    random = np.random.default_rng(0)
    policy = pt.CalibratedUCB(pt.Box([0], [1]), seed=0)
    for _ in range(100):
        x = policy.ask()
        policy.tell(x, -abs(float(x[0]) - 0.3) + random.normal(0, 0.1))
    told = [note.told for note in policy._answers.notes]
    assert len(told) >= 2
    assert all(later >= NOTE_FACTOR * earlier for earlier, later in pairwise(told))
    policy._answers.notes = []
    plain, lower = policy.certificate(), policy.recommend().lower
    policy._answers.notes = [
        Note(10, lower - 3.0),
        Note(40, lower - 1.0),
        Note(60, lower + 2.0),
    ]
    assert policy.certificate() == pytest.approx(plain + 0.4 * 1.0)
    policy._answers.notes = [Note(60, lower + 2.0)]
    assert policy.certificate() == plain


def test_notes_are_few_also_in_several_regions():
    random = np.random.default_rng(3)
    policy = pt.CalibratedUCB(pt.Box([0, 0], [1, 1]), seed=3)
    points = random.uniform(size=(900, 2))
    policy.tell(points, -np.abs(points - 0.3).sum(axis=1) + random.normal(0, 0.1, 900))
    assert len(policy.cover) > 1
    for _ in range(150):
        x = policy.ask()
        policy.tell(x, -float(np.abs(x - 0.3).sum()) + random.normal(0, 0.1))
    assert len(policy._answers.notes) <= 2  # one for every 2.5 times the values


def test_what_is_smaller_than_the_noise_is_not_ruled_out_by_few_values():
    """Values of nothing but noise: the likeliest amplitude is small, but they do not show that."""
    rng = np.random.default_rng(0)
    few = pt.CalibratedUCB(pt.Box([0.0] * 5, [1.0] * 5), seed=0)
    few.tell(rng.random((100, 5)), rng.normal(size=100))
    assert few.settings["amplitude"] < 0.6 * few.settings["noise_std"]
    assert few.certificate() > 3.0  # 2.2 by the likeliest amplitude
    known = pt.CalibratedUCB(pt.Grid(4, dim=1), seed=0)
    known.tell(np.tile(known.domain.points, (400, 1)), rng.normal(size=1600))
    assert known.certificate() < 0.4  # many values at each point do


def test_a_given_amplitude_is_not_doubted():
    rng = np.random.default_rng(0)
    told = {"kernel": pt.Matern(2.5, 0.5), "noise": pt.Gaussian(1.0), "norm_bound": 1.0}
    policy = pt.CalibratedUCB(pt.Box([0.0] * 2, [1.0] * 2), seed=0, **told)
    policy.tell(rng.random((60, 2)), rng.normal(size=60))
    sites, settings = np.arange(60), policy._answering()
    assert settings.noise > 1.0
    model = policy._model
    assert model.doubting(sites, settings).settings == model.answering(sites, settings).settings
