"""`minimize(f, ..., replicates=True)`: functions that give many values at the same parameters."""

import logging
import threading
import time
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest

import partita as pt
from partita.errors import EvaluationFailed, InvalidInput
from partita.optimize.rows import room_for

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def mean(x, y):
    return (x - 0.3) ** 2 + (y - 0.8) ** 2


def together(x, y, count, seed):
    return mean(x, y) + np.random.default_rng(seed).normal(0, 0.3, count)


def alone(x, y, seed):
    return mean(x, y) + np.random.default_rng(seed).normal(0, 0.3)


def sums(x, y, count, seed):
    values = together(x, y, count, seed)
    return pt.Aggregate(values.mean(), values.std(ddof=1) if count > 1 else None, count)


def run(f=together, n_evals=1200, **settings):
    return pt.minimize(f, SPACE, n_evals=n_evals, replicates=True, **settings)


@pytest.mark.parametrize("f", [together, alone, sums])
def test_evaluations_are_counted_one_by_one(f):
    result = run(f, 1000)
    assert result.success
    assert (result.nfev, result.nfail) == (1000, 0)
    assert result.history.counts.sum() == 1000
    assert result.nit == len(result.history) < 300
    assert result.optimizer.n_values == 1000
    assert (result.optimizer.n_pending, result.optimizer.policy.pending) == (0, 0)
    assert mean(**result.params) < 0.05
    assert result.history.evaluations[-1] == 1000


