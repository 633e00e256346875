"""Spaces: what users write, and how it maps to the unit cube and back."""

import copy
import json
import math
import pickle
import sys
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds

import partita as pt
from partita.errors import InvalidInput
from partita.space import Categorical, Float, Integer, Space, Stepped, as_space

EVERY_KIND = {
    "rate": (1e-4, 1e-1, "log"),
    "share": (0, 0.5),
    "depth": (1, 12, "int"),
    "width": (8, 1024, "int", "log"),
    "price": (0.1, 0.7, 0.2),
    "even": (2, 11, 2, "int"),
    "odd": range(1, 8, 2),
    "kind": ["a", "b", "c"],
    "flag": bool,
    "two": [None, 3.5],
    "fixed": ["only"],
    "one": (4, 4, "int"),
}


def points(space, n=200, seed=0):
    return space.spread(np.random.default_rng(seed).random((n, space.dim)))


def sum_below_one(x, y):
    return x + y < 1


# -- what is understood --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "parameter"),
    [
        ((0, 1), Float(0.0, 1.0)),
        ((np.float32(0.5), np.int64(2)), Float(0.5, 2.0)),
        ((1e-3, 1, "log"), Float(1e-3, 1.0, True)),
        ((1, 9, "int"), Integer(1, 9)),
        ((1.0, 1e3, "int"), Integer(1, 1000)),
        ((1, 9, "int", "log"), Integer(1, 9, True)),
        ((1, 9, "log", "int"), Integer(1, 9, True)),
        ((1, 9, "log-int"), Integer(1, 9, True)),
        ((0, 1, 0.25), Stepped(0.0, 1.0, 0.25)),
        ((1, 9, 2), Stepped(1.0, 9.0, 2.0)),
        ((1, 9, 2, "int"), Integer(1, 9, step=2)),
        ((1, 9, "int", 2), Integer(1, 9, step=2)),
        (range(10), Integer(0, 9)),
        (range(9, 0, -4), Integer(1, 9, step=4)),
        (["a", "b"], Categorical(("a", "b"))),
        (bool, Categorical((False, True))),
        ([False, True], Categorical((False, True))),
        (Integer(1, 3), Integer(1, 3)),
    ],
)
def test_what_a_parameter_may_be_written_as(spec, parameter):
    space = as_space({"p": spec})
    assert space.parameters == (parameter,)
    assert type(space.parameters[0]) is type(parameter)


@pytest.mark.parametrize(
    "spec",
    [
        [(0, 2), (-1, 1)],
        ((0, 2), (-1, 1)),
        np.array([[0.0, 2.0], [-1.0, 1.0]]),
        Bounds([0, -1], [2, 1]),
        pt.Box([0, -1], [2, 1]),
    ],
)
def test_bounds_make_a_space_of_arrays(spec):
    space = as_space(spec)
    assert not space.named
    assert space == as_space([(0.0, 2.0), (-1.0, 1.0)])
    assert space.decode(np.array([0.25, 1.0])).tolist() == [0.5, 1.0]
    assert space.encode([0.5, 1.0]).tolist() == [0.25, 1.0]


