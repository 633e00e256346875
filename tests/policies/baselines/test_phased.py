"""SupLinUCB and SupKernelUCB against the algorithm written out line by line.

The slow twin keeps raw observations by level and solves from scratch for every level at every step.
"""

import copy
import math

import numpy as np
import pytest
from support.common import KERNEL, synthetic
from support.linear import drive, failures, first_best, gp, linear_kernel, plane

import partita as pt
from partita.gp import rows as rows_module
from partita.gp import warm as warm_module
from partita.partition.sites import arm_priorities
from partita.policies.baselines import phased as _phased
from partita.policies.baselines.sup_kernel_ucb import SupKernelUCB
from partita.policies.baselines.sup_lin_ucb import SupLinUCB

#: With these, short runs go through several levels, and past the last.
QUICK = {"alpha": 0.01, "noise": pt.SubGaussian(0.015)}
NOISE = pt.SubGaussian(0.3)
KINDS = ("linear", "kernel")
every_kind = pytest.mark.parametrize("kind", KINDS)

TWINS = 0.5 + 1e-12 * np.arange(4)[:, None] * [1.0, 0.0]  # four arms that no kernel tells apart
DOMAINS = {
    "grid1": pt.Grid(12),
    "grid2": pt.Grid(4, dim=2),
    "arms": pt.Arms(np.random.default_rng(1).uniform(-0.7, 0.5, (15, 2)), -0.7, 0.5),
    "one": pt.Arms([[0.25, 0.75]]),
    "two": pt.Arms([[0.0], [1.0]]),
    "same": pt.Arms(np.concatenate([TWINS, [[0.1, 0.9], [0.9, 0.1]]])),
}
everywhere = pytest.mark.parametrize("where", DOMAINS)


def make(kind, domain, *, horizon=200, norm_bound=1.0, noise=NOISE, **more):
    settings = {"horizon": horizon, "norm_bound": norm_bound, "noise": noise, **more}
    if kind == "linear":
        return SupLinUCB(domain, **settings)
    return SupKernelUCB(domain, kernel=KERNEL, **settings)


class Slow:
    """The scheme of Chu et al. 2011 with pending plays; levels count from 1, 0 is none."""

    def __init__(self, policy):
        self.policy = policy
        self.arms = policy.domain.points
        if isinstance(policy, SupLinUCB):
            self.kernel = linear_kernel(policy.intercept)
        else:
            lower, side = policy.domain.lower, policy.domain.upper - policy.domain.lower
            self.kernel = lambda a, b: policy.kernel((a - lower) / side, (b - lower) / side)
        self.told = []  # (x, value, level)
        self.pending = []  # (x, level), as asked
        self.levels_played = []
        self.known = {}

    def moments(self, level, planned=False):
        X = [x for x, _, s in self.told if s == level]
        y = [value for _, value, s in self.told if s == level]
        if planned:
            X += [x for x, s in self.pending if s == level]
            y += [0.0] * (len(X) - len(y))
        X, y = np.array(X).reshape(-1, self.arms.shape[1]), np.array(y)
        word = X.tobytes() + y.tobytes()
        if word not in self.known:
            self.known[word] = gp(self.kernel, self.policy.alpha, X, y, self.arms)
        return self.known[word]

    def ask(self):
        p = self.policy
        T, N, S = p.horizon, len(self.arms), max(1, math.ceil(math.log(p.horizon)))
        M = p.norm_bound * np.sqrt(np.diagonal(self.kernel(self.arms, self.arms)).max())
        eta = math.sqrt(2 * math.log(2 * T * N * S / p.delta))
        factor = (math.sqrt(p.alpha) * p.norm_bound + p.noise.sub_gaussian * eta) / math.sqrt(
            p.alpha
        )
        priority = arm_priorities(p.seed, N)
        s, active = 1, np.arange(N)
        while True:
            assert s <= S
            mean, told_std = self.moments(s)
            widths = np.round(factor * self.moments(s, planned=True)[1], 9)
            upper = mean + factor * told_std
            if all(widths[active] <= np.round(M / math.sqrt(T), 9)):
                arm = active[first_best(upper[active], priority[active])]
                return self.remember(arm, 0)
            if all(widths[active] <= np.round(M * 2.0**-s, 9)):
                if all(np.round(factor * told_std[active], 9) <= np.round(M * 2.0**-s, 9)):
                    top = np.round(upper[active].max(), 9)
                    keep = np.round(upper[active], 9) >= top - 2 * M * 2.0**-s - 5e-10
                    active = active[keep]
                s += 1
            else:
                arm = active[first_best(widths[active], priority[active])]
                return self.remember(arm, s)

    def remember(self, arm, level):
        self.pending.append((self.arms[arm], level))
        self.levels_played.append(level)
        return self.arms[arm]

    def settle(self, x):
        for i, (other, level) in enumerate(self.pending):
            if other.tobytes() == np.asarray(x).tobytes():
                del self.pending[i]
                return level
        return None

    def tell(self, x, value):
        level = self.settle(x)
        self.told.append((np.array(x), value, 1 if level is None else level))

    def cancel(self, x):
        self.settle(x)


