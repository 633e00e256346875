"""Whether a tolerance can be reached, said before the first evaluation."""

from __future__ import annotations

import logging

from partita.optimize.loop import Limits
from partita.optimize.player import Player
from partita.policies.reach import reach, says

_log = logging.getLogger(__name__)


def out_of_reach(player: Player, limits: Limits) -> str | None:
    """A sentence, also logged, if a proven certificate will likely not reach the tolerance.

    None if it can, if no tolerance is given, if the bounds are not proven, and for a run that goes
    on: what it has seen is worth more than an estimate.
    """
    planned = limits.n_evals or getattr(player.policy, "horizon", None)
    if limits.tolerance is None or planned is None or player.n_told:
        return None
    found = reach(player.policy, limits.tolerance, planned)
    said = None if found is None else says(found, limits.tolerance, planned)
    if said is not None:
        _log.warning("%s. Give a larger tolerance, or more evaluations", said)
    return said