def test_bounds_of_one_number_hold_for_all():
    assert as_space(Bounds(0, [1, 2])) == as_space([(0, 1), (0, 2)])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "empty"),
        ([], "empty"),
        (np.empty((0, 2)), "empty"),
        ({"p": ["only"]}, "nothing varies in this space"),
        ({"p": []}, "parameter 'p': the list of choices is empty"),
        ({"p": (1, 0)}, "parameter 'p': .*reversed"),
        ({"p": (1, 0, "int")}, "'p': .*reversed"),
        ({"p": (1, 1)}, r"equal. Leave the parameter out, or give \[1.0\]"),
        ({"p": (0, 1, "log")}, "must begin above 0"),
        ({"p": (0, 9, "int", "log")}, "must begin above 0"),
        ({"p": (0, math.inf)}, "finite"),
        ({"p": (-1e308, 1e308)}, "overflows"),
        ({"p": (1e9, 1e9 + 1e-6)}, "too close together for floating point"),
        ({"p": (1e9, 1e9 + 1e-6, "log")}, "too close together for floating point"),
        ({"p": (0, math.nan)}, "give two numbers .low, high."),
        ({"p": (0.5, 9, "int")}, "0.5 is not a whole number"),
        ({"p": (0, 9, 0.5, "int")}, "0.5 is not a whole number"),
        ({"p": (0, 9, -1)}, "positive step of at most the range, 9"),
        ({"p": (0, 9, 10)}, "positive step of at most the range, 9"),
        ({"p": (16, 32, 64)}, r"give choices as a list, \[16, 32, 64\]"),
        ({"p": (0, 9, 0, "int")}, "step of at least 1"),
        ({"p": (1, 9, 2, "log")}, "not both"),
        ({"p": (1, 9, 2, "int", "log")}, "not both"),
        ({"p": (0, 1, 0.1, 0.2)}, "0.2 is not understood"),
        ({"p": (0, 1, "lgo")}, "'lgo' is not understood"),
        ({"p": (0, 2**60, "int")}, r"2\*\*53"),
        ({"p": (0, 1, 1e-20)}, "the step is too small"),
        ({"p": ("a", "b")}, r"choices as a list, \['a', 'b'\]"),
        ({"p": ["a", "a"]}, "'a' is given twice"),
        ({"p": list(range(65))}, "65 choices: give at most 64.*in order.*group them"),
        ([(1, 1), (0, 1)], r"x\[0\]': the bounds are equal.*Leave it out, and insert its value"),
        ({"p": (0,)}, "give two numbers .low, high."),
        ({"p": 3}, "3 is not a valid range"),
        ({"p": "log"}, "'log' is not a valid range"),
        ({"p": float}, "not a valid range"),
        ({"p": range(0)}, "empty"),
        ({1: (0, 1)}, "parameter 1: names must be strings"),
        ({"": (0, 1)}, "names must be strings"),
        ([(0, 1), (0, 1, "log")], "dict of named parameters"),
        ([(1, 0)], r"parameter 'x\[0\]': .*reversed"),
        ((0, 1), "not a valid space: give a list of pairs"),
        ("x", "not a valid space"),
        (3, "not a valid space"),
        (None, "not a valid space"),
        (Bounds([0.0], [math.inf]), "finite"),
    ],
)
def test_what_is_no_space_is_refused(spec, message):
    with pytest.raises(InvalidInput, match=message):
        as_space(spec)


def test_a_constraint_is_given_once_and_is_a_function():
    with pytest.raises(InvalidInput, match="give a function"):
        as_space({"x": (0, 1)}, 3)
    space = as_space({"x": (0, 1), "y": (0, 1)}, sum_below_one)
    assert as_space(space) is space
    assert as_space(space, sum_below_one) == space
    with pytest.raises(InvalidInput, match="already"):
        as_space(space, lambda x, y: True)


# -- points --------------------------------------------------------------------------------------


def test_every_kind_maps_to_its_coordinates():
    space = as_space(EVERY_KIND)
    assert space.dim == 7 + 3 + 1 + 1
    low = space.decode(np.zeros(space.dim))
    assert low == {
        "rate": 1e-4, "share": 0.0, "depth": 1, "width": 8, "price": 0.1, "even": 2, "odd": 1,
        "kind": "a", "flag": False, "two": None, "fixed": "only", "one": 4,
    }  # fmt: skip
    unit = np.ones(space.dim)
    unit[7:10] = 0, 0, 1
    high = space.decode(unit)
    assert high == {
        "rate": 1e-1, "share": 0.5, "depth": 12, "width": 1024, "price": 0.7, "even": 10,
        "odd": 7, "kind": "c", "flag": True, "two": 3.5, "fixed": "only", "one": 4,
    }  # fmt: skip
    kinds = {name: type(value) for name, value in high.items()}
    assert kinds["depth"] is kinds["width"] is kinds["even"] is kinds["odd"] is int
    assert kinds["rate"] is kinds["share"] is kinds["price"] is float
    assert kinds["flag"] is bool


