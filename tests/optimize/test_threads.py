"""Threads that share an optimizer, a policy or a study: one at a time, and nothing is lost."""

import copy
import os
import pickle
import random
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from support.interrupts import Interrupter
from threadpoolctl import threadpool_info

import partita as pt
from partita import _locks
from partita._locks import acquire_all, in_turn, new_lock
from partita._threads import one_thread
from partita.errors import HalfChanged

PLANE = [(0.0, 1.0), (-2.0, 3.0)]
KNOWN = {"kernel": pt.Matern(1.5, 0.3), "norm_bound": 50.0, "noise": pt.Gaussian(0.1)}
THREADS = 4


@pytest.fixture(autouse=True)
def _many_switches():
    """Threads take turns a thousand times as often as usual."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(5e-6)
    yield
    sys.setswitchinterval(usual)


def at_once(work, threads=THREADS):
    """What each thread's `work(number)` returns; an error of one is raised."""
    gate = threading.Barrier(threads)

    def begun(number):
        gate.wait()
        return work(number)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(begun, range(threads)))


def value(x):
    return float((x[0] - 0.3) ** 2 + 0.1 * (x[1] - 1) ** 2)


def play(player, number, steps):
    """What one thread did, by the numbers of its trials: the value told, None if cancelled."""
    draw, done, kept = random.Random(number), {}, []
    for step in range(steps):
        kind = draw.random()
        if kind < 0.1:
            done[player.add([draw.random(), draw.random()], 0.01 * step)] = 0.01 * step
        elif kind < 0.2:
            kept.append(player.expect([draw.random(), draw.random()]))
        else:
            kept.append(player.ask())
        if kind < 0.3:
            player.recommend()
        elif kind < 0.4:
            assert len(player.predict([[0.5, 0.5]])[0]) == 1
        elif kind < 0.5:
            player.certificate()
        while len(kept) > draw.randrange(4):
            trial = kept.pop(draw.randrange(len(kept)))
            assert trial.number not in done
            done[trial.number] = None if draw.random() < 0.1 else value(trial.unit)
            if done[trial.number] is None:
                player.cancel(trial)
            else:
                player.tell(trial, done[trial.number])
    for trial in kept:
        done[trial.number] = value(trial.unit)
        player.tell(trial.number, done[trial.number])
    return done


def check_nothing_lost(player, threads):
    """The record has what all threads did, each trial once."""
    done = {}
    for own in threads:
        assert not own.keys() & done.keys()
        done |= own
    trials = player.trials
    assert trials.numbers.tolist() == sorted(done)
    assert {r.number: r.value for r in trials} == done
    failed = sum(told is None for told in done.values())
    assert (player.n_told, player.n_failed, player.n_pending) == (len(done) - failed, failed, 0)


@pytest.mark.parametrize(("policy", "steps"), [(None, 40), ("pi-gp-ucb", 60), ("pi-gp-ts", 60)])
def test_threads_share_an_optimizer(policy, steps):
    known = {} if policy is None else KNOWN
    optimizer = pt.Optimizer(PLANE, policy=policy, **known)
    check_nothing_lost(optimizer, at_once(lambda k: play(optimizer, k, steps)))
    assert optimizer.policy.told == optimizer.n_told
    assert optimizer.policy.pending == 0


def test_threads_share_a_study(tmp_path):
    study = pt.Study.open(tmp_path / "tune.db", PLANE)
    check_nothing_lost(study, at_once(lambda k: play(study, k, 20)))
    assert pt.Study.open(tmp_path / "tune.db").trials.values.tolist() == pytest.approx(
        study.trials.values.tolist(), nan_ok=True, abs=0
    )


def test_threads_with_optimizers_of_their_own_disturb_nobody():
    """Same seed, same tells, same asks, whatever other threads do."""

    def asked(_):
        optimizer, points = pt.Optimizer(PLANE, seed=3), []
        for _ in range(25):
            trial = optimizer.ask()
            optimizer.tell(trial, value(trial.unit))
            points.append(trial.unit.tolist())
        return points

    alone = asked(0)
    assert all(points == alone for points in at_once(asked))


# -- policies --------------------------------------------------------------------------------------