def smooth(domain, seed=0):
    """A function of norm 1 in the space of KERNEL."""
    rng = np.random.default_rng(seed)
    f = synthetic(domain.dim, rng)
    norm, side = f.norm, domain.upper - domain.lower
    return lambda x: float(f((x - domain.lower)[None] / side)[0] / norm)


def function(kind, domain, seed=0):
    return plane(domain, seed) if kind == "linear" else smooth(domain, seed)


# -- choices ---------------------------------------------------------------------------------------


def in_turn(policy, slow, f, steps, noise=0.01):
    rng = np.random.default_rng(0)
    for step in range(steps):
        x = policy.ask()
        np.testing.assert_array_equal(x, slow.ask(), err_msg=f"step {step}")
        value = f(x) + rng.normal(scale=noise)
        policy.tell(x, value)
        slow.tell(x, value)


@everywhere
@every_kind
def test_chooses_as_its_slow_twin(kind, where):
    domain = DOMAINS[where]
    policy = make(kind, domain, horizon=150, seed=4, **QUICK)
    slow = Slow(policy)
    in_turn(policy, slow, function(kind, domain), 150)
    assert {0, 1, 2, 3} <= set(slow.levels_played)
    assert min(map(slow.levels_played.count, (0, 3))) > 1


@everywhere
@every_kind
def test_chooses_as_its_slow_twin_with_ordinary_settings(kind, where):
    domain = DOMAINS[where]
    policy = make(kind, domain, horizon=100, delta=0.3, norm_bound=2.0)
    in_turn(policy, Slow(policy), function(kind, domain), 80, noise=0.3)


@everywhere
@every_kind
def test_chooses_as_its_slow_twin_with_pending_plays(kind, where):
    """Asked, told and cancelled in any order, told without being asked for, and in bulk."""
    domain = DOMAINS[where]
    policy = make(kind, domain, horizon=250, seed=5, **QUICK)
    slow = Slow(policy)
    drive(policy, slow, function(kind, domain), 100)
    assert len(set(slow.levels_played)) >= 3


@every_kind
def test_equal_arms(kind):
    """f is 0 everywhere: no arm is ever dropped."""
    domain = pt.Arms(np.eye(4)) if kind == "linear" else pt.Grid(2, dim=2)
    more = {"intercept": 0.0} if kind == "linear" else {}
    policy = make(kind, domain, horizon=150, **QUICK, **more)
    slow = Slow(policy)
    in_turn(policy, slow, lambda x: 0.0, 150, noise=0.0)
    assert max(slow.levels_played) >= 3
    assert all(len(active) == 4 for active in policy._active)


