"""Bounds at a point where the fitted model may be too smooth."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import partita as pt
from partita.gp.fitting import JITTER, Data, Fixed, Settings
from partita.policies.calibrated import misfit as _misfit
from partita.policies.calibrated.calibrated_ucb import NOTE_FACTOR
from partita.policies.calibrated.misfit import MISFIT, NEAR, bounds_at
from partita.policies.calibrated.region import Conditioned, condition

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
    data = Data(points, np.full(POINTS, COUNTS), means, within)
    return condition(data, SETTINGS, SETTINGS, Fixed()), points[0]


def distances(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    apart = (a[:, None, :] - b[None, :, :]) / SETTINGS.scales
    return np.sqrt((apart**2).sum(axis=2))


def model(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    r = np.sqrt(3) * distances(a, b)
    return (1 + r) * np.exp(-r)


def naive_bounds(conditioned: Conditioned, point: np.ndarray) -> tuple[float, float]:
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
    return min(lower), max(upper)


@pytest.mark.parametrize("tip", [-3.0, -1.0, 0.0, 1.0, 3.0])
@pytest.mark.parametrize("seed", range(4))
def test_bounds_are_those_of_a_model_with_an_offset(seed, tip):
    conditioned, point = known(seed, tip)
    assert bounds_at(conditioned, point, REACH) == pytest.approx(
        naive_bounds(conditioned, point), abs=1e-4
    )


def plain(conditioned: Conditioned, point: np.ndarray) -> tuple[float, float]:
    mean, variance, _ = conditioned.moments_at(point[None, :])
    reach = REACH * np.sqrt(variance)
    return float((mean - reach)[0]), float((mean + reach)[0])


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
        policy = pt.CalibratedUCB(pt.Box([0] * 4, [1] * 4), seed=seed)

        def f(x):
            return -(float(np.linalg.norm(x - tip)) ** 0.5)

        for _ in range(200):
            x = policy.ask()
            policy.tell(x, f(x) + random.uniform(-0.1, 0.1))
        with_it = policy.recommend()
        with monkeypatch.context() as patch:
            patch.setattr(_misfit, "MISFIT", np.inf)
            without = policy.recommend()
        return [a.lower <= f(a.x) <= a.upper for a in (with_it, without)]

    with_it, without = np.sum([held(seed) for seed in range(8)], axis=0)
    assert with_it >= 7
    assert without <= 5


# -- certificates ----------------------------------------------------------------------------------


def ackley(x: np.ndarray, tip: np.ndarray) -> float:
    """Ackley's function, scaled to [−1, 1], highest at the tip."""
    z = 60 * (x - tip)
    fall = 20 * (1 - np.exp(-0.2 * np.sqrt(np.mean(z**2))))
    return float(1 - 2 * (fall + np.e - np.exp(np.mean(np.cos(2 * np.pi * z)))) / 22.3)


def first_certificates(seed: int, within: float) -> list[bool]:
    """Whether the first certificates within so much held: as they are, and without looking back."""
    random = np.random.default_rng([seed, 5])
    tip = random.uniform(0.2, 0.8, 5)
    policy = pt.CalibratedUCB(pt.Box([0] * 5, [1] * 5), seed=seed)
    held: list[bool | None] = [None, None]
    for t in range(1, 400):
        x = policy.ask()
        policy.tell(x, ackley(x, tip) + random.uniform(-0.1, 0.1))
        if t % 5 or None not in held:
            continue
        noted, lost = policy._ceilings, 1 - ackley(policy.recommend().x, tip)
        for i, ceilings in enumerate((noted, [])):
            policy._ceilings = ceilings
            certificate = policy.certificate()
            if held[i] is None and certificate <= within:
                held[i] = lost <= certificate
        policy._ceilings = noted
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
    told = [number for number, _ in policy._ceilings]
    assert len(told) >= 2
    assert all(later >= NOTE_FACTOR * earlier for earlier, later in pairwise(told))
    policy._ceilings = []
    plain, lower = policy.certificate(), policy.recommend().lower
    policy._ceilings = [(10, lower - 3.0), (40, lower - 1.0), (60, lower + 2.0)]
    assert policy.certificate() == pytest.approx(plain + 0.4 * 1.0)
    policy._ceilings = [(60, lower + 2.0)]
    assert policy.certificate() == plain
