"""Contexts and fixed values: what is given comes back, what is learned, what is refused."""

import copy
import math
import pickle

import numpy as np
import pytest

import partita as pt
from partita.errors import InvalidInput
from partita.optimize.contexts import PARTS

SPACE = {"price": (0.0, 1.0), "kind": ["a", "b"]}
CONTEXT = {
    "hour": (0, 24),
    "load": (1, 1000, "log"),
    "rank": (1, 5, "int"),
    "segment": ["new", "old", "vip"],
    "vip": bool,
}


def drawn(random):
    return {
        "hour": float(random.uniform(0, 24)),
        "load": float(10 ** random.uniform(0, 3)),
        "rank": int(random.integers(1, 6)),
        "segment": ["new", "old", "vip"][random.integers(3)],
        "vip": bool(random.integers(2)),
    }


def value_of(trial, random):
    away = trial.params["price"] - trial.context["hour"] / 24
    return math.exp(-((away / 0.3) ** 2)) + 0.1 * random.standard_normal()


def played(optimizer, rounds, seed=0, pending=1):
    """Contexts of every kind, several pending at once, told in another order."""
    random, open_ = np.random.default_rng(seed), []
    for _ in range(rounds):
        context = drawn(random)
        trial = optimizer.ask(context=context)
        assert trial.context == context
        assert set(trial.params) == set(SPACE)
        open_.append(trial)
        if len(open_) >= pending:
            done = open_.pop(int(random.integers(len(open_))))
            optimizer.tell(done, value_of(done, random))
    return optimizer


@pytest.fixture(scope="module")
def learned():
    made = pt.Optimizer(SPACE, context=CONTEXT, direction="maximize")
    return played(made, 150, pending=4)


def test_contexts_of_every_kind_come_back_and_the_action_follows_them(learned):
    assert learned.n_told == 147
    rest = {"load": 30.0, "rank": 3, "segment": "old", "vip": False}
    best = [learned.recommend(context={"hour": h, **rest}).params["price"] for h in (5, 12, 19)]
    assert best[0] < best[1] < best[2]
    assert np.abs(np.array(best) - np.array([5, 12, 19]) / 24).max() < 0.2
    # The control: without the context, no single price is right for all hours.
    assert best[2] - best[0] > 0.3


def test_predictions_and_bounds_are_those_of_the_context(learned):
    context = {"hour": 7.0, "load": 2.0, "rank": 1, "segment": "new", "vip": True}
    best = learned.recommend(context=context)
    again = learned.predict([best.params], context=context)
    assert again.lower[0] <= again.mean[0] <= again.upper[0]
    assert again.mean[0] == pytest.approx(best.mean, abs=0.2)
    inside = learned.predict([{**best.params, **context}])
    assert inside.mean[0] == again.mean[0]
    assert learned.certificate(context=context) > 0


def test_all_answers_see_a_context_as_the_choice_sees_it():
    """Contexts within the same of PARTS parts have the same answers, and come back as given."""
    optimizer = pt.Optimizer({"x": (0, 1)}, context={"c": (0, 1)}, direction="maximize")
    random = np.random.default_rng(1)
    for c in random.random(40).tolist():
        trial = optimizer.ask(context={"c": c})
        value = -((trial.params["x"] - c) ** 2) + 0.05 * random.standard_normal()
        optimizer.tell(trial, value)
    one, same, other = ({"c": (10 + part) / PARTS} for part in (0.1, 0.9, 1.1))
    assert optimizer.recommend(context=one) == optimizer.recommend(context=same)
    assert optimizer.certificate(context=one) == optimizer.certificate(context=same)
    assert optimizer.certificate(context=one) != optimizer.certificate(context=other)
    best = optimizer.recommend(context=one)
    near, far = (optimizer.predict([best.params], context=c).mean[0] for c in (same, other))
    assert near == pytest.approx(best.mean, abs=1e-12)
    assert far != near
    unit = optimizer.game.recommend({1: one["c"]}).x
    assert unit[1] == one["c"]


