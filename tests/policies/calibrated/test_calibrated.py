"""The calibrated policy on every kind of domain and of values, with nothing given to it."""

import copy
import math
import pickle
import time

import numpy as np
import pytest
from support.calibrated import LINE, SQUARE, bowl, dip, played, run, told
from support.common import synthetic

import partita as pt
from partita.errors import InvalidInput
from partita.policies.calibrated import regions
from partita.policies.calibrated.calibrated_ucb import CalibratedUCB


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
    assert len(policy._regions.home) < 600  # plays are of points played before, mostly
    assert len(policy._regions) <= 16
    for region in policy._regions:
        assert len(region.sites) + len(region.around) <= regions.MOST_DATA


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


# -- answers ---------------------------------------------------------------------------------------


def test_answers_before_the_first_design_is_told():
    result = pt.minimize(lambda x: 1000 + x[0] ** 2, [(-1, 1)], n_evals=3)
    assert result.fun == pytest.approx(1000, abs=2)
    policy = CalibratedUCB(pt.Box([0] * 6, [1] * 6), seed=0)
    values = {}
    for _ in range(12):
        x = policy.ask()
        values[x.tobytes()] = 1000 + bowl(x)
        policy.tell(x, 1000 + bowl(x))
        best = policy.recommend()
        assert best.mean == pytest.approx(1000, abs=2)
    assert policy.settings["mean"] == pytest.approx(1000, abs=2)
    assert values[best.x.tobytes()] >= sorted(values.values())[-3]
    one = CalibratedUCB(LINE)
    one.tell([0.5], 7.0)
    assert one.recommend().mean == pytest.approx(7.0)


def test_answers_after_many_told_points_come_from_the_best_of_them():
    policy = told(3000)
    assert len(policy.cover) > 10
    best = policy.recommend()
    assert bowl(best.x, 0.9) > -1e-3
    assert best.lower - 0.01 < 0 < best.upper + 0.01
    assert 0 < policy.certificate() < 0.1  # before anything was asked
    asks = [policy.ask() for _ in range(10)]
    assert max(np.linalg.norm(x - 0.9) for x in asks) < 0.5  # no region gets a play for being new


def test_a_certificate_is_of_the_data_as_it_is():
    policy = played(CalibratedUCB(LINE, seed=0), bowl, 60, noise=0.1)
    before = policy.certificate()
    saved = pickle.dumps(policy)
    policy.tell([0.99], 2.0)
    policy.tell([0.99], 2.0)  # much better than all before, just now
    best = policy.recommend()
    assert best.x[0] > 0.98
    assert policy.certificate() >= best.upper - best.lower > 0
    same = pickle.loads(saved)
    assert same.certificate() == before
    assert same.certificate() == before  # looking changes nothing
    np.testing.assert_array_equal(same.ask(), pickle.loads(saved).ask())


def test_nothing_is_certified_by_a_handful_of_values():
    policy = CalibratedUCB(LINE, seed=0)
    run(policy, dip, 19)
    assert policy.certificate() == math.inf
    run(policy, dip, 1)
    assert policy.certificate() < math.inf


def test_a_tolerance_is_hardly_ever_reached_in_error():
    top = max(dip([v]) for v in np.linspace(0, 1, 2001))
    wrong = 0
    for seed in range(10):
        result = pt.maximize(dip, [(0, 1)], n_evals=100, tolerance=0.05, seed=seed)
        wrong += top - dip(result.x) > result.certificate + 1e-6
    assert wrong <= 3  # a needle that 20 values miss; 9 of 10 before, 8 with a certificate of 0


@pytest.mark.parametrize("delta", [1e-10, 1e-16, 1e-300])
def test_tiny_chances_of_failure(delta):
    policy = CalibratedUCB(pt.Box([0] * 12, [1] * 12), delta=delta)
    assert 6 < policy._model.reach(policy._model.believed) < 40
