"""The calibrated policy on every kind of domain and of values, with nothing given to it."""

import copy
import math
import pickle
import time

import numpy as np
import pytest
from support.common import synthetic

import partita as pt
from partita.errors import InvalidInput
from partita.policies.calibrated import deviations as _deviations
from partita.policies.calibrated import records as _records
from partita.policies.calibrated import search as _search
from partita.policies.calibrated.calibrated_ucb import CalibratedUCB
from partita.policies.calibrated.region import Region

SQUARE = pt.Box([0, 0], [1, 1])
LINE = pt.Box([0], [1])


def bowl(x, centre=0.3):
    return -float(((np.asarray(x) - centre) ** 2).sum())


def run(policy, f, steps, noise=0.0, seed=0):
    """f at the points played; noise is a standard deviation, or a function of the point."""
    rng = np.random.default_rng([seed, 77])
    values = np.empty(steps)
    for i in range(steps):
        x = policy.ask()
        values[i] = f(x)
        std = noise(x) if callable(noise) else noise
        policy.tell(x, float(values[i] + std * rng.standard_normal()))
    return values


def irregular(n, dim, seed=0):
    return np.random.default_rng(seed).random((n, dim)) ** 2


DOMAINS = {
    "line": LINE,
    "box4": pt.Box([-5, 0, 1, 100], [5, 1e-3, 2, 1e5]),
    "box8": pt.Box([0] * 8, [1] * 8),
    "small grid": pt.Grid(5, dim=2),
    "long grid": pt.Grid(2000, dim=1),
    "large grid": pt.Grid(30, dim=3),
    "one arm": pt.Arms([[0.4, 0.4]]),
    "two arms": pt.Arms([[0.4], [0.6]]),
    "few arms": pt.Arms(irregular(40, 2)),
    "many arms": pt.Arms(irregular(2000, 3), lower=[-1, -1, -1], upper=[3, 3, 3]),
}


@pytest.mark.parametrize("name", DOMAINS)
def test_asks_are_of_the_domain_and_repeat(name):
    domain = DOMAINS[name]
    policies = [CalibratedUCB(domain, seed=3) for _ in range(2)]
    rng = np.random.default_rng(0)
    for step in range(45):
        x, again = (policy.ask() for policy in policies)
        np.testing.assert_array_equal(x, again)
        domain.check(x[None, :])
        y = bowl((x - domain.lower) / (domain.upper - domain.lower)) + 0.05 * rng.normal()
        for policy in policies:
            policy.tell(x, y)
        if step in (5, 20):  # a copy goes on alike, with a pending point too
            policies[0].ask(), policies[1].ask()
            policies[0] = pickle.loads(pickle.dumps(policies[0]))
            policies[1] = copy.deepcopy(policies[1])
    first, second = (policy.recommend() for policy in policies)
    np.testing.assert_array_equal(first.x, second.x)
    assert first[1:] == second[1:]
    assert first.lower <= first.mean <= first.upper


def test_seeds_differ():
    asks = [CalibratedUCB(SQUARE, seed=seed).ask() for seed in range(2)]
    assert (asks[0] != asks[1]).any()


@pytest.mark.parametrize(("scale", "offset"), [(1e-6, 0.0), (1e6, 0.0), (1.0, 1e6), (1.0, -1e6)])
def test_units_of_the_values_do_not_matter(scale, offset):
    policy = CalibratedUCB(SQUARE, seed=1)
    values = run(policy, lambda x: offset + scale * bowl(x), 150, noise=0.05 * scale)
    found = policy.recommend()
    assert bowl(found.x) > -0.03
    assert (offset - values[75:]).mean() / scale < 0.03  # uniform: 0.25
    assert 0.5 < policy.settings["noise_std"] / (0.05 * scale) < 2
    assert found.lower < offset + 0.05 * scale
    assert found.upper > offset + scale * bowl(found.x) - 0.05 * scale


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_without_noise_it_converges(offset):
    policy = CalibratedUCB(SQUARE, seed=2)
    run(policy, lambda x: offset + bowl(x), 250)
    assert bowl(policy.recommend().x) > -1e-5
    assert policy.settings["noise_std"] < 1e-2
    # The values seen lately are all alike, but a value far below them is still taken as it is.
    policy.tell(np.array([0.9, 0.9]), offset - 0.72)
    assert policy.predict([[0.9, 0.9]]).mean[0] - offset == pytest.approx(-0.72, abs=0.05)


