"""Thompson sampling on the partition: draws against the exact posterior, choices against draws.

The posterior of every cell is computed here from the raw observations, with full solves.
"""

from __future__ import annotations

import copy
import math
import pickle

import numpy as np
import pytest
from support.common import KERNEL, synthetic, unit
from support.oracle import DOMAINS, NOISE, History, bumps, irregular_arms, random_points

import partita as pt
from partita.errors import InvalidInput
from partita.gp import warm as warm_module
from partita.partition import candidates as candidates_module
from partita.partition import draws as _thompson

L = NOISE.sub_gaussian


def settings(**more):
    return {"horizon": 500, "kernel": KERNEL, "norm_bound": 1.0, "noise": NOISE, **more}


def make(domain, *, gain_limit=1.5, **more):
    """A policy whose cells split early."""
    policy = pt.PiGPTS(domain, **settings(**more))
    policy._engine.partition.rule.gain_limit = gain_limit
    return policy


def plain(domain, *, gain_limit=1.5, **more):
    """π-GP-UCB with the same cells and bounds."""
    policy = pt.PiGPUCB(domain, **settings(**more))
    policy._engine.partition.rule.gain_limit = gain_limit
    return policy


def tell_some(policies, n, seed=0, repeats=1):
    """Tell each policy the same values at points on and off the candidates; the points, values."""
    domain = policies[0].domain
    f, rng = bumps(domain, seed), np.random.default_rng(seed)
    X = np.repeat(random_points(domain, n, seed), repeats, axis=0)
    Y = f(X) + L * rng.normal(size=len(X))
    for x, y in zip(X, Y, strict=True):
        for policy in policies:
            policy.tell(x, y)
    return X, Y


# -- draws -----------------------------------------------------------------------------------------


def leaves(policy):
    found = policy._engine.partition.leaves
    return [found[key] for key in sorted(found)]


def cell_points(policy, cell):
    """The candidates of a cell in the unit cube, (m, d)."""
    partition = policy._engine.partition
    return partition.candidates.points(cell.layout) / partition.geometry.per_side


def exact(policy, cell, X, Y):
    """Posterior mean and covariance at a cell's candidates for f ~ GP(0, (L²/α)k) and noise L²."""
    per_side = policy._engine.partition.geometry.per_side
    size = policy.sub_gaussian**2 / policy.alpha
    points = cell_points(policy, cell)
    data = unit(policy.domain, np.reshape(X, (-1, policy.domain.dim)))
    offset = data * per_side * 2 ** cell.key[0] - np.array(cell.key[1:])
    inside = ((offset >= -1e-9) & (offset <= 1 + 1e-9)).all(axis=1)
    data, values = data[inside], np.asarray(Y, dtype=float)[inside]
    gram = size * KERNEL(data) + policy.sub_gaussian**2 * np.eye(len(data))
    across = size * KERNEL(data, points)
    weights = np.linalg.solve(gram, across)
    return values @ weights, size * KERNEL(points) - across.T @ weights


def draws(policy, cell, n=1200):
    return np.array(
        [policy._engine._scorer.scores(cell, cell.posterior.std, 1).mean for _ in range(n)]
    )


def assert_drawn_from(samples, mean, cov):
    """Rows of `samples` have this mean and covariance, in every direction that has any variance.

    In coordinates where the covariance is the identity, averages have deviation 1/√n and the
    entries of the sample covariance at most √(2/n).
    """
    n = len(samples)
    values, vectors = np.linalg.eigh(cov)
    kept = values > 1e-7 * values.max()
    white = (samples - mean) @ vectors[:, kept] / np.sqrt(values[kept])
    assert np.abs(white.mean(axis=0)).max() < 5 / math.sqrt(n)
    assert np.abs(white.T @ white / n - np.eye(kept.sum())).max() < 5.5 * math.sqrt(2 / n)
    rest = (samples - mean) @ vectors[:, ~kept]
    assert rest.size == 0 or rest.std(axis=0).max() < 2e-3 * math.sqrt(values.max())


@pytest.mark.parametrize("where", ["grid1", "arms", "box1", "box2"])
@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_draws_without_data(where, scale):
    policy = make(DOMAINS[where], scale=scale)
    for cell in leaves(policy):
        mean, cov = exact(policy, cell, [], [])
        np.testing.assert_array_equal(mean, 0.0)
        assert_drawn_from(draws(policy, cell), mean, scale**2 * cov)


