import copy
import dataclasses
import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from partita.errors import InvalidInput
from partita.model.domains import MAX_GRID_POINTS, MIN_BOX_FLOATS, Arms, Box, Grid

ARMS = np.array([[0.25, 10.0], [0.0, 20.0], [1.0, 15.0]])


def domains():
    return [
        Grid(30, dim=2),
        Grid(2),
        Arms([[0.1, 0.2], [0.3, 0.4]]),
        Arms(ARMS, lower=[0, 10], upper=[1, 20]),
        Box([-1.0, 0.0], [1.0, 5.0]),
    ]


# Grid


@pytest.mark.parametrize(("n", "dim"), [(2, 1), (7, 1), (30, 1), (5, 2), (4, 3), (2, 6)])
def test_grid_points(n, dim):
    grid = Grid(n, dim)
    expected = list(itertools.product([i / (n - 1) for i in range(n)], repeat=dim))
    assert np.array_equal(grid.points, expected)
    assert (grid.size, grid.dim, grid.n) == (n**dim, dim, n)
    assert grid.unit_points is grid.points
    assert grid.lower.tolist() == [0.0] * dim
    assert grid.upper.tolist() == [1.0] * dim
    assert np.array_equal(grid.index_of(grid.points), np.arange(n**dim))


def test_grid_builds_its_points_late():
    grid = Grid(30, dim=3)
    assert grid.index_of([[0.0, 0.0, 1.0]]).item() == 29
    assert "points" not in vars(grid)
    assert grid.points is grid.points


@given(n=st.integers(2, 10**6), data=st.data())
def test_grid_finds_every_rounded_point(n, data):
    i = data.draw(st.integers(0, n - 1))
    x = i / (n - 1)
    near = [x, math.nextafter(x, 2), math.nextafter(x, -1), x + 9e-10, x - 9e-10]
    assert Grid(n).index_of(np.array(near)[:, np.newaxis]).tolist() == [i] * 5
    linspace = np.linspace(0, 1, n)[i]
    assert Grid(n).index_of([[linspace]]).item() == i