def test_noise_of_many_times_the_signal():
    policy = CalibratedUCB(LINE, seed=0)
    values = run(policy, lambda x: 4 * bowl(x), 3000, noise=10.0)
    uniform = -4 * (0.3**3 + 0.7**3) / 3
    assert values[1500:].mean() > 0.6 * uniform
    assert 9 < policy.settings["noise_std"] < 11


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_flat_functions(noise):
    policy = CalibratedUCB(SQUARE, seed=0)
    run(policy, lambda x: 7.0, 120, noise=noise)
    found = policy.recommend()
    assert found.lower < 7.0 < found.upper
    assert found.upper - found.lower < 2.0
    assert math.isfinite(policy.certificate())


def test_an_optimum_in_a_corner():
    policy = CalibratedUCB(pt.Box([0] * 3, [1] * 3), seed=0)
    values = run(policy, lambda x: float(x.sum()), 150, noise=0.1)
    assert values[100:].mean() > 2.8
    assert policy.recommend().x.sum() > 2.9


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


def test_fences_are_the_same_for_bulk_tells():
    rng = np.random.default_rng(1)
    X = rng.random((300, 2))
    Y = np.array([bowl(x) for x in X])
    Y[5], Y[100], Y[200] = 1e4, 1e4, -1e4
    one, many = CalibratedUCB(SQUARE), CalibratedUCB(SQUARE)
    for x, y in zip(X, Y, strict=True):
        one.tell(x, y)
    many.tell(X, Y)
    assert many._intake.fences.set
    assert (one._intake.fences.low, one._intake.fences.high) == (
        many._intake.fences.low,
        many._intake.fences.high,
    )
    assert one.clipped == many.clipped == 3
    low, high = many._intake.fences.low, many._intake.fences.high
    assert (
        np.ptp(np.delete(Y, [5, 100, 200])) < high - low < 100 * np.ptp(np.delete(Y, [5, 100, 200]))
    )
    for policy in (one, many):
        means = policy._records.data(np.array(list(policy._records.home))).means
        assert low <= min(means) < max(means) <= high


def test_noise_that_differs_from_place_to_place():
    policy = CalibratedUCB(LINE, seed=0)
    values = run(policy, bowl, 400, noise=lambda x: 0.02 + 0.5 * float(x[0]))
    assert values[200:].mean() > -0.04  # uniform: −0.12
    assert bowl(policy.recommend().x) > -0.02


def test_what_is_given_is_used():
    kernel, noise = pt.Matern(1.5, 0.17), pt.Gaussian(0.3)
    policy = CalibratedUCB(LINE, kernel=kernel, noise=noise, norm_bound=5.0)
    run(policy, bowl, 80, noise=0.1)
    got = policy.settings
    assert got["nu"] == 1.5
    np.testing.assert_allclose(got["lengthscales"], [0.17])
    assert (got["noise_std"], got["amplitude"]) == pytest.approx((0.3, 5 / math.sqrt(20)))
    policy = CalibratedUCB(LINE, noise=noise)
    run(policy, bowl, 80, noise=0.1)
    assert policy.settings["noise_std"] == pytest.approx(0.3)
    policy = CalibratedUCB(LINE, norm_bound=100.0)
    run(policy, bowl, 150, noise=0.1)
    assert 0.07 < policy.settings["noise_std"] < 0.14  # whatever the amplitude
    with pytest.raises(InvalidInput, match="CalibratedUCB takes nu"):
        CalibratedUCB(LINE, kernel=pt.Matern(0.5, 0.2))


def test_prediction_is_scikit_learns_under_the_settings_learned():
    from sklearn.gaussian_process import GaussianProcessRegressor, kernels

    rng = np.random.default_rng(3)
    X = rng.random((60, 2))
    Y = np.array([3 + bowl(x) + 0.1 * rng.normal() for x in X])
    policy = CalibratedUCB(SQUARE)
    policy.tell(X, Y)
    got, queries = policy.settings, rng.random((9, 2))
    model = GaussianProcessRegressor(
        got["amplitude"] ** 2 * kernels.Matern(got["lengthscales"], nu=got["nu"]),
        alpha=got["noise_std"] ** 2,
        optimizer=None,
    ).fit(X, Y - got["mean"])
    mean, std = model.predict(queries, return_std=True)
    found = policy.predict(queries)
    # The region's own mean and amplitude differ a little from the overall ones.
    np.testing.assert_allclose(found.mean, mean + got["mean"], atol=0.02)
    np.testing.assert_allclose(found.std, std, rtol=0.15)


