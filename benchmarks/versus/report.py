"""The report: Markdown tables and a figure."""

from __future__ import annotations

import math
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from partita._text import aligned
from partita.experiments.store import replace_file
from partita.theory.catalogue import between

from . import problems
from .board import MEASURES, Board, Cell, Ranking, median, rank
from .roster import PLAYERS

#: Where the report begins and ends in the page, by the script that makes it.
MARK = "<!-- made by benchmarks/{}.py: {} -->"
#: Steps at which a step is timed.
TIMES = (100, 1_000, 10_000)
TIMED = (
    "Processor time of an ask and a tell on one core: the mean over the tenth of the run before t, "
    "and the median over all runs that reached t."
)
_NOISE = {"tenth": "noise of a tenth of the range", "whole": "noise as wide as the range"}
_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


class Column(NamedTuple):
    """A column of a summary: a board at one noise and budget."""

    title: str
    board: Board
    noise: str
    budget: int


def write(board: Board, folder: Path, docs: Path | None) -> list[Path]:
    """Write the report into a folder, and into the docs if they are given."""
    from . import figure

    if not board.runs:
        raise nothing(folder)
    return save("peers", "Peers", tables(board), figure.draw(board), folder, docs)


def nothing(folder: Path) -> SystemExit:
    """What to say of a folder without runs."""
    return SystemExit(f"{folder} holds no runs of what was asked for: make some first.")


def save(
    script: str, title: str, text: str, image: bytes, folder: Path, docs: Path | None
) -> list[Path]:
    """Write tables and a figure into a folder, and into a script's page if the docs are given.

    The page and the figure have the script's name up to its first underscore.
    """
    name = script.partition("_")[0]
    written = [folder / "report.md", folder / f"{name}.png"]
    replace_file(written[0], f"# {title}\n\n{text}\n![{title}]({name}.png)\n".encode())
    replace_file(written[1], image)
    if docs is not None:
        target, picture = docs / f"{name}.md", docs / "figures" / f"{name}.png"
        target.write_text(page(target.read_text(encoding="utf-8"), text, script), encoding="utf-8")
        replace_file(picture, image)
        written += [target, picture]
    return written


def page(before: str, text: str, script: str = "peers") -> str:
    """A page with what lies between its marks made anew."""
    return between(before, MARK.format(script, "begin"), MARK.format(script, "end"), text)


def tables(board: Board) -> str:
    """All tables."""
    columns = [Column(f"{budget:,}, {n}", board, n, budget) for n, budget in board.settings]
    parts = ["## In short", summary(columns), "## Time of an iteration", times(board), TIMED]
    for noise, budget in board.settings:
        parts.append(f"## {budget:,} evaluations, {_NOISE[noise]}")
        for measure, title in MEASURES.items():
            parts += [f"{title.capitalize()}:", by_problem(board, measure, noise, budget)]
    return "\n\n".join([*parts, *ending(board)]) + "\n"


def ending(board: Board) -> list[str]:
    """What failed, and which optimisers took part."""
    return ["## Failures", _failures(board), "## The optimisers", _roster(board)]


def summary(columns: Sequence[Column], measures: Mapping[str, str] = MEASURES) -> str:
    """A table a measure: the means of all players, and how often they were first."""
    playing = {player for column in columns for player in column.board.players}
    parts = []
    for measure, title in measures.items():
        rows = [[title, *(column.title for column in columns)]]
        texts = [_mean_and_firsts(measure, *column[1:]) for column in columns]
        rows += [
            [PLAYERS[player].title, *(text.get(player, "–") for text in texts)]
            for player in PLAYERS
            if player in playing
        ]
        parts.append("\n".join(aligned(rows)))
    return "\n\n".join(parts)


def _mean_and_firsts(measure: str, board: Board, noise: str, budget: int) -> dict[str, str]:
    columns = [board.column(measure, problem, noise, budget) for problem in board.problems]
    ranks = [rank(column) for column in columns]
    texts = {}
    for player in board.players:
        cells = [column[player] for column in columns]
        mean, counted = mean_text(cells), count_text(player, cells, ranks)
        texts[player] = mean if counted == "–" else f"{mean}; {counted}"
    return texts


def by_problem(board: Board, measure: str, noise: str, budget: int, turned: bool = False) -> str:
    """A row a player and a column a problem; or, if `turned`, the other way round."""
    columns = [board.column(measure, problem, noise, budget) for problem in board.problems]
    ranks = [rank(column) for column in columns]
    rows = [["", *(problems.TITLES[p] for p in board.problems), "mean", "first + level"]]
    for player in board.players:
        cells = [column[player] for column in columns]
        if not any(cell.runs for cell in cells):
            continue
        texts = [cell_text(c, player, r) for c, r in zip(cells, ranks, strict=True)]
        counted = count_text(player, cells, ranks)
        rows.append([PLAYERS[player].title, *texts, mean_text(cells), counted])
    return "\n".join(aligned(list(zip(*rows, strict=True)) if turned else rows))