def test_thousands_of_contexts_are_answered_at_once(learned, monkeypatch):
    rest = {"load": 30.0, "rank": 3, "segment": "old", "vip": False}
    contexts = [{"hour": h, **rest} for h in np.linspace(0, 24, 2000).tolist()]
    calls = []
    recommend = learned.policy.recommend_fixed_each
    monkeypatch.setattr(
        learned.policy,
        "recommend_fixed_each",
        lambda fixed: calls.extend(fixed) or recommend(fixed),
    )
    answers = learned.recommend(context=contexts)
    assert len(calls) == PARTS
    monkeypatch.undo()
    assert len(answers) == 2000
    for i in (0, 700, 1999):
        assert answers[i] == learned.recommend(context=contexts[i])
    assert learned.recommend(context=[]) == []
    with pytest.raises(InvalidInput, match="the context hour is missing"):
        learned.recommend(context=[contexts[0], rest])


def test_contexts_share_posteriors_and_are_answered_as_one_at_a_time(monkeypatch):
    optimizer = pt.Optimizer(
        {"x": (0, 1)}, context={"a": (0, 1), "b": (0, 1)}, direction="maximize", seed=1
    )
    random = np.random.default_rng(1)
    rows = random.random((700, 3))
    values = 1 - (rows[:, 0] - 0.5 * rows[:, 1]) ** 2 + 0.1 * random.standard_normal(700)
    params, context = {"x": rows[:, 0]}, {"a": rows[:, 1], "b": rows[:, 2]}
    optimizer.add(params, values, context=context)
    regions = len(optimizer.policy._regions)
    assert regions > 2
    contexts = [{"a": a, "b": b} for a, b in random.random((300, 2)).tolist()]
    made = []
    answering = type(optimizer.policy._model).answering
    monkeypatch.setattr(
        type(optimizer.policy._model),
        "answering",
        lambda *args: made.append(1) or answering(*args),
    )
    answers = optimizer.recommend(context=contexts)
    assert 1 < len(made) <= regions
    assert answers == [optimizer.recommend(context=one) for one in contexts]
    best = np.array([one["a"] for one in contexts]) * 0.5
    assert np.abs([answer.params["x"] for answer in answers] - best).mean() < 0.1


def test_the_certificate_without_a_context_is_of_the_worst():
    optimizer = pt.Optimizer({"x": (0, 1)}, context={"c": ["a", "b"]}, direction="maximize")
    random = np.random.default_rng(0)
    for i in range(90):
        name = "a" if i % 9 else "b"
        trial = optimizer.ask(context={"c": name})
        optimizer.tell(trial, math.sin(5 * trial.params["x"]) + 0.1 * random.standard_normal())
    each = [optimizer.certificate(context={"c": name}) for name in "ab"]
    assert optimizer.certificate() == max(each) < math.inf


def test_the_same_seed_gives_the_same_trials_and_copies_go_on_alike():
    one, other = (
        played(pt.Optimizer(SPACE, context=CONTEXT, direction="maximize"), 40, pending=3)
        for _ in range(2)
    )
    assert np.array_equal(one.trials.units, other.trials.units)
    copies = copy.deepcopy(one), pickle.loads(pickle.dumps(one))
    context = drawn(np.random.default_rng(9))
    expected = one.ask(context=context)
    for twin in copies:
        assert twin.ask(context=context).params == expected.params


def test_values_for_contexts_never_asked_are_learned():
    optimizer = pt.Optimizer({"x": (0, 1)}, context={"c": (0, 1)}, direction="maximize")
    random = np.random.default_rng(0)
    for x, c in random.random((80, 2)):
        optimizer.add({"x": x}, -((x - c) ** 2), context={"c": c})
    points = random.random((80, 2))
    columns = {"x": points[:, 0], "c": points[:, 1]}
    optimizer.add(columns, -((points[:, 0] - points[:, 1]) ** 2))
    assert optimizer.n_told == 160
    for c in (0.2, 0.8):
        assert optimizer.recommend(context={"c": c}).params["x"] == pytest.approx(c, abs=0.12)


@pytest.mark.parametrize(
    ("context", "words"),
    [
        (None, "is missing"),
        ({}, "is missing"),
        ({"c": 2.0, "s": "a"}, "give a number from 0.0 to 1.0"),
        ({"c": math.nan, "s": "a"}, "give a number"),
        ({"c": 0.5}, "the context s is missing"),
        ({"c": 0.5, "s": "z"}, "s='z'"),
        ({"c": 0.5, "s": "a", "q": 1}, "there is no context 'q'"),
        ([0.5, "a"], "give a dict"),
    ],
)
@pytest.mark.parametrize("verb", ["ask", "recommend"])
def test_contexts_that_cannot_be_are_refused_and_change_nothing(context, words, verb):
    optimizer = pt.Optimizer({"x": (0, 1)}, context={"c": (0, 1), "s": ["a", "b"]})
    with pytest.raises(InvalidInput, match=verb) as error:
        getattr(optimizer, verb)(context=context)
    assert words in str(error.value)
    assert len(optimizer.trials) == 0


