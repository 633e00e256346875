"""Trials that are asked for before a client wants them, so that the next client need not wait.

Such an ask is in the log like any other, with the mark `ahead`, so a replay is exact. The
client that takes the trial adopts it; one that was not taken is cancelled. Until then it is pending
for the policy.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from .events import Kind
from .watching import KEYED, head

if TYPE_CHECKING:
    from partita.optimize.trial import Trial

    from .replica import Change
    from .study import Study


def prepare(study: Study) -> Trial:
    """A new trial that is not evaluated yet."""

    def prepared(change: Change) -> Trial:
        change.begin()
        begun = change.state.ask(time.time(), None, ahead=True)
        change.log(begun.event)
        return begun.trial

    return study.changed(prepared)


def take(study: Study, trial: Trial) -> bool:
    """Begin to evaluate a trial that was prepared; False if it is not pending any more."""

    def taken(change: Change) -> bool:
        if trial.number not in change.state.asked:  # it expired, or was cancelled by its number
            return False
        change.begin()
        change.log(change.state.adopt(trial.number, time.time(), None))
        return True

    return study.changed(taken)


def left(study: Study) -> list[Trial]:
    """Trials that were prepared and not taken, as by a process that was killed."""
    query = (
        "SELECT trial FROM events WHERE seq > ? AND kind = ? AND data LIKE '%\"ahead\":true%' "
        "AND trial NOT IN (SELECT trial FROM events WHERE seq > ? AND kind = ?) ORDER BY trial"
    )
    first = max(head(study) - KEYED, 0)
    values = (first, Kind.ASK, first, Kind.ADOPT)
    rows = study.look(lambda store: store.typed(query, ((int,),), values))
    pending = study.pending()
    return [pending[number] for (number,) in rows if number in pending]
