"""Values of known noise: `tell(x, y, std=...)` of the policies with proven bounds.

The slow version is `support.oracle.Oracle`, which has a regulariser for each observation and solves
with the full matrix. `test_state` and `test_tightening` drive it through everything at once.
"""

from __future__ import annotations

import contextlib
import copy
import math
import pickle

import numpy as np
import pytest
from support.common import KERNEL, synthetic
from support.oracle import (
    DOMAINS,
    NOISE,
    UCB_KINDS,
    History,
    Oracle,
    assert_best,
    assert_cover,
    assert_predictions,
    assert_table,
    bumps,
    make,
    random_points,
)

import partita as pt
from partita.errors import InvalidInput
from partita.gp import rows as rows_module
from partita.gp.rows import RowPosterior
from partita.model.assumptions import Assumptions
from partita.policies.construct import construct
from partita.policies.registry import METHODS

L = NOISE.sub_gaussian
#: Quieter and noisier than L, and L itself.
STDS = np.array([0.1, 0.3, 1.0, 4.0]) * L

EVERY_KIND = [*UCB_KINDS, "tight", "ts", "bayesian"]
every_policy = pytest.mark.parametrize("kind", EVERY_KIND)


def on(*names):
    """Every kind of policy on these domains; the Bayesian one plays finite ones only."""
    pairs = [(k, n) for k in EVERY_KIND for n in names if k != "bayesian" or DOMAINS[n].finite]
    return pytest.mark.parametrize(("kind", "where"), pairs)


def build(kind, domain, **more):
    """A policy that takes std, of any kind; cells split early."""
    settings = {"kernel": KERNEL, "norm_bound": 1.0, "noise": NOISE, "seed": 0, **more}
    if kind == "ts":
        return pt.PiGPTS(domain, horizon=200, **settings)
    if kind == "tight":
        return pt.PiGPUCB(domain, horizon=200, tightening=True, **settings)
    if kind == "bayesian":
        return pt.GPUCB(domain, kernel=KERNEL, noise=NOISE)
    return make(kind, domain, **more)


def mixed_data(domain, n, seed=0):
    """Points, values and the noise of each; some points several times."""
    rng = np.random.default_rng([seed, 4])
    X, stds = random_points(domain, n, seed), rng.choice(STDS, n)
    return X, bumps(domain, seed)(X) + stds * rng.normal(size=n), stds


# -- against brute force ---------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["grid1", "grid2", "arms", "box1", "box2"])
@pytest.mark.parametrize("kind", UCB_KINDS)
def test_every_choice_and_answer_is_brute_forces(kind, where):
    domain = DOMAINS[where]
    policy = make(kind, domain, horizon=20, **({"alpha": 0.05} if kind == "pi" else {}))
    policy._past_horizon = True
    oracle, history = Oracle(policy), History(policy)
    f, rng = bumps(domain), np.random.default_rng(0)
    for step in range(40):
        x = history.ask()
        assert_best(oracle, history, x)
        std = [None, *STDS][step % 5]
        history.tell(x, float(f(x)[0]) + (std or L) * rng.normal(), std)
        if step % 8 == 0:
            assert_table(oracle, history)
            assert_cover(oracle, history)
            assert_predictions(oracle, history, random_points(domain, 5, step))
    X, Y, stds = mixed_data(domain, 50)
    history.tell_many(X, Y, stds)
    assert_table(oracle, history)
    assert_cover(oracle, history)
    assert_predictions(oracle, history, X[:10])
    assert kind == "igp" or max(c.level for c in policy.cover) >= 1


