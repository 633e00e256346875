"""The conformance suite: what passes, and that every check catches the fault it is there for."""

import copy
import functools
import math
import pickle
import re
import sys
import types
from collections import Counter
from contextlib import nullcontext
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

import partita as pt
from partita.errors import InvalidInput
from partita.model.assumptions import Assumptions
from partita.policies.construct import construct as construct_told
from partita.testing import ConformanceError, Promises, check_policy, checks, growth
from partita.testing.growth import LongRun
from partita.testing.suite import RULES

DOC = Path(__file__).parents[2] / "docs" / "testing.md"
#: Growth shows in a short run too.
ARMS = Promises(domains=("arms",), steps=1000)


class Sound:
    """A duck-typed policy that keeps every promise: ε-greedy on arms. The broken ones inherit."""

    def __init__(self, domain, *, seed=0):
        self.domain = domain
        self.random = np.random.default_rng(seed)
        self.places = {x.tobytes(): i for i, x in enumerate(domain.points)}
        self.counts = np.zeros(domain.size)
        self.sums = np.zeros(domain.size)
        self.open = Counter()

    @property
    def pending(self):
        return sum(self.open.values())

    @property
    def told(self):
        return int(self.counts.sum())

    def choose(self):
        t = self.told + self.pending
        if not self.told or self.random.random() < len(self.counts) / (t + 1):
            return int(self.random.integers(len(self.counts)))
        return self.best()

    def best(self):
        played = self.counts.nonzero()[0]
        return int(played[(self.sums[played] / self.counts[played]).argmax()])

    def ask(self):
        arm = self.choose()
        self.open[arm] += 1
        return self.domain.points[arm].copy()

    def tell(self, x, y):
        x = self.check_points(x)
        if x.ndim == 2:
            y = np.array(y, dtype=float)
            if y.shape != (len(x),):
                raise ValueError("one value a point")
        else:
            x, y = x[None, :], np.array([self.check_shape(y)])
        if not np.isfinite(y).all():
            raise ValueError("values must be finite")
        arms = [self.places[row.tobytes()] for row in x]
        for arm, value in zip(arms, y.tolist(), strict=True):
            self.settle(arm)
            self.record(arm, value)

    def check_points(self, x):
        x = np.array(x, dtype=float)
        if x.ndim not in {1, 2} or x.shape[-1] != self.domain.dim:
            raise ValueError("wrong shape")
        return x

    def check_shape(self, y):
        if np.ndim(y):
            raise ValueError("one value")
        return float(y)

    def settle(self, arm):
        if self.open[arm] > 0:
            self.open[arm] -= 1

    def record(self, arm, value):
        self.counts[arm] += 1
        self.sums[arm] += value

    def cancel(self, x):
        arm = self.places[np.asarray(x, dtype=float).tobytes()]
        if not self.open[arm]:
            raise LookupError("not pending")
        self.open[arm] -= 1

    def recommend(self):
        if not self.told:
            raise LookupError("nothing was told yet: tell a value first")
        arm = self.best()
        mean = float(self.sums[arm] / self.counts[arm])
        return pt.Recommendation(self.domain.points[arm].copy(), mean, -math.inf, math.inf)


# -- broken policies, each in one way ------------------------------------------------------------

BROKEN = []


def caught_by(*names):
    """Register a broken policy with the checks that must fail, and no others unless `...`."""

    def register(policy):
        BROKEN.append(pytest.param(policy, names, id=policy.__name__))
        return policy

    return register


@caught_by("methods")
class CannotRecommend(Sound):
    recommend = None


@caught_by("methods")
class CannotCancel(Sound):
    cancel = None


@caught_by("methods")
class NeedsMore(Sound):
    def __init__(self, domain, *, temperature, seed=0):
        super().__init__(domain, seed=seed)


@caught_by("ask-point")
class AsksRows(Sound):
    """Shape (1, d) instead of (d,)."""

    def ask(self):
        return super().ask()[None, :]

    def tell(self, x, y):
        x = np.array(x, dtype=float)
        super().tell(x[0] if x.shape == (1, 2) and np.ndim(y) == 0 else x, y)

    def cancel(self, x):
        super().cancel(np.ravel(x))


