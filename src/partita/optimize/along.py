"""The best choice along one context, as the plain data of its figure."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np

from partita._types import BoolArray
from partita.errors import InvalidInput
from partita.figures.data import Along, Axis, Band, Choices, Line
from partita.figures.style import Limits, evenly
from partita.policies import optional
from partita.space import Categorical

from .dimensions import Dimension, dimensions_of
from .trial import Suggestion

#: Places along the context, and values of a parameter that are compared at each, at most.
PLACES, COMPARED = 33, 41
#: A choice among the other contexts of at most this many values is drawn as a line for each.
MOST_LINES = 4


def plot_along(
    player: Any,
    name: str,
    path: str | PathLike[str] | None = None,
    along: str | None = None,
    context: Mapping[str, Any] | None = None,
) -> Any:
    """The figure of the best choice along one context of an optimizer or a study, called `name`."""
    from partita.figures.along import draw_along

    figure = draw_along(along_of(player, name, along, context))
    if path is not None:
        figure.savefig(path, dpi=160, facecolor="white")
    return figure


def along_of(player: Any, name: str, along: str | None, context: Mapping[str, Any] | None) -> Along:
    """The best choice along the context `along`, the first one if it is not given.

    Other contexts are as in `context`. Of those not given, a choice of few values has a line for
    each, and the others are in the middle of their range.
    """
    dimensions = {one.name: one for one in dimensions_of(player.space)}
    shown, given = _checked(player, name, along, context, dimensions)
    others = [one for one in player.contexts.names if one != shown.name]
    free = [one for one in others if one not in given and one in dimensions]
    lines = _line_of(dimensions, free)
    middle = {one: _middle(player, one) for one in others if one not in given and one != lines}
    values = [shown.values[i] for i in evenly(len(shown.values), PLACES)]
    series = {}
    for value in dimensions[lines].values if lines else [None]:
        fixed = {**given, **middle, **({lines: value} if lines else {})}
        contexts = [{**fixed, shown.name: place} for place in values]
        series["" if lines is None else f"{lines} {value}"] = contexts
    panels = _panels(player, series, dimensions)
    rest = {**given, **middle}
    text = ", ".join(f"{key} {_word(value)}" for key, value in rest.items())
    said = [f"by {player.n_told:,} values"]
    said += [f"a line for each {lines}"] if lines else []
    said += [f"other contexts: {text}"] if text else []
    return Along(
        f"The best choice along {shown.name}",
        "; ".join(said),
        shown.axis,
        shown.places(values),
        shown.separate,
        panels,
    )


def _checked(
    player: Any,
    name: str,
    along: str | None,
    context: Mapping[str, Any] | None,
    dimensions: Mapping[str, Dimension],
) -> tuple[Dimension, dict[str, Any]]:
    """The context to look along, and the others that are given; refused if they are not there."""
    names = player.contexts.names
    if not names:
        raise InvalidInput(f"{name} has no context: leave out along= and context=")
    if not player.n_told:
        raise InvalidInput(
            f"{name}: there are no values yet, so there is nothing to draw. Tell or add some first"
        )
    if not optional.has_posterior(player.policy):
        raise InvalidInput(f"{name}: its policy has no posterior, so there is nothing to draw")
    given = {} if context is None else dict(context)
    wrong = [one for one in given if one not in names]
    if wrong:
        raise InvalidInput(
            f"plot(context={given!r}): there is no context {wrong[0]!r}. There are "
            f"{', '.join(names)}"
        )
    varying = [one for one in names if one in dimensions]
    chosen = along
    if chosen is None:
        free = [one for one in varying if one not in given] or varying
        chosen = free[0] if free else names[0]
    if chosen not in varying:
        raise InvalidInput(
            f"plot(along={along!r}): give a context that varies: {', '.join(varying) or 'none'}"
        )
    if chosen in given:
        raise InvalidInput(
            f"plot(along={chosen!r}, context={given!r}): the figure goes along {chosen}. Leave it "
            "out of the context"
        )
    for one, value in given.items():
        _parameter(player, one).encode(value, one)
    return dimensions[chosen], given


def _parameter(player: Any, name: str) -> Any:
    return player.space.parameters[(player.space.names or ()).index(name)]


def _middle(player: Any, name: str) -> Any:
    """The value in the middle of a context, the first of a choice."""
    parameter = _parameter(player, name)
    if isinstance(parameter, Categorical) or not parameter.width:
        return parameter.decode(parameter.grid()[0].tolist())
    return parameter.decode([0.5])


def _line_of(dimensions: Mapping[str, Dimension], free: list[str]) -> str | None:
    """The context whose values have a line each, if there is one."""
    for name in free:
        if isinstance(dimensions[name].parameter, Categorical):
            return name if len(dimensions[name].values) <= MOST_LINES else None
    return None


def _panels(
    player: Any, series: Mapping[str, list[dict[str, Any]]], dimensions: Mapping[str, Dimension]
) -> list[Choices]:
    """The value of the best choice, and its parameters, along the contexts of each line."""
    answers = {name: player.recommend(contexts) for name, contexts in series.items()}
    values = [
        Line(name, Band(*(np.array([getattr(one, part) for one in best]) for part in Band._fields)))
        for name, best in answers.items()
    ]
    panels = [Choices(Axis("value"), values)]
    for name, dimension in dimensions.items():
        if name in player.contexts.names:
            continue
        lines = [
            Line(line, _choice(player, dimension, series[line], best))
            for line, best in answers.items()
        ]
        axis = dimension.axis
        if axis.words is None and axis.limits is None:
            at = dimension.places(dimension.values)
            axis = Axis(axis.name, axis.scale, Limits(float(at.min()), float(at.max())))
        panels.append(Choices(axis, lines))
    return panels


def _choice(
    player: Any, dimension: Dimension, contexts: list[dict[str, Any]], best: list[Suggestion]
) -> Band:
    """A parameter of the best choices, and the values around it that may be as good.

    Those are values whose bound on one side reaches that of the best choice on the other.
    """
    worse = -1.0 if player.direction == "minimize" else 1.0
    values = [dimension.values[i] for i in evenly(len(dimension.values), COMPARED)]
    places = dimension.places(values)
    mean, lower, upper = np.full((3, len(best)), np.nan)
    for i, (context, answer) in enumerate(zip(contexts, best, strict=True)):
        if dimension.key not in answer.params:  # of a branch that is not the best here
            continue
        mean[i] = dimension.place(answer.params[dimension.key])
        rows = [dimension.put({**answer.params, **context}, value) for value in values]
        nearest = int(np.argmin(np.abs(places - mean[i])))
        run = places[_run(_may_be_best(player, rows, answer, worse), nearest)]
        lower[i], upper[i] = min(run.min(), mean[i]), max(run.max(), mean[i])
    return Band(mean, lower, upper)


def _may_be_best(
    player: Any, rows: list[dict[str, Any]], answer: Suggestion, worse: float
) -> BoolArray:
    """At which rows (n,) the function may be as good as at the answer, by bounds."""
    possible = np.zeros(len(rows), dtype=np.bool_)
    allowed = []
    for i, row in enumerate(rows):
        try:
            player.space.encode(row)
        except InvalidInput:  # what belongs to another branch
            continue
        if player.space.allows(row):
            allowed.append(i)
    if allowed:
        at = player.predict([rows[i] for i in allowed])
        highest = at.upper if worse > 0 else -at.lower
        least = answer.lower if worse > 0 else -answer.upper
        possible[allowed] = highest >= least
    return possible


def _run(possible: BoolArray, middle: int) -> slice:
    """The part around `middle` in which all are possible."""
    no = np.flatnonzero(~possible)
    start = int(no[no < middle].max(initial=-1)) + 1
    return slice(start, int(no[no > middle].min(initial=len(possible))))


def _word(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