def test_bulk_tells_cut_regions_and_every_site_is_at_home():
    rng = np.random.default_rng(4)
    X = rng.random((1000, 2))
    policy = CalibratedUCB(SQUARE)
    policy.tell(X, np.array([bowl(x) for x in X]) + 0.1 * rng.normal(size=1000))
    run(policy, bowl, 40, noise=0.1)
    assert len(policy._records.regions) >= 4
    sites = []
    for number, region in enumerate(policy._records.regions):
        assert isinstance(region, Region)
        assert len(region.sites) < _records.REGION_POINTS
        assert len(region.sites) + len(region.around) <= _records.MOST_DATA
        assert region.holds(policy._sites.scaled[region.sites]).all()
        assert all(policy._records.home[site] == number for site in region.sites)
        sites += region.sites
    assert sorted(sites) == sorted(policy._records.home)
    assert sum(region.count for region in policy.cover) == policy.told
    assert sum(np.prod(region.upper - region.lower) for region in policy.cover) == 1.0
    warm = [region for region in policy._records.regions if region.moments is not None]
    assert len(warm) <= _search.WARM_REGIONS
    assert bowl(policy.recommend().x) > -0.02


def test_arms_all_in_one_place_but_one():
    points = np.concatenate([0.01 * irregular(700, 2), [[1.0, 1.0]]])
    policy = CalibratedUCB(pt.Arms(points))
    rng = np.random.default_rng(5)
    policy.tell(points[:-1], rng.normal(size=700))  # cuts leave regions without an arm
    run(policy, lambda x: float(x[0]), 60, noise=1.0)
    assert len(policy._records.regions) > 3
    policy.recommend()


def test_tells_out_of_order_and_cancels():
    policy = CalibratedUCB(SQUARE, seed=4)
    run(policy, bowl, 30, noise=0.05)
    asked = [policy.ask() for _ in range(12)]
    assert len({x.tobytes() for x in asked}) > 1  # pending plays are planned for
    for x in asked[::-2]:
        policy.tell(x, bowl(x))
    for x in asked[::2]:
        policy.cancel(x)
    assert policy.pending == 0
    assert policy.told == 36
    values = run(policy, bowl, 100, noise=0.05)
    assert values[50:].mean() > -0.03


def test_regret_is_far_below_uniforms():
    domain = pt.Grid(30, dim=2)
    ours = -np.mean([run(CalibratedUCB(domain, seed=s), bowl, 200, 0.1, s).mean() for s in (0, 1)])
    uniform = -np.mean([bowl(x) for x in domain.points])
    assert ours < 0.25 * uniform


def eggholder(u):
    x, y = 1024 * np.asarray(u) - 512
    first = (y + 47) * math.sin(math.sqrt(abs(x / 2 + y + 47)))
    return (first + x * math.sin(math.sqrt(abs(x - y - 47)))) / 959.64


@pytest.mark.parametrize("name", ["eggholder", "rkhs"])
def test_it_does_not_freeze(name):
    early, late = [], []
    for seed in range(4):
        if name == "eggholder":
            f, top, noise, domain = eggholder, 1.0, 0.06, SQUARE
        else:
            sampled = synthetic(1, np.random.default_rng(seed))
            line = np.linspace(0, 1, 2001)[:, None]
            top, noise, domain = float(sampled(line).max()), 1.7, LINE

            def f(x, sampled=sampled):
                return float(sampled(x[None, :])[0])

        lost = top - run(CalibratedUCB(domain, seed=seed), f, 1000, noise, seed)
        early.append(lost[:250].mean())
        late.append(lost[500:].mean())
    assert np.mean(late) < 0.6 * np.mean(early)  # measured: 0.3


def test_a_step_costs_the_same_for_ever():
    policy, f = CalibratedUCB(LINE), synthetic(1, np.random.default_rng(0))
    rng, marks = np.random.default_rng(1), []
    for step in range(6000):
        if step % 1500 == 0:
            marks.append(time.process_time())
        x = policy.ask()
        policy.tell(x, float(f(x[None, :])[0] + rng.uniform(-1, 1)))
    marks.append(time.process_time())
    assert marks[4] - marks[3] < 2 * (marks[2] - marks[1])
    assert len(policy._records.home) < 600  # plays are of points played before, mostly
    assert len(policy._records.regions) <= 16
    for region in policy._records.regions:
        assert len(region.sites) + len(region.around) <= _records.MOST_DATA


