"""Optuna's pruners with the sampler, and a study that ends by the certificate."""

import math
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState

from partita.errors import InvalidInput
from partita.integrations.optuna import CertificateCallback, PartitaSampler

PRUNERS = {
    "median": lambda: optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=2),
    "hyperband": lambda: optuna.pruners.HyperbandPruner(min_resource=1, max_resource=9),
    "halving": optuna.pruners.SuccessiveHalvingPruner,
}


def training(trial: Any) -> float:
    """Nine epochs; readings begin far above what they end with."""
    x = trial.suggest_float("x", 0.0, 1.0)
    y = trial.suggest_float("y", 0.0, 1.0)
    end = (x - 0.3) ** 2 + (y - 0.7) ** 2
    for epoch in range(9):
        trial.report(end + 5.0 * math.exp(-epoch / 2), epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return end


@pytest.mark.parametrize("name", PRUNERS)
def test_pruners_work_and_tell_the_model_nothing_wrong(name: str) -> None:
    sampler = PartitaSampler(seed=0)
    study = optuna.create_study(sampler=sampler, pruner=PRUNERS[name]())
    study.optimize(training, n_trials=60)
    states = [trial.state for trial in study.trials]
    assert states.count(TrialState.PRUNED) >= 3
    best = sampler.recommend(study)
    assert abs(best.params["x"] - 0.3) < 0.1
    assert abs(best.params["y"] - 0.7) < 0.1
    assert best.x == list(best.params.values())
    inner = sampler._model.optimizer  # type: ignore[union-attr]
    # Reports of 5 and more, told as values, would show here.
    ledger = inner.game.ledger
    known = ledger._values[: len(ledger)]
    for number in inner.trials.pruned.numbers.tolist():
        x, y = inner.trials[number].params.values()
        end = (x - 0.3) ** 2 + (y - 0.7) ** 2
        assert abs(known[number] - end) < 0.02 + 3.0 * ledger._stds[number]
    assert inner.n_told == states.count(TrialState.COMPLETE)


def test_other_workers_learn_from_reports_in_the_storage() -> None:
    storage = optuna.storages.InMemoryStorage()
    study = optuna.create_study(
        storage=storage, study_name="s", sampler=PartitaSampler(seed=0),
        pruner=PRUNERS["median"](),
    )  # fmt: skip
    study.optimize(training, n_trials=40)
    late = PartitaSampler(seed=1)
    late.recommend(optuna.load_study(storage=storage, study_name="s", sampler=late))
    inner = late._model.optimizer  # type: ignore[union-attr]
    assert inner.n_told == sum(trial.state == TrialState.COMPLETE for trial in study.trials)
    assert inner.n_pruned > 0


# -- the certificate -------------------------------------------------------------------------------


def bowl(trial: Any) -> float:
    return float((trial.suggest_float("x", 0.0, 1.0) - 0.3) ** 2)


def test_a_study_ends_when_its_certificate_is_small() -> None:
    study = optuna.create_study(sampler=PartitaSampler(seed=0))
    study.optimize(bowl, n_trials=150, callbacks=[CertificateCallback(0.02)])
    assert 10 < len(study.trials) < 150
    assert study.sampler.certificate(study) <= 0.02
    control = optuna.create_study(sampler=PartitaSampler(seed=0))
    control.optimize(bowl, n_trials=25, callbacks=[CertificateCallback(0.0)])
    assert len(control.trials) == 25


def test_failed_and_pruned_trials_are_no_reason_to_look() -> None:
    def fails(trial: Any) -> float:
        bowl(trial)
        raise optuna.TrialPruned

    study = optuna.create_study(sampler=PartitaSampler(seed=0))
    study.optimize(fails, n_trials=5, callbacks=[CertificateCallback(10.0)])
    assert len(study.trials) == 5


def test_another_sampler_is_refused_with_what_to_do() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    with pytest.raises(InvalidInput, match="but the study has RandomSampler"):
        study.optimize(bowl, n_trials=3, callbacks=[CertificateCallback(0.1)])
    with pytest.raises(InvalidInput, match="but the study has int"):
        CertificateCallback(0.1, sampler=3)


@pytest.mark.parametrize("tolerance", [-1.0, math.nan, "much", None])
def test_a_bad_tolerance_is_refused(tolerance: Any) -> None:
    with pytest.raises(InvalidInput, match="give a number of at least 0"):
        CertificateCallback(tolerance)