def test_a_rerun_gives_the_same_values_and_another_seed_others():
    first, again, other = (run(n_evals=600, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.history.values, again.history.values)
    assert first.history.params == again.history.params
    assert first.params == again.params
    assert not np.isin(other.history.values, first.history.values).any()


def test_no_seed_is_given_out_twice():
    given = []

    def f(x, y, seed):
        given.append(seed)
        return alone(x, y, seed)

    result = run(f, 500)
    more = pt.minimize(f, optimizer=result.optimizer, n_evals=300, replicates=True)
    assert more.nfev == 800
    assert len(given) == len(set(given)) == 800


def test_batch_is_the_largest_count_of_a_call_and_in_flight_that_of_a_plan():
    counts, pending = [], []

    def f(x, y, count, seed):
        counts.append(count)
        return together(x, y, count, seed)

    def look(now):
        pending.append(now.optimizer.game.ledger.awaited)

    run(f, 2000, batch=7, in_flight=50, callback=look)
    assert max(counts) == 7
    assert sum(counts) == 2000
    assert 0 < max(pending) <= 50


def test_callbacks_get_means_and_may_stop():
    seen = []

    def callback(now):
        seen.append(now)
        return now.n_evals >= 500

    result = run(callback=callback)
    assert 500 <= result.nfev < 1200
    assert result.message.startswith("The callback ended the run")
    assert sum(now.count for now in seen) == seen[-1].n_evals == result.nfev
    assert any(now.count > 1 and 0.1 < now.std < 0.6 for now in seen)
    assert all(now.std is None for now in seen if now.count == 1)


def test_a_tolerance_and_the_time_end_a_run():
    known = {"norm_bound": 1.0, "noise": pt.Gaussian(0.3), "kernel": pt.Matern(2.5, 1.0)}
    done = pt.minimize(
        together, SPACE, n_evals=10**7, tolerance=0.2, replicates=True, in_flight=5000, **known
    )
    assert done.certificate <= 0.2
    assert done.nfev < 10**7

    def slow(x, y):
        time.sleep(0.002)
        return mean(x, y)

    begun = time.monotonic()
    late = run(slow, 10**6, max_seconds=1.0, in_flight=10**5)
    assert time.monotonic() - begun < 20
    assert "The time is up" in late.message
    assert 0 < late.nfev == late.optimizer.n_values
    assert late.optimizer.n_pending == 0


def test_first_points_are_evaluated_once():
    result = run(x0=[{"x": 0.5, "y": 0.5}, {"x": 0.1, "y": 0.9}], n_evals=200)
    first, second = result.history[:2]
    assert (first.params, first.count) == ({"x": 0.5, "y": 0.5}, 1)
    assert (second.params, second.count) == ({"x": 0.1, "y": 0.9}, 1)
    assert result.nfev == 200


def test_arrays_and_proven_bounds():
    def f(x, count, seed):
        return -((x - 0.4) ** 2).sum() + np.random.default_rng(seed).normal(0, 0.1, count)

    result = pt.maximize(
        f,
        [(0, 1)],
        n_evals=5000,
        replicates=True,
        norm_bound=1.0,
        noise=pt.Gaussian(0.1),
        kernel=pt.Matern(2.5, 0.5),
    )
    assert result.guarantee == "proven"
    assert result.nfev == result.optimizer.policy.told == 5000
    assert abs(result.x[0] - 0.4) < 0.15
    assert result.lower <= 0.0 + 1e-9


# -- executors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("pool", [ThreadPoolExecutor, ProcessPoolExecutor])
@pytest.mark.parametrize("f", [together, alone])
def test_executors_make_exactly_the_evaluations(pool, f):
    with pool(2) as executor:
        result = run(f, 800, executor=executor)
    assert result.success
    assert result.nfev == result.history.counts.sum() == 800
    assert (result.optimizer.n_pending, result.optimizer.policy.pending) == (0, 0)
    assert mean(**result.params) < 0.1


class Lossy:
    """An executor of one thread that loses every third task, and is slow with every seventh."""

    _max_workers = 2

    def __init__(self):
        self._pool, self.tasks, self.given = ThreadPoolExecutor(4), 0, []

    def submit(self, work, *args):
        self.tasks += 1
        self.given.append(args[2])
        if self.tasks % 3 == 0:
            lost = Future()
            lost.set_exception(OSError("the worker died"))
            return lost
        if self.tasks % 7 == 0:
            return self._pool.submit(lambda: time.sleep(0.3) or work(*args))
        return self._pool.submit(work, *args)


def test_lost_tasks_are_repeated_with_the_same_seeds():
    seeds, lock = [], threading.Lock()

    def f(x, y, count, seed):
        with lock:
            seeds.append((seed, count))
        return together(x, y, count, seed)

    executor = Lossy()
    result = run(f, 800, executor=executor)
    assert result.success
    assert result.nfev == result.history.counts.sum() == 800
    assert result.nfail == 0
    assert len({seed for seed, _ in seeds}) == len(seeds)  # a lost task was not evaluated here
    assert sum(count for _, count in seeds) == 800


def test_a_task_that_hangs_is_made_elsewhere(monkeypatch):
    monkeypatch.setattr("partita.optimize.rows.LATE_SECONDS", 0.2)
    monkeypatch.setattr("partita.optimize.rows.LATE", 0.1)
    monkeypatch.setattr("partita.optimize.rows.SECONDS", 0.2)
    free, hung = threading.Event(), []

    def f(x, y, seed):
        if not hung:
            hung.append(seed)
            free.wait(60)
        return alone(x, y, seed)

    with ThreadPoolExecutor(2) as executor:
        try:
            result = run(f, 300, executor=executor, max_seconds=60)
        finally:
            free.set()
    assert result.nfev == 300
    assert "All evaluations were made" in result.message


def test_an_executor_that_answers_something_else_ends_the_run():
    class Wrong(ThreadPoolExecutor):
        def submit(self, *_):
            return super().submit(lambda: "done")

    with Wrong(2) as executor, pytest.raises(EvaluationFailed, match="it returned 'done'"):
        run(executor=executor)


# -- failures --------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [0, 2])
def test_calls_that_fail_are_counted_and_the_run_goes_on(workers, caplog):
    caplog.set_level(logging.ERROR)

    def f(x, y, count, seed):
        if x > 0.7:
            raise RuntimeError("too far")
        return together(x, y, count, seed)

    if workers:
        with ThreadPoolExecutor(workers) as executor:
            result = run(f, 600, executor=executor)
    else:
        result = run(f, 600)
    assert result.nfev == 600
    assert result.nfail > 0
    assert str(result.errors[0]) == "too far"
    assert all(params["x"] > 0.7 for params in result.history.failed_params)
    assert mean(**result.params) < 0.1


@pytest.mark.parametrize(
    ("f", "text"),
    [
        (lambda x, y, count: 0.5, "asked for count="),
        (lambda x, y, count: np.zeros(count + 1), "asked for count="),
        (lambda x, count: np.zeros(count), r"f\(x=..., y=..., count=...\)"),
        (lambda x, y: None, "the value is None"),
        (lambda x, y: "a", "number"),
    ],
)
def test_a_function_that_is_not_what_was_meant_ends_the_run_at_once(f, text):
    with pytest.raises(EvaluationFailed, match=text) as caught:
        run(f)
    assert caught.value.nfail == 1


def test_values_that_are_not_finite_fail_the_call():
    def f(x, y, count, seed):
        values = together(x, y, count, seed)
        values[-1] = np.nan if x > 0.7 else values[-1]
        return values

    result = run(f, 600)
    assert result.nfev == 600
    assert result.nfail > 0
    assert "values[" in str(result.errors[0])


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"replicates": 1}, "replicates=1: give True or False"),
        ({"constraints": ["cost <= 1"]}, "not with constraints"),
        ({"policy": "hoo", "noise": pt.Gaussian(0.1)}, "HOO needs each value by itself"),
        ({"in_flight": 0}, "in_flight=0"),
        ({"batch": 1.5}, "batch=1.5"),
    ],
)
def test_what_does_not_go_together_is_refused_before_anything_is_evaluated(settings, text):
    called = []
    with pytest.raises(InvalidInput, match=text):
        pt.minimize(called.append, SPACE, n_evals=10, **{"replicates": True, **settings})
    assert not called


