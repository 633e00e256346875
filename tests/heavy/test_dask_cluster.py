"""Dask on a real local cluster of several workers, of which one is killed during the run."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from support.clusters import dask_client

from partita import maximize, minimize

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")

SQUARE = [(0, 1), (0, 1)]
WORKERS = 3
EXAMPLE = Path(__file__).parents[2] / "examples" / "dask_cluster.py"


@pytest.fixture
def client():
    with dask_client(WORKERS) as client:
        yield client


class Killer:
    """A callback that kills workers in the middle of whatever they do."""

    def __init__(self, client, after):
        self._client, self._after = client, list(after)
        self.killed = []

    def __call__(self, now):
        if self._after and now.n_evals >= self._after[0]:
            self._after.pop(0)
            victim = next(iter(self._client.run(os.getpid).values()))
            os.kill(victim, signal.SIGKILL)
            self.killed.append(victim)


@pytest.mark.parametrize("after", [[30], [10, 40, 70]], ids=["one", "three, one after another"])
def test_killed_workers_lose_nothing(client, after):
    def f(x):
        time.sleep(0.01)
        return float(((x - 0.3) ** 2).sum())

    killer = Killer(client, after)
    result = minimize(
        f,
        SQUARE,
        n_evals=120,
        executor=client.get_executor(pure=False),
        in_flight=6,
        callback=killer,
    )
    assert len(killer.killed) == len(after)
    assert result.success
    assert result.nfev == len(result.history) == 120
    assert result.nfail == 0
    assert result.optimizer.n_pending == 0
    told = result.history
    expected = ((np.asarray(told.params) - 0.3) ** 2).sum(axis=1)
    np.testing.assert_allclose(told.values, expected)  # each value at its own point
    assert np.abs(result.x - 0.3).max() < 0.1
    assert not set(killer.killed) & set(client.run(os.getpid).values())


def test_an_evaluation_that_ends_every_worker_it_runs_on_fails_alone():
    def f(x):
        if x[0] > 0.8:
            os._exit(1)
        return -abs(float(x[0]) - 0.5)  # away from where it ends: a worker takes long to start

    # Dask tries three times more unless told otherwise, and a worker takes a while to start.
    few = dask.config.set({"distributed.scheduler.allowed-failures": 0})
    with few, dask_client(WORKERS) as client:
        executor = client.get_executor(pure=False)
        result = maximize(f, SQUARE, n_evals=25, executor=executor, in_flight=3)
    assert result.nfev == 25
    assert result.nfail > 0
    assert {type(error).__name__ for error in result.errors} == {"KilledWorker"}


def test_a_cluster_that_goes_away_ends_the_run_with_what_there_is(client):
    def f(x):
        time.sleep(0.01)
        return float(x[0])

    def close(now):
        if now.n_evals == 20:
            client.close()

    result = maximize(
        f, SQUARE, n_evals=1000, executor=client.get_executor(pure=False), callback=close
    )
    assert not result.success
    assert 20 <= result.nfev < 30
    assert result.optimizer.n_pending == 0


def test_the_example_survives_the_death_of_a_worker():
    done = subprocess.run(
        [sys.executable, EXAMPLE, "--evals", "100", "--kill"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"killed worker \d+ after 50 evaluations", done.stdout)
    assert re.search(r"nfev: 100\n", done.stdout)
    cost = re.search(r"fun: ([0-9.]+) ", done.stdout)
    assert float(cost[1]) < 4500  # the best there is costs about 3,400, most twice that or more


def test_the_tutorial_runs(tmp_path):
    page = Path(__file__).parents[2] / "docs" / "tutorials" / "cluster.md"
    (block,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    name = re.match(r"# file: (\S+)\n", block)[1]
    (tmp_path / name).write_text(block, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"nfev: 200\n", done.stdout)
    cost = re.search(r"fun: ([0-9.]+) ", done.stdout)
    assert float(cost[1]) < 4500
