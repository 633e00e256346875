"""Functions that replicate on real local clusters of Dask and Ray, of which workers are killed."""

from __future__ import annotations

import os
import signal
import time

import numpy as np
import pytest
from support.clusters import dask_client

import partita as pt

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def mean(x, y):
    return (x - 0.3) ** 2 + (y - 0.8) ** 2


def check(result, evals):
    """All evaluations were made, once each, and the answer is good."""
    assert result.success
    assert result.nfev == result.history.counts.sum() == evals
    assert result.nfail == 0
    assert (result.optimizer.n_pending, result.optimizer.policy.pending) == (0, 0)
    assert mean(**result.params) < 0.02


class Killer:
    """A callback that kills a worker once, in the middle of whatever it does."""

    def __init__(self, after, pids):
        self._after, self._pids = after, pids
        self.killed = None

    def __call__(self, now):
        if self.killed is None and now.n_evals >= self._after:
            self.killed = self._pids()[0]
            os.kill(self.killed, signal.SIGKILL)


# -- Dask ------------------------------------------------------------------------------------------


@pytest.fixture
def client():
    with dask_client(2) as client:
        yield client


def test_a_killed_worker_of_dask_loses_only_what_it_had_not_sent(client):
    def f(x, y, count, seed):
        time.sleep(0.02)
        return mean(x, y) + np.random.default_rng(seed).normal(0, 0.3, count)

    killer = Killer(5000, lambda: list(client.run(os.getpid).values()))
    executor = client.get_executor(pure=False)
    result = pt.minimize(
        f, SPACE, n_evals=50_000, replicates=True, executor=executor, callback=killer
    )
    assert killer.killed is not None
    check(result, 50_000)


# -- Ray -------------------------------------------------------------------------------------------


@pytest.fixture
def executor():
    ray = pytest.importorskip("ray")
    from partita.integrations.ray import RayExecutor

    ray.shutdown()  # tests of another file may have left one running in this process
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        yield RayExecutor()
    finally:
        ray.shutdown()


def test_a_killed_worker_of_ray_loses_only_what_it_had_not_sent(executor, tmp_path):
    folder = str(tmp_path)

    def f(x, y, count, seed):
        (__import__("pathlib").Path(folder) / str(os.getpid())).touch()
        time.sleep(0.02)
        return mean_here(x, y) + np.random.default_rng(seed).normal(0, 0.3, count)

    def mean_here(x, y):
        return (x - 0.3) ** 2 + (y - 0.8) ** 2

    killer = Killer(5000, lambda: [int(each.name) for each in tmp_path.iterdir()])
    result = pt.minimize(
        f, SPACE, n_evals=50_000, replicates=True, executor=executor, callback=killer
    )
    assert killer.killed is not None
    check(result, 50_000)


def test_scalar_functions_send_sums_every_second(executor):
    told = []

    def f(x, y, seed):
        time.sleep(0.001)
        return (x - 0.3) ** 2 + (y - 0.8) ** 2 + np.random.default_rng(seed).normal(0, 0.1)

    begun = time.monotonic()
    result = pt.minimize(
        f,
        SPACE,
        n_evals=6000,
        replicates=True,
        in_flight=2000,
        executor=executor,
        callback=lambda now: told.append(time.monotonic() - begun),
    )
    check(result, 6000)
    assert len(told) < 1500  # parts of rows, not values
