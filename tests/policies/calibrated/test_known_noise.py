"""Values of known noise in the calibrated policy: `tell(x, y, std=...)`."""

import pickle

import numpy as np
import pytest
from support.calibrated import LINE, SQUARE, bowl

from partita.errors import InvalidInput
from partita.gp.data import Data
from partita.gp.fitting import JITTER
from partita.gp.settings import Fixed, Settings
from partita.model.kernels import Matern
from partita.policies.calibrated.calibrated_ucb import CalibratedUCB
from partita.policies.calibrated.model import condition


def wave(X):
    return np.sin(5 * np.asarray(X)[..., 0])


def uneven(number, seed=0):
    """Points of the line, values, and the noise of each, of three sizes."""
    rng = np.random.default_rng(seed)
    X, stds = rng.random((number, 1)), rng.choice([0.01, 0.2, 1.5], number)
    return X, wave(X) + stds * rng.standard_normal(number), stds


def assert_same(one, other):
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a, b)


# -- the posterior ---------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [1, 2])
def test_the_posterior_is_that_of_single_values_with_their_own_noise(form):
    """Points 1 and 3 have values of both kinds; the dense process has a row for each value."""
    rng = np.random.default_rng(form)
    points = rng.random((6, 2))
    settings = Settings(np.array([0.3, 0.5]), 0.2, form, 1.0, 2.0)
    where = np.array([0, 0, 0, 1, 2, 3, 3])  # values whose noise is not known
    values = rng.normal(1.0, 2.0, 7)
    told = {1: (0.3, 0.7), 3: (-1.0, 0.05), 4: (2.0, 1.1), 5: (0.5, 3.0)}  # value and noise
    counts = np.bincount(where).astype(float)
    means = np.bincount(where, values) / counts
    y, std = np.array(list(told.values())).T
    nothing, ones = np.full(4, np.nan), np.ones(4)
    data = Data(
        np.concatenate([points[:4], points[list(told)]]),
        np.append(counts, ones),
        np.append(means, y),
        np.append(np.bincount(where, (values - means[where]) ** 2), 0 * ones),
        np.ones(8),
        np.append(nothing, std**2),
    )
    got = condition(data, settings, settings, Fixed(), believed=True)
    assert got.settings.amplitude == 2.0
    rows = np.concatenate([points[where], points[list(told)]])
    noise = np.append(np.full(7, 4.0 * 0.2), std**2)
    kernel = Matern(form + 0.5, settings.scales)
    inverse = np.linalg.inv(4.0 * kernel(rows) + np.diag(noise))
    queries = rng.random((9, 2))
    across = 4.0 * kernel(queries, rows)
    mean = got.settings.mean + across @ inverse @ (np.append(values, y) - got.settings.mean)
    variance = 4.0 - np.einsum("ij,jk,ik->i", across, inverse, across)
    moments = got.moments_at(queries)
    np.testing.assert_allclose(got.settings.in_units(moments.mean), mean, atol=100 * JITTER)
    np.testing.assert_allclose(4.0 * moments.variance, variance, atol=100 * JITTER)


def test_the_policys_answers_are_the_dense_process():
    """Under the settings that it learned, and the mean of its posterior."""
    X, Y, stds = uneven(60)
    policy = CalibratedUCB(LINE, seed=0)
    policy.tell(X, Y, std=stds)
    best, queries = policy._model.believed, np.linspace(0, 1, 30)[:, None]
    assert best.shape.identity
    known = policy._model.answering(policy._regions.played, best).settings
    kernel, square = Matern(best.form + 0.5, best.scales), best.amplitude**2
    inverse = np.linalg.inv(square * kernel(X) + np.diag(stds**2))
    across = square * kernel(queries, X)
    mean = known.mean + across @ inverse @ (Y - known.mean)
    np.testing.assert_allclose(policy.predict(queries).mean, mean, atol=1e-5)


def test_telling_the_noise_makes_predictions_better():
    errors, queries = [], np.linspace(0, 1, 50)[:, None]
    for seed in range(4):
        X, Y, stds = uneven(60, seed)
        policies = [CalibratedUCB(LINE, seed=0) for _ in range(2)]
        policies[0].tell(X, Y, std=stds)
        policies[1].tell(X, Y)
        errors.append([np.abs(p.predict(queries).mean - wave(queries)).mean() for p in policies])
    told, untold = np.array(errors).mean(axis=0)
    assert told < 0.03
    assert told < 0.5 * untold


