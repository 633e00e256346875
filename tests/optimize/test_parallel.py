"""Several evaluations at once: threads, processes, and a real Dask cluster."""

from __future__ import annotations

import importlib
import threading
import time
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from concurrent.futures import ThreadPoolExecutor as Threads
from pathlib import Path

import numpy as np
import pytest
from support import objectives

import partita as pt
from partita.errors import EvaluationFailed, InvalidInput
from partita.front import maximize, minimize

SQUARE = [(0, 1), (0, 1)]


class Simulated(Executor):
    """Evaluates at once, but lets evaluations end one by one, in an order of its own."""

    def __init__(self, order, workers=None):
        self._order = order
        self._waiting = []
        self.most = 0
        self.submitted = 0
        if workers is not None:
            self._max_workers = workers

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        self.submitted += 1
        self._waiting.append((future, fn, args, kwargs))
        self.most = max(self.most, len(self._waiting))
        threading.Timer(0.001, self._end_one).start()
        return future

    def _end_one(self):
        number = self._order(len(self._waiting))
        future, fn, args, kwargs = self._waiting.pop(number)
        if future.set_running_or_notify_cancel():
            future.set_result(fn(*args, **kwargs))


# -- threads ---------------------------------------------------------------------------------------


def test_threads_find_the_optimum_with_exactly_n_evals():
    with Threads(4) as executor:
        result = minimize(objectives.bowl, SQUARE, n_evals=150, executor=executor)
    assert result.nfev == len(result.history) == 150
    assert result.nfail == 0
    assert result.success
    assert np.abs(result.x - [0.3, 0.7]).max() < 0.15
    assert result.optimizer.n_pending == 0
    assert result.optimizer.n_failed == 0


def test_as_many_are_in_flight_as_asked_for_and_never_more():
    running, most = 0, 0
    lock = threading.Lock()

    def f(x):
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.05)  # longer than a choice takes on a busy machine
        with lock:
            running -= 1
        return float(x[0])

    with Threads(8) as executor:
        maximize(f, [(0, 1)], n_evals=40, executor=executor, in_flight=3)
        assert most == 3
        most = 0
        maximize(f, [(0, 1)], n_evals=60, executor=executor)
        assert 5 < most <= 8  # as many as it has workers


def test_a_slow_evaluation_holds_up_nobody():
    first = threading.Event()
    let_go = threading.Event()
    ended = []

    def f(x):
        if not first.is_set():
            first.set()
            let_go.wait(20)
            ended.append("slow")
        elif len(ended) == 60:
            let_go.set()
        ended.append("quick")
        return float(x[0])

    with Threads(2) as executor:
        result = maximize(f, [(0, 1)], n_evals=80, executor=executor)
    assert ended.index("slow") >= 60
    assert result.nfev == 80


def test_the_policy_knows_what_is_pending():
    pending = []
    result = maximize(
        objectives.Shifted(0.4),
        [(0, 1)],
        n_evals=60,
        executor=Simulated(lambda n: n - 1, workers=6),
        callback=lambda now: pending.append(now.optimizer.policy.pending),
    )
    assert result.nfev == 60
    assert max(pending) == 5  # those under way but the one just told
    assert pending[-1] == 0


def test_values_that_came_together_with_the_last_are_not_lost():
    class Together(Executor):
        """Ends all tasks at once, when there are five."""

        _max_workers = 5

        def __init__(self):
            self._tasks = []

        def submit(self, fn, /, *args):
            future = Future()
            self._tasks.append((future, fn, args))
            if len(self._tasks) == 5:
                threading.Timer(0.05, self._end).start()
            return future

        def _end(self):
            for future, fn, args in self._tasks:
                future.set_result(fn(*args))

    result = maximize(
        objectives.Shifted(0.4), [(0, 1)], executor=Together(), callback=lambda now: True
    )
    assert (result.status, result.nfev) == (3, 5)


@pytest.mark.parametrize("seed", range(3))
def test_values_may_come_in_any_order(seed):
    random = np.random.default_rng(seed)
    executor = Simulated(lambda n: int(random.integers(n)))
    f = objectives.Shifted(0.25)
    result = minimize(f, SQUARE, n_evals=100, executor=executor, in_flight=8, seed=seed)
    told = result.history
    assert len(told) == 100
    for point, value in zip(told.params, told.values, strict=True):
        assert value == pytest.approx(f(point))  # each value at its own point
    assert result.fun < 0.1


