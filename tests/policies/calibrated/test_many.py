"""Many dimensions: the policy leaves the centre behind, climbs lead up, certificates are honest."""

import math

import numpy as np
import pytest

import partita as pt
from partita.gp.data import Data
from partita.gp.fitting import fit
from partita.gp.likelihood import SCALE_PRIOR, scale_prior
from partita.gp.settings import Fixed, first_settings
from partita.policies.calibrated.climbs import climbs
from partita.policies.calibrated.model import condition


def _data(points, values):
    zeros = np.zeros(len(values))
    return Data(points, np.ones(len(values)), values, zeros, zeros + 1.0, zeros + np.nan)


@pytest.mark.parametrize("form", [1, 2])
def test_climbs_lead_up_and_stay_in_the_box(form):
    random = np.random.default_rng(3)
    points = random.random((80, 20))
    data = _data(points, -((points - 0.7) ** 2).sum(axis=1))
    start = first_settings(20, Fixed(form=form, scales=np.full(20, 2.0)))
    posterior = condition(data, start, start, Fixed())
    way = climbs(posterior, points[:3], np.full(20, 0.1), np.full(20, 0.9))
    assert way.shape[1] == 20
    assert ((way >= 0.1) & (way <= 0.9)).all()
    assert posterior.moments_at(way[-3:]).mean.min() > posterior.moments_at(points).mean.max()


def test_the_prior_is_as_before_in_few_dimensions_and_wider_in_many():
    assert all(scale_prior(dim) == SCALE_PRIOR for dim in range(1, 11))
    assert scale_prior(40)[0] == pytest.approx(SCALE_PRIOR[0] + math.log(2.0))


def test_a_fit_in_many_dimensions_varies_what_it_does_not_know():
    random = np.random.default_rng(1)
    points = random.random((60, 12))
    data = _data(points, np.sin(5 * points[:, 0]) + 0.01 * random.standard_normal(60))
    spread = np.diag(fit(data, first_settings(12, Fixed()), Fixed()).spread)
    assert (spread > 0).all()
    assert spread[:12].max() <= SCALE_PRIOR[1] + 1e-9


def test_a_quadratic_in_fifty_dimensions_ends_better_than_the_centre():
    dim, random = 50, np.random.default_rng(7)
    optimum = random.uniform(0.2, 0.8, dim)
    policy = pt.CalibratedUCB(pt.Box([0.0] * dim, [1.0] * dim), seed=1)
    for _ in range(300):
        x = policy.ask()
        policy.tell(x, -((x - optimum) ** 2).sum() + random.uniform(-0.3, 0.3))
    answer = policy.recommend().x
    assert ((answer - optimum) ** 2).sum() < 0.8 * ((0.5 - optimum) ** 2).sum()


def test_there_is_no_certificate_beyond_what_was_measured():
    random = np.random.default_rng(0)
    for dim, finite in ((10, True), (11, False)):
        policy = pt.CalibratedUCB(pt.Box([0.0] * dim, [1.0] * dim), seed=1)
        X = random.random((10 * (dim + 1), dim))
        policy.tell(X, X.sum(axis=1) + 0.1 * random.standard_normal(len(X)))
        assert math.isfinite(policy.certificate()) == finite
        assert math.isfinite(policy.certificate_fixed({0: 0.5})) == finite
