"""Tables of trials: a sequence of records, and arrays."""

from collections.abc import Sequence

import numpy as np
import pytest

import partita as pt
from partita.study import Study

SPACE = {"rate": (0.0, 1.0), "kind": ["a", "b"]}


@pytest.fixture(params=["optimizer", "study"])
def player(request, tmp_path):
    """Five trials of named parameters: finished, failed, finished, pending, finished."""
    made = pt.Optimizer if request.param == "optimizer" else Study.open
    place = () if request.param == "optimizer" else (tmp_path / "tune.db",)
    player = made(*place, SPACE, policy="uniform", direction="maximize")
    trials = [player.ask() for _ in range(4)]
    player.tell(trials[0], 1.5)
    player.cancel(trials[1])
    player.tell(trials[2], -2.0)
    player.add({"rate": 0.5, "kind": "b"}, 3.0)
    return player


def test_trials_are_a_sequence_of_records(player):
    trials = player.trials
    assert isinstance(trials, Sequence)
    assert len(trials) == len(list(trials)) == 5
    assert [trial.number for trial in trials] == [0, 1, 2, 3, 4]
    assert [trial.state for trial in trials] == trials.states
    assert [trial.value for trial in trials] == [1.5, None, -2.0, None, 3.0]
    assert [trial.params for trial in trials] == trials.params
    assert trials[-1] == (4, {"rate": 0.5, "kind": "b"}, 3.0, "finished", None, None, 1)
    assert trials[np.int64(4)] == trials[4] == trials[-1]
    kinds = [int, dict, float, str, type(None), type(None), int]
    assert [type(part) for part in trials[0]] == kinds
    assert [trial.number for trial in reversed(trials)] == [4, 3, 2, 1, 0]
    assert trials[2] in trials
    for place in (5, -6):
        with pytest.raises(IndexError):
            trials[place]
    with pytest.raises(TypeError):
        trials["rate"]


def test_slices_and_parts_are_tables_with_places_of_their_own(player):
    trials = player.trials
    assert [trial.number for trial in trials[1:4]] == [1, 2, 3]
    assert trials[::-2].numbers.tolist() == [4, 2, 0]
    assert repr(trials[:2]) == "Trials(1 finished, 1 failed, 0 pending)"
    assert len(trials[9:]) == 0
    assert trials.finished[1].number == 2
    assert [trial.value for trial in trials.finished[-2:]] == [-2.0, 3.0]
    assert trials.pending[0] == trials[3]
    assert trials.failed.params == [trials[1].params]
    player.tell(3, 1.0)
    assert len(trials.pending) == 1  # as it stood
    assert player.trials.failed[1:].params == []
    np.testing.assert_array_equal(trials[2:].units, trials.units[2:])


def test_arrays_are_parameters_of_spaces_without_names():
    result = pt.minimize(lambda x: float(x.sum()), [(0, 1), (2, 5)], n_evals=6, policy="uniform")
    for trial, params in zip(result.history.trials, result.history.params, strict=True):
        np.testing.assert_array_equal(trial.params, params)
        assert trial.value == params.sum()
    assert [trial.number for trial in result.history] == list(range(6))
    assert result.history[-1].value == result.history.values[-1]
    assert len(result.history[2:]) == 4
    assert pt.Optimizer([(0, 1), (2, 5)]).trials.params.shape == (0, 2)
