"""Constraints that only an evaluation shows: what may be written, told, and is answered."""

import copy
import math
import pickle

import numpy as np
import pytest

import partita as pt
from partita.errors import InvalidInput
from partita.optimize.constraints import Constraints, Measured
from partita.optimize.values import Observation, WrongKind

SQUARE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def observed(params):
    """The best of x + y with xy at most 0.3 is 1.3, at two corners."""
    x, y = params["x"], params["y"]
    return {"gain": x + y, "cost": x * y}


def play(optimizer, n, f=observed):
    for _ in range(n):
        trial = optimizer.ask()
        optimizer.tell(trial, f(trial.params))
    return optimizer


# -- what may be written ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name", "interval"),
    [
        ("cost <= 10", "cost", (-math.inf, 10.0)),
        ("cost<10", "cost", (-math.inf, 10.0)),
        (" cost  ≤ -1e-3 ", "cost", (-math.inf, -0.001)),
        ("accuracy >= .9", "accuracy", (0.9, math.inf)),
        ("accuracy > 9.", "accuracy", (9.0, math.inf)),
        ("10 >= cost", "cost", (-math.inf, 10.0)),
        ("1E+2 > cost", "cost", (-math.inf, 100.0)),
        ("-2 < größe_2", "größe_2", (-2.0, math.inf)),
        ("0 ≤ val.loss", "val.loss", (0.0, math.inf)),
    ],
)
def test_a_name_a_sign_and_a_number(text, name, interval):
    read = Constraints([text])
    assert (read.names, read.intervals) == ((name,), (interval,))
    assert read.texts == (" ".join(text.split()),)


def test_one_text_is_a_list_of_one_and_a_range_is_two():
    assert Constraints("cost <= 1").texts == ("cost <= 1",)
    both = Constraints(["cost <= 3", "b > 0", "1 <= cost"])
    assert both.names == ("cost", "b")
    assert both.intervals == ((1.0, 3.0), (0.0, math.inf))
    assert Constraints(None).names == Constraints([]).names == ()
    for text in ("1 <= cost <= 3", "3 > cost ≥ 1.0"):
        one = Constraints([text, "b > 0"])
        assert (one.names, one.intervals) == (both.names, both.intervals)
        assert one.texts == (text, "b > 0")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["cost"], "'cost' is not understood: write a name, a sign and a number"),
        (["cost <= ten"], "not understood"),
        (["cost <= nan"], "not understood"),
        (["cost <= inf"], "not understood"),
        (["cost =< 1"], "not understood"),
        (["2 <= 3"], "not understood"),
        (["a <= b"], "not understood"),
        (["3cost <= 1"], "not understood"),
        ([""], "not understood"),
        (["cost <= 1; import os"], "not understood"),
        (["cost = 3"], "an equation is never met exactly"),
        (["cost == 3"], "an equation is never met exactly"),
        (["1 < cost > 3"], "write a range as"),
        (["1 < cost < 3 < 4"], "write a range as"),
        (["3 <= cost <= 1"], "which leaves no room"),
        (["1 <= cost <= 3", "cost < 2"], "has a bound on that side already"),
        (["1 <= x <= 3"], "about x, a parameter"),
        (["cost <= 1e300"], "at most 1e.150 in size"),
        (["cost <= 3", "cost < 2"], "cost has a bound on that side already"),
        (["cost <= 1", "cost >= 2"], "leaves no room"),
        (["x <= 0.5"], "about x, a parameter.*give feasible"),
        ([3], "give a list of text"),
        (3, "give a list of text"),
        ([lambda cost: cost < 3], "for feasible"),
    ],
)
def test_what_is_not_understood_is_refused_with_what_to_write(given, message):
    with pytest.raises(InvalidInput, match=message):
        pt.Optimizer(SQUARE, constraints=given)


def test_policies_that_model_nothing_else_refuse():
    known = {"norm_bound": 1.0, "noise": pt.Uniform(-1, 1), "kernel": pt.Matern(1.5, 0.3)}
    with pytest.raises(InvalidInput, match=r"PiGPUCB has no model of other.*so that CalibratedUCB"):
        pt.Optimizer(SQUARE, constraints=["cost <= 1"], **known)
    with pytest.raises(InvalidInput, match="UniformSampling has no model of other"):
        pt.Optimizer(SQUARE, constraints=["cost <= 1"], policy="uniform")


