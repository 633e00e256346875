"""What a study answers: the part of `Study` that changes nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast, overload

from partita._optional import require
from partita._types import FloatArray, Prediction
from partita.optimize.constraints import Constraints, Known
from partita.optimize.contexts import Contexts
from partita.optimize.optimizer import Optimizer
from partita.optimize.result import Checkpoint
from partita.optimize.trial import Suggestion, Trial
from partita.optimize.trials import Trials
from partita.policies.base import Policy
from partita.space import Space

from .events import FIRST_TIME, LAST_TIME, PROGRESS, Kind
from .replica import Replica
from .store import Store

if TYPE_CHECKING:
    from .study import Study

T = TypeVar("T")


class Answers:
    """Questions to a study in a file.

    Attributes
    ----------
    path
    settings
        The settings of the study.
    """

    def __init__(self, replica: Replica) -> None:
        self._replica, self._store = replica, replica.store
        self.path, self.settings = replica.store.path, replica.settings

    @overload
    def recommend(
        self,
        context: Mapping[str, Any] | None = None,
        fixed: Mapping[Any, Any] | None = None,
    ) -> Suggestion: ...
    @overload
    def recommend(
        self, context: Sequence[Mapping[str, Any]], fixed: Mapping[Any, Any] | None = None
    ) -> list[Suggestion]: ...
    def recommend(self, context: Any = None, fixed: Any = None) -> Any:
        """The best parameters by what is known: see `Optimizer.recommend`."""
        return self._read(lambda optimizer: optimizer.recommend(context, fixed))

    def constraints_at(self, params: Any) -> dict[str, Known]:
        """What is known of each constrained quantity at some parameters, by its name."""
        return self._read(lambda optimizer: optimizer.constraints_at(params))

    def certificate(
        self,
        context: Mapping[str, Any] | None = None,
        fixed: Mapping[Any, Any] | None = None,
    ) -> float:
        """A bound on how much better others can be: see `Optimizer.certificate`."""
        return self._read(lambda optimizer: optimizer.certificate(context, fixed))

    def predict(self, params: Sequence[Any] | FloatArray, context: Any = None) -> Prediction:
        """The posterior of the function at n points: mean, std, lower, upper, each (n,)."""
        return self._read(lambda optimizer: optimizer.predict(params, context))

    @property
    def trials(self) -> Trials:
        """All trials so far: a sequence of records, with numbers, values and states as arrays."""
        return self._read(lambda optimizer: optimizer.trials)

    @property
    def n_told(self) -> int:
        """The number of values reported, by `tell` and `add`."""
        return self._read(lambda optimizer: optimizer.n_told)

    @property
    def n_values(self) -> int:
        """The same, with the values behind a mean counted one by one."""
        return self._read(lambda optimizer: optimizer.n_values)

    @property
    def n_failed(self) -> int:
        """The number of trials that were cancelled, or expired and have no value since."""
        return self._read(lambda optimizer: optimizer.n_failed)

    @property
    def n_pruned(self) -> int:
        """How many trials were ended early."""
        return self._read(lambda optimizer: optimizer.n_pruned)

    def reports(self, number: int) -> dict[int, float]:
        """What a trial that has ended had reported after each step."""
        return self._read(lambda optimizer: optimizer.reports(number))

    @property
    def n_pending(self) -> int:
        """The number of trials that have not ended."""
        return self._read(lambda optimizer: optimizer.n_pending)

    @property
    def policy(self) -> Policy:
        """The policy, for inspection only: values reported to it directly are not stored."""
        return self._read(lambda optimizer: optimizer.policy)

    @property
    def space(self) -> Space:
        """The search space."""
        return self._read(lambda optimizer: optimizer.space)

    @property
    def contexts(self) -> Contexts:
        """Which parameters of the space are the context."""
        return self._read(lambda optimizer: optimizer.contexts)

    @property
    def constraints(self) -> Constraints:
        """What other quantities must be."""
        return self._read(lambda optimizer: optimizer.constraints)

    @property
    def direction(self) -> str:
        """Either "minimize" or "maximize"."""
        return self.settings.direction

    @property
    def seed(self) -> int:
        """What random choices come from."""
        return self.settings.seed

    @property
    def guarantee(self) -> str:
        """The kind of guarantee of the bounds, such as "proven" or "calibrated"."""
        return self._read(lambda optimizer: optimizer.guarantee)

    def pending(self) -> dict[int, Trial]:
        """The trials that have not ended, by their numbers."""
        with self._store.lock:
            state = self._replica.current()
            return {number: state.optimizer.trial(number) for number in state.asked}

    @property
    def expired(self) -> tuple[int, ...]:
        """The numbers of the trials that expired and have no value since."""
        with self._store.lock:
            return tuple(sorted(self._replica.current().expired))

    @property
    def differing(self) -> int:
        """The number of asks in the log for which the policy would choose another point here.

        That may happen with another version or processor: see the guide.
        """
        with self._store.lock:
            return self._replica.current().differing

    def notes(self) -> list[Checkpoint]:
        """The recommendations recorded over time; `seconds` are since 1970."""
        with self._store.lock:
            rows = self._store.typed(*PROGRESS)
        return [Checkpoint._make(math.nan if v is None else v for v in row) for row in rows]

    def times(self, kinds: Sequence[Kind]) -> dict[int, float]:
        """The time of each trial's last event of the given kinds, in seconds since 1970."""
        places = ", ".join("?" * len(kinds))
        query = (
            f"SELECT trial, min(max(max(time), {FIRST_TIME}), {LAST_TIME}) FROM events "
            f"WHERE kind IN ({places}) GROUP BY trial ORDER BY trial"
        )
        with self._store.lock:
            return dict(self._store.typed(query, ((int,), (float,)), kinds))

    # -- looking -------------------------------------------------------------------------------

    def export(self, path: str | PathLike[str]) -> None:
        """Write all trials to a file that ends in .csv or .parquet, as `partita export` does.

        Parquet needs pyarrow: `pip install 'partita[tables]'`.
        """
        from .export import export

        export(self, path)

    def plot(
        self,
        path: str | PathLike[str] | None = None,
        kind: Literal["run", "importance", "slices", "pairs", "timeline"] = "run",
        *,
        along: str | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Any:
        """A Matplotlib figure of what is known, as `partita show --plot` draws it.

        See `Result.plot`, and `Optimizer.plot` for contexts; refused while there are no values.
        """
        if self.contexts.names or along is not None or context is not None:
            from partita.optimize.along import plot_along

            return plot_along(self, f"The study {self.path}", path, along, context)
        from .looking import as_result

        return as_result(cast("Study", self)).plot(path, kind)

    def view(self) -> Any:
        """A widget for a notebook: the page that `partita serve` shows of one study, live.

        Needs anywidget: `pip install 'partita[notebook]'`.
        """
        # By name: the page is in a room below this one.
        return require("partita.service.notebook").view(self)

    def look(self, question: Callable[[Store], T]) -> T:
        """What a question to the file returns, while no other thread uses the file."""
        with self._store.lock:
            return question(self._store)

    def _read(self, question: Callable[[Optimizer], T]) -> T:
        with self._store.lock:
            return question(self._replica.current().optimizer)
