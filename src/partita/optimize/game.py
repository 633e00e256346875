"""A policy and the ledger of its trials, at points of the unit cube.

Policies maximise. Signs are turned round here, once; units in `Optimizer`.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import suppress

import numpy as np

from partita._types import FloatArray, Prediction, Recommendation
from partita.errors import InvalidInput, NotPending
from partita.policies import optional
from partita.policies.base import Policy

from .trials import FAILED, FINISHED, Ledger


class Game:
    """What is played: trials by their numbers, points (D,), values in the user's direction.

    Numbers, points, values and their noise are taken as they are. `Optimizer` and `Study` check
    what users give them, once.

    Attributes
    ----------
    policy
    ledger
        Every trial so far.
    """

    def __init__(
        self, policy: Policy, dim: int, direction: str, quantities: Sequence[str] = ()
    ) -> None:
        self.policy = policy
        self.ledger = Ledger(dim, quantities)
        self._sign = -1.0 if direction == "minimize" else 1.0

    def ask(self) -> int:
        """Begin a trial where the policy chooses."""
        return self.ledger.append(self.policy.ask())

    def expect(self, unit: FloatArray) -> int:
        """Begin a trial at a point that was chosen elsewhere."""
        optional.expect(self.policy, unit)
        return self.ledger.append(unit)

    def tell(
        self,
        number: int,
        value: float,
        std: float | None = None,
        measured: Sequence[float] | None = None,
    ) -> None:
        """End a trial with a value; one that was given up, too, since policies take any point.

        `measured` are the values of the constrained quantities.
        """
        self._learn(self.ledger.unit(number), value, std, measured)
        self.ledger.settle(number, FINISHED, value, std, measured)

    def cancel(self, number: int) -> None:
        """Give up a pending trial."""
        with suppress(NotPending):  # a value added at the same point settled it for the policy
            self.policy.cancel(self.ledger.unit(number))
        self.ledger.settle(number, FAILED)

    def fail(self, number: int) -> None:
        """Give up a pending trial whose evaluation failed, which says something of its place."""
        with suppress(NotPending):  # as above
            optional.fail(self.policy, self.ledger.unit(number))
        self.ledger.settle(number, FAILED)
        self.ledger.failures.add(number)

    def add(
        self,
        unit: FloatArray,
        value: float,
        std: float | None = None,
        measured: Sequence[float] | None = None,
    ) -> int:
        """Take in a value known from elsewhere, as a trial of its own."""
        self._learn(unit, value, std, measured)
        return self.ledger.append(unit, FINISHED, value, std, measured)

    @property
    def takes_std(self) -> bool:
        """Whether the policy uses the noise of single values, where that is known."""
        return bool(getattr(self.policy, "takes_std", False))

    def check_takes_std(self, std: float, verb: str) -> None:
        """Refuse the noise of a value if the policy has no use for it; `verb` is for the error."""
        if not self.takes_std:
            raise InvalidInput(
                f"{verb}(..., std={std!r}): {type(self.policy).__name__} has no use for the noise "
                "of single values. Leave std out, or use CalibratedUCB, the usual policy"
            )

    def _learn(
        self,
        unit: FloatArray,
        value: float,
        std: float | None,
        measured: Sequence[float] | None = None,
    ) -> None:
        """Tell the policy; one of the user's own need not know the word std."""
        if measured:
            optional.measure(self.policy, unit, measured)
        if std is None:
            self.policy.tell(unit, self._sign * value)
        else:
            self.policy.tell(unit, self._sign * value, std=std)

    def move(self, number: int, unit: FloatArray) -> None:
        """Put a pending trial at another point than the policy chose."""
        self.policy.cancel(self.ledger.unit(number))
        optional.expect(self.policy, unit)
        self.ledger.move(number, unit)

    def anew(self, policy: Policy) -> Game:
        """The same trials for a fresh policy: it is told all values, and expects the pending."""
        game = copy.copy(self)
        game.policy = policy
        game.ledger.recount()
        for units, values, stds, measured in game.ledger.told():
            for unit, row in zip(units, measured.tolist(), strict=True):
                if row:
                    optional.measure(policy, unit, row)
            game._learn_many(units, values, stds)
        for number in sorted(game.ledger.failures):
            optional.expect(policy, game.ledger.unit(number))
            with suppress(NotPending):
                optional.fail(policy, game.ledger.unit(number))
        for unit in game.ledger.pending():
            optional.expect(policy, unit)
        return game

    def _learn_many(self, units: FloatArray, values: FloatArray, stds: FloatArray | None) -> None:
        """Tell the policy values (n,) at points (n, D), with the noise of all or of none."""
        if isinstance(self.policy, Policy):
            self.policy.tell(units, self._sign * values, std=stds)
            return
        noises = [None] * len(values) if stds is None else stds.tolist()
        for unit, value, std in zip(units, values.tolist(), noises, strict=True):
            self._learn(unit.copy(), value, std)

    def certificate(self) -> float:
        """How much better than the recommended point any other can be; infinite if not known."""
        return optional.certificate(self.policy)

    def recommend(self) -> Recommendation:
        """The policy's answer, with mean and bounds in the user's direction."""
        best = self.policy.recommend()
        lower, upper = best.lower, best.upper
        if self._sign < 0:
            lower, upper = -upper, -lower
        mean = self._sign * best.mean
        return Recommendation(np.asarray(best.x), mean + 0.0, lower + 0.0, upper + 0.0)

    def predict(self, units: FloatArray) -> Prediction:
        """The posterior at points (n, D), in the user's direction."""
        posterior = optional.predict(self.policy, units)
        if self._sign > 0:
            return posterior
        mean, std, lower, upper = posterior
        return Prediction(-mean, std, -upper, -lower)
