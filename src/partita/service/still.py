"""A run in memory as the page shows a study: nothing happens to it any more."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from partita.optimize.result import Checkpoint
from partita.study.watching import Pace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from partita.optimize.player import Player


class Still:
    """An optimizer with what the page asks of a study; all else is the optimizer's own.

    Parameters
    ----------
    player
        The optimizer.
    notes
        The answers that were noted during the run.
    """

    def __init__(self, player: Player, notes: Sequence[Checkpoint] = ()) -> None:
        self._player, self._notes = player, list(notes)
        texts = list(player.constraints.texts)
        policy: Any = player.policy
        delta = getattr(policy, "delta", None)
        self.settings = SimpleNamespace(
            delta=delta, n_evals=None, expire_after=None, constraints=texts
        )
        self.expired: tuple[int, ...] = ()
        self.tolerance: float | None = None
        self.pace = Pace(0.0, time.time() - 1e6)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._player, name)

    @property
    def head(self) -> int:
        """A number that grows with what has happened."""
        return len(self._player.trials) + self._player.n_told

    def notes(self) -> list[Checkpoint]:
        """The answers that were noted."""
        return self._notes