def test_by_hand():
    """Two orthogonal arms, α = B = 1, L = 0.1, T = 100, δ = 0.1: N = 2, S = 5.

    A level's width after n plays of an arm is c/√(1 + n), c = 1 + 0.1·√(2 log 20,000) = 1.4450. It
    is at most 1/2 from n = 8 on (c/√8 = 0.511, c/√9 = 0.482), at most 1/4 from n = 33 on (c/√33 =
    0.2515, c/√34 = 0.2478).
    """
    c = 1 + 0.1 * math.sqrt(2 * math.log(20_000))
    assert c == pytest.approx(1.4450, abs=1e-4)
    f = {(1.0, 0.0): 0.9, (0.0, 1.0): -0.9}
    policy = SupLinUCB(
        pt.Arms(np.eye(2)),
        horizon=100,
        norm_bound=1.0,
        noise=pt.SubGaussian(0.1),
        intercept=0.0,
    )
    plays = []
    for _ in range(100):
        x = policy.ask()
        plays.append(tuple(x.tolist()))
        policy.tell(x, f[plays[-1]])
    # Level 1: in turn, eight plays each. Then 8/9·0.9 = 0.8 against −0.8, more than 2·1/2 apart.
    assert [plays[:16].count(x) for x in f] == [8, 8]
    assert all(plays[i] != plays[i + 1] for i in range(0, 16, 2))
    assert plays[16:] == [(1.0, 0.0)] * 84  # level 2 for 33 steps, then level 3
    got = policy.predict(np.eye(2))
    lower = max(0.8 - c / 3, 33 / 34 * 0.9 - c / math.sqrt(34), 51 / 52 * 0.9 - c / math.sqrt(52))
    np.testing.assert_allclose(got.lower, [lower, -1.0])
    np.testing.assert_allclose(got.upper, [1.0, -0.8 + c / 3])
    np.testing.assert_allclose(got.mean, [51 / 52 * 0.9, -0.8])
    np.testing.assert_allclose(got.std, [math.sqrt(1 / 52), math.sqrt(1 / 9)])
    recommended = policy.recommend()
    assert recommended.x.tolist() == [1.0, 0.0]
    assert recommended.lower == pytest.approx(lower)
    assert policy.certificate() == pytest.approx(1.0 - lower)


@pytest.mark.parametrize("horizon", [1, 2, 3, 7, 8, 20, 21, 1096, 1097, 10**6])
def test_the_last_level_is_narrow_enough(horizon):
    """2⁻ˢ ≤ 1/√T at the last level, so the scheme always ends there."""
    policy = make("linear", pt.Grid(3), horizon=horizon)
    assert 2.0 ** -len(policy._levels) <= 1 / math.sqrt(horizon)


def test_constants_are_those_of_the_papers():
    """Chu et al. 2011: (√(½ ln(2TK/δ)) + 1)·s for values in [0, 1], but for sharing δ by level."""
    policy = SupLinUCB(
        pt.Grid(5), horizon=50, norm_bound=1.0, noise=pt.Bounded(0, 1), intercept=0.0
    )
    S = 4
    assert policy._width == pytest.approx(1 + math.sqrt(0.5 * math.log(2 * 50 * 5 * S / 0.1)))


# -- cost ------------------------------------------------------------------------------------------


@every_kind
def test_levels_gone_through_are_not_gone_through_again(kind, monkeypatch):
    """A step costs one update of one level; elimination is done once a level."""
    calls = []
    survivors = _phased.PhasedPolicy._survivors
    monkeypatch.setattr(
        _phased.PhasedPolicy,
        "_survivors",
        lambda self, s, active: calls.append(s) or survivors(self, s, active),
    )
    domain = pt.Grid(12)
    policy = make(kind, domain, horizon=250, **QUICK)
    f = function(kind, domain)
    for _ in range(250):
        x = policy.ask()
        policy.tell(x, f(x))
    assert calls == list(range(len(calls)))
    assert 3 <= len(calls) < len(policy._levels)
    assert sum(level is not None for level in policy._levels) <= len(calls) + 1


@every_kind
def test_a_play_past_the_last_level_changes_nothing(kind):
    policy = make(kind, pt.Grid(3), horizon=500, **QUICK)
    f = function(kind, policy.domain)
    for _ in range(450):
        x = policy.ask()
        policy.tell(x, f(x))
    before = np.ravel(policy.predict(policy.domain.points))
    x = policy.ask()
    policy.tell(x, 0.9)
    np.testing.assert_array_equal(np.ravel(policy.predict(policy.domain.points)), before)
    first = policy._levels[0].model.std.copy()
    policy.tell(x, f(x))  # nobody asked for this one: it enters the first level
    assert (policy._levels[0].model.std < first).any()


@pytest.mark.parametrize("where", ["grid2", "arms"])
def test_large_sets_and_little_memory_choose_alike(where, monkeypatch):
    """By rows or by convolution instead of covariances, or with covariances given up and remade."""

    def play():
        policy = make("kernel", DOMAINS[where], horizon=250, seed=5, **QUICK)
        f, rng, asked, plays = smooth(DOMAINS[where]), np.random.default_rng(0), [], []
        for _ in range(120):
            plays.append(policy.ask())
            asked.append(plays[-1])
            while asked and rng.random() < 0.6:
                x = asked.pop(int(rng.integers(len(asked))))
                policy.tell(x, f(x))
            if rng.random() < 0.1:  # level 1, long after it was left
                points = DOMAINS[where].points[:3]
                policy.tell(points, [f(x) for x in points])
        return np.array(plays), np.array(policy.predict(DOMAINS[where].points)), policy

    plays, said, policy = play()
    assert len(policy._active) >= 3
    monkeypatch.setattr(warm_module, "WARM_NUMBERS", 300)
    again, said_again, policy = play()
    assert policy._warm._numbers <= 300
    np.testing.assert_array_equal(again, plays)
    np.testing.assert_allclose(said_again, said, atol=1e-8)
    monkeypatch.setattr(rows_module, "DENSE_LIMIT", 0)
    again, said_again, _ = play()
    np.testing.assert_array_equal(again, plays)
    np.testing.assert_allclose(said_again, said, atol=1e-7)


