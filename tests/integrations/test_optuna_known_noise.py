"""PartitaSampler reads the noise of a trial's value from its user attribute `std`."""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import optuna
import pytest
from support.samplers import SPACE, objective, pending, told
from support.stds import Listener

from partita.errors import InvalidInput
from partita.integrations.optuna import PartitaSampler


@pytest.fixture(autouse=True)
def _setting() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


def with_std(trial: Any) -> float:
    """An objective that knows the noise of every other value."""
    if trial.number % 2:
        trial.set_user_attr("std", trial.number / 10)
    return objective(trial)


def stds_by_value(sampler: PartitaSampler) -> dict[float, float | None]:
    """What the policy was told, by the value, which differs between trials."""
    assert sampler._model is not None
    return {record.value: record.std for record in sampler._model.optimizer.trials.finished}


def expected(study: Any) -> dict[float, float | None]:
    return {trial.value: trial.user_attrs.get("std") for trial in study.trials}


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("policy", [None, Listener])
def test_it_is_told_with_the_value(given: bool, policy: Any) -> None:
    sampler = PartitaSampler(SPACE if given else None, seed=1, policy=policy)
    study = optuna.create_study(sampler=sampler)
    study.optimize(with_std, n_trials=14)
    sampler.recommend(study)
    assert stds_by_value(sampler) == expected(study)
    assert None in stds_by_value(sampler).values()
    assert 0.5 in stds_by_value(sampler).values()
    assert pending(sampler) == 0


def test_ask_and_tell_and_trials_that_were_added_or_enqueued() -> None:
    sampler = PartitaSampler(SPACE, seed=1)
    study = optuna.create_study(sampler=sampler)
    study.enqueue_trial({"x": 0.25, "lr": 0.01, "n": 2, "kind": None}, user_attrs={"std": 0.5})
    trial = study.ask()
    study.tell(trial, objective(trial))
    trial = study.ask()
    value = objective(trial)
    trial.set_user_attr("std", 0)
    study.tell(trial, value)
    params = {"x": -0.5, "lr": 0.1, "n": 9, "kind": "a"}
    attrs = {"std": 0.125}
    study.add_trial(
        optuna.trial.create_trial(params=params, distributions=SPACE, value=9.5, user_attrs=attrs)
    )
    sampler.recommend(study)
    assert list(expected(study).values()) == [0.5, 0, 0.125]
    assert stds_by_value(sampler) == expected(study)


def test_trials_from_before_by_another_sampler_and_by_other_workers(tmp_path: Any) -> None:
    storage = f"sqlite:///{tmp_path / 'optuna.db'}"
    before = optuna.create_study(
        storage=storage, study_name="s", sampler=optuna.samplers.RandomSampler(seed=0)
    )
    before.optimize(with_std, n_trials=6)
    samplers = [PartitaSampler(SPACE, seed=i) for i in range(2)]
    studies = [
        optuna.load_study(storage=storage, study_name="s", sampler=sampler) for sampler in samplers
    ]
    for _ in range(3):
        for study in studies:
            study.optimize(with_std, n_trials=1)
    for study, sampler in zip(studies, samplers, strict=True):
        sampler.recommend(study)
        assert len(expected(study)) == 12
        assert stds_by_value(sampler) == expected(study)
    again = copy.deepcopy(samplers[0])
    again.recommend(studies[0])
    assert stds_by_value(again) == expected(studies[0])


