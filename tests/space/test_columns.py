"""Many parameters at once give the points that they give one by one."""

import math

import numpy as np
import pytest

import partita as pt
from partita.errors import InvalidInput
from partita.space.columns import encode_rows

SPACE = pt.Space(
    {
        "x": (-1.5, 2.5),
        "rate": (1e-4, 1e-1, "log"),
        "depth": (1, 12, "int"),
        "width": (3, 800, "int", "log"),
        "share": (0, 1, 0.05),
        "kind": ["adam", "sgd", None, 3, 3.5],
        "flag": bool,
        "one": ["only"],
    }
)


def rows_of(space, n, seed=0):
    draw = np.random.default_rng(seed)
    return [space.decode(unit) for unit in space.spread(draw.random((n, space.dim)))]


def test_named_rows_to_the_last_bit():
    rows = rows_of(SPACE, 500)
    rows[3]["x"], rows[4]["x"], rows[5]["rate"] = -1.5, 2.5 + 1e-12, 1e-1 * (1 + 1e-12)
    rows[6]["x"] = 0  # whole, and 0.0 is not -0.0
    encoded = encode_rows(rows, SPACE)
    assert encoded is not None
    for unit, row in zip(encoded, rows, strict=True):
        assert unit.tobytes() == SPACE.encode(row).tobytes()


def test_arrays_to_the_last_bit():
    space = pt.Space([(0, 1), (-3.0, 7.7)])
    rows = np.random.default_rng(0).random((300, 2)) * [1, 5]
    for given in (list(rows), [list(row) for row in rows.tolist()], [[0, 1], [1, 7]]):
        encoded = encode_rows(given, space)
        assert encoded is not None
        for unit, row in zip(encoded, given, strict=True):
            assert unit.tobytes() == space.encode(row).tobytes()


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("x", 2.6),
        ("x", math.nan),
        ("x", "0.5"),
        ("x", True),
        ("rate", 0.0),
        ("rate", -1.0),
        ("depth", 2.5),
        ("depth", 13),
        ("kind", "nadam"),
        ("kind", True),
        ("share", 0.07),
    ],
)
def test_what_one_row_refuses_is_left_to_it(name, bad):
    rows = rows_of(SPACE, 20)
    rows[7][name] = bad
    with pytest.raises(InvalidInput):
        SPACE.encode(rows[7])
    assert encode_rows(rows, SPACE) is None
    optimizer = pt.Optimizer(SPACE)
    with pytest.raises(InvalidInput, match="row 7 cannot be used"):
        optimizer.add(rows, [0.5] * 20)
    assert optimizer.n_told == 0


def test_other_names_ragged_rows_and_special_spaces_go_one_by_one():
    rows = rows_of(SPACE, 3)
    assert encode_rows([*rows, {**rows[0], "more": 1}], SPACE) is None
    assert encode_rows([*rows, {"x": 1.0}], SPACE) is None
    assert encode_rows([[0.1, 0.2], [0.3]], pt.Space([(0, 1), (0, 1)])) is None
    assert encode_rows([["a", "b"]], pt.Space([(0, 1), (0, 1)])) is None
    feasible = pt.Space({"x": (0, 1)}, feasible=lambda x: x < 0.5)
    assert encode_rows([{"x": 0.2}], feasible) is None
    branches = pt.Space({"m": {"a": {"x": (0, 1)}, "b": {}}})
    assert encode_rows([{"m": "b"}], branches) is None
