"""Results, optimizers, studies and tables of trials as a notebook shows them.

Plain HTML with inline styles, in the colours of the page: it needs no package, no script and no
style sheet, and looks right on light and on dark pages. Whatever a user named or chose is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from partita._text import HIDDEN, bounded, duration, number, value_text
from partita._types import FloatArray

from .tables import Columns, columns_of
from .wording import certificate_says, gap_says, such_held

if TYPE_CHECKING:
    from .constraints import Known
    from .player import Player
    from .result import History, Result
    from .trials import Trials

#: Rows of a table from its beginning, and from its end; columns; characters of a cell, of a line.
HEAD, TAIL, MOST_COLUMNS, LONGEST, LONGEST_LINE = 5, 5, 14, 60, 500
#: Parameters of an answer that are shown.
MOST_PARAMS = 30
#: Stands for characters that are hidden.
UNKNOWN = "\ufffd"
#: The drawing of progress, in pixels.
WIDTH, HEIGHT = 260, 64
#: Blue and grey that can be read on white and on black.
_BLUE, _GREY = "#3B8FD6", "#808080"
_CELL = "padding:2px 10px 2px 0;text-align:left;vertical-align:top;border:none;background:none"
_BOX = (
    "display:inline-block;padding:10px 14px;border:1px solid rgba(128,128,128,.4);"
    "border-radius:6px;color:inherit;background:transparent;max-width:100%;overflow-x:auto"
)


def text(value: object, most: int = LONGEST) -> str:
    """A value as HTML: escaped, without hidden characters, and cut if it is long."""
    words = str(value)
    words = words if len(words) <= most else words[: most - 1] + "…"
    return escape(HIDDEN.sub(UNKNOWN, words))


def result_html(result: Result) -> str:
    """A result: the answer, its bounds, how the run went."""
    failed = f", {result.nfail:,} failed" if result.nfail else ""
    if result.get("npruned"):
        failed += f", {result.npruned:,} pruned"
    rows = [
        *_params_rows(result.params),
        ("value", f"{bounded(result.fun, result.lower, result.upper)} ({result.guarantee})"),
        *_constraint_rows(result.get("constraints", {})),
        *_certificate_rows(result.certificate, result.guarantee, result.optimizer.space.dim),
        *_gap_rows(result),
        ("evaluations", f"{result.nfev:,}{failed}, {duration(result.seconds)}"),
        ("seed", str(result.get("seed", "not known"))),
    ]
    head = f"{'Minimum' if result.direction == 'minimize' else 'Maximum'} {number(result.fun)}"
    return _box(head, result.message, _rows(rows), _progress(result.history))


def player_html(player: Player, name: str) -> str:
    """An optimizer or a study: the answer so far, and how many trials there are."""
    states = [f"{player.n_told:,} {'value' if player.n_told == 1 else 'values'}"]
    others = {"pending": player.n_pending, "failed": player.n_failed, "pruned": player.n_pruned}
    states += [f"{count:,} {state}" for state, count in others.items() if count]
    rows: list[tuple[str, str]] = []
    if player.n_told and not player.contexts.names:  # each context has another answer
        best = player.recommend()
        rows += _params_rows(best.params)
        rows.append(("value", bounded(best.mean, best.lower, best.upper)))
        rows += _constraint_rows(player.constraints_at(best.params))
        rows += _certificate_rows(player.certificate(), player.guarantee, player.space.dim)
    else:
        lines = [line.partition("  ") for line in player.space.describe().splitlines()]
        rows += [(name if spec else "space", spec.strip() or name) for name, _, spec in lines]
        rows = rows[:MOST_PARAMS]
    rows += [("policy", type(player.policy).__name__), ("seed", str(player.seed))]
    return _box(name, f"{player.direction}, {', '.join(states)}", _rows(rows))


def _certificate_rows(certificate: float, guarantee: str, dim: int) -> list[tuple[str, str]]:
    """A certificate, what it says, and how often such ones held if it is an estimate."""
    says = certificate_says(certificate, guarantee)
    held = such_held(certificate, guarantee, dim)
    known = f"{number(certificate)} ({says})" if math.isfinite(certificate) else says
    rows = [("certificate", known)]
    return [*rows, ("in tests", held)] if held else rows


def _constraint_rows(known: Mapping[str, Known]) -> list[tuple[str, str]]:
    """What is known of each constrained quantity at the answer."""
    return [
        (
            each.constraint,
            f"{bounded(each.mean, each.lower, each.upper)}, probability {each.probability:.3g}"
            if math.isfinite(each.mean)
            else "not known",
        )
        for each in known.values()
    ]


def _gap_rows(result: Result) -> list[tuple[str, str]]:
    """Where a peak may hide, if the certificate is an estimate."""
    gap = gap_says(result.certificate, result.guarantee, result.history.trials)
    return [("unexplored", gap)] if gap else []


def trials_html(trials: Trials) -> str:
    """A table of trials: the first and the last few."""
    n = len(trials)
    table = columns_of(trials[:HEAD])
    if n > HEAD:
        rest = columns_of(trials[max(HEAD, n - TAIL) :])
        names = list(dict.fromkeys([*table, *rest]))
        shown = min(n, HEAD)
        table = {
            name: table.get(name, [None] * shown)
            + (["⋮"] if n > HEAD + TAIL else [])
            + rest.get(name, [None] * min(n - HEAD, TAIL))
            for name in names
        }
    return _box(f"{n:,} trials", "", _table(table))


def _params_rows(params: Any) -> list[tuple[str, str]]:
    """The answer, a row a name; an array in one row."""
    if not isinstance(params, dict):
        shown = ", ".join(f"{float(v):.4g}" for v in params[:6])
        return [("x", f"[{shown}{', …' if len(params) > 6 else ''}]")]
    rows = [(name, value_text(value)) for name, value in params.items()]
    more = len(rows) - MOST_PARAMS
    return rows[:MOST_PARAMS] + ([("…", f"{more} more")] if more > 0 else [])


# -- pieces ----------------------------------------------------------------------------------------


def _box(title: str, line: str, *parts: str) -> str:
    head = f'<div style="font-weight:600">{text(title, LONGEST_LINE)}</div>'
    if line:
        shown = text(line, LONGEST_LINE)
        head += f'<div style="opacity:.7;font-size:90%">{shown}</div>'
    return f'<div style="{_BOX}">{head}{"".join(parts)}</div>'


def _rows(rows: Iterable[tuple[str, str]]) -> str:
    """Names and what belongs to them, side by side."""
    cells = "".join(
        f'<tr style="background:none"><td style="{_CELL};opacity:.7">{text(name)}</td>'
        f'<td style="{_CELL}">{text(value)}</td></tr>'
        for name, value in rows
    )
    return f'<table style="border:none;margin-top:6px;color:inherit">{cells}</table>'


def _table(table: Columns) -> str:
    """Columns under their names; not all if there are many."""
    names = list(table)
    shown = names[:MOST_COLUMNS]
    heads = [*map(text, shown), *([f"… {len(names) - len(shown)} more"] if names != shown else [])]
    line = "".join(f'<th style="{_CELL};opacity:.7">{head}</th>' for head in heads)
    body = "".join(
        '<tr style="background:none">'
        + "".join(f'<td style="{_CELL}">{_cell(value)}</td>' for value in row)
        + "</tr>"
        for row in zip(*(table[name] for name in shown), strict=True)
    )
    return f'<table style="border:none;margin-top:6px;color:inherit"><tr>{line}</tr>{body}</table>'


def _cell(value: Any) -> str:
    return "" if value is None else text(value_text(value))


def _progress(history: History) -> str:
    """The values and the answer of each moment, as a small drawing; none of fewer than 2."""
    values, at, mean = history.values, history.evaluations, history.best_mean
    if len(values) < 2 or len(at) < 2:
        return ""
    finite = values[np.isfinite(values)]
    inside = np.concatenate([np.quantile(finite, [0.02, 0.98]), mean[np.isfinite(mean)][-3:]])
    low, high = float(inside.min()), float(inside.max())
    if not high > low:
        return ""
    shown = np.unique(np.linspace(0, len(values) - 1, min(len(values), 200)).round().astype(int))
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="1.2"/>'
        for x, y in _pixels(shown + 1, values[shown], len(values), low, high)
    )
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in _pixels(at, mean, len(values), low, high))
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="progress" '
        f'style="margin-top:6px;display:block"><g fill="{_GREY}" fill-opacity=".6">{dots}</g>'
        f'<polyline points="{line}" fill="none" stroke="{_BLUE}" stroke-width="2"/></svg>'
    )


def _pixels(
    at: Any, values: FloatArray, n: int, low: float, high: float
) -> Sequence[tuple[float, float]]:
    """Places of values in the drawing, those outside at its edge."""
    x = 4 + (WIDTH - 8) * (np.asarray(at, dtype=float) - 1) / max(n - 1, 1)
    y = 4 + (HEIGHT - 8) * (1 - (np.clip(values, low, high) - low) / (high - low))
    pairs = zip(x.tolist(), y.tolist(), strict=True)
    return [pair for pair in pairs if all(map(math.isfinite, pair))]
