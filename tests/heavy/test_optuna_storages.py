"""Several processes on one Optuna study: on a journal file, on SQLite, on a PostgreSQL server."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState
from support.postgres_server import postgres

from partita.integrations._optuna_space import PROPOSAL
from partita.integrations.optuna import PartitaSampler

WORKER = Path(__file__).with_name("optuna_worker.py")
WORKERS, TRIALS = 3, 20


class Worker:
    """A process that runs trials when it is told to."""

    def __init__(self, address: str, seed: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER), address, str(seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def send(self, **order: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the worker ended with {self.process.wait()}"
        return json.loads(line)  # type: ignore[no-any-return]

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture(params=["journal", "sqlite", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "postgresql":
        with postgres() as url:
            yield url
    elif request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'study.db'}"
    else:
        yield str(tmp_path / "study.journal")


def test_workers_agree_and_lose_nothing(address: str) -> None:
    sys.path.insert(0, str(WORKER.parent))
    try:
        from optuna_worker import storage_of
    finally:
        sys.path.pop(0)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(study_name="shared", storage=storage_of(address))
    with ExitStack() as stack:
        # The same seed, as in a script that is started several times.
        workers = [stack.enter_context(Worker(address, seed=0)) for _ in range(WORKERS)]
        victim = stack.enter_context(Worker(address, seed=0))
        for worker in (*workers, victim):
            worker.answer()
            worker.send(run=TRIALS // 2)
        for worker in (*workers, victim):
            worker.answer()
        victim.send(hang=True)
        dead = victim.answer()["hanging"]
        victim.process.kill()
        victim.process.wait()
        for worker in workers:
            worker.send(run=TRIALS // 2)
        for worker in workers:
            worker.answer()
        for worker in workers:
            worker.send(state=True)
        states = [worker.answer() for worker in workers]

    trials = study.get_trials()
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    assert [trial.number for trial in trials] == list(range(len(trials)))
    assert len(complete) == WORKERS * TRIALS + TRIALS // 2
    assert [trial.number for trial in trials if trial not in complete] == [dead]
    # Every worker was told every value, once, and counts the dead one's trial as pending.
    values = sorted(trial.value for trial in complete)
    for state in states:
        assert state["told"] == values
        assert state["pending"] == 1
    assert max(state["others_pending"] for state in states) >= 1
    # A worker that comes late knows all that the others know.
    late = PartitaSampler(seed=1)
    late.recommend(study)
    assert late._model is not None
    assert sorted(late._model.optimizer.trials.finished.values.tolist()) == values
    assert late._model.optimizer.n_pending == 1
    _check_proposals(trials)


def _check_proposals(trials: list[Any]) -> None:
    """All but the first few trials have theirs, and workers do not repeat each other."""
    proposals = [trial.system_attrs.get(PROPOSAL) for trial in trials]
    assert sum(proposal is None for proposal in proposals) <= 2 * (WORKERS + 1)
    for trial, proposal in zip(trials, proposals, strict=True):
        if proposal is not None:
            assert proposal["x"] == trial.params["x"]
            assert ["a", "b", None][proposal["kind"]] == trial.params["kind"]
    # The policy plays good points again, about one trial in four here; four workers that chose
    # the same points would leave a quarter of them.
    places = {tuple(sorted(trial.params.items(), key=str)) for trial in trials}
    assert len(places) >= 0.5 * len(trials)
