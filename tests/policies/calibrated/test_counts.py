"""Aggregates told to the calibrated policy: the sums of n single values."""

from __future__ import annotations

import numpy as np
import pytest

import partita as pt
from partita.errors import InvalidInput


def report(policy, x, values, aggregate):
    if aggregate:
        policy.tell(x, values.mean(), std=np.std(values, ddof=1), count=len(values))
    else:
        for value in values.tolist():
            policy.tell(x, value)


def played(aggregate, points, samples):
    policy = pt.CalibratedUCB(pt.Box([0.0], [1.0]), outliers="keep")
    for x, values in zip(points, samples, strict=True):
        report(policy, x, values, aggregate)
    return policy


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_the_sums_are_those_of_single_values(offset):
    rng = np.random.default_rng(0)
    points = rng.random((12, 1))[rng.integers(0, 12, 40)]  # many points come again
    samples = [
        offset + np.sin(6 * x[0]) + 0.2 * rng.standard_normal(int(rng.integers(2, 50)))
        for x in points
    ]
    fast, slow = (played(aggregate, points, samples) for aggregate in (True, False))
    n = len(fast._regions.home)
    np.testing.assert_array_equal(fast._sums.count[:n], slow._sums.count[:n])
    np.testing.assert_allclose(fast._sums._mean[:n], slow._sums._mean[:n], rtol=1e-12)
    np.testing.assert_allclose(fast._sums._within[:n], slow._sums._within[:n], rtol=1e-6)
    assert fast.told == slow.told
    # With the same sums, the same settings are learned, up to the starts of the search for them.
    for policy in (fast, slow):
        policy._refit()
    assert fast.settings["noise_std"] == pytest.approx(slow.settings["noise_std"], rel=0.01)
    assert fast.settings["noise_std"] == pytest.approx(0.2, rel=0.1)
    slow._model.fit, slow._model.believed = fast._model.fit, fast._model.believed
    where = np.linspace(0, 1, 9)[:, None]
    one, other = fast.predict(where), slow.predict(where)
    np.testing.assert_allclose(one.mean, other.mean, rtol=0, atol=1e-7)
    np.testing.assert_allclose(one.std, other.std, rtol=0, atol=1e-7)


def test_agreement_is_evidence_and_no_more():
    policy = pt.CalibratedUCB(pt.Box([0.0], [1.0]))
    for x in np.linspace(0, 1, 8)[:, None]:
        policy.tell(x, float(np.sin(5 * x[0])), std=0.0, count=10)
    assert policy._sums.agree
    policy.tell([0.3], 0.4, std=0.5, count=10)
    assert not policy._sums.agree
    assert not policy._sums.exact


def test_the_first_design_is_evaluated_whatever_the_counts():
    """A mean of a million values is one place: the model needs several."""
    policy = pt.CalibratedUCB(pt.Box([0.0, 0.0], [1.0, 1.0]))
    rng = np.random.default_rng(1)
    for _ in range(30):
        x = policy.ask()
        mean = -((x[0] - 0.3) ** 2) - (x[1] - 0.7) ** 2 + 1e-3 * rng.standard_normal()
        policy.tell(x, mean, std=1.0, count=10**6)
    assert policy.told == 30 * 10**6
    assert len(policy._regions.home) >= 6
    np.testing.assert_allclose(policy.recommend().x, [0.3, 0.7], atol=0.1)


def test_state_is_saved_with_counts():
    policy, twin = (pt.CalibratedUCB(pt.Box([0.0], [1.0])) for _ in range(2))
    for i in range(12):
        policy.tell(policy.ask(), 0.1 * i, std=0.3, count=1 + 10 * i)
    twin.restore(policy.state())
    assert twin.told == policy.told
    for _ in range(4):
        np.testing.assert_array_equal(x := policy.ask(), twin.ask())
        for one in (policy, twin):
            one.tell(x, 0.2, std=0.1, count=5)


def test_bulk():
    fast, slow = (pt.CalibratedUCB(pt.Box([0.0], [1.0])) for _ in range(2))
    points = np.linspace(0, 1, 6)[:, None]
    fast.tell(
        points, np.arange(6.0), std=[0.1, 0.1, 0.1, 0.0, np.nan, 0.3], count=[5, 2, 9, 2, 1, 1]
    )
    for x, y, std, count in zip(points, range(6), [0.1, 0.1, 0.1, 0.0], [5, 2, 9, 2], strict=False):
        slow.tell(x, float(y), std=std, count=count)
    slow.tell(points[4], 4.0)
    slow.tell(points[5], 5.0, std=0.3)
    assert fast.told == slow.told == 20
    np.testing.assert_array_equal(fast._sums._within, slow._sums._within)
    np.testing.assert_array_equal(fast._sums.known, slow._sums.known)


def test_means_alone_say_nothing_of_the_noise():
    policy = pt.CalibratedUCB(pt.Box([0.0], [1.0]))
    with pytest.raises(InvalidInput, match="ddof=1"):
        policy.tell([0.5], 1.0, count=5)
    assert policy.told == 0