def test_replicates_do_not_pile_up_by_rows(monkeypatch):
    """Three arms told 1,100 times: rows are made afresh from the distinct points in time."""
    monkeypatch.setattr(rows_module, "DENSE_LIMIT", 0)
    arms = pt.Arms([[0.0], [0.3], [1.0]])
    policy, rng = make("kernel", arms, horizon=2000), np.random.default_rng(0)
    plays, values = rng.integers(0, 3, 1100), rng.normal(scale=0.3, size=1100)
    for j, value in zip(plays, values, strict=True):
        policy.tell(arms.points[j], value)
    assert len(policy._levels[0].model._posterior._memory) < 100
    mean, std = gp(KERNEL, 1.0, arms.points[plays], values, arms.points)
    got = policy.predict(arms.points)
    np.testing.assert_allclose(got.mean, mean, atol=1e-9)
    np.testing.assert_allclose(got.std, std, atol=1e-9)


# -- pending plays ---------------------------------------------------------------------------------


def test_a_pending_play_belongs_to_the_level_it_was_asked_for():
    """One arm, asked for at two levels; the values go to them in the order asked."""
    policy = make("linear", DOMAINS["one"], horizon=250, **QUICK)
    asked = [policy.ask() for _ in range(40)]
    levels = policy._queues[0].copy()
    assert set(levels) >= {0, 1, 2, _phased.NO_LEVEL}
    for i, x in enumerate(asked):
        policy.tell(x, float(levels[i]) / 10)
    assert not policy._queues
    for s in set(levels) - {
        _phased.NO_LEVEL
    }:  # one arm: the mean of a level is n/(n + α/k(x, x)) of its values
        n, prior = levels.count(s), policy._prior_std[0] ** 2
        expected = n / (n + 0.01 / prior) * s / 10
        assert policy._levels[s].model.mean[0] == pytest.approx(expected)


def test_a_point_told_meanwhile_counts_beside_the_pending_ones():
    """What would be asked next is told by somebody else: another arm is asked for."""
    policy = make("kernel", pt.Grid(12))
    for _ in range(3):
        policy.ask()
    x = copy.deepcopy(policy).ask()
    policy.tell(x, 0.1)
    assert policy.ask().tobytes() != x.tobytes()


def test_nothing_is_dropped_on_pending_plays_alone():
    """All of a large batch is explored evenly; the first value told may then drop arms."""
    policy = make("linear", pt.Grid(12), horizon=250, **QUICK)
    for _ in range(60):
        policy.ask()
    assert len(policy._active) >= 3
    assert all(len(active) == 12 for active in policy._active)
    told = make("linear", pt.Grid(12), horizon=250, **QUICK)
    for _ in range(60):
        x = told.ask()
        told.tell(x, float(x[0]))
    assert len(told._active[-1]) < 12


@every_kind
@pytest.mark.parametrize("where", ["grid2", "one", "same"])
def test_asking_and_cancelling_leaves_no_trace(kind, where):
    domain = DOMAINS[where]
    f = function(kind, domain)
    policy, twin = (make(kind, domain, horizon=400, **QUICK) for _ in range(2))
    for step in range(40):
        batch = [policy.ask() for _ in range(1 + step % 5)]
        for x in batch if step % 2 else batch[::-1]:
            policy.cancel(x)
        x = policy.ask()
        np.testing.assert_array_equal(x, twin.ask())
        policy.tell(x, f(x))
        twin.tell(x, f(x))
    np.testing.assert_array_equal(policy.predict(domain.points), twin.predict(domain.points))
    assert policy.certificate() == twin.certificate()


