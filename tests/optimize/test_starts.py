"""`x0`: points that a run begins with."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import partita as pt
from partita.errors import InvalidInput
from partita.front import maximize, minimize

SPACE = {"rate": (1e-4, 1e-1, "log"), "depth": (1, 12, "int"), "kind": ["a", "b"], "fast": bool}
START = {"rate": 0.003, "depth": 6, "kind": "b", "fast": True}


class Watched:
    """A function that remembers what it was called with, and fails at some of it."""

    def __init__(self, fails=lambda params: False):
        self.calls = []
        self._fails = fails

    def __call__(self, x=None, **params):
        given = params if x is None else x.tolist()
        self.calls.append(given)
        if self._fails(given):
            raise OSError("disk")
        return float(len(self.calls) % 3)


def test_a_run_begins_there_to_the_last_digit_and_with_the_right_kinds():
    f = Watched()
    result = minimize(f, SPACE, n_evals=20, x0={**START, "depth": 6.0, "rate": np.float64(0.003)})
    assert f.calls[0] == START
    assert [type(value) for value in f.calls[0].values()] == [float, int, str, bool]
    assert result.nfev == 20
    assert list(f.calls[1]) == list(START)  # the others are the policy's own


def test_several_come_in_their_order():
    f = Watched()
    maximize(f, [(0, 1), (-5, 5)], n_evals=10, x0=[(0.1, 2.0), (0.7, -3.0)])
    assert f.calls[:2] == [[0.1, 2.0], [0.7, -3.0]]
    f = Watched()
    others = [{**START, "depth": depth} for depth in (2, 9)]
    maximize(f, SPACE, n_evals=10, x0=others)
    assert f.calls[:2] == others


def test_one_number_is_a_point_of_one_dimension():
    f = Watched()
    maximize(f, [(0, 1)], n_evals=5, x0=0.25)
    assert f.calls[0] == [0.25]


def test_no_more_are_evaluated_than_wanted():
    f = Watched()
    result = maximize(f, [(0, 1)], n_evals=2, x0=[[0.1], [0.2], [0.3]])
    assert f.calls == [[0.1], [0.2]]
    assert result.nfev == 2


def test_a_good_start_is_kept_by_a_policy_of_its_own_mind():
    def f(x):
        return -float(np.abs(x - 0.123).sum())

    result = maximize(f, [(0, 1)] * 6, n_evals=30, x0=[0.123] * 6, policy="uniform")
    assert np.allclose(result.x, 0.123)


def test_workers_begin_there_too():
    f = Watched()
    with ThreadPoolExecutor(1) as executor:
        maximize(f, [(0, 1)], n_evals=12, x0=[[0.1], [0.2], [0.3]], executor=executor, batch=2)
    assert f.calls[:3] == [[0.1], [0.2], [0.3]]


def test_a_start_that_fails_counts_as_any_other():
    f = Watched(fails=lambda x: x == [0.5])
    result = maximize(f, [(0, 1)], n_evals=10, x0=[[0.5], [0.75]])
    assert f.calls[:2] == [[0.5], [0.75]]
    assert result.nfail == 1
    assert result.nfev == 10


def test_grids_and_arms_begin_at_a_point_of_theirs():
    f = Watched()
    maximize(f, pt.Grid(5, dim=2), n_evals=5, x0=[0.25, 0.75])
    assert f.calls[0] == [0.25, 0.75]
    with pytest.raises(InvalidInput, match=r"x0=\[0.3, 0.75\] is not a point of the space"):
        maximize(f, pt.Grid(5, dim=2), n_evals=5, x0=[0.3, 0.75])


def test_a_study_that_is_resumed_evaluates_those_without_a_value(tmp_path):
    starts = [[0.1], [0.2], [0.3]]
    settings = {"n_evals": 2, "x0": starts, "study": tmp_path / "run.db"}
    first, second = Watched(), Watched()
    maximize(first, [(0, 1)], **settings)
    maximize(second, [(0, 1)], **settings | {"n_evals": 6})
    assert first.calls == starts[:2]
    assert second.calls[0] == starts[2]
    assert not any(call in starts[:2] for call in second.calls[:2])


@pytest.mark.parametrize(
    ("x0", "words"),
    [
        ({**START, "rate": 1.0}, "rate=1.0: give a number from 0.0001 to 0.1"),
        ({**START, "kind": "c"}, "give one of 'a', 'b'"),
        ({"rate": 0.01}, "is missing"),
        ({**START, "other": 1}, "there is no parameter 'other'"),
        ([START, {}], "is missing"),
        (0.5, "give a dict with a value for each parameter, or a list of such dicts"),
        ("fast", "give a dict"),
        ({**START, "depth": 9, "fast": False}, "feasible does not allow it"),
    ],
)
def test_bad_starts_are_refused_before_anything_happens(x0, words, tmp_path):
    f, file = Watched(), tmp_path / "run.db"
    with pytest.raises(InvalidInput, match=r"^x0=") as caught:
        minimize(
            f,
            SPACE,
            n_evals=5,
            x0=x0,
            study=file,
            feasible=lambda rate, depth, kind, fast: fast or depth < 8,
        )
    assert words in str(caught.value)
    assert not f.calls
    assert not file.exists()


def test_the_very_edge_of_what_is_feasible():
    f, starts = Watched(), [{"lr": 0.001}, {"lr": 0.003}]
    result = minimize(
        f,
        {"lr": (1e-4, 1e-1, "log")},
        n_evals=5,
        x0=starts,
        feasible=lambda lr: lr <= 0.003,
    )
    assert f.calls[:2] == starts
    assert result.history.params[:2] == starts


def test_numbers_in_arrays_and_numbers_that_rounding_left_outside():
    f = Watched()
    minimize(f, {"lr": (1e-4, 1e-1, "log")}, n_evals=2, x0={"lr": np.array([0.003])})
    minimize(f, [(0, 1), (0, 1)], n_evals=2, x0=[1 + 5e-10, 0.3])
    assert (f.calls[0], f.calls[2]) == ({"lr": 0.003}, [1.0, 0.3])


@pytest.mark.parametrize("space", [{"x": (0, 1)}, [(0, 1), (0, 1)]])
def test_no_points_at_all(space):
    def f(*x, **params):
        return 1.0

    assert maximize(f, space, n_evals=3, x0=[]).nfev == 3


def test_numbers_for_one_dimension_are_not_taken_for_a_point():
    with pytest.raises(InvalidInput, match=r"several points as \[\[0.2\], \[0.4\]\]"):
        maximize(Watched(), [(0, 1)], n_evals=3, x0=[0.2, 0.4])


def test_an_open_study_has_its_space_and_constraint(tmp_path):
    def below(rate):
        return rate < 0.6

    space = {"rate": (0, 1)}
    study = pt.Study.open(tmp_path / "a.db", space, direction="maximize", feasible=below)
    f = Watched()
    with pytest.raises(InvalidInput, match="feasible does not allow it"):
        maximize(f, None, n_evals=3, x0={"rate": 0.7}, study=study)
    maximize(f, None, n_evals=3, x0={"rate": 0.5}, study=study)
    assert f.calls[0] == {"rate": 0.5}


@pytest.mark.parametrize(
    "x0", [[0.5], [0.5, 2.0], [[0.5, 0.5], [0.5, np.nan]], [[[0.5, 0.5]]], "a"]
)
def test_bad_starts_of_arrays_are_refused(x0):
    f = Watched()
    with pytest.raises(InvalidInput, match="x0"):
        minimize(f, [(0, 1), (0, 1)], n_evals=5, x0=x0)
    assert not f.calls
