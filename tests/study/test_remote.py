"""Studies that a service keeps: the methods of `Study`, and `minimize` from several places."""

import math
import pickle
import threading

import numpy as np
import pytest

import partita as pt
from partita.errors import InvalidInput
from partita.study.http import address_of

pytest.importorskip("uvicorn")

from support.service import Server
from support.studies import SPACE, play, value


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("studies")) as server:
        yield server


def test_it_does_what_a_local_study_does(server, tmp_path):
    remote = pt.connect(f"{server.url}/same", space=SPACE, seed=3)
    local = pt.Study.open(tmp_path / "same.db", SPACE, seed=3)
    assert play(remote, 25) == play(local, 25)
    assert (remote.n_told, remote.n_pending, remote.n_failed) == (25, 0, 0)
    best, same = remote.recommend(), local.recommend()
    assert best.params == same.params
    assert best[2:] == pytest.approx(same[2:])
    assert remote.certificate() == pytest.approx(local.certificate())
    points = [{"rate": 0.1, "depth": 3, "kind": "a"}, {"rate": 0.5, "depth": 5, "kind": "b"}]
    for one, other in zip(remote.predict(points), local.predict(points), strict=True):
        np.testing.assert_allclose(one, other)
    assert [(r.number, r.params, r.value, r.state) for r in remote.trials] == [
        (r.number, r.params, r.value, r.state) for r in local.trials
    ]
    assert remote.notes()[0].evaluations == local.notes()[0].evaluations
    assert (remote.direction, remote.seed, remote.guarantee) == ("minimize", 3, "calibrated")
    remote.tolerance = 0.5
    assert remote.tolerance == 0.5
    remote.tolerance = None
    assert remote.tolerance is None


def test_trials_of_every_kind(server):
    study = pt.connect(f"{server.url}/kinds", space=[(0, 1), (-1, 2)], direction="maximize")
    trials = study.ask(3)
    study.tell(trials[0], np.float64(1.5), std=0.1)
    study.cancel(trials[1])
    study.fail(trials[2].number)
    chosen = study.expect(np.array([0.5, 0.5]))
    np.testing.assert_array_equal(chosen.params, [0.5, 0.5])
    assert study.add([0.1, 0.2], 3.0) == 4
    assert study.add(np.array([[0.1, 0.3], [0.2, 0.4]]), [1.0, 2.0]) == [5, 6]
    assert study.trials.states == ["finished", "failed", "failed", "pending"] + ["finished"] * 3
    np.testing.assert_array_equal(study.ask(fixed={0: 0.25}).params[0], 0.25)
    assert study.trials.stds[0] == 0.1


def test_answers_for_several_contexts(server, tmp_path):
    space, context = {"price": (0, 1)}, {"hour": (0, 24)}
    local = pt.Study.open(tmp_path / "hours.db", space, context=context, seed=1)
    remote = pt.connect(f"{server.url}/hours", space=space, context=context, seed=1)
    for study in (local, remote):
        for hour in (2.0, 9.0, 13.0, 21.0) * 5:
            trial = study.ask(context={"hour": hour})
            study.tell(trial, (trial.params["price"] - hour / 24) ** 2)
    hours = [{"hour": 3.0}, {"hour": 20.0}]
    several = remote.recommend(context=hours)
    assert [one.params for one in several] == [one.params for one in local.recommend(context=hours)]
    assert several[0].params == remote.recommend(context=hours[0]).params
    rows = [{"price": i / 10} for i in range(8)]
    for study in (local, remote):
        given = [{"hour": float(i)} for i in range(8)]
        assert len(study.add(rows, [0.1] * 8, context=given)) == 8
        assert len(study.add({"price": [0.2, 0.3] * 8}, [0.1] * 16, context={"hour": 3.5})) == 16
    ours, theirs = (study.predict(rows[:2], context=hours[:2]) for study in (local, remote))
    assert np.array_equal(ours.mean, theirs.mean)
    assert 0.0 < local.certificate() < math.inf
    assert remote.certificate() == local.certificate()
    with pytest.raises(InvalidInput, match="the context hour is missing"):
        remote.recommend()


def test_errors_are_those_of_python(server):
    study = pt.connect(f"{server.url}/errors", space=SPACE)
    trial = study.ask()
    with pytest.raises(pt.errors.InvalidInput, match="finite"):
        study.tell(trial, float("nan"))
    study.tell(trial, 1.0)
    with pytest.raises(pt.errors.Settled, match="already has a value"):
        study.tell(trial, 1.0)
    with pytest.raises(pt.errors.NotPending, match="there is no trial 9"):
        study.cancel(9)
    with pytest.raises(pt.errors.InvalidInput, match="other settings"):
        pt.connect(f"{server.url}/errors", space=[(0, 1)])
    with pytest.raises(pt.errors.InvalidInput, match="there is no study 'none'"):
        pt.connect(f"{server.url}/none")
    with pytest.raises(pt.errors.InvalidInput, match="give the name of a study"):
        pt.connect(server.url)
    with pytest.raises(pt.errors.InvalidInput, match="cannot be sent"):
        pt.connect(f"{server.url}/f", space=SPACE, feasible=lambda **_: True)
    with pytest.raises(pt.errors.InvalidInput, match="sede"):
        pt.connect(f"{server.url}/f", space=SPACE, sede=1)


