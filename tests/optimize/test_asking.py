"""Batches: many trials asked for, and many values added, in one call."""

import numpy as np
import pandas as pd
import pytest

import partita as pt
from partita.errors import InvalidInput

NAMED = {"rate": (1e-4, 1e-1, "log"), "depth": (1, 12, "int"), "kind": ["a", "b", "c"]}
BOUNDS = [(0.0, 1.0), (-2.0, 3.0)]


def rows(n, seed=0):
    draw = np.random.default_rng(seed)
    return [
        {
            "rate": float(10 ** draw.uniform(-4, -1)),
            "depth": int(draw.integers(1, 13)),
            "kind": "abc"[draw.integers(3)],
        }
        for _ in range(n)
    ]


@pytest.fixture(params=["optimizer", "study"])
def make(request, tmp_path):
    """A maker of optimizers, or of studies."""
    if request.param == "optimizer":
        return pt.Optimizer
    return lambda space, **settings: pt.Study.open(tmp_path / "tune.db", space, **settings)


# -- asking --------------------------------------------------------------------------------------


def test_a_batch_is_what_single_asks_would_be(make):
    player, single = make(NAMED), pt.Optimizer(NAMED)
    batch = player.ask(count=8)
    assert [trial.number for trial in batch] == list(range(8))
    assert [trial.params for trial in batch] == [single.ask().params for _ in range(8)]
    assert player.n_pending == 8
    for trial in batch:
        player.tell(trial, float(trial.params["depth"]))
    assert player.n_told == 8
    assert player.ask(1)[0].number == 8


@pytest.mark.parametrize("count", [0, -1, True, 1.5, "2"])
def test_a_batch_of_no_size_is_refused(make, count):
    player = make(NAMED)
    with pytest.raises(InvalidInput, match="give a whole number of at least 1"):
        player.ask(count)
    assert player.n_pending == 0


def test_a_batch_that_fails_on_its_way_leaves_nothing_pending():
    optimizer = pt.Optimizer(BOUNDS, policy="uniform")
    optimizer.ask()
    real, calls = optimizer.policy._propose, []

    def propose():
        calls.append(1)
        if len(calls) == 3:
            raise RuntimeError("no more")
        return real()

    optimizer.policy._propose = propose
    with pytest.raises(RuntimeError, match="no more"):
        optimizer.ask(5)
    assert (optimizer.n_pending, optimizer.policy.pending) == (1, 1)


def test_policies_ask_for_batches_that_one_tell_settles():
    policy = pt.PiGPUCB(
        pt.Grid(9, dim=2), horizon=100, kernel=pt.Matern(1.5, 0.3), norm_bound=1.0,
        noise=pt.Gaussian(0.1),
    )  # fmt: skip
    points = policy.ask(5)
    assert points.shape == (5, 2)
    assert policy.pending == 5
    policy.tell(points, np.zeros(5))
    assert (policy.pending, policy.told) == (0, 5)
    with pytest.raises(InvalidInput, match="count=0"):
        policy.ask(0)


# -- adding --------------------------------------------------------------------------------------


def forms(given):
    columns = {name: [row[name] for row in given] for name in given[0]}
    return {
        "dicts": given,
        "columns": columns,
        "arrays": {name: np.array(column) for name, column in columns.items()},
        "frame": pd.DataFrame(given),
    }


@pytest.mark.parametrize("form", ["dicts", "columns", "arrays", "frame"])
@pytest.mark.parametrize("std", [None, 0.1, "mixed"])
def test_rows_of_every_form_become_trials(make, form, std):
    given, player = rows(30), make(NAMED)
    values = np.arange(30.0)
    stds = [0.1, None, np.nan] * 10 if std == "mixed" else std
    numbers = player.add(forms(given)[form], values, stds)
    assert numbers == list(range(30))
    trials = player.trials
    one_by_one = pt.Optimizer(NAMED)
    for i, row in enumerate(given):
        noise = stds[i] if std == "mixed" else std
        one_by_one.add(row, values[i], None if noise is None or np.isnan(noise) else noise)
    theirs = one_by_one.trials
    np.testing.assert_array_equal(trials.units, theirs.units)
    np.testing.assert_array_equal(trials.values, theirs.values)
    np.testing.assert_array_equal(trials.stds, theirs.stds)
    assert player.n_told == 30 == player.policy.told


