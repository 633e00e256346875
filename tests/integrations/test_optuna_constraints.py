"""Constraints of Optuna's trials: learned, shared between workers, and met by the answer."""

import math
import pickle

import numpy as np
import optuna
import pytest

from partita.errors import InvalidInput
from partita.integrations.optuna import PartitaSampler

FLOAT = optuna.distributions.FloatDistribution
SQUARE = {"x": FLOAT(0.0, 1.0), "y": FLOAT(0.0, 1.0)}


def corner(trial):
    """The best of x + y with xy at most 0.3 is 1.3, at two corners."""
    x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    trial.set_user_attr("over", x * y - 0.3)
    return x + y


def by_key(trial):
    value = corner(trial)
    trial.set_constraint("product", trial.user_attrs["over"])
    return value


def over(trial):
    return [trial.user_attrs["over"]]


def played(how, n=60, seed=0, given=None):
    func = over if how == "function" else None
    sampler = PartitaSampler(given, seed=seed, constraints_func=func)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(corner if func else by_key, n_trials=n)
    return study


@pytest.mark.parametrize("how", ["function", "keys"])
def test_the_answer_is_feasible_and_good(how):
    if how == "keys" and not hasattr(optuna.trial.Trial, "set_constraint"):
        pytest.skip("this Optuna has no set_constraint")
    study = played(how)
    best = study.sampler.recommend(study)
    assert best.params["x"] * best.params["y"] <= 0.301
    assert best.mean > 1.2
    broken = sum(trial.user_attrs["over"] > 0 for trial in study.trials)
    assert broken <= 25
    # Without the constraint most trials go to the far corner, and so does the answer.
    free = optuna.create_study(direction="maximize", sampler=PartitaSampler(seed=0))
    free.optimize(corner, n_trials=60)
    assert sum(trial.user_attrs["over"] > 0 for trial in free.trials) > 40
    assert free.sampler.recommend(free).mean > 1.9


def test_a_worker_that_joins_knows_them_from_the_storage():
    study = played("function", 30)
    other = PartitaSampler(SQUARE, seed=1)  # has no function, and reads what is stored
    joined = optuna.load_study(study_name=study.study_name, storage=study._storage, sampler=other)
    best = other.recommend(joined)
    assert best.params["x"] * best.params["y"] <= 0.301
    assert other._model.limits == ("0",)
    copied = pickle.loads(pickle.dumps(study.sampler))
    again = copied.recommend(study).params
    assert again["x"] * again["y"] <= 0.301


def test_the_same_seed_gives_the_same_trials():
    one, two = (played("function", 20, given=SQUARE) for _ in range(2))
    assert [trial.params for trial in one.trials] == [trial.params for trial in two.trials]


def test_a_constraint_that_appears_late_is_learned_from_then_on():
    study = optuna.create_study(direction="maximize", sampler=PartitaSampler(SQUARE, seed=0))
    study.optimize(corner, n_trials=8)
    sampler = study.sampler = PartitaSampler(SQUARE, seed=0, constraints_func=over)
    study.optimize(corner, n_trials=30)
    assert sampler._model.limits == ("0",)
    sampler.recommend(study)
    # The first ones, of which it is not known whether they are feasible, are left out.
    assert sampler._model.optimizer.n_told == 30


def test_an_infinite_violation_is_a_failure():
    def func(trial):
        return (math.inf if trial.params["x"] > 0.5 else -1.0,)

    sampler = PartitaSampler(SQUARE, seed=0, constraints_func=func)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(corner, n_trials=25)
    assert sampler.recommend(study).params["x"] <= 0.5
    assert sampler._model.optimizer.n_failed == sum(t.params["x"] > 0.5 for t in study.trials)


@pytest.mark.parametrize("given", [None, 3.0, ["much"], [math.nan]])
def test_what_a_function_must_return(given):
    sampler = PartitaSampler(SQUARE, seed=0, constraints_func=lambda trial: given)
    study = optuna.create_study(sampler=sampler)
    with pytest.raises(
        InvalidInput, match=r"constraints_func returned .* for trial 0: return a seq"
    ):
        study.optimize(corner, n_trials=1)


def test_what_is_refused():
    with pytest.raises(InvalidInput, match="constraints_func='x <= 1': give a function of a trial"):
        PartitaSampler(constraints_func="x <= 1")
    sampler = PartitaSampler(SQUARE, seed=0, policy="uniform", constraints_func=over)
    study = optuna.create_study(sampler=sampler)
    with pytest.raises(InvalidInput, match="UniformSampling has no model of other quantities"):
        study.optimize(corner, n_trials=3)


def test_failed_and_pruned_trials_need_no_constraints():
    def sometimes(trial):
        value = corner(trial)
        for step in range(3):
            trial.report(value, step)
        if trial.number % 5 == 3:
            raise optuna.TrialPruned
        if trial.number % 5 == 4:
            raise RuntimeError("no")
        return value

    sampler = PartitaSampler(SQUARE, seed=0, constraints_func=over)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(sometimes, n_trials=40, catch=RuntimeError)
    best = sampler.recommend(study)
    assert best.params["x"] * best.params["y"] <= 0.301
    assert np.isfinite(best.mean)
    assert sampler._model.optimizer.n_told == 24
