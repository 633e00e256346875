"""What a sampler has learned of one search space: an `Optimizer`, and which trials are in it."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any, NamedTuple

from optuna.trial import TrialState

from partita.errors import InvalidInput
from partita.optimizer import Optimizer, Suggestion

from ._optuna_space import PROPOSAL, SearchSpace, Translation

#: Values beyond this are no measurements: see `Model._told_as`.
LARGEST = 1e100


class _Pending(NamedTuple):
    """The trial's number in the optimiser, and its point."""

    number: int
    point: dict[str, Any]


class Model:
    """An optimiser on a search space, kept up with the trials of a study.

    Parameters
    ----------
    search_space
        Distributions that Partita plays.
    direction, seed, settings
        As `Optimizer` takes them.
    pruned
        Whether the last value that a pruned trial reported counts as its value.
    """

    def __init__(
        self,
        search_space: SearchSpace,
        *,
        direction: Any,
        seed: int,
        settings: dict[str, Any],
        pruned: bool,
    ) -> None:
        self.translation = Translation(search_space)
        self.optimizer = Optimizer(
            self.translation.space, direction=direction, seed=seed, **settings
        )
        self._counts = {TrialState.COMPLETE, TrialState.PRUNED} if pruned else {TrialState.COMPLETE}
        self._pending: dict[int, _Pending] = {}
        self._failed: set[tuple[Any, ...]] = set()
        self._lowest, self._highest = math.inf, -math.inf

    def propose(self, number: int) -> dict[str, Any] | None:
        """Values for a trial, in the internal form; None if all that comes up failed before.

        The optimiser learns nothing from a failure, and would propose the same for ever.
        """
        trial = self.optimizer.ask()
        point = dict(trial.params)
        if tuple(point.values()) in self._failed:
            self.optimizer.cancel(trial)
            return None
        self._pending[number] = _Pending(trial.number, point)
        return point

    def take(self, trial: Any) -> None:
        """Take in a trial: one that another worker runs, or that has ended."""
        proposal = trial.system_attrs.get(PROPOSAL) or {}
        if trial.number in self._pending:
            proposal = self._pending[trial.number].point
        point = self.translation.point(trial, proposal)
        if not trial.state.is_finished():
            if trial.number not in self._pending and point is not None:
                self._expect(trial.number, point)
            return
        pending = self._pending.pop(trial.number, None)
        value = self._told_as(trial.value) if trial.state in self._counts else None
        if pending is not None and (value is None or pending.point != point):
            self.optimizer.cancel(pending.number)
            pending = None
        if point is not None:
            (self._failed.add if value is None else self._failed.discard)(tuple(point.values()))
        if value is None:
            return
        if pending is not None:
            self.optimizer.tell(pending.number, value)
        elif point is not None:
            with suppress(InvalidInput):  # fixed by the user, outside the search space
                self.optimizer.add(point, value)

    def recommend(self) -> Suggestion:
        """The best parameters by what is known, as the objective gets them."""
        found = self.optimizer.recommend()
        return found._replace(params=self.translation.external(found.params))

    def _expect(self, number: int, point: dict[str, Any]) -> None:
        with suppress(InvalidInput):  # fixed by the user, outside the search space
            self._pending[number] = _Pending(self.optimizer.expect(point).number, point)

    def _told_as(self, value: float | None) -> float | None:
        """The value to tell; None if there is none.

        Optuna takes infinite values. They are told as the worst or best value so far, since a
        region where training diverges must not look unknown.
        """
        if value is None or math.isnan(value):
            return None
        if abs(value) <= LARGEST:
            self._lowest, self._highest = min(self._lowest, value), max(self._highest, value)
            return value
        nearest = self._highest if value > 0 else self._lowest
        return nearest if math.isfinite(nearest) else None