@pytest.mark.parametrize("where", ["grid1", "grid2"])
def test_rows_are_brute_forces(where, monkeypatch):
    """Tens of thousands of arms keep no covariance: by rows, and by convolution on a grid."""
    monkeypatch.setattr(rows_module, "DENSE_LIMIT", 5)
    policy = make("igp", DOMAINS[where])
    oracle, history = Oracle(policy), History(policy)
    X, Y, stds = mixed_data(policy.domain, 30)
    for x, y, std in zip(X[:20], Y, stds, strict=False):
        history.tell(x, y, std)
    history.tell_many(X[20:], Y[20:], stds[20:])
    (cell,) = policy._engine.partition.leaves.values()
    assert isinstance(cell.posterior, RowPosterior)
    assert_table(oracle, history)
    history.tell(X[0], Y[0], 0.3 * L)
    assert_table(oracle, history)


def test_several_values_at_a_point_are_one():
    """Σ1/α_i and the weighted mean are all that counts."""
    stds, values = np.array([0.02, 0.1, 0.3]), np.array([0.5, 0.1, -0.2])
    weights = 1 / stds**2
    one, several = make("igp", pt.Grid(9)), make("igp", pt.Grid(9))
    x = one.domain.points[4]
    for y, s in zip(values, stds, strict=True):
        several.tell(x, y, std=s)
    one.tell(x, weights @ values / weights.sum(), std=weights.sum() ** -0.5)
    for a, b in zip(
        one.predict(one.domain.points), several.predict(one.domain.points), strict=True
    ):
        np.testing.assert_allclose(a, b, atol=1e-12)
    assert one.cover[0].information_gain == pytest.approx(several.cover[0].information_gain)
    assert (one.cover[0].count, several.cover[0].count) == (1, 3)


# -- the ways to tell ------------------------------------------------------------------------------


@on("grid2", "arms", "box1", "box2")
def test_the_policys_own_constant_changes_nothing(kind, where):
    """Bit for bit, one by one and in bulk."""
    domain = DOMAINS[where]
    plain, told = build(kind, domain), build(kind, domain)
    f = bumps(domain)
    X = mixed_data(domain, 40)[0]
    Y = f(X)
    plain.tell(X, Y)
    told.tell(X, Y, std=np.full(40, L))
    for _ in range(30):
        x, same = plain.ask(), told.ask()
        np.testing.assert_array_equal(x, same)
        plain.tell(x, float(f(x)[0]))
        told.tell(same, float(f(x)[0]), std=L)
    for a, b in zip(plain.predict(X), told.predict(X), strict=True):
        np.testing.assert_array_equal(a, b)
    assert plain.certificate() == told.certificate()


@on("grid2", "box2")
def test_order_and_bulk_are_irrelevant(kind, where):
    domain = DOMAINS[where]
    X, Y, stds = mixed_data(domain, 60)
    policies = [build(kind, domain) for _ in range(3)]
    policies[0].tell(X, Y, std=stds)
    for policy, rows in zip(policies[1:], (np.arange(60), np.arange(60)[::-1]), strict=True):
        for i in rows:
            policy.tell(X[i], Y[i], std=stds[i])
    for policy in policies[1:]:
        for a, b in zip(policy.predict(X), policies[0].predict(X), strict=True):
            if kind != "tight":  # what is inherited depends on when a cell was cut
                np.testing.assert_allclose(a, b, atol=1e-8)
        assert [c.count for c in policy.cover] == [c.count for c in policies[0].cover]


@every_policy
def test_one_number_is_one_for_each_value(kind):
    domain = DOMAINS["grid2"]
    X = mixed_data(domain, 20)[0]
    Y = bumps(domain)(X)
    one, each = build(kind, domain), build(kind, domain)
    one.tell(X, Y, std=0.03)
    each.tell(X, Y, std=np.full(20, 0.03))
    for a, b in zip(one.predict(X), each.predict(X), strict=True):
        np.testing.assert_array_equal(a, b)


@on("grid2", "box2")
@pytest.mark.parametrize("how", [lambda p: pickle.loads(pickle.dumps(p)), copy.deepcopy])
def test_copies_keep_the_weights(kind, where, how):
    domain, f = DOMAINS[where], bumps(DOMAINS[where])
    policy = build(kind, domain)
    policy.tell(*(data := mixed_data(domain, 40))[:2], std=data[2])
    twin = how(policy)
    for step in range(40):  # cells are fitted anew and split: from what the copy kept
        x, same = policy.ask(), twin.ask()
        np.testing.assert_array_equal(x, same)
        for each in (policy, twin):
            each.tell(x, float(f(x)[0]), std=float(STDS[step % 4]))
    assert twin.certificate() == policy.certificate()


