"""Aggregates told to the calibrated policy: the sums of n single values."""

from __future__ import annotations

import copy

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


def outlook_at(policy, x):
    """What the choice knows of the region of a point."""
    return policy._search.outlooks[policy._regions.number_at(x)]


@pytest.mark.parametrize("skewed", [False, True])
def test_a_mean_of_few_of_all_values_is_conditioned_on_like_them(skewed):
    """k values at a candidate move the posterior of all candidates as their mean does."""
    rng = np.random.default_rng(1)
    fast = pt.CalibratedUCB(pt.Box([0.0, 0.0], [1.0, 1.0]), outliers="clip" if skewed else "keep")

    def values(x, n):
        value = -((x[0] - 0.4) ** 2) - (x[1] - 0.6) ** 2 + 0.1 * rng.standard_normal(n)
        return np.exp(4 * value) if skewed else value

    x, room = fast.ask(), 0
    while fast.told < 130 or room < 4 or fast._model.learning:
        fast.tell(x, float(values(x, 1)[0]))
        x = fast.ask()
        kept = outlook_at(fast, x).candidates
        room = 0 if kept is None else len(kept.rows) - kept.used
    fast._next_fit = 10**9
    slow, seen = copy.deepcopy(fast), values(x, 3)
    before = kept.variance.copy()
    for policy, aggregate in ((fast, True), (slow, False)):
        report(policy, x, seen, aggregate)
    one, other = (outlook_at(policy, x) for policy in (fast, slow))
    assert not one.stale, "candidates are to be drawn again"
    assert (one.candidates.variance < before - 1e-6).any()
    np.testing.assert_allclose(one.candidates.variance, other.candidates.variance, atol=1e-9)
    exact = 0.02 if skewed else 1e-9  # how values differ says how their shaped mean is corrected
    np.testing.assert_allclose(one.candidates.mean, other.candidates.mean, atol=exact)


def test_a_mean_of_many_of_all_values_has_candidates_drawn_again():
    policy = pt.CalibratedUCB(pt.Box([0.0], [1.0]))
    for i in range(20):
        policy.tell(policy.ask(), 0.1 * (i % 3))
    x = policy.ask()
    policy.tell(x, 0.1, std=0.1, count=3)
    assert outlook_at(policy, x).stale


def test_what_is_known_is_worth_as_many_evaluations_as_halve_its_variance():
    rng = np.random.default_rng(2)
    policy = pt.CalibratedUCB(pt.Box([0.0, 0.0], [1.0, 1.0]), outliers="keep")
    assert policy.worth(policy.ask()) == 0.0  # nothing is known
    for _ in range(80):
        x = policy.ask()
        policy.tell(x, float(np.sin(4 * x[0]) - x[1] ** 2 + 0.3 * rng.standard_normal()))
    x = policy.ask()
    number = round(policy.worth(x))
    assert number > 1
    before = policy.predict(x[None, :])
    policy._next_fit = 10**9  # with the same settings
    policy.tell(x, float(before.mean[0]), std=0.3, count=number)
    after = policy.predict(x[None, :])
    assert float(before.std[0] / after.std[0]) ** 2 == pytest.approx(2.0, rel=0.2)
