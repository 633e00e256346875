"""Failures that depend on place are learned; those by chance steer little; a wrong function."""

import functools
import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import partita as pt
from partita.errors import EvaluationFailed

SQUARE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def hyperbola(x, y):
    if x * y > 0.3:
        raise RuntimeError("too much")
    return x + y


@pytest.mark.parametrize("seed", [0, 1])
def test_a_region_where_evaluations_fail_is_learned(seed):
    result = pt.maximize(hyperbola, SQUARE, n_evals=100, seed=seed)
    assert result.nfail <= 30
    assert sum(result.x) > 1.29
    # The control: who learns nothing of failures fails as often as half of the square does.
    free = pt.maximize(hyperbola, SQUARE, n_evals=100, seed=seed, policy="uniform")
    assert free.nfail + result.nfail > 50


def test_failures_by_chance_steer_little():
    random = np.random.default_rng(5)

    def crashing(x, y):
        if random.random() < 0.15:
            raise RuntimeError("no luck")
        return -((x - 0.7) ** 2) - (y - 0.2) ** 2

    result = pt.maximize(crashing, SQUARE, n_evals=50)
    assert 2 <= result.nfail <= 20
    assert np.abs(np.array(result.x) - [0.7, 0.2]).max() < 0.03


def test_failures_of_several_workers_are_learned():
    with ThreadPoolExecutor(3) as pool:
        result = pt.maximize(hyperbola, SQUARE, n_evals=50, executor=pool)
    assert result.nfail <= 30
    assert sum(result.x) > 1.2


@pytest.mark.parametrize("policy", [None, "uniform"])
def test_failures_never_exceed_the_evaluations(policy):
    calls = []

    def late(x):
        calls.append(x)
        if len(calls) > 3:
            raise RuntimeError("out of order")
        return x

    result = pt.minimize(late, {"x": (0.0, 1.0)}, n_evals=12, policy=policy)
    assert result.nfail == 12
    assert len(calls) == 15
    assert not result.success
    assert "Too many evaluations failed (12)" in result.message


def test_a_function_that_always_fails_ends_as_soon_as_it_may_fail():
    def never(x):
        raise RuntimeError("no")

    with pytest.raises(EvaluationFailed, match="the first 5 evaluations all failed") as info:
        pt.minimize(never, {"x": (0.0, 1.0)}, n_evals=5)
    assert info.value.nfail == 5


async def awaited(x):
    return x


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda x: None, "the value is None: give one number.*without a return statement"),
        (awaited, "the value is <coroutine .*asyncio.run"),
        (lambda x: {"loss": 1.0}, r"the value is \{'loss': 1.0\}: give one number.*constraints"),
        (lambda x: (1.0, 2.0, 3.0), r"the value is \(1.0, 2.0, 3.0\)"),
        (lambda x: "good", "the value is 'good'"),
        (lambda x: np.zeros(3), r"an array of shape \(3,\)"),
        (lambda x: [1.0], r"the value is \[1.0\]"),
        (lambda y: 1.0, r"the function takes \(y\), but is called as f\(x=...\)"),
        (lambda: 1.0, r"the function takes \(\), but is called as f\(x=...\)"),
        (lambda x, z: 1.0, r"the function takes \(x, z\), but is called as f\(x=...\)"),
    ],
)
@pytest.mark.parametrize("workers", [None, 2])
def test_a_wrong_function_ends_the_run_at_its_first_evaluation(f, message, workers):
    calls = []

    def counted(*args, **kwargs):
        calls.append(kwargs)
        return f(*args, **kwargs)

    counted.__wrapped__ = f
    with (
        ThreadPoolExecutor(workers or 1) as pool,
        pytest.raises(EvaluationFailed, match=f"(?s)at its first evaluation: .*{message}"),
    ):
        pt.minimize(counted, {"x": (0.0, 1.0)}, n_evals=50, executor=pool if workers else None)
    assert len(calls) <= 2 * (workers or 1)


@pytest.mark.parametrize("good", [0, 3])
def test_no_more_than_n_evals_fail_with_many_workers(good):
    calls = itertools.count()

    def late(x):
        if next(calls) >= good:
            raise RuntimeError("no")
        return x

    with ThreadPoolExecutor(8) as pool:
        run = functools.partial(pt.minimize, late, {"x": (0.0, 1.0)}, n_evals=10, executor=pool)
        if good:
            assert run().nfail == 10
        else:
            with pytest.raises(EvaluationFailed, match="the first 10 evaluations all failed"):
                run()
    assert next(calls) == good + 10


def test_an_error_inside_the_function_is_a_failure_as_ever():
    def sometimes(x):
        if x > 0.5:
            return len(3)  # a TypeError of its own
        return x

    result = pt.maximize(sometimes, {"x": (0.0, 1.0)}, n_evals=15)
    assert result.nfail
    assert isinstance(result.errors[0], TypeError)


def test_once_a_value_has_come_a_wrong_one_is_a_failure():
    values = iter([1.0, None, "words", 2.0, {"a": 1}, 3.0, 4.0])
    result = pt.minimize(lambda x: next(values), {"x": (0.0, 1.0)}, n_evals=4)
    assert (result.nfev, result.nfail) == (4, 3)


def test_none_is_a_failure_in_a_study_that_has_values(tmp_path):
    path = tmp_path / "tune.db"
    pt.minimize(lambda x: x, {"x": (0.0, 1.0)}, n_evals=4, study=path)
    values = iter([None, 1.0])
    result = pt.minimize(lambda x: next(values), {"x": (0.0, 1.0)}, n_evals=5, study=path)
    assert (result.nfev, result.nfail) == (5, 1)
    with pytest.raises(EvaluationFailed, match="the value is 'words'"):
        pt.minimize(lambda x: "words", {"x": (0.0, 1.0)}, n_evals=6, study=path)


def test_with_constraints_an_executor_evaluates_as_well():
    with ThreadPoolExecutor(3) as pool:
        result = pt.maximize(
            lambda x, y: {"gain": x + y, "cost": x * y},
            SQUARE,
            n_evals=30,
            constraints="cost <= 0.3",
            executor=pool,
        )
    assert result.x[0] * result.x[1] <= 0.301
    assert sum(result.x) > 1.15


def test_with_constraints_a_wrong_dict_ends_the_run():
    with pytest.raises(EvaluationFailed, match=r"\{'gain': 1\} has no 'cost'"):
        pt.maximize(lambda x, y: {"gain": 1}, SQUARE, n_evals=9, constraints=["cost <= 1"])


def test_a_callback_sees_the_values():
    seen = []
    pt.maximize(
        lambda x, y: {"gain": x + y, "cost": x * y},
        SQUARE,
        n_evals=4,
        constraints=["cost <= 0.3"],
        callback=lambda evaluation: seen.append(evaluation.values),
    )
    assert [list(values) for values in seen] == [["cost"]] * 4


def test_a_hint_about_the_call_is_given_only_if_it_is_about_the_call():
    def inside(x):
        return int("1", bass=x)  # an error about arguments, but not those of the function

    with pytest.raises(EvaluationFailed, match="Call your function once yourself"):
        pt.minimize(inside, {"x": (0.0, 1.0)}, n_evals=3)
    with pytest.raises(EvaluationFailed, match="the function is called with keywords"):
        pt.minimize(int, {"x": (0.0, 1.0)}, n_evals=3)  # its signature is not known
