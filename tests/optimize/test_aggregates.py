"""Means of several values through `Optimizer`."""

import math

import numpy as np
import pytest

import partita as pt
from partita.errors import InvalidInput, Settled
from partita.optimize.aggregates import Aggregate, aggregate_of

SPACE = {"x": (0.0, 1.0)}
PROVEN = {"norm_bound": 3.0, "noise": pt.Gaussian(0.3), "kernel": pt.Matern(1.5, 0.3)}


def merged(parts):
    whole = aggregate_of(parts[0], "tell")
    for part in parts[1:]:
        whole = whole.merged(aggregate_of(part, "tell"))
    return whole


def test_merging_parts_is_aggregating_all_values():
    values = np.random.default_rng(0).normal(5.0, 2.0, 100)
    whole = merged([values[:1], values[1:40], values[40:]])
    assert whole.count == 100
    assert whole.mean == pytest.approx(values.mean(), rel=1e-13)
    assert whole.std == pytest.approx(values.std(ddof=1), rel=1e-13)


def test_a_part_without_a_deviation_leaves_none():
    assert Aggregate(1.0, None, 3).merged(Aggregate(1.0, 0.1, 2)) == (1.0, None, 5)


def test_a_mean_is_what_its_values_are_to_a_proven_policy():
    values = np.random.default_rng(1).normal(0.2, 0.3, 50)
    one_by_one, at_once = (pt.Optimizer(SPACE, **PROVEN, n_evals=1000) for _ in range(2))
    for value in values:
        one_by_one.add({"x": 0.4}, value)
    trial = at_once.expect({"x": 0.4})
    at_once.tell(trial, values=values)
    assert at_once.policy.told == 50
    points = [{"x": x} for x in (0.1, 0.4, 0.9)]
    for ours, theirs in zip(at_once.predict(points), one_by_one.predict(points), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def test_records_tables_and_pickles_have_the_count():
    optimizer = pt.Optimizer(SPACE)
    optimizer.add({"x": 0.1}, 0.5)
    assert "count" not in optimizer.trials.to_dataframe()
    optimizer.tell(optimizer.ask(), 0.25, 0.1, count=7)
    optimizer.add([{"x": 0.2}, {"x": 0.3}], [1.0, 2.0], [0.1, math.nan], count=[5, 1])
    assert [(row.count, row.std) for row in optimizer.trials] == [
        (1, None),
        (7, 0.1),
        (5, 0.1),
        (1, None),
    ]
    assert list(optimizer.trials.to_dataframe()["count"]) == [1, 7, 5, 1]
    assert optimizer.trials[1:].counts.tolist() == [7, 5, 1]
    assert optimizer.policy.told == 14


def test_a_policy_that_is_rebuilt_knows_the_counts():
    optimizer = pt.Optimizer(SPACE, **PROVEN, n_evals=1000)
    optimizer.tell(optimizer.ask(), values=[0.1, 0.3, 0.2])
    (row,) = optimizer.plan(1)
    rows = optimizer.plan(10)
    part = max(rows, key=lambda trial: trial.count)
    before = optimizer.predict([row.params, part.params])
    optimizer._changed_by = "tell"  # as an interrupt leaves it
    after = optimizer.predict([row.params, part.params])
    np.testing.assert_allclose(after.mean, before.mean, atol=1e-12)
    assert optimizer.policy.told == 3


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"value": 1.0, "count": 0}, "whole number"),
        ({"value": 1.0, "count": 2.5, "std": 0.1}, "whole number"),
        ({"value": 1.0, "count": True}, "whole number"),
        ({"value": 1.0, "count": "3"}, "whole number"),
        ({"value": 1.0, "count": 3, "std": -0.1}, "std=-0.1"),
        ({"value": 1.0, "count": 3}, "sample deviation"),
        ({"value": math.nan, "count": 3, "std": 0.1}, "finite"),
        ({"values": []}, "at least one"),
        ({"values": [1.0, math.inf]}, r"values\[1\]"),
        ({"values": np.array([1.0, math.nan])}, r"values\[1\]"),
        ({"values": [1.0, "two"]}, r"values\[1\]"),
        ({"values": "12"}, "list or array"),
        ({"values": 3.0}, "list or array"),
        ({"values": [1.0], "value": 2.0}, "Leave out"),
        ({}, "give a value"),
    ],
)
def test_bad_aggregates_are_refused_and_change_nothing(given, words):
    optimizer = pt.Optimizer(SPACE)
    trial = optimizer.ask()
    with pytest.raises(InvalidInput, match=words):
        optimizer.tell(trial, **given)
    assert (optimizer.n_pending, optimizer.n_told, optimizer.policy.told) == (1, 0, 0)
    optimizer.tell(trial, values=[1.0])
    assert optimizer.trials[0].count == 1


def test_a_mean_for_a_trial_that_has_ended_is_refused():
    optimizer = pt.Optimizer(SPACE)
    trial = optimizer.ask()
    optimizer.tell(trial, 1.0, 0.1, count=3)
    with pytest.raises(Settled, match="already has a value"):
        optimizer.tell(trial, 1.0, 0.1, count=3)


def test_constraints_and_other_policies_take_single_values_only():
    constrained = pt.Optimizer(SPACE, constraints=["cost <= 1"])
    with pytest.raises(InvalidInput, match="by itself"):
        constrained.tell(constrained.ask(), {"loss": 1.0, "cost": 0.1}, count=3)
    trees = pt.Optimizer(SPACE, policy="soo", n_evals=100)
    with pytest.raises(InvalidInput, match="by itself"):
        trees.tell(trees.ask(), 1.0, count=3)


def test_rows_of_a_bulk_add_are_named_and_none_is_added():
    optimizer = pt.Optimizer(SPACE)
    with pytest.raises(InvalidInput, match="row 1"):
        optimizer.add([{"x": 0.2}, {"x": 0.3}], [1.0, 2.0], 0.1, count=[5, 0])
    assert len(optimizer.trials) == 0
