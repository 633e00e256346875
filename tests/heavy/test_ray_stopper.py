"""The stopper for Ray Tune that ends a run by the certificate."""

from __future__ import annotations

import math
import pickle

import pytest

pytest.importorskip("ray.tune")

from ray import tune
from ray.tune.search import ConcurrencyLimiter

from partita.errors import InvalidInput
from partita.integrations.ray import CertificateStopper, PartitaSearch

SPACE = {"x": (0.0, 1.0)}


def searcher():
    return PartitaSearch(SPACE, metric="loss", mode="min", seed=0)


def play(search, stopper, most):
    """How many trials it took until the stopper stopped them."""
    for i in range(most):
        config = search.suggest(str(i))
        result = {"loss": (config["x"] - 0.3) ** 2}
        assert stopper(str(i), result) is False
        search.on_trial_complete(str(i), result)
        if stopper.stop_all():
            return i + 1
    return most


@pytest.mark.parametrize("limited", [False, True])
def test_it_stops_all_once_the_certificate_is_small(limited):
    search = searcher()
    given = ConcurrencyLimiter(search, 2) if limited else search
    stopper = CertificateStopper(given, 0.02)
    assert not stopper.stop_all()  # nothing is known
    assert 10 < play(search, stopper, 100) < 100
    assert search.certificate() <= 0.02
    assert stopper.stop_all()


def test_it_never_stops_for_what_is_out_of_reach():
    search = searcher()
    assert play(search, CertificateStopper(search, 0.0), 30) == 30


def test_saved_together_they_stay_together():
    search = searcher()
    again, stopper = pickle.loads(pickle.dumps((search, CertificateStopper(search, 0.02))))
    assert stopper._search is again


@pytest.mark.parametrize("tolerance", [-1.0, math.nan, "much", None])
def test_a_bad_tolerance_is_refused(tolerance):
    with pytest.raises(InvalidInput, match="give a number of at least 0"):
        CertificateStopper(searcher(), tolerance)


def test_another_searcher_is_refused():
    with pytest.raises(InvalidInput, match="give the PartitaSearch of the run"):
        CertificateStopper(3, 0.1)


def objective(config):
    tune.report({"loss": (config["x"] - 0.3) ** 2})


def test_a_run_of_tune_ends_early(tmp_path):
    search = searcher()
    tuner = tune.Tuner(
        objective,
        tune_config=tune.TuneConfig(search_alg=ConcurrencyLimiter(search, 2), num_samples=200),
        run_config=tune.RunConfig(
            storage_path=str(tmp_path), stop=CertificateStopper(search, 0.02)
        ),
    )
    assert len(tuner.fit()) < 200
