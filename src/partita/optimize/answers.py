"""What an optimizer answers, and the record of its trials: nothing here changes it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, overload

import numpy as np

from partita._checks import as_floats
from partita._locks import in_turn
from partita._types import FloatArray, Prediction
from partita.errors import InvalidInput
from partita.policies import optional
from partita.policies.base import Policy
from partita.space import Space

from .constraints import Constraints, Known
from .contexts import Contexts, Given
from .game import Game
from .trial import Suggestion, by_place
from .trials import FAILED, FINISHED, PENDING, PRUNED, Trials

#: Contexts among which the worst is looked for.
WORST_OF = 32


class Answers(ABC):
    """The part of `Optimizer` that is asked for answers.

    Attributes
    ----------
    game
        The policy and its trials at points of the unit cube.
    space, contexts, constraints
    """

    game: Game
    space: Space
    contexts: Contexts
    constraints: Constraints
    _turn: Any

    @abstractmethod
    def _play(self, verb: str, *args: Any) -> Any:
        """Call a method of the game."""

    @abstractmethod
    def given(self, context: Any, fixed: Any, verb: str) -> Given | None:
        """What a context and fixed values give; `verb` is for the error message."""

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
    def recommend(
        self,
        context: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        fixed: Mapping[Any, Any] | None = None,
    ) -> Suggestion | list[Suggestion]:
        """The best parameters by the posterior, which need not be those with the best value.

        Of the parameters that were evaluated, the calibrated policy recommends those with the best
        mean less one standard deviation, and π-GP-UCB those with the best bound. For a context, or
        with values `fixed`, they need not have been evaluated, nor the context asked for.

        A list of contexts gives a list of answers. Contexts that the policy cannot tell apart are
        looked up once, so thousands of them take little longer than the distinct ones.
        """
        if isinstance(context, list | tuple):
            every = [self.given(one, fixed, "recommend") for one in context]
        else:
            every = [self.given(context, fixed, "recommend")]
        with self._turn:
            units = self._play("recommend_each", [g.coordinates if g else None for g in every])
        answers = []
        for (unit, *bounds), given in zip(units, every, strict=True):
            whole = self.contexts.as_given(self.space.decode(unit), given)
            params, _ = self.contexts.split(whole)
            answers.append(Suggestion(params, by_place(params), *bounds))
        return answers if isinstance(context, list | tuple) else answers[0]

    def constraints_at(self, params: Any) -> dict[str, Known]:
        """What is known of each constrained quantity at some parameters, by its name."""
        unit = self.space.encode(params)
        with self._turn:
            return self.constraints.known_at(self.policy, unit)

    def certificate(
        self,
        context: Mapping[str, Any] | None = None,
        fixed: Mapping[Any, Any] | None = None,
    ) -> float:
        """A bound on how much better any other parameters can be than the recommended ones.

        If `guarantee` is "proven", it fails with probability delta at most. If it is "calibrated",
        the bound is an estimate by the fitted model, and fails where a narrow peak hides between
        the evaluations: docs/calibrated.md measures how often. It is infinite if the policy gives
        no such bound, or cannot give one yet.

        With contexts, `certificate()` is that of the worst of 32 contexts all over their space, or
        of all contexts if there are no more.
        """
        if self.contexts.names and context is None and fixed is None:
            those = self.contexts.sample(WORST_OF)
            with self._turn:
                return max(float(self._play("certificate", one)) for one in those)
        given = self.given(context, fixed, "certificate")
        args = () if given is None else (given.coordinates,)
        with self._turn:
            bound: float = self._play("certificate", *args)
            return bound

    def predict(self, params: Sequence[Any] | FloatArray, context: Any = None) -> Prediction:
        """The posterior of the function at n points: mean, std, lower, upper, each (n,).

        Parameters
        ----------
        params
            A list of n dicts, or an array (n, d), in the form that the function gets.
        context
            The context of all points, or a list of n contexts. It can be given in each dict
            instead.
        """
        if isinstance(params, dict):
            raise InvalidInput("predict takes several points: give a list of dicts")
        if not self.space.named:
            params = as_floats(params, "params")
        points = self.contexts.joined_rows(list(params), context, "predict")
        rows = [self.space.encode(point) for point in points]
        units = np.array(rows).reshape(len(rows), self.space.dim)
        with self._turn:
            posterior: Prediction = self._play("predict", units)
            return posterior

    # -- the record ----------------------------------------------------------------------------

    @property
    @in_turn
    def trials(self) -> Trials:
        """All trials so far: a sequence of records, with numbers, values and states as arrays."""
        return self.game.ledger.table(self.space)

    @property
    def n_told(self) -> int:
        """The number of values reported, by `tell` and `add`."""
        with self._turn:
            return self.game.ledger.counts[FINISHED]

    @property
    def n_values(self) -> int:
        """The same, with the values behind a mean counted one by one."""
        with self._turn:
            return self.game.ledger.reported

    @property
    def n_failed(self) -> int:
        """The number of trials that were cancelled."""
        with self._turn:
            return self.game.ledger.counts[FAILED]

    @property
    def n_pruned(self) -> int:
        """The number of trials that ended early."""
        with self._turn:
            return self.game.ledger.counts[PRUNED]

    @in_turn
    def reports(self, number: int) -> dict[int, float]:
        """What a trial that has ended had reported after each step."""
        return self.game.curves.of(number)

    @property
    def n_pending(self) -> int:
        """The number of trials that have not ended."""
        with self._turn:
            return self.game.ledger.counts[PENDING]

    @property
    def policy(self) -> Policy:
        """The policy underneath, which maximises in the unit cube."""
        return self.game.policy

    @property
    def guarantee(self) -> str:
        """The kind of guarantee of the bounds, such as "proven" or "calibrated": see `Policy`."""
        return optional.guarantee(self.policy)
