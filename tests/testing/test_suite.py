"""The conformance suite: every rule can fail, and what a user of it relies on."""

import contextlib
import copy
import functools
import math
import pickle
import re
import subprocess
import sys
import types
from collections import Counter
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest

import partita as pt
from partita.errors import InvalidInput
from partita.testing import (
    ConformanceError,
    PolicyTests,
    Promises,
    RepeatTests,
    check_policy,
    checks,
    growth,
)
from partita.testing.growth import LongRun
from partita.testing.promises import KINDS
from partita.testing.rules import RuleTests, case_of, rule_methods

DOC = Path(__file__).parents[2] / "docs" / "testing.md"
RULES = [method.rule for method in rule_methods(PolicyTests).values()]
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

    pending = property(lambda self: sum(self.open.values()))
    told = property(lambda self: int(self.counts.sum()))

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
                raise ValueError("one value per point")
        else:
            x, y = x[None, :], np.array([self.check_value(y)])
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

    def check_value(self, y):
        if np.ndim(y):
            raise ValueError("one value")
        return float(y)

    def settle(self, arm):
        self.open[arm] = max(self.open[arm] - 1, 0)

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


class ReturnsItsOwnArray(Sound):
    def __init__(self, domain, *, seed=0):
        super().__init__(domain, seed=seed)
        self.points = np.array(domain.points)

    def ask(self):
        return self.points[self.places[super().ask().tobytes()]]


class KeepsWhatItIsTold(Sound):
    kept = np.zeros(1)

    def tell(self, x, y):
        super().tell(x, y)
        self.kept = x

    def choose(self):
        return 0 if np.ravel(self.kept)[0] < -900.0 else super().choose()


class ShareTheLastAsk(Sound):
    latest = {}  # noqa: RUF012 — only policies that play in turn disturb each other

    def ask(self):
        self.latest["policy"] = id(self)
        return super().ask()

    def record(self, arm, value):
        super().record(arm, value if self.latest["policy"] == id(self) else -value)


class LosesPending(Sound):
    def __getstate__(self):
        return {**self.__dict__, "open": Counter()}


class SavesAlmostAll(Sound):
    """Its state lacks the random generator."""

    def state(self):
        return {"told": len(self.__dict__)}

    def restore(self, state):
        pass


class SavesAnObject(SavesAlmostAll):
    def state(self):
        return {"random": self.random}


class KeepsALambda(Sound):
    def __init__(self, domain, *, seed=0):
        super().__init__(domain, seed=seed)
        self.transform = lambda y: y


class TellsTheLast(Sound):
    last = None

    def ask(self):
        x = super().ask()
        self.last = self.places[x.tobytes()]
        return x

    def record(self, arm, value):
        arm, self.last = (arm if self.last is None else self.last), None
        super().record(arm, value)


class IgnoresUnasked(Sound):
    told = None

    def choose(self):
        return int(self.random.integers(len(self.counts)))

    def recommend(self):
        arm = self.best() if self.counts.any() else 0
        return pt.Recommendation(self.domain.points[arm].copy(), 0.0, -math.inf, math.inf)

    def settle(self, arm):
        self.asked_for = self.open[arm] > 0
        super().settle(arm)

    def record(self, arm, value):
        if self.asked_for:
            super().record(arm, value)


class BulkLeavesPending(Sound):
    def tell(self, x, y):
        before = Counter(self.open)
        super().tell(x, y)
        if np.ndim(x) == 2:
            self.open = before


class CancelsAnything(Sound):
    def cancel(self, x):
        with contextlib.suppress(LookupError):
            super().cancel(x)


class TakesNearbyPoints(Sound):
    def check_points(self, x):
        x = super().check_points(x)
        if x.ndim == 2 or not np.isfinite(x).all():
            return x
        return self.domain.points[np.abs(self.domain.points - x).sum(axis=1).argmin()]


class TakesNaN(Sound):
    def tell(self, x, y):
        super().tell(x, np.nan_to_num(np.array(y, dtype=float)))


class TakesNoNoticeOfStd(Sound):
    def tell(self, x, y, std=None):
        super().tell(x, y)


class TakesAnyStd(TakesNoNoticeOfStd):
    takes_std = True


class CountsItsOwnStdTwice(TakesNoNoticeOfStd):
    takes_std, sub_gaussian = True, 0.1

    def tell(self, x, y, std=None):
        super().tell(x, y)
        if std is not None:
            super().tell(x, y)


class SettlesBeforeItLooks(Sound):
    def check_value(self, y):
        self.open = Counter() if y != y else self.open  # noqa: PLR0124 — NaN alone
        return super().check_value(y)


