"""Ray Tune and Ray tasks on a real local cluster: failures, an interrupted run, dying workers."""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ray.tune")

import ray
from ray import tune
from ray.tune.search import ConcurrencyLimiter

from partita import maximize, minimize
from partita.integrations.ray import PartitaSearch, RayExecutor

EXAMPLE = Path(__file__).parents[2] / "examples" / "ray_tasks.py"
PAGE = Path(__file__).parents[2] / "docs" / "clusters.md"
PARAM_SPACE = {"lr": tune.loguniform(1e-4, 1e-1), "net": {"depth": tune.randint(1, 9)}, "c": 7}


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """A local Ray of two processors; its address."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        context = ray.init(
            num_cpus=2,
            resources={"slot": 1},
            include_dashboard=False,
            log_to_driver=False,
            logging_level="error",
            object_store_memory=100_000_000,
        )
        yield context.address_info["gcs_address"]
        ray.shutdown()


def tuner_for(trainable, search, path, n, **config):
    return tune.Tuner(
        trainable,
        param_space=PARAM_SPACE,
        tune_config=tune.TuneConfig(
            search_alg=search, metric="loss", mode="min", num_samples=n, reuse_actors=True, **config
        ),
        run_config=tune.RunConfig(storage_path=str(path), name="run", verbose=0),
    )


def assert_same_trials(search, results):
    """The searcher knows exactly the values that Tune does, each where it was measured."""
    told = search.optimizer.trials.finished
    ours = [(p["lr"], p["net/depth"], v) for p, v in zip(told.params, told.values, strict=True)]
    theirs = [
        (r.config["lr"], r.config["net"]["depth"], r.metrics["loss"])
        for r in results
        if r.error is None and "loss" in r.metrics
    ]
    assert len(ours) == len(theirs)
    np.testing.assert_allclose(sorted(ours), sorted(theirs), rtol=1e-9)


# -- Ray Tune --------------------------------------------------------------------------------------


def test_a_run_with_failures_behind_a_limiter(tmp_path):
    def trainable(config):
        if config["net"]["depth"] == 8:
            raise ValueError("too deep")
        distance = (np.log10(config["lr"]) + 2) ** 2 + (config["net"]["depth"] - 3) ** 2
        return {"loss": distance + config["c"]}

    search = PartitaSearch(
        seed=1, points_to_evaluate=[{"lr": 0.001, "net": {"depth": d}} for d in (8, 5)]
    )
    limited = ConcurrencyLimiter(search, max_concurrent=2)
    results = tuner_for(trainable, limited, tmp_path, 25).fit()
    assert len(results) == 25
    assert 1 <= results.num_errors <= 8
    assert search.optimizer.n_told == 25 - results.num_errors
    assert_same_trials(search, results)
    best = search.recommend()
    assert best.params["net"]["depth"] == 3
    assert best.mean == pytest.approx(7.0, abs=0.5)


DRIVER = """
    import sys, time
    import ray
    from ray import tune
    from partita.integrations.ray import PartitaSearch

    def trainable(config):
        time.sleep(0.05)
        return {"loss": (config["lr"] - 0.01) ** 2 + abs(config["net"]["depth"] - 3)}

    class Watch(tune.Callback):
        ended = 0
        def on_trial_complete(self, iteration, trials, trial, **info):
            self.ended += 1
            print(self.ended, flush=True)

    ray.init(address=sys.argv[1], log_to_driver=False, logging_level="error")
    tune.Tuner(
        trainable,
        param_space={"lr": tune.loguniform(1e-4, 1e-1),
                     "net": {"depth": tune.randint(1, 9)}, "c": 7},
        tune_config=tune.TuneConfig(search_alg=PartitaSearch(seed=4), metric="loss", mode="min",
                                    num_samples=30, max_concurrent_trials=2, reuse_actors=True),
        run_config=tune.RunConfig(storage_path=sys.argv[2], name="run", verbose=0,
                                  callbacks=[Watch()]),
    ).fit()
