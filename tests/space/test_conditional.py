"""Conditional parameters: what is active, points that agree, spaces as text."""

from __future__ import annotations

import itertools
import json
import pickle

import numpy as np
import pytest

from partita.errors import InvalidInput
from partita.space import Categorical, Integer, Space, Stepped, as_space
from partita.space.conditions import Condition
from partita.space.space import space_of

MODELS = {
    "model": {
        "svm": {
            "C": (1e-3, 1e3, "log"),
            "kernel": {"rbf": {"gamma": (0.0, 1.0)}, "linear": {}},
            "tol": (0.0, 1.0),
        },
        "forest": {"trees": (10, 500, "int"), "tol": (0.0, 1.0)},
        "mean": {},
    },
    "scale": [True, False],
}


def test_the_function_gets_what_is_active():
    space = as_space(MODELS)
    assert space.names == ("model", "C", "kernel", "gamma", "tol", "trees", "scale")
    for params in (
        {"model": "svm", "C": 1.0, "kernel": "rbf", "gamma": 0.25, "tol": 0.5, "scale": True},
        {"model": "svm", "C": 1.0, "kernel": "linear", "tol": 0.5, "scale": False},
        {"model": "forest", "tol": 0.75, "trees": 20, "scale": True},
        {"model": "mean", "scale": False},
    ):
        assert space.decode(space.encode(params)) == params


def test_what_is_not_active_stands_in_the_middle():
    space = as_space(MODELS)
    unit = space.encode({"model": "mean", "scale": True})
    assert unit.tolist() == [0.0, 0.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.5, 0.0]
    rows = np.tile(unit, (50, 1))
    rows[:, 3:8] = np.random.default_rng(0).random((50, 5))
    assert (space.snap(rows) == unit).all()


def test_a_parameter_of_one_range_is_shared_and_of_others_is_not():
    shared = as_space({"m": {"a": {"x": (0, 1)}, "b": {"x": (0, 1)}, "c": {}}})
    assert shared.names == ("m", "x")
    own = as_space({"m": {"a": {"x": (0, 1)}, "b": {"x": (0, 2)}}})
    assert own.names == ("m", "x", "x")
    assert own.decode(own.encode({"m": "b", "x": 2.0})) == {"m": "b", "x": 2.0}
    with pytest.raises(InvalidInput, match=r"x=2.0: give a number from 0.0 to 1.0"):
        own.encode({"m": "a", "x": 2.0})
    apart = as_space({"m": {"a": {"x": (0, 1)}, "b": {}}, "n": {"c": {"x": (0, 1)}, "d": {}}})
    assert apart.names == ("m", "x", "n")
    assert apart.encode({"m": "b", "n": "c", "x": 0.25}).tolist() == [1.0, 0.25, 0.0]
    assert apart.encode({"m": "b", "n": "d"}).tolist() == [1.0, 0.5, 1.0]


def test_branches_have_names_of_any_kind():
    space = as_space({"fast": {True: {"x": (0, 1)}, False: {}, None: {}, 3: {}}})
    assert space.decode(space.encode({"fast": None})) == {"fast": None}
    assert Space.from_json(space.to_json()) == space


def test_a_single_branch_is_always_active():
    space = as_space({"m": {"only": {"x": (0, 1)}}})
    assert space.dim == 1
    assert space.decode(np.array([0.5])) == {"m": "only", "x": 0.5}