@pytest.mark.parametrize("where", ["grid1", "grid2", "arms", "box1", "box2", "box5"])
@pytest.mark.parametrize(("n", "repeats"), [(8, 1), (30, 3)])
def test_draws_from_the_posterior(where, n, repeats):
    """Before and after splits, with replicates, with data off the lattice of a box."""
    policy = make(DOMAINS[where], gain_limit=math.inf if n == 8 else 1.5)
    X, Y = tell_some([policy], n, seed=n, repeats=repeats)
    cells = [cell for cell in leaves(policy) if cell.count]
    assert n == 8 or len(leaves(policy)) > 1
    if where == "box1":
        lattice = policy._engine.partition.lattice
        assert any(len(cell.layout.sites) > len(lattice.offsets) for cell in cells)
    for cell in cells[:2]:
        assert_drawn_from(draws(policy, cell), *exact(policy, cell, X, Y))


@pytest.mark.parametrize("where", ["box1", "box2"])
def test_draws_with_silent_data(where, monkeypatch):
    """Points that are data only: the rule needs the covariance itself."""
    monkeypatch.setattr(candidates_module, "EXTRA_LIMIT", 3)
    policy = make(DOMAINS[where], gain_limit=4.0)
    X, Y = tell_some([policy], 25, seed=4)
    silent = [cell for cell in leaves(policy) if len(cell.layout.silent)]
    assert silent
    for cell in silent[:2]:
        assert_drawn_from(draws(policy, cell), *exact(policy, cell, X, Y))


def test_draws_of_cold_cells(monkeypatch):
    monkeypatch.setattr(warm_module, "WARM_NUMBERS", 0)
    policy = make(DOMAINS["grid2"])
    X, Y = tell_some([policy], 20)
    for cell in leaves(policy)[:2]:
        assert_drawn_from(draws(policy, cell), *exact(policy, cell, X, Y))


@pytest.mark.parametrize("alpha", [1.0, 1e-4, 1e-10])
@pytest.mark.parametrize("plays", [3, 20_000])
def test_draws_where_much_is_known(alpha, plays):
    """Deviations of L/√n at arms played n times, however small the regulariser."""
    domain = pt.Grid(6)
    policy = make(domain, gain_limit=math.inf, alpha=alpha)
    X = np.repeat(domain.points[[1, 4]], plays, axis=0)
    policy.tell(X, np.zeros(len(X)))
    policy.tell(domain.points[1], 0.0)
    (cell,) = leaves(policy)
    samples = draws(policy, cell)
    deviation = samples.std(axis=0)[[1, 4]] * np.sqrt([plays + 1, plays])
    # the prior's part: 1/(n/L² + α/L²), with what the other arm tells of this one far smaller
    assert deviation == pytest.approx(L / math.sqrt(1 + alpha / plays), rel=0.08)
    assert samples.mean(axis=0)[[1, 4]] == pytest.approx(0.0, abs=5 * L / math.sqrt(1200 * plays))
    free = math.sqrt(1 - KERNEL(domain.points)[0, 1] ** 2) * L / math.sqrt(alpha)
    if plays > 3:
        assert samples.std(axis=0)[0] == pytest.approx(free, rel=0.08)


def test_draws_are_independent_of_each_other():
    policy = make(DOMAINS["grid1"])
    tell_some([policy], 10)
    cell = leaves(policy)[0]
    samples = draws(policy, cell, 2000)
    samples = (samples - samples.mean(axis=0)) / samples.std(axis=0)
    lagged = (samples[1:] * samples[:-1]).mean(axis=0)
    assert np.abs(lagged).max() < 5 / math.sqrt(2000)


def test_factors_that_were_given_up_change_nothing(monkeypatch):
    domain, f = DOMAINS["grid2"], bumps(DOMAINS["grid2"])
    kept = run(make(domain), f, 40)
    monkeypatch.setattr(_thompson, "FACTOR_NUMBERS", 100)
    np.testing.assert_array_equal(run(make(domain), f, 40), kept)


# -- choices ---------------------------------------------------------------------------------------


def run(policy, f, n):
    points = []
    for _ in range(n):
        x = policy.ask()
        points.append(x)
        policy.tell(x, float(f(x)[0]))
    return np.array(points)


