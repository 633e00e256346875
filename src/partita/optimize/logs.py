"""Trials in the log, at the level DEBUG: where each was begun, and how it ended.

The logger is `partita.trials`: `logging.basicConfig(level=logging.DEBUG)` shows it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from partita._text import error_text, params_text, printable
from partita._text import number as number_text

if TYPE_CHECKING:
    from .trial import Trial

_log = logging.getLogger("partita.trials")


def log_begun(number: int, params: Any, how: str = "asked for") -> None:
    """Log that a trial was begun."""
    if _log.isEnabledFor(logging.DEBUG):
        _log.debug("trial %d %s: %s", number, how, printable(params_text(params)))


def log_planned(rows: Sequence[Trial]) -> None:
    """Log the rows of a plan."""
    for trial in rows:
        log_begun(trial.number, trial.params, f"planned {trial.count} times")


def log_told(number: int, value: float, std: float | None, count: int = 1) -> None:
    """Log the value of a trial."""
    if _log.isEnabledFor(logging.DEBUG):
        noise = "" if std is None else f" ± {number_text(std)}"
        times = "" if count == 1 else f", the mean of {count}"
        _log.debug("trial %d told: %s%s%s", number, number_text(value), noise, times)


def log_added(number: int, params: Any, value: float, std: float | None, count: int = 1) -> None:
    """Log a value known from elsewhere."""
    log_begun(number, params, "added")
    log_told(number, value, std, count)


def log_pruned(number: int, reports: int) -> None:
    """Log that a trial ended early."""
    _log.debug("trial %d pruned after %d reports", number, reports)


def log_cancelled(number: int) -> None:
    """Log that a trial was given up."""
    _log.debug("trial %d cancelled", number)


def log_failed(number: int, error: BaseException) -> None:
    """Log that the evaluation of a trial failed."""
    if _log.isEnabledFor(logging.DEBUG):
        _log.debug("trial %d failed: %s", number, printable(error_text(error)))
