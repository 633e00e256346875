"""A policy and the ledger of its trials, at points of the unit cube.

Policies maximise. The sign is changed here for minimisation; `Optimizer` converts units.
"""

from __future__ import annotations

import copy
from contextlib import suppress

import numpy as np

from partita._types import FloatArray, Prediction, Recommendation
from partita.errors import InvalidInput, NotPending
from partita.model.outcomes import Outcomes
from partita.policies import optional
from partita.policies.base import Policy

from .trials import FAILED, FINISHED, Ledger


class Game:
    """A policy and its trials: by number, at points (D,), with values in the user's direction.

    Arguments are not checked here. `Optimizer` and `Study` check what users give them.

    Attributes
    ----------
    policy
    ledger
        Every trial so far.
    """

    #: What f can be, in the user's direction; None if that is not known.
    _outcomes: Outcomes | None = None

    def __init__(
        self, policy: Policy, dim: int, direction: str, outcomes: Outcomes | None = None
    ) -> None:
        self.policy = policy
        self.ledger = Ledger(dim)
        self._sign = -1.0 if direction == "minimize" else 1.0
        self._outcomes = outcomes

    def ask(self) -> int:
        """Begin a trial where the policy chooses."""
        return self.ledger.append(self.policy.ask())

    def expect(self, unit: FloatArray) -> int:
        """Begin a trial at a point that was chosen elsewhere."""
        optional.expect(self.policy, unit)
        return self.ledger.append(unit)

    def tell(self, number: int, value: float, std: float | None = None) -> None:
        """Report the value of a trial. It may have been cancelled: policies accept any point."""
        self._learn(self.ledger.unit(number), value, std)
        self.ledger.settle(number, FINISHED, value, std)

    def cancel(self, number: int) -> None:
        """Give up a pending trial."""
        with suppress(NotPending):  # a value added at the same point settled it for the policy
            self.policy.cancel(self.ledger.unit(number))
        self.ledger.settle(number, FAILED)

    def add(self, unit: FloatArray, value: float, std: float | None = None) -> int:
        """Record a value known from elsewhere as a new trial."""
        self._learn(unit, value, std)
        return self.ledger.append(unit, FINISHED, value, std)

    @property
    def takes_std(self) -> bool:
        """Whether the policy uses the noise of single values."""
        return bool(getattr(self.policy, "takes_std", False))

    def check_takes_std(self, std: float, verb: str) -> None:
        """Refuse the noise of a value if the policy cannot use it; `verb` is for the error."""
        if not self.takes_std:
            raise InvalidInput(
                f"{verb}(..., std={std!r}): {type(self.policy).__name__} does not use the noise "
                "of single values. Leave std out, or use CalibratedUCB, the default policy"
            )

    def _learn(self, unit: FloatArray, value: float, std: float | None) -> None:
        """Report a value to the policy; a user's own policy may lack the argument std."""
        if std is None:
            self.policy.tell(unit, self._sign * value)
        else:
            self.policy.tell(unit, self._sign * value, std=std)

    def move(self, number: int, unit: FloatArray) -> None:
        """Move a pending trial to another point than the policy chose."""
        self.policy.cancel(self.ledger.unit(number))
        optional.expect(self.policy, unit)
        self.ledger.move(number, unit)

    def anew(self, policy: Policy) -> Game:
        """The same trials with a new policy, which gets all values and all pending points."""
        game = copy.copy(self)
        game.policy = policy
        game.ledger.recount()
        for told in game.ledger.told():
            game._learn_many(*told)
        for unit in game.ledger.pending():
            optional.expect(policy, unit)
        return game

    def _learn_many(self, units: FloatArray, values: FloatArray, stds: FloatArray | None) -> None:
        """Report values (n,) at points (n, D) to the policy, all with known noise or none."""
        if isinstance(self.policy, Policy):
            self.policy.tell(units, self._sign * values, std=stds)
            return
        noises = [None] * len(values) if stds is None else stds.tolist()
        for unit, value, std in zip(units, values.tolist(), noises, strict=True):
            self._learn(unit.copy(), value, std)

    def certificate(self) -> float:
        """How much better than the recommended point any other can be; infinite if unknown."""
        bound, outcomes = optional.certificate(self.policy), self._outcomes
        if outcomes is None:
            return bound
        upwards = outcomes if self._sign > 0 else outcomes.negated
        return upwards.certificate(bound, self.policy.recommend(), self._proven)

    @property
    def _proven(self) -> bool:
        """Whether data that contradict the bounds show that an assumption is wrong."""
        return optional.guarantee(self.policy) in optional.CERTAIN

    def recommend(self) -> Recommendation:
        """The policy's recommended point, with mean and bounds in the user's direction."""
        best = self.policy.recommend()
        lower, upper = best.lower, best.upper
        if self._sign < 0:
            lower, upper = -upper, -lower
        mean = self._sign * best.mean
        best = Recommendation(np.asarray(best.x), mean + 0.0, lower + 0.0, upper + 0.0)
        return best if self._outcomes is None else self._outcomes.limited(best, self._proven)

    def predict(self, units: FloatArray) -> Prediction:
        """The posterior at points (n, D), in the user's direction."""
        posterior = optional.predict(self.policy, units)
        if self._sign < 0:
            mean, std, lower, upper = posterior
            posterior = Prediction(-mean, std, -upper, -lower)
        if self._outcomes is None:
            return posterior
        return self._outcomes.prediction(posterior, self._proven)