class Listener:
    """Remembers the last scores of every cell, and which cells were scored since it was asked."""

    def __init__(self, policy):
        self._scorer = policy._engine._scorer
        self.last, self.scored = {}, []
        self.redraws = self._scorer.redraws
        policy._engine._scorer = self
        for cell in leaves(policy):
            policy._engine._enter(cell)
        self.scored.clear()

    def scores(self, cell, std, t):
        got = self._scorer.scores(cell, std, t)
        assert (got.std == 0).all()
        self.last[cell.key] = got.mean
        self.scored.append(cell.key)
        return got

    def forget(self, cell):
        self._scorer.forget(cell)

    def take(self):
        scored, self.scored = self.scored, []
        return scored


@pytest.mark.parametrize("where", ["grid1", "arms", "box1", "box2"])
@pytest.mark.parametrize("redraws", [0, 2, None])
def test_plays_the_highest_draw(where, redraws):
    """And draws anew the cells that changed, and so many others."""
    domain = DOMAINS[where]
    policy, f = make(domain, redraws=redraws), bumps(domain)
    listener = Listener(policy)
    for _ in range(60):
        before = set(listener.take())  # since the last ask: the cells that the tell changed
        x = policy.ask()
        scored = listener.take()
        cells = leaves(policy)
        wanted = len(cells) if redraws is None else min(redraws, len(cells))
        assert len(scored) == len(set(scored)) == wanted
        best = max(float(listener.last[cell.key].max()) for cell in cells)
        at = unit(domain, x[None, :])
        values = [
            float(listener.last[cell.key][j])
            for cell in cells
            for j in np.flatnonzero((np.abs(cell_points(policy, cell) - at) < 1e-12).all(axis=1))
        ]
        assert max(values) == pytest.approx(best, abs=2e-9)
        policy.tell(x, float(f(x)[0]))
        assert before <= {cell.key for cell in cells}
        changed = {
            cell.key
            for cell in leaves(policy)
            if cell not in cells
            or (np.abs(cell_points(policy, cell) - at) < 1e-12).all(axis=1).any()
        }
        assert changed <= set(listener.scored)
    assert len(leaves(policy)) > 2


def test_cells_take_turns():
    policy = make(DOMAINS["grid2"], redraws=3)
    run(policy, bumps(DOMAINS["grid2"]), 60)
    listener = Listener(policy)
    n = len(leaves(policy))
    assert n > 9
    for _ in range(math.ceil(n / 3)):
        policy.cancel(policy.ask())
    assert set(listener.take()) == {cell.key for cell in leaves(policy)}


def test_arms_are_played_as_often_as_they_are_the_best_of_a_draw():
    """Against draws of NumPy's own from the same posterior."""
    domain = pt.Arms([[0.0], [0.2], [0.5], [0.9]])
    policy = make(domain, redraws=None, gain_limit=math.inf, alpha=1.0)
    X, Y = domain.points[[0, 0, 1, 2, 2, 2, 3]], [0.1, 0.0, 0.05, 0.1, 0.1, 0.0, 0.02]
    policy.tell(X, Y)
    n, counts = 4000, np.zeros(4)
    for _ in range(n):
        x = policy.ask()
        counts[domain.index_of(x[None, :])[0]] += 1
        policy.cancel(x)
    mean, cov = exact(policy, leaves(policy)[0], X, Y)
    samples = np.random.default_rng(0).multivariate_normal(mean, cov, size=100_000)
    chance = np.bincount(samples.argmax(axis=1), minlength=4) / 100_000
    assert chance.min() > 0.02
    assert (np.abs(counts - n * chance) < 4.5 * np.sqrt(n * chance * (1 - chance))).all()


def test_regret_is_far_below_that_of_uniform_sampling():
    lost = {"ts": 0.0, "uniform": 0.0}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        domain, f = pt.Grid(15, dim=2), synthetic(2, rng)
        truth = f(domain.points)
        given = settings(norm_bound=f.norm, noise=pt.Uniform(-1, 1), horizon=600, seed=seed)
        for name, policy in (
            ("ts", pt.PiGPTS(domain, **given)),
            ("uniform", pt.UniformSampling(domain, seed=seed)),
        ):
            for _ in range(600):
                x = policy.ask()
                value = truth[domain.index_of(x[None, :])[0]]
                lost[name] += truth.max() - value
                policy.tell(x, value + rng.uniform(-1, 1))
    assert lost["ts"] < 0.4 * lost["uniform"]


