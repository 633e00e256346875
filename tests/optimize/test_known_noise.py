"""Values whose noise is known: what `Optimizer` takes, records and refuses."""

import copy
import math
import pickle
from decimal import Decimal

import numpy as np
import pytest
from support.stds import BAD_STDS, Deaf, Listener

import partita as pt
from partita.errors import InvalidInput
from partita.optimize.values import Observation, as_observation, as_std

SPACE = {"rate": (0.0, 1.0), "kind": ["a", "b"]}
BOX = [(0.0, 1.0), (2.0, 5.0)]


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_the_policy_is_told_the_noise_whatever_the_direction(direction):
    optimizer = pt.Optimizer(BOX, policy=Listener, direction=direction)
    first, second, third = (optimizer.ask() for _ in range(3))
    optimizer.tell(first, 1.5, std=0.25)
    optimizer.tell(second.number, 2.5)
    optimizer.tell(third, 3.5, 0)
    assert optimizer.add([0.5, 3.0], 4.5, std=np.float32(0.5)) == 3
    sign = -1 if direction == "minimize" else 1
    heard = [(1.5 * sign, 0.25), (2.5 * sign, None), (3.5 * sign, 0.0), (4.5 * sign, 0.5)]
    assert optimizer.policy.heard == heard
    assert [trial.std for trial in optimizer.trials] == [0.25, None, 0.0, 0.5]


def test_records_and_tables_have_the_noise():
    optimizer = pt.Optimizer(SPACE, policy=Listener)
    for i in range(40):  # the ledger grows twice
        trial = optimizer.ask()
        if i % 4 == 3:
            optimizer.cancel(trial)
        else:
            optimizer.tell(trial, float(i), std=i / 10 if i % 2 else None)
    optimizer.ask()
    trials = optimizer.trials
    expected = [i / 10 if i % 4 == 1 else None for i in range(41)]
    assert [trial.std for trial in trials] == expected
    assert trials.stds.shape == (41,)
    assert np.isnan(trials.stds).tolist() == [std is None for std in expected]
    assert trials.finished.stds[1] == 0.1
    assert np.isnan(trials.failed.stds).all()
    assert trials[4:6][1].std == 0.5
    for same in (pickle.loads(pickle.dumps(optimizer)), copy.deepcopy(optimizer)):
        np.testing.assert_array_equal(same.trials.stds, trials.stds)
        same.tell(40, 1.0, std=0.75)
        assert same.trials[40].std == 0.75
    assert optimizer.trials[40].std is None


def test_the_usual_policy_takes_it():
    optimizer = pt.Optimizer(SPACE)
    for i in range(30):
        trial = optimizer.ask()
        optimizer.tell(trial, (trial.params["rate"] - 0.3) ** 2, std=0.01 * (i % 3))
    assert optimizer.trials.stds.tolist() == [0.01 * (i % 3) for i in range(30)]
    assert optimizer.recommend().lower <= optimizer.recommend().upper


@pytest.mark.parametrize("policy", ["calibrated", Listener])
@pytest.mark.parametrize(("std", "message"), BAD_STDS)
def test_what_is_no_deviation_is_refused_and_changes_nothing(policy, std, message):
    optimizer = pt.Optimizer(BOX, policy=None if policy == "calibrated" else policy)
    trial = optimizer.ask()
    before = pickle.dumps(optimizer)
    with pytest.raises(InvalidInput, match=message):
        optimizer.tell(trial, 1.0, std=std)
    with pytest.raises(InvalidInput, match=message):
        optimizer.add([0.5, 3.0], 1.0, std)
    with pytest.raises(InvalidInput, match="the value is nan"):
        optimizer.tell(trial, math.nan, std=0.1)
    assert pickle.dumps(optimizer) == before
    optimizer.tell(trial, 1.0, std=0.1)


@pytest.mark.parametrize("policy", ["uniform", Deaf])
def test_a_policy_without_a_use_for_it_refuses_and_changes_nothing(policy):
    optimizer = pt.Optimizer(BOX, policy=policy)
    trial = optimizer.ask()
    name = type(optimizer.policy).__name__
    for verb, call in (
        ("tell", lambda: optimizer.tell(trial, 1.0, std=0.5)),
        ("add", lambda: optimizer.add([0.5, 3.0], 1.0, std=0)),
    ):
        with pytest.raises(
            InvalidInput, match=rf"{verb}\(\.\.\., std=0.*{name} does not use.*Leave"
        ):
            call()
    assert (optimizer.n_told, optimizer.n_pending, len(optimizer.trials)) == (0, 1, 1)
    optimizer.tell(trial, 1.0, std=None)
    assert optimizer.n_told == 1


@pytest.mark.parametrize(
    ("returned", "seen"),
    [
        (2, (2.0, None)),
        ((2.5, 0.5), (2.5, 0.5)),
        ((np.array([2.5]), np.float32(0.5)), (2.5, 0.5)),
        ((Decimal("2.5"), 0), (2.5, 0.0)),
        ((2.5, None), (2.5, None)),
        (Observation(1.0, 0.25), (1.0, 0.25)),
    ],
)
def test_a_function_returns_a_number_or_a_pair(returned, seen):
    observation = as_observation(returned)
    assert observation == (*seen, None, 1)
    assert all(type(part) in (float, type(None)) for part in observation[:3])


@pytest.mark.parametrize(
    "returned", [None, "1.0", (), (1.0,), (1.0, 0.1, 0.2), [1.0, 0.1], np.array([1.0, 0.1]), {}]
)
def test_what_is_neither_is_refused_with_both_forms_named(returned):
    with pytest.raises(InvalidInput, match=r"give one number, or a tuple \(value, std\) where"):
        as_observation(returned)


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ((math.nan, 0.1), "the value is nan"),
        ((None, 0.1), "the value is None"),
        (((1.0, 2.0), 0.1), r"the value is \(1.0, 2.0\): give one number; if"),
        ((1.0, -0.1), "std=-0.1: give the standard deviation"),
        ((1.0, "small"), "std='small'"),
    ],
)
def test_a_pair_with_a_bad_part_names_that_part(returned, message):
    with pytest.raises(InvalidInput, match=message):
        as_observation(returned)


def test_a_pair_is_no_value_of_tell():
    optimizer = pt.Optimizer(BOX)
    with pytest.raises(InvalidInput, match=r"the value is \(1.0, 0.1\): give one number; if"):
        optimizer.tell(optimizer.ask(), (1.0, 0.1))


@pytest.mark.parametrize("std", [0, 0.0, -0.0, np.float64(2.0), np.array(0.5), 1e150])
def test_what_counts_as_a_deviation(std):
    assert as_std(std) == float(std)
    assert type(as_std(std)) is float