@pytest.mark.parametrize(
    ("params", "why"),
    [
        (
            {"model": "mean", "scale": True, "trees": 20},
            "trees is not active here, only if model is 'forest'. Give exactly model, scale with "
            "model='mean'",
        ),
        (
            {"model": "svm", "C": 1.0, "kernel": "linear", "gamma": 0.5, "tol": 0, "scale": True},
            "gamma is not active here, only if kernel is 'rbf'",
        ),
        (
            {"model": "mean", "scale": True, "tol": 0.5},
            "tol is not active here, only if model is 'svm' or 'forest'",
        ),
        ({"trees": 20, "scale": True}, "model is missing. Give model, scale, and what goes with"),
        ({"model": "forest", "scale": True}, "tol, trees is missing. Give exactly model, tol,"),
        ({"model": "mean", "scale": True, "z": 1}, "there is no parameter 'z'. Give exactly"),
        ({"model": "tree", "scale": True}, "model='tree': give one of 'svm', 'forest', 'mean'"),
    ],
)
def test_other_parameters_than_those_active_are_refused(params, why):
    with pytest.raises(InvalidInput) as refused:
        as_space(MODELS).encode(params)
    assert why in str(refused.value)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"m": {}}, "parameter 'm': there are no branches in {}"),
        (
            {"m": {"a": {}, "b": (0, 1)}},
            "parameter 'm': (0, 1) is not a branch. A dict of branches has a dict of parameters "
            "for each, such as {'b': {\"C\": (0, 1)}}",
        ),
        ({"m": {"a": {"x": (1, 0)}}}, "parameter 'm=a/x': "),
        ({"m": {"a": {"": (0, 1)}}}, "parameter ''"),
        ({"m": {"a": {}}}, "nothing varies in this space"),
        (
            {"x": (0, 1), "m": {"a": {"x": (0, 2)}, "b": {}}},
            "parameter 'x' is there twice at once, outside all branches and where m='a', with "
            "other ranges. Give one of them another name",
        ),
        (
            {"x": (0, 1), "m": {"a": {"x": (0, 1)}, "b": {}}},
            "parameter 'x' is there twice, outside all branches and where m='a'. Leave it out",
        ),
        (
            {"m": {"a": {"x": (0, 1)}, "b": {}}, "n": {"c": {"x": (0, 2)}, "d": {}}},
            "parameter 'x' is there twice at once, where m='a' and where n='c'",
        ),
        (
            {
                "m": {
                    "a": {"k": {"p": {"x": (0, 1)}, "q": {}}},
                    "b": {"k": {"p": {"x": (0, 1)}, "q": {}}, "x": (0, 2)},
                }
            },
            "parameter 'x' is there twice at once, where m='b', k='p' and where m='b'",
        ),
        ({"m": {"a": {"m": (0, 1)}, "b": {}}}, "parameter 'm' is there twice at once"),
        ({"m": [{"a": (0, 1)}, {"b": (0, 1)}]}, "is a list of dicts. For branches with parameters"),
        ({"m": ["plain", {"b": (0, 1)}]}, "is a list of dicts"),
        ({"m": {"a": {"k": [{}]}, "b": {}}}, "parameter 'm=a/k': [{}] is a list of dicts"),
    ],
)
def test_what_is_no_conditional_space_is_refused(spec, why):
    with pytest.raises(InvalidInput) as refused:
        as_space(spec)
    assert why in str(refused.value)


def test_branches_are_bounded_in_depth_and_number():
    deep: dict = {"x": (0, 1)}
    for i in range(9):
        deep = {f"m{i}": {"a": deep, "b": {}}}
    with pytest.raises(InvalidInput, match="8 levels deep at most"):
        as_space(deep)
    wide: dict = {"x": (0, 1)}
    for i in range(4):  # each branch the same object: quickly written, 8⁴ times in the tree
        wide = {f"m{i}": dict.fromkeys("abcdefgh", wide)}
    with pytest.raises(InvalidInput, match="more than 1,000 parameters"):
        as_space(wide)


@pytest.mark.parametrize("choices", [[0, 1], [0.5, 2], [9, 3]])
def test_two_numbers_in_a_list_are_logged(choices, caplog):
    as_space({"x": choices})
    low, high = sorted(choices)
    assert f"for a range give the tuple ({low}, {high})" in caplog.text
    assert ('"int"' in caplog.text) == (choices != [0.5, 2])


def test_a_finite_space_has_each_point_once():
    space = as_space(
        {
            "m": {
                "a": {"x": (0, 3, "int"), "k": {"p": {"y": [1, 2, 3]}, "q": {}}},
                "b": {"x": (0, 3, "int")},
                "c": {},
            },
            "n": {"d": {"y": [1, 2, 3]}, "e": {}},
        }
    )
    points = space.grid()
    assert space.size == len(points) == len(np.unique(points, axis=0))
    shown = {json.dumps(space.decode(row), sort_keys=True) for row in points}
    by_hand = set()
    for m, n, k, x, y in itertools.product("abc", "de", "pq", range(4), (1, 2, 3)):
        params: dict = {"m": m, "n": n}
        params |= {"x": x} if m in "ab" else {}
        params |= {"k": k} if m == "a" else {}
        params |= {"y": y} if n == "d" or params.get("k") == "p" else {}
        by_hand.add(json.dumps(params, sort_keys=True))
    assert shown == by_hand


def test_the_size_of_many_switches_is_found_at_once():
    spec = {
        f"s{i}": {"on": {"rate": (1, 10, "int"), f"y{i}": [1, 2, 3]}, "off": {}} for i in range(40)
    }
    assert as_space(spec).size == 10 * (4**40 - 1) + 1


def test_numbers_may_be_parents_too():
    parameters = (Integer(1, 3), Integer(1, 8, log=True), Stepped(0.0, 1.0, 0.5), Categorical((1,)))
    conditions = ((), (Condition(0, (1, 2)),), (Condition(1, (0, 7)),), (Condition(2, (1,)),))
    space = space_of(("n", "width", "drop", "c"), parameters, conditions=conditions)
    for params in (
        {"n": 1},
        {"n": 2, "width": 3},
        {"n": 3, "width": 8, "drop": 1.0},
        {"n": 3, "width": 1, "drop": 0.5, "c": 1},
    ):
        assert space.decode(space.encode(params)) == params
    assert space.size == len(space.grid()) == 1 + 2 * (6 + 2 * 3)
    assert "(if n is 2 or 3)" in space.describe()
    with pytest.raises(InvalidInput, match="not a choice"):
        space.to_json()