@caught_by("ask-point")
class AsksLists(Sound):
    def ask(self):
        return super().ask().tolist()


@caught_by("own-arrays")
class ReturnsItsOwnArray(Sound):
    def __init__(self, domain, *, seed=0):
        super().__init__(domain, seed=seed)
        self.points = np.array(domain.points)

    def ask(self):
        arm = self.choose()
        self.open[arm] += 1
        return self.points[arm]


@caught_by("own-arrays")
class KeepsTheAskedArray(Sound):
    """Pending points by reference: once overwritten they are never settled."""

    def __init__(self, domain, *, seed=0):
        super().__init__(domain, seed=seed)
        self.asked = []

    @property
    def pending(self):
        return len(self.asked)

    def ask(self):
        self.asked.append(super().ask())
        return self.asked[-1]

    def settle(self, arm):
        super().settle(arm)
        self.forget(self.domain.points[arm])

    def cancel(self, x):
        super().cancel(x)
        self.forget(x)

    def forget(self, x):
        found = [i for i, a in enumerate(self.asked) if np.array_equal(a, x)]
        if found:
            del self.asked[found[0]]


@caught_by("tell-types")
class TakesArraysOnly(Sound):
    def check_points(self, x):
        if not isinstance(x, np.ndarray):
            raise TypeError("not an array")
        return super().check_points(x)


@caught_by("recommend-first")
class DividesByNothing(Sound):
    def recommend(self):
        1 // self.told
        return super().recommend()


@caught_by("recommend-first")
class SaysNothing(Sound):
    def recommend(self):
        if not self.told:
            raise LookupError
        return super().recommend()


@caught_by(
    "recommend", "many-pending", "tell-order", "tell-unasked", "tell-bulk", "cancel", "scales",
    "constant", "extremes",
)  # fmt: skip
class MeansNothing(Sound):
    def recommend(self):
        return super().recommend()._replace(mean=math.nan)


@caught_by("recommend")
class BoundsReversed(Sound):
    def recommend(self):
        return super().recommend()._replace(lower=1.0, upper=-1.0)


@caught_by("recommend", "recommend-reads")
class RecommendsAtRandom(Sound):
    """It draws from the numbers that `ask` uses."""

    def recommend(self):
        answer = super().recommend()
        return answer._replace(mean=answer.mean + 1e-9 * self.random.random())


@caught_by("recommend-reads")
class PlaysAfterRecommending(Sound):
    looked = False

    def recommend(self):
        self.looked = True
        return super().recommend()

    def choose(self):
        arm = super().choose()
        return (arm + 1) % len(self.counts) if self.looked and self.told == 20 else arm


@caught_by("same-seed", "pickling", "refused-unchanged", ...)
class IgnoresTheSeed(Sound):
    def __init__(self, domain, *, seed=0):
        super().__init__(domain)
        self.random = np.random.default_rng()


@caught_by("global-random", "same-seed", ...)
class UsesGlobalRandom(Sound):
    def choose(self):
        return int(np.random.randint(len(self.counts)))  # noqa: NPY002


@caught_by("global-random")
class ReseedsGlobalRandom(Sound):
    def __init__(self, domain, *, seed=0):
        super().__init__(domain, seed=seed)
        np.random.seed(seed)  # noqa: NPY002


@caught_by("instances")
class ShareTheLastAsk(Sound):
    """Only policies that play in turn disturb each other."""

    latest = {}  # noqa: RUF012

    def __init__(self, domain, *, seed=0):
        super().__init__(domain, seed=seed)
        self.latest["policy"] = id(self)

    def ask(self):
        self.latest["policy"] = id(self)
        return super().ask()

    def record(self, arm, value):
        super().record(arm, value if self.latest["policy"] == id(self) else -value)


@caught_by("instances", "same-seed", ...)
class ShareRandomNumbers(Sound):
    shared = np.random.default_rng(0)

    def __init__(self, domain, *, seed=0):
        super().__init__(domain, seed=seed)
        self.random = self.shared


@caught_by("pickling", "deep-copying")
class LosesPending(Sound):
    def __getstate__(self):
        return {**self.__dict__, "open": Counter()}


@caught_by("pickling", "state-growth")
class KeepsALambda(Sound):
    def __init__(self, domain, *, seed=0):
        super().__init__(domain, seed=seed)
        self.transform = lambda y: y