def test_decoding_undoes_encoding_for_every_point():
    space = as_space(EVERY_KIND)
    for unit in points(space):
        params = space.decode(unit)
        assert np.allclose(space.encode(params), unit, rtol=0, atol=1e-12)
        assert space.decode(space.encode(params)) == params


RANGES = st.sampled_from(
    [
        Float(0, 1),
        Float(-2, 5),
        Float(1e6, 1e6 + 1),
        Float(-3e-7, 1 / 3),
        Float(0, 1e300),
        Float(-1e308, 7e307),
        Float(0, sys.float_info.max),
        Float(1e-4, 0.1, True),
        Float(1, 1 + 1e-6, True),
        Float(1e-300, 1e300, True),
        Float(1e8, 1e9, True),
    ]
)


@settings(max_examples=500, deadline=None)
@given(RANGES, st.floats(0, 1), st.floats(0, 1))
def test_numbers_come_back_as_they_were_and_in_their_order(parameter, u, v):
    u, v = sorted([u, v])
    low, high = parameter.decode([u]), parameter.decode([v])
    assert parameter.low <= low <= high <= parameter.high
    assert parameter.decode(parameter.encode(low, "p")) == low
    assert parameter.encode(low, "p") == pytest.approx([u], abs=1e-6)


@pytest.mark.parametrize("value", [0.003, 0.1, 0.7, 1e-9, 1.2345678901, -1.1, 4.999, 0.0])
def test_numbers_of_few_digits_are_given_as_they_were_written(value):
    space = as_space({"p": (-2, 5)})
    assert space.decode(space.encode({"p": value})) == {"p": value}
    space = as_space([(-2, 5), (-1e3, 1e3)])
    assert space.decode(space.encode([value, value])).tolist() == [value, value]
    if value >= 1e-9:
        space = as_space({"p": (1e-9, 1e6, "log")})
        assert space.decode(space.encode({"p": value})) == {"p": value}


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_snapping_gives_the_nearest_valid_point(data):
    parameter = data.draw(
        st.sampled_from(
            [Integer(1, 9), Integer(1, 300, True), Integer(0, 20, step=3), Stepped(0.1, 1.0, 0.3)]
        )
    )
    u = data.draw(st.floats(0, 1))
    snapped = parameter.snap(np.array([[u]]))
    grid = parameter.grid()
    assert snapped[0, 0] in grid
    assert abs(snapped[0, 0] - u) <= np.abs(grid - u).min() + 1e-12
    assert (parameter.snap(snapped) == snapped).all()
    value = parameter.decode([u])
    assert parameter.encode(value, "p") == pytest.approx([snapped[0, 0]], abs=1e-15)


def test_snapping_is_final_and_makes_choices_one_hot():
    space = as_space(EVERY_KIND)
    rough = np.random.default_rng(1).random((300, space.dim)) * 1.2 - 0.1
    snapped = space.snap(rough)
    assert (space.snap(snapped) == snapped).all()
    assert (snapped[:, 7:10].sum(axis=1) == 1).all()
    assert (snapped[np.arange(300), 7 + rough[:, 7:10].argmax(axis=1)] == 1).all()
    assert set(np.unique(snapped[:, 10:])) == {0.0, 1.0}
    assert ((snapped >= 0) & (snapped <= 1)).all()


@pytest.mark.parametrize("spec", [(1, 4, "int"), (0, 0.3, 0.1), ["a", "b", "c", "d"], bool])
def test_spreading_gives_each_value_the_same_chance(spec):
    space = as_space({"p": spec})
    values = [space.decode(unit)["p"] for unit in points(space, 8000)]
    counts = np.array([values.count(value) for value in dict.fromkeys(values)])
    assert len(counts) == space.size
    # Four deviations of a binomial count.
    share = 8000 / space.size
    assert (np.abs(counts - share) < 4 * math.sqrt(share)).all()


def test_spreading_a_logarithmic_integer_is_even_in_its_logarithm():
    space = as_space({"p": (1, 1000, "int", "log")})
    values = np.array([space.decode(unit)["p"] for unit in points(space, 6000)])
    for low, high in [(1, 9), (10, 99), (100, 1000)]:
        expected = math.log((high + 0.5) / (low - 0.5)) / math.log(1000.5 / 0.5)
        assert ((values >= low) & (values <= high)).mean() == pytest.approx(expected, abs=0.025)