# -- what is told ----------------------------------------------------------------------------------


def test_the_objective_is_the_one_name_that_no_constraint_has():
    read = Constraints(["cost <= 10", "ok >= 1"])
    assert read.observation({"ok": True, "loss": 0.3, "cost": np.float32(2.0)}) == Observation(
        0.3, None, (2.0, 1.0)
    )
    assert read.observation({"ok": 1, "loss": (0.3, 0.1), "cost": 2}).std == 0.1
    assert read.observation({"ok": 1, "loss": 0.3, "cost": 2}, 0.2).std == 0.2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            1.0,
            r"the value is 1.0: with constraints give a dict, such as \{'objective': ..., 'cost'",
        ),
        ((1.0, 2.0), "with constraints give a dict"),
        (None, "the value is None: with constraints"),
        ({}, "has no 'cost'"),
        ({"loss": 1.0}, "has no 'cost'"),
        ({"cost": 1.0}, "has no name that no constraint has"),
        ({"cost": 1.0, "loss": 1.0, "time": 2.0}, "has 2 names that no constraint has"),
        ({"cost": "dear", "loss": 1.0}, "cost: the value is 'dear': give one number"),
        ({"cost": None, "loss": 1.0}, "cost: the value is None"),
        ({"cost": math.nan, "loss": 1.0}, "cost: the value is nan"),
        ({"cost": 1.0, "loss": math.inf}, "the value is inf"),
        ({"cost": (1.0, 0.1), "loss": 1.0}, "cost: the value is"),
    ],
)
def test_anything_else_is_refused_and_changes_nothing(given, message):
    optimizer = pt.Optimizer(SQUARE, constraints=["cost <= 10"])
    trial = optimizer.ask()
    with pytest.raises(InvalidInput, match=message):
        optimizer.tell(trial, given)
    with pytest.raises(InvalidInput, match=message):
        optimizer.add({"x": 0.5, "y": 0.5}, given)
    assert (optimizer.n_pending, optimizer.n_told, len(optimizer.trials)) == (1, 0, 1)
    optimizer.tell(trial, {"loss": 1.0, "cost": 2.0})
    assert optimizer.n_told == 1


def test_a_dict_without_constraints_is_refused_and_says_what_to_write():
    optimizer = pt.Optimizer(SQUARE)
    trial = optimizer.ask()
    with pytest.raises(WrongKind, match=r'needs constraints, such as constraints=\["cost <= 10"\]'):
        optimizer.tell(trial, {"loss": 1.0, "cost": 2.0})
    assert optimizer.n_pending == 1


def test_records_have_the_values():
    optimizer = play(pt.Optimizer(SQUARE, constraints=["cost <= 0.3"]), 3)
    optimizer.add({"x": 0.5, "y": 0.25}, {"gain": 0.75, "cost": 0.125})
    optimizer.fail(optimizer.ask())
    trials = optimizer.trials
    assert trials.quantities == ("cost",)
    assert trials[3].values == {"cost": 0.125}
    assert trials[4].values is None
    assert trials[4].state == "failed"
    assert np.isnan(trials.measured[4]).all()
    assert trials.finished[1:].measured.shape == (3, 1)
    assert pt.Optimizer(SQUARE).trials.measured.shape == (0, 0)


# -- what is answered ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
def test_the_answer_is_feasible_and_nearly_the_best(seed):
    result = pt.maximize(
        lambda **p: observed(p), SQUARE, n_evals=40, seed=seed, constraints=["cost <= 0.3"]
    )
    x, y = result.x
    assert x * y <= 0.3 + 1e-9
    assert x + y >= 1.28
    known = result.constraints["cost"]
    assert known.constraint == "cost <= 0.3"
    assert known.lower <= known.mean <= known.upper
    assert known.mean == pytest.approx(x * y, abs=0.01)
    assert known.probability >= 0.9
    assert result.success
    assert "cost <= 0.3: " in repr(result)
    assert result.certificate >= 1.3 - (x + y) - 1e-9  # of feasible points, by the models
    assert result.certificate < 0.5  # without constraints it is 2 - 1.3 or more
    # The control: who knows of no constraint goes to the corner where both are 1.
    free = pt.maximize(lambda x, y: x + y, SQUARE, n_evals=40, seed=seed)
    assert free.x[0] * free.x[1] > 0.9