@every_kind
def test_pending_points_do_not_touch_what_is_said_of_f(kind):
    domain = pt.Grid(4, dim=2)
    policy, f = make(kind, domain, **QUICK), function(kind, domain)
    policy.tell(domain.points, [f(x) for x in domain.points])
    for _ in range(20):
        x = policy.ask()
        policy.tell(x, f(x))
    before = np.ravel(policy.predict(domain.points))
    certificate, lower = policy.certificate(), policy.recommend().lower
    for _ in range(9):
        policy.ask()
    np.testing.assert_array_equal(np.ravel(policy.predict(domain.points)), before)
    assert (policy.certificate(), policy.recommend().lower) == (certificate, lower)


@every_kind
def test_bulk_tells_are_single_tells(kind):
    """Settling pending plays of several levels, some arms told more than once."""
    domain = pt.Grid(5)
    f = function(kind, domain)
    policy = make(kind, domain, horizon=250, seed=2, **QUICK)
    asked = [policy.ask() for _ in range(50)]
    twin = copy.deepcopy(policy)
    X = np.array([*asked[10:], *domain.points, *asked[:10:2]])
    Y = np.array([f(x) for x in X]) + np.linspace(-0.01, 0.01, len(X))
    policy.tell(X, Y)
    for x, y in zip(X, Y, strict=True):
        twin.tell(x, y)
    assert policy.pending == twin.pending
    assert policy.told == twin.told == len(X)
    np.testing.assert_allclose(
        policy.predict(domain.points), twin.predict(domain.points), atol=1e-9
    )
    for _ in range(40):
        x = policy.ask()
        np.testing.assert_array_equal(x, twin.ask())
        policy.tell(x, f(x))
        twin.tell(x, f(x))


# -- do the bounds hold? ---------------------------------------------------------------------------


def random_problem(kind, noise, horizon):
    def build(seed, rng):
        domain = pt.Arms(rng.uniform(-1, 1, (8, 2)), -1, 1) if kind == "linear" else pt.Grid(8)
        policy = make(kind, domain, noise=noise, horizon=horizon, seed=seed)
        return policy, function(kind, domain, seed)

    return build


@every_kind
def test_bounds_hold(kind):
    assert failures(random_problem(kind, pt.Gaussian(1.0), 40), 100, 40, every=4) <= 10  # δ = 0.1


@every_kind
def test_bounds_fail_with_too_small_a_noise_constant(kind):
    assert failures(random_problem(kind, pt.SubGaussian(0.02), 40), 30, 40, every=4) > 20


@every_kind
def test_contradictions_are_said(kind):
    policy = make(kind, pt.Grid(3), noise=pt.SubGaussian(1e-3))
    for _ in range(50):
        policy.tell([1.0], 9.0)
    with pytest.warns(pt.TheoryWarning, match="norm_bound or the noise constant is too small"):
        assert policy.certificate() == math.inf
    with pytest.warns(pt.TheoryWarning, match="lower bound"):
        policy.predict([[1.0]])


def regret_fraction(policy, f, rng):
    """Regret of a run to the horizon as a part of uniform sampling's; noise as in the paper."""
    values, total = f(policy.domain.points), 0.0
    for _ in range(policy.horizon):
        x = policy.ask()
        value = f(x[None])[0]
        total += values.max() - value
        policy.tell(x, value + rng.uniform(-1, 1))
    return total / policy.horizon / (values.max() - values.mean())


def test_regret_of_sup_kernel_ucb_stays_high():
    """Janz et al. 2020 of it: it "fails to achieve empirically sublinear regret".

    On ten of the paper's synthetic functions, T = 2,000, it had 0.46 to 1.03 of uniform sampling's
    regret, 0.75 on average, and at least 3.6 times that of π-GP-UCB (0.03 to 0.27).
    """
    fractions = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        f = synthetic(1, rng)
        settings = {"horizon": 2000, "kernel": KERNEL, "norm_bound": f.norm}
        settings["noise"] = pt.Uniform(-1, 1)
        fractions.append(regret_fraction(SupKernelUCB(pt.Grid(30), **settings), f, rng))
        assert fractions[-1] > 2.5 * regret_fraction(pt.PiGPUCB(pt.Grid(30), **settings), f, rng)
    assert min(fractions) > 0.35
    assert np.mean(fractions) > 0.6


# -- behind the same few methods -------------------------------------------------------------------


@every_kind
def test_guarantee_and_horizon(kind):
    policy = make(kind, pt.Grid(3), horizon=7.0)
    assert policy.guarantee == "published"
    assert policy.horizon == 7
