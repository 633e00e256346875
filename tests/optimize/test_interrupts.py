"""Ctrl-C at any moment of a call of an optimizer: the call has happened or not, and it goes on."""

import pickle
import random
from contextlib import suppress

import numpy as np
import pytest
from support.interrupts import INTERRUPTED, Interrupter, cut_short, is_free, moments_of

import partita as pt
from partita.errors import HalfChanged, NotPending

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

PLANE = [(0.0, 1.0), (-1.0, 2.0)]
KNOWN = {"kernel": pt.Matern(1.5, 0.3), "norm_bound": 50.0, "noise": pt.Gaussian(0.1)}


def value(x):
    return float((x[0] - 0.3) ** 2 + (x[1] - 0.5) ** 2)


def check(optimizer, told):
    """The ledger is whole, and has all that was acknowledged."""
    assert is_free(optimizer._turn)
    trials = optimizer.trials
    assert len(trials.finished) + len(trials.failed) + len(trials.pending) == len(trials)
    for number, y in told.items():
        assert trials[number].value == y
    assert np.isnan(trials.values[trials.codes != 1]).all()


def check_goes_on(optimizer):
    """The policy knows what the ledger has, no more and no less."""
    optimizer.recommend()
    trials = optimizer.trials
    counts = optimizer.n_told, optimizer.n_failed, optimizer.n_pending
    assert counts == (len(trials.finished), len(trials.failed), len(trials.pending))
    assert optimizer.policy.told == optimizer.n_told
    if optimizer.policy.plans_from_pending:
        assert optimizer.policy.pending == optimizer.n_pending


def interrupt_often(optimizer, cases, seed):
    """Interrupt calls; how many interrupts came, and how often the policy was made anew."""
    draw, told, came, policies = random.Random(seed), {}, 0, set()

    def full_step():
        trial = optimizer.ask()
        optimizer.tell(trial, value(trial.unit))
        told[trial.number] = value(trial.unit)

    for _ in range(12):
        full_step()
    moments = moments_of(full_step)
    for case in range(cases):
        before = len(optimizer.trials)
        kind = draw.random()
        trial = optimizer.ask() if 0.3 < kind < 0.8 else None
        if trial is None:
            call = [optimizer.ask, optimizer.recommend, lambda: optimizer.add([0.5, 0.5], 0.3)]
            came += cut_short(draw, moments, call[case % 3]) is INTERRUPTED
        elif kind < 0.7:
            y = value(trial.unit)
            if cut_short(draw, moments, optimizer.tell, trial, y, 0.1) is INTERRUPTED:
                came += 1
                with suppress(NotPending):  # it has happened, or does now
                    optimizer.tell(trial, y)
            told[trial.number] = y
        else:
            came += cut_short(draw, moments, optimizer.cancel, trial) is INTERRUPTED
        assert len(optimizer.trials) <= before + 1
        policies.add(optimizer.policy)  # kept, as the id of one that is gone is used again
        check(optimizer, told)
        if case % 5 == 4:
            check_goes_on(optimizer)
    check_goes_on(optimizer)
    return came, len(policies)


@pytest.mark.parametrize(("policy", "cases"), [("uniform", 300), ("pi-gp-ucb", 120), (None, 60)])
def test_an_interrupt_at_any_moment_leaves_an_optimizer_that_goes_on(policy, cases):
    known = KNOWN if policy == "pi-gp-ucb" else {}
    optimizer = pt.Optimizer(PLANE, policy=policy, **known)
    if policy == "uniform":  # does not use the noise of single values
        optimizer.std_of = lambda std, verb: None
    came, policies = interrupt_often(optimizer, cases, seed=2)
    assert came > cases / 3
    assert policies > 3


def cut_in_the_middle(optimizer, trial):
    """Interrupt a tell after the policy has taken the value in, before the ledger has."""
    record, policy = type(optimizer.policy)._record, optimizer.policy

    def interrupted(self, *args):
        record(self, *args)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(policy), "_record", interrupted)
        with pytest.raises(KeyboardInterrupt):
            optimizer.tell(trial, 0.5)


