"""Geometry: membership is exact, children tile their parent, thresholds are the paper's."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partita.partition.cover import (
    Geometry,
    SplitRule,
    cell_exponent,
    cover_exponent,
    paper_cells_per_side,
    split_threshold,
)


def test_exponents_are_the_papers():
    assert cell_exponent(3, 1.5) == pytest.approx(4 / 6)
    assert cover_exponent(3, 1.5) == pytest.approx(12 / 18)
    assert cell_exponent(1, 2.5) == pytest.approx(2 / 6)


@pytest.mark.parametrize(("dim", "cells"), [(1, 22), (2, 12), (3, 8)])
def test_first_cover_of_the_experiments(dim, cells):
    assert paper_cells_per_side(10_000, dim, 1.5) == cells


@pytest.mark.parametrize("dim", range(1, 41))
@pytest.mark.parametrize("horizon", [1, 100, 10_000, 1_000_000])
def test_first_cover_is_about_t_to_the_q(dim, horizon):
    per_side = paper_cells_per_side(horizon, dim, 1.5)
    assert per_side >= 1
    assert per_side**dim <= 2 * horizon ** cover_exponent(dim, 1.5)


def test_thresholds_are_exact_where_the_power_is_an_integer():
    assert split_threshold(22, 0, 1, 1.5) == 484.0  # 22^2
    assert split_threshold(4, 2, 3, 1.5) == 64.0  # 16^(3/2)
    assert split_threshold(1, 0, 2, 1.5) == 1.0
    assert split_threshold(12, 0, 2, 1.5) == pytest.approx(12 ** (5 / 3))


def test_split_rules():
    count = SplitRule(4, 3, 1.5)
    assert not count.due(0, 7, 0.0, 1)  # 8 < 7 + 1 is false
    assert count.due(0, 8, 0.0, 1)
    information = SplitRule(4, 3, 1.5, gain_limit=10.0, point_limit=50)
    assert not information.due(0, 100, 9.9, 49)
    assert information.due(0, 100, 10.1, 1)
    assert information.due(0, 100, 0.0, 50)
    assert not information.due(0, 7, 99.0, 99)  # the count rule comes first
    assert not SplitRule(1, 3, 1.5, never=True).due(0, 10**9, 1e9, 10**9)


coordinates = st.one_of(
    st.floats(0, 1), st.builds(lambda i, j: min(i, j) / j, st.integers(0, 40), st.integers(1, 40))
)


@given(
    st.lists(coordinates, min_size=1, max_size=3),
    st.integers(1, 25),
    st.integers(0, 6),
    st.booleans(),
)
def test_touching_cells_are_those_that_hold_the_point(point, per_side, level, closed):
    geometry = Geometry(len(point), per_side, closed)
    scaled = geometry.scale(np.array([point]))
    touching = set(geometry.touching(scaled[0].tolist(), level))
    exact = [Fraction(c) * 2**level for c in scaled[0].tolist()]
    around = [range(max(0, int(c) - 2), min(per_side << level, int(c) + 3)) for c in exact]
    for cell in itertools.product(*around):
        key = (level, *cell)
        inside = all(c <= e <= c + 1 for c, e in zip(cell, exact, strict=True))
        if not closed:
            inside &= all(
                e < c + 1 or c + 1 == per_side << level for c, e in zip(cell, exact, strict=True)
            )
        assert (key in touching) == inside
        assert bool(geometry.holds(key, scaled)[0]) == inside
    assert 1 <= len(touching) <= (2 ** len(point) if closed else 1)


@given(
    st.lists(coordinates, min_size=1, max_size=3),
    st.integers(1, 25),
    st.integers(0, 5),
    st.booleans(),
)
def test_children_hold_what_their_parent_holds(point, per_side, level, closed):
    geometry = Geometry(len(point), per_side, closed)
    scaled = geometry.scale(np.array([point]))
    for key in geometry.touching(scaled[0].tolist(), level):
        children = [geometry.child(key, code) for code in range(2 ** len(point))]
        holding = {c for c in children if geometry.holds(c, scaled)[0]}
        assert holding
        assert holding == set(geometry.touching(scaled[0].tolist(), level + 1, within=key))
        offsets = geometry.offsets(key, scaled)[0]
        assert ((offsets >= 0) & (offsets <= 2)).all()


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize("dim", [1, 3, 6, 9])
def test_points_are_scattered_to_the_children_that_hold_them(dim, closed):
    geometry = Geometry(dim, 3, closed)
    key = (1, *range(1, 5), 5, 0, 2, 5, 5)[: dim + 1]  # at the domain's upper end where it is 5
    rng = np.random.default_rng(dim)
    scaled = (np.array(key[1:]) + rng.integers(0, 9, (40, dim)) / 8) / 2
    scaled = scaled[geometry.holds(key, scaled)]
    children = [geometry.child(key, code) for code in range(2**dim)]
    expected = [(c, np.flatnonzero(geometry.holds(c, scaled)).tolist()) for c in children]
    scattered = [(c, rows.tolist()) for c, rows in geometry.scatter(key, scaled)]
    assert scattered == [(child, rows) for child, rows in expected if rows]
    assert geometry.scatter(key, scaled[:0]) == []


def test_a_point_where_cells_without_number_meet_belongs_to_the_upper_one():
    geometry = Geometry(100, 1, closed=False)
    centre, corner = np.full(100, 0.5), np.ones(100)
    assert list(geometry.touching(centre.tolist(), 1)) == [(1, *[1] * 100)]
    assert list(geometry.touching(corner.tolist(), 3)) == [(3, *[7] * 100)]
    [(child, rows)] = geometry.scatter((0, *[0] * 100), centre[None, :])
    assert child == (1, *[1] * 100)
    assert rows.tolist() == [0]
    assert geometry.holds(child, np.array([centre, corner, 0.4 * corner])).tolist() == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_children_tile_their_parent(dim):
    geometry = Geometry(dim, 3)
    key = (2, *range(4, 4 + dim))
    children = [geometry.child(key, code) for code in range(2**dim)]
    assert len(set(children)) == 2**dim
    corners = np.array([geometry.lower(c) for c in children])
    np.testing.assert_array_equal(corners.min(axis=0), geometry.lower(key))
    np.testing.assert_allclose(
        corners.max(axis=0) + geometry.side(3), geometry.lower(key) + geometry.side(2)
    )
    assert 2**dim * geometry.side(3) ** dim == pytest.approx(geometry.side(2) ** dim)


def test_first_cells_are_all_cells():
    assert len(set(Geometry(2, 5).first_cells())) == 25
