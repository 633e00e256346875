"""Many dimensions: where a trend leads, who is led by it, and that it is saved and bounded."""

import numpy as np
import pytest

import partita as pt
from partita.policies.calibrated import doubles, fits, follow
from partita.policies.calibrated.calibrated_ucb import FOLLOWED_REFIT

DIM = 16
#: The least number of dimensions in which a trend leads.
MANY = follow.MANY + 1


def box(dim=DIM):
    return pt.Box([-1.0] * dim, [3.0] * dim)


def run(policy, evaluations, noise=0.2, seed=0):
    """Evaluate a turned quadratic; its values at the points that were asked for."""
    random = np.random.default_rng([seed, 1])
    dim = policy.domain.dim
    best = np.random.default_rng(8).uniform(0.0, 2.0, dim)
    values = []
    for _ in range(evaluations):
        x = policy.ask()
        values.append(-float(((x - best) ** 2).sum()))
        policy.tell(x, values[-1] + noise * random.uniform(-1, 1))
    return values, best


def test_the_first_point_is_the_centre_and_the_others_are_around_it():
    policy = pt.CalibratedUCB(box(60), seed=3)
    assert np.array_equal(policy.ask(), np.full(60, 1.0))
    others = np.array([policy.ask() for _ in range(29)])
    assert np.abs(others - 1.0).max() <= 0.3 * 4.0
    assert np.ptp(others, axis=0).min() > 0.6


@pytest.mark.parametrize("noise", [0.0, 0.2, 5.0])
def test_evaluations_and_the_answer_get_better_than_the_centre(noise):
    policy = pt.CalibratedUCB(box(), seed=1)
    values, best = run(policy, 250, noise)
    centre = -float(((1.0 - best) ** 2).sum())
    assert np.mean(values[-50:]) > (0.75 if noise > 1.0 else 0.3) * centre
    answer = policy.recommend()
    assert -((answer.x - best) ** 2).sum() > (0.6 if noise > 1.0 else 0.2) * centre
    assert answer.lower <= answer.mean <= answer.upper
    assert any(np.array_equal(answer.x, x) for x in policy._sites.points)


def test_without_noise_a_few_points_are_evaluated_twice_to_find_that_out():
    policy = pt.CalibratedUCB(box(), seed=1)
    run(policy, 120, 0.0)
    assert policy._sums.exact
    before = len(policy._sites)
    assert doubles.LEAST <= 120 - before <= doubles.FIRST
    run(policy, 60, 0.0)
    assert len(policy._sites) == before + 60


def test_a_snapshot_goes_on_as_the_policy_does():
    policy = pt.CalibratedUCB(box(), seed=2)
    run(policy, 90)
    pending = policy.ask()
    again = pt.CalibratedUCB(box(), seed=2)
    again.restore(policy.state())
    for each in (policy, again):
        each.tell(pending, 1.0)
    random = np.random.default_rng(0)
    for _ in range(40):
        x, y = policy.ask(), random.standard_normal()
        assert np.array_equal(x, again.ask())
        policy.tell(x, y)
        again.tell(x, y)
    assert np.array_equal(policy.recommend().x, again.recommend().x)


def test_a_state_with_sites_that_have_no_values_is_refused():
    policy = pt.CalibratedUCB(box(), seed=2)
    run(policy, 40)
    policy.ask()
    state = policy.state()
    state["follower"]["fits"]["used"] = np.arange(len(policy._sites))
    with pytest.raises(pt.errors.PartitaError, match="sites of the trend with values"):
        pt.CalibratedUCB(box(), seed=2).restore(state)


def test_answers_change_nothing():
    asked, left = pt.CalibratedUCB(box(), seed=2), pt.CalibratedUCB(box(), seed=2)
    for each in (asked, left):
        run(each, 60)
    asked.recommend()
    asked.predict([np.zeros(DIM)])
    assert np.array_equal(asked.ask(), left.ask())


def test_pending_points_differ():
    policy = pt.CalibratedUCB(box(), seed=2)
    run(policy, 60)
    points = np.array([policy.ask() for _ in range(12)])
    assert len(np.unique(points, axis=0)) == 12


@pytest.mark.parametrize(
    "policy",
    [
        pt.CalibratedUCB(box(MANY - 1)),
        pt.CalibratedUCB(box(MANY), drift=True),
        pt.CalibratedUCB(box(MANY), kernel=pt.Matern(2.5, 1.0)),
        pt.CalibratedUCB(pt.Arms(np.random.default_rng(0).random((30, MANY)))),
    ],
    ids=["few dimensions", "drift", "kernel", "arms"],
)
def test_no_trend_leads_in_few_dimensions_or_where_more_is_known(policy):
    assert pt.CalibratedUCB(box(MANY))._follower is not None
    assert policy._follower is None


def test_constraints_are_left_to_the_process():
    policy = pt.CalibratedUCB(box(), seed=1)
    policy.constrain([pt.policies.calibrated.limits.Interval(None, 3.0)])
    assert policy._followed is None


