"""Evaluations that end early: what is reported, who is pruned, and what that tells the model."""

import functools
import math
import pickle
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest

import partita as pt
from partita.errors import EvaluationFailed, InvalidInput
from partita.optimize.early import ENOUGH, FEWEST, Curves, Progress, Rule, from_json, relation_of
from partita.optimize.evaluate import takes_trial
from partita.space import as_space

SPACE = {"rate": (0.0, 1.0)}


def curve(rate, step):
    return (rate - 0.3) ** 2 + math.exp(-step / 3)


def train(rate, trial):
    """A training of ten epochs that asks whether to go on; at the top of a module for processes."""
    for step in range(10):
        trial.report(curve(rate, step), step)
        if trial.should_prune():
            raise pt.TrialPruned
    return curve(rate, 9)


# -- reports ---------------------------------------------------------------------------------------


def test_reports_are_in_the_order_of_steps_and_the_first_counts(caplog):
    trial = pt.Optimizer(SPACE).ask()
    for step, value in ((3, 1.0), (1, np.float32(2.0)), (3, 9.0)):
        trial.report(value, step)
    assert trial.reports == {1: 2.0, 3: 1.0}
    assert list(trial.reports) == [1, 3]
    assert "step 3 was reported already" in caplog.text
    assert not trial.should_prune()  # too little is known


@pytest.mark.parametrize("step", [-1, 1.5, "1", True, None, 2**60])
def test_a_bad_step_is_refused(step):
    trial = pt.Optimizer(SPACE).ask()
    with pytest.raises(InvalidInput, match="step"):
        trial.report(1.0, step)
    assert trial.reports == {}


@pytest.mark.parametrize("value", ["words", None, [1.0, 2.0], 1j])
def test_a_bad_value_is_refused(value):
    trial = pt.Optimizer(SPACE).ask()
    with pytest.raises(InvalidInput, match="give one number"):
        trial.report(value, 0)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_training_that_diverged_has_no_hope(value):
    trial = pt.Optimizer(SPACE).ask()
    trial.report(1.0, 0)
    assert not trial.should_prune()
    trial.report(value, 1)
    assert trial.should_prune()


# -- the rule --------------------------------------------------------------------------------------


def rule(readings, values, best, sign=-1.0):
    step = np.array([4])
    curves = [(step, np.array([r]), v) for r, v in zip(readings, values, strict=True)]
    return Rule(curves, best, sign)


def test_who_cannot_win_is_hopeless_and_who_can_is_not():
    readings = np.linspace(1.0, 3.0, 12)
    judge = rule(readings, readings - 1.0, best=0.0)
    assert judge.is_hopeless(4, 2.9)
    assert judge.is_hopeless(4, 1e9)  # worse than all before
    assert not judge.is_hopeless(4, 0.9)
    assert not judge.is_hopeless(3, 2.9)  # nothing is known of earlier steps
    assert judge.is_hopeless(7, 2.9)  # the last step before counts
    upside_down = rule(-readings, 1.0 - readings, best=0.0, sign=1.0)
    assert upside_down.is_hopeless(4, -2.9)
    assert not upside_down.is_hopeless(4, -0.9)


def test_readings_that_say_nothing_prune_nothing():
    draw = np.random.default_rng(0)
    readings, values = draw.normal(size=100), draw.normal(size=100)
    judge = rule(readings, values, best=float(values.mean()))
    assert not any(judge.is_hopeless(4, reading) for reading in readings)


def test_the_noise_of_values_is_part_of_both():
    """A reading that foretells an unlucky value does not make its place a bad one."""
    readings = np.linspace(1.0, 3.0, 12)
    quiet = rule(readings, readings - 1.0, best=0.0)
    step = np.array([4])
    curves = [(step, np.array([r]), r - 1.0) for r in readings]
    loud = Rule(curves, 0.0, -1.0, noise=0.5)
    assert quiet.is_hopeless(4, 1.5)
    assert not loud.is_hopeless(4, 1.5)
    assert loud.is_hopeless(4, 2.9)
    assert loud.estimate(4, 1.5).std == pytest.approx(0.5)


def test_a_prediction_covers_what_comes():
    """95 % intervals of what readings foretell hold about that often; half as wide ones do not."""
    draw, held, halved = np.random.default_rng(1), 0, 0
    for _ in range(2000):
        readings = draw.normal(size=12)
        values = 2.0 + 0.5 * readings + 0.3 * draw.normal(size=12)
        relation = relation_of(readings[:-1], values[:-1])
        mean, std, *_ = relation.foretold(float(readings[-1]))
        away = abs(values[-1] - mean) / std
        held += away < 2.262  # Student's t with 9 degrees of freedom
        halved += away < 1.131
    assert 0.93 < held / 2000 < 0.97
    assert halved / 2000 < 0.8


