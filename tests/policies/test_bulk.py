"""Bulk tells: the same as telling one at a time, and quick enough for a warm start."""

import time

import numpy as np
import pytest
from support.oracle import (
    DOMAINS,
    UCB_KINDS,
    History,
    Oracle,
    asks,
    assert_best,
    assert_cover,
    assert_predictions,
    assert_table,
    bumps,
    every_kind,
    every_ucb,
    everywhere,
    make,
    random_points,
)

import partita as pt
from partita.partition import candidates as candidates_module

#: Generous: a warm start of this many rows takes seconds on one core.
ROWS, SECONDS = 20_000, 30


def flat_cover(policy):
    return np.array(
        [
            (*c.lower, c.side, c.level, c.count, c.information_gain, c.width, c.index)
            for c in policy.cover
        ]
    )


def assert_same(left, right, X):
    """Two policies know the same, and go on alike."""
    assert (left.told, left.pending) == (right.told, right.pending)
    np.testing.assert_allclose(flat_cover(left), flat_cover(right), atol=1e-8, rtol=1e-8)
    for a, b in zip(left.predict(X), right.predict(X), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-8, rtol=1e-8)
    assert left.cells_created == right.cells_created
    np.testing.assert_array_equal(left.recommend().x, right.recommend().x)
    f = bumps(left.domain)
    np.testing.assert_array_equal(asks(left, 8, f), asks(right, 8, f))


@everywhere
@every_ucb
@pytest.mark.parametrize("first", [0, 30])
def test_bulk_is_the_same_as_one_at_a_time(kind, where, first):
    """From nothing, and on top of steps already made."""
    domain, f = DOMAINS[where], bumps(DOMAINS[where])
    bulk, single = make(kind, domain), make(kind, domain)
    asks(bulk, first, f)
    asks(single, first, f)
    n = 25 if kind == "igp" else 70
    X = random_points(domain, n, 5)
    Y = f(X) + 0.1 * np.random.default_rng(0).normal(size=n)
    bulk.tell(X, Y)
    for x, y in zip(X, Y, strict=True):
        single.tell(x, y)
    assert_same(bulk, single, random_points(domain, 20, 6))


@pytest.mark.parametrize("where", ["grid2", "arms", "box1", "box2", "box5"])
@every_ucb
def test_bulk_against_brute_force(kind, where):
    """Cells split as often as they must, also several times at once."""
    domain, f = DOMAINS[where], bumps(DOMAINS[where])
    policy = make(kind, domain, horizon=20, **({"alpha": 0.05} if kind == "pi" else {}))
    oracle, history = Oracle(policy), History(policy)
    rng = np.random.default_rng(1)
    near = domain.lower + 0.3 * (domain.upper - domain.lower)
    X = random_points(domain, 60, 2)
    close = np.argsort(np.abs(X - near).sum(axis=1))[:3]
    X = np.concatenate([X, X[rng.choice(close, 80)]])
    history.tell_many(X, f(X))
    if kind != "igp":
        assert max(c.level for c in policy.cover) >= 2
    assert_table(oracle, history)
    assert_cover(oracle, history)
    assert_predictions(oracle, history, X[:10])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(policy, "horizon", 10_000)
        assert_best(oracle, history, history.ask())
    history.tell_many(X[:9], f(X[:9]) + 0.1)
    assert_table(oracle, history)


@everywhere
@every_kind
def test_empty_and_single_rows(kind, where):
    domain, f = DOMAINS[where], bumps(DOMAINS[where])
    policy, twin = make(kind, domain), make(kind, domain)
    asks(policy, 5, f)
    asks(twin, 5, f)
    policy.tell(np.empty((0, domain.dim)), [])
    X = random_points(domain, 1, 3)
    policy.tell(X, f(X))
    twin.tell(X[0], f(X)[0])
    policy.tell(X.tolist(), f(X).tolist())
    twin.tell(X[0], f(X)[0])
    assert policy.told == twin.told == 7
    np.testing.assert_array_equal(asks(policy, 10, f), asks(twin, 10, f))


@everywhere
@every_kind
def test_bulks_settle_pending_points(kind, where):
    """As many plays as there are rows, in any order, among other rows."""
    domain, f = DOMAINS[where], bumps(DOMAINS[where])
    bulk, single = make(kind, domain), make(kind, domain)
    for policy in (bulk, single):
        asks(policy, 10, f)
    batch = np.array([bulk.ask() for _ in range(6)])
    np.testing.assert_array_equal(batch, [single.ask() for _ in range(6)])
    others = random_points(domain, 9, 11)
    X = np.concatenate([batch[[4, 1]], others, batch[[2]]])
    bulk.tell(X, f(X))
    for x in X:
        single.tell(x, float(f(x)[0]))
    assert bulk.pending == single.pending
    np.testing.assert_array_equal(bulk.ask(), single.ask())
    left = [x for x in batch if x.tobytes() in bulk._pending_points]
    for x in left[::2]:
        bulk.cancel(x)
        single.cancel(x)
    np.testing.assert_array_equal(asks(bulk, 6, f), asks(single, 6, f))
    assert (bulk.told, bulk.pending) == (single.told, single.pending)


