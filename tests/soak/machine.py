"""Runs a case: does what it says to a policy or an optimizer, and checks all that is promised.

`run` raises `Fault` at the first departure. Then a twin is played that is spared what must change
nothing (questions, copies, refused calls): it must ask for the same points to the last bit.
"""

import copy
import math
import pickle
import time
import warnings
from collections import Counter

import numpy as np

import partita as pt
from partita.errors import NotPending, PartitaError, TheoryWarning
from partita.policies import optional

from .cases import made
from .wrong import wrong_calls

#: Seconds of the processor that a call may take.
LONGEST_CALL = 30.0
#: What must change nothing, so that a twin is spared it.
HARMLESS = {"recommend", "predict", "certificate", "pickle", "copy", "restore", "refuse"}


def _place(trial):
    """A trial as an array: its own, or the point of the unit cube for named parameters."""
    return trial.unit if isinstance(trial.params, dict) else trial.x


class Fault(Exception):
    """A promise that was broken."""


def run(case):
    """Counts of what was done; a `Fault` says which promise was broken."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", TheoryWarning)
        try:
            player = Player(case)
        except PartitaError as error:
            _check_message(error)
            return Counter({"refused to begin": 1})
        for number, op in enumerate(case.ops):
            try:
                player.do(op)
            except Exception as error:
                words = f"call {number}, {op}: {type(error).__name__}: {error}"
                raise Fault(words) from error
        check_twin(case, player)
    return player.done


def check_twin(case, player):
    """Refuse a policy whose asks depend on what must change nothing, or on nothing at all."""
    twin = Player(case)
    for op in case.ops:
        if op.verb not in HARMLESS:
            twin.do(op)
    for number, (ours, theirs) in enumerate(zip(player.asked, twin.asked, strict=True)):
        if ours.tobytes() != theirs.tobytes():
            raise Fault(
                f"ask {number + 1} of {len(twin.asked)} was {ours.tolist()}, but "
                f"{theirs.tolist()} without questions, copies and refused calls"
            )
    # A certificate may keep the best of what it found when it was asked for: it may differ.
    if not _same(player.answer()[:4], twin.answer()[:4]):
        raise Fault(f"the end: {player.answer()}, but a twin says {twin.answer()}")


def _same(ours, theirs):
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(ours, theirs, strict=True))


class Player:
    """A policy or an optimizer, with a diary of what it was told."""

    def __init__(self, case):
        self.case = case
        self.subject = made(case)
        self.pending, self.asked, self.told, self.failed = [], [], 0, 0
        #: Whether every value so far was of the size that the policy was told to expect.
        self.as_expected = True
        self.done = Counter()
        self._curve = np.random.default_rng([case.seed, 3]).normal(size=64)

    @property
    def is_optimizer(self):
        return isinstance(self.subject, pt.Optimizer)

    @property
    def policy(self):
        return self.subject.policy if self.is_optimizer else self.subject

    def do(self, op):
        """Do one thing, in bounded time, and check the counts."""
        start = time.process_time()
        getattr(self, "_" + op.verb.replace(" ", "_"))(op)
        spent = time.process_time() - start
        if spent > LONGEST_CALL:
            raise Fault(f"took {spent:.1f} s")
        self.done[op.verb] += 1
        self._check_counts()

    def _check_counts(self):
        if self.is_optimizer:
            o = self.subject
            counts = o.n_told, o.n_pending, o.n_failed
            expected = self.told, len(self.pending), self.failed
        else:
            counts = self.policy.told, self.policy.pending
            expected = self.told, len(self.pending)
        if counts != expected:
            raise Fault(f"counts are {counts}, expected {expected}")

    # -- asking and telling ------------------------------------------------------------------------

    def _ask(self, op):
        if len(self.pending) > 40:
            return
        thing = self.subject.ask()
        x = _place(thing) if self.is_optimizer else thing
        self._check_point(x, "ask")
        self.pending.append(thing)
        self.asked.append(np.array(x))

    def _expect(self, op):
        """An optimizer's alone: for a policy it may or may not count as pending."""
        params = self.some_params(op.seed) if self.is_optimizer else None
        if params is not None:
            self.pending.append(self.subject.expect(params))

    def _tell(self, op):
        if not self.pending:
            self._ask(op)
        if not self.pending:
            return
        thing = self.pending.pop(op.pick % len(self.pending))
        x = _place(thing) if self.is_optimizer else thing
        self.subject.tell(thing, self._value(x, op), **self._std(op))
        self.told += 1

    def _tell_many(self, op):
        if self.is_optimizer:
            return
        points = self.some_points(op.seed, op.pick % 12)
        n = len(points)
        asked = [self.pending[i] for i in range(min(2, len(self.pending), n))]
        for i, x in enumerate(asked):
            points[i] = x
        values = np.array([self._value(x, op) for x in points])
        self.subject.tell(points.reshape(n, self.policy.domain.dim), values, **self._std(op))
        self.told += n
        for x in points:
            self._forget(x)

    def _add(self, op):
        if self.is_optimizer:
            params = self.some_params(op.seed)
            if params is None:
                return
            number = self.subject.add(params, self._value(self.unit(params), op), **self._std(op))
            if number != len(self.subject.trials) - 1:
                raise Fault(f"add gave trial {number}")
        else:
            points = self.some_points(op.seed, 1)
            if not len(points):
                return
            x = points[0]
            self.subject.tell(x, self._value(x, op), **self._std(op))
            self._forget(x)
        self.told += 1

    def _cancel(self, op):
        if self.pending:
            self.subject.cancel(self.pending.pop(op.pick % len(self.pending)))
            self.failed += 1

    def _forget(self, x):
        """A pending point that was told by its numbers is pending no more."""
        for i, other in enumerate(self.pending):
            if other.tobytes() == x.tobytes():
                del self.pending[i]
                return

    def _value(self, x, op):
        if op.value is not None:
            self.as_expected = False
            return op.value
        unit = self.unit_of(x)
        angle = float(unit @ self._curve[: len(unit)])
        return self.case.scale * (math.sin(3.0 * angle) + self.case.noise * math.sin(op.seed))

    def _std(self, op):
        if op.std is None or not self.policy.takes_std:
            return {}
        return {"std": op.std * self.case.scale if op.std < 1e100 else op.std}

    # -- points ------------------------------------------------------------------------------------

    def unit_of(self, x):
        """A point for the function: any numbers of ordinary size."""
        domain = self.subject.space if self.is_optimizer else self.policy.domain
        if self.is_optimizer:
            return np.ravel(x) if domain.named else domain.encode(x)
        if domain.finite:
            return domain.unit_points[domain.index_of(x[None, :])[0]]
        return domain.to_unit(x[None, :])[0]

    def unit(self, params):
        space = self.subject.space
        return space.encode(params) if space.named else np.asarray(params, dtype=float)

    def some_points(self, seed, n):
        """Points (n, d) of the domain that nobody asked for, corners and centres among them."""
        draw, domain = np.random.default_rng([seed, 4]), self.policy.domain
        units = draw.random((n, domain.dim))
        units[draw.random(n) < 0.2] = 0.5
        units[draw.random(n) < 0.2] = 1.0
        if isinstance(domain, pt.Box):
            return domain.check(domain.from_unit(units)).reshape(n, domain.dim)
        if isinstance(domain, pt.Mixed):
            rows = domain.spread(draw.random((60 * n, domain.dim)))
            allowed = rows[domain.mask(rows)]  # some, unless the constraint is very thin
            return np.resize(allowed, (n, domain.dim)) if len(allowed) else rows[:0]
        return np.array(domain.points[draw.integers(domain.size, size=n)])

    def some_params(self, seed):
        """Parameters that may be evaluated; None if the constraint hardly allows any."""
        space = self.subject.space
        for turn in range(300):
            unit = np.random.default_rng([seed, turn]).random(space.dim)
            if space.arms is not None:
                unit = space.grid()[int(unit[0] * space.size)]
            params = space.decode(space.snap(unit[None, :])[0])
            if space.allows(params):
                return params
        return None

    def _check_point(self, x, call):
        domain = self.policy.domain
        if self.is_optimizer:
            space = self.subject.space
            params = space.decode(x) if space.named else x
            if not space.allows(params):
                raise Fault(f"{call} at {params!r}, which feasible does not allow")
            space.encode(params)  # refuses what is outside
            if not space.named and isinstance(domain, pt.Box):
                unit = space.encode(x)
                if not ((unit >= 0) & (unit <= 1)).all():
                    raise Fault(f"{call} outside: {x!r}")
            return
        if x.dtype != np.float64 or x.shape != (domain.dim,):
            raise Fault(f"{call} is {x!r}")
        if not (domain.check(x[None, :]) == x).all():
            raise Fault(f"{call} is not a point of the domain: {x!r}")
        if isinstance(domain, pt.Mixed) and not domain.mask(x[None, :]).all():
            raise Fault(f"{call} at {x!r}, which feasible does not allow")
        if (
            not isinstance(domain, pt.Mixed)
            and not ((x >= domain.lower) & (x <= domain.upper)).all()
        ):
            raise Fault(f"{call} outside: {x!r}")

    # -- questions ---------------------------------------------------------------------------------

    def answer(self):
        """What is recommended and how sure that is; nothing if nothing can be said yet."""
        try:
            recommendation = self.subject.recommend()
        except PartitaError:
            return ()
        x, mean, lower, upper = recommendation[-4:]
        return x, mean, lower, upper, optional.certificate(self.policy)

    def _recommend(self, op):
        answer = self.answer()
        if not answer:
            if self.told:
                raise Fault(f"nothing is recommended after {self.told} tells")
            return
        x, mean, lower, upper, _ = answer
        self._check_point(x, "recommend")
        if math.isnan(lower) or math.isnan(upper) or not math.isfinite(mean):
            raise Fault(f"recommended: mean {mean}, lower {lower}, upper {upper}")

    def _predict(self, op):
        if not optional.has_posterior(self.policy):
            return
        if self.is_optimizer:
            params = [self.some_params(op.seed + i) for i in range(1 + op.pick % 4)]
            if any(point is None for point in params):
                return
            given = params if self.subject.space.named else np.array(params)
            predicted = self.subject.predict(given)
        else:
            predicted = self.subject.predict(self.some_points(op.seed, 1 + op.pick % 4))
        mean, std, lower, upper = predicted
        for name, part in predicted._asdict().items():
            if np.isnan(part).any():
                raise Fault(f"predict: {name} is {part}")
        if not np.isfinite(mean).all() or not (std >= 0).all():
            raise Fault(f"predict: mean {mean}, std {std}")
        room = 1e-9 * (1.0 + np.abs(mean))
        # Values beyond what the policy was told to expect may contradict its bounds.
        ordered = (lower <= mean + room) & (mean <= upper + room)
        if self.as_expected and not ordered.all():
            raise Fault(f"predict: lower {lower}, mean {mean}, upper {upper}")

    def _certificate(self, op):
        bound = optional.certificate(self.policy)
        if math.isnan(bound):
            raise Fault(f"certificate() is {bound}")

    # -- copies ------------------------------------------------------------------------------------

    def _pickle(self, op):
        self._go_on_with(pickle.loads(pickle.dumps(self.subject)), op)

    def _copy(self, op):
        self._go_on_with(copy.deepcopy(self.subject), op)

    def _go_on_with(self, other, op):
        """Use the copy from now on, or the original: they must not share anything."""
        if op.pick % 2:
            self.subject, other = other, self.subject
        for _ in range(op.pick % 3):
            other.ask()

    def _restore(self, op):
        """Through plain data, where policies can; an optimizer's own policy stays in its game."""
        if self.is_optimizer or not hasattr(self.subject, "state"):
            return
        saved, fresh = self.subject.state(), made(self.case)
        if saved is not None:
            fresh.restore(saved)
            self._go_on_with(fresh, op)

    # -- refused calls -----------------------------------------------------------------------------

    def _refuse(self, op):
        calls = wrong_calls(self)
        name, call = calls[op.pick % len(calls)]
        try:
            call()
        except (PartitaError, NotPending) as error:
            _check_message(error)
        else:
            raise Fault(f"{name} was not refused")


def _check_message(error):
    if not 10 < len(str(error)) < 3000:
        raise Fault(f"a message of {len(str(error))} letters: {str(error)[:200]!r}")
