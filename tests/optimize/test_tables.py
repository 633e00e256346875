"""Trials as data frames and Arrow tables."""

import random
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np
import pytest

import partita as pt
from partita._optional import MissingPackage
from partita.optimize.tables import as_arrow, as_dataframe, columns_of, typed
from partita.optimize.trials import Trials
from partita.study import Study

SPACE = {
    "rate": (1e-4, 1e-1, "log"),
    "depth": (1, 12, "int"),
    "kind": ["a", "b"],
    "on": bool,
    "any": [1, "one", None],
}
FUNCTIONS = {"f": [len, max], "value": (0, 1)}


@pytest.fixture(params=["optimizer", "study"])
def player(request, tmp_path):
    """Finished, failed, finished with known noise, pending."""
    made = pt.Optimizer if request.param == "optimizer" else Study.open
    place = () if request.param == "optimizer" else (tmp_path / "tune.db",)
    player = made(*place, SPACE, seed=3)
    trials = [player.ask() for _ in range(4)]
    player.tell(trials[0], 1.5)
    player.cancel(trials[1])
    player.tell(trials[2], -2.0, std=0.25)
    return player


def test_a_data_frame_has_a_row_a_trial(player):
    pandas = pytest.importorskip("pandas")
    frame = player.trials.to_dataframe()
    assert list(frame) == ["number", "state", "value", "std", *SPACE]
    assert frame["state"].tolist() == ["finished", "failed", "finished", "pending"]
    np.testing.assert_array_equal(frame["value"], [1.5, np.nan, -2.0, np.nan])
    np.testing.assert_array_equal(frame["std"], [np.nan, np.nan, 0.25, np.nan])
    kinds = {name: str(kind) for name, kind in frame.dtypes.items()}
    numbers = ("number", "value", "rate", "depth", "on")
    assert [kinds[name] for name in numbers] == ["int64", "float64", "float64", "int64", "bool"]
    for name in ("rate", "depth", "kind", "on"):
        assert frame[name].tolist() == [row[name] for row in player.trials.params]
    assert "std" not in player.trials[:1].to_dataframe()
    assert isinstance(frame, pandas.DataFrame)


def test_an_arrow_table_has_the_same_columns(player):
    arrow = pytest.importorskip("pyarrow")
    table = player.trials.to_arrow()
    assert table.column_names == ["number", "state", "value", "std", *SPACE]
    assert table["value"].to_pylist() == [1.5, None, -2.0, None]
    assert table.schema.field("depth").type == arrow.int64()
    # Choices of several kinds are words.
    words = [None if v is None else str(v) for v in (row["any"] for row in player.trials.params)]
    assert table["any"].to_pylist() == words


def test_a_history_is_a_sequence_and_a_table():
    pytest.importorskip("pandas")
    result = pt.minimize(lambda x: float(x.sum()), [(0, 1), (2, 5)], n_evals=6, policy="uniform")
    history = result.history
    assert isinstance(history, Sequence)
    assert len(history) == 6
    assert history[-1].number == 5
    assert isinstance(history[1:3], Trials)
    assert [record.number for record in reversed(history)] == [5, 4, 3, 2, 1, 0]
    assert history.index(history[2]) == 2  # records of arrays can be compared
    assert history[0] in history
    assert history.count(history[1]) == 1
    assert history[0] != history[1]
    assert history[0] != "a word"
    with pytest.raises(IndexError):
        history[6]
    frame = history.to_dataframe()
    assert list(frame) == ["number", "state", "value", "x0", "x1"]
    np.testing.assert_array_equal(frame[["x0", "x1"]].to_numpy(), history.x)
    assert history.to_arrow()["x1"].to_pylist() == frame["x1"].tolist()


def test_names_that_are_taken_and_choices_of_any_kind():
    pytest.importorskip("pandas")
    optimizer = pt.Optimizer(FUNCTIONS)
    optimizer.tell(optimizer.ask(), 1.0)
    frame = optimizer.trials.to_dataframe()
    assert list(frame) == ["number", "state", "value", "f", "param_value"]
    assert frame["f"][0] in (len, max)
    assert optimizer.trials.to_arrow()["f"].to_pylist() == [str(frame["f"][0])]
    both = pt.Optimizer({"value": (0, 1), "param_value": (0, 1)}).trials.to_dataframe()
    assert len(set(both)) == len(list(both)) == 5


class Varying(Trials):
    """Trials of which some lack a parameter, as those of a space with branches do."""

    @property
    def params(self):
        rows = super().params
        for i, row in enumerate(rows):
            del row["rate" if i % 2 else "depth"]
        return rows


def test_a_parameter_that_a_trial_does_not_have_is_empty():
    pytest.importorskip("pandas")
    optimizer = pt.Optimizer({"rate": (0.0, 1.0), "depth": (1, 12, "int"), "on": bool})
    for i in range(4):
        optimizer.tell(optimizer.ask(), float(i))
    full = optimizer.trials
    columns = full.numbers, full.units, full.values, full.codes, full.stds, full.measured
    trials = Varying(full.space, *columns)
    frame = trials.to_dataframe()
    assert frame["rate"].isna().tolist() == [False, True, False, True]
    assert str(frame["depth"].dtype) == "Int64"
    assert frame["depth"].isna().tolist() == [True, False, True, False]
    table = trials.to_arrow()
    assert [v is None for v in table["depth"].to_pylist()] == [True, False, True, False]


@pytest.mark.parametrize(
    ("package", "method"), [("pandas", "to_dataframe"), ("pyarrow", "to_arrow")]
)
def test_a_missing_package_is_named_with_its_extra(package, method, monkeypatch):
    trials = pt.Optimizer([(0, 1)]).trials
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackage, match=rf"{package} is needed.*'partita\[tables\]'"):
        getattr(trials, method)()


def check_columns(cases):
    """Any columns become tables of the same length, with nothing where there is nothing."""
    values = random.Random(7)
    some = [None, True, 0, -3, 2**80, 1.5, float("inf"), "word", "", (1, 2), len]
    some += [datetime(2026, 1, 1, tzinfo=UTC), b"bytes", {"a": 1}]
    for _ in range(cases):
        kinds = values.sample(some, values.randint(1, 3))
        column = values.choices(kinds, k=values.randint(0, 6))
        table = as_arrow({"c": column})
        frame = as_dataframe({"c": column})
        assert len(table) == len(frame) == len(column)
        assert [v is None for v in table["c"].to_pylist()] == [v is None for v in column]
        assert frame["c"].isna().tolist() == [v is None for v in column]
        assert len({type(v) for v in typed(column) if v is not None}) <= 1


def test_columns_of_any_kind():
    pytest.importorskip("pandas")
    check_columns(400)


def test_empty_tables():
    pytest.importorskip("pandas")
    assert columns_of(pt.Optimizer([(0, 1)]).trials) == {
        "number": [],
        "state": [],
        "value": [],
        "x0": [],
    }
    assert len(pt.Optimizer(SPACE).trials.to_dataframe()) == 0
    assert len(pt.Optimizer(SPACE).trials.to_arrow()) == 0