@caught_by("deep-copying")
class SharesOnCopy(Sound):
    def __deepcopy__(self, memo):
        return copy.copy(self)


@caught_by("many-pending", "tell-order", "pickling", "deep-copying", "tell-bulk", "cancel",
           "pending-twice")  # fmt: skip
class OneAtATime(Sound):
    def ask(self):
        if self.pending:
            raise RuntimeError("tell first")
        return super().ask()


@caught_by("pending-twice")
class RunsOut(Sound):
    """It has nothing left to ask once every arm is pending."""

    def ask(self):
        if sum(n > 0 for n in self.open.values()) == len(self.counts):
            raise RuntimeError("all arms are pending")
        return super().ask()


@caught_by("tell-order")
class TellsTheLast(Sound):
    """A value goes to the point that was asked last, if that is still pending."""

    last = None

    def ask(self):
        x = super().ask()
        self.last = self.places[x.tobytes()]
        return x

    def record(self, arm, value):
        arm, self.last = (arm if self.last is None else self.last), None
        super().record(arm, value)


@caught_by("pending-twice", ...)
class PendingOnce(Sound):
    """A set of pending points: the same one twice is one play."""

    def ask(self):
        arm = self.choose()
        self.open[arm] = 1
        return self.domain.points[arm].copy()


@caught_by("tell-unasked")
class IgnoresUnasked(Sound):
    asked_for = False

    @property
    def told(self):
        return None

    def choose(self):
        return int(self.random.integers(len(self.counts)))

    def recommend(self):
        if not self.counts.any():
            return pt.Recommendation(self.domain.points[0].copy(), 0.0, -math.inf, math.inf)
        arm = self.best()
        mean = float(self.sums[arm] / self.counts[arm])
        return pt.Recommendation(self.domain.points[arm].copy(), mean, -math.inf, math.inf)

    def settle(self, arm):
        self.asked_for = self.open[arm] > 0
        super().settle(arm)

    def record(self, arm, value):
        if self.asked_for:
            super().record(arm, value)


@caught_by("tell-bulk")
class TellsTheFirstRow(Sound):
    def tell(self, x, y):
        if np.ndim(x) == 2:
            Sound.tell(copy.deepcopy(self), x, y)  # refuses what is bad
            x, y = x[:1], y[:1]
        super().tell(x, y)


@caught_by("tell-bulk")
class BulkLeavesPending(Sound):
    def tell(self, x, y):
        before = Counter(self.open)
        super().tell(x, y)
        if np.ndim(x) == 2:
            self.open = before


@caught_by("cancel", "pending-twice", "pickling", "deep-copying")
class CancelsNothing(Sound):
    def cancel(self, x):
        if not self.open[self.places[np.asarray(x, dtype=float).tobytes()]]:
            raise LookupError("not pending")


@caught_by("cancel-refused", "pending-twice")
class CancelsAnything(Sound):
    def cancel(self, x):
        try:
            super().cancel(x)
        except LookupError:
            return


@caught_by("cancel-refused")
class CancelChangesFirst(Sound):
    """A refused cancel leaves a mark."""

    def cancel(self, x):
        try:
            super().cancel(x)
        except LookupError:
            self.random.random()
            raise


@caught_by("bad-points")
class TakesNearbyPoints(Sound):
    """A point that is no arm stands for the nearest."""

    def check_points(self, x):
        x = super().check_points(x)
        if x.ndim == 2:
            return x
        if not np.isfinite(x).all():
            raise ValueError("not finite")
        return self.domain.points[np.abs(self.domain.points - x).sum(axis=1).argmin()]


@caught_by("bad-points", "bad-bulk")
class RaisesOddly(Sound):
    def check_points(self, x):
        try:
            return super().check_points(x)
        except ValueError as error:
            raise ArithmeticError("odd") from error


@caught_by("bad-values", "bad-bulk")
class TakesNaN(Sound):
    def tell(self, x, y):
        super().tell(x, np.nan_to_num(np.array(y, dtype=float)))


