"""`scipy.optimize.minimize(..., method=pt.scipy_method)`."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
from scipy.optimize import Bounds, OptimizeResult

import partita as pt
from partita.errors import InvalidInput
from partita.front import scipy_method

SQUARE = [(0, 1), (-1, 1)]


def bowl(x, a=0.3, b=-0.2):
    return (x[0] - a) ** 2 + (x[1] - b) ** 2


def run(fun=bowl, x0=(0.5, 0.5), *, bounds=SQUARE, options=None, **given):
    options = {"n_evals": 60} if options is None else options
    return scipy.optimize.minimize(
        fun, x0, method=scipy_method, bounds=bounds, options=options, **given
    )


def test_it_minimises_as_a_method_of_scipy():
    result = run()
    assert isinstance(result, OptimizeResult)
    assert result.success
    assert result.nfev == 60
    np.testing.assert_allclose(result.x, [0.3, -0.2], atol=0.03)
    assert result.fun == pytest.approx(0, abs=0.003)
    assert result["x"] is result.x


def test_it_is_the_same_run_as_minimize_but_for_the_first_point():
    result = run(x0=[0.25, 0.75], options={"n_evals": 40, "seed": 5})
    np.testing.assert_array_equal(result.history.x[0], [0.25, 0.75])
    assert result.history.values[0] == bowl([0.25, 0.75])
    other = pt.minimize(bowl, SQUARE, n_evals=3, seed=5)
    np.testing.assert_array_equal(result.history.x[1:4], other.history.x)


@pytest.mark.parametrize("bounds", [SQUARE, Bounds([0, -1], [1, 1]), np.array(SQUARE)])
def test_bounds_as_scipy_takes_them(bounds):
    assert run(bounds=bounds, options={"n_evals": 10}).nfev == 10


def test_bounds_of_one_number_for_all_variables():
    assert run(bounds=Bounds(0, 1), options={"n_evals": 5}).x.shape == (2,)
    assert run(bounds=Bounds([-1, 0], 1), options={"n_evals": 5}).x.shape == (2,)


def test_an_infeasible_first_point_is_refused_before_anything_is_evaluated():
    called = []
    options = {"n_evals": 5, "feasible": lambda x: x[0] < 0.4}
    with pytest.raises(InvalidInput, match=r"x0=\[0.5, 0.5\]: feasible does not allow"):
        run(called.append, options=options)
    assert not called
    assert (run(x0=(0.3, 0), options=options).history.x[:, 0] < 0.4).all()


def test_a_study_and_the_progress_bar_are_options(tmp_path, capsys):
    options = {"n_evals": 6, "study": str(tmp_path / "tune.db"), "disp": True}
    assert run(options=options).nfev == 6
    assert "/6" in capsys.readouterr().err
    assert run(options={**options, "n_evals": 9, "disp": False}).nfev == 9
    assert capsys.readouterr().err == ""


def test_further_arguments():
    result = run(args=(0.8, 0.1))
    np.testing.assert_allclose(result.x, [0.8, 0.1], atol=0.03)
    one = scipy.optimize.minimize(
        lambda x, a: abs(x[0] - a), 0.1, args=0.6, method=scipy_method, bounds=[(0, 1)],
        options={"n_evals": 40},
    )  # fmt: skip
    assert one.x[0] == pytest.approx(0.6, abs=0.05)


def test_callbacks_of_both_kinds():
    points = []
    run(options={"n_evals": 12}, callback=points.append)
    assert len(points) == 12
    np.testing.assert_array_equal(points[0], [0.5, 0.5])
    seen = []

    def stop(intermediate_result):
        seen.append(intermediate_result)
        if len(seen) == 7:
            raise StopIteration

    result = run(callback=stop)
    assert result.nfev == 7
    assert seen[3].fun == bowl(seen[3].x)


def test_tol_is_the_tolerance():
    result = run(options={"n_evals": 3000}, tol=0.05)
    assert result.status == 2
    assert result.certificate <= 0.05


def test_a_first_point_that_fails_does_not_end_it():
    result = run(lambda x: bowl(x) if x[0] < 0.45 else np.nan, options={"n_evals": 30})
    assert result.nfev == 30
    assert result.nfail >= 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"bounds": None}, "bounds are required"),
        ({"bounds": [(0, np.inf), (0, 1)]}, "finite"),
        ({"bounds": [(0, 1)]}, "x0="),
        ({"x0": (2, 0)}, "x0="),
        ({"options": {"maxiter": 5}}, "'maxiter' is unknown.*n_evals"),
        ({"options": {"seed": 1}}, "nothing would end the run"),
        ({"constraints": {"type": "eq", "fun": bowl}}, "feasible"),
    ],
)
def test_bad_input(given, words):
    with pytest.raises(InvalidInput, match=words):
        run(**given)


def test_derivatives_are_not_used_and_it_says_so():
    with pytest.warns(RuntimeWarning, match="derivatives"):
        run(jac=lambda x: 2 * np.asarray(x), options={"n_evals": 5})
