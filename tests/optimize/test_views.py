"""Figures besides that of a run, by results and by studies."""

import copy
import re
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

import partita as pt
from partita.commands import main as cli
from partita.errors import InvalidInput
from partita.figures.views import lanes_of
from partita.optimize.dimensions import dimensions_of, places_of
from partita.optimize.views import KINDS
from partita.study import Study

MIXED = {
    "rate": (1e-4, 1e-1, "log"),
    "trees": (10, 2000, "int", "log"),
    "depth": (1, 12, "int"),
    "kind": ["linear", "tree", "a very long name of a kind"],
    "on": bool,
    "fixed": [7],
}


def loss(rate, trees, depth, kind, on, fixed):
    return (np.log10(rate) + 2) ** 2 + abs(depth - 5) / 10 + (kind == "tree")


@pytest.fixture(scope="module")
def mixed():
    return pt.minimize(loss, MIXED, n_evals=40)


def inside(figure):
    """Whether all words of a figure are within it."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer, whole = canvas.get_renderer(), figure.bbox.padded(1)
    texts = [*figure.texts]
    for panel in figure.axes:
        texts += [panel.xaxis.label, panel.yaxis.label, *panel.texts]
        for axis in (panel.xaxis, panel.yaxis):
            low, high = sorted(axis.get_view_interval())
            shown = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
            texts += [label for tick in shown for label in (tick.label1, tick.label2)]
    boxes = [t.get_window_extent(renderer) for t in texts if t.get_text() and t.get_visible()]
    return all(whole.contains(*corner) for box in boxes for corner in (box.min, box.max))


@pytest.mark.parametrize("kind", [*KINDS])
def test_every_kind_is_drawn_and_nothing_is_cut_off(kind, mixed, tmp_path):
    figure = mixed.plot(tmp_path / "a.png", kind)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert inside(figure)
    png, size = figure._repr_png_()
    assert png.startswith(b"\x89PNG")  # as a notebook shows it
    assert size["width"] > 400


def test_importance_is_drawn_as_it_is(mixed):
    figure = mixed.plot(kind="importance")
    rows = mixed.importance()
    names = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert names == [row.name for row in rows]
    bars = [bar.get_width() for bar in figure.axes[0].patches]
    np.testing.assert_allclose(bars, [row.total for row in rows] + [row.first for row in rows])
    intervals = figure.axes[0].collections[0].get_segments()
    np.testing.assert_allclose([s[:, 0] for s in intervals], [row[2:4] for row in rows])


def test_pairs_are_of_the_four_that_matter_most(mixed):
    figure = mixed.plot(kind="pairs")
    important = [row.name for row in mixed.importance()]
    k = 4
    shown = [panel.get_xlabel() for panel in figure.axes[k * (k - 1) : k * k]]
    assert set(shown) == set(important[:k])
    texts = [t.get_text() for t in figure.texts]
    (text,) = [t for t in texts if t.startswith("Left out, since they matter less")]
    assert important[4] in text
    # Below the diagonal the mean, above it the distance of the bounds.
    across, up = dimensions_of(mixed.optimizer.space, mixed.params)[0], None
    for d in dimensions_of(mixed.optimizer.space, mixed.params):
        up = d if d.name == shown[1] else up
        across = d if d.name == shown[0] else across
    corner = up.put(across.put(mixed.params, across.values[0]), up.values[0])
    known = mixed.optimizer.predict([corner])
    mean = np.asarray(figure.axes[k].collections[0].get_array()).ravel()
    width = np.asarray(figure.axes[1].collections[0].get_array()).ravel()
    assert mean[0] == pytest.approx(known.mean[0])
    assert width[0] == pytest.approx((known.upper[0] - known.lower[0]) / 2)


def test_a_time_line_of_parallel_evaluations():
    def f(x):
        time.sleep(0.02)
        if x[0] > 0.8:
            raise OSError
        return float(x[0])

    with ThreadPoolExecutor(3) as pool:
        result = pt.minimize(f, [(0, 1)], n_evals=12, executor=pool)
    spans = result.history.spans
    assert len(spans.numbers) == result.nfev + result.nfail
    assert spans.failed.sum() == result.nfail
    assert (spans.ended > spans.begun).all()
    assert (np.diff(spans.begun) >= 0).all()
    lanes = lanes_of(spans.begun, spans.ended)
    assert lanes.max() + 1 == 3
    figure = result.plot(kind="timeline")
    assert len(figure.axes[0].patches) == len(spans.numbers)
    assert "up to 3 at a time" in figure.texts[1].get_text()


def test_lanes_hold_one_at_a_time():
    rng = np.random.default_rng(2)
    begun = np.sort(rng.random(300))
    ended = begun + 0.1 * rng.random(300)
    lanes = lanes_of(begun, ended)
    for lane in range(lanes.max() + 1):
        mine = np.flatnonzero(lanes == lane)
        assert (begun[mine][1:] >= ended[mine][:-1]).all()
    # As few as can be: as many as are under way at once.
    most = max(int(((begun <= t) & (ended > t)).sum()) for t in begun)
    assert lanes.max() + 1 == most


def test_what_cannot_be_drawn_is_refused(mixed):
    with pytest.raises(InvalidInput, match="kind='nonsense'"):
        mixed.plot(kind="nonsense")
    one = pt.minimize(lambda x: float(x[0]), [(0, 1)], n_evals=6)
    with pytest.raises(InvalidInput, match="there are no pairs"):
        one.plot(kind="pairs")
    arms = pt.minimize(lambda x: float(x[0]), pt.Grid(4, dim=2), n_evals=6)
    with pytest.raises(InvalidInput, match="list of arms"):
        arms.plot(kind="slices")
    few = pt.minimize(lambda x: float(x[0]), [(0, 1)], n_evals=3)
    with pytest.raises(InvalidInput, match="It needs 5"):
        few.plot(kind="importance")


def test_parameters_that_some_trials_lack_are_not_drawn_there():
    space = pt.Space({"rate": (0, 1), "kind": {"tree": {"depth": (1, 9, "int")}, "svm": {}}})
    dimensions = dimensions_of(space, {"rate": 0.01, "kind": "tree", "depth": 3})
    assert [d.name for d in dimensions] == ["rate", "kind", "depth"]
    assert [d.name for d in dimensions_of(space, {"rate": 0.01, "kind": "svm"})] == ["rate", "kind"]
    trials = [{"rate": 0.01, "kind": "svm"}, {"rate": 0.02, "kind": "tree", "depth": 3}]
    places = places_of(trials, dimensions)
    np.testing.assert_array_equal(places, [[0.01, 1.0, np.nan], [0.02, 0.0, 3.0]])


# -- studies ---------------------------------------------------------------------------------------


@pytest.fixture
def study(tmp_path):
    study = Study.open(tmp_path / "tune.db", {"x": (0, 1), "y": (0, 1)}, seed=5)
    trials = [study.ask() for _ in range(3)]
    study.cancel(trials[2])
    for trial in trials[:2]:
        study.tell(trial, trial.params["x"])
    for _ in range(5):
        trial = study.ask()
        study.tell(trial, trial.params["x"])
    return study


def test_a_study_is_exported_and_drawn_as_the_command_line_does_it(study, tmp_path, capsys):
    study.export(tmp_path / "a.csv")
    assert cli.main(["export", str(study.path), str(tmp_path / "b.csv")]) == 0
    assert (tmp_path / "a.csv").read_text("utf-8") == (tmp_path / "b.csv").read_text("utf-8")
    with pytest.raises(InvalidInput, match=r"ends in \.csv or \.parquet"):
        study.export(tmp_path / "a.xls")
    for kind in KINDS:
        assert study.plot(kind=kind).axes
    assert len(study.plot(kind="timeline").axes[0].patches) == 8
    path = tmp_path / "a.png"
    assert cli.main(["show", str(study.path), "--plot", str(path), "--kind", "importance"]) == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    capsys.readouterr()
    assert cli.main(["show", str(study.path), "--kind", "importance"]) == 2
    assert "Give --plot as well" in capsys.readouterr().err
    with pytest.raises(InvalidInput, match="there are no values yet"):
        Study.open(tmp_path / "new.db", [(0, 1)]).plot()


def test_show_lists_the_answer_first(tmp_path, capsys):
    """A lucky value elsewhere has the better mean, but less is known of it."""
    study = Study.open(tmp_path / "tune.db", {"x": (0, 1)}, direction="maximize")
    rng = np.random.default_rng(1)
    for x in (0.1, 0.3, 0.5, 0.7):
        for _ in range(8):
            study.add({"x": x}, 1 - abs(x - 0.5) + rng.normal(0, 0.3))
    study.add({"x": 0.95}, 1.6)
    assert cli.main(["show", str(study.path)]) == 0
    out = capsys.readouterr().out
    answer = study.recommend().params["x"]
    lines = out.splitlines()
    assert lines[lines.index("recommended") + 1] == f"  x = {answer:.6g}"
    (at,) = [i for i, line in enumerate(lines) if line.startswith("candidates, the one recom")]
    assert lines[at + 1].endswith(f": x = {answer:.6g}")
    assert lines.index("recommended") < lines.index("  x  0 to 1") < at
    assert len({re.sub(r".*: ", "", line) for line in lines[at + 1 : at + 6]}) == 5
    assert "seed 0" in lines[0]


@pytest.mark.parametrize("kind", ["run", "importance", "slices", "pairs"])
def test_an_optimizer_draws_itself(tmp_path, kind):
    optimizer = pt.Optimizer({"x": (0, 1), "rate": (1e-3, 1, "log"), "kind": ["a", "b"]})
    with pytest.raises(InvalidInput, match="there are no values yet"):
        optimizer.plot(kind=kind)
    for trial in optimizer.ask(30):
        optimizer.tell(trial, (trial.params["x"] - 0.3) ** 2 + (trial.params["kind"] == "a"))
    twin = copy.deepcopy(optimizer)
    figure = optimizer.plot(tmp_path / "a.png", kind)
    assert (tmp_path / "a.png").stat().st_size > 10_000
    assert "x" in {text.get_text() for text in figure.findobj(Text)}
    assert optimizer.ask().params == twin.ask().params  # looking changes no choice


def test_what_an_optimizer_cannot_draw():
    optimizer = pt.Optimizer({"x": (0, 1)})
    optimizer.add({"x": [0.1, 0.5, 0.9]}, [1.0, 2.0, 3.0])
    with pytest.raises(InvalidInput, match="not known when evaluations were under way"):
        optimizer.plot(kind="timeline")
    with pytest.raises(InvalidInput, match="nonsense"):
        optimizer.plot(kind="nonsense")


LONG = {
    "model": {
        "a support vector machine": {"C": (1e-3, 1e3, "log")},
        "a forest of many trees": {"number_of_trees_in_the_forest": (10, 500, "int")},
    }
}


@pytest.mark.parametrize("kind", ["run", "slices", "pairs"])
def test_headings_and_words_of_two_panels_are_inside(kind):
    result = pt.minimize(lambda model, **own: float(len(model)), LONG, n_evals=8)
    assert inside(result.plot(kind=kind))


def test_a_branch_without_parameters_has_no_pairs():
    space = {"model": {"svm": {"C": (0.1, 10.0)}, "mean": {}}}
    result = pt.minimize(lambda model, **own: float(model != "mean"), space, n_evals=8)
    with pytest.raises(InvalidInput, match="one parameter varies in the answer's branch"):
        result.plot(kind="pairs")
