"""Saved state: pickles and copies go on as the original. And any calls in any order."""

import copy
import functools
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from support.oracle import (
    DOMAINS,
    History,
    Oracle,
    asks,
    assert_best,
    assert_cover,
    assert_predictions,
    assert_table,
    bumps,
    every_kind,
    irregular_arms,
    make,
    random_points,
)

import partita as pt
from partita._state import BadState
from partita.errors import VersionMismatch
from partita.gp import warm as warm_module
from partita.partition import candidates as candidates_module
from partita.policies import base
from partita.study.packed import pack, unpack


def round_trip(policy):
    return pickle.loads(pickle.dumps(policy))


def in_the_middle(kind, domain, seed, steps):
    """A policy in the middle of things: told, pending, told in bulk, cancelled."""
    policy, f = make(kind, domain, seed=seed), bumps(domain, seed)
    rng = np.random.default_rng(seed)
    pending = []
    for _ in range(steps):
        pending.append(policy.ask())
        while len(pending) > rng.integers(0, 6):
            x = pending.pop(rng.integers(len(pending)))
            if rng.random() < 0.2:
                policy.cancel(x)
            else:
                policy.tell(x, float(f(x)[0]) + 0.1 * rng.normal())
    return policy, pending, f


@pytest.mark.parametrize("where", ["grid1", "grid3", "arms", "box1", "box2", "box5"])
@every_kind
@pytest.mark.parametrize("how", [round_trip, copy.deepcopy])
def test_copies_go_on_as_the_original(kind, where, how):
    """With pending points, at random moments; the two never touch each other."""
    domain = DOMAINS[where]
    for seed, steps in ((0, 0), (1, 11)) if how is copy.deepcopy else ((2, 30),):
        policy, pending, f = in_the_middle(kind, domain, seed, steps)
        twin = how(policy)
        assert (twin.told, twin.pending) == (policy.told, policy.pending)
        assert twin.guarantee == policy.guarantee
        points = asks(policy, 25, f)
        np.testing.assert_array_equal(asks(twin, 25, f), points)
        for i, x in enumerate(pending):
            for each in (policy, twin):
                each.tell(x, 0.2) if i % 2 else each.cancel(x)
        assert twin.pending == policy.pending == 0
        np.testing.assert_array_equal(asks(twin, 25, f), asks(policy, 25, f))
        np.testing.assert_array_equal(twin.recommend().x, policy.recommend().x)
        if kind != "uniform":
            assert twin.certificate() == policy.certificate()
            for a, b in zip(twin.predict(points[:5]), policy.predict(points[:5]), strict=True):
                np.testing.assert_array_equal(a, b)


@every_kind
def test_every_protocol(kind):
    policy, _, f = in_the_middle(kind, DOMAINS["grid2"], 3, 20)
    saved = [pickle.dumps(policy, protocol) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)]
    points = asks(policy, 10, f)
    for data in saved:
        np.testing.assert_array_equal(asks(pickle.loads(data), 10, f), points)


def test_a_pickle_is_read_by_another_process(tmp_path):
    """Nothing that goes on depends on object addresses or on the order of hashed strings."""
    policy = in_the_middle("paper", pt.Box([0.0, 0.0], [1.0, 1.0]), 4, 40)[0]
    path = tmp_path / "policy.pickle"
    path.write_bytes(pickle.dumps(policy))
    code = (
        "import pickle, pathlib, sys\n"
        "policy = pickle.loads(pathlib.Path(sys.argv[1]).read_bytes())\n"
        "for _ in range(15):\n"
        "    x = policy.ask(); print(*x.tolist()); policy.tell(x, float(x.sum() % 0.7))\n"
    )
    output = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True
    ).stdout
    other = np.array([line.split() for line in output.splitlines()], dtype=float)
    np.testing.assert_array_equal(other, asks(policy, 15, lambda x: [x.sum() % 0.7]))


@every_kind
@pytest.mark.parametrize("version", [base.STATE_VERSION + 1, 1, 10**6, None, "1", 1.5])
def test_a_state_of_another_version_is_refused(kind, version):
    policy = make(kind, pt.Grid(5))
    state = policy.__getstate__()
    assert state["state_version"] == base.STATE_VERSION
    assert state["written_by"] == pt.__version__
    state.update(state_version=version, written_by="99.0")
    blank = type(policy).__new__(type(policy))
    newer = isinstance(version, int) and version > base.STATE_VERSION
    advice = "upgrade Partita" if newer else "open it with the Partita that saved it"
    with pytest.raises(VersionMismatch, match=advice) as caught:
        blank.__setstate__(state)
    assert isinstance(caught.value, pt.PartitaError)
    for word in ("99.0", str(version), pt.__version__):
        assert word in str(caught.value)
    assert not vars(blank)


