"""What tests of the Optuna sampler share: an objective, and what a sampler was told."""

from __future__ import annotations

import math
from typing import Any

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from partita.integrations.optuna import PartitaSampler

SPACE = {
    "x": FloatDistribution(-1.0, 1.0),
    "lr": FloatDistribution(1e-4, 1.0, log=True),
    "n": IntDistribution(1, 9),
    "kind": CategoricalDistribution(("a", None, 3.5)),
}


def objective(trial: Any) -> float:
    x = trial.suggest_float("x", -1.0, 1.0)
    lr = trial.suggest_float("lr", 1e-4, 1.0, log=True)
    n = trial.suggest_int("n", 1, 9)
    kind = trial.suggest_categorical("kind", ("a", None, 3.5))
    return (x - 0.3) ** 2 + (math.log10(lr) + 2) ** 2 + 0.01 * n + (kind is not None)


def told(sampler: PartitaSampler) -> list[float]:
    """Values that the sampler's model has been told, sorted."""
    assert sampler._model is not None
    return sorted(sampler._model.optimizer.trials.finished.values.tolist())


def pending(sampler: PartitaSampler) -> int:
    """How many trials its model counts as pending, but for those kept so after they failed."""
    assert sampler._model is not None
    return sampler._model.pending
