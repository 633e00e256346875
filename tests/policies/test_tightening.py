"""Successive tightening against a tracker that keeps every inherited bound by itself.

`Tracker` rebuilds all cells from the raw observations (`test_policies.Oracle`) after each of them,
and passes bounds on from a cell to those it was cut into. A cell inherits, at the candidates it has
when it is made, the smallest of its parent's last bounds there and what the parent had inherited.
"""

from __future__ import annotations

import copy
import itertools
import math
import pickle

import numpy as np
import pytest
from support.common import KERNEL, synthetic
from support.oracle import DOMAINS, NOISE, History, Oracle, bumps, random_points, row_words

import partita as pt
from partita.errors import InvalidInput
from partita.gp import rows as rows_module
from partita.gp import warm as warm_module
from partita.gp.rows import RowPosterior
from partita.partition import candidates as candidates_module
from partita.partition.sites import arm_priorities, point_priorities

INF = math.inf
#: Cells split at this information gain, so that short runs see many splits.
GAIN_LIMIT = 1.5


def make(domain, *, tightening=True, gain_limit=GAIN_LIMIT, **settings):
    given = {"horizon": 500, "kernel": KERNEL, "norm_bound": 1.0, "noise": NOISE, **settings}
    policy = pt.PiGPUCB(domain, tightening=tightening, **given)
    policy._engine.partition.rule.gain_limit = gain_limit
    return policy


