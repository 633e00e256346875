"""The sampler, loaded as OptunaHub loads it."""

from __future__ import annotations

from pathlib import Path
import random

import optuna
import optunahub
import pytest


PACKAGE = Path(__file__).parents[3]


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_it_finds_the_optimum_under_noise(direction: str) -> None:
    sign = 1 if direction == "minimize" else -1
    noise = random.Random(0)

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", -5, 5)
        kind = trial.suggest_categorical("kind", ["good", "bad"])
        return sign * ((x - 1) ** 2 + (kind == "bad") + noise.gauss(0, 0.1))

    module = optunahub.load_local_module("samplers/partita", registry_root=str(PACKAGE))
    sampler = module.PartitaSampler(seed=0)
    study = optuna.create_study(sampler=sampler, direction=direction)
    study.optimize(objective, n_trials=60)
    best = sampler.recommend(study)
    assert best.params["kind"] == "good"
    assert abs(best.params["x"] - 1) < 0.5
    assert best.lower <= best.mean <= best.upper
    assert sampler.certificate(study) >= 0
