"""Ctrl-C at any moment in the Optuna sampler: the study goes on, for every thread."""

import optuna
import pytest
from support.interrupts import INTERRUPTED, Interrupter, is_free

from partita.integrations.optuna import PartitaSampler

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

SPACE = {
    "rate": optuna.distributions.FloatDistribution(0.0, 1.0),
    "depth": optuna.distributions.IntDistribution(1, 9),
}


def value(trial):
    return (trial.params["rate"] - 0.3) ** 2 + trial.params["depth"] / 20


#: Where the lock is taken and given back, and the rest.
LOCKING, ALL = ("contextlib.py", "integrations/optuna.py"), ("",)


@pytest.mark.parametrize(
    ("policy", "files", "every"),
    [("uniform", LOCKING, 1), ("uniform", ALL, 7), (None, ALL, 307)],
)
def test_an_interrupt_at_any_moment_leaves_a_sampler_that_goes_on(policy, files, every):
    """At each moment of an ask, or some of them, one after the other."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = PartitaSampler(seed=1, search_space=SPACE, policy=policy)
    study = optuna.create_study(sampler=sampler)
    for _ in range(8):
        trial = study.ask(SPACE)
        study.tell(trial, value(trial))
    place = came = 1
    while Interrupter(place, files)(study.ask, SPACE) is INTERRUPTED:
        assert is_free(sampler._lock)
        trial = study.ask(SPACE)
        study.tell(trial, value(trial))
        sampler.recommend(study)
        done = study.get_trials(states=[optuna.trial.TrialState.COMPLETE])
        assert sampler._model.optimizer.n_told == len(done)
        assert sampler._model.optimizer.policy.told == len(done)
        place, came = place + every, came + 1
    assert came > 3