def test_fits_are_rarer_only_once_a_trend_has_chosen():
    policy = pt.CalibratedUCB(box(40), seed=1)
    random = np.random.default_rng(0)
    for _ in range(30):
        x = policy.ask(fixed={0: 0.5})
        policy.tell(x, random.standard_normal())
    assert not policy._led
    run(policy, 60)
    assert policy._led
    assert policy._next_fit >= FOLLOWED_REFIT * 30


def test_values_of_any_size_are_followed():
    for scale in (1e-100, 1e100):
        policy = pt.CalibratedUCB(box(), seed=1)
        random = np.random.default_rng(1)
        for _ in range(50):
            x = policy.ask()
            policy.tell(x, scale * (-(x**2).sum() + 0.1 * random.standard_normal()))
        assert np.isfinite(policy.recommend().x).all()


def test_told_noise_weighs():
    policy = pt.CalibratedUCB(box(), seed=1)
    random = np.random.default_rng(1)
    for i in range(80):
        x, std = policy.ask(), (0.0, 0.1, 50.0)[i % 3]
        policy.tell(x, -float(((x - 0.5) ** 2).sum()) + std * random.standard_normal(), std=std)
    centre = DIM * 0.25
    assert ((policy.recommend().x - 0.5) ** 2).sum() < centre


def test_what_a_trend_looks_at_is_bounded(monkeypatch):
    monkeypatch.setattr(fits, "NEAREST", 40)
    policy = pt.CalibratedUCB(box(), seed=1)
    run(policy, 200)
    follower = policy._follower
    assert len(follower.fits._used) == 40
    assert len(follower.fits._recent) <= 80
    away = ((policy._sites.scaled - follower.evolution.mean) ** 2).sum(axis=1)
    assert np.median(away[follower.fits._used]) < np.median(away)


def test_without_noise_the_search_gets_as_narrow_as_it_needs_to():
    policy = pt.CalibratedUCB(box(), seed=1)
    _, best = run(policy, 1200, 0.0)
    assert np.median(policy._follower.evolution.scale) < 3e-3
    centre = float(((1.0 - best) ** 2).sum())
    assert ((policy.recommend().x - best) ** 2).sum() < 1e-4 * centre


def test_with_noise_the_search_stays_wide_enough_to_hear_the_trend():
    policy = pt.CalibratedUCB(box(), seed=1)
    run(policy, 900, 5.0)
    assert np.median(policy._follower.evolution.scale) > 0.03


def test_players_whose_values_rank_higher_get_more_of_the_next_generation():
    for best in range(3):
        policy = pt.CalibratedUCB(box(), seed=1)
        follower = policy._follower
        sites, players = np.arange(12), np.arange(12) % 3
        for site in range(12):
            policy._sites.register(np.random.default_rng(site).random(DIM))
            policy._sums.add(site, float(players[site] == best) + 0.01 * site)
        before = follower.parts.copy()
        follower._learn(sites, players)
        assert follower.parts.sum() == pytest.approx(1.0)
        assert int(np.argmax(follower.parts / before)) == best


def test_a_generation_is_shared_out_as_the_parts_say():
    follower = pt.CalibratedUCB(box(60), seed=1)._follower
    follower.evolution.points, follower.parts = 20, np.array([0.2, 0.8])
    assert [follower._player(i) for i in range(20)] == [1] * 17 + [0] * 3  # the top is one more
    follower = pt.CalibratedUCB(box(), seed=1)._follower
    follower.evolution.points, follower.parts = 10, np.array([0.3, 0.4, 0.3])
    assert sorted(follower._player(i) for i in range(1, 10)) == [0, 0, 1, 1, 1, 1, 2, 2, 2]


def test_the_process_leaves_when_it_gets_no_points():
    policy = pt.CalibratedUCB(box(), seed=1)
    run(policy, 60)
    policy._follower.parts = np.array([0.5, 0.49, 0.01])
    policy._search.choose = None  # it is not asked any more
    run(policy, 30)
    assert policy._led
    assert not policy._follower.with_process


def test_noise_is_measured_by_points_that_are_evaluated_twice():
    policy = pt.CalibratedUCB(box(), seed=1)
    run(policy, 500, 1.0)
    sites = policy._follower.doubles._repeated()
    assert len(sites) >= doubles.LEAST
    data = policy._model.shaped(policy._sums.data(sites), policy._model.fit.best)
    variances = policy._follower.doubles.variances(data)
    within = policy._sums.data(sites).within
    assert 0.1 < within.sum() / (data.counts - 1).sum() < 1.0  # a third is the truth
    assert (variances > 0.0).all()


def test_with_loud_noise_points_are_ranked_by_the_trend():
    policy = pt.CalibratedUCB(box(), seed=1)
    _, best = run(policy, 600, 8.0)
    follower = policy._follower
    sites = np.array(follower.fits._recent[-60:])
    ranked = follower._ranked(sites)
    truth = -((policy._sites.points[sites] - best) ** 2).sum(axis=1)
    assert ranked.noise > 0.5
    raw = np.corrcoef(truth, follower._values(sites))[0, 1]
    assert np.corrcoef(truth, ranked.values)[0, 1] > raw
    quiet = pt.CalibratedUCB(box(), seed=1)
    run(quiet, 300, 0.0)
    sites = np.array(quiet._follower.fits._recent[-30:])
    assert quiet._follower._ranked(sites).noise == 0.0


