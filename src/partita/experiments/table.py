"""Table 1 as text, beside the paper's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from partita._text import aligned, duration
from partita._version import __version__

from .paper import LABELS, PUBLISHED, Plan
from .summary import Entry, entry
from .trace import Trace

_MARKS = "†‡§"
REGRET_NOTE = (
    "Regret: the mean over runs of R_T / (T (f* − mean f)), a fraction of what uniform sampling "
    "loses on the same function; ± half of Student’s 95 % confidence interval."
)


def render(plan: Plan, traces: Mapping[tuple[int, str], Sequence[Trace]]) -> str:
    """Table 1 in Markdown: regret as a fraction of uniform sampling's, and the time of a run."""
    entries = {key: entry(group) for key, group in traces.items()}
    notes: dict[str, str] = {}
    header = ["d"]
    for policy in plan.policies:
        if any((d, policy) in PUBLISHED for d in plan.dims):
            header.append(f"{LABELS[policy].partition(' (')[0]}, paper")
        header.append(f"{LABELS[policy]}, here")
    rows = []
    for dim in plan.dims:
        row = [str(dim)]
        for policy in plan.policies:
            if (dim, policy) in PUBLISHED:
                row.append("{}, {}".format(*PUBLISHED[dim, policy]))
            row.append(_cell(entries[dim, policy], plan, notes))
        rows.append(row)
    lines = [
        f"Table 1 of Janz, Burt & González (2020), made by Partita {__version__}: "
        f"T = {plan.horizon:,}, {runs_text(plan.runs)} each, 30^d arms, noise uniform on [−1, 1].",
        "",
        *aligned([header, *rows]),
        "",
        REGRET_NOTE,
        "Time: the mean over runs of the time to make the policy and of all its asks and tells, on "
        "one core.",
        *(f"{mark} {note}" for note, mark in notes.items()),
    ]
    return "\n".join(lines) + "\n"


def _cell(e: Entry, plan: Plan, notes: dict[str, str]) -> str:
    mark = ""
    if (e.horizon, e.runs) != (plan.horizon, plan.runs):
        note = f"T = {e.horizon:,}, {runs_text(e.runs)}."
        mark = " " + notes.setdefault(note, _MARKS[len(notes)])
    return f"{estimate(*e.regret)}, {duration(e.seconds)}{mark}"


def estimate(mean: float, half_width: float) -> str:
    """A mean and its interval, to the digits that mean something: 0.13 ± 0.08, 0.512."""
    digits = 2 if math.isnan(half_width) or half_width >= 0.0095 else 3
    text = f"{mean:.{digits}f}"
    return text if math.isnan(half_width) else f"{text} ± {half_width:.{digits}f}"


def runs_text(number: int) -> str:
    """The number of runs as text: 1 run, 5 runs."""
    return f"{number} run{'s' * (number > 1)}"