def count_text(player: str, cells: Sequence[Cell], ranks: Sequence[Ranking]) -> str:
    """On how many problems a player was first, and on how many more it was level: 3 + 2, or 5.

    A dash for one that is not ranked on any.
    """
    if PLAYERS[player].told_truth or not any(cell.complete for cell in cells):
        return "–"
    firsts = sum(ranking.first == player for ranking in ranks)
    level = sum(player in ranking.level for ranking in ranks)
    return f"{firsts + level}" if cells[0].scoring.shared else f"{firsts} + {level}"


def cell_text(cell: Cell, player: str, ranking: Ranking) -> str:
    """A mean, bold if it is first, ≈ if it is level; or why there is none."""
    runs, failed = cell.runs, len(cell.failed)
    if not runs:
        return "·"
    if failed:
        return "failed" if failed == runs else f"failed {failed} of {runs}"
    if cell.stopped:
        return f"to {median(cell.stopped):,.0f}"
    text = number(cell.mean)
    if cell.missing:
        return f"{text} ({runs} of {runs + cell.missing} seeds)"
    if player == ranking.first or (cell.scoring.shared and player in ranking.level):
        return f"**{text}**"
    return f"≈ {text}" if player in ranking.level else text


def mean_text(cells: Sequence[Cell]) -> str:
    """The mean over problems; of how many, unless of all, or of how many seeds, unless of all."""
    average = cells[0].scoring.average
    means = [cell.mean for cell in cells if cell.complete]
    seeds = set.intersection(*(set(cell.values) for cell in cells))
    if len(means) < len(cells) and seeds and not any(c.stopped or c.failed for c in cells):
        shared = [cell.values[seed] for cell in cells for seed in seeds]
        most = max(cell.runs + cell.missing for cell in cells)
        return f"{number(average(shared))} ({len(seeds)} of {most} seeds)"
    if not means:
        return "–"
    text = number(average(means))
    return text if len(means) == len(cells) else f"{text} ({len(means)} of {len(cells)})"


def number(value: float) -> str:
    """Two digits, or one where the value is small: 0.34, 0.034, 0.003, 0.0004."""
    if value < 0.00095:
        return f"{value:.1g}"
    return f"{value:.2f}" if value >= 0.095 else f"{value:.3f}"


def duration(seconds: float) -> str:
    """Two digits with a unit: 35 µs, 1.2 ms; a dash for what was not reached."""
    if math.isnan(seconds):
        return "–"
    unit, name = next((pair for pair in _UNITS if seconds >= pair[0]), _UNITS[-1])
    scaled = seconds / unit
    return f"{scaled:.1f} {name}" if scaled < 9.95 else f"{scaled:,.0f} {name}"


def times(board: Board) -> str:
    rows = [["an iteration at", *(f"t = {t:,}" for t in TIMES), "last iteration"]]
    for player in board.players:
        runs = board.of(player)
        taken = [median(s for r in runs if (s := r.seconds_at(t)) is not None) for t in TIMES]
        farthest = max(run.steps for run in runs)
        rows.append([PLAYERS[player].title, *map(duration, taken), f"{farthest:,}"])
    return "\n".join(aligned(rows))


def _failures(board: Board) -> str:
    counted = Counter(
        (task.player, run.error, task.problem)
        for task, run in board.runs.items()
        if run.status == "failed"
    )
    if not counted:
        return "None."
    grouped: dict[tuple[str, str], list[str]] = {}
    for (player, error, problem), times in sorted(counted.items()):
        grouped.setdefault((player, error), []).append(f"{problems.TITLES[problem]} ({times})")
    rows = [["optimiser", "error", "problems (runs)"]]
    for (player, error), where in grouped.items():
        escaped = error.replace("|", "\\|")
        rows.append([PLAYERS[player].title, f"`{escaped}`", ", ".join(where)])
    return "\n".join(aligned(rows))


def _roster(board: Board) -> str:
    rows = [["optimiser", "settings", "versions", "runs", "hours"]]
    for player in board.players:
        runs, cls = board.of(player), PLAYERS[player]
        seconds = sum(run.total_seconds for run in runs)
        used = "; ".join(sorted({run.versions for run in runs}))
        old = sum(run.task.key != cls.key() for run in runs) if cls.missing() is None else 0
        count = f"{len(runs)}, {old} of them by earlier code" if old else f"{len(runs)}"
        rows.append([cls.title, cls.settings, used, count, f"{seconds / 3600:.2f}"])
    limits = sorted({run.time_limit for run in board.runs.values()})
    allowed = " or ".join(f"{limit:g}" for limit in limits)
    return "\n".join(aligned(rows)) + (
        f"\n\n{board.seeds} seed{'s' * (board.seeds > 1)}; at most {allowed} seconds a run. Python "
        f"{platform.python_version()}, {platform.machine()}."
    )
