"""Functions that return `(value, std)`: here, in workers, with a study, and with other policies."""

import math
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from scipy import optimize
from support import objectives
from support.stds import Listener

import partita as pt
from partita.errors import EvaluationFailed, InvalidInput
from partita.study import Study

SQUARE = [(0, 1), (0, 1)]


def pair(x):
    """A value and a noise that is larger on one side."""
    return float((x[0] - 0.3) ** 2 + x[1]), 0.1 + float(x[1])


def check(result):
    """Each value came with the noise that the function gave it."""
    assert result.nfail == 0
    for trial in result.history:
        assert (trial.value, trial.std) == pair(trial.params)
    np.testing.assert_array_equal(result.history.stds, 0.1 + result.history.params[:, 1])


@pytest.mark.parametrize("loop", [pt.minimize, pt.maximize])
@pytest.mark.parametrize("policy", [None, Listener])
def test_one_at_a_time(loop, policy):
    result = loop(pair, SQUARE, n_evals=30, policy=policy)
    assert result.nfev == 30
    check(result)
    if policy is not None:
        sign = -1 if loop is pt.minimize else 1
        values = [sign * trial.value for trial in result.history]
        stds = result.history.stds.tolist()
        assert result.optimizer.policy.heard == list(zip(values, stds, strict=True))


@pytest.mark.parametrize(("pool", "batch"), [(ThreadPoolExecutor, 1), (ProcessPoolExecutor, 3)])
def test_in_workers(pool, batch):
    with pool(2) as executor:
        result = pt.minimize(
            objectives.with_std, SQUARE, n_evals=20, executor=executor, batch=batch
        )
    assert result.nfev == 20
    for trial in result.history:
        assert (trial.value, trial.std) == objectives.with_std(trial.params)


def test_callbacks_are_told_and_values_may_come_without():
    seen = []

    def f(x):
        value, std = pair(x)
        return (value, std) if x[0] < 0.5 else (value, None) if x[1] < 0.5 else value

    result = pt.minimize(f, SQUARE, n_evals=30, callback=seen.append)
    stds = [now.std for now in seen]
    assert stds == [trial.std for trial in result.history]
    assert {std is None for std in stds} == {True, False}


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf, "wide", np.ones(2)])
def test_a_bad_deviation_is_a_failed_evaluation(bad):
    def f(x):
        return (float(x[0]), bad) if x[0] > 0.8 else (float(x[0]), 0.1)

    result = pt.maximize(f, SQUARE, n_evals=20)
    assert result.nfev == 20
    assert result.nfail > 0
    assert "give the standard deviation of the value's noise" in str(result.errors[0])
    assert (result.history.params[:, 0] <= 0.8).all()


def test_what_is_neither_form_fails_with_both_named():
    with pytest.raises(EvaluationFailed, match=r"one number, or a tuple \(value, std\)"):
        pt.minimize(lambda x: (1.0, 0.1, 0.2), SQUARE, n_evals=10)


@pytest.mark.parametrize("workers", [False, True])
@pytest.mark.parametrize("kept", [False, True])
def test_a_policy_without_a_use_for_it_ends_the_run_at_once(workers, kept, tmp_path):
    calls = []

    def f(x):
        calls.append(x)
        return pair(x)

    study = tmp_path / "tune.db" if kept else None
    settings = {"n_evals": 100, "policy": "uniform", "study": study}
    with (
        ThreadPoolExecutor(1) as pool,
        pytest.raises(InvalidInput, match=r"\(value, std\), but UniformSampling.*only the value"),
    ):
        pt.minimize(f, SQUARE, executor=pool if workers else None, **settings)
    assert len(calls) <= 3  # the rest was on its way
    if kept:
        left = Study.open(study)
        assert (left.n_told, left.n_pending) == (0, 0)
        settings["n_evals"] = 5
        assert pt.minimize(lambda x: pair(x)[0], SQUARE, **settings).nfev == 5


def test_a_run_that_has_values_is_not_lost_to_a_late_deviation():
    def f(x):
        return pair(x) if x[0] > 0.9 else pair(x)[0]

    result = pt.minimize(f, SQUARE, n_evals=40, policy="uniform", seed=1)
    assert result.nfev == 40
    assert result.nfail > 0
    assert "UniformSampling does not use the noise of single values" in result.message


def test_a_run_with_a_study_is_the_run_without_and_resumes(tmp_path):
    path = tmp_path / "tune.db"
    plain = pt.minimize(pair, SQUARE, n_evals=25, seed=3)
    pt.minimize(pair, SQUARE, n_evals=15, seed=3, study=path)
    kept = pt.minimize(pair, SQUARE, n_evals=25, seed=3, study=path)
    check(kept)
    np.testing.assert_array_equal(kept.history.params, plain.history.params)
    assert (kept.fun, kept.certificate) == (plain.fun, plain.certificate)


def test_scipys_method_takes_pairs():
    result = optimize.minimize(
        pair, x0=[0.5, 0.5], bounds=SQUARE, method=pt.scipy_method, options={"n_evals": 12}
    )
    check(result)
