"""Pending points: several asks before a tell, tells out of order, cancelling.

Planning lowers the standard deviation as if the pending plays had been observed; what is said about
f comes from told data only.
"""

import copy

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


def told_answers(policy, X):
    """All that is said about f, flat."""
    got = policy.recommend()
    cover = [
        (*c.lower, c.side, c.level, c.count, c.information_gain, c.width, c.index)
        for c in policy.cover
    ]
    return np.concatenate([np.ravel(policy.predict(X)), got.x, got[1:], np.ravel(cover)])


@everywhere
@every_ucb
def test_asks_told_and_cancelled_in_any_order(kind, where):
    """Every choice is brute force's with the pending plays counted, whatever came before."""
    domain = DOMAINS[where]
    policy = make(kind, domain, horizon=60, seed=2)
    oracle, history, f = Oracle(policy), History(policy), bumps(domain)
    rng = np.random.default_rng(0)
    elsewhere = random_points(domain, 20, 1)
    for step in range(36):
        if policy.told < 50:
            x = history.ask()
            if step % 2 == 0 or where != "box5":
                assert_best(oracle, history, x)
        while len(history.pending) > 6 or (history.pending and rng.random() < 0.3):
            x = history.pending[rng.integers(len(history.pending))]
            if rng.random() < 0.3:
                history.cancel(x)
            else:
                history.tell(x, float(f(x)[0]) + 0.1 * rng.normal())
        if rng.random() < 0.2:
            x = elsewhere[rng.integers(20)]
            history.tell(x, float(f(x)[0]))
        assert policy.pending == len(history.pending)
        if step % 5 == 4:
            assert_table(oracle, history)
    assert_cover(oracle, history)
    assert_predictions(oracle, history, elsewhere[:8])
    while history.pending:
        history.tell(history.pending[0], 0.0)
    assert_table(oracle, history)
    assert_best(oracle, history, history.ask())


@everywhere
@every_ucb
def test_a_batch_is_of_different_points(kind, where):
    policy = make(kind, DOMAINS[where])
    batch = [policy.ask().tobytes() for _ in range(8)]
    assert len(set(batch)) == 8


@everywhere
@every_ucb
def test_pending_points_do_not_touch_what_is_said_of_f(kind, where):
    domain, f = DOMAINS[where], bumps(DOMAINS[where])
    policy = make(kind, domain)
    asks(policy, 25, f)
    X = random_points(domain, 10, 2)
    if isinstance(domain, pt.Box):
        X = np.concatenate([X, domain.from_unit(np.random.default_rng(0).random((5, domain.dim)))])
    before = told_answers(policy, X)
    certificate = policy.certificate()
    pending = [policy.ask() for _ in range(7)]
    np.testing.assert_allclose(told_answers(policy, X), before, atol=1e-12)
    assert policy.certificate() == pytest.approx(certificate, abs=4e-9)
    np.testing.assert_allclose(policy.predict(np.array(pending)).std, policy.predict(pending).std)
    for x in pending[::2]:
        policy.cancel(x)
    np.testing.assert_allclose(told_answers(policy, X), before, atol=1e-12)
    assert policy.certificate() == pytest.approx(certificate, abs=4e-9)


def test_certificate_counts_cells_where_only_a_pending_point_is():
    """An arm that two cells share, asked and cancelled: the second cell still counts."""
    for seed in range(12):
        policy = make("pi", pt.Grid(3), initial_cells=2, seed=seed)
        twin = make("pi", pt.Grid(3), initial_cells=2, seed=seed)
        assert policy.certificate() == twin.certificate()
        batch = [x for x in (policy.ask(), policy.ask(), policy.ask()) if x[0] > 0]
        for tells in range(40):
            if tells % 10 == 9 and batch:
                policy.cancel(batch.pop())
            policy.tell([0.0], 0.1)
            twin.tell([0.0], 0.1)
            assert policy.certificate() == pytest.approx(twin.certificate(), abs=4e-9)