@given(x=hnp.arrays(float, (1, 2), elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_grid_index_is_the_nearest_arm_or_refused(x):
    grid = Grid(4, dim=2)
    distance = np.abs(grid.points - x).max(axis=1)
    if distance.min() <= 1e-9:
        assert grid.index_of(x).item() == distance.argmin()
    else:
        with pytest.raises(InvalidInput, match="is not an arm"):
            grid.index_of(x)


def test_grid_refuses_points_between_arms():
    with pytest.raises(
        InvalidInput, match=r"X\[1\]=\[0\.45, 1\.0\].*nearest is arm 5, \[0\.5, 1\.0\]"
    ):
        Grid(3, dim=2).index_of([[0.0, 0.0], [0.45, 1.0], [0.1, 0.1]])
    with pytest.raises(InvalidInput, match=r"x=\[1e\+300\].*nearest is arm 2"):
        Grid(3).index_of([[1e300]])
    with pytest.raises(InvalidInput, match="nearest is arm 0"):
        Grid(3).index_of([[-2e-9]])


def test_negative_zero_is_zero():
    assert Grid(3).index_of([[-0.0]]).item() == 0
    assert Arms([[0.0], [1.0]]).index_of([[-0.0]]).item() == 0
    assert Arms([[-0.0], [1.0]]).index_of([[0.0]]).item() == 0
    assert Arms([[-0.0]]) == Arms([[0.0]])
    assert hash(Arms([[-0.0]])) == hash(Arms([[0.0]]))
    assert hash(Box([-0.0], [1])) == hash(Box([0.0], [1]))
    assert "-0.0" not in repr(Box([-0.0], [1]))


@pytest.mark.parametrize("value", [1, 0, -3, 2.0, "3", True, None, math.nan])
def test_grid_refuses_bad_sides(value):
    with pytest.raises(InvalidInput, match=r"n=.*give an integer, 2 or more"):
        Grid(value)


@pytest.mark.parametrize("value", [0, -1, 1.5, True, None])
def test_grid_refuses_bad_dimensions(value):
    with pytest.raises(InvalidInput, match=r"dim=.*give an integer, 1 or more"):
        Grid(3, dim=value)


def test_grid_refuses_absurd_sizes():
    with pytest.raises(InvalidInput, match="at most 19 points per side, or a Box"):
        Grid(30, dim=6)
    assert Grid(19, dim=6).size <= MAX_GRID_POINTS < 20**6
    with pytest.raises(InvalidInput, match="give a Box"):
        Grid(2, dim=26)
    for n, dim in [(10, 10**12), (10**30, 1), (10**30, 10**30)]:
        with pytest.raises(InvalidInput, match="50,000,000"):
            Grid(n, dim)
    assert Grid(MAX_GRID_POINTS).size == MAX_GRID_POINTS
    assert Grid(np.int32(3), np.int64(2)) == Grid(3, 2)


# Arms


def test_arms():
    arms = Arms(ARMS, lower=[0, 10], upper=[1, 20])
    assert np.array_equal(arms.points, ARMS)
    assert arms.unit_points.tolist() == [[0.25, 0.0], [0.0, 1.0], [1.0, 0.5]]
    assert (arms.size, arms.dim) == (3, 2)
    assert arms.index_of(ARMS[::-1]).tolist() == [2, 1, 0]
    assert arms.index_of(np.zeros((0, 2))).tolist() == []


def test_arms_copies_its_input():
    points = np.array([[0.1], [0.2]])
    lower = np.array([0.0])
    arms = Arms(points, lower=lower)
    points[0], lower[0] = 0.9, 0.5
    assert arms.points.tolist() == [[0.1], [0.2]]
    assert arms.lower.tolist() == [0.0]


def test_arms_bounds_default_to_the_unit_cube_and_may_be_numbers():
    assert Arms([[0.1, 0.2]]) == Arms([[0.1, 0.2]], lower=0, upper=[1, 1])
    assert Arms([[0.1, 3]], upper=5).upper.tolist() == [5.0, 5.0]
    assert Arms([[-1, 0.5]], lower=[-1, 0]).unit_points.tolist() == [[0.0, 0.5]]
    assert Arms([[0.1]]) != Arms([[0.1]], upper=2)


def test_arms_forgives_rounding():
    arms = Arms(ARMS, lower=[0, 10], upper=[1, 20])
    assert arms.index_of(ARMS + np.array([9e-10, -9e-9])).tolist() == [0, 1, 2]
    assert arms.index_of([ARMS[1], ARMS[2] + 1e-12, ARMS[0]]).tolist() == [1, 2, 0]
    with pytest.raises(
        InvalidInput, match=r"X\[1\]=.*is not an arm.*nearest is arm 2, \[1\.0, 15\.0\]"
    ):
        arms.index_of([ARMS[0], ARMS[2] + [2e-9, 0]])
    with pytest.raises(InvalidInput, match="is not an arm"):
        arms.index_of([[1e308, -1e308]])
    with pytest.raises(InvalidInput, match="nearest is arm 1"):
        Arms([[0.0], [1e-300]], upper=1e-300).index_of([[1e308]])


def test_an_exact_arm_comes_before_a_near_one():
    arms = Arms([[0.5], [0.5 + 1e-12]])
    assert arms.index_of([[0.5 + 1e-12], [0.5], [0.5 + 9e-13]]).tolist() == [1, 0, 1]


@given(
    hnp.arrays(
        float,
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=8),
        elements=st.floats(-3, 7),
    )
)
def test_arms_finds_each_of_its_points(points):
    points = np.unique(points + 0.0, axis=0)
    arms = Arms(points, lower=-3, upper=7)
    assert arms.index_of(points).tolist() == list(range(len(points)))
    assert arms.unit_points.min() >= 0.0
    assert arms.unit_points.max() <= 1.0


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([], r"points has shape \(0,\)"),
        (np.zeros((0, 2)), "at least one arm"),
        (np.zeros((3, 0)), "at least one arm"),
        ([0.1, 0.2], r"points\.reshape\(-1, 1\)"),
        (0.5, r"points has shape \(\)"),
        (np.zeros((2, 2, 2)), r"\(2, 2, 2\)"),
        ([[0.1], [math.nan]], r"points\[1\]=\[nan\]: every coordinate must be finite"),
        ([[0.1], [math.inf]], "finite"),
        ([[0.1], [1.2]], r"points\[1\]=\[1\.2\] is outside.*lower= and upper="),
        ([[-0.1], [0.2]], "outside"),
        (
            [[0.3, 0.1], [0.2, 0.2], [0.3, 0.1]],
            r"points\[0\] and points\[2\] are both \[0\.3, 0\.1\]",
        ),
        ([[0.0], [-0.0]], r"points\[0\] and points\[1\]"),
        ([[0.1], [0.2, 0.3]], "rows of equal length"),
        ([["a"]], "give real numbers"),
        ([[True]], "give real numbers"),
        ([[1j]], "give real numbers"),
        (None, "give real numbers"),
    ],
)
def test_arms_refuses_bad_points(points, message):
    with pytest.raises(InvalidInput, match=message):
        Arms(points)


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        ([0], 1, r"lower has shape \(1,\), but the points have 2 dimensions"),
        (0, [1, 1, 1], r"upper has shape \(3,\)"),
        (0, 0, "equal"),
        (2, 1, "reversed"),
        (math.nan, 1, "finite"),
        (0, [1, math.inf], "finite"),
        (-1.7e308, 1.7e308, "overflows"),
        ("a", 1, "give real numbers"),
    ],
)
def test_arms_refuses_bad_bounds(lower, upper, message):
    with pytest.raises(InvalidInput, match=message):
        Arms([[0.1, 0.2]], lower=lower, upper=upper)


