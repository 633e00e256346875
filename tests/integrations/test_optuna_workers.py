"""PartitaSampler with others: what it reads of a study, pending trials, copies."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState
from support.samplers import SPACE, objective, pending, told

import partita as pt
from partita.errors import InvalidInput
from partita.integrations import _optuna_trials
from partita.integrations._optuna_space import PROPOSAL
from partita.integrations.optuna import PartitaSampler


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    yield
    optuna.logging.set_verbosity(before)


# -- reading ---------------------------------------------------------------------------------------


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of the trials that samplers read from the storage."""
    numbers: list[int] = []
    read = _optuna_trials.TrialReader._read

    def noted(self: Any, wanted: list[int]) -> list[Any]:
        numbers.extend(wanted)
        return read(self, wanted)

    monkeypatch.setattr(_optuna_trials.TrialReader, "_read", noted)
    return numbers


def test_a_worker_alone_reads_nothing(reads: list[int]) -> None:
    study = optuna.create_study(sampler=PartitaSampler(SPACE, seed=0))
    study.optimize(objective, n_trials=30)
    assert reads == []


def two_workers() -> tuple[Any, Any]:
    storage = optuna.storages.InMemoryStorage()
    one = optuna.create_study(storage=storage, sampler=PartitaSampler(SPACE, seed=0))
    other = optuna.load_study(
        study_name=one.study_name, storage=storage, sampler=PartitaSampler(SPACE, seed=1)
    )
    return one, other


def test_a_trial_of_another_worker_is_read_until_it_ends(reads: list[int]) -> None:
    one, other = two_workers()
    slow = other.ask(SPACE)
    one.optimize(objective, n_trials=4)
    assert reads.count(slow.number) == 4
    other.tell(slow, 11.0)
    reads.clear()
    one.optimize(objective, n_trials=4)
    assert reads == [slow.number]
    assert 11.0 in told(one.sampler)


def test_a_trial_whose_worker_died_is_read_less_and_less(reads: list[int]) -> None:
    one, other = two_workers()
    dead = other.ask(SPACE)
    one.optimize(objective, n_trials=100)
    assert 10 < reads.count(dead.number) < 35
    assert set(reads) == {dead.number}


def test_only_the_front_of_the_queue_is_read(reads: list[int]) -> None:
    one, other = two_workers()
    for i in range(30):
        one.enqueue_trial({"x": i / 100})
    one.optimize(objective, n_trials=1)
    one.sampler.recommend(one)  # looks at the whole study, of which 29 trials wait
    reads.clear()
    other.optimize(objective, n_trials=1)
    one.optimize(objective, n_trials=10)
    assert len(reads) < 20
    other.optimize(objective, n_trials=20)
    assert len(one.trials) == 32
    one.sampler.recommend(one)
    assert told(one.sampler) == sorted(trial.value for trial in one.trials)
    assert pending(one.sampler) == 0


def test_many_trials_at_once_are_read_as_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = two_workers()
    other.optimize(objective, n_trials=20)
    single = []
    find = one._storage.get_trial_id_from_study_id_trial_number
    monkeypatch.setattr(
        one._storage,
        "get_trial_id_from_study_id_trial_number",
        lambda *which: (single.append(which), find(*which))[1],
    )
    one.optimize(objective, n_trials=1)
    assert single == []
    assert told(one.sampler) == sorted(trial.value for trial in one.trials[:20])


def test_a_storage_that_fails_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = two_workers()
    one.optimize(objective, n_trials=3)
    other.optimize(objective, n_trials=2)
    with monkeypatch.context() as broken:

        def fails(trial_id: int) -> Any:
            raise OSError("the connection was lost")

        broken.setattr(one._storage, "get_trial_id_from_study_id_trial_number", fails)
        broken.setattr(one._storage, "get_all_trials", lambda *_, **__: fails(0))
        with pytest.raises(OSError, match="connection"):
            one.sampler.recommend(one)
    one.sampler.recommend(one)
    assert told(one.sampler) == sorted(trial.value for trial in one.trials)


