"""What a run needs of an `Optimizer` or a `Study`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Protocol

from partita._types import FloatArray, Prediction
from partita.errors import Settled
from partita.policies.base import Policy
from partita.space import Space

from .constraints import Constraints, Known
from .optimizer import Suggestion, Trial
from .trials import Trials


class Player(Protocol):
    """Asks for trials and is told their values, in memory or in a file that others use, too.

    `tell`, `cancel`, `fail` and `hold` raise `Settled` for a trial that was told or cancelled
    already, as somebody else may do at any time.
    """

    @property
    def space(self) -> Space:
        """What may vary."""

    @property
    def direction(self) -> str:
        """Either "minimize" or "maximize"."""

    @property
    def constraints(self) -> Constraints:
        """What other quantities must be."""

    @property
    def policy(self) -> Policy:
        """What chooses."""

    @property
    def guarantee(self) -> str:
        """What stands behind the bounds, such as "proven" or "calibrated"."""

    @property
    def trials(self) -> Trials:
        """All trials so far."""

    @property
    def n_told(self) -> int:
        """How many values have been told or added."""

    @property
    def adopted(self) -> Sequence[Trial]:
        """Trials that a killed run had under way, which `ask` returns before any other."""

    def ask(self) -> Trial:
        """The next trial."""

    def expect(self, params: Any) -> Trial:
        """A trial at parameters that were chosen elsewhere."""

    def tell(self, trial: Trial, value: Any, std: float | None = None) -> None:
        """Report the value of a trial, and the standard deviation of its noise if it is known."""

    def cancel(self, trial: Trial) -> None:
        """Give up a trial."""

    def fail(self, trial: Trial) -> None:
        """Give up a trial whose evaluation failed."""

    def hold(self, trial: Trial) -> None:
        """Keep a trial pending that is not evaluated any more, or never was."""

    def recommend(self) -> Suggestion:
        """The best parameters by what is known."""

    def constraints_at(self, params: Any) -> dict[str, Known]:
        """What is known of each constrained quantity at some parameters."""

    def certificate(self) -> float:
        """How much better than the recommended parameters any others can still be."""

    def predict(self, params: Sequence[Any] | FloatArray) -> Prediction:
        """The posterior of the function at n points."""


def give_up(player: Player, trial: Trial) -> None:
    """Cancel a trial, unless somebody else has settled it."""
    with suppress(Settled):
        player.cancel(trial)
