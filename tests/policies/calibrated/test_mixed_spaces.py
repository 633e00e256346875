"""The calibrated policy and its candidates where parameters are of several kinds or constrained."""

import math

import numpy as np
import pytest
from support.mixed import ONE, ZERO, Counted, allowed, checked, cost, mixed, play, thin

import partita as pt
from partita.errors import InvalidInput
from partita.policies import feasible
from partita.policies.calibrated import regions
from partita.policies.calibrated.candidates import Proposals


def test_the_calibrated_policy_finds_the_best_of_every_kind():
    for rule, best in [(None, 0.0), (allowed, 0.0), (thin, 3 * 0.17**2)]:
        made = pt.CalibratedUCB(mixed(rule), seed=4)
        asked = play(made, 120)
        space = made.domain.rules
        found = space.decode(made.recommend().x)
        assert found["kind"] == "b"
        assert found["flag"] is False
        assert abs(found["depth"] - 7) <= 1
        assert cost(**found) < best + 0.05
        late = np.mean([cost(**space.decode(x)) for x in asked[-40:]])
        assert late < best + 0.2  # uniform sampling: about 2.2


def test_predictions_need_valid_points_but_not_feasible_ones():
    made = pt.CalibratedUCB(mixed(allowed), seed=4)
    play(made, 40)
    space = made.domain.rules
    there = space.encode({"rate": 0.01, "depth": 12, "share": 0.5, "kind": "a", "flag": True})
    assert not space.feasible(there[None, :])[0]
    assert np.isfinite(made.predict(there[None, :]).mean).all()
    with pytest.raises(InvalidInput, match="not a valid point"):
        made.predict(np.full((1, 7), 0.5))


def test_regions_without_a_feasible_point_are_left_alone(monkeypatch):
    monkeypatch.setattr(regions, "REGION_POINTS", 12)
    spec = {"x": (0, 1), "y": (0, 1), "k": ["a", "b", "c"]}
    made = pt.CalibratedUCB(mixed(lambda x, y, k: x + y < 0.4, spec), seed=0)
    space = made.domain.rules
    random = np.random.default_rng(0)
    for _ in range(200):
        x = made.ask()
        params = space.decode(x)
        assert params["x"] + params["y"] < 0.4
        value = -((params["x"] - 0.2) ** 2) - (params["y"] - 0.1) ** 2 - 0.1 * (params["k"] == "a")
        made.tell(x, value + 0.05 * random.normal())
    made.ask()  # looks at regions cut by the last value
    corners = [(region.lower, region.index) for region in made.cover]
    hopeless = [score for lower, score in corners if lower[:2].sum() >= 0.4]
    assert len(made.cover) > 4
    assert hopeless
    assert set(hopeless) == {-math.inf}
    best = space.decode(made.recommend().x)
    assert abs(best["x"] - 0.2) < 0.15
    assert abs(best["y"] - 0.1) < 0.15


@pytest.mark.parametrize("feasible", [None, allowed, thin])
def test_candidates_are_feasible_inside_and_different(feasible):
    domain = mixed(feasible)
    random = np.random.default_rng(0)
    proposals = Proposals(domain)
    best = proposals.first(random, random.random((16, 7)))
    assert len(checked(domain, best)) == 16
    for upper in (ONE, np.array([0.5, 1, 1, 1, 1, 1, 0.5])):
        inside = best[(best < upper).all(axis=1) | (upper == 1).all()]
        centre = inside if len(inside) else np.full((1, 7), 0.5)
        rows = checked(domain, proposals.draw(random, ZERO, upper, centre), ZERO, upper)
        assert len(rows) > (75 if feasible is thin else 200)


def test_a_draw_asks_the_constraint_a_bounded_number_of_times(monkeypatch):
    monkeypatch.setattr(feasible, "EARLY_DRAWS", 3)
    rule = Counted(thin)
    domain = mixed(rule)
    random = np.random.default_rng(0)
    proposals = Proposals(domain)
    best = proposals.first(random, random.random((16, 7)))
    for draw in range(8):
        rule.asked.clear()
        rows = proposals.draw(random, ZERO, ONE, best[:6])
        most = feasible.MOST_TRIES if draw < feasible.EARLY_DRAWS else feasible.LATER_TRIES
        assert len(rule.asked) <= 100 * most + 8 * 300
        assert len(rows) >= 50
    assert feasible.LATER_TRIES < feasible.MOST_TRIES / 2


def test_no_candidate_where_none_is_feasible():
    domain = mixed(allowed)
    proposals = Proposals(domain)
    random = np.random.default_rng(0)
    lower = np.array([0, 0.8, 0.8, 0, 0, 0, 0])
    centre = 0.5 * (lower + ONE)[None, :]
    assert proposals.draw(random, lower, ONE, centre).shape == (0, 7)
    one_hot = np.array([0, 0, 0, 0.5, 0.5, 0, 0])  # two choices at once
    assert proposals.draw(random, one_hot, ONE, centre).shape == (0, 7)