def test_pending_points_are_planned_for_after_a_renewal():
    policy = CalibratedUCB(SQUARE, seed=3)
    rng = np.random.default_rng(0)
    for _ in range(40):
        x = policy.ask()
        policy.tell(x, bowl(x) + rng.normal(0, 0.1))
    asked = [policy.ask() for _ in range(12)]
    region = policy._records.regions[0]
    policy._search.renew(region, policy.told, policy._pending_plays())
    assert sum(policy._search.planned_in(region, policy._pending_plays()).values()) == 12
    for x in asked:
        policy.tell(x, bowl(x))
    assert policy._search.planned_in(region, policy._pending_plays()) == {}


def test_bounds_share_delta_among_the_places_that_lengthscales_leave():
    one = _deviations.simultaneous(0.1, np.array([1e9]))
    assert one == pytest.approx(1.6449, abs=1e-3)  # one value everywhere: a normal 95 % point
    four = _deviations.simultaneous(0.1, np.array([1 / 3]))
    assert four == pytest.approx(2.2414, abs=1e-3)  # the 98.75 % point
    many = _deviations.simultaneous(0.1, np.full(20, 0.01))
    assert many < 6.0


def test_probes_are_few():
    policy = CalibratedUCB(SQUARE, seed=1)
    run(policy, bowl, 400, noise=0.1)
    assert 9 <= policy._probes <= 10  # half the root of 400 less the first design


def test_probes_lie_where_the_bound_is_highest():
    policy = CalibratedUCB(SQUARE, seed=1)
    rng = np.random.default_rng(2)
    highest = 0
    for _ in range(400):
        before = policy._probes
        x = policy.ask()
        if policy._probes > before:
            (region,) = policy._records.regions
            moments = region.moments
            bounds = moments.mean + policy._search.reach * np.sqrt(moments.variance)
            index = moments.mean + _deviations.EXPLORATION * np.sqrt(moments.variance)
            # one draw of candidates: the probe is that of the highest bound, or a play beside it
            probed = moments.points[np.argmax(bounds)]
            highest += np.allclose(SQUARE.to_unit(x[None])[0], probed, atol=0.05)
            assert bounds.max() >= index.max()
        policy.tell(x, bowl(x) + rng.normal(0, 0.1))
    assert highest == policy._probes


def test_a_region_without_candidates_is_looked_at_again_once_a_value_is_told_in_it():
    region = Region(np.zeros(1), np.ones(1), [], np.empty(0, np.int64))
    region.score = -math.inf
    region.stale = False
    region.revive()
    assert region.score == math.inf
    assert region.stale


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_values_of_the_first_design_are_no_outliers(sign):
    policy = CalibratedUCB(LINE, seed=0)
    for _ in range(60):
        x = policy.ask()
        policy.tell(x, sign * float(x[0]))
    assert policy.clipped == 0
    assert policy.predict([[0.2]]).mean[0] == pytest.approx(sign * 0.2, abs=0.05)


def test_values_that_come_again_at_their_point_are_no_outliers():
    policy = CalibratedUCB(LINE, seed=0)
    rng = np.random.default_rng(0)
    for _ in range(300):
        x = policy.ask()
        policy.tell(x, -float((x[0] - 0.2) ** 2) + rng.normal(0, 0.01))
    policy.tell([0.93], 100.0)
    assert policy.clipped == 1
    policy.tell([0.93], 100.0)
    assert policy.clipped == 0
    best = policy.recommend()
    assert best.x[0] == pytest.approx(0.93)
    assert best.mean == pytest.approx(100.0, rel=0.01)


def test_rare_losses_count_if_outliers_are_kept(caplog):
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
    assert caplog.text.count("far outside all others") == 1
    with pytest.raises(InvalidInput, match="outliers"):
        CalibratedUCB(LINE, outliers="drop")


def test_a_constant_is_learned_at_any_height():
    policy = CalibratedUCB(SQUARE, seed=0)
    for _ in range(60):
        policy.tell(policy.ask(), 1e6)
    assert policy.recommend().mean == pytest.approx(1e6, abs=1e-3)
    assert policy.certificate() < 10


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_domain_of_one_point(noise):
    policy, rng = CalibratedUCB(pt.Arms([[0.5]]), seed=0), np.random.default_rng(0)
    for _ in range(40):
        policy.tell(policy.ask(), 80.0 + noise * rng.normal())
    assert policy.recommend().mean == pytest.approx(80.0, abs=0.1)


def test_a_few_values_are_enough_where_many_are_under_way():
    policy = CalibratedUCB(SQUARE, seed=0)
    asked = [policy.ask() for _ in range(6)]
    for x in asked[:3]:
        policy.tell(x, bowl(x))
    assert policy._fitted == 0
    policy.ask()
    assert policy._fitted == 3
