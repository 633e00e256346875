"""Functions and executors that misbehave: the run goes on, or ends with what it has."""

import os
import pickle
import sys
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from support import objectives

import partita as pt
from partita.errors import EvaluationFailed, StudyError
from partita.optimize.evaluate import Outcome, evaluate_all
from partita.study import Study

PLANE = [(0.0, 1.0), (0.0, 1.0)]


def value(x):
    return float((x[0] - 0.3) ** 2 + (x[1] - 0.5) ** 2)


# -- os.chdir ------------------------------------------------------------------------------------


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Two folders, the process in the first; it is put back after."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    monkeypatch.chdir(here)
    return here, there


def test_a_function_that_changes_the_folder_keeps_its_study(folders, monkeypatch):
    here, there = folders
    monkeypatch.setattr("partita.study.store.LOG_PAGES", 12)  # the log is moved in between

    def f(x):
        os.chdir(there)
        return value(x)

    result = pt.minimize(f, PLANE, n_evals=20, study="tune.db")
    assert result.nfev == 20
    assert not list(there.iterdir())
    assert Study.open(here / "tune.db").n_told == 20


def test_a_study_is_where_it_was_opened(folders):
    here, there = folders
    study = Study.open("tune.db", PLANE)
    study.tell(study.ask(), 1.0)
    os.chdir(there)
    study.close()  # so that it is opened again
    study.tell(study.ask(), 2.0)
    assert study.n_told == 2
    copied = pickle.loads(pickle.dumps(study))
    assert copied.n_told == 2
    study.close()
    copied.close()
    (here / "tune.db").unlink()
    with pytest.raises(StudyError, match=r"there is no study tune\.db"):  # as the user named it
        study.ask()


def test_a_deleted_folder_is_named(folders):
    here, _ = folders
    here.rmdir()
    with pytest.raises(StudyError, match=r"tune\.db: there is no current folder"):
        Study.open("tune.db", PLANE)


# -- sys.exit() ----------------------------------------------------------------------------------


def exits_at_times(x):
    """Ends the program in a tenth of the square, as some libraries do on bad arguments."""
    if x[0] > 0.9:
        sys.exit("bad arguments")
    return value(x)


def exits_after(calls):
    made = []

    def f(x):
        made.append(x)
        if len(made) > calls:
            sys.exit(2)
        return value(x)

    return f


@pytest.mark.parametrize("pool", [None, ThreadPoolExecutor, ProcessPoolExecutor])
def test_sys_exit_is_a_failed_evaluation(pool):
    executor = None if pool is None else pool(2)
    result = pt.minimize(
        exits_at_times, PLANE, n_evals=15, executor=executor, x0=[[0.95, 0.5], [0.96, 0.5]]
    )
    if executor is not None:
        executor.shutdown()
    assert result.nfev == 15
    assert result.nfail >= 2
    assert isinstance(result.errors[0], SystemExit)
    assert "first with SystemExit: bad arguments" in result.message


def test_sys_exit_after_many_values_loses_none():
    result = pt.minimize(exits_after(30), PLANE, n_evals=200, policy="uniform")
    assert (result.nfev, result.status) == (30, 5)
    assert len(result.history) == 30


def test_sys_exit_ends_the_program_if_the_user_wants_that(tmp_path):
    with pytest.raises(SystemExit) as caught:
        pt.minimize(exits_after(5), PLANE, n_evals=9, catch=Exception, study=tmp_path / "tune.db")
    assert caught.value.code == 2
    study = Study.open(tmp_path / "tune.db")
    assert (study.n_told, study.n_pending) == (5, 0)


class Timeout(BaseException):
    """As of libraries that end a function which takes too long."""


def test_errors_of_any_base_can_be_caught_by_name():
    def f(x):
        if x[0] > 0.5:
            raise Timeout("too long")
        return value(x)

    result = pt.minimize(f, PLANE, n_evals=10, x0=[[0.7, 0.7]], catch=(Exception, Timeout))
    assert result.nfail >= 1
    with pytest.raises(Timeout):
        pt.minimize(f, PLANE, n_evals=10, x0=[[0.7, 0.7]])


@pytest.mark.parametrize("pool", [None, ThreadPoolExecutor])
def test_ctrl_c_of_the_function_ends_the_run_with_what_it_has(pool):
    made = []

    def f(x):
        made.append(x)
        if len(made) > 12:
            raise KeyboardInterrupt
        return value(x)

    executor = None if pool is None else pool(1)
    result = pt.minimize(f, PLANE, n_evals=40, executor=executor, catch=BaseException)
    if executor is not None:
        executor.shutdown()
    assert (result.status, result.nfev) == (4, 12)


# -- errors that cannot say what they are ----------------------------------------------------------


class Mute(Exception):
    """Fails whenever it is to be shown."""

    def __str__(self):
        raise RuntimeError("no words")

    __repr__ = __str__


class MuteInPickle(Mute):
    def __reduce__(self):
        raise RuntimeError("no pickle either")


class Numbered(Exception):
    def __str__(self):
        return 7  # noqa: PLE0307


def mute_at_times(x):
    if x[0] > 0.9:
        raise Mute
    return value(x)


def not_even_pickled(x):
    if x[0] > 0.9:
        raise MuteInPickle
    return value(x)


def numbered(x):
    if x[0] > 0.9:
        raise Numbered
    return value(x)


