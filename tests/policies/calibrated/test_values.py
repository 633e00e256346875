"""What told values count as: outliers, and values without noise."""

import math

import numpy as np
import pytest
from support.calibrated import LINE, SQUARE, bowl, dip, played, run

from partita.errors import InvalidInput
from partita.partition.cover import Geometry
from partita.partition.sites import BoxSites
from partita.policies.calibrated.calibrated_ucb import CalibratedUCB
from partita.policies.calibrated.values import Sums


def sums_at(x):
    """Sums with room for one site, and that site."""
    sites = BoxSites(LINE, Geometry(1, 1))
    site, sums = int(sites.locate(np.array([[x]]))[0]), Sums(sites)
    return sums, site


def test_sums_are_those_of_the_values():
    sums, site = sums_at(0.25)
    for value in (3.0, 5.0, 4.0):
        sums.add(site, value)
    data = sums.data(np.array([site]))
    assert (data.counts[0], data.means[0], data.within[0]) == (3, pytest.approx(4.0), 2.0)
    assert not data.told


def test_values_of_known_noise_are_weighted_by_their_precision():
    sums, site = sums_at(0.25)
    for value, std in ((3.0, 0.5), (5.0, 0.1), (4.0, 2.0)):
        sums.add(site, value, std)
    precision = np.array([0.5, 0.1, 2.0]) ** -2
    alone = sums.data(np.array([site]))
    assert alone.means[0] == pytest.approx(np.average([3.0, 5.0, 4.0], weights=precision))
    assert alone.known[0] == pytest.approx(1 / precision.sum())
    sums.add(site, 7.0)  # the noise of this one is not known
    both = sums.data(np.array([site]))
    assert len(both.means) == 2
    assert (both.counts[0], both.means[0], math.isnan(both.known[0])) == (1, 7.0, True)
    assert (both.means[1], both.known[1]) == (alone.means[0], alone.known[0])


def test_exact_values_outweigh_all_others():
    sums, site = sums_at(0.25)
    sums.add(site, 100.0, 1.0)
    sums.add(site, 3.0, 0.0)
    data = sums.data(np.array([site]))
    assert (data.means[0], data.known[0]) == (3.0, pytest.approx(0.0, abs=1e-200))


def test_means_of_large_values_do_not_drift():
    sums, site = sums_at(0.5)
    for _ in range(20_000):
        sums.add(site, 1e9 + 0.05)
    means, within = sums.data(np.array([site]))[2:4]
    assert means[0] == 1e9 + 0.05
    assert within[0] == 0.0


# -- outliers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_heavy_outliers(early, sign):
    policy = CalibratedUCB(SQUARE, seed=0)
    rng = np.random.default_rng(9)
    values = []
    for step in range(600):
        x = policy.ask()
        values.append(bowl(x))
        y = values[-1] + 0.1 * rng.normal()
        if (step == 5) if early else (step >= 16 and rng.random() < 0.01):
            y = 1e4 * sign
        policy.tell(x, float(y))
    assert np.mean(values[300:]) > -0.1  # uniform: −0.25
    assert bowl(policy.recommend().x) > -0.05


def test_a_baseline_told_often_does_not_hide_the_peak():
    """A baseline told often, then a run: all the first plays are far outside its values."""
    policy, rng = CalibratedUCB(SQUARE, seed=1), np.random.default_rng(1)
    corner = np.array([0.95, 0.95])
    policy.tell(np.tile(corner, (20, 1)), bowl(corner) + 1e-3 * rng.normal(size=20))
    run(policy, bowl, 40, noise=1e-3)
    assert bowl(policy.recommend().x) > -1e-3


@pytest.mark.parametrize("seed", range(3))
def test_a_sharp_peak_is_no_outlier(seed):
    def peak(x):
        return math.exp(bowl(x) / (2 * 0.08**2))

    policy = played(CalibratedUCB(SQUARE, seed=seed), peak, 60)
    assert peak(policy.recommend().x) > 0.999


@pytest.mark.parametrize("luck", [10.0, 1e3, 1e6])
def test_a_value_too_good_to_be_true_is_found_out(luck):
    policy = played(CalibratedUCB(SQUARE, seed=0), bowl, 40, noise=0.1)
    lucky = np.array([0.9, 0.9])
    policy.tell(lucky, luck)
    plays, rng = [], np.random.default_rng(0)
    for _ in range(60):
        plays.append(policy.ask())
        policy.tell(plays[-1], bowl(plays[-1]) + 0.1 * rng.normal())
    assert np.linalg.norm(np.array(plays) - lucky, axis=1).min() < 0.15  # it looked there,
    assert np.sum(np.linalg.norm(np.array(plays) - lucky, axis=1) < 0.15) <= 12  # not for ever
    answer = policy.recommend()
    assert bowl(answer.x) > -0.1
    assert answer.mean < 0.2


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_values_of_the_first_design_are_kept_in_mind(sign):
    policy = CalibratedUCB(LINE, seed=0)
    for _ in range(60):
        x = policy.ask()
        policy.tell(x, sign * float(x[0]))
    assert policy.predict([[0.2]]).mean[0] == pytest.approx(sign * 0.2, abs=0.05)