@pytest.mark.parametrize("form", [list, np.array, pd.DataFrame])
def test_arrays_of_plain_bounds(make, form):
    X = np.random.default_rng(0).random((20, 2)) * [1, 5] - [0, 2]
    player = make(BOUNDS)
    assert player.add(form(X), list(range(20))) == list(range(20))
    np.testing.assert_allclose(player.trials.params, X, rtol=1e-12, atol=1e-12)
    assert player.add(X[0], 3.0) == 20  # one is one
    assert player.add(X[0], np.array([3.0])) == 21


@pytest.mark.parametrize("form", [list, tuple, np.array])
def test_rows_without_names_are_in_the_order_of_the_space(make, form):
    player = make({"rate": (1e-4, 1e-1, "log"), "depth": (1, 12, "int")})
    X = [[0.01, 3], [0.1, 12]]
    assert player.add(form(X), [1.0, 2.0]) == [0, 1]
    assert [list(trial.params.values()) for trial in player.trials] == X
    with pytest.raises(InvalidInput, match="has no names, and the space has 2 parameters"):
        player.add(form([[0.01, 3, 1], [0.1, 12, 1]]), [1.0, 2.0])
    assert player.n_told == 2


BRANCHES = {
    "model": {"svm": {"C": (0.0, 1.0)}, "forest": {"trees": (1, 9, "int"), "rule": [None, "gini"]}},
    "seed": (0, 9, "int"),
}


def test_a_table_of_branches_can_be_added_as_it_was_made(make):
    result = pt.minimize(lambda model, seed, **own: 1.0, BRANCHES, n_evals=20)
    table = result.history.to_dataframe()
    player = make(BRANCHES)
    player.add(table[["model", "C", "trees", "rule", "seed"]], table["value"])
    assert [trial.params for trial in player.trials] == [row.params for row in result.history]
    columns = {"model": ["svm", "forest"], "seed": [1, 2], "C": [0.5, float("nan")]}
    for broken, message in (
        ({**columns, "trees": [None, 3], "rule": [None, "gini"], "C": [None, None]}, "row 0.*C="),
        ({**columns, "trees": [3, 3], "rule": [None, "gini"]}, "row 0.*trees is not active"),
        ({**columns, "rule": [None, "gini"]}, "row 1.*trees is missing"),
        ({**columns, "model": ["svm", "tree"]}, "row 1.*model='tree'"),
    ):
        with pytest.raises(InvalidInput, match=message):
            player.add(broken, [1.0, 2.0])
    with pytest.raises(InvalidInput, match="a space with branches has no fixed columns"):
        player.add(np.zeros((2, 4)), [1.0, 2.0])
    assert player.n_told == 20


def test_one_row_and_none():
    optimizer = pt.Optimizer(NAMED)
    assert optimizer.add([], []) == []
    (row,) = rows(1)
    assert optimizer.add(row, np.array([1.0])) == 0
    assert optimizer.add([row], [1.0]) == [1]
    assert optimizer.add({name: [value] for name, value in row.items()}, [2.0]) == [2]


def bad(name):
    given, values, std = rows(9), [1.0] * 9, None
    if name == "outside":
        given[4]["rate"] = 3.0
    elif name == "missing":
        del given[4]["kind"]
    elif name == "nan":
        values[4] = np.nan
    elif name == "words":
        values[4] = "much"
    elif name == "std":
        std = [0.1] * 9
        std[4] = -1.0
    return given, values, std


@pytest.mark.parametrize("name", ["outside", "missing", "nan", "words", "std"])
def test_a_bad_row_is_named_and_none_is_added(make, name):
    player = make(NAMED)
    player.add(rows(1, 7)[0], 0.5)
    with pytest.raises(InvalidInput, match="row 4 cannot be used, so that none was added"):
        player.add(*bad(name))
    assert (player.n_told, len(player.trials), player.policy.told) == (1, 1, 1)
    assert player.add(rows(2), [1.0, 2.0]) == [1, 2]


