"""Ending an Optuna study by Partita's certificate."""

from __future__ import annotations

import logging
from typing import Any

from optuna.trial import TrialState

from partita._checks import as_number
from partita.errors import InvalidInput
from partita.optimize.loop import CERTIFICATE_EVERY

_LOGGER = logging.getLogger(__name__)


class CertificateCallback:
    """Ends a study once no other parameters can be better than the recommended ones by much.

    It looks at the certificate after each finished trial up to 40, then each time there are 2.5 %
    more. That is what `tolerance` of `partita.minimize` does.

    Parameters
    ----------
    tolerance : float
        In the units of the objective, at least 0.
    sampler : PartitaSampler, optional
        That of the study, if not given.

    Examples
    --------
    >>> import optuna
    >>> from partita.integrations.optuna import CertificateCallback, PartitaSampler
    >>> study = optuna.create_study(sampler=PartitaSampler(seed=0))
    >>> study.optimize(
    ...     lambda trial: (trial.suggest_float("x", 0, 1) - 0.3) ** 2,
    ...     n_trials=200,
    ...     callbacks=[CertificateCallback(0.01)],
    ... )
    >>> len(study.trials) < 200
    True
    """

    def __init__(self, tolerance: float, sampler: Any = None) -> None:
        number = as_number(tolerance)
        if not number >= 0.0:
            raise InvalidInput(f"tolerance={tolerance!r}: give a number of at least 0")
        if sampler is not None:
            _check_sampler(sampler)
        self.tolerance, self._sampler = number, sampler
        self._next = 1
        self._finished = 0

    def __call__(self, study: Any, trial: Any) -> None:
        """Stop the study if the certificate is small enough; Optuna calls it after each trial."""
        if trial.state != TrialState.COMPLETE:
            return
        self._finished += 1
        if self._finished < self._next:
            return
        self._next = self._finished + max(1, self._finished // CERTIFICATE_EVERY)
        sampler = study.sampler if self._sampler is None else self._sampler
        _check_sampler(sampler)
        try:
            certificate = sampler.certificate(study)
        except InvalidInput:  # no trial has shown yet what varies
            return
        if certificate <= self.tolerance:
            _LOGGER.info("the certificate, %.3g, is within the tolerance", certificate)
            study.stop()


def _check_sampler(sampler: Any) -> None:
    if not callable(getattr(sampler, "certificate", None)):
        raise InvalidInput(
            f"CertificateCallback needs the certificate of a PartitaSampler, but the study has "
            f"{type(sampler).__name__}: give the study a PartitaSampler, or name one here by "
            "sampler="
        )
