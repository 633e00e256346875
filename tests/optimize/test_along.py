"""The figure of the best choice along a context."""

import numpy as np
import pytest

import partita as pt
from partita.errors import InvalidInput
from partita.optimize.along import along_of

CONTEXT = {"hour": (0, 24), "segment": ["new", "old"], "load": (0, 1)}


def _optimizer(direction="maximize", told=40):
    optimizer = pt.Optimizer(
        {"x": (0, 1), "kind": ["a", "b"]}, context=CONTEXT, direction=direction
    )
    random = np.random.default_rng(0)
    rows = [
        {
            "x": float(random.random()),
            "kind": "ab"[int(random.integers(2))],
            "hour": float(random.uniform(0, 24)),
            "segment": ["new", "old"][int(random.integers(2))],
            "load": float(random.random()),
        }
        for _ in range(told)
    ]
    sign = 1 if direction == "maximize" else -1
    values = [-sign * (row["x"] - row["hour"] / 24) ** 2 for row in rows]
    if rows:
        optimizer.add(rows, values)
    return optimizer


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_the_lines_are_the_answers_and_the_bands_hold_them(direction):
    optimizer = _optimizer(direction)
    shown = along_of(optimizer, "It", None, {"load": 0.25})
    assert shown.axis.name == "hour"
    assert [panel.axis.name for panel in shown.panels] == ["value", "x", "kind"]
    for panel in shown.panels:
        assert [line.name for line in panel.lines] == ["segment new", "segment old"]
        for line in panel.lines:
            assert (line.band.lower <= line.band.mean).all()
            assert (line.band.mean <= line.band.upper).all()
    at = 7
    context = {"hour": float(shown.at[at]), "segment": "old", "load": 0.25}
    best = optimizer.recommend(context=context)
    assert shown.panels[0].lines[1].band.mean[at] == best.mean
    assert shown.panels[1].lines[1].band.mean[at] == best.params["x"]


def test_values_outside_the_band_are_worse_by_their_bounds():
    optimizer = _optimizer()
    shown = along_of(optimizer, "It", "hour", {"segment": "new", "load": 0.5})
    (line,), at = shown.panels[1].lines, 10
    context = {"hour": float(shown.at[at]), "segment": "new", "load": 0.5}
    best = optimizer.recommend(context=context)
    low, high = line.band.lower[at], line.band.upper[at]
    grid = np.linspace(0, 1, 200)
    upper = optimizer.predict([{**best.params, "x": float(x)} for x in grid], context=context).upper
    assert high - low < 1
    for end, step in ((low, -1), (high, 1)):  # the next values on both sides
        beyond = grid[(grid - end) * step > 0.03]
        if len(beyond):
            nearest = int(np.argmin(np.abs(grid - (end + step * 0.035))))
            assert upper[nearest] < best.lower + 0.05


def test_it_is_drawn_along_any_context_and_written(tmp_path):
    optimizer = _optimizer()
    optimizer.plot(tmp_path / "hour.png")
    figure = optimizer.plot(tmp_path / "segment.svg", along="segment", context={"hour": 3})
    assert len(figure.axes) == 3
    assert (tmp_path / "hour.png").stat().st_size > 1000
    assert (tmp_path / "segment.svg").stat().st_size > 1000


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"along": "x"}, "give a context that varies: hour, segment, load"),
        ({"along": "hour", "context": {"hour": 3}}, "Leave it out of the context"),
        ({"context": {"minute": 3}}, "there is no context 'minute'"),
        ({"context": {"segment": "mid"}}, "give one of 'new', 'old'"),
    ],
)
def test_bad_arguments_are_refused(arguments, message):
    with pytest.raises(InvalidInput, match=message):
        _optimizer().plot(**arguments)


def test_without_values_or_contexts_there_is_nothing_to_draw():
    with pytest.raises(InvalidInput, match="no values yet"):
        _optimizer(told=0).plot()
    with pytest.raises(InvalidInput, match="has no context"):
        pt.Optimizer({"x": (0, 1)}).plot(along="x")


def test_a_study_draws_it_too(tmp_path):
    study = pt.Study.open(tmp_path / "a.db", {"x": (0, 1)}, context={"c": (0, 1)})
    study.add([{"x": 0.1}, {"x": 0.9}] * 3, [0.1, 0.5] * 3, context=[{"c": 0.2}, {"c": 0.7}] * 3)
    assert len(study.plot(along="c").axes) == 2
    study.close()
