"""What workers do for functions that replicate: how f is called, seeds, sums, time."""

import functools
import math
import time

import numpy as np
import pytest

from partita.errors import InvalidInput
from partita.optimize.aggregates import Aggregate
from partita.optimize.evaluate import WrongCall
from partita.optimize.values import WrongKind
from partita.optimize.working import (
    Manner,
    Piece,
    cut,
    key_of,
    manner_of,
    seed_of,
    values_of,
    work,
)
from partita.space import as_space

NAMED, PLANE = as_space({"x": (0, 1)}), as_space([(0, 1), (0, 1)])
ROW = Piece(3, {"x": 0.5}, key_of(0, 3, 0), 0, 10)


def together(x, count, seed):
    return x + np.random.default_rng(seed).normal(size=count)


def alone(x, seed):
    return x + np.random.default_rng(seed).normal()


def plain(x):
    return x


@pytest.mark.parametrize(
    ("f", "space", "manner"),
    [
        (together, NAMED, (True, True)),
        (alone, NAMED, (False, True)),
        (plain, NAMED, (False, False)),
        (lambda x, count: x, NAMED, (True, False)),
        (lambda **params: params, NAMED, (True, True)),
        (functools.partial(together, seed=1), NAMED, (True, False)),
        (functools.partial(together, count=8), NAMED, (False, True)),
        (lambda x, count, seed: x, PLANE, (True, True)),
        (lambda count: count, PLANE, (False, False)),  # its one array has this name
        (math.sqrt, PLANE, (False, False)),
    ],
)
def test_the_signature_says_what_a_function_is_given(f, space, manner):
    assert manner_of(f, space) == Manner(*manner)


@pytest.mark.parametrize("name", ["count", "seed"])
def test_a_space_with_such_names_is_refused(name):
    with pytest.raises(InvalidInput, match=f"parameter '{name}'. Give that parameter another name"):
        manner_of(plain, as_space({name: (0, 1)}))


def test_a_function_that_ends_early_is_refused():
    with pytest.raises(InvalidInput, match="`trial`"):
        manner_of(lambda x, trial: x, NAMED)


def test_seeds_differ_by_run_trial_place_and_what_was_told():
    keys = {key_of(*row) for row in [(0, 3, 0), (1, 3, 0), (0, 4, 0), (0, 3, 7), (0, 30, 0)]}
    assert len(keys) == 5
    seeds = {seed_of(key, place) for key in keys for place in range(2000)}
    assert len(seeds) == 10_000
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert seed_of(key_of(0, 3, 0), 5) == seed_of(key_of(0, 3, 0), 5)


def test_values_of_different_seeds_are_independent():
    key = key_of(5, 0, 0)
    rows = np.array([np.random.default_rng(seed_of(key, i)).normal(size=50) for i in range(400)])
    assert abs(rows.mean()) < 4 / math.sqrt(rows.size)
    next_to = np.mean(rows[:-1] * rows[1:])
    assert abs(next_to) < 4 / math.sqrt(rows.size)
    same = np.array([np.random.default_rng(seed_of(key, 0)).normal(size=50) for i in range(400)])
    assert np.mean(same[:-1] * same[1:]) > 0.5  # the control: one seed for all


def test_sums_are_those_of_the_values():
    (one,) = work(together, Manner(True, True), [ROW], 60.0)
    values = together(0.5, 10, seed_of(ROW.key, 0))
    assert one[:3] == (3, 0, 10)
    assert one.seen == (pytest.approx(values.mean()), pytest.approx(values.std(ddof=1)), 10)
    (each,) = work(alone, Manner(False, True), [ROW], 60.0)
    values = np.array([alone(0.5, seed_of(ROW.key, i)) for i in range(10)])
    assert each.seen == (pytest.approx(values.mean()), pytest.approx(values.std(ddof=1)), 10)


def test_pieces_of_a_row_give_the_values_of_the_row():
    whole = work(alone, Manner(False, True), [ROW], 60.0)[0].seen
    parts = [s.seen for s in work(alone, Manner(False, True), cut(ROW, 4), 60.0)]
    assert [part.count for part in parts] == [4, 4, 2]
    merged = parts[0].merged(parts[1]).merged(parts[2])
    assert merged == (pytest.approx(whole.mean), pytest.approx(whole.std), 10)


def test_when_the_time_is_over_a_part_is_sent_and_at_least_one_value():
    def slow(x):
        time.sleep(0.02)
        return x

    manner = Manner(False, False)
    (part,) = work(slow, manner, [ROW, ROW._replace(trial=4)], 0.05)
    assert 1 <= part.stop <= 5
    assert part.seen.count == part.stop
    (first,) = work(slow, manner, [ROW, ROW._replace(trial=4)], 0.0)
    assert (first.stop, first.seen) == (1, Aggregate(0.5, None, 1))


def test_an_error_keeps_the_values_before_it():
    calls = []

    def fails(x):
        calls.append(x)
        if len(calls) == 4:
            raise RuntimeError("no")
        return x

    good, bad = work(fails, Manner(False, False), [ROW, ROW._replace(trial=4)], 60.0)[::-1]
    assert (bad.stop, bad.seen) == (3, Aggregate(0.5, 0.0, 3))
    assert "no" in str(bad.error)
    assert (good.stop, good.error) == (10, None)


@pytest.mark.parametrize(
    ("result", "kind", "text"),
    [
        (0.5, WrongKind, "asked for count=3 values, but returned 0.5"),
        (np.zeros(2), WrongKind, r"shape \(2,\).*Return an array of shape \(3,\)"),
        (np.zeros((3, 1)), WrongKind, r"shape \(3, 1\)"),
        ("abc", WrongKind, "no array"),
        (None, WrongKind, "no array"),
        ((1.0, 2.0, 3.0), WrongKind, "no array"),
        ([1.0, 2.0, "x"], InvalidInput, r"values\[2\]"),
        (np.array([1.0, np.nan, 2.0]), InvalidInput, r"values\[1\]"),
        (Aggregate(0.1, 0.2, 4), WrongKind, "count=3"),
        (Aggregate(0.1, None, 3), WrongKind, "sample deviation"),
        (Aggregate(0.1, -1.0, 3), InvalidInput, "std=-1.0"),
        (Aggregate(math.nan, 1.0, 3), InvalidInput, "nan"),
    ],
)
def test_what_is_not_count_values_is_refused(result, kind, text):
    with pytest.raises(kind, match=text):
        values_of(result, 3)


@pytest.mark.parametrize(
    "result", [[1, 2, 3], np.array([1.0, 2.0, 3.0], dtype=np.float32), Aggregate(2.0, 1.0, 3)]
)
def test_arrays_lists_and_sums_are_accepted(result):
    assert values_of(result, 3) == (2.0, 1.0, 3)


def test_one_value_is_an_array_as_well():
    assert values_of(np.array([0.5]), 1) == values_of([0.5], 1) == (0.5, None, 1)
    with pytest.raises(WrongKind, match=r"shape \(\)"):
        values_of(0.5, 1)


def test_a_function_that_does_not_take_the_parameters_is_named():
    (wrong,) = work(lambda y, count: y, Manner(True, False), [ROW], 60.0)
    assert isinstance(wrong.error, WrongCall)
    assert "f(x=..., count=...)" in str(wrong.error)
