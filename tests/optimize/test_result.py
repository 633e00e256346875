"""What a run returns: its fields, and how it reads."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from scipy.optimize import OptimizeResult

from partita.front import maximize, minimize
from partita.optimize.result import Result

MIXED = {
    "rate": (1e-4, 1e-1, "log"),
    "depth": (1, 12, "int"),
    "kind": ["linear", "tree", "a very long name of a kind"],
    "on": bool,
    "fixed": [7],
}


def loss(rate, depth, kind, on, fixed):
    return (np.log10(rate) + 2) ** 2 + abs(depth - 5) / 10 + (kind == "tree") + on + fixed


@pytest.fixture(scope="module")
def named():
    return minimize(loss, MIXED, n_evals=60)


@pytest.fixture(scope="module")
def plain():
    return maximize(lambda x: -float(abs(x[0] - 0.4) + abs(x[1])), [(0, 1), (-1, 1)], n_evals=60)


def test_it_is_a_result_of_scipys(plain, named):
    for result in (plain, named):
        assert isinstance(result, OptimizeResult)
        assert result["fun"] == result.fun
        assert {"x", "fun", "success", "status", "message", "nfev", "nit"} <= set(result)
        assert {"x", "fun", "plot"} <= set(dir(result))
        with pytest.raises(AttributeError):
            result.nonsense  # noqa: B018


def test_fields(plain, named):
    assert plain.x.shape == (2,)
    np.testing.assert_array_equal(plain.x, plain.params)
    assert plain.lower <= plain.fun <= plain.upper
    assert list(named.params) == list(MIXED)
    assert named.x == list(named.params.values())
    assert named.params["fixed"] == 7
    assert loss(**named.params) < 8.5
    assert (plain.direction, named.direction) == ("maximize", "minimize")
    assert plain.seconds > 0
    best = plain.optimizer.recommend()
    assert (best.mean, best.lower, best.upper) == (plain.fun, plain.lower, plain.upper)


def test_the_run_can_be_gone_on_with(plain):
    optimizer = copy.deepcopy(plain.optimizer)
    for _ in range(5):
        trial = optimizer.ask()
        optimizer.tell(trial, 0.0)
    assert optimizer.n_told == 65


def test_history(named):
    history = named.history
    assert len(history) == 60
    for params, x, value in zip(history.params, history.x, history.values, strict=True):
        assert loss(**params) == value
        assert x == list(params.values())
    assert repr(history) == f"History(60 values, {len(history.evaluations)} checkpoints)"


def test_it_reads_well(plain, named):
    text = repr(named)
    assert text == str(named)
    lines = text.splitlines()
    assert len({line.index(":") for line in lines if line[12] == ":"}) == 1  # aligned
    assert len(lines) <= 16
    assert any(line.startswith("      params: rate  = ") for line in lines)
    assert any(line.startswith("              kind  = ") for line in lines)
    assert f"fun: {named.fun:.6g} (posterior mean, minimized)" in text
    assert "nfev: 60" in text
    assert "guarantee: calibrated" in text
    assert f"x: [{plain.x[0]:.6g}, {plain.x[1]:.6g}]" in repr(plain)
    assert max(map(len, repr(plain).splitlines())) < 100
    assert "x: 3" in repr(Result(x=3))  # one made by hand, too


def test_it_can_be_pickled(named):
    again = pickle.loads(pickle.dumps(named))
    assert type(again) is Result
    assert again.params == named.params
    assert repr(again) == repr(named)
    np.testing.assert_array_equal(again.history.values, named.history.values)


def test_it_says_how_many_values_came_with_their_noise(plain):
    result = minimize(lambda x: (x, 0.1) if x < 0.5 else x, {"x": (0.0, 1.0)}, n_evals=6)
    known = int(np.isfinite(result.history.stds).sum())
    assert 0 < known <= 6
    assert f"nfev: 6, {known} with a std of their own" in repr(result)
    assert "std" not in repr(plain)