@every_policy
def test_less_noise_tells_more_and_more_noise_less(kind):
    domain = pt.Grid(9)
    x, stds = domain.points[4], []
    for std in (0.0, 0.3 * L, None, 3 * L, 1e3 * L):
        policy = build(kind, domain)
        policy.tell(x, 0.4, std=std)
        stds.append(float(policy.predict(x[None, :]).std[0]))
    assert (np.diff(stds) > 0).all()


# -- exact values, and absurd ones -----------------------------------------------------------------


@pytest.mark.parametrize("alpha", [None, 1e-4, 1e-10])
@pytest.mark.parametrize("where", ["grid2", "box1", "box2"])
def test_exact_values_are_known_and_stay_so(where, alpha):
    """Points replayed and close together, whose noise is next to nothing, break no arithmetic."""
    domain, f = DOMAINS[where], bumps(DOMAINS[where])
    policy = pt.PiGPUCB(
        domain, horizon=400, kernel=KERNEL, norm_bound=1.0, noise=NOISE, alpha=alpha
    )
    X = random_points(domain, 100, 1)
    policy.tell(X, f(X), std=0.0)
    for _ in range(300):
        x = policy.ask()
        policy.tell(x, float(f(x)[0]), std=0.0)
    got, truth = policy.predict(X), f(X)
    assert (got.lower - 1e-9 <= truth).all()
    assert (truth <= got.upper + 1e-9).all()
    np.testing.assert_allclose(got.mean, truth, atol=1e-3)
    if alpha is None:
        assert (got.upper - got.lower).max() < 0.05 * L


def test_less_than_a_thousandth_counts_as_that():
    domain = pt.Grid(9)
    answers = []
    for std in (0.0, 1e-300, 1e-6 * L, 1e-3 * L):
        policy = make("pi", domain)
        policy.tell(domain.points[2], 0.3, std=std)
        answers.append(policy.predict(domain.points))
    for other in answers[:3]:
        for a, b in zip(other, answers[3], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9)


@every_policy
def test_a_value_of_enormous_noise_tells_nothing(kind):
    domain = pt.Grid(9)
    policy, blank = build(kind, domain), build(kind, domain)
    policy.tell(domain.points[2], 1e3, std=1e150)
    policy.tell(np.array(domain.points[3:5]), [1e3, -1e3], std=[1e100, 1e150])
    for a, b in zip(policy.predict(domain.points)[:2], blank.predict(domain.points), strict=False):
        np.testing.assert_allclose(a, b, atol=1e-12)
    policy.tell(domain.points[2], 0.3)
    blank.tell(domain.points[2], 0.3)
    for a, b in zip(policy.predict(domain.points)[:2], blank.predict(domain.points), strict=False):
        np.testing.assert_allclose(a, b, atol=1e-12)


# -- draws -----------------------------------------------------------------------------------------


def test_draws_have_the_posterior_of_the_weighted_values():
    domain = pt.Grid(7)
    policy = build("ts", domain)
    policy._engine.partition.rule.gain_limit = math.inf  # one cell has it all
    X, Y, stds = mixed_data(domain, 12)
    policy.tell(X, Y, std=stds)
    (cell,) = policy._engine.partition.leaves.values()
    size = L**2 / policy.alpha
    gram, across = size * KERNEL(X) + np.diag(stds**2), size * KERNEL(X, domain.points)
    mean = Y @ np.linalg.solve(gram, across)
    cov = size * KERNEL(domain.points) - across.T @ np.linalg.solve(gram, across)
    scorer = policy._engine._scorer
    draws = np.array([scorer.scores(cell, cell.posterior.std, 1).mean for _ in range(4000)])
    root = np.linalg.inv(np.linalg.cholesky(cov))
    white = (draws - mean) @ root.T
    np.testing.assert_allclose(white.mean(axis=0), 0.0, atol=4.5 / math.sqrt(4000))
    np.testing.assert_allclose(np.cov(white.T), np.eye(7), atol=4.5 * math.sqrt(2 / 4000))