@caught_by("bad-bulk")
class TakesShortBulk(Sound):
    def tell(self, x, y):
        if np.ndim(x) == 2 and np.ndim(y) == 1:
            n = min(len(x), len(y))
            x, y = x[:n], y[:n]
        super().tell(x, y)


@caught_by("refused-unchanged")
class SettlesFirst(Sound):
    """The pending point is settled before the value is looked at."""

    def check_shape(self, y):
        value = super().check_shape(y)
        if not math.isfinite(value):
            self.open = Counter()
        return value


@caught_by("refused-unchanged")
class RecordsTheRowsBefore(Sound):
    """A bulk tell with a bad row takes the rows before it."""

    def tell(self, x, y):
        x = self.check_points(x)
        if x.ndim != 2 or np.shape(y) != (len(x),):
            super().tell(x, y)
            return
        for row, value in zip(x, y, strict=True):
            super().tell(row, value)


@caught_by("scales")
class FearsLargeValues(Sound):
    def record(self, arm, value):
        if 1e4 < abs(value) < 1e7:
            raise OverflowError("too large")
        super().record(arm, value)


@caught_by("constant")
class DividesByTheRange(Sound):
    low, high = math.inf, -math.inf

    def record(self, arm, value):
        super().record(arm, value)
        self.low, self.high = min(self.low, value), max(self.high, value)

    def choose(self):
        if self.told > 20:
            1.0 / (self.high - self.low)
        return super().choose()


@caught_by("constant")
class OffByMuch(Sound):
    def recommend(self):
        answer = super().recommend()
        return answer._replace(mean=answer.mean + 5.0)


@caught_by("extremes")
class Exponential(Sound):
    def record(self, arm, value):
        math.exp(min(value, 1e7 if abs(value) < 1e8 else value) * 1e-5)
        super().record(arm, value)


@caught_by("state-growth")
class KeepsEverything(Sound):
    def record(self, arm, value):
        super().record(arm, value)
        self.history = [*getattr(self, "history", [])]
        self.history.append((arm, value))