@pytest.mark.parametrize("name", ["count", "seed"])
def test_parameters_of_these_names_are_refused(name):
    with pytest.raises(InvalidInput, match="Give that parameter another name"):
        pt.minimize(together, {name: (0, 1)}, n_evals=10, replicates=True)


# -- studies ---------------------------------------------------------------------------------------


def test_a_study_keeps_the_run_and_resumes_it(tmp_path):
    path = tmp_path / "tune.db"
    plain = run(seed=3, n_evals=600)
    part = run(seed=3, study=path, n_evals=400)
    assert part.nfev == 400
    whole = run(seed=3, study=path, n_evals=600)
    assert whole.nfev == 600
    assert whole.history.counts.sum() == 600
    kept = run(seed=3, study=tmp_path / "other.db", n_evals=600)
    np.testing.assert_array_equal(kept.history.values, plain.history.values)
    again = run(seed=3, study=path, n_evals=600)
    assert again.nfev == 600
    assert pt.Study.open(path).n_values == 600


class Killed(BaseException):
    """Stands for the end of a process: nothing is told or cancelled after it."""


def test_a_killed_run_leaves_rows_that_the_next_finishes_with_other_seeds(tmp_path, monkeypatch):
    path, given = tmp_path / "tune.db", []

    def f(x, y, seed):
        given.append(seed)
        return alone(x, y, seed)

    study = pt.Study.open(path, SPACE, seed=3)
    with study.running() as view:
        for _ in range(10):
            for row in view.plan(100):
                view.tell(row, values=[alone(**row.params, seed=1)] * row.count)
        rows = view.plan(200)
        told = max(rows, key=lambda row: row.count)
        view.tell(told, values=[0.1])
    before = study.n_values
    study.close()
    monkeypatch.setattr("partita.study.owner.is_dead", lambda name: True)
    result = run(f, before + 200, study=path)
    assert result.nfev == before + 200
    assert len(given) == len(set(given)) == 200
    counts = result.optimizer.trials.counts
    assert [counts[row.number] for row in rows] == [row.count for row in rows]
    assert result.optimizer.n_pending == 0


# -- how much is under way -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("planned", "workers", "room"),
    [
        (1000, 2, 10),
        (100, 2, 8),  # two tasks for each worker, and as many that stand by
        (10**8, 200, 10**6),
        (10**8, 600, 3 * 10**6),
        (10**8, 1000, 5 * 10**6),
        (10**8, 9000, 5 * 10**6),
    ],
)
def test_a_hundredth_is_under_way_and_up_to_a_twentieth_with_many_workers(planned, workers, room):
    assert room_for(planned, workers) == room


class Slow(ThreadPoolExecutor):
    """An executor that keeps what it was given, and ends tasks in turn."""

    def __init__(self, workers):
        super().__init__(1)
        self._max_workers, self.given = workers, []

    def submit(self, work, *args):
        self.given.append(args[2])
        return super().submit(work, *args)


def test_a_short_plan_is_shared_by_all_workers():
    executor = Slow(4)
    result = run(together, 4000, executor=executor, in_flight=400)
    assert result.nfev == 4000
    executor.shutdown()
    # At first a plan has four values. Eight tasks may be sent, and four of them get one value each.
    sizes = [sum(piece.stop - piece.start for piece in task) for task in executor.given]
    assert sizes[:4] == [1, 1, 1, 1]
    assert max(sizes) <= 400 // 4


def test_what_has_come_is_told_before_the_next_plan():
    """In flight is what was not told: sums that are held back would make plans smaller."""
    planned = []

    def noted(now):
        planned.append(now.optimizer.policy.pending)

    with ThreadPoolExecutor(2) as executor:
        result = run(together, 20_000, executor=executor, in_flight=2000, callback=noted)
    rows = np.sort(result.history.counts)[::-1]
    assert result.nfev == 20_000
    assert max(planned) <= 2000
    # Half of the room is free when a plan is made, and a row of what is known well takes it all.
    assert rows[0] >= 800