def test_a_newer_pickle_is_refused_whole(monkeypatch):
    policy = make("pi", pt.Grid(5))
    with monkeypatch.context() as patch:
        patch.setattr(base, "STATE_VERSION", base.STATE_VERSION + 1)
        data = pickle.dumps(policy)
    with pytest.raises(pt.PartitaError, match="upgrade"):
        pickle.loads(data)


@pytest.mark.parametrize("where", ["grid2", "box1", "box2"])
@pytest.mark.parametrize("kind", ["pi", "paper", "uniform"])
def test_pickles_are_not_bloated(kind, where):
    """A few hundred steps: about what the covariances of the cells in use take, no copies."""
    policy, _, f = in_the_middle(kind, DOMAINS[where], 0, 5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policy, "horizon", None, raising=False)
        asks(policy, 250, f)
    size = len(pickle.dumps(policy))
    numbers = 0
    if kind != "uniform":
        numbers = sum(len(c.layout.sites) ** 2 for c in policy._engine.partition.leaves.values())
    assert size < 8 * numbers + 1_000_000
    assert size > 1000


def test_domains_are_not_stored_arm_by_arm():
    assert len(pickle.dumps(pt.Grid(1000, dim=2))) < 1000


# -- everything at once -------------------------------------------------------------------------

SMALL_DOMAINS = [
    pt.Grid(9),
    pt.Grid(5, dim=2),
    irregular_arms(),
    pt.Box([-1.0], [3.0]),
    pt.Box([-5, 0], [10, 15]),
    pt.Box([0.0] * 5, [2.0] * 5),
]
VARIANTS = [
    ("pi", {"horizon": 50}),
    ("pi", {"horizon": 4, "alpha": 0.1}),
    ("pi", {"horizon": 20, "width": "paper", "split": "count", "index_slack": True}),
    ("pi", {"horizon": 20, "initial_cells": 2, "alpha": 0.1}),
    ("paper", {"horizon": 12}),
    ("paper", {"horizon": 60}),
    ("igp", {}),
]