def test_a_service_that_is_not_there_is_an_error_after_some_patience():
    with pytest.raises(pt.errors.StudyError, match="cannot be reached"):
        pt.connect("http://127.0.0.1:9/tune", patience=0.2)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://host:8420", None),
        ("http://host:8420/", None),
        ("http://host:8420/tune", "tune"),
        ("https://host/studies/tune/", "tune"),
    ],
)
def test_addresses(url, name):
    assert address_of(url)[1] == name


@pytest.mark.parametrize("url", ["host:8420", "ftp://host/a", "http:///a", "http://host/a/b/c", ""])
def test_bad_addresses(url):
    with pytest.raises(pt.errors.InvalidInput):
        pt.connect(url)


def test_minimize_from_several_places_at_once(server):
    address = f"{server.url}/shared"
    results = []

    def run():
        results.append(pt.minimize(f, SPACE, n_evals=40, study=address))

    def f(**params):
        return value(params)

    threads = [threading.Thread(target=run) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 3
    study = pt.connect(address)
    assert 40 <= study.n_told <= 42  # each may have been at its last one
    assert all(result.nfev >= 40 for result in results)
    again = pt.minimize(f, n_evals=45, study=study)
    assert again.nfev == 45
    assert "45" in str(again) or again.nfev == study.n_told


def test_minimize_with_constraints(server):
    def f(x):
        return {"loss": (x - 0.2) ** 2, "cost": 10 * x}

    result = pt.minimize(
        f, {"x": (0.0, 1.0)}, n_evals=25, constraints=["cost <= 5"], study=f"{server.url}/c"
    )
    assert result.nfev == 25
    assert result.params["x"] <= 0.55


def test_it_can_be_pickled_and_needs_nothing_of_the_web(server):
    study = pt.connect(f"{server.url}/pickled", space=SPACE)
    study.ask()
    assert pickle.loads(pickle.dumps(study)).n_pending == 1
    assert "RemoteStudy('http://127.0.0.1" in repr(study)


def test_what_is_known_can_be_drawn(server, tmp_path):
    study = pt.connect(f"{server.url}/drawn", space=SPACE)
    with pytest.raises(InvalidInput, match="no values yet"):
        study.plot()
    for _ in range(6):
        trial = study.ask()
        study.tell(trial, sum(map(len, map(repr, trial.params.values()))))
    study.plot(tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(InvalidInput, match="time"):
        study.plot(kind="timeline")


def test_many_values_with_constraints_from_a_table(server):
    pandas = pytest.importorskip("pandas")
    space = {"model": {"svm": {"C": (0.0, 1.0)}, "forest": {"trees": (1, 9, "int")}}}
    study = pt.connect(f"{server.url}/table", space=space, constraints=["cost <= 1"])
    rows = pandas.DataFrame({"model": ["svm", "forest"], "C": [0.5, None], "trees": [None, 3]})
    rows["trees"] = rows["trees"].astype("Int64")
    values = pandas.DataFrame({"loss": [1.0, 2.0], "cost": [0.5, 2.0]})
    assert study.add(rows, values) == [0, 1]
    assert study.add({"model": "svm", "C": 0.1}, {"loss": 1.5, "cost": 0.1}) == 2
    assert [trial.params for trial in study.trials][:2] == [
        {"model": "svm", "C": 0.5},
        {"model": "forest", "trees": 3},
    ]
    assert study.trials[1].values == {"cost": 2.0}


def test_functions_that_replicate_run_with_a_study_that_is_served(server):
    def f(x, y, count, seed):
        return (x - 0.3) ** 2 + y + np.random.default_rng(seed).normal(0, 0.2, count)

    url = f"{server.url}/replicates"
    result = pt.minimize(f, {"x": (0, 1), "y": (0, 1)}, n_evals=600, study=url, replicates=True)
    assert result.nfev == result.history.counts.sum() == 600
    study = pt.connect(url)
    assert (study.n_values, study.n_pending) == (600, 0)
    assert study.n_told == result.nit < 600
    (row,) = study.plan(1)
    assert row.count == 1
    study.tell(row, values=[0.5])
    for bad in ({"count": 0}, {"count": 2.5}, {"std": -1.0, "count": 3}):
        with pytest.raises(pt.errors.InvalidInput):
            study.tell(study.expect({"x": 0.5, "y": 0.5}), 0.5, **bad)
    assert study.n_values == 601
    number = study.add({"x": 0.5, "y": 0.5}, 0.6, std=0.2, count=30)
    assert study.trials[number].count == 30