@pytest.mark.parametrize("where", ["grid1", "grid3", "arms"])
@every_kind
def test_the_same_point_pending_twice_is_two_plays(kind, where):
    full = DOMAINS[where]
    domain = pt.Arms(full.points[:1], full.lower, full.upper)
    policy = make(kind, domain)
    x, y, z = policy.ask(), policy.ask(), policy.ask()
    assert x.tobytes() == y.tobytes() == z.tobytes()
    assert x is not y
    policy.tell(x, 1.0)
    assert (policy.told, policy.pending) == (1, 2)
    policy.cancel(x)
    assert (policy.told, policy.pending) == (1, 1)
    policy.tell(z, 0.0)
    assert (policy.told, policy.pending) == (2, 0)
    with pytest.raises(pt.PartitaError, match="no pending ask returned this point"):
        policy.cancel(x)
    policy.tell(x, 1.0)  # as a point that nobody asked for
    assert (policy.told, policy.pending) == (3, 0)


@every_ucb
def test_the_same_box_point_pending_several_times(kind):
    """A bound so dominated by one point that it is asked again while pending."""
    policy = make(kind, pt.Box([0.0], [1.0]), norm_bound=1e-3, noise=pt.SubGaussian(1e-4))
    oracle, history = Oracle(policy), History(policy)
    history.tell([0.5], 10.0)
    batch = [history.ask() for _ in range(4)]
    assert len({x.tobytes() for x in batch}) < 4
    assert_table(oracle, history)
    for i, x in enumerate(batch):
        history.tell(x, 10.0)
        assert policy.pending == 3 - i
        assert_table(oracle, history)


@everywhere
@every_ucb
@pytest.mark.parametrize("settled", ["one by one", "backwards"])
def test_asking_and_cancelling_leaves_no_trace(kind, where, settled):
    """The next choices are those of a policy that was never asked."""
    domain, f = DOMAINS[where], bumps(DOMAINS[where])
    policy, twin = make(kind, domain, seed=5), make(kind, domain, seed=5)
    for step in range(6):
        batch = [policy.ask() for _ in range(1 + 2 * step)]
        for x in batch if settled == "one by one" else batch[::-1]:
            policy.cancel(x)
        assert policy.pending == 0
        np.testing.assert_array_equal(asks(policy, 4, f), asks(twin, 4, f))
    assert policy.certificate() == pytest.approx(twin.certificate(), abs=4e-9)


@everywhere
@every_ucb
def test_tells_out_of_order_are_the_same_data(kind, where):
    domain, f = DOMAINS[where], bumps(DOMAINS[where])
    policies = [make(kind, domain), make(kind, domain)]
    for start in range(4):
        batches = [[p.ask() for _ in range(6)] for p in policies]
        np.testing.assert_array_equal(*batches)
        for x in batches[0]:
            policies[0].tell(x, float(f(x)[0]))
        for i in np.random.default_rng(start).permutation(6):
            policies[1].tell(batches[1][i], float(f(batches[1][i])[0]))
    X = random_points(domain, 8, 3)
    np.testing.assert_allclose(*(told_answers(p, X) for p in policies), atol=1e-7)


@pytest.mark.parametrize("where", ["grid1", "grid2", "arms", "box1", "box2", "box5"])
@pytest.mark.parametrize("kind", ["pi", "paper"])
@pytest.mark.parametrize("ending", ["tell", "cancel", "bulk"])
@pytest.mark.filterwarnings("ignore:evaluation:partita.TheoryWarning")
def test_pending_points_whose_cell_splits(kind, where, ending):
    """Cells split under pending points, which move to children, some of them without data."""
    domain, f = DOMAINS[where], bumps(DOMAINS[where])
    policy = make(kind, domain, horizon=20, **({"alpha": 0.05} if kind == "pi" else {}))
    oracle, history = Oracle(policy), History(policy)
    for _ in range(7):
        history.ask()
    levels = max(c.level for c in policy.cover)
    for x in random_points(domain, 6, 8):
        for _ in range(8):
            history.tell(x, float(f(x)[0]))
        assert_table(oracle, history)
    assert max(c.level for c in policy.cover) > levels
    batch = list(history.pending)
    assert len(batch) >= 4
    assert_best(oracle, history, history.ask())
    if ending == "bulk":
        history.tell_many(np.array(batch[:4]), f(np.array(batch[:4])))
        batch = batch[4:]
    for x in batch:
        if ending == "cancel":
            history.cancel(x)
        else:
            history.tell(x, float(f(x)[0]))
        assert_table(oracle, history)
    assert policy.pending == 1
    assert_best(oracle, history, history.ask())
    assert_cover(oracle, history)


