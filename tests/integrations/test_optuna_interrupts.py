"""Ctrl-C at any moment in the Optuna sampler: the study goes on, for every thread."""

import random

import optuna
import pytest
from support.interrupts import INTERRUPTED, cut_short, is_free, moments_of

from partita.integrations.optuna import PartitaSampler

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

SPACE = {
    "rate": optuna.distributions.FloatDistribution(0.0, 1.0),
    "depth": optuna.distributions.IntDistribution(1, 9),
}


def value(trial):
    return (trial.params["rate"] - 0.3) ** 2 + trial.params["depth"] / 20


@pytest.mark.parametrize(("policy", "cases"), [("uniform", 60), (None, 12)])
def test_an_interrupt_at_any_moment_leaves_a_sampler_that_goes_on(policy, cases):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    draw, came = random.Random(4), 0
    sampler = PartitaSampler(seed=1, search_space=SPACE, policy=policy)
    study = optuna.create_study(sampler=sampler)

    def step():
        trial = study.ask(SPACE)
        study.tell(trial, value(trial))

    for _ in range(8):
        step()
    moments = moments_of(step)
    for _ in range(cases):
        came += cut_short(draw, moments, step) is INTERRUPTED
        assert is_free(sampler._lock)
        step()
        sampler.recommend(study)
        done = study.get_trials(states=[optuna.trial.TrialState.COMPLETE])
        assert sampler._model.optimizer.n_told == len(done)
        assert sampler._model.optimizer.policy.told == len(done)
    assert came > cases / 3