def test_threads() -> None:
    sampler = PartitaSampler(seed=0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=24, n_jobs=4)
    sampler.recommend(study)
    assert told(sampler) == sorted(trial.value for trial in study.trials)
    assert pending(sampler) == 0


def test_ask_and_tell_out_of_order() -> None:
    sampler = PartitaSampler(SPACE, seed=0)
    study = optuna.create_study(sampler=sampler)
    trials = [study.ask(SPACE) for _ in range(20)]
    for trial in reversed(trials):
        study.tell(trial.number, objective(optuna.trial.FixedTrial(trial.params)))
    sampler.recommend(study)
    assert told(sampler) == sorted(trial.value for trial in study.trials)
    assert pending(sampler) == 0


# -- copies and other studies ----------------------------------------------------------------------


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_a_copy_has_the_settings_and_reads_the_study(copied: Callable[[Any], Any]) -> None:
    sampler = PartitaSampler(SPACE, seed=0, delta=0.2, warn_independent_sampling=False)
    study = optuna.create_study(sampler=sampler)
    study.optimize(objective, n_trials=6)
    other = copied(sampler)
    found = other.recommend(study)
    assert told(other) == sorted(trial.value for trial in study.trials)
    assert other._model.optimizer.policy.delta == 0.2
    assert set(found.params) == set(SPACE)
    study.optimize(objective, n_trials=2)


def _propose(study: Any, results: Any) -> None:
    trial = study.ask(SPACE)
    results.put((trial.number, trial.params["x"]))


def test_a_forked_copy_does_not_propose_what_its_parent_does(tmp_path: Any) -> None:
    backend = optuna.storages.journal.JournalFileBackend(str(tmp_path / "study.journal"))
    storage = optuna.storages.JournalStorage(backend)
    study = optuna.create_study(storage=storage, sampler=PartitaSampler(SPACE, seed=0))
    study.optimize(objective, n_trials=6)
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    child = context.Process(target=_propose, args=(study, results))
    child.start()
    number, x = results.get()
    child.join(30)
    assert number == 6
    # The parent's own next proposal, had there been no child.
    assert study.sampler._model.propose(99)["x"] != x


def test_one_sampler_on_two_studies() -> None:
    sampler = PartitaSampler(SPACE, seed=0)
    studies = [optuna.create_study(sampler=sampler) for _ in range(2)]
    for _ in range(3):
        for study in studies:
            study.optimize(objective, n_trials=2)
    for study in studies:
        sampler.recommend(study)
        assert told(sampler) == sorted(trial.value for trial in study.trials)


# -- pending trials of other workers ---------------------------------------------------------------


def test_a_trial_that_runs_elsewhere_is_pending_until_it_ends() -> None:
    one, other = two_workers()
    running = other.ask(SPACE)
    one.optimize(objective, n_trials=2)
    one.sampler.recommend(one)
    assert pending(one.sampler) == 1
    (unit,) = one.sampler._model.optimizer.trials.pending.units
    proposal = one.trials[running.number].system_attrs[PROPOSAL]
    np.testing.assert_array_equal(unit, one.sampler._model.optimizer.space.encode(proposal))
    other.tell(running, state=TrialState.FAIL)
    one.sampler.recommend(one)
    assert pending(one.sampler) == 0
    # It failed, which the policy learns.
    assert one.sampler._model.optimizer.n_pending == 0
    assert one.sampler._model.optimizer.n_failed == 1