@pytest.mark.parametrize("where", ["grid1", "box1", "box2"])
@pytest.mark.parametrize("kind", ["pi", "paper"])
def test_cancelling_after_a_split_leaves_no_trace(kind, where):
    domain, f = DOMAINS[where], bumps(DOMAINS[where])
    policy, twin = make(kind, domain), make(kind, domain)
    history = History(policy)
    for _ in range(9):
        history.ask()
    X = random_points(domain, 60, 4)
    for x, y in zip(X, f(X), strict=True):
        history.tell(x, y)
        twin.tell(x, y)
    assert len(history.pending) >= 2
    while history.pending:
        history.cancel(history.pending[len(history.pending) // 2])
    np.testing.assert_array_equal(asks(policy, 20, f), asks(twin, 20, f))


@every_ucb
def test_the_latest_ask_counts_after_a_bulk_tell(kind):
    """Also where the bulk does not touch the cell of the pending point."""
    policy = make(kind, pt.Grid(33)) if kind != "pi" else make(kind, pt.Grid(33), initial_cells=4)
    oracle, history = Oracle(policy), History(policy)
    history.tell_many(np.array([[0.0], [0.25], [0.5], [0.75], [1.0]]), [0.5] * 5)
    for _ in range(4):
        x = history.ask()
        assert_best(oracle, history, x)
        history.tell_many(np.array([[0.0 if x[0] > 0.5 else 1.0]]), [0.5])
        assert_table(oracle, history)


@everywhere
@every_kind
def test_what_settles_a_pending_point(kind, where):
    """The values count, not the container; another array of the same point does not."""
    policy = make(kind, DOMAINS[where])
    policy.tell(policy.ask().tolist(), 0.1)
    assert policy.pending == 0
    policy.tell(tuple(policy.ask()), 0.1)
    assert policy.pending == 0
    policy.cancel(policy.ask()[::-1][::-1])
    assert policy.pending == 0
    x = policy.ask()
    policy.tell(x[None, :], [0.1])
    assert (policy.told, policy.pending) == (3, 0)


def test_a_grid_point_told_by_another_array_leaves_the_ask_pending():
    policy = make("pi", pt.Grid(30))
    x = policy.ask()
    policy.tell(x + 1e-12, 0.3)
    assert (policy.told, policy.pending) == (1, 1)
    policy.tell(x, 0.3)
    assert (policy.told, policy.pending) == (2, 0)


@pytest.mark.parametrize("kind", ["paper", "pi"])
def test_steps_that_go_back(kind):
    """Cancelling makes t smaller: bounds of a width that drifts with t stay upper bounds."""
    domain = pt.Grid(9, dim=2)
    policy = make(kind, domain, horizon=300)
    oracle, history, f = Oracle(policy), History(policy), bumps(domain)
    rng = np.random.default_rng(0)
    for _ in range(8):
        for _ in range(12):
            history.ask()
        for x in random_points(domain, 5, int(rng.integers(1000))):
            history.tell(x, float(f(x)[0]))
        while history.pending:
            history.cancel(history.pending[0])
        x = history.ask()
        assert_best(oracle, history, x)
        history.tell(x, float(f(x)[0]))


def test_hundreds_of_pending_points():
    for kind in UCB_KINDS:
        policy = make(kind, pt.Grid(9, dim=2), horizon=1000)
        batch = [policy.ask() for _ in range(150)]
        twin = copy.deepcopy(policy)
        policy.tell(np.array(batch), np.zeros(150))
        for x in batch:
            twin.tell(x, 0.0)
        assert policy.pending == twin.pending == 0
        np.testing.assert_array_equal(policy.ask(), twin.ask())
