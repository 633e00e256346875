"""Figures of plain data: each number is drawn where it belongs."""

import numpy as np
import pytest

from partita.figures.data import (
    ArmBars,
    ArmMap,
    Axis,
    Band,
    Curve,
    Map,
    Place,
    Progress,
    RunFigure,
)
from partita.figures.panels import MOST_SLICES
from partita.figures.run import draw
from partita.figures.style import Limits, evenly, limits_of

UNKNOWN = Band(*np.full((3, 5), np.nan))
AT = np.linspace(0.0, 1.0, 5)
#: A grid of arms, in no order.
ARMS = np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 2.0], [0.0, 2.0]])


def band(mean):
    return Band(np.asarray(mean), np.asarray(mean) - 0.5, np.asarray(mean) + 0.5)


def figure(view, certificate=(3.0, 2.0), values=(5.0, 4.0, 3.0), text="at x = 1"):
    progress = Progress(np.array(values), np.array([1, 3]), band([4.0, 3.5]), np.array(certificate))
    return draw(RunFigure("Minimum -1.5", text, progress, view))


def curve(mean=(3.0, 2.0, 1.0, 2.0, 3.0), name="rate", **changes):
    parts = {
        "axis": Axis(name, "log", Limits(0.1, 10.0)),
        "at": AT + 0.1,
        "band": band(mean),
        "separate": False,
        "answer": Place(0.6, 1.0),
        "dots": np.array([[0.2, 3.0], [0.6, 1.0]]),
        "failed": np.array([0.9]),
        "edges": [0.35, 0.6],
    }
    return Curve(**{**parts, **changes})


def test_a_curve_with_its_band_values_failures_and_cells():
    progress, certificate, panel = figure(curve()).axes
    assert [a.get_title(loc="left") for a in (progress, certificate)] == ["Progress", "Certificate"]
    np.testing.assert_array_equal(progress.get_lines()[0].get_ydata(), [4.0, 3.5])
    np.testing.assert_array_equal(certificate.get_lines()[0].get_ydata(), [3.0, 2.0])
    line = max(panel.get_lines(), key=lambda each: len(each.get_xdata()))
    np.testing.assert_array_equal(line.get_ydata(), [3.0, 2.0, 1.0, 2.0, 3.0])
    assert len(panel.get_lines()) == 4  # two edges, and where the answer is
    dots, _, star, crosses = panel.collections
    assert dots.get_offsets().tolist() == [[0.2, 3.0], [0.6, 1.0]]
    assert star.get_offsets().tolist() == [[0.6, 1.0]]
    assert crosses.get_offsets()[:, 0].tolist() == [0.9]
    assert (panel.get_xscale(), panel.get_xlim(), panel.get_xlabel()) == ("log", (0.1, 10), "rate")
    text = "mean and bounds; dots are values, crosses failed; thin lines divide cells"
    assert text in [each.get_text() for each in panel.texts]


def test_words_and_whole_numbers_on_an_axis():
    words = Axis("kind", words=("a", "b", "a very long word, turned"))
    view = curve(axis=words, at=np.arange(3.0), band=band([1.0, 2.0, 3.0]), separate=True)
    panel = figure(view).axes[2]
    ticks = [tick.get_text() for tick in panel.get_xticklabels()]
    assert ticks == ["a", "b", "a very long …"]
    assert {tick.get_rotation() for tick in panel.get_xticklabels()} == {30.0}
    assert panel.collections[2].get_offsets()[:, 1].tolist() == [1.0, 2.0, 3.0]
    view = curve(axis=Axis("n", "whole"), at=np.arange(1.0, 6.0), answer=Place(3.0, 1.0), edges=[])
    panel = figure(view).axes[2]
    assert all(tick == round(tick) for tick in panel.get_xticks())


def test_without_a_certificate_progress_has_the_side_to_itself():
    made = figure(curve(), certificate=(np.inf, np.nan))
    assert [axes.get_title(loc="left") for axes in made.axes] == ["Progress", "What is known"]
    assert [text.get_text() for text in made.texts] == ["Minimum −1.5", "at x = 1"]
    long = figure(curve(), text="at " + ", ".join(f"p{i} = 0.5" for i in range(99))).texts[1]
    assert long.get_text().count("\n") == 1
    assert long.get_text().endswith(" …")