def test_spaces_and_policies_without_contexts_say_what_to_do():
    with pytest.raises(InvalidInput, match="has no context"):
        pt.Optimizer({"x": (0, 1)}).ask(context={"c": 1})
    with pytest.raises(InvalidInput, match="spaces with names"):
        pt.Optimizer([(0, 1)], context={"c": (0, 1)})
    with pytest.raises(InvalidInput, match="also a parameter"):
        pt.Optimizer({"x": (0, 1)}, context={"x": (0, 1)})
    with pytest.raises(InvalidInput, match="cannot choose for a context"):
        pt.Optimizer({"x": (0, 1)}, context={"c": (0, 1)}, policy="uniform")
    with pytest.raises(InvalidInput, match="constraints cannot be combined"):
        pt.Optimizer({"x": (0, 1)}, context={"c": (0, 1)}, constraints=["cost <= 1"])
    with pytest.raises(InvalidInput, match="constraints cannot be combined"):
        pt.Optimizer({"x": (0, 1)}, constraints=["cost <= 1"]).ask(fixed={"x": 0.5})
    with pytest.raises(InvalidInput, match="leave a parameter"):
        pt.Optimizer({"x": (0, 1)}, context=["x"])
    with pytest.raises(InvalidInput, match="c is a context"):
        pt.Optimizer({"x": (0, 1)}, context={"c": (0, 1)}).ask(context={"c": 0}, fixed={"c": 1})


def test_the_policy_sees_real_contexts_in_parts_so_that_replicates_add_up():
    optimizer = pt.Optimizer({"x": (0, 1, 0.25)}, context={"c": (0, 1)})
    for c in (0.5 + 0.1 / PARTS, 0.5 + 0.9 / PARTS):
        optimizer.add({"x": 0.5}, 1.0, context={"c": c})
    assert len(optimizer.policy._sites) == 1
    optimizer.add({"x": 0.5}, 1.0, context={"c": 0.5 + 1.1 / PARTS})
    assert len(optimizer.policy._sites) == 2
    assert optimizer.trials[0].params["c"] == pytest.approx(0.5 + 0.1 / PARTS)  # as it was given


# -- fixed -----------------------------------------------------------------------------------------

SPACES = [
    ({"x": (0.0, 1.0), "n": (1, 9, "int")}, {"n": 6}),
    ({"x": (0.1, 7.3), "y": (1e-5, 1.0, "log")}, {"x": 0.12345678901234568}),
    ({"x": (0.1, 7.3), "y": (1e-5, 1.0, "log")}, {"x": 3.3, "y": 0.3}),
    ({"k": ["a", "b", "c"], "n": range(20)}, {"k": "c"}),
    ({"m": {"svm": {"C": (0.1, 10)}, "tree": {"n": (1, 9, "int")}}}, {"m": "svm", "C": 2.5}),
    ({"m": {"svm": {"C": (0.1, 10)}, "tree": {"n": (1, 9, "int")}}}, {"m": "tree"}),
]


@pytest.mark.parametrize(("space", "fixed"), SPACES)
def test_fixed_values_come_back_exactly_in_any_space(space, fixed):
    optimizer = pt.Optimizer(space)
    random = np.random.default_rng(0)
    for i in range(24):
        trial = optimizer.ask(fixed=fixed if i % 3 else None)
        if i % 3:
            assert {name: trial.params[name] for name in fixed} == fixed
        if i % 7 != 6:
            optimizer.tell(trial, random.standard_normal())
    answer = optimizer.recommend(fixed=fixed)
    assert {name: answer.params[name] for name in fixed} == fixed


def test_arrays_and_lists_of_points_are_fixed_by_place():
    optimizer = pt.Optimizer([(0, 5), (-1, 1)])
    for _ in range(12):
        trial = optimizer.ask(fixed={0: 2.5})
        assert trial.params[0] == 2.5
        optimizer.tell(trial, float(trial.params[1] ** 2))
    arms = pt.Optimizer(pt.Arms([[0, 1], [0, 2], [3, 1], [3, 4]], 0, 4))
    seen = set()
    for _ in range(8):
        trial = arms.ask(fixed={0: 3})
        seen.add(tuple(trial.params.tolist()))
        arms.tell(trial, 0.0)
    assert seen <= {(3.0, 1.0), (3.0, 4.0)}
    with pytest.raises(InvalidInput, match="no point of the space"):
        arms.ask(fixed={0: 1})


