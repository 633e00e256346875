"""A worker on an Optuna study, a process of its own: test_optuna_storages.py runs several.

Reads lines of JSON, answers each with one. {"run": n} runs n trials; {"hang": true} starts one that
never ends; {"state": true} says what the sampler knows.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
import optuna

from partita.integrations.optuna import PartitaSampler


def storage_of(address: str) -> Any:
    """A storage at the address of a journal file or a database."""
    if address.endswith(".journal"):
        backend = optuna.storages.journal.JournalFileBackend(address)
        return optuna.storages.JournalStorage(backend)
    wait = {"timeout": 60} if address.startswith("sqlite") else {}
    return optuna.storages.RDBStorage(address, engine_kwargs={"connect_args": wait})


class Worker:
    """Runs trials of one study."""

    def __init__(self, address: str, seed: int) -> None:
        self.sampler = PartitaSampler(seed=seed)
        self.study = optuna.load_study(
            study_name="shared", storage=storage_of(address), sampler=self.sampler
        )
        self.random = np.random.default_rng()
        self.others_pending = 0

    def objective(self, trial: Any) -> float:
        x = trial.suggest_float("x", -1.0, 1.0)
        if self.sampler._model is not None:
            pending = self.sampler._model.optimizer.n_pending
            self.others_pending = max(self.others_pending, pending - 1)
        time.sleep(0.01)
        lr = trial.suggest_float("lr", 1e-4, 1.0, log=True)
        kind = trial.suggest_categorical("kind", ["a", "b", None])
        return float((x - 0.3) ** 2 + lr + (kind != "b") + 0.1 * self.random.normal())

    def hang(self, trial: Any) -> float:
        self.objective(trial)
        print(json.dumps({"hanging": trial.number}), flush=True)
        time.sleep(600)
        raise AssertionError("not killed")

    def state(self) -> dict[str, Any]:
        params = self.sampler.recommend(self.study).params
        assert self.sampler._model is not None
        optimizer = self.sampler._model.optimizer
        return {
            "params": params,
            "told": sorted(optimizer.trials.finished.values.tolist()),
            "pending": optimizer.n_pending,
            "others_pending": self.others_pending,
        }


def main() -> None:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    worker = Worker(sys.argv[1], int(sys.argv[2]))
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        answer: dict[str, Any] = {}
        if "run" in order:
            worker.study.optimize(worker.objective, n_trials=order["run"])
        elif "hang" in order:
            worker.study.optimize(worker.hang, n_trials=1)
        else:
            answer = worker.state()
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