def test_one_that_diverged_does_not_hide_the_others():
    readings = np.append(np.linspace(1.0, 3.0, 12), 1e12)
    judge = rule(readings, np.append(readings[:-1] - 1.0, 1e12), best=0.0)
    assert judge.is_hopeless(4, 2.9)
    expected = judge.estimate(4, 2.0)
    assert expected.value == pytest.approx(1.0, abs=0.5)


def test_beyond_what_was_seen_the_estimate_is_unsure():
    readings = np.linspace(1.0, 3.0, 12)
    judge = rule(readings, readings - 1.0, best=0.0)
    near, far = judge.estimate(4, 3.0), judge.estimate(4, 5.0)
    assert near.std < 1e-6
    assert far.value == pytest.approx(4.0)
    assert far.std == pytest.approx(2.0)
    assert judge.estimate(4, math.nan) is None


@pytest.mark.parametrize("n", [0, 1, FEWEST - 1, FEWEST, ENOUGH - 1, ENOUGH])
def test_few_trials_foretell_nothing_and_some_prune_nothing(n):
    judge = rule(np.arange(n), np.arange(n), best=-9.0)
    assert judge.is_hopeless(4, 1e9) is (n >= ENOUGH)
    assert (judge.estimate(4, 1.0) is not None) is (n >= FEWEST)


def test_a_rule_travels_without_the_trials():
    draw = np.random.default_rng(2)
    steps = np.arange(30)
    curves = [(steps, draw.normal(size=30) + end, end) for end in draw.normal(size=200)]
    here = Rule(curves, -2.0, -1.0)
    sent = pickle.dumps(Progress(here))
    assert len(sent) < 6_000
    there = pickle.loads(sent).rule
    for step in (0, 7, 29, 40):
        for reading in (-1.0, 0.0, 5.0):
            assert there.is_hopeless(step, reading) == here.is_hopeless(step, reading)
            assert there.estimate(step, reading) == here.estimate(step, reading)


@pytest.mark.parametrize(
    "pairs",
    [[], {}, 3, [[1]], [[1, 2.0, 3.0]], [[0.5, 1.0]], [[-1, 1.0]], [[2, 1.0], [2, 1.0]],
     [[1, "x"]], [[True, 1.0]], [[2**60, 1.0]], [[1, [1]]]],
    ids=str,
)  # fmt: skip
def test_reports_of_a_file_are_checked(pairs):
    with pytest.raises(InvalidInput, match="reports"):
        from_json(pairs)


def test_what_curves_keep():
    curves = Curves()
    curves.add(3, {0: 1.0, 5: math.nan})
    curves.add(1, {})
    assert list(curves) == [3]
    assert list(curves.of(3)) == [0, 5]
    assert curves.of(1) == {}


# -- who is given the trial ------------------------------------------------------------------------


class Callable:
    def __call__(self, rate, trial):
        return rate


@pytest.mark.parametrize(
    ("f", "space", "takes"),
    [
        (train, SPACE, True),
        (lambda rate, trial=None: rate, SPACE, True),
        (lambda rate, *, trial: rate, SPACE, True),
        (Callable(), SPACE, True),
        (lambda rate: rate, SPACE, False),
        (lambda **params: 0.0, SPACE, False),
        (functools.partial(train, trial=None), SPACE, False),
        (lambda rate, trial: rate, {"rate": (0, 1), "trial": (0, 1)}, False),
        (lambda x, trial: 0.0, [(0, 1)], True),
        (lambda trial: 0.0, [(0, 1)], False),
        (lambda *trial: 0.0, [(0, 1)], False),
        (max, [(0, 1)], False),
    ],
)
def test_who_names_it_is_given_the_trial(f, space, takes):
    assert takes_trial(f, as_space(space)) is takes


def test_a_parameter_called_trial_stays_one():
    seen = []
    pt.minimize(lambda trial: seen.append(trial) or trial, {"trial": (0.0, 1.0)}, n_evals=3)
    assert all(isinstance(value, float) for value in seen)


# -- runs ------------------------------------------------------------------------------------------


