"""Which trial is meant: its number, checked."""

from __future__ import annotations

from collections.abc import Container

import numpy as np

from partita.errors import InvalidInput, NotPending, Settled

from .contexts import Contexts
from .ledger import Ledger
from .trial import Trial
from .trials import FAILED, FINISHED, PENDING, PRUNED

#: The rounding error allowed in a coordinate of the unit cube.
SAME_POINT = 1e-9


def number_of(
    trial: Trial | int, ledger: Ledger, contexts: Contexts, verb: str, also: Container[int] = ()
) -> int:
    """The number of a trial that is pending or in `also`; `verb` is for the error message."""
    given = trial.number if isinstance(trial, Trial) else trial
    if isinstance(given, bool) or not isinstance(given, int | np.integer):
        raise InvalidInput(
            f"{verb}({trial!r}, ...): give the trial that ask() returned, or its number"
        )
    number, last = int(given), len(ledger) - 1
    if not 0 <= number <= last:
        range_text = f"numbers go from 0 to {last}" if last >= 0 else "there are no trials yet"
        raise NotPending(f"{verb}({number}): there is no trial {number}, {range_text}")
    if isinstance(trial, Trial):
        _check_origin(trial, ledger, contexts, verb)
    state = ledger.state(number)
    if state != PENDING and number not in also:
        ends = {FINISHED: "already has a value", FAILED: "was cancelled", PRUNED: "was pruned"}
        raise Settled(
            f"{verb}({number}): trial {number} {ends[state]}. Ask for a new trial, or use "
            "add(params, value) to report another value at its parameters"
        )
    return number


def _check_origin(trial: Trial, ledger: Ledger, contexts: Contexts, verb: str) -> None:
    """Refuse a trial of another optimizer, whose numbers belong to other points."""
    space = contexts.space
    if trial._origin is not None:
        ours = trial._origin == (space.mark, ledger.mark(trial.number))
    else:  # made by hand
        unit = ledger.unit(trial.number)
        params = contexts.joined(trial.params, trial.context, verb)
        ours = float(np.abs(space.encode(params) - unit).max()) <= SAME_POINT
    if not ours:
        raise InvalidInput(
            f"{verb}({trial!r}): trial {trial.number} of this optimizer has other parameters. "
            "Give the trial that its ask() returned, or use add(params, value)"
        )


def reports_of(trial: Trial | int) -> dict[int, float]:
    """What a trial has reported; nothing is known of one that is given by its number."""
    return trial.reports if isinstance(trial, Trial) else {}