def test_failures_of_another_worker_are_kept_away_from(reads: list[int]) -> None:
    one, other = two_workers()

    def fails(trial: Any) -> float:
        value = objective(trial)
        return np.nan if trial.params["x"] > 0.5 else value

    running = [other.ask(SPACE) for _ in range(3)]
    one.sampler.recommend(one)  # so that it counts them as pending
    for trial in running:
        other.tell(trial, state=TrialState.FAIL)
    other.optimize(fails, n_trials=40)
    assert sum(trial.state == TrialState.FAIL for trial in one.trials) >= 5
    reads.clear()
    one.optimize(fails, n_trials=20)
    assert sorted(reads) == list(range(43))  # each once
    own = one.trials[43:]
    assert sum(trial.state == TrialState.COMPLETE for trial in own) >= 14
    one.sampler.recommend(one)
    # Every failure is known, and once.
    failed = [trial for trial in one.trials if trial.state == TrialState.FAIL]
    assert one.sampler._model.optimizer.n_failed == len(failed)
    complete = [trial for trial in one.trials if trial.state == TrialState.COMPLETE]
    assert told(one.sampler) == sorted(trial.value for trial in complete)
    assert pending(one.sampler) == 0


def test_a_proposal_is_seen_before_the_objective_asks_for_anything() -> None:
    one, other = two_workers()
    trial = other.ask()
    assert trial.relative_params.keys() == SPACE.keys()
    assert one.trials[0].params == {}
    one.optimize(objective, n_trials=1)
    one.sampler.recommend(one)
    assert pending(one.sampler) == 1


def test_expected_trials_of_an_optimizer() -> None:
    optimizer = pt.Optimizer({"x": (0, 1), "kind": ["a", "b"]}, seed=0)
    trial = optimizer.expect({"x": 0.25, "kind": "b"})
    assert trial.number == 0
    assert trial.params == {"x": 0.25, "kind": "b"}
    assert optimizer.n_pending == 1
    optimizer.tell(trial, 2.0)
    assert (optimizer.n_told, optimizer.n_pending) == (1, 0)
    optimizer.cancel(optimizer.expect({"x": 0.5, "kind": "a"}))
    assert (optimizer.n_failed, optimizer.n_pending, optimizer.policy.pending) == (1, 0, 0)
    with pytest.raises(InvalidInput, match="give a number from 0"):
        optimizer.expect({"x": 2.0, "kind": "a"})
    assert len(optimizer.trials) == 2


class _Planner(pt.UniformSampling):
    """Plans from the pending points that the base class keeps."""

    plans_from_pending = True


@pytest.mark.parametrize("planner", [_Planner, pt.UniformSampling])
def test_a_policy_is_told_of_points_to_expect(planner: Any) -> None:
    policy = planner(pt.Box([0.0], [1.0]), seed=0)
    x = np.array([0.5])
    seen = planner is _Planner
    assert policy.expect(x) is policy.expect(x) is seen
    assert policy.pending == 2 * seen
    policy.tell(x, 1.0)
    assert policy.pending == seen
    if seen:
        policy.cancel(x)
    with pytest.raises(pt.PartitaError, match="no pending"):
        policy.cancel(x)
    for wrong in (np.array([2.0]), np.array([0.1, 0.2]), np.array([np.nan])):
        with pytest.raises(InvalidInput):
            policy.expect(wrong)
    assert (policy.pending, policy.told) == (0, 1)


def test_pruners_of_several_brackets() -> None:
    sampler = PartitaSampler(seed=0)
    pruner = optuna.pruners.HyperbandPruner(min_resource=1, max_resource=9)
    study = optuna.create_study(sampler=sampler, pruner=pruner)

    def steps(trial: Any) -> float:
        value = trial.suggest_float("x", 0, 1) ** 2
        for i in range(9):
            trial.report(value, i)
            if trial.should_prune():
                raise optuna.TrialPruned
        return value

    study.optimize(steps, n_trials=20)
    sampler.recommend(study)
    assert any(trial.state == TrialState.PRUNED for trial in study.trials)
    done = [trial for trial in study.trials if trial.state == TrialState.COMPLETE]
    assert told(sampler) == sorted(trial.value for trial in done)
    assert pending(sampler) == 0
