"""Many parameters of several kinds are followed: whole numbers, choices, branches, constraints."""

import numpy as np
import pytest

import partita as pt
from partita.model.mixed import Mixed
from partita.policies.calibrated import follow
from partita.space.space import Space

REALS = {f"x{i}": (0.0, 1.0) for i in range(8)}
KINDS = {
    **REALS,
    "rate": (1e-4, 1.0, "log"),
    "size": (1, 1000, "int", "log"),
    "depth": (0, 7, "int"),
    "share": (0.0, 1.0, 0.25),
    "kind": ["a", "b", "c"],
    "flag": [False, True],
}


def cost(params):
    total = sum((params[name] - 0.3) ** 2 for name in REALS)
    total += (np.log10(params["rate"]) + 2) ** 2 / 4 + (np.log(params["size"]) - 3) ** 2 / 9
    total += (params["depth"] - 5) ** 2 / 25 + (params["share"] - 0.75) ** 2
    return float(total + 0.5 * (params["kind"] != "b") + 0.5 * params["flag"])


def near(x0, x1, depth, **_):
    return x0 + x1 < 0.8 and depth < 7


def play(policy, evaluations, noise=0.1, seed=0, value=cost):
    """The costs of the points that a policy asks for."""
    random, space, costs = np.random.default_rng(seed), policy.domain.rules, []
    for _ in range(evaluations):
        x = policy.ask()
        params = space.decode(x)
        assert space.allows(params)
        costs.append(value(params))
        policy.tell(x, -costs[-1] + noise * random.uniform(-1, 1))
    return costs


def new(spec=KINDS, feasible=None, seed=1):
    return pt.CalibratedUCB(Mixed(Space(spec, feasible)), seed=seed)


@pytest.mark.parametrize("feasible", [None, near])
def test_mixed_parameters_are_learned(feasible):
    policy = new(feasible=feasible)
    costs = play(policy, 300)
    assert policy._led
    assert np.mean(costs[-30:]) < 0.2 * np.mean(costs[:16])
    best = policy.domain.rules.decode(policy.recommend().x)
    assert best["kind"] == "b"
    assert not best["flag"]
    assert abs(best["depth"] - 5) <= 1
    assert cost(best) < 0.2


def test_whole_numbers_alone_are_found_without_noise():
    spec = {f"k{i}": (0, 5, "int") for i in range(14)}

    def value(params):
        return sum((params[f"k{i}"] - i % 6) ** 2 for i in range(14)) / 25

    policy = new(spec)
    play(policy, 300, 0.0, value=value)
    assert value(policy.domain.rules.decode(policy.recommend().x)) == 0.0


def test_branches_are_followed():
    spec = {
        "model": {
            "svm": {f"s{i}": (0.0, 1.0) for i in range(6)},
            "forest": {f"t{i}": (0, 9, "int") for i in range(6)},
        },
        **REALS,
    }

    def value(params):
        total = sum((params[name] - 0.3) ** 2 for name in REALS)
        if params["model"] == "svm":
            return total + sum((params[f"s{i}"] - 0.7) ** 2 for i in range(6))
        return total + 0.2 + sum((params[f"t{i}"] - 4) ** 2 for i in range(6)) / 50

    policy = new(spec)
    costs = play(policy, 300, value=value)
    assert np.mean(costs[-30:]) < 0.5 * np.mean(costs[:16])


def test_choices_alone_are_left_to_the_process():
    assert new({f"c{i}": ["a", "b"] for i in range(14)})._follower is None
    assert new()._follower is not None
    assert new(REALS | {"kind": ["a", "b", "c"]})._follower is None  # too few parameters


def test_the_process_is_a_player_up_to_a_number_of_parameters():
    many = {f"x{i}": (0.0, 1.0) for i in range(follow.PROCESS)} | {"k": (0, 3, "int")}
    assert new()._follower.with_process
    assert not new(many)._follower.with_process


@pytest.mark.parametrize("feasible", [None, near])
def test_a_saved_policy_goes_on_the_same(feasible):
    policy, again = new(feasible=feasible), new(feasible=feasible)
    play(policy, 130)
    again.restore(policy.state())
    random = np.random.default_rng(0)
    for _ in range(40):
        x, y = policy.ask(), random.standard_normal()
        assert np.array_equal(x, again.ask())
        policy.tell(x, y)
        again.tell(x, y)
    assert np.array_equal(policy.recommend().x, again.recommend().x)


def test_without_noise_no_new_point_is_one_of_before():
    spec = {f"k{i}": (0, 3, "int") for i in range(12)}
    policy = new(spec)

    def value(params):
        return sum((params[k] - 1.3 - 0.01 * i) ** 2 * (1 + 0.1 * i) for i, k in enumerate(params))

    play(policy, 140, 0.0, value=value)
    assert policy._follower.doubles.exact
    asked = len(policy._sites)
    play(policy, 20, 0.0, value=value)
    assert len(policy._sites) == asked + 20


def test_gaps_are_the_distance_to_the_next_value():
    space = Space(KINDS)
    units = space.snap(np.random.default_rng(3).random((50, space.dim)))
    gaps = space.gaps(units)
    names = dict(zip(KINDS, space.places, strict=True))
    for name in ("size", "depth", "share"):
        column = names[name][0]
        grid = np.unique(space.parameters[list(KINDS).index(name)].grid()[:, 0])
        for unit, gap in zip(units[:, column], gaps[:, column], strict=True):
            place = int(np.argmin(np.abs(grid - unit)))
            other = grid[place + 1] if place + 1 < len(grid) else grid[place - 1]
            assert gap == pytest.approx(abs(other - grid[place]), abs=1e-9)
    assert not gaps[:, names["rate"][0]].any()
    assert [names["kind"], names["flag"]] == list(space.choices)


def test_means_that_are_pending_across_a_restore_do_no_harm():
    spec, random = {f"x{i}": (0, 2, "int") for i in range(31)}, np.random.default_rng(0)
    policy = new(spec, seed=0)
    for _ in range(20):
        policy.tell(random.integers(0, 3, 31) / 2, random.normal())
    waiting = [policy.ask() for _ in range(90)]
    for i, x in enumerate(waiting):
        policy.tell(x, random.normal())
        if i % 15 == 14:
            state, policy = policy.state(), new(spec, seed=0)
            policy.restore(state)
            for _ in range(3):
                policy.ask()  # stay pending, the mean of the distribution among them


def test_a_search_of_whole_numbers_keeps_reaching_their_neighbours():
    policy = new({f"x{i}": (0, 10, "int") for i in range(31)}, seed=0)
    play(policy, 1500, 0.0, value=lambda p: sum((p[name] - 5.3) ** 2 for name in p))
    evolution = policy._follower.evolution
    assert evolution.scale.min() >= 0.9 * follow.WHOLE / 10
    assert evolution.axes.max() <= 1.1e3
    random = np.random.default_rng(1)
    drawn = {tuple(np.rint(10 * evolution.draw(random))) for _ in range(50)}
    assert len(drawn) > 10
