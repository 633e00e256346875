"""What the page is sent: pictures of a bounded size, and events that catch up."""

import json

import numpy as np
import pytest
from support.service import evaluate

import partita as pt
from partita.service import maps, tables, views, wire
from partita.study import watching


@pytest.fixture
def study(folder):
    study = pt.Study.open(
        folder / "s.db", {"x": (0.0, 1.0), "lr": (1e-3, 1.0, "log"), "k": ["a", "b"]}
    )
    yield study
    study.close()


def fill(study, n, seed=0):
    rng = np.random.default_rng(seed)
    x, lr = rng.random(n), 10 ** rng.uniform(-3, 0, n)
    kinds = [("a", "b")[i] for i in rng.integers(0, 2, n)]
    values = (x - 0.3) ** 2 + 0.1 * np.log10(lr / 0.03) ** 2 + rng.normal(0, 0.1, n)
    study.add({"x": x, "lr": lr, "k": kinds}, values)
    return values


def test_an_overview_has_the_same_size_for_any_number_of_trials(study):
    fill(study, 500)
    few = len(wire.as_json(views.overview(study, views.Seen())))
    fill(study, 20_000, 1)
    many = len(wire.as_json(views.overview(study, views.Seen())))
    assert many < 1.5 * few
    assert len(wire.as_json(maps.field(study, "x", "lr"))) < 200_000


def test_bins_hold_the_values(study):
    values = fill(study, 1000)
    shown = views.binned(study.trials, "minimize")
    assert len(shown["n"]) == views.BINS
    assert shown["n"][-1] == 1000
    assert shown["best"][-1] == values.min()
    assert shown["middle"][0] == pytest.approx(np.median(values[:10]))
    assert views.binned(study.trials, "maximize")["best"][-1] == values.max()


def test_the_overview_of_a_new_study_has_no_answer(study):
    shown = json.loads(wire.as_json(views.overview(study, views.Seen())))
    assert shown["answer"] is None
    assert shown["state"] == "new"
    assert [p["kind"] for p in shown["space"]] == ["real", "real", "choice"]


def test_the_overview_says_what_the_study_says(study):
    fill(study, 300)
    shown = views.overview(study, views.Seen())
    best = study.recommend()
    assert shown["answer"]["params"] == best.params
    assert shown["answers"][-1] == [300, *best[2:], study.certificate()]
    assert shown["best"]["value"] == study.trials.values.min()
    assert shown["noise"]["learned"] == pytest.approx(0.1, rel=0.5)


def test_the_certificate_is_not_computed_with_every_value(study, monkeypatch):
    fill(study, 300)
    seen = views.Seen()
    first = views.overview(study, seen)
    assert (first["certificate"], first["certified"]) == (study.certificate(), 300)
    fill(study, 5, 1)
    shown = views.overview(study, seen)
    assert (shown["certificate"], shown["certified"]) == (first["certificate"], 300)
    assert np.isnan(shown["answers"][-1][-1])
    fill(study, 100, 2)
    assert views.overview(study, seen)["certified"] == 405
    monkeypatch.setattr(views, "MOST_CELLS", -1)  # too many to wait for
    fill(study, 100, 3)
    assert views.overview(study, seen)["certified"] in (0, *(n.evaluations for n in study.notes()))


def test_replicates_show_the_noise(study):
    rng = np.random.default_rng(0)
    point = {"x": [0.5] * 200, "lr": [0.1] * 200, "k": ["a"] * 200}
    study.add(point, rng.normal(0, 0.2, 200))
    shown = views.noise(study, study.trials)
    assert shown["replicated"] == 1
    assert shown["spread"] == pytest.approx(0.2, rel=0.2)