class EverythingAtOnce(RuleBasedStateMachine):
    """Any call in any order, against the raw record of what was told."""

    def __init__(self):
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.checked = None

    def teardown(self):
        self.patch.undo()

    @initialize(
        domain=st.sampled_from(SMALL_DOMAINS),
        variant=st.sampled_from(VARIANTS),
        seed=st.integers(0, 3),
        warm=st.sampled_from([0, 1500, 2**26]),
        extras=st.sampled_from([48, 256]),
    )
    def start(self, domain, variant, seed, warm, extras):
        self.patch.setattr(warm_module, "WARM_NUMBERS", warm)
        self.patch.setattr(candidates_module, "EXTRA_LIMIT", extras)
        kind, more = variant
        self.made = functools.partial(make, kind, domain, seed=seed, **more)
        policy = self.made()
        if kind != "igp":
            policy._past_horizon = True  # its warning has a test of its own
        self.history, self.oracle = History(policy), Oracle(policy)
        self.f = bumps(domain, seed)

    @property
    def policy(self):
        return self.history.policy

    def value(self, x, noise, std=None):
        """f and noise, which is no more than what is known of it allows: bounds hold then."""
        return float(self.f(x)[0]) + (noise if std is None else float(np.clip(noise, -std, std)))

    noise = st.sampled_from([0.0, 0.05, -0.2, 1.0])
    #: What is known of a value's noise; L is 0.1. Brute force cannot do with much less than this.
    std = st.sampled_from([None, None, None, 0.1, 0.02, 0.7, 0.005])

    @rule()
    def ask(self):
        x = self.history.ask()
        self.policy.domain.check(x[None, :])
        assert_best(self.oracle, self.history, x)

    @rule(n=st.integers(2, 5))
    def ask_several(self, n):
        for _ in range(n):
            self.history.ask()

    @precondition(lambda self: self.history.pending)
    @rule(which=st.integers(0, 10**6), noise=noise, std=std)
    def tell_pending(self, which, noise, std):
        x = self.history.pending[which % len(self.history.pending)]
        self.history.tell(x, self.value(x, noise, std), std)

    @rule(noise=noise, n=st.integers(1, 6))
    def play(self, noise, n):
        for _ in range(n):
            x = self.history.ask()
            self.history.tell(x, self.value(x, noise))

    @rule(seed=st.integers(0, 50), noise=noise, times=st.sampled_from([1, 1, 4, 12]), std=std)
    def tell_anywhere(self, seed, noise, times, std):
        x = random_points(self.policy.domain, 3, seed)[0]
        for _ in range(times):
            self.history.tell(x, self.value(x, noise, std), std)

    @rule(
        seed=st.integers(0, 50),
        n=st.sampled_from([0, 1, 5, 20, 60]),
        pending=st.integers(0, 3),
        known=st.booleans(),
    )
    def tell_many(self, seed, n, pending, known):
        X = np.concatenate([random_points(self.policy.domain, n, seed), *self.rows(pending)])
        order = np.random.default_rng(seed).permutation(len(X))
        stds = np.random.default_rng(seed).choice([0.02, 0.1, 0.7], len(X)) if known else None
        self.history.tell_many(X[order], self.f(X[order]) if len(X) else [], stds)

    def rows(self, n):
        return [x[None, :] for x in self.history.pending[:n]]

    @precondition(lambda self: self.history.pending)
    @rule(which=st.integers(0, 10**6))
    def cancel(self, which):
        self.history.cancel(self.history.pending[which % len(self.history.pending)])

    @precondition(lambda self: self.history.pending)
    @rule()
    def cancel_all(self):
        for x in list(self.history.pending)[::-1]:
            self.history.cancel(x)

    @rule(how=st.sampled_from([round_trip, copy.deepcopy]))
    def save_and_open(self, how):
        self.history.policy = self.oracle.policy = how(self.policy)

    @rule()
    def save_as_data(self):
        try:
            data = pack(self.policy.state())
        except BadState as error:  # with little memory, between two plans
            if "a covariance that was given up" in str(error):
                return
            raise
        fresh = self.made()
        fresh.restore(unpack(data))
        assert pack(fresh.state()) == data
        self.history.policy = self.oracle.policy = fresh

    @rule()
    def recommend_and_certify(self):
        got = self.policy.recommend()
        self.policy.domain.check(got.x[None, :])
        gap = self.policy.certificate()
        assert gap >= 0
        t = len(self.history.X) + 1
        cells = self.oracle.cells(self.history.X, self.history.Y, stds=self.history.stds)
        highest = max(
            (c.mean + self.oracle.width(c.key[0], c.gain, t) * c.std).max()
            + self.oracle.slack(c.key[0])
            for c in cells
            if len(c.points)
        )
        assert gap + got.lower <= max(highest, got.lower) + 1e-7
        if self.policy.domain.finite:
            lowers = [c.mean - self.oracle.width(c.key[0], c.gain, t) * c.std for c in cells]
            plain = [low for low, c in zip(lowers, cells, strict=True) if len(c.points)]
            highest = max(low.max() for low in plain)
            assert got.lower >= highest - 4e-9 - 1e-9 * abs(highest)

    @rule(seed=st.integers(0, 50))
    def predict(self, seed):
        assert_predictions(self.oracle, self.history, random_points(self.policy.domain, 4, seed))

    @rule()
    def bad_calls(self):
        policy, dim = self.policy, self.policy.domain.dim
        outside = policy.domain.upper + 1.0
        inside = np.array([policy.recommend().x] * 3)
        before = pickle.dumps(policy)
        for call in (
            lambda: policy.tell(outside, 0.0),
            lambda: policy.tell(inside[0], math.nan),
            lambda: policy.tell(inside, [0.0, math.inf, 0.0]),
            lambda: policy.tell(np.append(inside, [outside], axis=0), np.zeros(4)),
            lambda: policy.tell(np.zeros(dim + 1), 0.0),
            lambda: policy.tell(inside[0], 0.0, std=-0.1),
            lambda: policy.tell(inside, np.zeros(3), std=[0.1, math.nan, 0.1]),
            lambda: policy.cancel(outside),
            lambda: policy.predict(outside[None, :]),
        ):
            with pytest.raises(pt.PartitaError):
                call()
        assert pickle.dumps(policy) == before

    @invariant()
    def everything_adds_up(self):
        policy, history = self.policy, self.history
        assert policy.told == len(history.X)
        assert policy.pending == len(history.pending)
        state = (policy.told, policy.pending, len(policy._engine._planned))
        if state != self.checked:  # not again after a call that only looks
            self.checked = state
            cover = policy.cover
            volume = math.fsum(c.side**policy.domain.dim for c in cover)
            assert volume == pytest.approx(1.0, abs=1e-9)
            assert_cover(self.oracle, history)
            assert_table(self.oracle, history)


EverythingAtOnce.TestCase.settings = settings(max_examples=20, stateful_step_count=20)
TestEverythingAtOnce = pytest.mark.filterwarnings("ignore::partita.TheoryWarning")(
    EverythingAtOnce.TestCase
)