def test_stirring_moves_one_parameter_at_least_and_choices_as_one():
    space = as_space(EVERY_KIND)
    before = points(space, 400)
    moved = space.snap(space.stir(np.random.default_rng(2), before, np.full(before.shape, 0.05)))
    same = [space.decode(a) == space.decode(b) for a, b in zip(before, moved, strict=True)]
    assert np.mean(same) < 0.05  # a move past a bound ends on it
    assert (moved[:, 7:10].sum(axis=1) == 1).all()
    changed = (moved != before).mean(axis=0)
    assert ((changed > 0.2) & (changed < 0.8)).all()


def test_steps_are_decimal():
    space = as_space({"p": (0.1, 0.75, 0.1)})
    values = [space.decode(unit)["p"] for unit in space.grid()]
    assert values == [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
    assert space.encode({"p": 0.1 + 0.2}) == pytest.approx([2 / 6])


@pytest.mark.parametrize(
    ("spec", "values"),
    [
        ((0.2, 0.3, 0.1), [0.2, 0.3]),
        ((0.1, 0.3, 0.2), [0.1, 0.3]),
        ((0.9, 1.2, 0.3), [0.9, 1.2]),
        ((-0.3, 0.0, 0.1), [-0.3, -0.2, -0.1, 0.0]),
        ((0.1 + 0.2, 0.6, 0.1), [0.1 + 0.2, 0.4, 0.5, 0.6]),  # bounds out of arithmetic
        ((0.1 * 3, 0.4, 0.1), [0.1 * 3, 0.4]),
        ((0.1, 0.1 * 3, 0.1), [0.1, 0.2, 0.3]),
    ],
)
def test_steps_whose_range_floating_point_misses(spec, values):
    space = as_space({"p": spec})
    assert [space.decode(unit)["p"] for unit in space.grid()] == values
    assert Space.from_json(space.to_json()) == space


@settings(deadline=None)
@given(
    low=st.decimals(-1000, 1000, places=3),
    step=st.decimals("0.001", 100, places=3),
    number=st.integers(1, 50),
)
def test_decimal_steps_give_every_value_as_it_is_written(low, step, number):
    written = [float(low + i * step) for i in range(number + 1)]
    space = as_space({"p": (written[0], written[-1], float(step))})
    assert [space.decode(unit)["p"] for unit in space.grid()] == written
    for i, value in enumerate(written):
        assert space.encode({"p": value}).tolist() == [i / number]
    assert as_space({"p": (*space.parameters[0].spec(),)}) == space
    with pytest.raises(InvalidInput, match="positive step of at most the range"):
        as_space({"p": (written[0], written[-1], float(step * number + Decimal("0.001")))})


def test_log_range_is_even_in_the_logarithm():
    space = as_space({"p": (1e-4, 1e-2, "log")})
    assert space.decode(np.array([0.5]))["p"] == pytest.approx(1e-3, rel=1e-14)
    wide = as_space({"p": (1e-300, 1e300, "log")})
    assert wide.decode(np.array([0.5]))["p"] == pytest.approx(1.0, rel=1e-12)
    assert wide.decode(np.array([1.0]))["p"] == 1e300


def test_choices_are_the_objects_themselves_and_true_is_not_one():
    marker = object()
    array = np.arange(3)
    space = as_space({"p": [1, True, 1.0, marker, array]})
    for i, choice in enumerate([1, True, 1.0, marker, array]):
        unit = space.encode({"p": choice})
        assert unit.tolist() == np.eye(5)[i].tolist()
        assert space.decode(unit)["p"] is choice
    assert space.encode({"p": np.arange(3)}).tolist() == np.eye(5)[4].tolist()
    assert as_space({"p": [1, 0]}) != as_space({"p": [True, False]})
    assert as_space({"p": ["a", "b"]}).encode({"p": np.str_("b")}).tolist() == [1.0]


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"rate": 1}, "rate=1: give a number from 0.0001 to 0.1"),
        ({"rate": -1}, "rate=-1"),
        ({"rate": "x"}, "rate='x'"),
        ({"rate": None}, "rate=None"),
        ({"share": math.nan}, "share=nan"),
        ({"depth": 2.5}, "depth=2.5: give a whole number from 1 to 12"),
        ({"depth": 13}, "depth=13"),
        ({"even": 3}, "in steps of 2"),
        ({"price": 0.2}, "price=0.2: .* in steps of 0.2"),
        ({"kind": "d"}, "kind='d': give one of 'a', 'b', 'c'"),
        ({"flag": "yes"}, "flag='yes'"),
        ({"one": 5}, "one=5"),
        ({"what": 5}, "there is no parameter 'what'"),
    ],
)
def test_parameters_that_are_not_of_the_space_are_refused(params, message):
    space = as_space(EVERY_KIND)
    good = space.decode(np.zeros(space.dim))
    with pytest.raises(InvalidInput, match=message):
        space.encode({**good, **params})