"""


def interrupted_run(cluster, folder, blow):
    """The folder of a run of 30 trials whose driver got a signal after ten."""
    folder.mkdir()
    script = folder / "driver.py"
    script.write_text(textwrap.dedent(DRIVER), encoding="utf-8")
    # State is saved after every event, so that there is one to go on from.
    environment = {**os.environ, "TUNE_GLOBAL_CHECKPOINT_S": "0"}
    driver = subprocess.Popen(
        [sys.executable, script, cluster, folder],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    ended = 0
    for line in driver.stdout:
        ended = int(line) if line.strip().isdigit() else ended
        if ended == 10:
            driver.send_signal(blow)
            break
    driver.stdout.close()
    driver.wait(timeout=60)
    assert ended == 10
    return folder / "run"


def is_whole(run):
    """Whether Tune's copies of its state can be read.

    It writes them in place. Killed meanwhile, it cannot restore the run, but starts another, of a
    single trial, whatever the searcher.
    """
    try:
        for file in run.glob("experiment_state-*.json"):
            json.loads(file.read_bytes())
        for file in run.glob("*.pkl"):
            pickle.loads(file.read_bytes())
    except (ValueError, EOFError, pickle.UnpicklingError):
        return False
    return True


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_run_is_restored_and_continued(cluster, tmp_path, blow):
    runs = (interrupted_run(cluster, tmp_path / str(n), blow) for n in range(3))
    run = next(filter(is_whole, runs))
    before = PartitaSearch()
    before.restore_from_dir(str(run))
    known = before.optimizer.n_told
    assert 5 <= known < 30

    def trainable(config):
        return {"loss": (config["lr"] - 0.01) ** 2 + abs(config["net"]["depth"] - 3)}

    results = tune.Tuner.restore(str(run), trainable=trainable, param_space=PARAM_SPACE).fit()
    after = PartitaSearch()
    after.restore_from_dir(str(run))
    assert len(results) == 30
    assert after.optimizer.n_told > known
    assert_same_trials(after, results)
    assert after.optimizer.n_told == 30
    assert after.optimizer.n_pending == 0


def test_failed_trials_that_a_restored_run_makes_again_are_learned(tmp_path):
    mended = tmp_path / "mended"

    def trainable(config):
        if config["net"]["depth"] > 5 and not mended.exists():
            raise ValueError("too deep")
        return {"loss": abs(config["net"]["depth"] - 3) + config["lr"]}

    first = [{"lr": 0.001, "net": {"depth": d}} for d in (8, 3)]
    search = PartitaSearch(points_to_evaluate=first)
    results = tuner_for(trainable, search, tmp_path, 8, max_concurrent_trials=2).fit()
    assert search.optimizer.n_told == 8 - results.num_errors < 8
    mended.touch()
    restored = tune.Tuner.restore(
        str(tmp_path / "run"), trainable=trainable, param_space=PARAM_SPACE, restart_errored=True
    )
    results = restored.fit()
    after = PartitaSearch()
    after.restore_from_dir(str(tmp_path / "run"))
    assert results.num_errors == 0
    assert after.optimizer.n_told == 8
    assert_same_trials(after, results)


# -- Ray tasks behind our own loop -----------------------------------------------------------------


def test_tasks_find_the_optimum():
    def f(x):
        return float(((x - 0.3) ** 2).sum())

    with RayExecutor() as executor:
        result = minimize(f, [(0, 1), (0, 1)], n_evals=80, executor=executor)
    assert result.nfev == 80
    assert result.nfail == 0
    assert np.abs(result.x - 0.3).max() < 0.1
    assert result.optimizer.n_pending == 0


def test_several_are_under_way_by_default_and_values_come_from_workers():
    def f(x):
        time.sleep(0.05)
        return os.getpid()

    executor = RayExecutor()
    most = []
    result = maximize(
        f,
        [(0, 1)],
        n_evals=20,
        executor=executor,
        callback=lambda now: most.append(now.optimizer.policy.pending),
    )
    assert max(most) == 1  # two processors, one has just ended
    assert os.getpid() not in set(result.history.values)
    assert RayExecutor(num_cpus=0.5)._max_workers == 4
    assert RayExecutor(num_cpus=0)._max_workers == 2
    assert RayExecutor(num_cpus=0.1, resources={"slot": 0.25})._max_workers == 4
    assert RayExecutor(num_gpus=1)._max_workers == 1  # there is none: it waits, as Ray does


def test_evaluations_that_end_their_worker_are_counted_and_the_run_goes_on():
    def f(x):
        if x[0] > 0.7:
            os._exit(1)
        return float(x[0])

    executor = RayExecutor(max_retries=0)
    result = maximize(f, [(0, 1)], n_evals=8, executor=executor, in_flight=2, seed=1)
    assert result.nfev == 8
    assert result.nfail > 0
    assert {type(error).__name__ for error in result.errors} == {"WorkerCrashedError"}
    assert max(result.history.values) <= 0.7


def test_a_worker_that_dies_once_loses_nothing(tmp_path):
    mark = tmp_path / "died"

    def f(x):
        if not mark.exists():
            mark.touch()
            os._exit(1)
        return float(x[0])

    result = maximize(f, [(0, 1)], n_evals=12, executor=RayExecutor(), in_flight=2)
    assert mark.exists()
    assert result.nfev == 12
    assert result.nfail == 0


class Heavy:
    """A function with data, that counts how often it is sent."""

    sent = 0

    def __call__(self, x):
        return float(x[0])

    def __getstate__(self):
        Heavy.sent += 1
        return {"data": np.zeros(1000)}


def test_the_function_is_sent_once():
    Heavy.sent = 0
    maximize(Heavy(), [(0, 1)], n_evals=20, executor=RayExecutor(), in_flight=2)
    assert Heavy.sent == 1


def test_it_keeps_the_rules_of_executors():
    def slow(seconds):
        time.sleep(seconds)
        return seconds

    with RayExecutor() as executor:
        assert list(executor.map(divmod, [7, 9], [2, 4])) == [(3, 1), (2, 1)]
        assert executor.submit(dict, a=1).result() == {"a": 1}
        with pytest.raises(ZeroDivisionError):
            executor.submit(divmod, 1, 0).result()
        first = executor.submit(slow, 0.3)
    assert first.done()  # leaving waits
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(slow, 0)


def test_cancelled_tasks_leave_their_processors(tmp_path):
    def asleep(number):
        (tmp_path / f"begun {number}").touch()
        time.sleep(600)  # sees no interrupt

    def awake(number):
        (tmp_path / f"begun {number}").touch()
        try:
            while True:
                time.sleep(0.01)
        except KeyboardInterrupt:
            (tmp_path / "interrupted").touch()
            raise

    executor = RayExecutor()
    futures = [executor.submit(fn, number) for number, fn in enumerate([asleep, awake, asleep])]
    until(lambda: len(list(tmp_path.glob("begun *"))) == 2)
    executor.shutdown(wait=True, cancel_futures=True)
    assert all(future.cancelled() for future in futures)
    assert (tmp_path / "interrupted").exists()
    assert not (tmp_path / "begun 2").exists()
    with RayExecutor() as executor:  # both at once
        assert list(executor.map(divmod, [7, 9], [2, 4], timeout=60)) == [(3, 1), (2, 1)]


def test_a_run_that_ends_leaves_no_evaluation_behind(tmp_path):
    stuck = tmp_path / "stuck"

    def f(x):
        try:
            stuck.touch(exist_ok=False)
            time.sleep(600)
        except FileExistsError:
            pass
        return float(x[0])

    ended = maximize(
        f, [(0, 1)], n_evals=1000, executor=RayExecutor(), in_flight=2, callback=lambda now: True
    )
    assert ended.nfev == 1
    with RayExecutor() as executor:
        assert list(executor.map(divmod, [7, 9], [2, 4], timeout=60)) == [(3, 1), (2, 1)]


def until(condition, seconds=60):
    """Wait for something that must happen soon."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def test_the_example(cluster):
    done = subprocess.run(
        [sys.executable, EXAMPLE, "--evals", "1500", "--address", cluster],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"nfev: 1,500\n", done.stdout)
    plain, tuned = re.findall(r"costs (\d+) a day", done.stdout)
    assert int(tuned) < 0.85 * int(plain)


def test_the_code_of_the_docs_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 6
    names, made = {"__name__": "__main__"}, []
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
        if "\nresult = " in block:
            made.append(names["result"].nfev)
    assert made[-2:] == [300, 1_000_000]  # by tasks, and by rows of replicates
    assert names["best"].params["road"].keys() == {"gap"}
    assert names["known"] == len(names["results"]) == 20