@caught_by("step-time")
class SlowsDown(Sound):
    def choose(self):
        np.sort(np.arange(self.told**2 // 40) % 1013)
        return super().choose()


@caught_by("regret")
class NeverLearns(Sound):
    def choose(self):
        return int(self.random.integers(len(self.counts)))


@caught_by("regret")
class Minimises(Sound):
    def choose(self):
        if self.told and self.random.random() < 0.9:
            return int(np.argmin(self.sums / np.maximum(self.counts, 1)))
        return int(self.random.integers(len(self.counts)))


@caught_by("bounds")
class ClaimsTooMuch(Sound):
    guarantee = "proven"

    def recommend(self):
        answer = super().recommend()
        return answer._replace(lower=answer.mean - 1e-3, upper=answer.mean + 1e-3)


@caught_by("bounds")
class CertifiesTooMuch(Sound):
    guarantee = "proven"

    def certificate(self):
        return 0.0


# -- what is caught --------------------------------------------------------------------------------

LONG = {rule.name for rule in RULES if rule.long}


def failed(make, promises, **more):
    """Names of the rules that a policy breaks, each once."""
    try:
        check_policy(make, promises, **more)
    except ConformanceError as error:
        return sorted({failure.check.partition("[")[0] for failure in error.failures})
    return []


def one(make, name, promises=ARMS):
    """A single check."""
    return next(check for check in checks(make, promises) if check.rule.name == name)


@pytest.mark.parametrize(("policy", "names"), BROKEN)
def test_every_fault_is_caught(policy, names):
    found = failed(policy, ARMS, quick=not LONG & set(names))
    if ... in names:
        assert {name for name in names if name is not ...} <= set(found)
    else:
        assert found == sorted(names)


def test_every_check_catches_a_fault():
    caught = {name for policy in BROKEN for name in policy.values[1] if name is not ...}
    assert caught == {rule.name for rule in RULES}


def test_a_growing_state_is_allowed_if_promised():
    one(KeepsEverything, "state-growth", replace(ARMS, memory=1)).run()
    one(KeepsEverything, "state-growth", replace(ARMS, memory={"arms": 1.0})).run()
    with pytest.raises(
        ConformanceError, match=r"(?s)as t\^0: .* after 250 steps, .* promise memory=1"
    ):
        one(KeepsEverything, "state-growth", replace(ARMS, memory={"box": 1})).run()


def test_a_slowing_step_is_allowed_if_promised():
    one(SlowsDown, "step-time", replace(ARMS, time=2)).run()


def test_what_need_not_be_used_or_alike_if_promised():
    one(IgnoresUnasked, "tell-unasked", replace(ARMS, unasked="accepted")).run()
    one(TellsTheLast, "tell-order", replace(ARMS, order_free=False)).run()


def test_a_scale_may_be_refused_when_the_policy_is_built():
    def make(domain, *, norm_bound, seed=0):
        if norm_bound != 1:
            raise ValueError("give other units")
        return Sound(domain, seed=seed)

    one(make, "scales").run()


def test_one_disturbed_run_is_no_failure(monkeypatch):
    slow, fine = (LongRun(400, 1, 1, 1e-4, late) for late in (1e-3, 2e-4))
    check = one(Sound, "step-time")
    for runs, passes in (([slow, fine], True), ([slow, slow], False)):
        monkeypatch.setattr(growth, "long_run", lambda case, attempt, runs=runs: runs[attempt])
        with nullcontext() if passes else pytest.raises(ConformanceError, match="1,000 µs"):
            check.run()


@pytest.mark.parametrize("kind", ["grid", "arms", "box"])
@pytest.mark.parametrize(
    "promised",
    [{"regret": "cumulative"}, {"regret": "simple"}, {"regret": "simple", "noisy": False}],
    ids=["cumulative", "simple", "exact"],
)
def test_uniform_sampling_fails_each_check_of_regret(kind, promised):
    with pytest.raises(ConformanceError, match=r"loses (1\.|0\.[89]).* of it"):
        one(pt.UniformSampling, "regret", Promises(domains=(kind,), **promised)).run()


# -- what passes -----------------------------------------------------------------------------------


class Sequential:
    """As little as a policy can promise: one point at a time, no seed, nothing taken unasked."""

    def __init__(self, domain):
        self.sound = Sound(domain, seed=np.random.default_rng().integers(1 << 30))

    def ask(self):
        if self.sound.pending:
            raise RuntimeError("tell first")
        return self.sound.ask()

    def tell(self, x, y):
        if np.ndim(x) != 1 or not self.sound.pending:
            raise ValueError("one point at a time")
        self.sound.tell(x, y)

    def recommend(self):
        return self.sound.recommend()


#: For Partita's own policies, all of which play 10,000 steps in test_conformance.py.
SHORT = Promises(steps=400)
MODEST = Promises(
    domains=("grid", "arms"),
    pending=False,
    cancel=False,
    bulk=False,
    unasked=False,
    deterministic=False,
    steps=400,
)


@pytest.mark.parametrize(
    ("make", "promises"),
    [
        (Sound, Promises(domains=("arms",))),
        (Sequential, MODEST),
        (functools.partial(pt.UniformSampling, seed=3), Promises("grid", regret=None, steps=400)),
        (pt.UniformSampling, replace(SHORT, regret=None, memory={"box": 1})),
        (pt.PiGPUCB, SHORT),
        (pt.PiGPUCB.paper, SHORT),
        (pt.IGPUCB, replace(SHORT, domains=("grid", "arms"))),
    ],
    ids=["sound", "sequential", "partial", "uniform", "pi-gp-ucb", "paper", "igp-ucb"],
)
def test_passes(make, promises):
    check_policy(make, promises)


@pytest.mark.parametrize(
    "check",
    checks(pt.IGPUCB, Promises(domains=("box",), steps=400)),
    ids=str,
)
def test_igp_ucb_passes_on_a_box(check, monkeypatch):
    monkeypatch.setattr("partita.policies.baselines.igp_ucb.BOX_CANDIDATES", 150)  # for speed alone
    check.run()


# -- how it is used --------------------------------------------------------------------------------


def test_checks_have_names_and_descriptions():
    listed = checks(pt.UniformSampling)
    assert len({str(check) for check in listed}) == len(listed)
    assert listed[0].name == str(listed[0]) == "methods[grid]"
    assert all(check.description.endswith(".") for check in listed)
    listed[0]()


def test_listing_checks_builds_nothing():
    def make(domain, *, seed):
        raise AssertionError("built")

    listed = checks(make)
    with pytest.raises(ConformanceError, match="built"):
        listed[0].run()


def test_quick_leaves_out_the_long_runs():
    names = {check.rule.name for check in checks(Sound, ARMS)}
    assert names - {check.rule.name for check in checks(Sound, ARMS, quick=True)} == LONG


def test_only_what_is_promised_is_asked():
    left_out = {rule.name for rule in RULES} - {c.rule.name for c in checks(Sequential, MODEST)}
    assert left_out == {
        "same-seed", "instances", "global-random", "many-pending", "tell-order", "pending-twice",
        "tell-unasked", "tell-bulk", "cancel", "cancel-refused", "bad-bulk",
    }  # fmt: skip
    assert {c.case.kind for c in checks(Sound, ARMS)} == {"arms"}
    assert "bounds" not in {c.rule.name for c in checks(Sound, replace(ARMS, bounds=False))}


def test_a_failure_says_what_was_expected_what_happened_and_what_to_do():
    with pytest.raises(ConformanceError) as caught:
        check_policy(TakesNaN, ARMS, quick=True)
    error = caught.value
    assert isinstance(error, pt.PartitaError)
    assert isinstance(error, AssertionError)
    assert str(error).startswith("TakesNaN fails 2 of 26 checks.")
    assert [failure.check for failure in error.failures] == ["bad-values[arms]", "bad-bulk[arms]"]
    first = error.failures[0]
    assert first.expected == "bad input raises ValueError, TypeError or LookupError"
    assert "tell(x, nan) was accepted; tell(x, inf) was accepted" in first.happened
    assert "Check input" in first.advice
    for failure in error.failures:
        assert str(failure) in str(error)
    copied = pickle.loads(pickle.dumps(error))
    assert copied.failures == error.failures


def test_an_error_of_the_policy_is_a_failure_with_its_place_and_cause():
    with pytest.raises(ConformanceError, match=r"ZeroDivisionError: .*test_suite.py, line") as e:
        one(DividesByTheRange, "constant").run()
    assert isinstance(e.value.__cause__, ZeroDivisionError)


def test_checks_that_fail_alike_are_listed_together():
    class AlwaysFails(Sound):
        def ask(self):
            raise RuntimeError("no idea")

    with pytest.raises(ConformanceError) as caught:
        check_policy(AlwaysFails, ARMS, quick=True)
    assert len(caught.value.failures) > 10
    assert str(caught.value).count("no idea") == 1
    assert "ask-point[arms], own-arrays[arms]" in str(caught.value)


def test_what_cannot_be_built_is_reported_once():
    with pytest.raises(ConformanceError) as caught:
        check_policy(NeedsMore, Promises(domains=("arms", "box")))
    assert [failure.check for failure in caught.value.failures] == ["methods[arms]", "methods[box]"]
    assert "needs temperature" in str(caught.value)


def test_the_global_random_state_is_put_back():
    np.random.seed(5)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    one(Sound, "global-random").run()
    with pytest.raises(ConformanceError, match="changed it"):
        one(UsesGlobalRandom, "global-random").run()
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


@pytest.mark.parametrize(
    "given",
    [
        {"domains": ()},
        {"domains": ("sphere",)},
        {"domains": ("arms", "arms")},
        {"function": "wavy"},
        {"regret": "none"},
        {"regret": True},
        {"cancel": 1},
        {"unasked": "ignored"},
        {"bounds": "proven"},
        {"time": -1},
        {"time": math.nan},
        {"memory": {"boxes": 1}},
        {"memory": {"box": "linear"}},
        {"steps": 100},
        {"steps": 1000.5},
    ],
    ids=str,
)
def test_promises_that_make_no_sense_are_refused(given):
    with pytest.raises(InvalidInput, match=f"{next(iter(given))}="):
        Promises(**given)


# -- construct -------------------------------------------------------------------------------------

KNOWN = {
    "horizon": 50,
    "kernel": pt.Matern(1.5, 0.4),
    "norm_bound": 2.0,
    "noise": pt.Gaussian(0.3),
    "delta": 0.05,
    "seed": 7,
}


def construct(make, domain, kernel=None, norm_bound=None, noise=None, delta=None, **more):
    return construct_told(make, domain, Assumptions(kernel, norm_bound, noise, delta), **more)


def recorder(names):
    """A function whose signature names these, and that returns what it was given."""
    scope = {}
    exec(f"def make(domain{names}): return dict(locals())", scope)
    return scope["make"]


def test_construct_passes_what_the_signature_names_and_nothing_else():
    domain = pt.Grid(4)
    for names in (
        ", *, seed=0",
        ", *, horizon, kernel",
        ", noise, delta=0.1, *, seed, other=3",
        "",
    ):
        given = construct(recorder(names), domain, **KNOWN)
        assert given.pop("domain") is domain
        assert given.pop("other", 3) == 3
        assert given == {name: KNOWN[name] for name in KNOWN if name in names}
    assert construct(lambda d, **more: more, domain, **KNOWN) == KNOWN


def test_construct_builds_classes_classmethods_and_partials():
    policy = construct(pt.PiGPUCB.paper, pt.Grid(4), **KNOWN)
    assert (policy.horizon, policy.delta, policy.seed) == (50, 0.05, 7)
    assert policy.guarantee == "published"
    assert construct(pt.UniformSampling, pt.Grid(4), **KNOWN).seed == 7
    fixed = functools.partial(pt.IGPUCB, noise=pt.Gaussian(0.9), alpha=2.0)
    policy = construct(fixed, pt.Grid(4), **KNOWN)
    assert (policy.sub_gaussian, policy.alpha, policy.delta) == (0.9, 2.0, 0.05)


def test_construct_leaves_out_what_is_not_known():
    assert construct(recorder(", *, seed=3, delta=0.2"), 0, seed=None) == {
        "domain": 0, "seed": 3, "delta": 0.2,
    }  # fmt: skip


def test_construct_takes_settings_first():
    policy = construct(pt.IGPUCB, pt.Grid(4), **KNOWN, settings={"alpha": 3.0, "delta": 0.2})
    assert (policy.alpha, policy.delta, policy.norm_bound) == (3.0, 0.2, 2.0)


@pytest.mark.parametrize(
    ("make", "given", "message"),
    [
        (NeedsMore, {}, r"NeedsMore needs temperature.*Known: domain, seed"),
        (pt.IGPUCB, {"kernel": None}, "IGPUCB needs kernel"),
        (pt.PiGPUCB.paper, {"horizon": None}, r"PiGPUCB\.paper needs horizon"),
        (recorder(", gain, /, *, seed"), {}, "needs gain"),
        (pt.UniformSampling, {"settings": {"alpha": 1}}, "no setting alpha: it takes seed"),
        (lambda: None, {}, "takes no domain"),
        (lambda *, domain: None, {}, "takes no domain"),
        (functools.partial(pt.UniformSampling, pt.Grid(3)), {}, "takes no domain"),
        (pt.UniformSampling(pt.Grid(3)), {}, "not a policy class"),
    ],
)
def test_construct_says_what_is_missing(make, given, message):
    with pytest.raises(InvalidInput, match=message):
        construct(make, pt.Grid(4), **{**KNOWN, **given})


# -- the page --------------------------------------------------------------------------------------


def test_the_page_lists_every_check():
    section = DOC.read_text().partition("## The checks")[2]
    rows = re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", section, re.MULTILINE)
    assert rows == [(rule.name, rule.description) for rule in RULES]


def test_the_page_lists_every_promise():
    section = DOC.read_text().partition("## Promises")[2].partition("## ")[0]
    listed = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)))
    assert listed == [field.name for field in fields(Promises)]


def test_the_page_runs_when_pasted():
    code = re.findall(r"^```python\n(.*?)^```", DOC.read_text(), re.MULTILINE | re.DOTALL)
    module = types.ModuleType("pasted")
    sys.modules["pasted"] = module  # so that its policy can be pickled
    try:
        exec("\n".join(code), module.__dict__)
        assert module.policy.recommend().x.tolist() == [0.5, 0.5]
        assert callable(module.test_conformance)
        with pytest.raises(ConformanceError, match=r"methods\[box\]"):
            check_policy(module.EpsilonGreedy, Promises(domains=("box",)))
    finally:
        del sys.modules["pasted"]