def test_missing_parameters_and_other_shapes_are_refused():
    with pytest.raises(InvalidInput, match=r"y is missing\. Give exactly x, y"):
        as_space({"x": (0, 1), "y": (0, 1)}).encode({"x": 0})
    with pytest.raises(InvalidInput, match="give a dict with a value for each of x"):
        as_space({"x": (0, 1)}).encode([0.5])
    with pytest.raises(InvalidInput, match=r"shape \(1,\): give an array of shape \(2,\)"):
        as_space([(0, 1), (0, 1)]).encode([0.5])
    with pytest.raises(InvalidInput, match=r"x\[1\]=2.0: give a number from 0.0 to 1.0"):
        as_space([(0, 1), (0, 1)]).encode([0.5, 2.0])


def test_rounding_beyond_a_bound_is_forgiven():
    space = as_space([(0.0, 0.3)])
    assert space.encode([0.1 + 0.2]).tolist() == [1.0]
    with pytest.raises(InvalidInput):
        space.encode([0.3001])


@pytest.mark.parametrize(
    "domain",
    [pt.Grid(4, dim=2), pt.Arms([[0.0, 5.0], [1.0, 7.0], [2.0, 5.0]], [0, 4], [2, 8])],
)
def test_a_finite_domain_is_a_space_of_its_arms(domain):
    space = as_space(domain)
    assert space.size == domain.size
    assert (space.grid() == domain.unit_points).all()
    for unit, x in zip(domain.unit_points, domain.points, strict=True):
        assert (space.encode(x) == unit).all()
        assert (space.decode(unit) == x).all()
    near = np.clip(domain.unit_points + 0.01, 0, 1)
    assert (space.snap(near) == domain.unit_points).all()


@pytest.mark.parametrize(
    ("points", "box"),
    [
        ([[1e-20], [2e-20], [0.5]], (-1, 1)),  # the first two are one point of the unit cube
        ([[0.0], [1e-200], [0.5]], (0, 1)),  # a distance whose square is 0
    ],
)
def test_arms_that_the_unit_cube_hardly_tells_apart(points, box):
    space = as_space(pt.Arms(points, *box))
    assert [space.decode(space.encode(x)).tolist() for x in points] == points
    assert [space.decode(row).tolist() for row in space.grid()] == points
    assert space.decode(space.snap(np.array([[0.9]]))[0]).tolist() == [0.5]
    optimizer = pt.Optimizer(space, policy="uniform")
    assert {optimizer.ask().params[0] for _ in range(30)} == {x for (x,) in points}


