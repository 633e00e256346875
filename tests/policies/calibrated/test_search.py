"""Regions, candidates, probes and pending plays of the calibrated policy."""

import math
import pickle

import numpy as np
import pytest
from support.calibrated import SQUARE, bowl, played, run, told

import partita as pt
from partita.partition.cover import Geometry
from partita.partition.sites import ArmSites
from partita.policies.calibrated import regions, search
from partita.policies.calibrated.calibrated_ucb import CalibratedUCB
from partita.policies.calibrated.candidates import EXPLORATION, Plan, Proposals
from partita.policies.calibrated.regions import Region, Regions
from partita.policies.calibrated.search import Outlook

# -- regions ---------------------------------------------------------------------------------------


def test_halves_share_out_the_sites_and_keep_the_nearest(monkeypatch):
    for name, number in (("REGION_POINTS", 43), ("MOST_DATA", 30), ("AROUND", 5)):
        monkeypatch.setattr(regions, name, number)
    rng = np.random.default_rng(7)
    points = np.concatenate([rng.random((40, 2)), [[0.5, 0.2], [1.0, 1.0], [0.0, 0.5]]])
    made = Regions(ArmSites(pt.Arms(points), Geometry(2, 1), 0))
    scales = np.array([0.2, 0.7])  # the first side is the longer in lengthscales
    for site in range(len(points)):
        assert not made.cut(0, scales)
        assert made.add(site) == 0
    whole = Outlook(made[0], index=3.0, ceiling=4.0, floor=2.0)
    assert made.cut(0, scales)
    halves = list(made)
    for half in halves:
        outlook = whole.of_part(half)
        assert (outlook.index, outlook.ceiling, outlook.floor) == (3.0, 4.0, 2.0)
        assert half.holds(points[half.sites]).all()
        assert len(half.around) == max(5, 30 - len(half.sites))
        assert not set(half.around.tolist()) & set(half.sites)
        away = np.maximum(half.lower - points, points - half.upper).clip(min=0) / scales
        away = np.sqrt((away**2).sum(axis=1))
        left = np.setdiff1d(np.arange(len(points)), [*half.sites, *half.around])
        assert away[half.around].max() <= away[left].min()
    assert [half.upper[0] for half in halves] == [0.5, 1.0]
    assert sorted(halves[0].sites + halves[1].sites) == list(range(len(points)))
    assert made.home[40] == 1  # on the face


def test_regions_are_found_by_their_cuts():
    policy = told(3000)
    rows = np.random.default_rng(1).random((200, 2))
    for row in [*rows, np.zeros(2), np.ones(2), np.full(2, 0.5)]:
        number = policy._regions.number_at(row)
        assert policy._regions[number].holds(row[None, :])[0]


def test_bulk_tells_cut_regions_and_every_site_is_at_home():
    rng = np.random.default_rng(4)
    X = rng.random((1000, 2))
    policy = CalibratedUCB(SQUARE)
    policy.tell(X, np.array([bowl(x) for x in X]) + 0.1 * rng.normal(size=1000))
    run(policy, bowl, 40, noise=0.1)
    assert len(policy._regions) >= 4
    sites = []
    for number, region in enumerate(policy._regions):
        assert len(region.sites) < regions.REGION_POINTS
        assert len(region.sites) + len(region.around) <= regions.MOST_DATA
        assert region.holds(policy._sites.scaled[region.sites]).all()
        assert all(policy._regions.home[site] == number for site in region.sites)
        sites += region.sites
    assert sorted(sites) == sorted(policy._regions.home)
    assert sum(region.count for region in policy.cover) == policy.told
    assert sum(np.prod(region.upper - region.lower) for region in policy.cover) == 1.0
    outlooks = policy._search.outlooks
    assert [outlook.region for outlook in outlooks] == list(policy._regions)
    warm = [outlook for outlook in outlooks if outlook.candidates is not None]
    assert len(warm) <= search.WARM_REGIONS
    assert bowl(policy.recommend().x) > -0.02