def test_maps_and_slices_are_predictions(study):
    fill(study, 200)
    at = {"x": 0.2, "lr": 0.1, "k": "b"}
    shown = maps.field(study, "x", "lr", at)
    x, lr = shown["x"]["values"][3], shown["y"]["values"][5]
    known = study.predict([{**at, "x": x, "lr": lr}])
    assert shown["mean"][5][3] == pytest.approx(known.mean[0])
    assert shown["upper"][5][3] == pytest.approx(known.upper[0])
    assert np.sum(shown["evaluated"]) == 200
    assert shown["y"]["u"][0] == pytest.approx(0.0, abs=1e-9)
    assert shown["y"]["u"][-1] == pytest.approx(1.0)
    curves = maps.slices(study, at)["curves"]
    assert [curve["axis"]["name"] for curve in curves] == ["x", "lr", "k"]
    assert curves[2]["mean"][1] == pytest.approx(study.predict([at]).mean[0])
    assert maps.field(study, "k", "x", at)["x"]["values"] == ["a", "b"]
    for x, y in (("x", "x"), ("y", "x")):
        with pytest.raises(pt.errors.InvalidInput):
            maps.field(study, x, y)


def test_cells_tile_the_map_of_a_proven_study(folder):
    study = pt.Study.open(
        folder / "p.db",
        [(0, 1), (0, 1)],
        norm_bound=1.0,
        noise=pt.Gaussian(0.1),
        kernel=pt.Matern(1.5, 0.3),
        n_evals=2000,
    )
    for _ in range(300):
        trial = study.ask()
        study.tell(trial, float((trial.params[0] - 0.3) ** 2))
    cells = maps.field(study, None, None)["cells"]
    area = sum((b - a) * (d - c) for a, b, c, d in (cell["box"] for cell in cells))
    assert area == pytest.approx(1.0)
    assert sum(cell["top"] for cell in cells) == 1


def test_branches_and_arms_can_be_watched(folder):
    tree = {"model": {"svm": {"C": (1e-3, 1e3, "log")}, "forest": {"trees": (10, 500, "int")}}}
    study = pt.Study.open(folder / "t.db", tree)
    for _ in range(25):
        trial = study.ask()
        study.tell(trial, float(len(trial.params)))
    assert wire.as_json(views.overview(study, views.Seen()))
    assert wire.as_json(maps.slices(study))
    assert wire.as_json(maps.field(study, None, None))
    arms = pt.Study.open(folder / "a.db", pt.Grid(5, dim=2))
    arms.tell(arms.ask(), 1.0)
    assert wire.as_json(views.overview(arms, views.Seen()))
    assert tables.table(arms, {})["total"] == 1
    with pytest.raises(pt.errors.InvalidInput, match="arms"):
        maps.field(arms, None, None)


def test_pictures_over_http(tune):
    evaluate(tune, 8)
    assert tune.get("/studies/tune/map", params={"x": "x", "y": "n"}).status_code == 200
    at = json.dumps({"x": 0.1, "n": 2, "kind": "b"})
    slices = tune.get("/studies/tune/slices", params={"at": at}).json()
    assert slices["at"]["kind"] == "b"
    assert tune.get("/studies/tune/slices", params={"at": "{"}).status_code == 422
    rows = tune.get("/studies/tune/importance").json()["parameters"]
    assert {row["name"] for row in rows} == {"x", "n", "kind"}


def test_values_behind_means_are_counted_one_by_one(folder):
    """A row of a plan that is told in parts, and means of many values, from file and study."""
    study = pt.Study.open(folder / "means.db", {"x": (0.0, 1.0)}, n_evals=300)
    first = views.glance(study)
    assert (first["told"], first["state"]) == (0, "new")
    while study.n_values < 100:
        for row in study.plan(40):
            study.tell(row, values=[0.1] * (row.count - row.count // 2))
            if row.count > 1:
                study.tell(row, values=[0.2] * (row.count // 2))
    study.tell(study.ask(), 0.3, 0.1, count=50)
    study.add({"x": 0.5}, 0.4)
    events = watching.head(study)
    shown, again = views.glance(study), views.glance(study, first)
    assert shown["told"] == again["told"] == study.n_values
    assert study.n_values > study.n_told + 60
    overview = views.overview(study, views.Seen())
    assert overview["counts"]["values"] == study.n_values
    assert overview["state"] == shown["state"] == "running"
    study.add({"x": 0.5}, 0.4, 0.1, count=300 - study.n_values)
    assert views.glance(study, shown)["state"] == "finished"
    assert views.overview(study, views.Seen())["state"] == "finished"
    assert watching.n_values(study, events) == views.glance(study)["told"] - shown["told"]
    study.close()