@pytest.mark.parametrize("feasible", [None, lambda x: x[0] < 0.4])
def test_the_front_door_plays_such_arms_as_the_policy_does(feasible, tmp_path):
    arms = pt.Arms([[1e-20], [2e-20], [0.5], [0.3]], -1, 1)
    allowed = arms if feasible is None else pt.Arms(arms.points[[0, 1, 3]], -1, 1)
    known = {"kernel": pt.Matern(1.5, 0.3), "norm_bound": 2.0, "noise": pt.Gaussian(1.0)}
    policy = pt.PiGPUCB(allowed, horizon=30, seed=3, **known)
    front = {"direction": "maximize", "n_evals": 30, "seed": 3, "feasible": feasible, **known}
    optimizer = pt.Optimizer(arms, **front)
    file = tmp_path / "arms.db"
    asked = []
    for i in range(30):
        x, trial = policy.ask(), optimizer.ask()
        study = pt.Study.open(file, arms, **front)
        logged = study.ask()
        assert trial.params.tolist() == logged.params.tolist() == x.tolist()
        value = math.sin(i) - abs(x[0])
        policy.tell(x, value)
        optimizer.tell(trial, value)
        study.tell(logged, value)
        study.close()
        asked.append(x.tolist())
    assert optimizer.trials.params.tolist() == asked
    assert optimizer.recommend().params.tolist() == policy.recommend().x.tolist()


def test_size_and_grid_list_every_point_once():
    space = as_space({"n": (1, 3, "int"), "k": ["a", "b", "c"], "f": bool, "c": ["only"]})
    assert space.size == 18
    grid = space.grid()
    assert len(np.unique(grid, axis=0)) == len(grid) == 18
    assert (space.snap(grid) == grid).all()
    assert as_space({"n": (1, 3, "int"), "x": (0, 1)}).size is None


# -- constraints ---------------------------------------------------------------------------------


def test_a_constraint_is_called_as_the_function_is():
    space = as_space({"x": (0, 1), "y": (0, 2)}, sum_below_one)
    assert space.feasible(np.array([[0.1, 0.4], [0.1, 0.5]])).tolist() == [True, False]
    by_array = as_space([(0, 1), (0, 2)], lambda x: x.sum() < 1)
    assert by_array.feasible(np.array([[0.1, 0.4], [0.1, 0.5]])).tolist() == [True, False]
    assert as_space([(0, 1)]).feasible(np.zeros((3, 1))).tolist() == [True] * 3


@pytest.mark.parametrize("answer", [True, np.True_, 1, np.array(True), np.array([True])])
def test_what_counts_as_yes(answer):
    assert as_space([(0, 1)], lambda x: answer).feasible(np.zeros((1, 1))).all()


@pytest.mark.parametrize("answer", [None, "yes", 0.3, 2, np.array([True, False])])
def test_an_answer_that_is_not_yes_or_no_is_refused(answer):
    space = as_space({"x": (0, 1)}, lambda x: answer)
    with pytest.raises(InvalidInput, match=r"feasible returned .* at \{'x': 0.25\}"):
        space.feasible(np.array([[0.25]]))


def test_a_constraint_that_fails_says_where():
    space = as_space({"x": (0, 1)}, lambda x: 1 / (x - 0.25) > 0)
    with pytest.raises(InvalidInput, match=r"feasible failed at \{'x': 0.25\} .ZeroDivision") as e:
        space.feasible(np.array([[0.25]]))
    assert isinstance(e.value.__cause__, ZeroDivisionError)
    with pytest.raises(InvalidInput, match="with keywords x, y"):
        as_space({"x": (0, 1), "y": (0, 1)}, lambda x: True).feasible(np.zeros((1, 2)))


# -- as a value ----------------------------------------------------------------------------------


def test_copies_and_pickles_are_equal():
    space = as_space(EVERY_KIND)
    assert pickle.loads(pickle.dumps(space)) == space
    assert hash(pickle.loads(pickle.dumps(space))) == hash(space)
    assert copy.deepcopy(space) == copy.copy(space) == space
    assert space != as_space({**EVERY_KIND, "share": (0, 0.6)})
    constrained = as_space({"x": (0, 1), "y": (0, 1)}, sum_below_one)
    assert pickle.loads(pickle.dumps(constrained)) == constrained
    assert constrained != as_space({"x": (0, 1), "y": (0, 1)})
    assert (constrained == 3) is False


def test_a_lambda_as_constraint_does_not_pickle_but_copies():
    space = as_space({"x": (0, 1)}, lambda x: True)
    with pytest.raises(InvalidInput, match=r"cannot be pickled .*at the top level of a module"):
        pickle.dumps(space)
    assert copy.deepcopy(space) == space


