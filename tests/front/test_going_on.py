"""`minimize(..., optimizer=...)` goes on with what is known."""

import numpy as np
import pytest

import partita as pt
from partita.errors import InvalidInput

SPACE = {"x": (0.0, 1.0), "n": (1, 5, "int")}


def cost(x, n):
    return (x - 0.3) ** 2 + 0.1 * abs(n - 2)


def test_it_goes_on_where_it_was():
    first = pt.minimize(cost, SPACE, n_evals=15, seed=1)
    second = pt.minimize(cost, optimizer=first.optimizer, n_evals=10)
    assert second.nfev == 25
    assert second.optimizer is first.optimizer
    whole = pt.minimize(cost, SPACE, n_evals=25, seed=1)
    np.testing.assert_array_equal(whole.history.trials.units, second.history.trials.units)
    third = pt.minimize(cost, SPACE, optimizer=first.optimizer, n_evals=1)
    assert third.nfev == 26


def test_values_of_ones_own_come_first():
    optimizer = pt.Optimizer(SPACE)
    optimizer.add({"x": [0.1, 0.9, 0.5], "n": [1, 2, 3]}, [0.14, 0.36, 0.14])
    result = pt.minimize(cost, optimizer=optimizer, n_evals=12)
    assert result.nfev == 15
    assert abs(result.params["x"] - 0.3) < 0.1


def test_the_result_of_a_study_goes_on_in_its_file(tmp_path):
    path = tmp_path / "tune.db"
    first = pt.minimize(cost, SPACE, n_evals=8, study=path)
    second = pt.minimize(cost, optimizer=first.optimizer, n_evals=4)
    assert second.nfev == 12
    assert pt.Study.open(path).n_told == 12
    assert first.optimizer.n_told == 12


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"optimizer": "it"}, "give an Optimizer, such as result.optimizer"),
        ({"space": {"x": (0.0, 2.0), "n": (1, 5, "int")}}, "its space is .* but .*0 to 2"),
        ({"seed": 4}, "seed cannot be given again"),
        ({"policy": "uniform", "delta": 0.2}, "policy, delta cannot be given again|delta, policy"),
        ({"study": "tune.db"}, "optimizer and study are both given"),
    ],
)
def test_what_differs_is_refused(call, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    optimizer = pt.Optimizer(SPACE)
    with pytest.raises(InvalidInput, match=message):
        pt.minimize(cost, **{"optimizer": optimizer, "n_evals": 3, **call})
    assert optimizer.n_told == 0
    assert not list(tmp_path.iterdir())


def test_another_direction_is_refused():
    with pytest.raises(InvalidInput, match="made to minimize, but this call is to maximize"):
        pt.maximize(cost, optimizer=pt.Optimizer(SPACE), n_evals=3)


def test_without_space_and_optimizer_it_says_what_is_missing():
    with pytest.raises(InvalidInput, match="space"):
        pt.minimize(cost, n_evals=3)
