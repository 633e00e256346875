"""`outcomes` of `minimize`, `maximize`, `Optimizer`, `Study.open`, `CalibratedUCB` and programs."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import partita as pt
from partita.commands.main import main
from partita.errors import InvalidInput

SPACE = [(0.0, 1.0), (0.0, 1.0)]
PROVEN: dict[str, Any] = {
    "norm_bound": 3.0,
    "noise": pt.Gaussian(0.1),
    "kernel": pt.Matern(1.5, 0.3),
}


def accuracy(seed: int, sign: float = 1.0) -> Any:
    """A noisy function whose mean lies in [0, 1] and comes close to 1, times a sign."""
    random = np.random.default_rng(seed)
    return lambda x: sign * float(mean_accuracy(x) + 0.1 * random.normal())


def mean_accuracy(x: np.ndarray) -> float:
    return 0.99 - 0.5 * float(((np.asarray(x) - 0.4) ** 2).sum())


@pytest.mark.parametrize("known", [{}, PROVEN], ids=["calibrated", "proven"])
@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["maximize", "minimize"])
def test_answers_respect_the_outcomes_and_choices_do_not_change(known: Any, sign: float) -> None:
    loop = pt.maximize if sign > 0 else pt.minimize
    ends = (0.0, 1.0) if sign > 0 else (-1.0, 0.0)
    plain = loop(accuracy(1, sign), SPACE, n_evals=40, **known)
    told = loop(accuracy(1, sign), SPACE, n_evals=40, outcomes=ends, **known)
    assert np.array_equal(told.history.x, plain.history.x)
    assert max(abs(plain.lower), abs(plain.upper)) > 1.0  # so there is something to respect
    assert ends[0] <= told.lower <= told.fun <= told.upper <= ends[1]
    assert told.certificate < plain.certificate
    assert told.certificate <= 1.0
    # It is still a bound: f is at most 1, and at least `lower` at the answer.
    lost = 0.99 - mean_accuracy(told.x)
    assert lost <= told.certificate
    points = np.random.default_rng(0).random((50, 2))
    mean, _, lower, upper = told.optimizer.predict(points)
    for numbers in (mean, lower, upper):
        assert (numbers >= ends[0]).all()
        assert (numbers <= ends[1]).all()
    for column in (told.history.best_mean, told.history.lower, told.history.upper):
        assert ((column >= ends[0]) & (column <= ends[1])).all()


def test_one_end_is_enough() -> None:
    loss = pt.minimize(lambda x: float(x[0] ** 2), [(0, 1)], n_evals=40, outcomes=(0, None))
    assert loss.lower >= 0.0
    assert loss.certificate <= loss.upper + 1e-12


@pytest.mark.parametrize("bad", [(1, 0), (0, math.nan), (0, 0), 1, (0, 1, 2)])
def test_bad_outcomes_are_refused_everywhere(bad: Any, tmp_path: Path) -> None:
    file = tmp_path / "study.db"
    calls = [
        lambda: pt.minimize(lambda x: 0.0, SPACE, n_evals=3, outcomes=bad),
        lambda: pt.Optimizer(SPACE, outcomes=bad),
        lambda: pt.CalibratedUCB(pt.Box([0], [1]), outcomes=bad),
        lambda: pt.Study.open(file, SPACE, outcomes=bad),
    ]
    for call in calls:
        with pytest.raises(InvalidInput, match="outcomes="):
            call()
    assert not file.exists()


def test_values_outside_are_taken_unless_the_noise_rules_them_out() -> None:
    free = pt.Optimizer(SPACE, direction="maximize", outcomes=(0, 1))
    free.tell(free.ask(), 1.7)
    coin = pt.Optimizer(SPACE, direction="maximize", outcomes=(0, 1), noise=pt.Bernoulli())
    trial = coin.ask()
    with pytest.raises(InvalidInput, match=r"tell: the value 1.7 cannot be.*Bernoulli"):
        coin.tell(trial, 1.7)
    with pytest.raises(InvalidInput, match=r"add: the value -0.5 cannot be"):
        coin.add([0.5, 0.5], -0.5)
    assert (coin.n_told, coin.n_pending) == (0, 1)
    coin.tell(trial, 1.0)
    with pytest.raises(InvalidInput, match="std=0 says that it is exact"):
        free.add([0.5, 0.5], 1.2, std=0.0)


def test_a_run_counts_a_value_that_cannot_be_as_failed() -> None:
    values = iter([1.0, 5.0, 0.0, 1.0, 1.0, 0.0])
    run = pt.maximize(
        lambda x: next(values), SPACE, n_evals=5, outcomes=(0, 1), noise=pt.Bernoulli()
    )
    assert (run.nfev, run.nfail) == (5, 1)
    assert "5.0 cannot be" in str(run.errors[0])


def test_the_policy_alone_respects_them_and_refuses_without_a_change() -> None:
    domain = pt.Box([0.0], [1.0])
    policy = pt.CalibratedUCB(domain, outcomes=(0, 1), noise=pt.Uniform(-0.2, 0.2), seed=3)
    plain = pt.CalibratedUCB(domain, noise=pt.Uniform(-0.2, 0.2), seed=3)
    assert policy.recommend()[2:] == (0.0, 1.0)
    assert policy.certificate() == 1.0
    random = np.random.default_rng(0)
    for _ in range(40):
        x = policy.ask()
        assert np.array_equal(x, plain.ask())
        y = 0.95 - (x[0] - 0.4) ** 2 + random.uniform(-0.2, 0.2)
        for wrong in (1.3, -0.3):
            with pytest.raises(InvalidInput, match="cannot be"):
                policy.tell(x, wrong)
        policy.tell(x, y)
        plain.tell(x, y)
    assert policy.told == 40
    best = policy.recommend()
    assert 0.0 <= best.lower <= best.mean <= best.upper <= 1.0
    assert policy.certificate() <= plain.certificate()
    with pytest.raises(InvalidInput, match="cannot be"):
        policy.tell(np.array([[0.1], [0.2]]), [0.5, 1.5])
    assert policy.told == 40


def test_a_study_keeps_them(tmp_path: Path) -> None:
    file = tmp_path / "study.db"
    run = pt.maximize(accuracy(2), SPACE, n_evals=20, outcomes=(None, 1), study=file)
    with pt.Study.open(file) as study:
        assert study.settings.outcomes == [None, 1.0]
        assert study.recommend().upper == run.upper <= 1.0
        assert study.certificate() == run.certificate
    with pytest.raises(InvalidInput, match=r"outcomes is \[None, 1.0\] in the study, but"):
        pt.Study.open(file, outcomes=(0, 1))
    pt.Study.open(file, outcomes=(None, 1)).close()
    more = pt.maximize(accuracy(3), SPACE, n_evals=25, study=file)
    assert more.upper <= 1.0


@pytest.mark.parametrize("low", ["-1e0", "-1", "none", "-inf"])
def test_programs_have_them_too(low: str, capsys: pytest.CaptureFixture[str]) -> None:
    program = [sys.executable, "-c", "print(0.2)", "{x}"]
    options = ["maximize", "--param", "x:0:1", "--evals", "4", "--json", "--quiet"]
    assert main([*options, "--outcomes", low, "0.25", "--", *program]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["upper"] <= 0.25
    assert (result["certificate"] is None) == (low in ("none", "-inf"))


@pytest.mark.parametrize(("ends", "why"), [("1 0", "valid range"), ("0 one", "two numbers")])
def test_bad_ends_are_refused_before_any_program_runs(
    ends: str, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["maximize", "--param", "x:0:1", "--evals", "4", "--outcomes", *ends.split()]
    assert main([*options, "--", sys.executable, "-c", "raise SystemExit(9)", "{x}"]) == 2
    assert why in capsys.readouterr().err