def test_a_run_prunes_finds_the_best_and_counts():
    result = pt.minimize(train, SPACE, n_evals=40, seed=0)
    assert result.nfev + result.npruned == 40
    assert result.npruned >= 1
    assert "ended early" in result.message
    assert abs(result.params["rate"] - 0.3) < 0.02
    trials = result.optimizer.trials
    assert len(trials.pruned) == result.npruned == result.optimizer.n_pruned
    assert all(record.value is None and record.state == "pruned" for record in trials.pruned)
    assert np.isnan(trials.pruned.values).all()
    assert len(result.history) == result.nfev
    numbers = trials.pruned.numbers
    assert all(len(result.optimizer.reports(int(n))) < 10 for n in numbers)
    assert "pruned" in repr(result)
    again = pt.minimize(train, SPACE, n_evals=40, seed=0)
    assert again.optimizer.trials.states == trials.states
    np.testing.assert_array_equal(again.optimizer.trials.units, trials.units)


@pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_reports_travel_from_workers(kind):
    with kind(2) as executor:
        settings = {"executor": executor, "batch": 2, "policy": "uniform"}
        result = pt.minimize(train, SPACE, n_evals=40, seed=0, **settings)
    assert result.nfev + result.npruned == 40
    assert result.npruned >= 10
    full = result.optimizer.trials.finished.numbers
    assert all(len(result.optimizer.reports(int(n))) == 10 for n in full)
    assert all(result.optimizer.reports(int(n)) for n in result.optimizer.trials.pruned.numbers)


def test_what_is_expected_is_told_never_the_report():
    optimizer = pt.Optimizer(SPACE, seed=0)
    for rate in np.linspace(0, 1, 11):
        trial = optimizer.expect({"rate": float(rate)})
        trial.report(100.0 + rate, 0)
        trial.report(50.0 + rate, 1)
        optimizer.tell(trial, rate)
    trial = optimizer.expect({"rate": 0.77})
    trial.report(100.77, 0)
    assert not trial.should_prune()  # once is bad luck
    trial.report(50.77, 1)
    assert trial.should_prune()
    assert optimizer.prune(trial)
    assert (optimizer.n_told, optimizer.n_pruned, optimizer.policy.told) == (11, 1, 12)
    assert optimizer.predict([{"rate": 0.77}]).mean[0] == pytest.approx(0.77, abs=0.05)
    with pytest.raises(pt.errors.Settled, match="trial 11 was pruned"):
        optimizer.tell(trial, 1.0)
    assert copy_of(optimizer).ask().params == optimizer.ask().params


def copy_of(optimizer):
    return pickle.loads(pickle.dumps(optimizer))


def test_an_optimizer_that_is_made_anew_knows_what_was_expected():
    optimizer = pt.Optimizer(SPACE, seed=0)
    for rate in np.linspace(0, 1, 11):
        trial = optimizer.expect({"rate": float(rate)})
        trial.report(rate + 1, 0)
        optimizer.tell(trial, rate)
    trial = optimizer.ask()
    trial.report(1.9, 0)
    optimizer.prune(trial)
    optimizer._changed_by = "tell"  # as an interrupt leaves it
    optimizer.ask()
    assert optimizer.policy.told == 12
    assert optimizer.n_pruned == 1


def test_proven_bounds_know_nothing_that_is_only_expected():
    known = {"norm_bound": 1.0, "noise": pt.Gaussian(0.1), "kernel": pt.Matern(1.5, 0.3)}
    optimizer = pt.Optimizer(SPACE, n_evals=100, **known)
    for rate in np.linspace(0, 1, 11):
        trial = optimizer.expect({"rate": float(rate)})
        trial.report(rate, 0)
        optimizer.tell(trial, rate)
    trial = optimizer.ask()
    trial.report(0.9, 0)
    assert optimizer.prune(trial) is False
    assert (optimizer.n_pruned, optimizer.policy.told, optimizer.policy.pending) == (1, 11, 0)


def test_a_function_that_is_always_pruned_says_so():
    def never(rate, trial):
        raise pt.TrialPruned

    with pytest.raises(EvaluationFailed, match="all 7 evaluations ended early"):
        pt.minimize(never, SPACE, n_evals=7)


def test_nothing_changes_for_who_reports_nothing():
    plain = pt.minimize(lambda rate: curve(rate, 9), SPACE, n_evals=25, seed=3)
    named = pt.minimize(lambda rate, trial: curve(rate, 9), SPACE, n_evals=25, seed=3)
    np.testing.assert_array_equal(plain.history.trials.units, named.history.trials.units)


def test_an_objective_written_for_optuna_may_raise_what_it_raised():
    optuna = pytest.importorskip("optuna")

    def train(rate, trial):
        for epoch in range(4):
            trial.report((rate - 0.3) ** 2 + 0.5**epoch, epoch)
            if rate > 0.8:
                raise optuna.TrialPruned
        return (rate - 0.3) ** 2

    result = pt.minimize(train, {"rate": (0.0, 1.0)}, n_evals=20)
    assert result.npruned > 0
    assert result.nfev + result.npruned == 20
    assert result.nfail == 0
