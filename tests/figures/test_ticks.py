"""Ticks and labels: nothing overlaps, nothing is cut off."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from partita.figures.data import Axis
from partita.figures.panels import set_axis
from partita.figures.style import Limits, drawing
from partita.figures.ticks import fitted, listed_names, log_ticks


def panel_with(which, axis, inches):
    """A panel whose axis has a length, drawn."""
    with drawing() as new_figure:
        size = (inches + 2, 3.0) if which == "x" else (3.0, inches + 2)
        figure = new_figure(size)
        width, height = size
        panel = figure.add_axes((1 / width, 1 / height, 1 - 2 / width, 1 - 2 / height))
        set_axis(panel, which, axis)
        FigureCanvasAgg(figure).draw()
    return figure, panel


def labels_of(panel, which):
    """The labels that are drawn, by their places."""
    ticks = getattr(panel, f"{which}axis").get_ticklabels()
    renderer = panel.figure.canvas.get_renderer()
    low, high = sorted(getattr(panel, f"get_{which}lim")())
    return [
        (tick.get_text(), tick.get_window_extent(renderer))
        for tick, place in zip(ticks, getattr(panel, f"get_{which}ticks")(), strict=True)
        if tick.get_text() and low * (1 - 1e-9) <= place <= high * (1 + 1e-9)
    ]


def check_log_axes(cases):
    """No two labels of a log axis overlap, and there are two or more."""
    rng = np.random.default_rng(5)
    for _ in range(cases):
        low = 10 ** rng.uniform(-9, 6)
        limits = Limits(low, low * 10 ** rng.choice([0.15, 0.5, 1, 2, 3, 5, 9, 14]))
        if rng.random() < 0.5:  # whole numbers
            limits = Limits(float(max(round(low), 1)), float(max(round(low), 1) * 10 + 1))
        which, inches = ("x", "y")[rng.integers(2)], rng.uniform(1.5, 5)
        _, panel = panel_with(which, Axis("n", "log", limits), inches)
        labels = labels_of(panel, which)
        assert len(labels) >= 2, limits
        for (one, a), (other, b) in pairwise(labels):
            apart = b.x0 - a.x1 if which == "x" else b.y0 - a.y1
            assert apart > 0, (limits, inches, one, other)


def test_labels_of_log_axes_do_not_overlap():
    check_log_axes(60)


def test_round_places_on_a_log_axis():
    assert list(log_ticks(Limits(1, 100), 4.0).values())[:4] == ["1", "2", "3", "5"]
    assert list(log_ticks(Limits(3, 90), 2.0).values()) == ["5", "10", "20", "50"]
    assert list(log_ticks(Limits(1, 1e5), 3.0)) == pytest.approx([1, 10, 100, 1e3, 1e4, 1e5])
    assert log_ticks(Limits(6, 9), 3.0) == {}


@pytest.mark.parametrize(
    "name", ["rate", "a" * 70, "min_samples_leaf_of_the_third_forest", "ü" * 30]
)
def test_a_long_name_fits_its_axis(name):
    figure, panel = panel_with("x", Axis(name), 2.0)
    box = panel.xaxis.label.get_window_extent(figure.canvas.get_renderer())
    whole = figure.bbox
    assert whole.x0 <= box.x0
    assert box.x1 <= whole.x1
    assert box.width <= 1.25 * 2.0 * figure.dpi
    text = panel.get_xlabel().replace("\n", "")
    assert text == name or ("…" in text and text[:5] == name[:5] and text[-5:] == name[-5:])


def test_labels_are_broken_where_words_end():
    assert fitted("min_samples_leaf", 1.0) == "min_samples_\nleaf"
    assert fitted("short", 1.0) == "short"


@pytest.mark.parametrize("n", [2, 5, 40])
def test_words_do_not_overlap(n):
    words = tuple(f"choice number {i}" for i in range(n))
    for which in ("x", "y"):
        figure, panel = panel_with(which, Axis("kind", words=words), 2.2)
        renderer = figure.canvas.get_renderer()
        ticks = [t for t in getattr(panel, f"get_{which}ticklabels")() if t.get_text()]
        assert 1 < len(ticks) <= n
        if which == "y":
            boxes = [t.get_window_extent(renderer) for t in ticks]
            assert all(b.y0 > a.y1 for a, b in pairwise(boxes))
        else:  # turned: apart by a line's height at least
            places = panel.transData.transform([(p, 0) for p in panel.get_xticks()])[:, 0]
            assert np.diff(places).min() > 0.15 * figure.dpi


def test_names_in_a_line():
    assert listed_names(["a", "b", "c"], 50) == "a, b, c"
    assert listed_names([f"p{i}" for i in range(9)], 10) == "p0, p1, p2 and 6 more"