def test_a_pruned_trial_tells_nothing_where_no_finished_one_says_what_its_report_means() -> None:
    def pruned(trial: Any) -> float:
        trial.report(with_std(trial), 0)
        raise optuna.TrialPruned

    sampler = PartitaSampler(SPACE, seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(pruned, n_trials=4)
    sampler.recommend(study)
    assert stds_by_value(sampler) == {}
    assert sampler._model.optimizer.n_told == 0


@pytest.mark.parametrize("bad", [-0.5, math.nan, math.inf, "wide", [0.1, 0.2], True, {}])
def test_a_bad_one_is_left_out_with_one_warning(bad: Any, caplog: pytest.LogCaptureFixture) -> None:
    def f(trial: Any) -> float:
        trial.set_user_attr("std", bad if trial.number in (1, 3) else 0.5)
        return objective(trial)

    sampler = PartitaSampler(SPACE, seed=0)
    study = optuna.create_study(sampler=sampler)
    with caplog.at_level(logging.WARNING, "partita"):
        study.optimize(f, n_trials=6)
        sampler.recommend(study)
    assert [trial.state.name for trial in study.trials] == ["COMPLETE"] * 6
    assert told(sampler) == sorted(trial.value for trial in study.trials)
    seen = stds_by_value(sampler)
    assert [seen[trial.value] for trial in study.trials] == [0.5, None, 0.5, None, 0.5, 0.5]
    (warning,) = [record.getMessage() for record in caplog.records]
    assert warning.startswith("Trial 1 has the user attribute 'std', which cannot be used: std=")
    assert "give the standard deviation of the value's noise" in warning


def test_a_policy_without_a_use_for_it_hears_the_values_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sampler = PartitaSampler(SPACE, seed=0, policy="uniform")
    study = optuna.create_study(sampler=sampler)
    with caplog.at_level(logging.WARNING, "partita"):
        study.optimize(with_std, n_trials=8)
        sampler.recommend(study)
    assert told(sampler) == sorted(trial.value for trial in study.trials)
    assert set(stds_by_value(sampler).values()) == {None}
    (warning,) = [record.getMessage() for record in caplog.records]
    assert "UniformSampling does not use the noise of single values" in warning


def test_an_infinite_value_is_told_as_another_without_its_noise() -> None:
    def f(trial: Any) -> float:
        trial.set_user_attr("std", 0.5)
        value = objective(trial)
        return math.inf if trial.number == 3 else value

    sampler = PartitaSampler(SPACE, seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(f, n_trials=5)
    sampler.recommend(study)
    assert sampler._model is not None
    stds = sampler._model.optimizer.trials.finished.stds
    assert np.isnan(stds).sum() == 1
    assert (stds == 0.5).sum() == 4


def test_another_attribute_or_none() -> None:
    def f(trial: Any) -> float:
        trial.set_user_attr("std", "of the folds")
        trial.set_user_attr("error", 0.25)
        return objective(trial)

    for name, std in (("error", 0.25), (None, None)):
        sampler = PartitaSampler(SPACE, seed=0, std_attr=name)
        study = optuna.create_study(sampler=sampler)
        study.optimize(f, n_trials=3)
        sampler.recommend(study)
        assert set(stds_by_value(sampler).values()) == {std}
    with pytest.raises(InvalidInput, match="std_attr=3: give the name of a user attribute"):
        PartitaSampler(std_attr=3)  # type: ignore[arg-type]


# -- means of several values -----------------------------------------------------------------------


def with_count(trial: Any) -> float:
    """An objective whose value is a mean, but for every third trial."""
    if trial.number % 3:
        trial.set_user_attr("std", 0.25)
        trial.set_user_attr("count", 10 * trial.number)
    return objective(trial)


def test_the_mean_of_several_values_counts_as_these() -> None:
    sampler = PartitaSampler(SPACE, seed=1)
    study = optuna.create_study(sampler=sampler)
    study.optimize(with_count, n_trials=9)
    sampler.recommend(study)
    assert sampler._model is not None
    counts = {record.value: record.count for record in sampler._model.optimizer.trials.finished}
    assert counts == {t.value: t.user_attrs.get("count", 1) for t in study.trials}
    assert (
        sampler._model.optimizer.n_values
        == sum(counts.values())
        == 3 + 10 * (1 + 2 + 4 + 5 + 7 + 8)
    )


@pytest.mark.parametrize("count", [0, -3, 2.5, "many", True, math.inf])
def test_a_count_that_cannot_be_used_is_left_out_with_one_warning(
    count: Any, caplog: pytest.LogCaptureFixture
) -> None:
    def f(trial: Any) -> float:
        trial.set_user_attr("std", 0.25)
        trial.set_user_attr("count", count)
        return objective(trial)

    optuna.logging.enable_propagation()
    sampler = PartitaSampler(SPACE, seed=1)
    study = optuna.create_study(sampler=sampler)
    with caplog.at_level(logging.WARNING):
        study.optimize(f, n_trials=3)
        sampler.recommend(study)
    assert len(told(sampler)) == 3
    assert sum("count_attr" in record.getMessage() for record in caplog.records) == 1


def test_a_count_without_a_deviation_is_an_attribute_like_others() -> None:
    def f(trial: Any) -> float:
        trial.set_user_attr("count", 5)
        return objective(trial)

    sampler = PartitaSampler(SPACE, seed=1)
    study = optuna.create_study(sampler=sampler)
    study.optimize(f, n_trials=3)
    sampler.recommend(study)
    assert sampler._model is not None
    assert sampler._model.optimizer.n_values == 3