def test_a_search_that_is_led_astray_goes_back():
    policy = pt.CalibratedUCB(box(), seed=1)
    _, best = run(policy, 500, 0.0)
    follower = policy._follower
    kept = follower.guard.best
    follower.evolution = follower.evolution.moved(np.full(DIM, 0.95), 0.3)
    run(policy, 200, 0.0)
    away = np.linalg.norm(follower.evolution.mean - kept.mean)
    assert away < 0.5 * np.linalg.norm(np.full(DIM, 0.95) - kept.mean)
    centre = float(((1.0 - best) ** 2).sum())
    assert ((policy.recommend().x - best) ** 2).sum() < 0.05 * centre


def test_failed_evaluations_rank_last_and_the_search_goes_on():
    policy = pt.CalibratedUCB(box(), seed=2)
    random, best = np.random.default_rng(0), np.full(DIM, 1.5)
    failures = []
    for _ in range(400):
        x = policy.ask()
        fails = bool(x[0] + x[1] > 2.0)
        failures.append(fails)
        if fails:
            policy.fail(x)
        else:
            policy.tell(x, -float(((x - best) ** 2).sum()) + 0.1 * random.standard_normal())
    assert policy._led
    assert np.mean(failures[-100:]) < 0.6
    assert ((policy.recommend().x - best) ** 2).sum() < 0.3 * DIM * 0.25
    again = pt.CalibratedUCB(box(), seed=2)
    again.restore(policy.state())
    assert np.array_equal(policy.ask(), again.ask())


def test_a_generation_of_failures_makes_the_search_narrower():
    policy = pt.CalibratedUCB(box(40), seed=2)
    run(policy, 60)
    before = policy._follower.evolution.step
    for _ in range(60):
        policy.fail(policy.ask())
    assert policy._follower.evolution.step < 0.8 * before
    run(policy, 20)


def test_generations_are_complete_however_values_come():
    policy = pt.CalibratedUCB(box(), seed=4)
    run(policy, 40)
    pending, random = [policy.ask() for _ in range(60)], np.random.default_rng(0)
    for x in pending[:10]:
        policy.cancel(x)
    before = policy._follower.evolution.generation
    for i in random.permutation(np.arange(10, 60)):
        policy.tell(pending[i], -float((pending[i] ** 2).sum()))
    policy.ask()
    assert policy._follower.evolution.generation >= before + 2
    most = follow.PENDING * policy._follower.evolution.points
    assert len(policy._follower._sites_now) <= most


def test_a_search_begins_at_the_best_of_values_told_before():
    policy = pt.CalibratedUCB(box(), seed=1)
    random, best = np.random.default_rng(3), np.full(DIM, 2.0)
    points = random.uniform(-1.0, 3.0, (300, DIM))
    policy.tell(points, -((points - best) ** 2).sum(axis=1) + 0.1 * random.standard_normal(300))
    asked = np.array([policy.ask() for _ in range(20)])
    mean = ((asked - best) ** 2).sum(axis=1).mean()
    assert mean < np.median(((points - best) ** 2).sum(axis=1))


def test_once_all_is_found_the_search_begins_again_around_the_answer(monkeypatch):
    monkeypatch.setattr(follow, "FOUND", 0.02)
    policy = pt.CalibratedUCB(box(), seed=1)
    _, best = run(policy, 900, 0.0)
    follower = policy._follower
    assert follower.evolution.points > follow.usual_points(DIM)
    assert follower._kept is not None
    again = pt.CalibratedUCB(box(), seed=1)
    again.restore(policy.state())
    assert np.array_equal(policy.ask(), again.ask())
    assert ((policy.recommend().x - best) ** 2).sum() < 0.05 * ((1.0 - best) ** 2).sum()


def test_no_fit_is_done_at_once_in_many_dimensions(monkeypatch):
    """All of a fit in one tell would hold it up for up to half a second."""
    policy = pt.CalibratedUCB(box(), seed=1)
    monkeypatch.setattr(type(policy), "_refit", None)
    run(policy, 60)
    assert policy._model.learning or policy._model.fit.spread.any()


@pytest.mark.parametrize("value", [0.0, 1e-5, -1e140])
def test_equal_values_are_saved_and_restored(value):
    policy = pt.CalibratedUCB(box(), seed=1)
    for _ in range(40):
        policy.tell(policy.ask(), value)
    again = pt.CalibratedUCB(box(), seed=1)
    again.restore(policy.state())
    assert np.array_equal(policy.ask(), again.ask())


def test_a_state_stays_as_it_was_when_the_policy_goes_on():
    policy = pt.CalibratedUCB(box(), seed=1)
    run(policy, 60)
    state, parts = policy.state(), policy._follower.parts.copy()
    run(policy, 60)
    assert not np.array_equal(policy._follower.parts, parts)
    again = pt.CalibratedUCB(box(), seed=1)
    again.restore(state)
    assert np.array_equal(again._follower.parts, parts)
