"""Conditional parameters from the front door to the study: what is active, and nothing else."""

from __future__ import annotations

import contextlib
import csv
import functools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import partita as pt
from partita.errors import InvalidInput
from partita.figures.data import Curve
from partita.optimize.figure import figure_of
from partita.optimize.making import domain_of
from partita.study.export import columns, export

SPACE = {
    "scale": (0.0, 1.0),
    "model": {
        "svm": {
            "C": (1e-3, 1e3, "log"),
            "kernel": {"rbf": {"gamma": (0.0, 1.0)}, "linear": {}},
        },
        "forest": {"trees": (10, 500, "int")},
        "mean": {},
    },
}
#: What the function must be given, by the choices.
KEYWORDS = {
    ("svm", "rbf"): {"scale", "model", "C", "kernel", "gamma"},
    ("svm", "linear"): {"scale", "model", "C", "kernel"},
    ("forest", None): {"scale", "model", "trees"},
    ("mean", None): {"scale", "model"},
}


def exact(**params):
    """Any value, but only of the right keywords; the best is in the branch `svm`, `rbf`."""
    assert params.keys() == KEYWORDS[params["model"], params.get("kernel")]
    value = (params["scale"] - 0.3) ** 2
    if params["model"] == "svm":
        value += (np.log10(params["C"]) - 1) ** 2 / 9
        return value + ((params["gamma"] - 0.25) ** 2 if "gamma" in params else 0.1)
    return value + (0.3 if params["model"] == "mean" else 0.2 + abs(params["trees"] - 60) / 500)


def noisy(seed):
    random = np.random.default_rng(seed)
    return lambda **params: exact(**params) + 0.02 * random.standard_normal()


@pytest.fixture(scope="module")
def result():
    return pt.minimize(noisy(0), SPACE, n_evals=60, seed=1)


def test_the_answer_has_what_is_active_and_is_good(result):
    assert result.params["model"] == "svm"
    assert exact(**result.params) < 0.05
    assert list(result.params.values()) == result.x
    assert all(row.keys() >= {"scale", "model"} for row in result.history.params)
    assert "trees" not in repr(result)


def test_no_evaluation_is_spent_on_what_is_not_active(result):
    """Points of trials are canonical: those with the same parameters are the same."""
    trials = result.history.trials
    by_params = {tuple(sorted(p.items())) for p in trials.params}
    assert len(by_params) == len(np.unique(trials.units, axis=0))
    of_mean = trials.units[[p["model"] == "mean" for p in trials.params]]
    assert (of_mean[:, 4:] == 0.5).all()


def test_values_are_added_expected_and_predicted_where_they_are_active():
    optimizer = pt.Optimizer(SPACE, seed=0)
    optimizer.add({"scale": 0.5, "model": "mean"}, 0.3)
    trial = optimizer.expect({"scale": 0.5, "model": "forest", "trees": 20})
    optimizer.tell(trial, 0.2)
    posterior = optimizer.predict([{"scale": 0.5, "model": "mean"}])
    assert posterior.mean.shape == (1,)
    wrong = {"scale": 0.5, "model": "mean", "trees": 20}
    for refused in (
        lambda: optimizer.add(wrong, 1.0),
        lambda: optimizer.expect(wrong),
        lambda: optimizer.predict([wrong]),
        lambda: pt.minimize(exact, SPACE, n_evals=3, x0=wrong),
    ):
        with pytest.raises(InvalidInput, match="trees is not active here, only if model is 'fores"):
            refused()
    assert optimizer.n_told == 2


def test_replicates_agree_whatever_stood_in_the_coordinates():
    """The model is told of one point, not of two that the function cannot tell apart."""
    optimizer = pt.Optimizer(SPACE, seed=0)
    for value in (0.3, 0.5):
        optimizer.add({"scale": 0.5, "model": "mean"}, value)
    assert len(np.unique(optimizer.trials.units, axis=0)) == 1


def test_a_constraint_gets_what_is_active():
    seen = []

    def small(**params):
        assert params.keys() == KEYWORDS[params["model"], params.get("kernel")]
        seen.append(params["model"])
        return params["model"] != "svm" and params["scale"] < 0.8

    result = pt.minimize(noisy(1), SPACE, n_evals=12, feasible=small)
    assert {"svm", "forest", "mean"} <= set(seen)
    assert {p["model"] for p in result.history.params} <= {"forest", "mean"}
    with pytest.raises(InvalidInput, match="with keywords those active of scale, model, C, kernel"):
        pt.Optimizer(SPACE, feasible=lambda scale, model: True)


def test_failures_stay_in_their_branch():
    def failing(**params):
        if params["model"] == "forest":
            raise RuntimeError("no forest")
        return exact(**params)

    result = pt.minimize(failing, SPACE, n_evals=20, seed=2)
    assert result.nfail >= 1
    assert result.params["model"] != "forest"
    assert figure_of(result).view


def test_finite_branches_are_a_list_for_proven_policies():
    finite = {"model": {"a": {"x": (0.0, 1.0, 0.1)}, "b": {"n": (1, 5, "int")}, "c": {}}}
    domain = domain_of(pt.Space(finite))
    assert isinstance(domain, pt.Arms)
    assert domain.size == 11 + 5 + 1
    told = {"norm_bound": 1.0, "noise": pt.Gaussian(0.01), "kernel": pt.Matern(2.5, 0.5)}
    value = {"a": lambda x: (x - 0.3) ** 2, "b": lambda n: 0.3 + n / 50, "c": lambda: 0.25}
    result = pt.minimize(lambda model, **own: value[model](**own), finite, n_evals=80, **told)
    assert result.guarantee == "proven"
    assert result.params["model"] == "a"
    with pytest.raises(InvalidInput, match="proven bounds need a space that is fully continuous"):
        pt.Optimizer(SPACE, **told)