def test_noisy_quantities_are_feasible_with_the_probability_that_is_promised():
    random = np.random.default_rng(3)
    kept = 0
    for seed in range(4):
        optimizer = pt.Optimizer(
            SQUARE, direction="maximize", seed=seed, constraints=["cost <= 0.3"]
        )

        def noisy(params):
            exact = observed(params)
            return {name: value + 0.02 * random.normal() for name, value in exact.items()}

        play(optimizer, 30, noisy)
        params = optimizer.recommend().params
        assert optimizer.constraints_at(params)["cost"].probability >= 0.9
        assert sum(params.values()) > 1.0
        kept += params["x"] * params["y"] <= 0.3
    assert kept >= 3


def test_a_range_and_two_quantities():
    def f(params):
        return {"far": params["x"], "sum": params["x"] + params["y"], "gap": params["y"]}

    limits = ["sum >= 0.9", "sum <= 1.0", "gap < 0.5"]
    optimizer = play(pt.Optimizer(SQUARE, constraints=limits), 40, f)
    best = optimizer.recommend().params
    assert 0.9 <= best["x"] + best["y"] <= 1.0
    assert best["y"] < 0.5
    assert best["x"] < 0.46
    assert optimizer.constraints_at(best)["sum"].constraint == "sum >= 0.9 and sum <= 1.0"


def test_if_no_point_is_feasible_the_least_violated_is_named_so():
    result = pt.minimize(
        lambda x, y: {"loss": x, "cost": 2.0 + x + y}, SQUARE, n_evals=20, constraints=["cost <= 1"]
    )
    assert not result.success
    assert "No point evaluated is feasible with probability 0.9" in result.message
    assert "cost <= 1: 2" in result.message
    assert sum(result.x) < 0.2  # where the cost is least
    assert result.constraints["cost"].probability < 0.01


def test_before_there_are_enough_values_nothing_is_promised():
    optimizer = play(pt.Optimizer(SQUARE, constraints=["cost <= 0.3"]), 1)
    known = optimizer.constraints_at(optimizer.recommend().params)["cost"]
    assert math.isnan(known.mean)
    assert math.isnan(known.probability)
    assert pt.Optimizer(SQUARE).constraints_at({"x": 0.5, "y": 0.5}) == {}


def test_a_quantity_that_never_varies_is_no_matter():
    for cost, feasible in ((0.0, True), (0.002, False)):
        result = pt.minimize(
            lambda x, cost=cost: {"loss": (x - 0.3) ** 2, "cost": cost},
            {"x": (0.0, 1.0)},
            n_evals=15,
            constraints=["cost <= 1e-3"],
        )
        assert bool(result.success) is feasible


@pytest.mark.parametrize("space", [{"x": [0.1, 0.2, 0.6], "y": (0, 5, "int")}, [(0.0, 1.0)] * 2])
def test_other_spaces(space):
    def f(params):
        x, y = params.values() if isinstance(params, dict) else params
        return {"gain": float(x + y), "cost": float(x * y)}

    optimizer = pt.Optimizer(space, direction="maximize", constraints=["cost <= 0.55"])
    best = play(optimizer, 25, f).recommend()
    assert f(best.params)["cost"] <= 0.55


# -- as an object ----------------------------------------------------------------------------------


def test_copies_and_pickles_ask_for_the_same():
    optimizer = play(pt.Optimizer(SQUARE, constraints=["cost <= 0.3"]), 12)
    optimizer.fail(optimizer.ask())
    twins = [copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))]
    asked = [play(each, 6).trials.units for each in (optimizer, *twins)]
    assert all(np.array_equal(asked[0], units) for units in asked[1:])