# -- the bounds hold -------------------------------------------------------------------------------

DELTA, RUNS, CONTROL_RUNS, STEPS = 0.1, 60, 20, 200


def bounds_hold(kind: str, seed: int, told: float = 1.0) -> bool:
    """Whether f stays within all bounds of a run with values of all kinds of noise.

    Bounds are looked at in every eighth step. f is 0 in every second run, where only the noise term
    covers. `told` scales what is told of the noise of single values.
    """
    rng = np.random.default_rng([seed, 9])
    domain = pt.Grid(9, dim=2) if seed % 4 < 2 else pt.Grid(30)
    f = synthetic(domain.dim, rng)
    truth, norm = f(domain.points), f.norm
    if seed % 2:
        truth, norm = np.zeros(domain.size), 0.001
    settings = {"kernel": KERNEL, "norm_bound": norm, "noise": pt.Gaussian(0.5), "delta": DELTA}
    if kind == "igp":
        policy = pt.IGPUCB(domain, **settings)
    elif kind == "ts":
        policy = pt.PiGPTS(domain, horizon=STEPS, **settings)
    elif kind == "paper":
        policy = pt.PiGPUCB.paper(domain, horizon=STEPS, **settings)
    else:
        policy = pt.PiGPUCB(domain, horizon=STEPS, tightening=kind == "tight", **settings)
    numbers = {x.tobytes(): i for i, x in enumerate(domain.points)}
    for step in range(STEPS):
        x = policy.ask()
        arm = numbers[x.tobytes()]
        std = float(rng.choice([0.0, 0.02, 0.1, 0.5, 2.0]))
        policy.tell(x, float(truth[arm]) + std * rng.normal(), std=told * std)
        if step % 8:
            continue
        got = policy.predict(domain.points)
        if (got.lower > truth + 1e-9).any() or (got.upper < truth - 1e-9).any():
            return False
    return True


@pytest.mark.filterwarnings("ignore::partita.TheoryWarning")
@pytest.mark.parametrize("kind", ["pi", "tight", "ts", "paper", "igp"])
def test_bounds_hold_with_the_promised_frequency(kind):
    failed = sum(not bounds_hold(kind, seed) for seed in range(RUNS))
    assert failed <= DELTA * RUNS


@pytest.mark.filterwarnings("ignore::partita.TheoryWarning")
@pytest.mark.parametrize("kind", ["pi", "tight", "ts", "paper", "igp"])
def test_control_a_tenth_of_the_noise_is_caught(kind):
    """Bounds must fail when the noise told is far too small."""
    failed = sum(not bounds_hold(kind, seed, told=0.1) for seed in range(CONTROL_RUNS))
    assert failed >= 0.8 * CONTROL_RUNS


# -- who refuses -----------------------------------------------------------------------------------


def test_who_takes_the_noise_of_single_values():
    taking = set()
    for name, method in METHODS.items():
        domain = pt.Grid(5, dim=2)
        known = Assumptions(KERNEL, 1.0, pt.Uniform(-1, 1), 0.1)
        policy = construct(
            method.load(), domain, known, horizon=50, seed=0, settings=method.settings
        )
        with contextlib.suppress(InvalidInput):
            policy.tell(domain.points[0], 0.5, std=0.1)
            taking.add(name)
        assert policy.told == (name in taking)
    assert taking >= {"pi-gp-ucb", "pi-gp-ucb-paper", "pi-gp-ucb-tight", "pi-gp-ts", "igp-ucb"}
    assert "gp-ucb" in taking
    assert not taking & {"gp-ucb-rkhs", "kernel-ucb", "sup-kernel-ucb", "bkb", "uniform"}