# Box


@st.composite
def boxes(draw):
    dim = draw(st.integers(1, 3))
    bound = st.floats(-1e300, 1e300)
    corners = [sorted(draw(st.tuples(bound, bound))) for _ in range(dim)]
    scale = [max(abs(low), abs(high)) for low, high in corners]
    assume(
        all(
            high - low >= MIN_BOX_FLOATS * np.spacing(size)
            for (low, high), size in zip(corners, scale, strict=True)
        )
    )
    return Box(*np.array(corners).T)


def test_box_refuses_bounds_that_floats_hardly_resolve():
    Box([1e8], [1e8 + 20])
    for low, high in ((1e9, 1e9 + 1e-6), (-1.0, -1.0 + 1e-12)):
        with pytest.raises(InvalidInput, match="relative to their centre"):
            Box([0.0, low], [1.0, high])


@given(boxes(), st.data())
def test_from_unit_stays_inside_and_is_monotone(box, data):
    unit = st.floats(0, 1) | st.sampled_from([0.0, 1.0, math.nextafter(1, 0), 5e-324])
    U = np.sort(data.draw(hnp.arrays(float, (6, box.dim), elements=unit)), axis=0)
    X = box.from_unit(U)
    assert np.array_equal(np.clip(X, box.lower, box.upper), X)
    assert np.all(np.diff(X, axis=0) >= 0)
    assert np.array_equal(box.from_unit(np.zeros((1, box.dim)))[0], box.lower)
    assert np.array_equal(box.from_unit(np.ones((1, box.dim)))[0], box.upper)
    assert np.array_equal(box.check(X), X)