@pytest.mark.parametrize("f", [mute_at_times, not_even_pickled, numbered])
@pytest.mark.parametrize("pool", [None, ThreadPoolExecutor, ProcessPoolExecutor])
def test_an_error_without_words_is_a_failed_evaluation(f, pool, caplog):
    executor = None if pool is None else pool(2)
    result = pt.minimize(f, PLANE, n_evals=12, executor=executor, x0=[[0.95, 0.5]])
    if executor is not None:
        executor.shutdown()
    assert result.nfev == 12
    assert result.nfail >= 1
    assert "its message cannot be read" in result.message
    assert "its message cannot be read" in caplog.text
    assert "12" in repr(result)


def test_if_all_fail_without_words_it_says_so():
    def f(x):
        raise Mute

    with pytest.raises(EvaluationFailed, match=r"first with Mute: .its message cannot be read"):
        pt.minimize(f, PLANE, n_evals=12)


def test_a_constraint_that_fails_without_words():
    def feasible(x):
        raise Mute

    with pytest.raises(pt.PartitaError, match=r"feasible failed at .*its message cannot be read"):
        pt.minimize(value, PLANE, n_evals=12, feasible=feasible)


# -- executors -------------------------------------------------------------------------------------


class Faulty(Executor):
    """Evaluates at once; after some tasks it hands over something else than their outcomes."""

    _max_workers = 2

    def __init__(self, after, instead):
        self.after, self.instead, self.tasks = after, instead, 0

    def submit(self, fn, /, *args, **kwargs):
        self.tasks += 1
        outcomes = fn(*args, **kwargs)
        if self.tasks > self.after:
            outcomes = self.instead(outcomes)
        if callable(outcomes):
            return outcomes()
        future = Future()
        future.set_result(outcomes)
        return future


class Unlike:
    """A future that is none."""

    def __repr__(self):
        raise RuntimeError("no words")


class Twice(Future):
    """Says twice that it has ended."""

    def add_done_callback(self, fn):
        super().add_done_callback(fn)
        super().add_done_callback(fn)


WRONG = {
    "none": lambda outcomes: None,
    "too few": lambda outcomes: outcomes[:-1],
    "nothing": lambda outcomes: [],
    "one for all": lambda outcomes: outcomes[0],
    "bare values": lambda outcomes: [outcome.value for outcome in outcomes],
    "a dict": lambda outcomes: dict(enumerate(outcomes)),
    "of other trials": lambda outcomes: [o._replace(trial=o.trial + 1000) for o in outcomes],
    "of no trial": lambda outcomes: [Outcome(o.value) for o in outcomes],
    "no future": lambda outcomes: lambda: None,
    "no future, no words": lambda outcomes: Unlike,
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("batch", [1, 3])
def test_an_executor_that_returns_something_else_ends_the_run_with_what_it_has(name, batch):
    executor = Faulty(6, WRONG[name])
    result = pt.minimize(value, PLANE, n_evals=60, executor=executor, batch=batch, policy="uniform")
    assert (result.status, result.success) == (6, False)
    assert result.message.startswith("The executor failed: InvalidInput: ")
    assert 6 * batch <= result.nfev < 60
    assert len(result.history) == result.nfev
    for record in result.history:  # each value is of its own point
        assert record.value == value(record.params)
    assert result.optimizer.n_pending == 0


@pytest.mark.parametrize("name", WRONG)
def test_an_executor_that_never_works_is_an_error(name):
    with pytest.raises(EvaluationFailed, match="the executor failed before any evaluation"):
        pt.minimize(value, PLANE, n_evals=9, executor=Faulty(0, WRONG[name]), policy="uniform")


def test_what_a_task_does_return_is_kept(tmp_path):
    executor = Faulty(2, lambda outcomes: [outcomes[2], outcomes[0]])  # in another order, too
    result = pt.minimize(
        value,
        PLANE,
        n_evals=30,
        executor=executor,
        in_flight=1,
        batch=3,
        policy="uniform",
        study=tmp_path / "tune.db",
    )
    assert (result.status, result.nfev) == (6, 8)
    study = Study.open(tmp_path / "tune.db")
    assert (study.n_told, study.n_failed, study.n_pending) == (8, 1, 0)
    for record in study.trials.finished:
        assert record.value == value(record.params)


def test_one_future_for_several_tasks_gives_no_value_to_another_trial():
    kept = []

    def same(outcomes):
        if not kept:
            kept.append(Future())
            kept[0].set_result(outcomes)
        return lambda: kept[0]

    result = pt.minimize(value, PLANE, n_evals=30, executor=Faulty(3, same), policy="uniform")
    assert result.status == 6
    for record in result.history:
        assert record.value == value(record.params)


def test_a_future_that_ends_twice_counts_once():
    def twice(outcomes):
        future = Twice()
        future.set_result(outcomes)
        return lambda: future

    result = pt.minimize(value, PLANE, n_evals=20, executor=Faulty(0, twice), policy="uniform")
    assert (result.status, result.nfev) == (0, 20)


def test_outcomes_know_their_trials():
    outcomes = evaluate_all(
        objectives.bowl, [(4, np.array([0.1, 0.2]), None), (9, np.zeros(2), None)]
    )
    assert [outcome.trial for outcome in outcomes] == [4, 9]
