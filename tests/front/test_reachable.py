"""A tolerance that cannot be reached is reported before the run; others are reached."""

from __future__ import annotations

import copy
import logging
import pickle

import numpy as np
import pytest

import partita as pt
from partita.policies.reach import Reach, reach, says

STATED = {
    "norm_bound": 4.0,
    "noise": pt.Uniform(-0.3, 0.3),
    "kernel": pt.Matern(nu=2.5, lengthscale=0.5),
}


def wave(seed=0):
    random = np.random.default_rng(seed)
    return lambda x: float(np.sin(5 * x[0]) + random.uniform(-0.3, 0.3))


def policy(dim=1, horizon=1_000, **settings):
    box = pt.Box([0.0] * dim, [2.0] * dim)
    return pt.PiGPUCB(box, horizon=horizon, **STATED, **settings)


def test_a_tolerance_out_of_reach_is_reported_before_the_first_evaluation(caplog):
    calls, f = [], wave()

    def counted(x):
        if not calls:
            assert "a tolerance of 0.01 is likely out of reach in 60 evaluations" in caplog.text
        calls.append(x)
        return f(x)

    with caplog.at_level(logging.WARNING):
        result = pt.maximize(counted, [(0, 1)], n_evals=60, tolerance=0.01, **STATED)
    assert len(calls) == 60  # the run is made all the same
    assert result.status == 0
    assert (
        "All evaluations were made. As said before the run: a tolerance of 0.01" in result.message
    )
    assert "it takes about" in result.message


def test_a_tolerance_within_reach_is_reached_and_nothing_is_said(caplog):
    with caplog.at_level(logging.WARNING):
        result = pt.maximize(wave(), [(0, 1)], n_evals=20_000, tolerance=0.1, **STATED)
    assert caplog.text == ""
    assert result.status == 2
    assert result.certificate <= 0.1
    assert result.message == "The certificate is within the tolerance."


def test_without_n_evals_the_tolerance_of_the_guide_is_reached_at_two_fifths_of_it():
    result = pt.maximize(wave(), [(0, 1)], tolerance=0.2, max_seconds=120, **STATED)
    assert result.status == 2
    assert result.nfev < 5_000


def test_calibrated_bounds_and_runs_that_go_on_are_not_judged_beforehand(caplog):
    with caplog.at_level(logging.WARNING):
        first = pt.maximize(wave(), [(0, 1)], n_evals=40, tolerance=1e-6)
        begun = pt.Optimizer([(0, 1)], direction="maximize", n_evals=100, **STATED)
        begun.add([0.5], 0.6)
        second = pt.maximize(wave(1), n_evals=5, tolerance=1e-6, optimizer=begun)
    assert caplog.text == ""
    assert "likely" not in first.message + second.message


def test_the_estimate_leaves_the_policy_as_it_was():
    asked, twin = policy(), policy()
    before = pickle.dumps(asked.state())
    assert reach(asked, 0.05, 1_000) is not None
    assert pickle.dumps(asked.state()) == before
    for _ in range(20):
        x = asked.ask()
        assert (x == twin.ask()).all()
        for each in (asked, twin):
            each.tell(x, 0.5)


def test_the_estimate_agrees_with_a_run_on_another_function():
    f = pt.problems.RKHSFunction.sample(1, STATED["kernel"], seed=41)
    stated = STATED | {"norm_bound": f.norm}
    random = np.random.default_rng(2)
    made = pt.PiGPUCB(pt.Box([0.0], [1.0]), horizon=4_000, **stated)
    fresh = copy.deepcopy(made)
    for _ in range(4_000):
        x = made.ask()
        made.tell(x, float(f(x[None, :])[0]) + random.uniform(-0.3, 0.3))
    found = reach(fresh, made.certificate(), 4_000)
    assert 400 <= found.evaluations <= 40_000


def test_smaller_tolerances_take_more_and_zero_takes_for_ever():
    few, many, never = (reach(policy(), tolerance, 1_000) for tolerance in (0.5, 0.05, 0.0))
    assert few.evaluations < many.evaluations < never.evaluations == np.inf
    assert "no number of evaluations is enough" in says(never, 0.0, 1_000)
    assert says(few, 0.5, 1_000) is None
    assert "it takes about 30,000," in says(Reach(23_456.0, 0.2), 0.05, 1_000)
    assert "more than 1,000,000,000,000" in says(Reach(1e13, 0.2), 0.05, 1_000)


@pytest.mark.parametrize("domain", [pt.Grid(7, dim=2), pt.Arms([[0.0], [0.3], [0.75]])])
def test_finite_domains_are_judged_as_well(domain):
    made = pt.PiGPUCB(domain, horizon=300, **STATED)
    assert reach(made, 1e-3, 300).evaluations > 300


def test_what_has_no_proof_or_has_values_is_not_judged():
    told = policy()
    told.tell([0.5], 0.1)
    assert reach(told, 0.05, 1_000) is None
    assert reach(pt.CalibratedUCB(pt.Box([0.0], [1.0])), 0.05, 1_000) is None
    assert reach(policy(), 8.0, 1_000) is None  # 2B: any answer is within it


def test_the_estimate_does_not_depend_on_the_clock(monkeypatch):
    expected = reach(policy(2), 0.05, 1_000)
    ticks = iter(range(0, 10**9, 10))
    monkeypatch.setattr("time.monotonic", lambda: float(next(ticks)))
    assert reach(policy(2), 0.05, 1_000) == expected