def test_values_that_come_again_at_their_point_are_no_outliers():
    policy = CalibratedUCB(LINE, seed=0)
    rng = np.random.default_rng(0)
    for _ in range(300):
        x = policy.ask()
        policy.tell(x, -float((x[0] - 0.2) ** 2) + rng.normal(0, 0.01))
    for _ in range(4):
        policy.tell([0.93], 100.0)
    best = policy.recommend()
    assert best.x[0] == pytest.approx(0.93)
    assert best.lower < 100.0 < best.upper
    assert best.mean == pytest.approx(100.0, rel=0.2)


def test_rare_losses_count_if_outliers_are_kept():
    def loss(x, rng):  # on average 1 − 10 (1 − x): the best is x = 1, without the losses it is 0
        return -float(x[0] + rng.normal() * 0.1 + 1000 * (rng.random() < 0.01 * (1 - x[0])))

    answers = {}
    for outliers in ("clip", "keep"):
        policy, rng = CalibratedUCB(LINE, seed=0, outliers=outliers), np.random.default_rng(0)
        for _ in range(1500):
            x = policy.ask()
            policy.tell(x, loss(x, rng))
        answers[outliers] = float(policy.recommend().x[0])
    assert answers["clip"] < 0.2
    assert answers["keep"] > 0.5
    with pytest.raises(InvalidInput, match="outliers"):
        CalibratedUCB(LINE, outliers="drop")


# -- no noise --------------------------------------------------------------------------------------


def waves(x):
    top = math.exp(-((x[0] - 0.8) ** 2 + (x[1] - 0.8) ** 2) / 0.01)
    return math.sin(9 * x[0]) * math.cos(7 * x[1]) + top + x[0] / 2


def test_without_noise_nothing_is_played_twice_and_bounds_hold():
    policy = played(CalibratedUCB(SQUARE, seed=0), waves, 250)
    assert policy._sums.exact
    assert len(policy._regions.home) > 225  # replays until it was sure
    grid = np.stack(np.meshgrid(*2 * [np.linspace(0, 1, 41)]), axis=-1).reshape(-1, 2)
    values = np.array([waves(x) for x in grid])
    assert waves(policy.recommend().x) > values.max() - 1e-3
    found = policy.predict(grid)
    assert np.mean((found.lower <= values) & (values <= found.upper)) > 0.9  # it was 0.58


def ripples(x):  # ten maxima (Gramacy & Lee 2012)
    u = 0.5 + 2 * x[0]
    return -math.sin(10 * math.pi * u) / (2 * u) - (u - 1) ** 4


@pytest.mark.parametrize("f", [dip, ripples])
def test_without_noise_it_does_not_stay_at_the_wrong_maximum(f):
    top = max(f([v]) for v in np.linspace(0, 1, 4001))
    found = [f(played(CalibratedUCB(LINE, seed=s), f, 100).recommend().x) for s in range(8)]
    assert min(found) > top - 0.01  # some were 5 below for `dip`, most 0.2 to 0.3 for `ripples`


def test_noise_that_shows_itself_later_is_seen():
    policy = played(CalibratedUCB(LINE, seed=0), bowl, 60)
    assert policy._sums.exact
    x = policy.recommend().x
    policy.tell(x, bowl(x) + 0.3)
    assert not policy._sums.exact
    run(policy, bowl, 400, noise=0.3)
    assert 0.1 < policy.settings["noise_std"] < 0.5


def test_yes_and_no_are_not_taken_for_values_without_noise():
    policy, rng = CalibratedUCB(LINE, seed=0), np.random.default_rng(0)
    for _ in range(300):
        x = policy.ask()
        policy.tell(x, float(rng.random() < 0.2 + 0.7 * math.exp(-30 * (x[0] - 0.6) ** 2)))
    assert not policy._sums.exact
    assert policy.recommend().x[0] == pytest.approx(0.6, abs=0.15)
    assert policy.settings["noise_std"] > 0.2


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_without_noise_it_converges(offset):
    policy = CalibratedUCB(SQUARE, seed=2)
    run(policy, lambda x: offset + bowl(x), 250)
    assert bowl(policy.recommend().x) > -1e-5
    assert policy.settings["noise_std"] < 1e-2
    # The values seen lately are all alike, but a value far below them is still taken as it is.
    policy.tell(np.array([0.9, 0.9]), offset - 0.72)
    assert policy.predict([[0.9, 0.9]]).mean[0] - offset == pytest.approx(-0.72, abs=0.05)
