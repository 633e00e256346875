"""Constraints and failures in the calibrated policy: its state, its cost, what chance does."""

import numpy as np
import pytest

import partita as pt
from partita._state import BadState
from partita._types import Interval
from partita.errors import InvalidInput, NotPending
from partita.policies.calibrated import regions as regions_module
from partita.policies.calibrated.calibrated_ucb import CalibratedUCB
from partita.policies.calibrated.limits import Limits
from partita.study.packed import pack, unpack

DOMAINS = {"box": pt.Box([0.0, -1.0], [1.0, 1.0]), "grid": pt.Grid(9, dim=2)}


def new(kind="box", constrained=True, seed=3):
    policy = CalibratedUCB(DOMAINS[kind], seed=seed)
    if constrained:
        policy.constrain([Interval(upper=0.4), Interval(lower=-0.5)])
    return policy


def step(policy, random, constrained=True):
    x = policy.ask()
    if random.random() < 0.2 or x.sum() > 1.3:
        policy.fail(x)
        return
    if constrained:
        policy.measure(x, [float(x[0] ** 2 + 0.1 * random.normal()), float(x[1])])
    policy.tell(x, float(np.sin(3 * x).sum() + 0.1 * random.normal()))


@pytest.mark.parametrize("kind", DOMAINS)
@pytest.mark.parametrize("constrained", [True, False])
def test_a_saved_policy_goes_on_to_the_last_bit(kind, constrained, monkeypatch):
    monkeypatch.setattr(regions_module, "REGION_POINTS", 12)  # several regions
    monkeypatch.setattr(regions_module, "MOST_DATA", 24)
    policy, twin = new(kind, constrained), new(kind, constrained)
    draws = [np.random.default_rng(7), np.random.default_rng(7)]
    for i in range(36):
        step(policy, draws[0], constrained)
        step(twin, draws[1], constrained)
        if i % 5 == 2:
            data = pack(twin.state())
            twin = new(kind, constrained)
            twin.restore(unpack(data))
            assert pack(twin.state()) == data
    assert pack(policy.state()) == pack(twin.state())
    best = policy.recommend()
    assert np.array_equal(best.x, twin.recommend().x)
    assert policy.limits_at(best.x) == twin.limits_at(best.x)


def test_states_of_other_constraints_or_damaged_ones_are_refused():
    policy, random = new(), np.random.default_rng(1)
    for _ in range(12):
        step(policy, random)
    state = policy.state()
    with pytest.raises(BadState):
        new(constrained=False).restore(state)
    with pytest.raises(BadState, match="constraints"):
        new().restore({**state, "limits": None})
    limits = state["limits"]
    for part in (
        {"quantities": limits["quantities"][:1]},
        {"quantities": [None, None]},
        {"debt": -1.0},
        {"success": {**limits["success"], "seen": 1}},
        {"success": {**limits["success"], "next_fit": 0}},
    ):
        with pytest.raises(BadState):
            new().restore({**state, "limits": {**limits, **part}})


def test_what_cannot_be_is_refused():
    policy = new()
    with pytest.raises(NotPending):
        policy.fail([0.5, 0.5])
    x = policy.ask()
    policy.fail(x)
    with pytest.raises(NotPending):
        policy.fail(x)
    policy.ask()
    with pytest.raises(InvalidInput, match="used already"):
        policy.constrain([Interval(upper=1.0)])


def test_failures_by_chance_weigh_alike_everywhere_and_those_of_a_place_do_not():
    """The control is the other: the same number of failures, all in one half."""
    spreads = []
    for by_place in (False, True):
        sites = CalibratedUCB(DOMAINS["grid"])._sites
        limits, random = Limits(sites, (), 0.1), np.random.default_rng(2)
        points = sites.scaled
        for site in random.permutation(len(points)).tolist():
            bad = points[site][0] > 0.7 if by_place else random.random() < 0.3
            if bad:
                limits.fail(site, np.zeros(0, dtype=np.int64))
            else:
                limits.succeed(site)
        chances = limits.chances(points)
        spreads.append(float(np.quantile(chances, 0.9) - np.quantile(chances, 0.1)))
    assert spreads[0] < 0.35
    assert spreads[1] > 0.8


def test_without_failures_and_constraints_nothing_is_made():
    policy = CalibratedUCB(DOMAINS["box"], seed=1)
    for _ in range(8):
        x = policy.ask()
        policy.tell(x, float(x.sum()))
    assert policy._limits is None
    assert policy.state()["limits"] is None