def test_a_batch_is_one_task_and_n_evals_stays_exact():
    executor = Simulated(lambda n: 0)
    result = maximize(
        objectives.Shifted(0.5), [(0, 1)], n_evals=50, executor=executor, in_flight=2, batch=8
    )
    assert result.nfev == 50
    assert executor.submitted == 7  # six of 8 and one of 2


def test_failures_are_counted_and_one_does_not_lose_its_batch():
    calls = []

    def f(x):
        calls.append(1)
        if len(calls) % 5 == 0:
            raise OSError("disk")
        return float(x[0])

    with Threads(2) as executor:
        result = maximize(f, [(0, 1)], n_evals=40, executor=executor, batch=4)
    assert result.nfev == 40
    assert result.nfail == pytest.approx(10, abs=3)
    assert isinstance(result.errors[0], OSError)
    assert "OSError: disk" in result.message


class Careless(Threads):
    """Evaluates, and then loses the outcomes of some tasks: their futures get an error instead."""

    def __init__(self, error, loses):
        super().__init__(1)
        self._error, self._loses = error, loses
        self.submitted = 0

    def submit(self, fn, /, *args, **kwargs):
        self.submitted += 1
        if self._loses(self.submitted):
            return super().submit(self._lose, fn, *args)
        return super().submit(fn, *args, **kwargs)

    def _lose(self, fn, /, *args):
        fn(*args)
        raise self._error


class GaveUp(Exception):
    """What an executor says of a task that it tried often enough."""


@pytest.mark.parametrize("batch", [1, 3])
def test_outcomes_lost_on_the_way_are_evaluated_again(batch):
    # What Dask does when the worker that has a result dies while it is fetched.
    lost = ValueError("not enough values to unpack (expected 3, got 1)")
    with Careless(lost, lambda number: number % 5 == 0) as executor:
        result = maximize(
            lambda x: float(x[0]), [(0, 1)], n_evals=30, executor=executor, in_flight=3, batch=batch
        )
    assert result.nfev == 30
    assert result.nfail == 0
    assert executor.submitted > 30 / batch
    assert result.optimizer.n_pending == 0


@pytest.mark.parametrize(
    ("error", "failures"), [(ValueError("not enough values"), 2), (GaveUp("gave up"), 4)]
)
def test_outcomes_lost_twice_or_given_up_are_failures(error, failures):
    with Careless(error, lambda number: 4 <= number <= 7) as executor:
        result = maximize(
            lambda x: float(x[0]), [(0, 1)], n_evals=10, executor=executor, in_flight=1
        )
    assert (result.nfev, result.nfail) == (10, failures)
    assert executor.submitted == 14
    assert str(error) in result.message


def test_the_time_is_kept_even_if_all_workers_are_busy():
    executor = Threads(2)
    quit_it = threading.Event()

    def f(x):
        if len(done) >= 6:
            quit_it.wait(20)
        done.append(1)
        return float(x[0])

    done = []
    start = time.monotonic()
    result = maximize(f, [(0, 1)], max_seconds=1.0, executor=executor)
    taken = time.monotonic() - start
    quit_it.set()
    executor.shutdown()
    assert 0.9 < taken < 5.0
    assert result.status == 1
    assert result.nfev == 6
    assert "2 evaluations still under way were dropped" in result.message
    assert result.optimizer.n_pending == 0


def test_an_error_that_is_not_to_be_caught_ends_the_run():
    with Threads(2) as executor, pytest.raises(ZeroDivisionError):
        maximize(lambda x: 1 / 0, [(0, 1)], n_evals=5, executor=executor, catch=OSError)


def test_an_executor_that_is_shut_down():
    executor = Threads(2)
    executor.shutdown()
    with pytest.raises(
        EvaluationFailed, match=r"shutdown.*was shut down: give one that is running"
    ):
        maximize(objectives.bowl, SQUARE, n_evals=5, executor=executor)
    executor = Threads(2)

    def f(x):
        calls.append(1)
        if len(calls) == 20:
            threading.Thread(target=executor.shutdown).start()
            time.sleep(0.1)
        return float(x[0])

    calls = []
    result = maximize(f, [(0, 1)], n_evals=500, executor=executor)
    assert not result.success
    assert result.status == 6
    assert 18 <= result.nfev < 500


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"executor": 4}, "concurrent.futures.Executor"),
        ({"in_flight": 4}, "need an executor"),
        ({"batch": 4}, "need an executor"),
        ({"executor": Threads(1), "in_flight": 0}, "in_flight=0"),
        ({"executor": Threads(1), "batch": 1.5}, "batch=1.5"),
    ],
)
def test_bad_settings(given, words):
    with pytest.raises(InvalidInput, match=words):
        maximize(objectives.bowl, SQUARE, n_evals=5, **given)