class Watched(pt.Policy):
    """A policy of a user's own that notes how many threads are in it at once, at most."""

    inside = most = 0

    def _visit(self):
        self.inside += 1
        self.most = max(self.most, self.inside)
        time.sleep(1e-4)
        self.inside -= 1

    def _propose(self):
        self._visit()
        return 0, np.array([self._step() / 1e6])

    def _locate(self, points):
        self._visit()
        return np.zeros(len(points), dtype=np.int64)

    def _record(self, site, value, asked, std=None):
        self._visit()

    def _record_many(self, sites, values, stds=None):
        self._visit()

    def _released(self, site):
        self._visit()

    def recommend(self):
        self._visit()
        return pt.Recommendation(np.zeros(1), 0.0, 0.0, 0.0)

    def tell(self, x, y, *, std=None):  # calls that of the base, from within its own
        self._visit()
        super().tell(x, y, std=std)

    def certificate(self):
        self._visit()
        return self.recommend().mean

    @property
    def settings(self):
        self._visit()
        return {}


def use(policy):
    for _ in range(5):
        x = policy.ask()
        policy.tell(x, 1.0)
        policy.cancel(policy.ask())
        policy.tell([[0.5], [0.6]], [1.0, 2.0])
        policy.recommend()
        policy.certificate()
        assert policy.settings == {}


@pytest.mark.parametrize(
    "made", [lambda p: p, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))]
)
def test_one_thread_at_a_time_is_in_a_policy(made):
    policy = made(Watched(pt.Box([0.0], [1.0])))
    at_once(lambda _: use(policy))
    assert policy.most == 1
    assert (policy.told, policy.pending) == (THREADS * 15, 0)


def test_without_the_lock_several_threads_are_in_a_policy():
    """The control: what the tests above would see."""
    policy = Watched(pt.Box([0.0], [1.0]))
    at_once(lambda _: [Watched.recommend.__wrapped__(policy) for _ in range(20)])
    assert policy.most > 1


def test_a_lock_is_made_once_however_many_threads_need_it_first():
    for _ in range(50):
        policy = Watched(pt.Box([0.0], [1.0]))
        at_once(lambda _, policy=policy: policy.recommend())
        assert policy.most == 1


def test_wrapped_methods_say_what_they_are():
    assert Watched.tell.__name__ == "tell"
    assert "certificate" in pt.CalibratedUCB.certificate.__qualname__
    assert pt.CalibratedUCB.recommend.__doc__.startswith("The evaluated point")


def test_threads_share_a_policy():
    policy = pt.CalibratedUCB(pt.Box([0.0, 0.0], [1.0, 1.0]))

    def work(number):
        for step in range(25):
            x = policy.ask()
            if step % 5 == number:
                policy.cancel(x)
            else:
                policy.tell(x, value(x))
            policy.recommend()
            assert policy.cover

    at_once(work)
    assert (policy.told, policy.pending) == (THREADS * 20, 0)


# -- calls from within calls -----------------------------------------------------------------------


def test_a_callback_may_use_the_optimizer():
    seen = []

    def callback(evaluation):
        optimizer = evaluation.optimizer
        trial = optimizer.ask()
        optimizer.cancel(trial)
        seen.append((optimizer.n_told, len(optimizer.trials), optimizer.recommend().mean))

    with ThreadPoolExecutor(3) as pool:
        result = pt.minimize(value, PLANE, n_evals=12, executor=pool, callback=callback)
    assert result.nfev == 12
    assert [told for told, _, _ in seen] == list(range(1, 13))


@pytest.mark.parametrize("verb", ["ask", "recommend", "deepcopy"])
def test_feasible_may_look_at_the_optimizer_but_not_use_it(verb):
    armed, errors = [], []

    def feasible(x):
        if armed:
            armed.pop()
            assert optimizer.n_told == len(optimizer.trials) == 10
            try:
                copy.deepcopy(optimizer) if verb == "deepcopy" else getattr(optimizer, verb)()
            except HalfChanged as error:
                errors.append(str(error))
        return x[0] + x[1] < 2.5

    optimizer = pt.Optimizer(PLANE, feasible=feasible)
    for _ in range(10):
        optimizer.tell(optimizer.ask(), 1.0)
    armed.append(True)
    trial = optimizer.ask()
    assert not armed
    assert "from within another call" in errors[0]
    optimizer.tell(trial, 1.0)
    assert (optimizer.n_told, optimizer.n_pending, optimizer.policy.pending) == (11, 0, 0)


