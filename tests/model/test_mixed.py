"""Mixed domains: parameters of several kinds and constraints, and the policies that play them."""

import copy
import pickle

import numpy as np
import pytest
from support.mixed import ONE, ZERO, Counted, allowed, checked, cost, mixed, play, thin

import partita as pt
from partita.errors import InvalidInput
from partita.model.assumptions import Assumptions
from partita.policies import feasible as _feasible
from partita.policies import registry
from partita.policies.construct import construct
from partita.policies.feasible import FeasiblePoints

POLICIES = [pt.CalibratedUCB, pt.UniformSampling]


# -- the domain ------------------------------------------------------------------------------------


def test_it_is_a_value():
    domain = mixed(allowed)
    again = pickle.loads(pickle.dumps(domain))
    assert again == domain == copy.deepcopy(domain)
    assert hash(again) == hash(domain)
    assert domain != mixed()
    assert domain.dim == 7
    assert not domain.finite
    assert "depth: 1 to 12, int" in repr(domain)


def test_only_valid_points_are_taken_and_rounding_is_forgiven():
    domain = mixed()
    valid = domain.spread(np.random.default_rng(0).random((50, 7)))
    assert (domain.check(valid) == valid).all()
    assert (domain.check(valid + 1e-10 * (valid < 0.5)) != valid).sum() <= 100  # floats alone
    assert (domain.check(valid * (1 + 1e-11))[:, 1] == valid[:, 1]).all()
    with pytest.raises(InvalidInput, match="not a valid point: the nearest is"):
        domain.check(np.full((1, 7), 0.5))
    with pytest.raises(InvalidInput, match="shape"):
        domain.check(np.zeros((1, 3)))


@pytest.mark.parametrize("name", registry.names())
def test_policies_play_it_or_say_what_does(name):
    method = registry.get(name)
    make = method.load()

    def build():
        return construct(
            make, mixed(), Assumptions(pt.Matern(), 1.0, pt.Gaussian(0.1)),
            horizon=100, seed=0, settings=method.settings,
        )  # fmt: skip

    if make in POLICIES:
        x = build().ask()
        assert (mixed().check(x[None, :]) == x).all()
    else:
        with pytest.raises(InvalidInput, match="use CalibratedUCB or UniformSampling"):
            build()


# -- what policies ask -----------------------------------------------------------------------------


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("feasible", [None, allowed, thin])
def test_every_ask_is_valid_and_feasible(policy, feasible):
    made = policy(mixed(feasible), seed=1)
    space = made.domain.rules
    first = made.recommend().x
    asked = np.concatenate([play(made, 60), [made.ask() for _ in range(5)], [first]])
    assert (space.snap(asked) == asked).all()
    if feasible is not None:
        assert all(feasible(**space.decode(x)) for x in asked)
        assert feasible(**space.decode(made.recommend().x))


@pytest.mark.parametrize("policy", POLICIES)
def test_same_seed_same_asks_also_after_pickling_with_pending_points(policy):
    one, other = (policy(mixed(allowed), seed=3) for _ in range(2))
    assert (play(one, 30) == play(other, 30)).all()
    for made in (one, other):
        pending = [made.ask() for _ in range(4)]
        made.cancel(pending[0])
        made.tell(pending[1], -1.0)
    third = pickle.loads(pickle.dumps(one))
    fourth = copy.deepcopy(other)
    expected = play(one, 30)
    for made in (other, third, fourth):
        assert made.pending == 2
        assert (play(made, 30) == expected).all()


@pytest.mark.parametrize("policy", POLICIES)
def test_values_in_bulk_and_of_points_never_asked(policy):
    made = policy(mixed(allowed), seed=2)
    space = made.domain.rules
    points = space.spread(np.random.default_rng(5).random((80, 7)))
    points = points[space.feasible(points)]
    values = np.array([-cost(**space.decode(x)) for x in points])
    made.tell(points, values)
    assert made.told == len(points)
    best = made.recommend()
    assert (points == best.x).all(axis=1).any()
    assert -cost(**space.decode(best.x)) >= np.quantile(values, 0.9)
    with pytest.raises(InvalidInput, match="not a valid point"):
        made.tell(np.full(7, 0.5), 1.0)
    play(made, 20)


def test_uniform_sampling_gives_each_feasible_value_the_same_chance():
    spec = {"n": (1, 4, "int"), "k": ["a", "b", "c"], "x": (0, 1)}
    made = pt.UniformSampling(mixed(lambda n, k, x: (n, k) != (1, "a") and x < 0.5, spec), seed=0)
    space = made.domain.rules
    asked = [space.decode(made.ask()) for _ in range(2200)]
    counts = {}
    for params in asked:
        counts[params["n"], params["k"]] = counts.get((params["n"], params["k"]), 0) + 1
    assert len(counts) == 11
    assert all(abs(count - 200) < 4 * 14 for count in counts.values())
    assert np.mean([params["x"] for params in asked]) == pytest.approx(0.25, abs=0.013)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_constraint_that_allows_nothing_is_refused(policy):
    rule = Counted(lambda **_: False)
    with pytest.raises(InvalidInput, match="allows none of 20,000 random points of the space"):
        policy(mixed(rule))
    assert len(rule.asked) <= 20_000


@pytest.mark.parametrize("policy", POLICIES)
def test_a_constraint_that_fails_says_where(policy):
    with pytest.raises(InvalidInput, match=r"feasible failed at \{.*depth.*\} .ZeroDivisionError"):
        policy(mixed(lambda **_: 1 / 0 > 1))


# -- feasible points -------------------------------------------------------------------------------


def test_where_few_points_exist_each_is_tried_once_a_draw():
    rule = Counted(lambda n, k: n != 2)
    domain = mixed(rule, {"n": (1, 5, "int"), "k": ["a", "b"]})
    points = FeasiblePoints(domain)
    random = np.random.default_rng(0)
    rows = checked(domain, points.inside(random, np.zeros(2), np.ones(2), 100), 0.0, np.ones(2))
    assert len(rows) == 8
    assert len(rule.asked) <= 12 + 10


def test_feasible_points_near_the_best_are_found_in_a_very_thin_set():
    domain = mixed(lambda share, **_: abs(share - 0.3) < 2e-4)
    points = FeasiblePoints(domain)
    random = np.random.default_rng(0)
    best = points.first(random, random.random((8, 7)))
    assert len(best) >= 1
    near = points.near(random, ZERO, ONE, np.repeat(best[:1], 200, axis=0), np.full(200, 0.1))
    checked(domain, near)
    assert len(near) >= 40
    later = points.inside(random, ZERO, ONE, 100)
    assert len(checked(domain, later)) >= 40


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(_feasible, "POOL", 60)
    domain = mixed(thin)
    points = FeasiblePoints(domain)
    random = np.random.default_rng(0)
    points.first(random, random.random((16, 7)))
    for _ in range(6):
        points.inside(random, ZERO, ONE, 100)
    assert len(points._pool) == 60
    assert domain.mask(points._pool).all()