def test_the_best_region_keeps_its_candidates_while_another_is_renewed(monkeypatch):
    for name, number in (("REGION_POINTS", 40), ("MOST_DATA", 30), ("AROUND", 10)):
        monkeypatch.setattr(regions, name, number)
    monkeypatch.setattr(search, "WARM_REGIONS", 2)
    policy = told(400)
    policy.tell(policy.ask(), 0.0)
    outlooks = policy._search.outlooks
    while sum(one.candidates is not None for one in outlooks) < 2:
        policy.tell(policy.ask(), 0.0)
    best = next(one for one in outlooks if one.candidates is not None)
    cold = next(one for one in outlooks if one.candidates is None)
    for outlook in outlooks:
        outlook.stale = outlook is cold
    best.index, best.used_at, cold.index = 100.0, -1, 99.0  # the best was used longest ago
    chosen = policy._search._best_region(False, 400, Plan({}, policy._sites, policy._regions.home))
    assert chosen is best
    assert chosen.candidates is not None
    assert sum(one.candidates is not None for one in outlooks) == 2


def test_arms_all_in_one_place_but_one():
    points = np.concatenate([0.01 * np.random.default_rng(0).random((700, 2)) ** 2, [[1.0, 1.0]]])
    policy = CalibratedUCB(pt.Arms(points))
    rng = np.random.default_rng(5)
    policy.tell(points[:-1], rng.normal(size=700))  # cuts leave regions without an arm
    run(policy, lambda x: float(x[0]), 60, noise=1.0)
    assert len(policy._regions) > 3
    policy.recommend()


def test_a_region_without_candidates_is_looked_at_again_once_a_value_is_told_in_it():
    region = Region(np.zeros(1), np.ones(1), [], np.empty(0, np.int64))
    outlook = Outlook(region, stale=False, index=-math.inf)
    outlook.revive()
    assert outlook.index == math.inf
    assert outlook.stale


# -- candidates and probes -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["box", "grid", "arms"])
def test_candidates_are_of_the_region_and_of_the_domain(kind):
    rng = np.random.default_rng(8)
    domain = {
        "box": pt.Box([-1, 5], [1, 9]),
        "grid": pt.Grid(33, dim=2),
        "arms": pt.Arms(rng.random((900, 2)) ** 2, lower=[-1, -1], upper=[2, 2]),
    }[kind]
    proposals = Proposals(domain)
    for lower, upper in (([0, 0], [1, 1]), ([0.25, 0.5], [0.5, 1.0]), ([0.5, 0.375], [0.75, 0.5])):
        region = Region(np.array(lower, float), np.array(upper, float), [], np.empty(0, np.int64))
        centre = np.array([[upper[0], 0.5 * (lower[1] + upper[1])]])
        drawn = proposals.draw(rng, region.lower, region.upper, centre)
        assert len(drawn) > 5
        # A point on an inner face would be told to the region beyond it, and tried for ever.
        assert region.holds(drawn).all()
        if kind != "box":
            known = {row.tobytes() for row in domain.unit_points}
            assert all(row.tobytes() in known for row in drawn)
            assert len({row.tobytes() for row in drawn}) == len(drawn)


def test_what_is_saved_holds_nothing_of_scipys():
    """Snapshots of studies refuse what is not ours."""
    points = np.random.default_rng(0).random((900, 2))
    policy = played(CalibratedUCB(pt.Arms(points)), bowl, 12)
    assert policy._search.proposals._tree is not None
    assert b"scipy" not in pickle.dumps(policy)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(policy)).ask(), policy.ask())


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
            (outlook,) = policy._search.outlooks
            made, reach = outlook.candidates, policy._model.reach(policy._model.fit.best)
            bounds = made.mean + reach * np.sqrt(made.variance)
            index = made.mean + EXPLORATION * np.sqrt(made.variance)
            # one draw of candidates: the probe is that of the highest bound, or a play beside it
            probed = made.points[np.argmax(bounds)]
            highest += np.allclose(SQUARE.to_unit(x[None])[0], probed, atol=0.05)
            assert bounds.max() >= index.max()
        policy.tell(x, bowl(x) + rng.normal(0, 0.1))
    assert highest == policy._probes