def test_stirred_points_differ_in_what_counts():
    space, random = as_space(MODELS), np.random.default_rng(1)
    rows = space.spread(random.random((2000, space.dim)))
    moved = space.snap(space.stir(random, rows, np.full(rows.shape, 0.2)))
    same = (moved == rows).all(axis=1)
    assert same.mean() < 0.15  # a small step of a whole number, or one beyond a bound
    switched = (moved[:, :3] != rows[:, :3]).any(axis=1) & (moved[:, 1] == 1.0)
    trees = moved[switched, 7]
    assert switched.sum() > 50
    assert np.unique(trees).size > 40  # drawn anew, not all in the middle


def test_spaces_are_written_compared_and_pickled():
    space = as_space(MODELS)
    assert Space.from_json(space.to_json()) == space
    assert json.loads(space.to_json())["format"] == 2
    assert json.loads(as_space({"x": (0, 1)}).to_json())["format"] == 1
    assert pickle.loads(pickle.dumps(space)) == space
    other = as_space({**MODELS, "model": {**MODELS["model"], "mean": {"tol": (0.0, 1.0)}}})
    assert other != space
    assert other.mark != space.mark
    assert "(if kernel is 'rbf')" in repr(space)
    with pytest.raises(InvalidInput, match="cannot be written as JSON"):
        as_space({"m": {("a", 1): {"x": (0, 1)}, "b": {}}}).to_json()


@pytest.mark.parametrize(
    "text",
    [
        '{"format": 2, "parameters": [["m", {"branches": 3}]]}',
        '{"format": 2, "parameters": [["m", {"branches": [["a", {"x": [0, 1]}]]}]]}',
        '{"format": 2, "parameters": [["m", {"branches": [[["a"], []], ["b", []]]}]]}',
        '{"format": 2, "parameters": [["m", {"choices": "ab"}]]}',
        '{"format": 2, "parameters": [["m", {}]]}',
        '{"format": 3, "parameters": [["x", [0, 1]]]}',
        '{"format": 2, "parameters": '
        + '[["m", {"branches": [["a", ' * 300
        + "[]"
        + "]]}]]" * 300
        + "}",
    ],
)
def test_edited_text_is_refused(text):
    with pytest.raises(InvalidInput):
        Space.from_json(text)


# -- fuzz ------------------------------------------------------------------------------------------


def random_spec(random: np.random.Generator, depth: int = 0, prefix: str = "") -> dict:
    """A space with branches to three levels; names are shared, some with other ranges."""
    spec: dict = {}
    for i in range(int(random.integers(0 if depth else 1, 4))):
        kind = int(random.integers(7 if depth < 3 else 5))
        name = f"{prefix}p{i}"
        if kind < 5:
            spec[name] = [
                (0.0, 1.0),
                (1e-3, 1e3, "log"),
                (1, 9, "int"),
                (0.0, 2.0, 0.25),
                ["u", "v", "w"][: int(random.integers(1, 4))],
            ][kind]
        else:
            names = "abcd"[: int(random.integers(1, 5))]
            apart = f"{prefix}q{i}" if random.random() < 0.5 else f"{prefix}{i}"
            spec[name] = {b: random_spec(random, depth + 1, apart) for b in names}
    return spec


def check_random_space(seed: int) -> bool:
    """Points come back from parameters, spaces from text; False if nothing in it varies."""
    random = np.random.default_rng(seed)
    spec = random_spec(random)
    if not varies(spec):
        with pytest.raises(InvalidInput, match=r"nothing varies|space is empty"):
            as_space(spec)
        return False
    space = as_space(spec)
    assert Space.from_json(space.to_json()) == space
    rows = space.spread(random.random((20, space.dim)))
    assert (space.snap(rows) == rows).all()
    moved = space.snap(space.stir(random, rows, random.random(rows.shape)))
    for row in np.concatenate([rows, moved]):
        params = space.decode(row)
        assert params == expected(spec, params), (spec, params)
        np.testing.assert_allclose(space.encode(params), row, rtol=0, atol=1e-9)
    if space.size is not None and space.size <= 3000:
        grid = space.grid()
        assert len(np.unique(grid, axis=0)) == len(grid) == space.size
        assert (space.snap(grid) == grid).all()
    return True


def varies(spec: dict) -> bool:
    """Whether a parameter of the tree has two values or more."""
    return any(
        len(value) > 1 or (isinstance(value, dict) and any(map(varies, value.values())))
        for value in spec.values()
    )


def expected(spec: dict, params: dict) -> dict:
    """Those of the parameters that the tree says are active."""
    active = {}
    for name, value in spec.items():
        active[name] = params[name]
        if isinstance(value, dict):
            active |= expected(value[params[name]], params)
    return {name: active[name] for name in params if name in active}


def check_random_spaces(cases: int) -> None:
    """That many random spaces, of which most vary."""
    assert sum(check_random_space(seed) for seed in range(cases)) > cases / 2


def test_random_spaces_come_back():
    check_random_spaces(100)
