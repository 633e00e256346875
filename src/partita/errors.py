"""Errors and warnings of Partita. Each error is a `PartitaError` and a built-in error."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence


class PartitaError(Exception):
    """Base class of every error that Partita raises on purpose."""


class InvalidInput(PartitaError, ValueError):
    """A value, shape or setting that cannot be used. The message says what to give instead."""


class NotPending(PartitaError, LookupError):
    """The trial or point that was given is not pending."""


class Settled(NotPending):
    """The trial already has a value or was cancelled, perhaps by another process or thread."""


class VersionMismatch(PartitaError, ValueError):
    """A saved state was written by a newer version of Partita than this one can read."""


class NumericalError(PartitaError, ArithmeticError):
    """A covariance matrix is not positive definite, by more than rounding explains."""


class HalfChanged(PartitaError, RuntimeError):
    """A call came while another was changing the object, or after one was interrupted in that."""


class EvaluationFailed(PartitaError, RuntimeError):
    """No evaluation of the user's function gave a value. Its first error, if any, is the cause.

    Attributes
    ----------
    nfail
        The number of evaluations that failed.
    errors
        The first few of their errors.
    """

    def __init__(self, message: str, nfail: int = 0, errors: Sequence[BaseException] = ()) -> None:
        super().__init__(message)
        self.nfail, self.errors = nfail, tuple(errors)


class TrialPruned(PartitaError):
    """Raised by a function that is optimised, to end an evaluation that can hardly become the best.

    Examples
    --------
    >>> import partita as pt
    >>> def train(rate, trial):
    ...     loss = 1.0
    ...     for epoch in range(10):
    ...         loss = 0.9 * loss + (rate - 0.3) ** 2
    ...         trial.report(loss, epoch)
    ...         if trial.should_prune():
    ...             raise pt.TrialPruned
    ...     return loss
    >>> result = pt.minimize(train, {"rate": (0.0, 1.0)}, n_evals=20, seed=0)
    >>> result.nfev + result.npruned
    20
    """


class StudyError(PartitaError, OSError):
    """The file of a study cannot be used, read or written. The message says why."""


class StudyLocked(StudyError, TimeoutError):
    """Another process kept the file of a study locked for too long."""


class TheoryWarning(UserWarning):
    """The guarantees are not proven for this setting or observation."""


class CacheWarning(UserWarning):
    """Compiled code cannot be kept on disk. Everything works, but each start is slower."""


def warn_theory(message: str) -> None:
    """Give a `TheoryWarning` that points at the line of the user's code that caused it."""
    warn(message, TheoryWarning)


def warn(message: str, category: type[Warning]) -> None:
    """Give a warning that points at the line of the user's code that caused it."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
        # Python does not count the frames of its import system.
        level += not frame.f_globals.get("__name__", "").startswith("importlib._bootstrap")
    warnings.warn(message, category, stacklevel=level)


def _is_ours(module: str) -> bool:
    """Whether a module belongs to Partita, to the import system or to the compiler."""
    return module.partition(".")[0] in {"partita", "importlib", "numba"}