def test_a_value_of_huge_noise_hardly_counts():
    X = uneven(40)[0]
    policy, queries = CalibratedUCB(LINE, seed=0), np.linspace(0, 1, 20)[:, None]
    policy.tell(X, wave(X), std=0.1)
    before = policy.predict(queries)
    policy.tell([0.5], 1e4, std=1e7)
    after = policy.predict(queries)
    np.testing.assert_allclose(after.mean, before.mean, atol=0.02)
    np.testing.assert_allclose(after.std, before.std, rtol=0.1)
    policy.tell([0.5], 3.0, std=0.01)  # one of little noise does
    assert policy.predict([[0.5]]).mean[0] > before.mean[10] + 0.5


# -- no noise --------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 1e-6])
def test_exact_values_are_interpolated_and_nothing_is_played_twice(scale):
    policy, plays = CalibratedUCB(SQUARE, seed=0), []
    for _ in range(60):
        plays.append(policy.ask())
        policy.tell(plays[-1], scale * bowl(plays[-1]), std=0.0)
    assert policy._sums.exact
    assert len(np.unique(plays, axis=0)) == 60
    values = scale * np.array([bowl(x) for x in plays])
    found = policy.predict(plays)
    np.testing.assert_allclose(found.mean, values, atol=1e-3 * np.ptp(values))
    assert bowl(policy.recommend().x) > -1e-3


def test_one_value_with_noise_ends_exactness():
    policy = CalibratedUCB(LINE, seed=0)
    X = np.linspace(0, 1, 12)[:, None]
    policy.tell(X, wave(X), std=0.0)
    assert policy._sums.exact
    policy.tell([0.3], 0.5, std=0.2)
    assert not policy._sums.exact
    policy._refit()
    assert not policy._sums.exact


# -- the ways to tell ------------------------------------------------------------------------------


def test_bulk_is_the_same_as_one_by_one():
    X, Y, stds = uneven(30)
    bulk, single = CalibratedUCB(LINE, seed=2), CalibratedUCB(LINE, seed=2)
    bulk.tell(X, Y, std=stds)
    for x, y, std in zip(X, Y, stds, strict=True):
        single.tell(x, y, std=std)
    for part in ("means", "known", "counts"):
        sites = np.array(bulk._regions.played)
        one, other = (getattr(p._sums.data(sites), part) for p in (bulk, single))
        np.testing.assert_array_equal(one, other)
    assert_same(bulk.predict(X), single.predict(X))
    for _ in range(12):
        x, same = bulk.ask(), single.ask()
        np.testing.assert_array_equal(x, same)
        for policy in (bulk, single):
            policy.tell(x, float(wave(x)), std=0.1)


@pytest.mark.parametrize("bad", [-0.1, np.nan, np.inf, "loud", [0.1, 0.2], 1e200])
def test_bad_noise_is_refused_and_nothing_changes(bad):
    X, Y, stds = uneven(20)
    policy, twin = CalibratedUCB(LINE, seed=0), CalibratedUCB(LINE, seed=0)
    for each in (policy, twin):
        each.tell(X, Y, std=stds)
    with pytest.raises(InvalidInput, match="std"):
        policy.tell(X[0], 0.3, std=bad)
    with pytest.raises(InvalidInput, match="std"):
        policy.tell(X[:3], Y[:3], std=bad if np.ndim(bad) else [0.1, bad, 0.1])
    assert policy.told == twin.told == 20
    assert_same(policy.predict(X), twin.predict(X))
    np.testing.assert_array_equal(policy.ask(), twin.ask())


def test_a_pickled_policy_goes_on_the_same():
    X, Y, stds = uneven(25)
    policy = CalibratedUCB(LINE, seed=0)
    policy.tell(X, Y, std=stds)
    policy.tell(X[:5], Y[:5])  # of both kinds at these
    twin = pickle.loads(pickle.dumps(policy))
    for step in range(25):
        x, same = policy.ask(), twin.ask()
        np.testing.assert_array_equal(x, same)
        for each in (policy, twin):
            each.tell(x, float(wave(x)), std=[None, 0.1, 1.0][step % 3])
    assert_same(policy.predict(X), twin.predict(X))
    assert policy.certificate() == twin.certificate()