# -- bounds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["grid1", "grid2", "arms", "box1", "box2", "box5"])
@pytest.mark.parametrize("more", [{}, {"alpha": 0.7, "initial_cells": 2, "delta": 0.01}])
def test_answers_are_those_of_pi_gp_ucb(where, more):
    domain, f = DOMAINS[where], bumps(DOMAINS[where], 2)
    policy, twin = make(domain, **more), plain(domain, **more)
    assert policy.guarantee == "proven"
    X = random_points(domain, 25, 8)
    rng = np.random.default_rng(0)
    for step in range(60):
        if step % 10 == 9:
            points = random_points(domain, 5, step)
            values = f(points) + L * rng.normal(size=5)
        else:
            points = policy.ask()
            values = float(f(points)[0]) + L * rng.normal()
        policy.tell(points, values)
        twin.tell(points, values)
        if step % 6:
            continue
        for a, b in zip(policy.predict(X), twin.predict(X), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-9)
        a, b = policy.recommend(), twin.recommend()
        assert a.lower == pytest.approx(b.lower, abs=3e-9)
        if a.lower > 0:  # else cells without data are the better bet, and any of them will do
            np.testing.assert_array_equal(a.x, b.x)
            assert a.upper == pytest.approx(b.upper, abs=1e-9)
        assert policy.certificate() == pytest.approx(twin.certificate(), abs=5e-9)
        mine = {(c.level, *c.lower): c for c in policy.cover}
        for cell in twin.cover:
            other = mine.pop((cell.level, *cell.lower))
            assert (other.count, other.width) == (cell.count, pytest.approx(cell.width))
            assert other.index == pytest.approx(cell.index, abs=3e-9)
        assert not mine
    assert policy.cells_created == twin.cells_created


# -- state -----------------------------------------------------------------------------------------

everywhere = pytest.mark.parametrize("where", ["grid2", "arms", "box1", "box2", "box5"])


@everywhere
def test_same_seed_same_asks(where):
    """Whatever else is asked in between; other seeds play otherwise."""
    domain, f = DOMAINS[where], bumps(DOMAINS[where])
    one, two, other = make(domain, seed=5), make(domain, seed=5), make(domain, seed=6)
    points = run(one, f, 30)
    for x in points:
        y = two.ask()
        np.testing.assert_array_equal(x, y)
        two.predict(y[None, :])
        two.recommend()
        two.certificate()
        assert two.cover
        two.tell(y, float(f(y)[0]))
    assert (run(other, f, 30) != points).any()


@everywhere
def test_any_calls_in_any_order_and_copies_in_between(where):
    """Batches, cancels, bulk tells, points never asked; a twin is replaced by its copies."""
    domain, f = DOMAINS[where], bumps(DOMAINS[where])
    rng = np.random.default_rng(0)
    history, twin = History(make(domain, seed=1)), make(domain, seed=1)
    policy, pending = history.policy, history.pending
    for step in range(60):
        action = rng.integers(7)
        if action < 3 or not pending:
            np.testing.assert_array_equal(twin.ask(), history.ask())
            continue
        x = pending[rng.integers(len(pending))].copy()
        if action < 5:
            history.tell(x, float(f(x)[0]))
            twin.tell(x, float(f(x)[0]))
        elif action == 5:
            history.cancel(x)
            twin.cancel(x)
        else:
            X = random_points(domain, 4, step)
            X[0] = x
            history.tell_many(X, f(X))
            twin.tell(X, f(X))
        assert policy.pending == twin.pending == len(pending)
        assert policy.told == twin.told == len(history.X)
        if step % 7 == 3:
            twin = pickle.loads(pickle.dumps(twin))
        if step % 7 == 6:
            twin = copy.deepcopy(twin)
    assert policy.certificate() == twin.certificate()
    assert len(leaves(policy)) > 1
    check = plain(domain)  # the cells and their data do not depend on who chose, nor on the order
    check.tell(np.array(history.X), np.array(history.Y))
    X = random_points(domain, 20, 3)
    assert len(check.cover) == len(policy.cover)
    for a, b in zip(policy.predict(X), check.predict(X), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-7)


def test_pending_points_are_not_asked_again_and_again():
    policy = make(DOMAINS["grid2"])
    tell_some([policy], 10)
    batch = {policy.ask().tobytes() for _ in range(10)}
    assert len(batch) > 3