class Tracker(History):
    """A policy, its history, and the bounds that every cell has inherited, by brute force."""

    def __init__(self, policy):
        super().__init__(policy)
        self.oracle = Oracle(policy)
        self.cells = self.oracle.cells([], [])
        #: By cell and point: smallest upper and largest lower bound inherited.
        self.known = {cell.key: {} for cell in self.cells}
        self.splits = 0

    # -- following the policy

    def ask(self):
        self.check_choice(x := super().ask())
        return x

    def tell(self, x, y, std=None):
        super().tell(x, y, std)
        self._follow(self.X, self.Y, self.stds)

    def tell_many(self, X, Y, stds=None):
        before = list(self.X), list(self.Y), list(self.stds)
        super().tell_many(X, Y, stds)
        self._follow(*before)

    def cancel(self, x):
        super().cancel(x)
        self._follow(self.X, self.Y, self.stds)

    def _follow(self, X, Y, stds):
        """The cells after a change, X, Y and stds being the parents' last data."""
        engine = self.policy._engine
        planned = [
            engine.partition.sites.x(site)
            for site, plays in engine._planned.items()
            for _ in range(plays)
        ]
        old = self.known
        self.cells = self.oracle.cells(self.X, self.Y, planned, self.stds)
        self.known = {}
        for cell in self.cells:
            key = cell.key
            while key not in old:
                key = (key[0] - 1, *(c // 2 for c in key[1:]))
            inherited = {w: old[key][w] for w in cell.places if w in old[key]}
            if key != cell.key:
                inherited = self._hand_down(key, cell, (X, Y, stds), inherited)
                self.splits += 1
            self.known[cell.key] = inherited

    def _hand_down(self, parent, cell, data, inherited):
        oracle, (X, Y, stds) = self.oracle, data
        S, Y, noises = oracle.scaled(X), np.array(Y), oracle.noises(stds)
        inside = oracle.holds(parent, S)
        mean, std = np.zeros(len(cell.points)), np.ones(len(cell.points))
        if inside.any() and len(cell.points):
            mean, std = oracle.moments(S[inside], Y[inside], cell.points, noises[inside])
        reach = oracle.width(parent[0], oracle.gain(S[inside], noises[inside]), 1) * std
        return {
            word: (
                min(mean[i] + reach[i], inherited.get(word, (INF, -INF))[0]),
                max(mean[i] - reach[i], inherited.get(word, (INF, -INF))[1]),
            )
            for word, i in cell.places.items()
        }

    # -- what it says

    def inherited(self, cell, words):
        """Inherited upper and lower bounds at points, each (n,)."""
        known = self.known[cell.key]
        if not known:
            return np.full(len(words), INF), np.full(len(words), -INF)
        pairs = [known.get(word, (INF, -INF)) for word in words]
        return np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs])

    def bounds(self, cell, planning=False):
        """Lower and upper bounds at a cell's candidates."""
        std = cell.plan_std if planning else cell.std
        reach = self.oracle.width(cell.key[0], cell.gain, 1) * std
        upper, lower = self.inherited(cell, row_words(cell.points))
        return np.maximum(cell.mean - reach, lower), np.minimum(cell.mean + reach, upper)

    def check_choice(self, x):
        """The point just asked has the highest tightened index, ties to the lowest priority."""
        oracle = self.oracle
        cells = oracle.cells(self.X, self.Y, self.pending[:-1], self.stds)
        points, values = [], []
        for cell in cells:
            if len(cell.points):
                addend = oracle.slack(cell.key[0]) if oracle.index_slack else 0.0
                points.append(cell.points)
                values.append(self.bounds(cell, planning=True)[1] + addend)
        points, values = np.concatenate(points), np.concatenate(values)
        top = values.max()
        chosen = (points == oracle.scaled(x)).all(axis=1)
        assert values[chosen].max() >= top - 1e-8
        close, equal = values > top - 5e-9, values > top - 1e-11
        if (close == equal).all():
            priority = self.priorities(points[equal])
            winner = points[equal][np.argmin(priority)]
            np.testing.assert_array_equal(winner, oracle.scaled(x)[0])
        return top

    def priorities(self, points):
        if self.oracle.lattice is not None:
            return point_priorities(self.policy.seed, points)
        numbers = {word: i for i, word in enumerate(row_words(self.oracle.arms))}
        everything = arm_priorities(self.policy.seed, len(numbers))
        return everything[[numbers[word] for word in row_words(points)]]

    def check_answers(self, X):
        """Predictions, recommendation, cover and certificate: from told data only."""
        oracle, policy = self.oracle, self.policy
        cells = oracle.cells(self.X, self.Y, stds=self.stds)
        got = policy.predict(X)
        scaled = oracle.scaled(X)
        lower, upper = np.full(len(X), -INF), np.full(len(X), INF)
        for cell in cells:
            rows = np.flatnonzero(oracle.holds(cell.key, scaled))
            mean, std = np.zeros(len(rows)), np.ones(len(rows))
            if cell.count and len(rows):
                mean, std = oracle.moments(cell.data, cell.values, scaled[rows], cell.noises)
            reach = oracle.width(cell.key[0], cell.gain, 1) * std
            above, below = self.inherited(cell, row_words(scaled[rows]))
            lower[rows] = np.maximum(lower[rows], np.maximum(mean - reach, below))
            upper[rows] = np.minimum(upper[rows], np.minimum(mean + reach, above))
            low, high = oracle.by_sets(cell, scaled[rows])
            lower[rows], upper[rows] = np.maximum(lower[rows], low), np.minimum(upper[rows], high)
        lower, upper = np.maximum(lower, -oracle.B), np.minimum(upper, oracle.B)
        np.testing.assert_allclose(got.lower, lower, atol=1e-7)
        np.testing.assert_allclose(got.upper, upper, atol=1e-7)
        filled = [cell for cell in cells if len(cell.points)]
        best = policy.recommend()
        highest = max(self.bounds(cell)[0].max() for cell in filled)
        at = policy.predict(best.x[None, :])
        assert best.lower >= highest - 1e-7
        assert (best.mean, best.lower, best.upper) == pytest.approx(
            (at.mean[0], at.lower[0], at.upper[0]), abs=1e-9
        )
        tops = [self.bounds(cell)[1].max() for cell in filled]
        addend = [oracle.slack(cell.key[0]) for cell in filled]
        by_sets = [oracle.by_sets(cell, cell.points)[1].max() for cell in filled]
        least = min(oracle.B, np.minimum(tops, by_sets).max())
        ceiling = policy.certificate() + best.lower
        assert least - 1e-7 <= ceiling <= min(oracle.B, (np.array(tops) + addend).max()) + 1e-7
        if oracle.lattice is None:
            assert ceiling == pytest.approx(least, abs=1e-7)
        views = {(v.level, *np.rint(v.lower / v.side).astype(int)): v for v in policy.cover}
        assert set(views) == {cell.key for cell in cells}
        for cell, top, slack in zip(filled, tops, addend, strict=True):
            expected = top + (slack if oracle.index_slack else 0.0)
            assert views[cell.key].index == pytest.approx(expected, abs=1e-7)
            assert views[cell.key].count == cell.count

    def spots(self):
        """Points of the domain to predict at: candidates and others."""
        domain = self.policy.domain
        if domain.finite:
            return domain.points
        some = [cell.points[:: 1 + len(cell.points) // 12] for cell in self.cells]
        scaled = np.concatenate(some)[:120] / self.oracle.per_side
        return np.concatenate([domain.from_unit(scaled), random_points(domain, 10, 9)])


def value(f, x, rng):
    return float(f(x)[0]) + 0.1 * rng.normal()


#: Steps of a run, and splits it must see at least.
RUNS = {
    "grid1": (120, 6),
    "grid2": (100, 25),
    "grid3": (45, 30),
    "arms": (100, 15),
    "box1": (120, 6),
    "box2": (70, 15),
    "box3": (35, 12),
    "box5": (14, 30),
}


@pytest.mark.parametrize("where", RUNS)
def test_every_choice_is_the_trackers(where):
    domain = DOMAINS[where]
    steps, splits = RUNS[where]
    tracker, f, rng = Tracker(make(domain, seed=2)), bumps(domain), np.random.default_rng(0)
    for step in range(steps):
        x = tracker.ask()
        tracker.tell(x, value(f, x, rng))
        if step in (0, 9, steps // 2, steps - 1):
            tracker.check_answers(tracker.spots())
    assert tracker.splits >= splits


@pytest.mark.parametrize("where", ["box1", "box2"])
def test_choices_by_the_bound_on_the_whole_cell(where):
    domain = DOMAINS[where]
    tracker = Tracker(make(domain, index_slack=True))
    f, rng = bumps(domain, 1), np.random.default_rng(1)
    for _ in range(60):
        x = tracker.ask()
        tracker.tell(x, value(f, x, rng))
    tracker.check_answers(tracker.spots())
    assert tracker.splits >= 4


@pytest.mark.parametrize("where", ["grid1", "grid2", "arms", "box1", "box2", "box5"])
@pytest.mark.parametrize(("seed", "stds"), [(0, [None]), (1, [None]), (2, [None, 0.02, 0.1, 0.5])])
def test_batches_cancels_bulk_and_points_never_asked(where, seed, stds):
    """Anything in any order, off the lattice too; copies take over now and then.

    `stds` is what may be known of the noise of a value.
    """
    domain = DOMAINS[where]
    # Noise is no less where less is said: a larger norm makes up for it.
    norm_bound = 1.0 if stds == [None] else 3.0
    tracker, f = Tracker(make(domain, seed=seed, norm_bound=norm_bound)), bumps(domain, seed)
    rng = np.random.default_rng([seed, 1])
    some = itertools.cycle(stds)
    for _ in range(45 if where != "box5" else 12):
        action = rng.integers(8)
        if action < 3 or not tracker.pending:
            tracker.ask()
        elif action < 5:
            x = tracker.pending[rng.integers(len(tracker.pending))]
            tracker.tell(x.copy(), value(f, x, rng), next(some))
        elif action == 5:
            tracker.cancel(tracker.pending[rng.integers(len(tracker.pending))].copy())
        elif action == 6:
            x = random_points(domain, 3, int(rng.integers(99)))[0]
            tracker.tell(x, value(f, x, rng), next(some))
        else:
            X = random_points(domain, int(rng.integers(1, 9)), int(rng.integers(99)))
            X[0] = tracker.pending[0]
            known = None if stds == [None] else [next(some) or 0.05 for _ in X]
            tracker.tell_many(X, f(X) + 0.1 * rng.normal(size=len(X)), known)
        if rng.random() < 0.1:
            tracker.policy = copy.deepcopy(tracker.policy)
        if rng.random() < 0.1:
            tracker.policy = pickle.loads(pickle.dumps(tracker.policy))
        if rng.random() < 0.1:
            tracker.check_answers(tracker.spots()[:40])
    tracker.check_answers(tracker.spots())
    assert tracker.splits >= 2 or where == "box5"


def test_a_cancelled_point_that_was_a_candidate_for_its_own_sake():
    """A pending point on a face, off the lattice of a coarser neighbour, comes and goes."""
    domain = DOMAINS["box2"]
    f, rng = bumps(domain), np.random.default_rng(3)
    cancelled = 0
    tracker = Tracker(make(domain))
    for _ in range(25):
        batch = [tracker.ask() for _ in range(3)]
        engine = tracker.policy._engine
        size = len(engine.partition.lattice.offsets)
        for x in batch:
            extra = any(
                len(leaf.layout.sites) > size
                and leaf.inherited is not None
                and any(engine.partition.sites.count[s] == 0 for s in leaf.layout.sites[size:])
                for leaf in engine.partition.leaves.values()
            )
            if extra and rng.random() < 0.7:
                cancelled += 1
                tracker.cancel(x)
            else:
                tracker.tell(x, value(f, x, rng))
    assert cancelled > 0
    tracker.check_answers(tracker.spots())


@pytest.mark.parametrize("where", ["box1", "box2"])
@pytest.mark.parametrize("limit", [0, 4])
def test_silent_data(where, limit, monkeypatch):
    """Cells with many points off the lattice keep them as data only; children may not."""
    monkeypatch.setattr(candidates_module, "EXTRA_LIMIT", limit)
    domain = DOMAINS[where]
    tracker, f, rng = Tracker(make(domain)), bumps(domain), np.random.default_rng(2)
    for step in range(50):
        x = random_points(domain, 9, step)[int(rng.integers(9))] if step % 2 else tracker.ask()
        tracker.tell(x, value(f, x, rng))
    tracker.check_answers(tracker.spots())
    assert tracker.splits >= 4
    silent = [len(leaf.layout.silent) for leaf in tracker.policy._engine.partition.leaves.values()]
    assert sum(silent) > 0


def test_cells_without_a_full_covariance(monkeypatch):
    """What a cell kept by rows hands down."""
    monkeypatch.setattr(rows_module, "DENSE_LIMIT", 20)
    domain = DOMAINS["grid2"]
    tracker, f, rng = Tracker(make(domain)), bumps(domain), np.random.default_rng(6)
    assert isinstance(tracker.policy._engine.partition.leaves[0, 0, 0].posterior, RowPosterior)
    for _ in range(40):
        x = tracker.ask()
        tracker.tell(x, value(f, x, rng))
    tracker.check_answers(tracker.spots())
    assert tracker.splits >= 4


@pytest.mark.parametrize("where", ["grid2", "box2"])
def test_cold_cells(where, monkeypatch):
    """Covariances given up at once: nothing that is inherited depends on them."""
    monkeypatch.setattr(warm_module, "WARM_NUMBERS", 0)
    domain = DOMAINS[where]
    tracker, f, rng = Tracker(make(domain)), bumps(domain), np.random.default_rng(5)
    for _ in range(50):
        x = tracker.ask()
        tracker.tell(x, value(f, x, rng))
    tracker.check_answers(tracker.spots())


def by_width_alone(*policies):
    """Leave the confidence sets and |f| ≤ B out: what is inherited are the bounds of the width."""
    for policy in policies:
        policy._engine._bounds._sets, policy._engine._bounds._most = None, np.inf


@pytest.mark.parametrize("where", ["grid1", "grid2", "arms", "box1", "box2", "box5"])
@pytest.mark.parametrize("bulk", [1, 25])
def test_never_looser_than_an_untightened_twin(where, bulk):
    """Told the same data; and somewhere it is tighter. Bounds hold."""
    domain = DOMAINS[where]
    tight, plain = make(domain, seed=1), make(domain, tightening=False, seed=1)
    by_width_alone(tight, plain)
    f, rng = bumps(domain, 3), np.random.default_rng(3)
    if domain.finite:
        X = domain.points
    else:
        X = domain.from_unit(pt.Grid({1: 33, 2: 9, 5: 2}[domain.dim], dim=domain.dim).points)
    truth, gained = f(X), 0.0
    for step in range(96 // bulk):
        if bulk == 1:
            asked = tight.ask()
            points, values = asked, value(f, asked, rng)
        else:
            points = random_points(domain, bulk, int(rng.integers(1000)))
            values = f(points) + 0.1 * rng.normal(size=bulk)
        tight.tell(points, values)
        plain.tell(points, values)
        if bulk == 1 and step % 6:
            continue
        a, b = tight.predict(X), plain.predict(X)
        np.testing.assert_allclose(a.mean, b.mean, atol=1e-7)
        np.testing.assert_allclose(a.std, b.std, atol=1e-7)
        assert (a.upper <= b.upper + 1e-8).all()
        assert (a.lower >= b.lower - 1e-8).all()
        assert (a.upper >= truth).all()
        assert (a.lower <= truth).all()
        gained = max(gained, float((b.upper - a.upper).max()))
        best = tight.recommend()
        assert best.lower >= plain.recommend().lower - 1e-8
        gap = tight.certificate()
        assert gap <= plain.certificate() + 1e-8
        assert gap >= truth.max() - float(f(best.x)[0])
    assert gained > 0.02 or domain.dim == 5  # where none of these points is a candidate


@pytest.mark.parametrize("where", ["grid2", "arms", "box1", "box2"])
def test_a_bulk_tell_that_cuts_a_cell_loosens_no_bound_in_it(where):
    """At points that lay inside that cell, in no other."""
    domain = DOMAINS[where]
    policy, f, rng = make(domain, seed=4), bumps(domain, 4), np.random.default_rng(4)
    by_width_alone(policy)
    partition = policy._engine.partition
    cuts = 0
    for _ in range(12):
        spots = {}
        for leaf in partition.leaves.values():
            scaled = partition.candidates.points(leaf.layout)
            inner = ((scaled * 2 ** leaf.key[0]) % 1 != 0).all(axis=1)
            unit = scaled[inner] / partition.geometry.per_side
            spots[leaf.key] = domain.lower + unit * (domain.upper - domain.lower)
        before = {key: policy.predict(X) for key, X in spots.items() if len(X)}
        points = random_points(domain, 12, int(rng.integers(1000)))
        policy.tell(points, f(points) + 0.1 * rng.normal(size=12))
        for key in partition.split & set(before):
            cuts += 1
            now = policy.predict(spots[key])
            assert (now.upper <= before[key].upper + 1e-8).all()
            assert (now.lower >= before[key].lower - 1e-8).all()
    assert cuts > 3


def failures(runs, factor=1.0):
    """Runs in which a bound fails, at any arm and third step, or the certificate at the end.

    The norm of f is B exactly, and cells split early; a `factor` scales B and L.
    """
    domain, failed = pt.Grid(30), 0
    for seed in range(runs):
        rng = np.random.default_rng([seed, 1])
        f = synthetic(1, rng)
        truth, noise = f(domain.points), pt.Uniform(-factor, factor)
        policy = make(domain, norm_bound=factor * f.norm, noise=noise, seed=seed)
        held = True
        for step in range(60):
            x = policy.ask()
            policy.tell(x, truth[domain.index_of(x[None, :])[0]] + rng.uniform(-1, 1))
            if step % 3 == 0:
                got = policy.predict(domain.points)
                held = held and bool(((got.lower <= truth) & (truth <= got.upper)).all())
        best = domain.index_of(policy.recommend().x[None, :])[0]
        held = held and truth.max() - truth[best] <= policy.certificate()
        failed += not held
        assert len(policy.cover) > 1
    return failed


@pytest.mark.filterwarnings("ignore::partita.TheoryWarning")
def test_bounds_hold_together_in_nine_runs_of_ten():
    assert failures(60) <= 6
    assert failures(20, factor=0.2) > 2  # a control: the same test with B and L too small


def test_contradictions_are_reported():
    policy = make(DOMAINS["grid2"], norm_bound=0.01, noise=pt.SubGaussian(0.001))
    for _ in range(30):
        policy.tell(policy.ask(), 5.0)
    with pytest.warns(pt.TheoryWarning, match="too small"):
        policy.predict(DOMAINS["grid2"].points)
    with pytest.warns(pt.TheoryWarning, match="too small"):
        assert policy.certificate() == INF


# -- edges -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("points", [[[0.5, 0.5]], [[0.0, 0.0], [0.5, 0.5]]])
def test_one_arm_and_two(points):
    domain = pt.Arms(points)
    tracker = Tracker(make(domain))
    for step in range(30):
        x = tracker.ask()
        tracker.tell(x, float(x.sum()) + 0.1 * math.sin(step))
    tracker.check_answers(domain.points)


def test_arms_in_seven_dimensions():
    """Above six dimensions an arm on a shared face is one cell's only."""
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.random((30, 7)), rng.integers(0, 3, (20, 7)) / 2])
    domain = pt.Arms(np.unique(points, axis=0))
    policy, plain = (make(domain, tightening=flag, initial_cells=1) for flag in (True, False))
    by_width_alone(policy, plain)
    f, rng = bumps(domain), np.random.default_rng(1)
    for _ in range(60):
        x = policy.ask()
        y = value(f, x, rng)
        policy.tell(x, y)
        plain.tell(x, y)
    a, b = policy.predict(domain.points), plain.predict(domain.points)
    assert (a.upper <= b.upper + 1e-9).all()
    assert (a.upper < b.upper - 1e-3).any()


def test_boxes_of_up_to_six_dimensions():
    policy = make(pt.Box([0.0] * 6, [1.0] * 6), horizon=100, norm_bound=20.0)
    for _ in range(12):
        x = policy.ask()
        policy.tell(x, float(x.sum()))
    assert policy.certificate() > 0
    with pytest.raises(InvalidInput, match=r"7 dimensions.*at most 6.*without tightening"):
        make(pt.Box([0.0] * 7, [1.0] * 7))


@pytest.mark.parametrize("flag", [1, 0, None, "yes", [True]])
def test_a_flag_that_is_none(flag):
    with pytest.raises(InvalidInput, match="tightening="):
        make(DOMAINS["grid1"], tightening=flag)


def test_the_papers_width_is_refused():
    with pytest.raises(InvalidInput, match=r"tightening=True.*mixture"):
        make(DOMAINS["grid1"], width="paper")


@pytest.mark.parametrize("where", ["grid2", "box2"])
def test_refused_calls_change_nothing(where):
    domain = DOMAINS[where]
    policy, f, rng = make(domain), bumps(domain), np.random.default_rng(0)
    for _ in range(30):
        x = policy.ask()
        policy.tell(x, value(f, x, rng))
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
