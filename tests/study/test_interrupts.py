"""Ctrl-C at any moment of any call: the study goes on, here and for others, and nothing is lost."""

import copy
import math
import random
import sqlite3
import time
from contextlib import closing, suppress

import pytest
from support.interrupts import (
    INTERRUPTED,
    Interrupter,
    Timer,
    cut_short,
    is_free,
    moments_of,
)
from support.studies import PLANE, is_sound, plain, value

import partita as pt
from partita.errors import HalfChanged, InvalidInput, NotPending
from partita.study import Study, replica, store

# What is interrupted may be the end of an object that nobody holds any more: Python says so.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "tune.db"


@pytest.fixture
def _snapshots(monkeypatch):
    """A snapshot after every few events, the log moved often: interrupts come there as well."""
    monkeypatch.setattr(store, "LOG_PAGES", 40)
    monkeypatch.setattr(replica, "SNAPSHOT_AFTER", 0.0)
    monkeypatch.setattr(replica, "SNAPSHOT_BYTES", math.inf)
    monkeypatch.setattr(replica, "SNAPSHOT_EVENTS", 7)


def check_free(study):
    """No process and no thread is locked out."""
    with closing(sqlite3.connect(study.path, timeout=0, isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        db.execute("ROLLBACK")
    assert is_free(study._store.lock)
    state = study._replica._state
    assert state is None or is_free(state.optimizer._turn)


class Diary:
    """What a user did to a study and was told of: the study must know all of it."""

    def __init__(self, study):
        self.study = study
        self.asked, self.told, self.gone = {}, {}, set()
        #: Trials of calls that did not return, which may have happened or not.
        self.open = set()

    def step(self, draw, call):
        """One call, by `call(function, *args)`, which may be interrupted."""
        study, kind = self.study, draw.random()
        pending = [n for n in self.asked if n not in self.told.keys() | self.gone | self.open]
        if kind < 0.45 or not pending:
            if call(self._ask) is INTERRUPTED:
                return
        elif kind < 0.8:
            number = draw.choice(pending)
            y = value(self.asked[number].params)
            if call(study.tell, self.asked[number], y) is INTERRUPTED:
                self.open.add(number)
            else:
                self.told[number] = y
        elif kind < 0.88:
            number = draw.choice(pending)
            if call(study.cancel, number) is INTERRUPTED:
                self.open.add(number)
            else:
                self.gone.add(number)
        elif kind < 0.92:
            call(study.recommend)
        elif kind < 0.96:
            call(lambda: study.trials)
        else:
            call(study.close)

    def _ask(self):
        trial = self.study.ask()
        self.asked[trial.number] = trial

    def settle(self):
        """Tell what an interrupted call may have told: one of the two has happened, not half."""
        for number in sorted(self.open):
            y = value(self.asked[number].params)
            with suppress(NotPending):
                self.study.tell(self.asked[number], y)
            record = self.study.trials[number]
            assert record.state in ("finished", "failed")
            if record.state == "finished":
                assert record.value == y
                self.told[number] = y
            else:
                self.gone.add(number)
        self.open.clear()

    def check(self):
        """All that was acknowledged is there, and memory is what a new reader makes of it."""
        trials = self.study.trials
        for number, trial in self.asked.items():
            assert plain(trials[number].params) == plain(trial.params)
        for number, y in self.told.items():
            assert trials[number].value == y
        for number in self.gone:
            assert trials[number].state == "failed"
        here, there = self.study, Study.open(self.study.path)
        for column in ("units", "values", "codes"):
            ours, theirs = getattr(here.trials, column), getattr(there.trials, column)
            assert ours.tobytes() == theirs.tobytes()
        ours, theirs = (copy.deepcopy(s._replica.current().optimizer) for s in (here, there))
        assert ours.ask().unit.tolist() == theirs.ask().unit.tolist()
        there.close()


def interrupt_often(path, policy, cases, seed):
    """Interrupt calls of a study; how many interrupts there were."""
    draw = random.Random(seed)
    diary = Diary(Study.open(path, PLANE, policy=policy))
    for _ in range(12):
        diary.step(draw, lambda f, *args: f(*args))
    moments, came = moments_of(diary._ask), 0
    for case in range(cases):
        missed = []

        def call(function, *args, missed=missed):
            result = cut_short(draw, moments, function, *args)
            missed.append(result is not INTERRUPTED)
            return result

        diary.step(draw, call)
        came += not missed[0]
        check_free(diary.study)
        if case % 40 == 39:
            diary.settle()
            diary.check()
    diary.settle()
    diary.check()
    assert is_sound(path)
    return came


@pytest.mark.usefixtures("_snapshots")
@pytest.mark.parametrize(("policy", "cases"), [("uniform", 900), (None, 120)])
def test_an_interrupt_at_any_moment_leaves_a_study_that_goes_on(path, policy, cases):
    came = interrupt_often(path, policy, cases, seed=1)
    assert came > cases / 2


def test_every_moment_of_a_tell(path):
    """All of them, one after the other."""
    study = Study.open(path, PLANE, policy="uniform")
    moments = moments_of(lambda: study.tell(study.ask(), 1.0))
    place, came = 1, 0
    while came == place - 1 and place < 4 * moments:
        trial = study.ask()
        if Interrupter(place)(study.tell, trial, 1.0) is INTERRUPTED:
            came += 1
        check_free(study)
        with suppress(NotPending):
            study.tell(trial, 1.0)
        assert study.trials[trial.number].value == 1.0
        place += 1
    assert came > 100
    assert study.n_told == came + 2  # the last one ended before its interrupt


def test_creating_a_study_is_all_or_nothing(tmp_path):
    def begin(name):
        return Study.open(tmp_path / name, PLANE, policy="uniform")

    moments, came = moments_of(begin, "first.db"), 0
    for place in range(1, moments, max(1, moments // 40)):
        name = f"{place}.db"
        came += Interrupter(place)(begin, name) is INTERRUPTED
        study = begin(name)
        check_free(study)
        study.tell(study.ask(), 1.0)
        assert Study.open(tmp_path / name).n_told == 1
    assert came > 25


def test_real_signals(path):
    """By a timer, in bursts as well: the second comes while the first is being dealt with."""
    draw = random.Random(5)
    diary = Diary(Study.open(path, PLANE, policy="uniform"))
    for _ in range(10):
        diary.step(draw, lambda f, *args: f(*args))
    start = time.perf_counter()
    for _ in range(20):
        diary.step(draw, lambda f, *args: f(*args))
    typical, came, burst = (time.perf_counter() - start) / 20, 0, False

    def call(function, *args):
        nonlocal came, burst
        burst = draw.random() < 0.3
        seconds = 3e-5 if burst else max(1e-6, draw.random() * typical)
        result = timer(3 if burst else 1, seconds, function, *args)
        came += result is INTERRUPTED
        return result

    with Timer() as timer:
        for case in range(400):
            diary.step(draw, call)
            if burst:  # the next use mends what several in a row may leave
                assert diary.study.n_told >= 0
            check_free(diary.study)
            if case % 100 == 99:
                diary.settle()
                diary.check()
    assert came > 100


def test_ctrl_c_is_heard_while_another_process_has_the_lock(path):
    study = Study.open(path, PLANE, policy="uniform", timeout=60)
    trial = study.ask()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        start = time.perf_counter()
        with Timer() as timer:
            assert timer(1, 0.05, study.tell, trial, 1.0) is INTERRUPTED
        assert time.perf_counter() - start < 5
        other.execute("ROLLBACK")
    study.tell(trial, 1.0)
    assert study.n_told == 1


def test_a_transaction_left_open_is_rolled_back_by_the_next_call(path):
    """What several interrupts in a row might leave."""
    study = Study.open(path, PLANE, policy="uniform")
    trial = study.ask()
    db = study._store._opened()
    db.execute("BEGIN IMMEDIATE")
    db.execute("DELETE FROM events")
    with pytest.raises(sqlite3.OperationalError, match="locked"):  # the control
        check_free(study)
    assert study.n_pending == 1
    check_free(study)
    study.tell(trial, 1.0)
    assert Study.open(path).n_told == 1


@pytest.mark.parametrize("verb", ["ask", "n_told", "recommend"])
def test_feasible_must_not_use_its_study(path, verb):
    armed = []

    def feasible(x):
        if armed:
            armed.pop()
            used = getattr(study, verb)
            if callable(used):
                used()
        return x[0] + x[1] < 2.5

    study = Study.open(path, PLANE, feasible=feasible)
    for _ in range(10):
        study.tell(study.ask(), 1.0)
    armed.append(True)
    with pytest.raises(InvalidInput, match="must not use it") as caught:
        study.ask()
    assert isinstance(caught.value.__cause__, HalfChanged)
    assert not armed
    study.tell(study.ask(), 1.0)
    assert (study.n_told, study.n_pending) == (11, 0)


def test_a_run_that_is_interrupted_again_and_again_keeps_every_value(path):
    """Of `minimize`: the values that the function returned before, and those of the file, agree."""
    draw, seen = random.Random(3), []

    def f(x):
        seen.append(value(x))
        return seen[-1]

    def run(n):
        return pt.minimize(f, PLANE, n_evals=n, study=path, policy="uniform")

    moments = moments_of(run, 5)
    for n in range(6, 40):
        cut_short(draw, moments // 4, run, n)
    result = run(60)
    assert result.nfev == 60
    told = Study.open(path).trials.finished.values.tolist()
    assert set(told) <= set(seen)
    assert len(told) == len(set(told)) == 60
    assert Study.open(path).n_pending == 0