@pytest.mark.parametrize(
    ("params", "values", "message"),
    [
        (rows(3), [1.0, 2.0], "3 rows of parameters but 2 entries of value"),
        (rows(3), 1.0, "3 rows of parameters but value=1.0"),
        ({"rate": [0.01, 0.02], "depth": [1], "kind": ["a", "b"]}, [1.0, 2.0], "different lengths"),
        ({"rate": [0.01, 0.02], "depth": 1, "kind": ["a", "b"]}, [1.0, 2.0], "depth=1 is not a co"),
        (pd.DataFrame({"rate": [0.01], "depth": [2]}), [1.0], "kind is missing"),
    ],
)
def test_what_does_not_fit_together_is_refused(make, params, values, message):
    player = make(NAMED)
    with pytest.raises(InvalidInput, match=message):
        player.add(params, values)
    assert player.n_told == 0


def test_a_constraint_names_the_row(make):
    player = make(BOUNDS, feasible=lambda x: x[0] < 0.5)
    with pytest.raises(InvalidInput, match=r"row 1 .*feasible does not allow"):
        player.add([[0.1, 0.0], [0.9, 0.0]], [1.0, 2.0])
    assert player.n_told == 0


class Picky:
    """A policy of a user's own that refuses some values."""

    def __init__(self, domain):
        self.domain, self.seen = domain, []

    def ask(self):
        return self.domain.lower + 0.5

    def tell(self, x, y):
        if y > 5:
            raise ValueError("too much")
        self.seen.append(y)

    def cancel(self, x):
        pass

    def recommend(self):
        return pt.Recommendation(self.domain.lower + 0.5, 0.0, -1.0, 1.0)


def test_a_policy_that_refuses_in_the_middle_forgets_the_others():
    optimizer = pt.Optimizer(BOUNDS, policy=Picky, direction="maximize")
    optimizer.add([0.1, 0.1], 1.0)
    with pytest.raises(ValueError, match="too much"):
        optimizer.add([[0.1, 0.1], [0.2, 0.2]], [2.0, 9.0])
    optimizer.ask()
    assert optimizer.policy.seen == [1.0]
    assert optimizer.n_told == 1


def test_a_batch_is_replayed_as_it_was(tmp_path):
    """The policy of a study that is opened again, without a snapshot, chooses the same."""
    path = tmp_path / "tune.db"
    draw = np.random.default_rng(1)
    X = draw.random((600, 2)) * [1, 5] - [0, 2]
    with pt.Study.open(path, BOUNDS) as study:
        study.add(X, ((X - 0.4) ** 2).sum(axis=1) + 0.1 * draw.normal(size=600))
        other = pt.Study.open(path)  # reads the log while the first goes on
        study.add(X[0], 0.3)
        expected = [trial.params.tolist() for trial in study.ask(3)]
        assert other.n_told == 601
    import sqlite3
    from contextlib import closing

    with closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM snapshot")
        db.commit()
    with pt.Study.open(path) as again:
        assert again.differing == 0
        assert [trial.params.tolist() for trial in again.trials[601:]] == expected


def test_bulk_costs_a_fraction_of_single_adds():
    """The settings are fitted a few times, not once for each 40 % more values."""
    from partita.policies.calibrated import calibrated_ucb

    fits = []
    real = calibrated_ucb.CalibratedUCB._refit

    class Counting(pt.CalibratedUCB):
        def _refit(self, afresh=False):
            fits.append(self._seen)
            real(self, afresh)

    X = np.random.default_rng(0).random((3000, 2))
    optimizer = pt.Optimizer([(0, 1)] * 2, policy=Counting)
    optimizer.add(X, ((X - 0.3) ** 2).sum(axis=1))
    assert fits[-1] == 3000
    assert len([n for n in fits if n >= 40]) == 1
    best = optimizer.recommend()
    assert np.abs(best.x - 0.3).max() < 0.05