def test_a_figure_shows_what_is_active_in_the_answer(result):
    view = figure_of(result).view
    curves = {curve.axis.name: curve for curve in view}
    assert list(curves) == ["scale", "model", "C", "kernel", "gamma"]
    assert all(isinstance(curve, Curve) for curve in view)
    params = result.history.params
    assert len(curves["gamma"].dots) == sum("gamma" in p for p in params)
    assert len(curves["scale"].dots) == len(params)
    assert np.isfinite(curves["model"].band.mean).all()
    best = min(
        (v, p["trees"]) for v, p in zip(result.history.values, params, strict=True) if "trees" in p
    )
    at = {"scale": result.params["scale"], "model": "forest", "trees": best[1]}
    expected = result.optimizer.predict([at]).mean[0]
    assert curves["model"].band.mean[1] == pytest.approx(expected)


def test_a_plot_is_drawn(result, tmp_path):
    pytest.importorskip("matplotlib")
    result.plot(tmp_path / "run.png")
    assert (tmp_path / "run.png").stat().st_size > 10_000


def test_studies_keep_conditional_spaces(tmp_path):
    path = tmp_path / "tune.db"
    first = pt.minimize(noisy(3), SPACE, n_evals=14, study=path, seed=5)
    again = pt.minimize(noisy(4), SPACE, n_evals=20, study=path, seed=5)
    assert first.nfev == 14
    assert again.nfev == 20
    plain = pt.minimize(noisy(3), SPACE, n_evals=14, seed=5)
    assert plain.history.params == again.history.params[:14]
    with pt.Study.open(path) as study:
        assert study.space == pt.Space(SPACE)
        trial = study.ask()
        assert trial.params.keys() in KEYWORDS.values()
        table = columns(study)
        assert table["trees"] == [p.get("trees") for p in study.trials.params]
        export(study, tmp_path / "trials.csv")
        pytest.importorskip("pyarrow")
        export(study, tmp_path / "trials.parquet")
    with (tmp_path / "trials.csv").open(newline="") as lines:
        for row in csv.DictReader(lines):
            assert (row["trees"] == "") == (row["model"] != "forest")
    from pyarrow import parquet

    read = parquet.read_table(tmp_path / "trials.parquet").to_pydict()
    assert read["trees"] == table["trees"]
    other = {**SPACE, "model": {**SPACE["model"], "mean": {"by": (0.0, 1.0)}}}
    with pytest.raises(InvalidInput, match=r"\(only given: by 0 to 1 \(if model is 'mean'\)\)"):
        pt.Study.open(path, other)


def test_an_interrupted_study_goes_on_as_if_nothing_had_happened(tmp_path):
    whole, parts = tmp_path / "whole.db", tmp_path / "parts.db"
    one = pt.minimize(exact, SPACE, n_evals=20, study=whole)
    for n in (5, 13, 20):
        last = pt.minimize(exact, SPACE, n_evals=n, study=parts)
    assert one.history.params == last.history.params


def test_names_with_other_ranges_in_branches_stay_apart():
    space = {"kind": {"a": {"x": (0.0, 1.0)}, "b": {"x": (10.0, 30.0)}}}
    spoken = {"a": lambda x: 0.5 + x, "b": lambda x: abs(x - 25) / 20}
    result = pt.minimize(lambda kind, x: spoken[kind](x), space, n_evals=30)
    assert result.params["kind"] == "b"
    assert result.params["x"] == pytest.approx(25, abs=1.0)
    x = figure_of(result).view[1]
    assert x.dots[:, 0].min() >= 10.0


def test_bounds_hold_with_branches():
    """What the posterior says of points in all branches holds, mostly; control: a third of it."""
    inside = narrow = total = 0
    random = np.random.default_rng(0)
    for seed in range(3):
        result = pt.minimize(noisy(seed + 10), SPACE, n_evals=30, seed=seed)
        space = result.optimizer.space
        units = space.spread(random.random((60, space.dim)))
        points = [space.decode(unit) for unit in units]
        truth = np.array([exact(**point) for point in points])
        posterior = result.optimizer.predict(points)
        away = np.abs(truth - posterior.mean)
        inside += int(((posterior.lower <= truth) & (truth <= posterior.upper)).sum())
        narrow += int((away <= 0.5 * posterior.std).sum())
        total += len(points)
    assert inside / total >= 0.95
    assert narrow / total < 0.75


@pytest.mark.parametrize(
    "function",
    [
        lambda model, C: C,
        lambda model, C, trees: C,
        lambda model, C=None: C,
        lambda model, C, trial: C,
    ],
)
@pytest.mark.parametrize("workers", [0, 2])
def test_a_function_that_some_branch_cannot_call_is_noticed_before_the_run(function, workers):
    space = {"model": {"svm": {"C": (1e-3, 1e3, "log")}, "forest": {"trees": (10, 500, "int")}}}
    calls = []

    @functools.wraps(function)
    def counted(**params):
        calls.append(params)
        return function(**params)

    with contextlib.ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(workers)) if workers else None
        with pytest.raises(pt.errors.EvaluationFailed, match=r"\*\*own") as error:
            pt.minimize(counted, space, n_evals=20, executor=pool)
    assert "model = " in str(error.value)
    assert calls == []


def test_a_default_for_what_other_branches_have_is_enough():
    space = {"model": {"svm": {"C": (1e-3, 1e3, "log")}, "forest": {"trees": (10, 500, "int")}}}
    result = pt.minimize(lambda model, C=None, trees=None: C or trees, space, n_evals=12)
    assert result.nfail == 0