def test_a_policy_made_anew_knows_the_quantities_and_the_failures():
    optimizer = play(pt.Optimizer(SQUARE, constraints=["cost <= 0.3"]), 12)
    for _ in range(3):
        optimizer.fail(optimizer.ask())
    best = {"x": 0.25, "y": 0.75}
    before = optimizer.constraints_at(best)["cost"].mean
    optimizer._changed_by = "tell"  # as an interrupt leaves it
    optimizer.cancel(optimizer.ask())
    after = optimizer.constraints_at(best)["cost"].mean
    assert after == pytest.approx(before, abs=0.02)
    assert optimizer.policy._limits.success.seen == 12 + 3


def test_the_function_is_wrapped_so_that_workers_can_have_it():
    wrapped = pickle.loads(pickle.dumps(Measured(dict_of, Constraints(["cost <= 1"]))))
    assert wrapped(x=2.0) == Observation(2.0, None, (4.0,))


def dict_of(x):
    return {"loss": x, "cost": x**2}


# -- many at once ----------------------------------------------------------------------------------


POINTS = np.random.default_rng(3).random((30, 2))


def many(form):
    """What is observed at the points, in one of the forms that `add` takes."""
    rows = [observed({"x": x, "y": y}) for x, y in POINTS.tolist()]
    columns = {name: [row[name] for row in rows] for name in ("gain", "cost")}
    if form == "frame":
        return pytest.importorskip("pandas").DataFrame(columns)
    return rows if form == "dicts" else columns


@pytest.mark.parametrize("form", ["dicts", "columns", "frame"])
def test_many_values_by_name_are_added_at_once(form):
    optimizer = pt.Optimizer(SQUARE, direction="maximize", constraints=["cost <= 0.3"])
    assert optimizer.add(POINTS, many(form)) == list(range(30))
    assert optimizer.trials[7].values == {"cost": pytest.approx(POINTS[7].prod())}
    np.testing.assert_array_equal(optimizer.trials.values, POINTS.sum(axis=1))
    best = optimizer.recommend().params
    assert best["x"] * best["y"] <= 0.3
    at = optimizer.constraints_at({"x": 0.5, "y": 0.4})["cost"]
    assert at.lower <= 0.2 <= at.upper < 0.3
    rebuilt = copy.deepcopy(optimizer)
    rebuilt._changed_by = "add"  # as after an interrupt
    assert rebuilt.ask().params == optimizer.ask().params


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"gain": [1.0, 2.0]}, "row 0 .* has no 'cost'"),
        ({"gain": [1.0, 2.0], "cost": [1.0]}, "different lengths"),
        ({"gain": [1.0, 2.0], "cost": 1.0}, "cost=1.0 is not a column"),
        ({"gain": [1.0, 2.0, 3.0], "cost": [1.0] * 3}, "2 rows of parameters but 3 entries"),
        ([1.0, 2.0], "row 0 .* the value is 1.0: with constraints give a dict"),
        ([{"gain": 1.0, "cost": 2.0}, {"gain": 1.0, "cost": "dear"}], "row 1 .* cost: the value"),
    ],
)
def test_many_that_cannot_be_used_add_nothing(values, message):
    optimizer = pt.Optimizer(SQUARE, constraints=["cost <= 0.3"])
    with pytest.raises(InvalidInput, match=message):
        optimizer.add(POINTS[:2], values)
    assert optimizer.n_told == 0


def test_the_objective_has_one_name():
    optimizer = pt.Optimizer(SQUARE, constraints=["cost <= 0.3"])
    optimizer.tell(optimizer.ask(), {"loss": 1.0, "cost": 0.1})
    trial = optimizer.ask()
    with pytest.raises(WrongKind, match="has 'error' where earlier values had 'loss'"):
        optimizer.tell(trial, {"error": 1.0, "cost": 0.1})
    assert optimizer.n_pending == 1
    optimizer.tell(trial, {"loss": 1.0, "cost": 0.1})
    # A value that is refused names nothing.
    fresh = Constraints(["cost <= 0.3"])
    with pytest.raises(InvalidInput):
        fresh.observation({"loss": 1.0, "cost": "dear"})
    assert fresh.observation({"error": 1.0, "cost": 0.1}).value == 1.0