@pytest.mark.parametrize(
    ("fixed", "words"),
    [
        ({"q": 1}, "there is no parameter 'q'"),
        ({"C": 2.0}, "Fix that as well"),
        ({"m": "svm", "C": 99}, "give a number from 0.1 to 10"),
        (["m"], "give a dict"),
    ],
)
def test_values_that_cannot_be_fixed_are_refused(fixed, words):
    optimizer = pt.Optimizer({"m": {"svm": {"C": (0.1, 10)}, "tree": {}}})
    with pytest.raises(InvalidInput) as error:
        optimizer.ask(fixed=fixed)
    assert words in str(error.value)
    assert len(optimizer.trials) == 0


def test_constraints_hold_in_every_slice():
    def feasible(x, y, c):
        return x + y <= c

    optimizer = pt.Optimizer({"x": (0, 1), "y": (0, 1)}, context={"c": (0.2, 2)}, feasible=feasible)
    random = np.random.default_rng(1)
    for _ in range(30):
        c = float(random.uniform(0.3, 2))
        trial = optimizer.ask(context={"c": c})
        assert trial.params["x"] + trial.params["y"] <= c + 1e-9
        optimizer.tell(trial, -trial.params["x"] + 0.1 * random.standard_normal())
    with pytest.raises(InvalidInput, match="feasible allows none"):
        optimizer.ask(context={"c": 1.0}, fixed={"x": 0.9, "y": 0.9})


def test_batches_for_a_context_differ():
    optimizer = pt.Optimizer({"x": (0, 1)}, context={"c": (0, 1)})
    random = np.random.default_rng(0)
    for _ in range(20):
        trial = optimizer.ask(context={"c": random.random()})
        optimizer.tell(trial, random.standard_normal())
    batch = optimizer.ask(4, context={"c": 0.5})
    assert all(trial.context == {"c": 0.5} for trial in batch)
    assert len({trial.params["x"] for trial in batch}) > 1


def test_many_values_take_contexts_in_every_form():
    rows, contexts = [{"x": 0.1}, {"x": 0.2}], [{"c": 0.3}, {"c": 0.4}]
    given = [
        (rows, contexts),
        (rows, {"c": [0.3, 0.4]}),
        ({"x": [0.1, 0.2]}, contexts),
        ({"x": [0.1, 0.2]}, {"c": np.array([0.3, 0.4])}),
        ([{"x": 0.1, "c": 0.3}, {"x": 0.2, "c": 0.4}], None),
    ]
    for params, context in given:
        optimizer = pt.Optimizer({"x": (0, 1)}, context={"c": (0, 1)})
        assert optimizer.add(params, [1.0, 2.0], context=context) == [0, 1]
        assert [dict(t.params) for t in optimizer.trials] == [
            {"x": 0.1, "c": 0.3},
            {"x": 0.2, "c": 0.4},
        ]
    optimizer.add(rows, [1.0, 2.0], context={"c": 0.5})  # one for all
    assert [t.params["c"] for t in optimizer.trials[2:]] == [0.5, 0.5]
    at = optimizer.predict(rows, context=contexts)
    for i in range(2):
        assert optimizer.predict([rows[i]], context=contexts[i]).mean[0] == at.mean[i]


@pytest.mark.parametrize(
    ("params", "context", "message"),
    [
        ([{"x": 0.1}] * 2, [{"c": 0.1}], "2 rows of parameters but 1 contexts"),
        ({"x": [0.1, 0.2]}, {"c": [0.1]}, "2 rows of parameters but 1 contexts"),
        ([{"x": 0.1}] * 2, [{"c": 0.1}, {}], "the context c is missing"),
        ([{"x": 0.1}] * 2, [{"c": 0.1}, {"c": 3}], "row 1 cannot be used"),
        ([{"x": 0.1, "c": 0.1}], [{"c": 0.1}], "given twice"),
    ],
)
def test_bad_contexts_of_many_values_are_refused(params, context, message):
    optimizer = pt.Optimizer({"x": (0, 1)}, context={"c": (0, 1)})
    with pytest.raises(InvalidInput, match=message):
        optimizer.add(
            params, [1.0] * len(params if isinstance(params, list) else [1, 2]), context=context
        )
    assert optimizer.n_told == 0