def test_saved_policies_are_small():
    """Without the factors of priors, which can be had again."""
    policy = pt.PiGPTS(pt.Grid(30, dim=2), **settings())
    policy.ask()
    assert len(pickle.dumps(policy)) < 8 * 900 * 900


# -- edges -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("points", [[[0.5, 0.5]], [[0.0, 0.0], [0.5, 0.5]]])
def test_one_arm_and_two(points):
    domain = pt.Arms(points)
    policy = make(domain, gain_limit=0.5)
    for _ in range(40):
        x = policy.ask()
        policy.tell(x, float(x.sum()))
    assert policy.recommend().x.tolist() == points[-1]


def test_arms_in_many_dimensions():
    rng = np.random.default_rng(0)
    domain = pt.Arms(rng.random((60, 8)))
    policy = make(domain, initial_cells=1)
    run(policy, bumps(domain), 40)
    assert policy.certificate() > 0


@pytest.mark.parametrize("dim", [1, 3, 4, 6])
def test_boxes_of_up_to_six_dimensions(dim):
    domain = pt.Box([-1.0] * dim, [1.0] * dim)
    policy = make(domain, horizon=100)
    run(policy, bumps(domain), 15)
    assert policy.certificate() > 0


def test_boxes_of_seven_dimensions_are_refused():
    with pytest.raises(InvalidInput, match=r"7 dimensions.*at most 6"):
        make(pt.Box([0.0] * 7, [1.0] * 7))


@pytest.mark.parametrize("maker", [pt.PiGPTS, lambda *a, **k: pt.PiGPUCB(*a, **k, tightening=True)])
def test_too_many_cells_at_once_are_refused(maker):
    with pytest.raises(InvalidInput, match=r"initial_cells=400.*160,000 cells.*at most 100,000"):
        maker(DOMAINS["box2"], **settings(initial_cells=400))
    pt.PiGPUCB(DOMAINS["box2"], **settings(initial_cells=400)).ask()  # makes them as it needs them


def test_cells_with_too_many_arms_are_refused():
    with pytest.raises(InvalidInput, match=r"4,900 arms.*initial_cells"):
        pt.PiGPTS(pt.Grid(70, dim=2), **settings(initial_cells=1))


def test_arms_that_nearly_coincide():
    """A prior that rounding makes singular."""
    base = irregular_arms().unit_points[:20]
    domain = pt.Arms(np.clip(np.concatenate([base, base + 1e-8]), 0, 1))
    policy = make(domain, kernel=pt.Matern(4.5, 2.0))
    run(policy, bumps(domain), 40)
    assert np.isfinite(policy.certificate())


BAD = {
    "scale": [0.0, -1.0, math.nan, math.inf, "1", None, 1e-60],
    "redraws": [-1, 2.5, "all", True, math.nan],
    "initial_cells": [0, -1, 1.5, True],
    "alpha": [0.0, -1.0, 1e-12, math.nan, "1"],
    "horizon": [0, 1.5, None],
    "norm_bound": [0.0, math.inf, None],
    "noise": [0.1, None, pt.Gaussian],
    "delta": [0.0, 1.0],
    "seed": [-1, 1.0],
    "kernel": [None, pt.Matern(1.5, [0.1, 0.2, 0.3])],
}


@pytest.mark.parametrize(
    ("setting", "value"), [(key, value) for key, values in BAD.items() for value in values]
)
def test_bad_settings_are_refused(setting, value):
    with pytest.raises(InvalidInput) as caught:
        make(DOMAINS["grid2"], **{setting: value})
    assert setting in str(caught.value) or "lengthscale" in str(caught.value)


@pytest.mark.parametrize("where", ["grid2", "box2"])
def test_refused_calls_change_nothing(where):
    domain = DOMAINS[where]
    policy = make(domain)
    run(policy, bumps(domain), 20)
    x = policy.ask()
    before = pickle.dumps(policy)
    for call in (
        lambda: policy.tell(x, math.nan),
        lambda: policy.tell(domain.upper + 1.0, 0.0),
        lambda: policy.tell(domain.lower[None, :], [0.0, 1.0]),
        lambda: policy.predict(domain.upper[None, :] + 1.0),
    ):
        with pytest.raises(InvalidInput):
            call()
        assert pickle.dumps(policy) == before
