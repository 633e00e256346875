"""The interface that a run needs of an `Optimizer` or a `Study`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from os import PathLike
from typing import Any, Literal, Protocol, overload

from partita._types import FloatArray, Prediction
from partita.errors import Settled
from partita.policies.base import Policy
from partita.space import Space

from .constraints import Constraints, Known
from .contexts import Contexts
from .trial import Suggestion, Trial
from .trials import Trials


class Player(Protocol):
    """Proposes trials and records their values, in memory or in a file shared with others.

    `tell`, `cancel`, `fail` and `hold` raise `Settled` for a trial that was already told or
    cancelled, as another process or thread may do at any time.
    """

    @property
    def space(self) -> Space:
        """The search space."""

    @property
    def contexts(self) -> Contexts:
        """Which parameters of the space are the context."""

    @property
    def direction(self) -> str:
        """Either "minimize" or "maximize"."""

    @property
    def constraints(self) -> Constraints:
        """What other quantities must be."""

    @property
    def seed(self) -> int:
        """What random choices come from."""

    @property
    def policy(self) -> Policy:
        """The policy that chooses the points."""

    @property
    def guarantee(self) -> str:
        """The kind of guarantee of the bounds, such as "proven" or "calibrated"."""

    @property
    def trials(self) -> Trials:
        """All trials so far."""

    @property
    def n_told(self) -> int:
        """The number of values reported, by `tell` and `add`."""

    @property
    def n_values(self) -> int:
        """The same, with the values behind a mean counted one by one."""

    @property
    def n_failed(self) -> int:
        """How many trials have been cancelled."""

    @property
    def n_pending(self) -> int:
        """How many trials are neither told nor cancelled."""

    @property
    def n_pruned(self) -> int:
        """How many trials were ended early."""

    @property
    def adopted(self) -> Sequence[Trial]:
        """Trials that a killed run was evaluating; `ask` returns them first."""

    @overload
    def ask(self, count: None = None) -> Trial: ...
    @overload
    def ask(self, count: int) -> list[Trial]: ...
    def ask(self, count: int | None = None) -> Trial | list[Trial]:
        """The next trial, or a list of the next ones."""

    def expect(self, params: Any) -> Trial:
        """A new trial at parameters that the caller chose."""

    def plan(self, n: int) -> list[Trial]:
        """Trials to evaluate several times each, at most n in all."""

    def tell(
        self, trial: Trial, value: Any, std: float | None = None, *, count: int | None = None
    ) -> None:
        """Report the value of a trial, and the standard deviation of its noise if known.

        With a `count` above 1, report the mean of as many, and their sample deviation.
        """

    def add(self, params: Any, value: Any, std: float | None = None) -> int:
        """Report a value known from elsewhere, and get the number of its trial."""

    def cancel(self, trial: Trial) -> None:
        """Cancel a trial."""

    def prune(self, trial: Trial) -> bool:
        """End a trial early, and return whether its reports have told the model anything."""

    def fail(self, trial: Trial) -> None:
        """Give up a trial whose evaluation failed."""

    def hold(self, trial: Trial) -> None:
        """Keep a trial pending although it is not being evaluated."""

    def recommend(self) -> Suggestion:
        """The parameters with the best posterior."""

    def constraints_at(self, params: Any) -> dict[str, Known]:
        """What is known of each constrained quantity at some parameters."""

    def certificate(self) -> float:
        """A bound, proven or estimated, on how much better any other parameters can be."""

    def predict(self, params: Sequence[Any] | FloatArray) -> Prediction:
        """The posterior of the function at n points."""

    def plot(
        self,
        path: str | PathLike[str] | None = None,
        kind: Literal["run", "importance", "slices", "pairs", "timeline"] = "run",
    ) -> Any:
        """A Matplotlib figure of what is known."""


def give_up(player: Player, trial: Trial) -> None:
    """Cancel a trial, unless it was ended elsewhere."""
    with suppress(Settled):
        player.cancel(trial)