# -- copies and forks while threads are at work ----------------------------------------------------


class Working:
    """Threads that ask and tell until the block ends."""

    def __init__(self, optimizer):
        self.optimizer, self.stopped = optimizer, threading.Event()
        self.threads = [threading.Thread(target=self._work) for _ in range(2)]

    def _work(self):
        while not self.stopped.is_set():
            trial = self.optimizer.ask()
            self.optimizer.tell(trial, value(trial.unit))

    def __enter__(self):
        for thread in self.threads:
            thread.start()

    def __exit__(self, *error):
        self.stopped.set()
        for thread in self.threads:
            thread.join()


def check_whole(optimizer):
    """Ledger and policy of a copy agree, and it plays on."""
    trials = optimizer.trials
    assert len(trials.finished) == optimizer.n_told == optimizer.policy.told
    assert len(trials.pending) == optimizer.n_pending == optimizer.policy.pending
    trial = optimizer.ask()
    assert trial.number == len(trials)
    optimizer.tell(trial, value(trial.unit))


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, copy.copy, lambda o: pickle.loads(pickle.dumps(o))]
)
def test_copies_are_whole_whoever_is_at_work(copied):
    optimizer = pt.Optimizer(PLANE, policy="pi-gp-ucb", **KNOWN)
    with Working(optimizer):
        for _ in range(15):
            check_whole(copied(optimizer))
    check_whole(optimizer)


def test_a_pickled_optimizer_chooses_as_the_original_does():
    optimizer = pt.Optimizer(PLANE, seed=5)
    for _ in range(12):
        optimizer.tell(optimizer.ask(), 1.0)
    for made in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        original = copy.deepcopy(optimizer)
        for _ in range(3):
            ours, theirs = original.ask(), made.ask()
            assert ours.unit.tolist() == theirs.unit.tolist()
            original.tell(ours, 0.5)
            made.tell(ours, 0.5)  # a trial of the original is one of the copy


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_finds_the_optimizer_whole_and_free():
    optimizer = pt.Optimizer(PLANE, policy="pi-gp-ucb", **KNOWN)
    with Working(optimizer):
        for _ in range(10):
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    signal.alarm(20)
                    check_whole(optimizer)
                    code = 0
                finally:
                    os._exit(code)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    check_whole(optimizer)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_fork_does_not_wait_for_a_lock_that_is_gone():
    """An interrupt in a weak reference's callback leaves a dead one in the set."""
    locks, late = [new_lock()], []
    drop = Interrupter(1, files=("_weakrefset.py",))
    drop(locks.clear)
    assert drop.moments == 1
    assert len(_locks._LOCKS) > len(list(_locks._LOCKS))

    def ring(*_):
        late.append(True)
        raise TimeoutError  # out of the loop

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(20)
    try:
        child = os.fork()
        if child == 0:
            os._exit(0)
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    os.waitpid(child, 0)
    assert not late


def test_locks_are_acquired_together_whatever_the_order_of_others():
    locks = [new_lock() for _ in range(4)]

    def work(number):
        order = random.Random(number)
        for _ in range(200):
            if number:
                first, second = order.sample(locks[:2] if number % 2 else locks[:1] + locks[2:], 2)
                with locks[3], first, second:
                    pass
            else:
                acquire_all(locks)
                for lock in locks:
                    lock.release()

    done = threading.Event()

    def all_done():
        at_once(work)
        done.set()

    threading.Thread(target=all_done, daemon=True).start()
    assert done.wait(30)


def test_a_method_is_free_again_after_an_error():
    class Owner:
        @in_turn
        def fail(self):
            raise ValueError("mine")

    owner = Owner()
    with pytest.raises(ValueError, match="mine"):
        owner.fail()
    assert at_once(lambda _: owner._turn.acquire(timeout=0), 1) == [True]


# -- BLAS ------------------------------------------------------------------------------------------


def blas_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_blas_gets_its_threads_back_whichever_thread_is_last():
    before = blas_threads()
    inside, leave = threading.Event(), threading.Event()

    def stay():
        with one_thread():
            inside.set()
            leave.wait(10)

    with one_thread():
        thread = threading.Thread(target=stay)
        thread.start()
        inside.wait(10)
    assert blas_threads() == [1] * len(before)  # the other one is still inside
    leave.set()
    thread.join()
    assert blas_threads() == before