def test_the_benchmark_keeps_so_many_in_flight(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
    benchmark = importlib.import_module("parallel")
    problem = importlib.import_module("versus.problems").build("branin", "tenth", 0)
    pending = []
    asked = pt.CalibratedUCB.ask
    monkeypatch.setattr(
        pt.CalibratedUCB, "ask", lambda self: pending.append(self.pending) or asked(self)
    )
    outcome = benchmark.play(problem, seed=0, steps=30, in_flight=8)
    assert pending == [*range(8), *[7] * 29]
    assert 0 < outcome.regret < 1.5


# -- processes -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def processes():
    with ProcessPoolExecutor(2) as executor:
        yield executor


def test_processes(processes):
    result = minimize(objectives.bowl, SQUARE, n_evals=60, executor=processes, batch=3)
    assert result.nfev == 60
    assert np.abs(result.x - [0.3, 0.7]).max() < 0.2
    assert len(np.unique(result.history.values)) == 60


def test_processes_are_given_keywords_and_objects_with_data(processes):
    space = {"rate": (0, 1), "depth": (0, 5)}
    result = minimize(objectives.named, space, n_evals=40, executor=processes)
    assert result.fun == pytest.approx(0, abs=0.05)
    result = minimize(objectives.Shifted(0.6), SQUARE, n_evals=30, executor=processes)
    assert result.nfev == 30


def test_work_is_done_by_several_processes(processes):
    result = minimize(objectives.worker_of, SQUARE, n_evals=30, executor=processes)
    assert len(set(result.history.values)) == 2


def test_a_function_that_cannot_be_pickled_is_a_clear_error(processes):
    with pytest.raises(EvaluationFailed, match="top level of a module"):
        minimize(lambda x: x[0], [(0, 1)], n_evals=5, executor=processes)


def test_an_error_that_cannot_be_rebuilt_does_not_break_the_pool(processes):
    result = maximize(objectives.awkward_half, [(0, 1)], n_evals=30, executor=processes)
    assert result.nfev == 30
    assert result.nfail > 0
    assert "Awkward: awkward" in str(result.errors[0])
    assert "objectives.py" in "".join(result.errors[0].__notes__)  # where in the worker


def test_a_pool_that_breaks_ends_the_run_with_what_there_is():
    with ProcessPoolExecutor(2) as executor:
        result = maximize(objectives.dies_late, SQUARE, n_evals=300, executor=executor)
    assert not result.success
    assert result.status == 6
    assert 0 < result.nfev < 300
    assert any(isinstance(error, BrokenExecutor) for error in result.errors)
    assert result.optimizer.n_pending == 0


# -- Dask ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as connected,
    ):
        yield connected


def test_dask(client):
    executor = client.get_executor(pure=False)
    result = minimize(objectives.bowl, SQUARE, n_evals=60, executor=executor, in_flight=4)
    assert result.nfev == 60
    assert result.nfail == 0
    assert np.abs(result.x - [0.3, 0.7]).max() < 0.2


def test_dask_has_all_its_threads_at_work_in_processes_of_their_own(client):
    executor = client.get_executor(pure=False)
    result = minimize(objectives.worker_of, SQUARE, n_evals=40, executor=executor)
    assert len(set(result.history.values)) == 2


def test_dask_evaluates_the_same_point_afresh_even_if_told_that_functions_are_pure(client):
    executor = client.get_executor(pure=True)
    space = {"x": ["only", "two"]}
    result = minimize(
        _noise_of_choice, space, n_evals=20, executor=executor, batch=2, policy="uniform"
    )
    assert len(set(result.history.values)) == 20


def _noise_of_choice(x):
    return objectives.nothing_but_noise(x)


def test_dask_drops_what_is_under_way_when_the_time_is_up(client):
    executor = client.get_executor(pure=False)
    start = time.monotonic()
    result = maximize(objectives.sleeps, [(0, 5)], max_seconds=1.5, executor=executor)
    assert time.monotonic() - start < 4
    assert result.status == 1
    assert result.nfev > 0


def test_a_client_in_place_of_its_executor(client):
    with pytest.raises(InvalidInput, match=r"get_executor\(pure=False\)"):
        minimize(objectives.bowl, SQUARE, n_evals=5, executor=client)