@given(boxes(), st.data())
def test_to_unit_undoes_from_unit(box, data):
    U = data.draw(hnp.arrays(float, (3, box.dim), elements=st.floats(0, 1)))
    back = box.to_unit(box.from_unit(U))
    assert np.all((back >= 0) & (back <= 1))
    # x is rounded to the spacing of floats, which may be coarse for the box.
    spacing = np.maximum(np.spacing(np.abs(box.lower)), np.spacing(np.abs(box.upper)))
    assert np.all(np.abs(back - U) <= 4 * (spacing / (box.upper - box.lower) + 2**-52))
    assert np.array_equal(box.to_unit([box.lower, box.upper]), [[0.0] * box.dim, [1.0] * box.dim])


def test_to_unit_clips():
    box = Box([1.0, -2.0], [3.0, 2.0])
    assert box.to_unit([[2.0, 0.0], [-1e308, 1e308]]).tolist() == [[0.5, 0.5], [0.0, 1.0]]
    with np.errstate(all="raise"):
        assert Box([0.0], [1e-300]).to_unit([[1e308]]).tolist() == [[1.0]]


def test_from_unit_refuses_what_is_not_unit():
    with pytest.raises(InvalidInput, match=r"U\[1\]=\[1\.5\] is outside \[0, 1\]\^1"):
        Box([0], [1]).from_unit([[0.5], [1.5]])


def test_box_check():
    box = Box([0.0, 0.0], [0.3, 1e6])
    X = np.array([[0.1, 5.0], [0.3, 0.0]])
    assert np.array_equal(box.check(X), X)
    with pytest.raises(
        InvalidInput, match=r"X\[1\]=\[0\.1, -1\.0\].*coordinate 1 must be from 0\.0 to"
    ):
        box.check([[0.1, 1.0], [0.1, -1.0]])
    with pytest.raises(InvalidInput, match=r"x=\[0\.31, 1\.0\] is outside the box"):
        box.check([[0.31, 1.0]])
    with pytest.raises(InvalidInput, match="outside"):
        box.check([[0.3 + 4e-10, 1.0]])


def test_box_check_moves_rounded_points_onto_the_face():
    box = Box([0.0, 0.0], [0.3, 1e6])
    X = np.array([[0.1 + 0.2, -1e-4]])
    assert X[0, 0] > 0.3
    assert box.check(X).tolist() == [[0.3, 0.0]]
    assert X.tolist() == [[0.1 + 0.2, -1e-4]]


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        (0, 1, r"Box\(0, 1\): give lists.*Box\(\[0\.0\], \[1\.0\]\)"),
        ([0], 1, "give lists"),
        ([], [], "same length"),
        ([0, 0], [1], r"lower has shape \(2,\) and upper \(1,\)"),
        ([[0]], [[1]], "same length"),
        ([0, 2], [1, 1], r"lower\[1\]=2\.0, upper\[1\]=1\.0: the bounds are reversed"),
        ([0, 1], [1, 1], "equal"),
        ([0, -math.inf], [1, 1], "finite"),
        ([0], [math.nan], "finite"),
        ([-1.7e308], [1.7e308], "overflows"),
        (["a"], ["b"], "give real numbers"),
        ([False], [True], "give real numbers"),
        ([[0], [0, 1]], [1], "regular"),
    ],
)
def test_box_refuses_bad_bounds(lower, upper, message):
    with pytest.raises(InvalidInput, match=message):
        Box(lower, upper)


def test_box_copies_its_input():
    lower = np.array([0.0])
    box = Box(lower, [1.0])
    lower[0] = 0.5
    assert box.lower.tolist() == [0.0]


# All


@pytest.mark.parametrize("domain", domains(), ids=repr)
def test_domains_are_values(domain):
    for twin in (pickle.loads(pickle.dumps(domain)), copy.deepcopy(domain), copy.copy(domain)):
        assert twin == domain
        assert hash(twin) == hash(domain)
        assert not twin.lower.flags.writeable
    assert dataclasses.replace(domain) == domain
    assert domain != 3
    assert sum(domain == other for other in domains()) == 1
    assert isinstance(domain.dim, int)
    assert domain.lower.shape == domain.upper.shape == (domain.dim,)


