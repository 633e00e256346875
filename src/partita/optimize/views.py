"""A result as the plain data of its figures besides that of the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from partita._checks import check_choice
from partita._text import duration, step_time
from partita.errors import InvalidInput
from partita.figures.data import Band, Map, Pairs, Place, Shares, Slices, Timeline
from partita.figures.style import evenly

from .dimensions import Dimension, dimensions_of, evaluated, places_of, predicted
from .figure import curves_of, text_of, title_of
from .importance import FEWEST_VALUES, importance_of

if TYPE_CHECKING:
    from .result import Result

#: Parameters of a figure of pairs, at most, and points along a side of each of its maps.
MOST_PAIRED, PAIR_SIDE = 4, 28


def draw(result: Result, kind: str) -> Any:
    """The Matplotlib figure of a result of some kind."""
    check_choice("kind", kind, tuple(KINDS))
    if kind not in ("timeline", "run") and result.optimizer.space.arms is not None:
        raise InvalidInput(
            f"kind={kind!r}: the space is a list of arms, which has no parameters to look along. "
            'Give "run" or "timeline"'
        )
    return KINDS[kind](result)


def _run(result: Result) -> Any:
    from partita.figures.run import draw as draw_run

    from .figure import figure_of

    return draw_run(figure_of(result))


def _importance(result: Result) -> Any:
    from partita.figures.views import draw_shares

    rows = importance_of(result.history.trials)
    columns = np.array([row[1:] for row in rows], dtype=float).reshape(len(rows), 6).T
    text = (
        f"of {len(rows)} parameters, by a Gaussian process fitted to {result.nfev:,} values and "
        "functions drawn from it"
    )
    leader = f"{rows[0].name} matters most" if rows[0].total > 0 else "No parameter matters"
    names = tuple(row.name for row in rows)
    return draw_shares(Shares(leader, text, names, Band(*columns[:3]), Band(*columns[3:])))


def _slices(result: Result) -> Any:
    from partita.figures.views import draw_slice_figure

    curves = curves_of(result, dimensions_of(result.optimizer.space, result.params))
    values = result.history.values
    return draw_slice_figure(Slices(title_of(result), text_of(result), curves, values))


def _pairs(result: Result) -> Any:
    from partita.figures.views import draw_pairs

    dimensions = dimensions_of(result.optimizer.space, result.params)
    if len(dimensions) < 2:
        raise InvalidInput(
            'kind="pairs": one parameter varies in the answer\'s branch, so there are no pairs. '
            'Give kind="slices"'
            if result.optimizer.space.conditions is not None
            else 'kind="pairs": one parameter varies, so there are no pairs. Give kind="slices"'
        )
    shown, left_out = _most_important(result, dimensions)
    places = places_of(evaluated(result)[0], shown)
    maps, widths = {}, {}
    for i in range(len(shown)):
        for j in range(i):
            maps[j, i], widths[j, i] = _pair(result, shown[j], shown[i], places[:, [j, i]])
    pairs = Pairs(
        title_of(result),
        text_of(result),
        curves_of(result, shown),
        result.history.values,
        maps,
        widths,
        tuple(left_out),
        "they matter less",
    )
    return draw_pairs(pairs)


def _most_important(
    result: Result, dimensions: list[Dimension]
) -> tuple[list[Dimension], list[str]]:
    """The parameters that matter most, in the order of the space, and the names of the others."""
    if len(dimensions) <= MOST_PAIRED:
        return dimensions, []
    names = [dimension.name for dimension in dimensions]
    if len(result.history.trials.finished) >= FEWEST_VALUES:
        names = [row.name for row in importance_of(result.history.trials) if row.name in names]
    kept = set(names[:MOST_PAIRED])
    return (
        [dimension for dimension in dimensions if dimension.name in kept],
        [dimension.name for dimension in dimensions if dimension.name not in kept],
    )


def _pair(result: Result, across: Dimension, up: Dimension, dots: Any) -> tuple[Map, Any]:
    """The mean over two parameters, the others as in the answer, and half the bounds' distance."""
    xs, ys = ([d.values[i] for i in evenly(len(d.values), PAIR_SIDE)] for d in (across, up))
    points = [up.put(across.put(result.params, x), y) for y in ys for x in xs]
    band = predicted(result, points)
    shape = len(ys), len(xs)
    shown = Map(
        across=across.axis,
        up=up.axis,
        x=across.places(xs),
        y=up.places(ys),
        mean=band.mean.reshape(shape),
        smooth=False,
        low_is_good=result.direction == "minimize",
        answer=Place(across.place_in(result.params), up.place_in(result.params)),
        dots=dots,
        failed=np.empty((0, 2)),
        cells=np.empty((0, 2, 2)),
    )
    return shown, ((band.upper - band.lower) / 2).reshape(shape)


def _timeline(result: Result) -> Any:
    from partita.figures.views import draw_timeline, lanes_of

    spans = result.history.spans
    if not len(spans.numbers):
        raise InvalidInput(
            'kind="timeline": it is not known when evaluations were under way. The result of '
            "minimize or maximize knows it, and a study"
        )
    begun = spans.begun - spans.begun.min()
    ended = spans.ended - spans.begun.min()
    lanes = int(lanes_of(begun, ended).max()) + 1
    whole = float(ended.max())
    busy = float((ended - begun).sum()) / (lanes * whole) if whole > 0 else 1.0
    title = f"{len(begun):,} evaluations in {duration(whole)}"
    most = "one at a time" if lanes == 1 else f"up to {lanes} at a time"
    median, longest = float(np.median(ended - begun)), float((ended - begun).max())
    text = f"{most}, {busy:.0%} of their time under way; "
    text += f"half of them took {step_time(median)} or less, the longest {step_time(longest)}"
    return draw_timeline(Timeline(title, text, begun, ended, spans.failed))


#: What a figure of a result may show, by the name of its kind.
KINDS: dict[str, Callable[[Result], Any]] = {
    "run": _run,
    "importance": _importance,
    "slices": _slices,
    "pairs": _pairs,
    "timeline": _timeline,
}