@pytest.mark.parametrize("copied", [lambda o: o, lambda o: pickle.loads(pickle.dumps(o))])
def test_a_policy_left_half_changed_is_made_anew(copied):
    optimizer = pt.Optimizer(PLANE)
    trials = [optimizer.ask() for _ in range(6)]
    optimizer.tell(trials[0], 1.0)
    optimizer.tell(trials[1], 2.0, std=0.5)
    optimizer.cancel(trials[2])
    optimizer.add([0.9, 0.9], 3.0)
    torn = optimizer.policy
    cut_in_the_middle(optimizer, trials[3])
    assert torn.told == 4  # the control: it knows of a value that the ledger has not
    assert optimizer.n_told == 3
    optimizer = copied(optimizer)
    check_goes_on(optimizer)
    assert optimizer.policy is not torn
    assert optimizer.trials.values.tolist() == pytest.approx(
        [1.0, 2.0, *[float("nan")] * 4, 3.0], nan_ok=True
    )
    assert optimizer.trials[1].std == 0.5
    optimizer.tell(trials[3], 0.5)
    assert (optimizer.n_told, optimizer.n_pending, optimizer.n_failed) == (4, 2, 1)
    check_goes_on(optimizer)


def test_a_policy_of_unknown_make_says_what_to_do():
    made = pt.Optimizer(PLANE, policy=lambda domain: pt.CalibratedUCB(domain, delta=0.2))
    optimizer = pickle.loads(pickle.dumps(made))  # which cannot hold the function
    trial = optimizer.ask()
    cut_in_the_middle(optimizer, trial)
    with pytest.raises(HalfChanged, match=r"Make a new Optimizer, and add\(\)"):
        optimizer.ask()
    assert optimizer.n_pending == 1
    assert not np.isnan(optimizer.trials.units).any()


def test_a_policy_of_ones_own_is_told_one_by_one():
    class Own:
        """No Policy: it has what every policy must have, and no more."""

        def __init__(self):
            self.values = []

        def ask(self):
            return np.full(2, 0.5)

        def tell(self, x, y):
            self.values.append(y)
            if y == -13.0 and len(self.values) == 3:
                raise KeyboardInterrupt

        def cancel(self, x):
            pass

        def recommend(self):
            return pt.Recommendation(np.full(2, 0.5), 0.0, 0.0, 0.0)

    optimizer = pt.Optimizer(PLANE, policy=lambda domain: Own())
    for y in (1.0, 2.0):
        optimizer.tell(optimizer.ask(), y)
    with pytest.raises(KeyboardInterrupt):
        optimizer.tell(optimizer.ask(), 13.0)
    optimizer.recommend()
    assert optimizer.policy.values == [-1.0, -2.0]
    optimizer.tell(2, 13.5)
    assert optimizer.policy.values == [-1.0, -2.0, -13.5]


def test_an_impatient_ctrl_c_does_not_lose_the_run():
    """Twice in the middle of a tell: the second does not wait, and the result is there."""
    import signal

    made, record = [], pt.CalibratedUCB._record

    def f(x):
        made.append(value(x))
        return made[-1]

    def interrupted(self, *args):
        record(self, *args)
        if len(made) == 15:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            raise AssertionError("the second one must not wait")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pt.CalibratedUCB, "_record", interrupted)
        result = pt.minimize(f, PLANE, n_evals=30)
    assert (result.status, result.nfev) == (4, 14)
    assert result.history.values.tolist() == made[:14]


def test_interrupted_calls_are_counted():
    """The control of the harness: a place beyond the last moment interrupts nothing."""
    optimizer = pt.Optimizer(PLANE, policy="uniform")
    assert Interrupter(10**9)(optimizer.ask) is not INTERRUPTED
    assert Interrupter(1)(optimizer.ask) is INTERRUPTED
    assert optimizer.n_pending == 1
