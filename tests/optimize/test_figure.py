"""The figure of a run: what it shows is what the result knows."""

import io

import numpy as np
import pytest

import partita as pt
from partita.front import maximize, minimize
from partita.optimize.figure import figure_of

MIXED = {
    "rate": (1e-4, 1e-1, "log"),
    "depth": (1, 12, "int"),
    "kind": ["linear", "tree", "a very long name of a kind"],
    "on": bool,
    "fixed": [7],
}
KNOWN = {"norm_bound": 5.0, "noise": pt.Gaussian(0.1), "kernel": pt.Matern(1.5, 0.3)}


def loss(rate, depth, kind, on, fixed):
    return (np.log10(rate) + 2) ** 2 + abs(depth - 5) / 10 + (kind == "tree") + on + fixed


@pytest.fixture(scope="module")
def plain():
    return maximize(lambda x: -float(abs(x[0] - 0.4) + abs(x[1])), [(0, 1), (-1, 1)], n_evals=60)


def labels(figure):
    return [axes.get_xlabel() for axes in figure.axes]


def drawn(result):
    """The bytes of a small picture."""
    file = io.BytesIO()
    result.plot().savefig(file, dpi=40)
    return file.getvalue()


def test_a_figure_is_written_in_the_format_of_its_name(plain, tmp_path):
    figure = plain.plot(tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")
    plain.plot(str(tmp_path / "run.svg"))
    assert b"<svg" in (tmp_path / "run.svg").read_bytes()
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[:3] == ["Progress", "Certificate", "What is known"]


def test_progress_is_drawn_from_the_history(plain):
    progress, certificate = plain.plot().axes[:2]
    line = progress.get_lines()[0]
    np.testing.assert_array_equal(line.get_xdata(), plain.history.evaluations)
    np.testing.assert_array_equal(line.get_ydata(), plain.history.best_mean)
    dots = progress.collections[0].get_offsets()
    np.testing.assert_allclose(dots[:, 1], plain.history.values)
    shown = np.isfinite(plain.history.certificate)
    drawn = certificate.get_lines()[0].get_ydata()
    np.testing.assert_array_equal(drawn, plain.history.certificate[shown])


def test_two_dimensions_are_a_map_with_its_cells():
    result = minimize(lambda x: float(x[0] + x[1]), [(0, 2), (0, 1)], n_evals=200, **KNOWN)
    panel = result.plot().axes[2]
    mesh, cells, dots, star = panel.collections
    assert star.get_offsets()[0].tolist() == result.x.tolist()
    assert len(cells.get_segments()) == len(result.optimizer.policy.cover)
    np.testing.assert_allclose(dots.get_offsets(), result.history.x)
    corners = np.array([[0, 0], [2, 0], [0, 1], [2, 1]], dtype=float)
    mean = result.optimizer.predict(corners).mean
    table = np.asarray(mesh.get_array()).reshape(72, 72)
    np.testing.assert_allclose(table[[0, 0, -1, -1], [0, -1, 0, -1]], mean)
    assert (panel.get_xlim(), panel.get_ylim()) == ((0, 2), (0, 1))


def test_one_dimension_is_a_curve_with_its_band_and_cells():
    result = maximize(
        lambda rate: 1 + np.log10(rate), {"rate": (1e-3, 1, "log")}, n_evals=300, **KNOWN
    )
    panel = result.plot().axes[2]
    assert panel.get_xscale() == "log"
    curve = max(panel.get_lines(), key=lambda line: len(line.get_xdata()))
    found = result.optimizer.predict([{"rate": float(x)} for x in curve.get_xdata()])
    np.testing.assert_allclose(curve.get_ydata(), found.mean)
    edges = len(result.optimizer.policy.cover) - 1
    assert len(panel.get_lines()) == edges + 2  # the curve, and where the answer is


def test_otherwise_slices_through_the_answer():
    named = minimize(loss, MIXED, n_evals=60)
    figure = named.plot()
    assert labels(figure)[1:] == ["rate", "depth", "kind", "on"]  # not what is fixed
    kind = figure.axes[3]
    ticks = [tick.get_text() for tick in kind.get_xticklabels()]
    assert ticks == ["linear", "tree", "a very long …"]
    others = {name: v for name, v in named.params.items() if name != "kind"}
    found = named.optimizer.predict([{**others, "kind": k} for k in MIXED["kind"]])
    drawn = kind.collections[1].get_offsets()
    np.testing.assert_allclose(drawn[:, 1], found.mean)


def test_many_parameters_show_those_that_matter():
    result = minimize(
        lambda **given: given["p3"] * 5 + given["p17"] * 3,
        {f"p{i}": (0, 1) for i in range(18)},
        n_evals=80,
    )
    figure = result.plot()
    shown = labels(figure)[1:]  # no certificate from so few values
    assert len(shown) == 12
    assert "p3" in shown
    (text,) = [t.get_text() for t in figure.texts if t.get_text().startswith("Left out, since")]
    names = text.partition(": ")[2].split(", ")
    assert sorted([*shown, *names]) == sorted(f"p{i}" for i in range(18))


@pytest.mark.parametrize(
    ("space", "n_evals", "given"),
    [
        ([(0, 1)], 25, {"policy": "uniform"}),
        ([(0, 1)] * 2, 25, {"policy": "uniform"}),
        ([(0, 1)] * 3, 25, {"policy": "uniform"}),
        ([(0, 1)] * 3, 1, {"policy": "uniform"}),
        ([(0, 1)] * 2, 1, {}),
        (pt.Grid(9, dim=1), 25, {}),
        (pt.Grid(5, dim=2), 1, {}),
        (pt.Grid(4, dim=3), 25, {}),
        (pt.Grid(4, dim=3), 25, {"policy": "uniform"}),
        (pt.Arms(np.random.default_rng(0).random((30, 2))), 25, {}),
        ([(0, 1)] * 2, 25, {"feasible": lambda x: x[0] < x[1]}),
        ([(0, 1)] * 3, 25, {"feasible": lambda x: x[0] < x[1]}),
    ],
)
def test_every_kind_of_run_has_a_figure(space, n_evals, given):
    result = maximize(lambda x: float(x[0]), space, n_evals=n_evals, **given)
    assert len(drawn(result)) > 3_000


def test_failures_are_crosses():
    def f(x):
        if x[0] > 0.7:
            raise OSError
        return float(x[0])

    for space in ([(0, 1)], [(0, 1), (0, 2)]):
        result = maximize(f, space, n_evals=40)
        failed = np.array(result.history.failed_params)
        assert len(failed) == result.nfail > 0
        assert (failed[:, 0] > 0.7).all()
        panel = result.plot().axes[2]
        crosses = [c.get_offsets()[:, 0] for c in panel.collections]
        assert any(len(c) == len(failed) and (c == failed[:, 0]).all() for c in crosses)


def test_named_kinds_in_one_and_two_dimensions():
    for space in (
        {"a": ["x", "y", "z"]},
        {"a": (1, 5, "int"), "b": (1e-3, 1, "log")},
        {"a": (1, 5, "int"), "b": ["x", "y"]},
        {"a": (0, 1000, "int"), "b": (0, 1, 0.25)},
    ):
        result = maximize(lambda a, b=0: float(len(str(a))), space, n_evals=15)
        assert len(drawn(result)) > 3_000


def test_constant_functions_and_wild_values():
    for f in (lambda x: 1.0, lambda x: 1e9 if x[0] > 0.9 else float(x[0])):
        assert len(drawn(maximize(f, [(0, 1)], n_evals=30))) > 3_000


def test_values_that_break_a_constraint_are_red():
    def f(x, y):
        return {"gain": x + y, "cost": x * y}

    space = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
    result = pt.maximize(f, space, n_evals=15, constraints=["cost <= 0.3"])
    data = figure_of(result)
    broken = np.array([row.params["x"] * row.params["y"] > 0.3 for row in result.history])
    assert 0 < broken.sum() < 15
    np.testing.assert_array_equal(data.progress.broken, broken)
    np.testing.assert_array_equal(data.view.broken, broken)
    assert "cost <= 0.3 with probability" in data.text
    figure = result.plot()
    words = [text.get_text() for panel in figure.axes for text in panel.texts]
    assert any("red values break a constraint" in text for text in words)
    assert any("red ones break a constraint" in text for text in words)
    reds = [len(np.unique(c.get_facecolors(), axis=0)) for c in figure.axes[0].collections[:1]]
    assert reds == [2]
    plain = pt.maximize(lambda x, y: x + y, space, n_evals=5)
    assert figure_of(plain).progress.broken is None