def test_slices_have_their_own_scales_and_the_flattest_are_left_out():
    curves = [curve(i * AT, name=f"p{i}") for i in range(MOST_SLICES + 2)]
    made = figure(tuple(curves))
    panels = made.axes[2:]
    assert [panel.get_xlabel() for panel in panels] == [f"p{i}" for i in range(2, MOST_SLICES + 2)]
    assert len({panel.get_ylim() for panel in panels}) == MOST_SLICES
    for panel, shown in zip(panels, curves[2:], strict=True):
        low, high = panel.get_ylim()
        assert low < shown.band.mean.min() < shown.band.mean.max() < high
    text = "Left out, since the mean varies less along them: p0, p1"
    assert text in [each.get_text() for each in made.texts]
    assert len(figure(tuple(curves[:3])).texts) == 2  # nothing to say if all are there
    unknown = figure((curve(band=UNKNOWN, name="a"), curve(band=UNKNOWN, name="b"))).axes[2:]
    assert [len(panel.collections[0].get_offsets()) for panel in unknown] == [2, 2]


@pytest.mark.parametrize("low_is_good", [True, False])
def test_a_map_is_bright_where_it_is_good(low_is_good):
    mean = np.arange(6.0).reshape(2, 3)
    cells = np.array([[[0.0, 0.0], [1.0, 1.0]], [[1.0, 0.0], [2.0, 1.0]]])
    view = Map(
        Axis("x"), Axis("y"), np.arange(3.0), np.arange(2.0), mean, False, low_is_good,
        Place(2.0, 1.0), np.array([[0.5, 0.5]]), np.empty((0, 2)), cells,
    )  # fmt: skip
    panel = figure(view).axes[2]
    mesh, lines, dots, star = panel.collections
    np.testing.assert_array_equal(np.asarray(mesh.get_array()).reshape(2, 3), mean)
    best = mesh.cmap(mesh.norm(mean.min() if low_is_good else mean.max()))
    assert sum(best[:3]) > 1.9  # yellow
    np.testing.assert_array_equal(lines.get_segments()[1], [[1, 0], [2, 0], [2, 1], [1, 1], [1, 0]])
    assert dots.get_offsets().tolist() == [[0.5, 0.5]]
    assert star.get_offsets().tolist() == [[2.0, 1.0]]


def test_arms_are_a_picture_where_they_fill_a_grid_and_bars_elsewhere():
    numbers = np.array([1.0, 2.0, 3.0, 4.0])
    grid = figure(ArmMap(ARMS, numbers, "average value", True, Place(1.0, 0.0))).axes[2]
    picture = np.asarray(grid.collections[0].get_array()).reshape(2, 2)
    np.testing.assert_array_equal(picture, [[2.0, 1.0], [4.0, 3.0]])
    scattered = figure(ArmMap(ARMS[:3], numbers[:3], "average value", True, Place(1.0, 0.0)))
    np.testing.assert_array_equal(scattered.axes[2].collections[0].get_offsets(), ARMS[:3])
    bars = figure(ArmBars("rank", np.arange(4.0), band(numbers), "the best")).axes[2]
    assert bars.get_xlabel() == "rank"
    np.testing.assert_array_equal(bars.collections[1].get_offsets()[:, 1], numbers)


def test_wild_values_do_not_set_the_limits():
    low, high = limits_of(np.r_[np.linspace(0, 1, 500), 1e9, np.nan], np.array([0.5, np.inf]))
    assert -0.1 < low < 0
    assert 1 < high < 2
    assert limits_of(np.empty(0)) == (0.0, 1.0)
    assert limits_of(np.empty(0), np.array([3.0])) == pytest.approx((2.7, 3.3))


def test_some_of_many_evenly():
    assert evenly(4, 10).tolist() == [0, 1, 2, 3]
    assert evenly(101, 5).tolist() == [0, 25, 50, 75, 100]