def test_without_noise_another_maximum_is_looked_for_where_it_would_surprise_least():
    policy = CalibratedUCB(SQUARE, seed=1)
    explored = 0
    for _ in range(150):
        before = policy._search._explored
        x = policy.ask()
        if policy._search._explored > before:
            (outlook,) = policy._search.outlooks
            made = outlook.candidates
            best = made.mean[made.played].max()
            chance = [
                -math.inf if played else -(best + 0.1 - mean) / math.sqrt(max(variance, 1e-9))
                for mean, variance, played in zip(
                    made.mean, made.variance, made.played, strict=True
                )
            ]
            likeliest = made.points[np.argmax(chance)]
            assert (SQUARE.to_unit(x[None])[0] == likeliest).all()
            explored += 1
        policy.tell(x, bowl(x))
    assert explored == math.ceil(math.sqrt(policy._search._settled / 2)) >= 3


# -- pending plays ---------------------------------------------------------------------------------


def test_pending_points_are_planned_for_after_a_renewal():
    policy = CalibratedUCB(SQUARE, seed=3)
    rng = np.random.default_rng(0)
    for _ in range(40):
        x = policy.ask()
        policy.tell(x, bowl(x) + rng.normal(0, 0.1))
    asked = [policy.ask() for _ in range(12)]
    (outlook,) = policy._search.outlooks

    def plan():
        return Plan(policy._pending_plays(), policy._sites, policy._regions.home)

    policy._search.renew(outlook, policy.told, plan())
    assert sum(plan().plays_of(outlook.candidates).values()) == 12
    for x in asked:
        policy.tell(x, bowl(x))
    assert plan().plays_of(outlook.candidates) == {}


def test_hundreds_of_pending_points_are_spread():
    policy = played(CalibratedUCB(SQUARE, seed=0), bowl, 60, noise=0.1)
    asks = [policy.ask().tobytes() for _ in range(200)]
    assert max(map(asks.count, set(asks))) < 100
    assert len(set(asks[100:])) > 5  # it was one
    arms = played(CalibratedUCB(pt.Arms(np.linspace(0, 1, 5)[:, None])), bowl, 60, noise=0.3)
    assert len({arms.ask().tobytes() for _ in range(200)}) > 1


def test_regions_share_the_pending_plays():
    def twins(x):
        return math.exp(-((x[0] - 0.2) ** 2) * 60) + math.exp(-((x[0] - 0.8) ** 2) * 60)

    rng = np.random.default_rng(0)
    X = rng.random((700, 2))
    policy = CalibratedUCB(SQUARE, seed=0)
    policy.tell(X, np.array([twins(x) for x in X]) + 0.3 * rng.normal(size=700))
    assert len(policy.cover) > 2
    left = np.mean([policy.ask()[0] < 0.5 for _ in range(120)])
    assert 0 < left < 1


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


def test_what_was_cancelled_is_not_asked_for_ever():
    policy = played(CalibratedUCB(SQUARE, seed=0), bowl, 30, noise=0.05)
    asked = set()
    for _ in range(60):
        x = policy.ask()
        asked.add(x.tobytes())
        policy.cancel(x)
    assert len(asked) > 5  # it was one
    assert policy.pending == 0
    run(policy, bowl, 60, noise=0.05)
    assert not policy._given_up  # forgotten, once as many values have come


def test_a_pending_site_spelt_in_two_ways_counts_twice():
    policy = CalibratedUCB(pt.Grid(11))
    policy.expect([0.3])
    policy.expect([0.1 + 0.2])
    assert policy.pending == 2
    assert sum(policy._pending_plays().values()) == 2
