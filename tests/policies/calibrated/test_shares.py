"""Shares of choices: drawn as often as they say, learned from the best points, never given up."""

import numpy as np
import pytest

from partita._state import BadState, Saved
from partita.policies.calibrated.layout import Layout
from partita.policies.calibrated.shares import Shares
from partita.space.space import Space

SPEC = {"x": (0.0, 1.0), "a": ["p", "q", "r"], "k": (0, 4, "int"), "b": [False, True]}


@pytest.fixture
def shares():
    space = Space(SPEC)
    return Shares(Layout.of(space.dim, space))


def test_a_layout_tells_numbers_from_marks():
    space = Space(SPEC)
    layout = Layout.of(space.dim, space)
    assert layout.numbers.tolist() == [0, 4]
    assert layout.marks.tolist() == [1, 2, 3, 5]
    assert layout.groups == (slice(0, 3), slice(3, 4))
    assert layout.parameters == 4
    point = layout.joined(np.array([0.1, 0.5]), np.array([0.0, 1.0, 0.0, 1.0]))
    assert space.decode(point) == {"x": 0.1, "a": "q", "k": 2, "b": True}


def test_a_box_has_numbers_only():
    layout = Layout.of(3, None)
    assert layout.numbers.tolist() == [0, 1, 2]
    assert layout.parameters == 3
    assert Shares(layout).draw(np.random.default_rng(0)).shape == (0,)


def test_values_are_drawn_as_often_as_their_shares(shares):
    shares.values[:] = [0.2, 0.7, 0.1, 0.9]
    random = np.random.default_rng(1)
    draws = np.array([shares.draw(random) for _ in range(4000)])
    assert (draws[:, :3].sum(axis=1) == 1.0).all()
    assert np.allclose(draws.mean(axis=0), shares.values, atol=0.03)
    assert shares.likeliest().tolist() == [0.0, 1.0, 0.0, 1.0]
    assert shares.likeliest(np.array([3.0, 1.0, 2.0, -1.0])).tolist() == [1.0, 0.0, 0.0, 0.0]


def test_shares_move_to_the_best_and_keep_a_least_one(shares):
    best = np.tile([0.0, 0.0, 1.0, 0.0], (4, 1))
    for _ in range(200):
        shares.update(best, np.full(4, 0.25))
    assert shares.likeliest().tolist() == [0.0, 0.0, 1.0, 0.0]
    assert shares.values[:3].sum() == pytest.approx(1.0)
    assert shares.values[2] > 0.6
    assert shares.values[:2].min() > 0.05
    assert 0.05 < shares.values[3] < 0.4


def test_points_for_which_a_choice_does_not_count_say_nothing_of_it(shares):
    before = shares.values.copy()
    shares.update(np.full((3, 4), 0.5), np.full(3, 1 / 3))
    assert np.array_equal(shares.values, before)


def test_saved_shares_are_the_same_and_others_are_refused(shares):
    shares.update(np.array([[1.0, 0.0, 0.0, 1.0]]), np.ones(1))
    other = Shares(Layout.of(6, Space(SPEC)))
    state = shares.state()
    other.restore(Saved(state))
    assert np.array_equal(other.values, shares.values)
    shares.update(np.array([[0.0, 1.0, 0.0, 0.0]]), np.ones(1))
    assert np.array_equal(other.values, state["values"])
    with pytest.raises(BadState):
        other.restore(Saved({"values": np.full(4, 2.0)}))
    with pytest.raises(BadState):
        other.restore(Saved({"values": np.full(3, 0.2)}))
