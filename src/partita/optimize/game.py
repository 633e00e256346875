"""A policy and the ledger of its trials, at points of the unit cube.

Policies maximise. The sign is changed here for minimisation; `Optimizer` converts units.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

import numpy as np

from partita._types import FloatArray, IntArray, Prediction, Recommendation
from partita.errors import InvalidInput, NotPending
from partita.model.outcomes import Outcomes
from partita.policies import optional
from partita.policies.base import Policy
from partita.policies.repeats import as_counted

from .aggregates import Aggregate
from .bulk import Batch
from .contexts import Contexts
from .early import FEWEST, Curves, Rule
from .ledger import Ledger
from .plans import MOST_ROWS, Room, budget, least_of, replicates
from .trials import FAILED, FINISHED, PRUNED
from .values import Observation

#: Bounds that rest on proofs, which no value that is only expected may enter.
CERTAIN = ("proven", "published")


class Game:
    """A policy and its trials: by number, at points (D,), with values in the user's direction.

    Arguments are not checked here. `Optimizer` and `Study` check what users give them.

    Attributes
    ----------
    policy
    ledger
        Every trial so far.
    curves
        What they reported on their way.
    """

    #: What f can be, in the user's direction; None if that is not known.
    _outcomes: Outcomes | None = None

    def __init__(
        self,
        policy: Policy,
        dim: int,
        direction: str,
        quantities: Sequence[str] = (),
        outcomes: Outcomes | None = None,
        contexts: Contexts | None = None,
    ) -> None:
        self.policy = policy
        self._contexts = contexts
        self.ledger = Ledger(dim, quantities)
        self.curves = Curves()
        self._rule: tuple[int, Rule | None] = (0, None)
        self._sign = -1.0 if direction == "minimize" else 1.0
        self._outcomes = outcomes

    def ask(self, fixed: Mapping[int, float] | None = None) -> int:
        """Begin a trial where the policy chooses, with coordinates {number: value} as given."""
        if not fixed:
            return self.ledger.append(self.policy.ask())
        unit = np.array(optional.ask_fixed(self.policy, self._seen_fixed(fixed)))
        unit[list(fixed)] = list(fixed.values())
        return self.ledger.append(unit)

    def _seen(self, units: FloatArray) -> FloatArray:
        """Points (..., D) as the policy sees them: see `Contexts.coarse`.

        Proven bounds are about f where it was evaluated, so a policy that has them sees the context
        as it is.
        """
        if self._contexts is None or self._proven:
            return units
        return self._contexts.coarse(units)

    def _seen_fixed(self, fixed: Mapping[int, float]) -> dict[int, float]:
        """Coordinates {number: value} that are fixed, as the policy sees them."""
        given = np.zeros(self.ledger.units.shape[1])
        given[list(fixed)] = list(fixed.values())
        seen = self._seen(given)
        return {number: float(seen[number]) for number in fixed}

    def expect(self, unit: FloatArray) -> int:
        """Begin a trial at a point that was chosen elsewhere."""
        optional.expect(self.policy, self._seen(unit))
        return self.ledger.append(unit)

    def tell(
        self,
        number: int,
        value: float,
        std: float | None = None,
        measured: Sequence[float] | None = None,
        count: int = 1,
        reports: Mapping[int, float] | None = None,
    ) -> None:
        """Report the value of a trial. It may have been cancelled: policies accept any point.

        `measured` are the values of the constrained quantities. A row of a plan ends when all of
        its values have come.
        """
        ledger, left = self.ledger, self.ledger.left(number)
        if left is not None:
            optional.repeat(self.policy, ledger.unit(number), 1 - count)
        self._learn(ledger.unit(number), value, std, measured, count)
        if left is not None:
            told = Aggregate(value, std, count)
            if number in ledger.parts:
                told = ledger.parts[number].merged(told)
            if count < left:
                ledger.parts[number] = told
                return
            value, std, count = told
        ledger.settle(number, FINISHED, value, std, measured, count)
        self.curves.add(number, reports or {})

    def prune(
        self, number: int, expected: Observation | None, reports: Mapping[int, float]
    ) -> None:
        """End a trial early, with the value that was to be expected, if that is known."""
        if expected is None:
            self.cancel(number, PRUNED)
        else:
            self._learn(self.ledger.unit(number), *expected)
            self.ledger.settle(number, PRUNED, *expected)
        self.curves.add(number, reports)

    def rule(self) -> Rule | None:
        """Which trials are hopeless by now; None while too few have finished with reports."""
        if not len(self.curves):
            return None
        made_at = self.ledger.known
        if self._rule[0] != made_at:
            curves = self.curves.latest(self.ledger.values)
            made = None
            if len(curves) >= FEWEST:
                noise = optional.noise_std(self.policy)
                made = Rule(curves, self.recommend().mean, self._sign, noise)
            self._rule = made_at, made
        return self._rule[1]

    def expected(self, reports: Mapping[int, float]) -> Observation | None:
        """What the reports of a trial say of its value; None if the policy cannot use that."""
        rule = self.rule() if reports and self.takes_std else None
        if rule is None or optional.guarantee(self.policy) in CERTAIN:
            return None
        step = max(reports)
        return rule.estimate(step, reports[step])

    def plan(self, room: Room) -> int:
        """Begin a row of a plan, where the policy chooses."""
        number = self.ask()
        if room.most <= room.least:
            self.repeat(number, room.most)
            return number
        unit = self.ledger.unit(number)
        awaited = sum(
            self.ledger.left(row) or 0
            for row in self.ledger.planned
            if self.ledger.mark(row) == unit.tobytes()
        )
        count = max(room.least, replicates(optional.worth(self.policy, unit), awaited))
        self.repeat(number, min(room.most, count))
        return number

    def rows(self, n: int) -> Iterator[Callable[[], Room]]:
        """For each row of a plan of at most n values: the room that is left, to be called."""
        least = least_of(n)
        whole = budget(n, self.ledger.evaluations, self.ledger.awaited)
        first, rows = len(self.ledger), 0

        def left() -> int:
            begun = range(first, len(self.ledger))
            return whole - sum(self.ledger.planned.get(number, 0) for number in begun)

        while rows < MOST_ROWS and left() > 0:
            yield lambda: Room(left(), least)
            rows += 1

    def repeat(self, number: int, count: int) -> None:
        """Make a pending trial a row of a plan, with this many values."""
        optional.repeat(self.policy, self.ledger.unit(number), count - 1)
        self.ledger.planned[number] = count

    def _end_row(self, number: int) -> bool:
        """End a row of a plan with what has been told of it; False if there is nothing."""
        left, part = self.ledger.left(number), self.ledger.parts.get(number)
        if left is not None:
            optional.repeat(self.policy, self.ledger.unit(number), 1 - left)
        if part is None:
            return False
        with suppress(NotPending):
            self.policy.cancel(self.ledger.unit(number))
        self.ledger.settle(number, FINISHED, part.mean, part.std, None, part.count)
        return True

    def cancel(self, number: int, state: int = FAILED) -> None:
        """Give up a pending trial, which is in `state` from then on."""
        if self._end_row(number):
            return
        with suppress(NotPending):  # a value added at the same point settled it for the policy
            self.policy.cancel(self._seen(self.ledger.unit(number)))
        self.ledger.settle(number, state)

    def fail(self, number: int) -> None:
        """Cancel a pending trial whose evaluation failed, which says something of its place."""
        if self._end_row(number):
            return
        with suppress(NotPending):  # as above
            optional.fail(self.policy, self._seen(self.ledger.unit(number)))
        self.ledger.settle(number, FAILED)
        self.ledger.failures.add(number)

    def add(
        self,
        unit: FloatArray,
        value: float,
        std: float | None = None,
        measured: Sequence[float] | None = None,
        count: int = 1,
    ) -> int:
        """Record a value known from elsewhere as a new trial."""
        self._learn(unit, value, std, measured, count)
        return self.ledger.append(unit, FINISHED, value, std, measured, count)

    def add_many(self, batch: Batch) -> range:
        """Take in many values known from elsewhere, and return the numbers of their trials."""
        if batch.measured is not None:
            for unit, row in zip(batch.units, batch.measured.tolist(), strict=True):
                optional.measure(self.policy, self._seen(unit), row)
        for part in batch.parts():
            self._learn_many(part.units, part.values, part.stds, part.counts)
        return self.ledger.extend(*batch)

    @property
    def takes_std(self) -> bool:
        """Whether the policy uses the noise of single values."""
        return bool(getattr(self.policy, "takes_std", False))

    def check_takes_count(self, seen: Aggregate, verb: str) -> None:
        """Refuse a mean of several values if the policy cannot use it."""
        name = type(self.policy).__name__
        if not getattr(self.policy, "takes_count", False):
            raise InvalidInput(
                f"{verb}(..., count={seen.count}): {name} needs each value by itself. Tell them "
                "one by one, or use a policy that takes means, such as PiGPUCB or CalibratedUCB"
            )
        if seen.std is None and isinstance(self.policy, Policy):  # nothing else can lack
            self.policy._check_repeated(as_counted(seen.count, seen.std, 1))

    def check_takes_std(self, std: float, verb: str) -> None:
        """Refuse the noise of a value if the policy cannot use it; `verb` is for the error."""
        if not self.takes_std:
            raise InvalidInput(
                f"{verb}(..., std={std!r}): {type(self.policy).__name__} does not use the noise "
                "of single values. Leave std out, or use CalibratedUCB, the default policy"
            )

    def _learn(
        self,
        unit: FloatArray,
        value: float,
        std: float | None,
        measured: Sequence[float] | None = None,
        count: int = 1,
    ) -> None:
        """Report a value to the policy; a user's own policy may lack the argument std."""
        unit = self._seen(unit)
        if count > 1:
            self.policy.tell(unit, self._sign * value, std=std, count=count)
            return
        if measured:
            optional.measure(self.policy, unit, measured)
        if std is None:
            self.policy.tell(unit, self._sign * value)
        else:
            self.policy.tell(unit, self._sign * value, std=std)

    def move(self, number: int, unit: FloatArray) -> None:
        """Move a pending trial to another point than the policy chose."""
        self.policy.cancel(self._seen(self.ledger.unit(number)))
        optional.expect(self.policy, self._seen(unit))
        self.ledger.move(number, unit)

    def anew(self, policy: Policy) -> Game:
        """The same trials with a new policy, which gets all values and all pending points."""
        game = copy.copy(self)
        game.policy = policy
        game.ledger.recount()
        for units, values, stds, measured, counts in game.ledger.told():
            for unit, row in zip(units, measured.tolist(), strict=True):
                if row and not math.isnan(row[0]):  # of a pruned trial none is known
                    optional.measure(policy, self._seen(unit), row)
            game._learn_many(units, values, stds, counts)
        for number in sorted(game.ledger.failures):
            optional.expect(policy, self._seen(game.ledger.unit(number)))
            with suppress(NotPending):
                optional.fail(policy, self._seen(game.ledger.unit(number)))
        for unit in game.ledger.pending():
            optional.expect(policy, self._seen(unit))
        for number in game.ledger.planned:
            more = (game.ledger.left(number) or 1) - 1
            optional.repeat(policy, game.ledger.unit(number), more)
        return game

    def _learn_many(
        self,
        units: FloatArray,
        values: FloatArray,
        stds: FloatArray | None,
        counts: IntArray | None = None,
    ) -> None:
        """Report values (n,) at points (n, D) to the policy, all with known noise or none.

        With `counts` (n,) they are means, and noise is NaN where it is not known.
        """
        if isinstance(self.policy, Policy):
            self.policy.tell(self._seen(units), self._sign * values, std=stds, count=counts)
            return
        for unit, value, std, count in Batch(units, values, stds, counts).rows():
            self._learn(unit.copy(), value, std, None, count)

    def certificate(self, fixed: Mapping[int, float] | None = None) -> float:
        """How much better than the recommended point any other can be; infinite if unknown."""
        if fixed:
            bound = optional.certificate_fixed(self.policy, self._seen_fixed(fixed))
        else:
            bound = optional.certificate(self.policy)
        outcomes = self._outcomes
        if outcomes is None:
            return bound
        upwards = outcomes if self._sign > 0 else outcomes.negated
        return upwards.certificate(bound, self._best(fixed), self._proven)

    def _best(self, fixed: Mapping[int, float] | None) -> Recommendation:
        """The policy's recommended point, where some coordinates are fixed if they are given."""
        if not fixed:
            return self.policy.recommend()
        best = optional.recommend_fixed(self.policy, self._seen_fixed(fixed))
        unit = np.array(best.x)
        unit[list(fixed)] = list(fixed.values())
        return best._replace(x=unit)

    @property
    def _proven(self) -> bool:
        """Whether data that contradict the bounds show that an assumption is wrong."""
        return optional.guarantee(self.policy) in optional.CERTAIN

    def recommend(self, fixed: Mapping[int, float] | None = None) -> Recommendation:
        """The policy's recommended point, with mean and bounds in the user's direction."""
        return self._in_direction(self._best(fixed))

    def recommend_each(self, every: Sequence[Mapping[int, float] | None]) -> list[Recommendation]:
        """The same for several, of which those that the policy sees as the same are one."""
        keys = [tuple(sorted(self._seen_fixed(fixed).items())) if fixed else () for fixed in every]
        distinct = [key for key in dict.fromkeys(keys) if key]
        best: list[Recommendation] = []
        if distinct:
            best = optional.recommend_fixed_each(self.policy, [dict(key) for key in distinct])
        answers = dict(zip(distinct, map(self._in_direction, best), strict=True))
        if () in keys:
            answers[()] = self.recommend()
        made = []
        for fixed, key in zip(every, keys, strict=True):
            unit = answers[key].x.copy()
            if fixed:
                unit[list(fixed)] = list(fixed.values())
            made.append(answers[key]._replace(x=unit))
        return made

    def _in_direction(self, best: Recommendation) -> Recommendation:
        """An answer of the policy with mean and bounds in the user's direction, within outcomes."""
        lower, upper = best.lower, best.upper
        if self._sign < 0:
            lower, upper = -upper, -lower
        mean = self._sign * best.mean
        best = Recommendation(np.asarray(best.x), mean + 0.0, lower + 0.0, upper + 0.0)
        return best if self._outcomes is None else self._outcomes.limited(best, self._proven)

    def predict(self, units: FloatArray) -> Prediction:
        """The posterior at points (n, D), in the user's direction."""
        posterior = optional.predict(self.policy, self._seen(units))
        if self._sign < 0:
            mean, std, lower, upper = posterior
            posterior = Prediction(-mean, std, -upper, -lower)
        if self._outcomes is None:
            return posterior
        return self._outcomes.prediction(posterior, self._proven)