@pytest.mark.parametrize(
    "spec",
    [
        EVERY_KIND,
        {"p": [1, 2.0, True, None, "x"]},
        [(0, 1), (-2.5, 3)],
        pt.Grid(3, dim=2),
        pt.Arms([[0.1, 5.0], [1.0, 7.0]], [0, 4], [2, 8]),
    ],
    ids=["every kind", "choices", "bounds", "grid", "arms"],
)
def test_json_gives_the_same_space(spec):
    space = as_space(spec)
    text = space.to_json()
    json.loads(text)
    assert Space.from_json(text) == space


def test_json_leaves_the_constraint_to_the_reader():
    space = as_space({"x": (0, 1), "y": (0, 1)}, sum_below_one)
    assert Space.from_json(space.to_json(), sum_below_one) == space
    assert Space.from_json(space.to_json()).constraint is None


@pytest.mark.parametrize("choices", [[object(), 1], [(1, 2), 3], [1, math.nan], [b"x", 1]])
def test_choices_that_json_cannot_hold_are_refused(choices):
    with pytest.raises(InvalidInput, match="cannot be written as JSON"):
        as_space({"p": choices}).to_json()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1}', '{"parameters": []}', "null"])
def test_what_is_no_saved_space_is_refused(text):
    with pytest.raises(InvalidInput, match="is not a space"):
        Space.from_json(text)


def test_a_newer_form_is_refused():
    with pytest.raises(InvalidInput, match="format 99"):
        Space.from_json('{"format": 99}')


@pytest.mark.parametrize("spec", [[0.1, 0.9], [1, 2], [0, 1], [0, 0.5], [np.float64(1), 2]])
def test_two_numbers_in_a_list_are_choices_and_it_says_so(spec, caplog):
    space = as_space({"x": spec})
    assert [type(p) for p in space.parameters] == [Categorical]
    assert "which means two choices; for a range give the tuple (" in caplog.text
    assert "float64" not in caplog.text


@pytest.mark.parametrize("spec", [[1, 2, 3], [True, False], [None, 1.5], [0.1, 0.2, 0.3]])
def test_lists_that_can_only_be_choices_say_nothing(spec, caplog):
    assert [p.choices for p in as_space({"x": spec}).parameters] == [tuple(spec)]
    assert not caplog.text


@pytest.mark.parametrize("spec", [[1e-4, 0.1, "log"], [1, 9, "int"], [1, 9, "int", "log"]])
def test_a_range_written_as_a_list_is_refused(spec):
    with pytest.raises(InvalidInput, match="give a range as a tuple"):
        as_space({"x": spec})


@pytest.mark.parametrize("spec", [EVERY_KIND, [(0, 1), (2, 3)], pt.Grid(5, dim=2)])
def test_a_space_is_made_of_what_users_write(spec):
    space = pt.Space(spec)
    assert space == as_space(spec)
    assert pickle.loads(pickle.dumps(space)) == space == copy.deepcopy(space)
    assert pt.Space(space) == space


def test_a_space_with_a_constraint():
    space = pt.Space({"x": (0, 1), "y": (0, 1)}, feasible=sum_below_one)
    assert space.allows({"x": 0.1, "y": 0.2})
    assert not space.allows({"x": 0.9, "y": 0.2})
    best = pt.maximize(lambda x, y: x + y, space, n_evals=15)
    assert sum(best.params.values()) < 1


def test_it_reads_well():
    space = as_space({"rate": (1e-4, 0.1, "log"), "n": (1, 9, "int"), "k": [0, 1], "f": bool})
    assert space.describe().splitlines() == [
        "rate  0.0001 to 0.1, log",
        "n     1 to 9, int",
        "k     one of 0, 1",
        "f     True or False",
    ]
    assert repr(as_space([(0, 1)])) == "Space([(0.0, 1.0)])"
    assert "where sum_below_one returns True" in as_space([(0, 1)], sum_below_one).describe()
    assert "feasible=sum_below_one" in repr(as_space({"x": (0, 1)}, sum_below_one))
