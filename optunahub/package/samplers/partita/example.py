"""A noisy objective with PartitaSampler."""

from __future__ import annotations

from pathlib import Path
import random

import optuna
import optunahub


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -5, 5)
    n = trial.suggest_int("n", 1, 9)
    return (x - 1) ** 2 + 0.1 * n + random.gauss(0, 0.1)


# From a copy of the registry. Elsewhere: optunahub.load_module("samplers/partita").
registry = Path(__file__).parents[2]
module = optunahub.load_local_module(package="samplers/partita", registry_root=str(registry))
sampler = module.PartitaSampler(seed=0)
study = optuna.create_study(sampler=sampler)
study.optimize(objective, n_trials=100)
print(sampler.recommend(study))