def test_rows_settle_as_many_plays_as_there_are():
    policy = make("pi", pt.Arms([[0.5]]))
    for _ in range(3):
        policy.ask()
    policy.tell([[0.5], [0.5]], [0.1, 0.2])
    assert (policy.told, policy.pending) == (2, 1)
    policy.tell([[0.5], [0.5]], [0.1, 0.2])
    assert (policy.told, policy.pending) == (4, 0)


@every_kind
def test_one_point_told_very_often(kind):
    """Replicates at a corner that many cells share: cells split round it, level by level."""
    domain = pt.Box([0.0, 0.0], [1.0, 1.0])
    policy = make(kind, domain, horizon=100_000)
    n = 50_000
    policy.tell(np.full((n, 2), 0.5), np.full(n, 0.25))
    policy.tell(np.full(2, 0.5), 0.25)
    assert policy.told == n + 1
    if kind == "uniform":
        return
    assert all(c.count in (0, n + 1) for c in policy.cover)
    touching = [c for c in policy.cover if c.count]
    assert len(touching) == (4 if kind in ("pi", "paper") else 1)
    got = policy.predict([[0.5, 0.5]])
    alpha = policy.alpha
    assert got.mean[0] == pytest.approx(0.25 * (n + 1) / (n + 1 + alpha), rel=1e-9)
    assert got.std[0] == pytest.approx(np.sqrt(alpha / (n + 1 + alpha)), rel=1e-6)
    assert np.array_equal(policy.recommend().x, [0.5, 0.5])


@pytest.mark.parametrize("kind", ["pi", "paper"])
def test_more_points_than_candidates_in_a_cell(kind, monkeypatch):
    """Told points that are too many to be candidates are data all the same."""
    monkeypatch.setattr(candidates_module, "EXTRA_LIMIT", 60)
    domain = pt.Box([0.0], [4.0])
    # smooth, in many cells: the count rule lets a cell hold hundreds of points
    kernel = pt.Matern(4.2, 0.3)
    settings = {"kernel": kernel, "horizon": 1000, "initial_cells": 6}
    if kind == "paper":
        settings |= {"width": "paper", "split": "count"}
    bulk, single = make("pi", domain, **settings), make("pi", domain, **settings)
    oracle, history = Oracle(bulk), History(bulk)
    rng = np.random.default_rng(3)
    X = np.concatenate([rng.uniform(0.7, 1.2, (110, 1)), rng.uniform(0.0, 4.0, (60, 1))])
    X[::20] = 1.0  # told again and again
    Y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=len(X))
    history.tell_many(X, Y)
    for x, y in zip(X, Y, strict=True):
        single.tell(x, y)
    # neighbours' pending points and told ones, on top
    assert_predictions(oracle, history, np.linspace(0, 4, 40)[:, None])
    cells = oracle.cells(X, Y)
    assert [c.count for c in bulk.cover] == [c.count for c in cells]
    np.testing.assert_allclose(
        [c.information_gain for c in bulk.cover], [c.gain for c in cells], atol=1e-7
    )
    assert max(c.count for c in bulk.cover) > 100
    assert_same(bulk, single, np.linspace(0, 4, 9)[:, None])


def warm_start_domains():
    rng = np.random.default_rng(0)
    return {
        "grid1": pt.Grid(1000),
        "grid2": pt.Grid(60, dim=2),
        "grid3": pt.Grid(12, dim=3),
        "arms": pt.Arms(rng.random((5000, 2))),
        "box1": DOMAINS["box1"],
        "box2": DOMAINS["box2"],
        "box3": DOMAINS["box3"],
        "box5": DOMAINS["box5"],
    }


@pytest.mark.parametrize("where", warm_start_domains())
@pytest.mark.parametrize("kind", ["pi", "paper"])
def test_a_warm_start_takes_seconds(kind, where):
    domain = warm_start_domains()[where]
    rng = np.random.default_rng(1)
    if domain.finite:
        X = domain.points[rng.integers(0, domain.size, ROWS)]
    else:
        X = domain.from_unit(rng.random((ROWS, domain.dim)))
    Y = bumps(domain)(X) + 0.1 * rng.normal(size=ROWS)
    policy = make(kind, domain, horizon=100_000)
    start = time.perf_counter()
    policy.tell(X, Y)
    assert time.perf_counter() - start < SECONDS
    assert policy.told == ROWS
    for _ in range(5):
        policy.tell(policy.ask(), 0.0)
    # every point is data of at least one cell, and no cell holds what is not in it
    assert sum(c.count for c in policy.cover) >= ROWS + 5
    for i in (0, 77, 1234):
        got = policy.predict(X[i : i + 1])
        assert got.lower[0] < float(bumps(domain)(X[i : i + 1])[0]) < got.upper[0]


def test_bulks_with_many_pending_points():
    domain, f = DOMAINS["grid2"], bumps(DOMAINS["grid2"])
    for kind in UCB_KINDS:
        policy = make(kind, domain, horizon=5000)
        oracle, history = Oracle(policy), History(policy)
        for round_ in range(3):
            for _ in range(12):
                history.ask()
            X = random_points(domain, 20, round_)
            history.tell_many(X, f(X))
            assert_table(oracle, history)
            assert_best(oracle, history, history.ask())