@pytest.mark.parametrize("domain", domains(), ids=repr)
def test_domains_never_change(domain):
    with pytest.raises(dataclasses.FrozenInstanceError):
        domain.dim = 7
    arrays = [domain.lower, domain.upper]
    if domain.finite:
        assert domain.points.flags.c_contiguous
        assert domain.unit_points.flags.c_contiguous
        assert domain.points.dtype == domain.unit_points.dtype == np.float64
        with pytest.raises(dataclasses.FrozenInstanceError):
            domain.points = 7
        arrays += [domain.points, domain.unit_points]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0.5


def test_finite():
    assert [d.finite for d in domains()] == [True, True, True, True, False]


def test_repr():
    assert repr(Grid(30, dim=2)) == "Grid(30, dim=2)"
    assert (
        repr(Arms(np.random.default_rng(0).random((120, 2))))
        == "Arms(<120 points in 2 dimensions>)"
    )
    assert repr(Arms([[0.5]])) == "Arms(<1 point in 1 dimension>)"
    assert repr(Box([0, -1.5], [1, 2])) == "Box(lower=[0.0, -1.5], upper=[1.0, 2.0])"


@pytest.mark.parametrize("domain", [Grid(3, 2), Arms([[0.5, 0.5]]), Box([0, 0], [1, 1])], ids=repr)
@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([1, 2, 3], r"X has shape \(3,\), but the domain has 2 dimensions: .* shape \(k, 2\)"),
        ([0.5, 0.5], r"shape \(k, 2\), one point per row, e\.g\. X\.reshape\(1, -1\)"),
        (0.5, r"X has shape \(\)"),
        ([[1, 2, 3]], r"X has shape \(1, 3\), but the domain has 2 dimensions"),
        ([[0.5, math.nan]], r"x=\[0\.5, nan\]: every coordinate must be finite"),
        ([[0, 0], [0.5, math.inf]], r"X\[1\]=\[0\.5, inf\]"),
        ([["a", "b"]], "give real numbers"),
        ([[True, False]], "give real numbers"),
        ([[None, 1]], "give real numbers"),
        ([[1, 2], [3]], "rows of equal length"),
    ],
)
def test_check_refuses(domain, X, message):
    calls = [domain.check, domain.index_of] if domain.finite else [domain.check, domain.to_unit]
    for call in calls:
        with pytest.raises(InvalidInput, match=message):
            call(X)


def test_check_of_one_dimension_suggests_a_column():
    with pytest.raises(InvalidInput, match=r"has 1 dimension: .*X\.reshape\(-1, 1\)"):
        Grid(3).check([0.0, 0.5, 1.0])


@pytest.mark.parametrize("domain", [Grid(3, 2), Arms([[0.5, 0.5]]), Box([0, 0], [1, 1])], ids=repr)
def test_check_gives_contiguous_floats(domain):
    for X in (
        [[0, 1]],
        np.asfortranarray(np.eye(2)),
        np.ones((3, 4), np.float32)[:, ::2],
        np.ones((0, 2)),
    ):
        checked = domain.check(X)
        assert checked.dtype == np.float64
        assert checked.flags.c_contiguous
        assert np.array_equal(checked, X)


def test_check_refuses_what_float64_cannot_hold():
    huge = np.array([[np.longdouble("1e400")]])
    if np.isfinite(huge).all():
        with pytest.raises(InvalidInput, match="finite"):
            Box([0], [1]).check(huge)


def test_messages_shorten_long_points():
    with pytest.raises(InvalidInput, match="… 40 coordinates") as caught:
        Box(np.zeros(40), np.ones(40)).check(np.full((1, 40), 2.0))
    assert len(str(caught.value)) < 200