class RecordsTheRowsBeforeABadOne(Sound):
    def tell(self, x, y):
        if np.shape(x) != (4, 2) or np.shape(y) != (4,):
            super().tell(x, y)
        else:
            for row, value in zip(x, y, strict=True):
                super().tell(row, value)


class DividesByTheRange(Sound):
    def choose(self):
        return super().choose() if self.told < 20 else int(0 / float(np.ptp(self.sums)))


class KeepsEverything(Sound):
    def record(self, arm, value):
        super().record(arm, value)
        self.history = [*getattr(self, "history", []), (arm, value)]


class SlowsDown(Sound):
    def choose(self):
        np.sort(np.arange(self.told**2 // 40) % 1013)
        return super().choose()


def sound_but(**methods):
    """A policy that is sound but for these methods."""
    return type("SoundBut", (Sound,), methods)


def answers(**fields):
    """A policy that recommends this, whatever it was told."""
    return sound_but(recommend=lambda self: Sound.recommend(self)._replace(**fields))


def raises(error, call, when=lambda self, *given: True):
    """A policy with a method that raises, at times."""

    def method(self, *given):
        if when(self, *given):
            raise error
        return getattr(Sound, call)(self, *given)

    return sound_but(**{call: method})


class RecommendsAtRandom(Sound):
    def recommend(self):
        return super().recommend()._replace(mean=self.random.random())


def needs_more(domain, *, temperature, seed=0):
    return Sound(domain, seed=seed)


BROKEN = [
    ("methods", sound_but(cancel=None)),
    ("methods", needs_more),
    ("ask-point", sound_but(ask=lambda self: Sound.ask(self).tolist())),
    ("ask-point", sound_but(ask=lambda self: Sound.ask(self)[None, :])),
    ("ask-point", sound_but(ask=lambda self: Sound.ask(self) + 1e-9)),
    ("own-arrays", ReturnsItsOwnArray),
    ("own-arrays", KeepsWhatItIsTold),
    ("tell-types", raises(TypeError("no array"), "tell", lambda self, x, y: type(x) is list)),
    ("recommend-first", raises(ZeroDivisionError(), "recommend", lambda self: not self.told)),
    ("recommend-first", raises(LookupError(), "recommend", lambda self: not self.told)),
    ("recommend-first", sound_but(ask=lambda self: np.append(Sound.ask(self), 0.5))),
    ("recommend", sound_but(recommend=lambda self: 3.0)),
    ("recommend", answers(mean=math.nan)),
    ("recommend", answers(lower=1.0, upper=-1.0)),
    ("recommend", RecommendsAtRandom),
    ("recommend-reads", RecommendsAtRandom),
    ("same-seed", lambda domain: Sound(domain, seed=None)),
    ("instances", ShareTheLastAsk),
    ("global-random", sound_but(choose=lambda self: int(17 * np.random.rand()))),  # noqa: NPY002
    ("pickling", LosesPending),
    ("pickling", KeepsALambda),
    ("deep-copying", LosesPending),
    ("deep-copying", sound_but(__deepcopy__=lambda self, memo: copy.copy(self))),
    ("saving", SavesAlmostAll),
    ("saving", SavesAnObject),
    ("many-pending", raises(RuntimeError("tell first"), "ask", lambda self: self.pending)),
    ("tell-order", TellsTheLast),
    ("pending-twice", sound_but(pending=property(lambda self: sum(map(bool, self.open.values()))))),
    ("pending-twice", CancelsAnything),
    ("tell-unasked", IgnoresUnasked),
    (
        "tell-bulk",
        sound_but(
            tell=lambda self, x, y: (
                Sound.tell(self, x[:1], y[:1]) if np.ndim(x) == 2 else Sound.tell(self, x, y)
            )
        ),
    ),
    ("tell-bulk", BulkLeavesPending),
    ("cancel", sound_but(cancel=lambda self, x: None)),
    ("cancel-refused", CancelsAnything),
    (
        "cancel-refused",
        sound_but(cancel=lambda self, x: (self.random.random(), Sound.cancel(self, x))),
    ),
    ("bad-points", TakesNearbyPoints),
    ("bad-points", raises(ArithmeticError("odd"), "tell", lambda self, x, y: np.ndim(x) == 3)),
    ("bad-values", TakesNaN),
    ("bad-bulk", TakesNaN),
    ("bad-std", TakesNoNoticeOfStd),
    ("bad-std", TakesAnyStd),
    ("refused-unchanged", SettlesBeforeItLooks),
    ("refused-unchanged", RecordsTheRowsBeforeABadOne),
    ("scales", raises(OverflowError("large"), "record", lambda self, arm, y: abs(y) > 1e4)),
    ("constant", DividesByTheRange),
    ("constant", answers(mean=5.0)),
    ("extremes", raises(OverflowError("large"), "record", lambda self, arm, y: abs(y) > 1e20)),
    ("own-std", CountsItsOwnStdTwice),
    ("state-growth", KeepsEverything),
    ("state-growth", KeepsALambda),
    ("step-time", SlowsDown),
    ("regret", sound_but(record=lambda self, arm, y: Sound.record(self, arm, -y))),
    (
        "bounds",
        type("ClaimsTooMuch", (answers(lower=0.5, upper=0.5),), {"guarantee": "proven"}),
    ),
    ("bounds", sound_but(guarantee="proven", certificate=lambda self: 0.0)),
]


def one(make, name, promises=ARMS):
    """A single check."""
    return next(check for check in checks(make, promises) if check.rule.name == name)


@pytest.mark.parametrize(("name", "policy"), BROKEN)
def test_every_fault_is_caught(name, policy):
    with pytest.raises(ConformanceError, match=rf": {name}\[arms\]"):
        one(policy, name).run()


def test_every_rule_can_fail():
    assert {name for name, _ in BROKEN} == {rule.name for rule in RULES}


@pytest.mark.parametrize("kind", ["grid", "arms", "box"])
@pytest.mark.parametrize(
    "promised",
    [{"regret": "cumulative"}, {"regret": "simple"}, {"regret": "simple", "noisy": False}],
    ids=["cumulative", "simple", "exact"],
)
def test_uniform_sampling_fails_each_check_of_regret(kind, promised):
    with pytest.raises(ConformanceError, match=r"loses (1\.|0\.[89]).* of it"):
        one(pt.UniformSampling, "regret", Promises(domains=(kind,), **promised)).run()


# -- promises --------------------------------------------------------------------------------------


class Sequential:
    """As little as a policy can promise: one point at a time, no seed, nothing taken unasked."""

    def __init__(self, domain):
        self.sound = Sound(domain, seed=None)

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


MODEST = Promises(
    domains=("grid", "arms"),
    pending=False,
    cancel=False,
    bulk=False,
    unasked=False,
    deterministic=False,
    steps=400,
)


def test_only_what_is_promised_is_asked():
    check_policy(Sequential, MODEST)
    asked = {check.rule.name for check in checks(Sequential, MODEST)}
    assert {rule.name for rule in RULES} - asked == {
        "same-seed", "instances", "global-random", "many-pending", "tell-order", "pending-twice",
        "tell-unasked", "tell-bulk", "cancel", "cancel-refused", "bad-bulk",
    }  # fmt: skip
    assert "bounds" not in {c.rule.name for c in checks(Sound, replace(ARMS, bounds=False))}


@pytest.mark.parametrize(
    ("policy", "name", "promised"),
    [
        (KeepsEverything, "state-growth", {"memory": 1}),
        (KeepsEverything, "state-growth", {"memory": {"arms": 1.0}}),
        (SlowsDown, "step-time", {"time": 2}),
        (IgnoresUnasked, "tell-unasked", {"unasked": "accepted"}),
        (TellsTheLast, "tell-order", {"order_free": False}),
    ],
)
def test_a_promise_that_allows_it(policy, name, promised):
    one(policy, name, replace(ARMS, **promised)).run()


def test_extreme_values_may_be_refused():
    one(raises(ValueError("large"), "tell", lambda self, x, y: abs(y) > 1e20), "extremes").run()


def test_a_scale_may_be_refused_when_the_policy_is_built():
    def make(domain, *, norm_bound, seed=0):
        if norm_bound != 1:
            raise ValueError("give other units")
        return Sound(domain, seed=seed)

    one(make, "scales").run()


def test_one_disturbed_run_is_not_a_failure(monkeypatch):
    slow, fine = (LongRun(1, 1, 1e-4, late) for late in (1e-3, 2e-4))
    check = one(Sound, "step-time")
    monkeypatch.setattr(growth, "long_run", lambda case, attempt: (slow, fine)[attempt])
    check.run()
    monkeypatch.setattr(growth, "long_run", lambda case, attempt: slow)
    with pytest.raises(ConformanceError, match="1,000 µs"):
        check.run()


@pytest.mark.parametrize(
    "given",
    [
        {"domains": ()},
        {"domains": ("sphere",)},
        {"domains": ("arms", "arms")},
        {"function": "wavy"},
        {"regret": True},
        {"cancel": 1},
        {"unasked": "ignored"},
        {"bounds": "proven"},
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


# -- without pytest --------------------------------------------------------------------------------


def test_checks_have_names_and_descriptions():
    listed = checks(pt.UniformSampling)
    assert len({str(check) for check in listed}) == len(listed)
    assert listed[0].name == str(listed[0]) == "methods[grid]"
    assert all(check.description.endswith(".") for check in listed)
    listed[0]()


def test_quick_leaves_out_the_long_runs():
    long = {check.name for check in checks(Sound, ARMS)}
    long -= {check.name for check in checks(Sound, ARMS, quick=True)}
    assert long == {"state-growth[arms]", "step-time[arms]", "regret[arms]", "bounds[arms]"}


def test_a_failure_says_what_was_expected_what_happened_and_what_to_do():
    with pytest.raises(ConformanceError) as caught:
        check_policy(TakesNaN, ARMS, quick=True)
    error = caught.value
    assert isinstance(error, pt.PartitaError)
    assert str(error).startswith("TakesNaN fails 2 of 29 checks.")
    assert [failure.check for failure in error.failures] == ["bad-values[arms]", "bad-bulk[arms]"]
    first = error.failures[0]
    assert first.expected == "bad input raises ValueError, TypeError or LookupError"
    assert "tell(x, nan) was accepted; tell(x, inf) was accepted" in first.happened
    assert "Check input" in first.advice
    assert all(str(failure) in str(error) for failure in error.failures)
    assert pickle.loads(pickle.dumps(error)).failures == error.failures


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
    with pytest.raises(ConformanceError, match="needs temperature") as caught:
        check_policy(needs_more, Promises(domains=("arms", "box")))
    assert [failure.check for failure in caught.value.failures] == ["methods[arms]", "methods[box]"]


def test_the_global_random_state_is_put_back():
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    with pytest.raises(ConformanceError, match="changed it"):
        one(dict(BROKEN)["global-random"], "global-random").run()
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_pytest_is_not_needed():
    script = "import sys, partita.testing; assert 'pytest' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


# -- with pytest -----------------------------------------------------------------------------------


class TestSound(PolicyTests):
    policy = Sound
    promises = ARMS


class TestPartialOnAGrid(RepeatTests):
    policy = functools.partial(pt.UniformSampling, seed=3)
    promises = Promises(domains=("grid",))


class TestMethod(RepeatTests):
    promises = replace(MODEST, deterministic=True)

    def policy(self, domain, *, seed):
        return Sound(domain, seed=seed + 1)


def make(domain, *, seed):
    return Sound(domain, seed=seed)


class TestFunction(TestMethod):
    policy = make


class TestStaticMethod(TestMethod):
    policy = staticmethod(make)


MINE = """
import partita as pt
from partita.testing import AskTellTests, PendingTests, Promises

class Mine(pt.UniformSampling):
    def ask(self):
        return super().ask().tolist()

class TestMine(AskTellTests):
    policy = Mine
    promises = Promises(domains=("box",))

class TestLess(PendingTests):
    policy = pt.UniformSampling
    promises = Promises(domains=("box",), cancel=False)

class TestMore(TestLess):
    promises = Promises(domains=("box", "grid"))
    test_tell_bulk = None
"""


def test_what_pytest_says(tmp_path, capsys):
    module = tmp_path / "test_mine.py"
    module.write_text(MINE)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    options = ["-v", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "--color=no"]
    assert pytest.main([*options, str(module)]) == pytest.ExitCode.TESTS_FAILED
    output = capsys.readouterr().out
    run = re.findall(r"(Test\w+)::test_(\w+)\[(\w+)\] (PASSED|FAILED)", output)
    assert {rule for name, rule, _, outcome in run if outcome == "FAILED"} == {"ask_point"}
    assert "expected: ask() is a NumPy array of float64, shape (1,)" in output
    assert "to do:    Return np.array(point, dtype=float)." in output
    always = {"many_pending", "tell_order", "tell_unasked"}
    less = {(rule, kind) for name, rule, kind, _ in run if name == "TestLess"}
    assert less == {(rule, "box") for rule in (*always, "tell_bulk")}
    more = {(rule, kind) for name, rule, kind, _ in run if name == "TestMore"}
    again = {(rule, kind) for rule in (*always, "cancel", "cancel_refused") for kind in KINDS[::2]}
    assert more == {("pending_twice", "grid"), *again}


def test_a_class_without_a_policy_says_so():
    with pytest.raises(InvalidInput, match="RuleTests: write `policy = MyPolicy` in the class"):
        case_of(RuleTests, "box")


# -- the page --------------------------------------------------------------------------------------


def test_the_page_lists_every_rule():
    section = DOC.read_text().partition("## The rules")[2]
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
        assert issubclass(module.TestEpsilonGreedy, PolicyTests)
        with pytest.raises(ConformanceError, match=r"methods\[box\]"):
            check_policy(module.EpsilonGreedy, Promises(domains=("box",)))
    finally:
        del sys.modules["pasted"]
