"""The policies on a partition by brute force.

`Oracle` does everything the slow way: it rebuilds every cell from the raw observations, with
inverse matrices. `History` keeps what a policy was told and asked.
"""

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
import pytest

import partita as pt
from partita.partition import candidates as candidates_module
from partita.partition.widths import width_of

KERNEL = pt.Matern(1.5, 0.2)


NOISE = pt.Gaussian(0.1)


def irregular_arms():
    """Arms in odd units: some at random, some on corners and faces that cells share."""
    rng = np.random.default_rng(5)
    unit = np.concatenate([rng.random((25, 2)), rng.integers(0, 9, (30, 2)) / 8])
    lower, upper = np.array([-5.0, 100.0]), np.array([11.0, 228.0])
    return pt.Arms(lower + np.unique(unit, axis=0) * (upper - lower), lower, upper)


DOMAINS = {
    "grid1": pt.Grid(33),
    "grid2": pt.Grid(9, dim=2),
    "grid3": pt.Grid(5, dim=3),
    "arms": irregular_arms(),
    "box1": pt.Box([-0.3], [0.4]),
    "box2": pt.Box([-5, 0], [10, 15]),
    "box3": pt.Box([0, -1, 100], [1, 1, 101]),
    "box5": pt.Box([-1, 0, 1, 2, 3], [1, 1, 3, 5, 7]),
}


KINDS = ("pi", "paper", "igp", "uniform")


UCB_KINDS = KINDS[:3]


def make(kind, domain, *, horizon=200, seed=0, kernel=KERNEL, norm_bound=1.0, noise=NOISE, **more):
    """A policy of a kind, with settings that all kinds can be given."""
    if kind == "uniform":
        return pt.UniformSampling(domain, seed=seed)
    settings = {"kernel": kernel, "norm_bound": norm_bound, "noise": noise, "seed": seed, **more}
    if kind == "igp":
        return pt.IGPUCB(domain, **settings)
    constructor = pt.PiGPUCB.paper if kind == "paper" else pt.PiGPUCB
    return constructor(domain, horizon=horizon, **settings)


def bumps(domain, seed=0, kernel=KERNEL):
    """A function of norm 1: a sum of kernels. Takes and gives points in the user's units."""
    rng = np.random.default_rng(seed)
    centres, weights = rng.random((12, domain.dim)), rng.uniform(-1, 1, 12)
    weights /= np.sqrt(weights @ kernel(centres) @ weights)
    side = domain.upper - domain.lower
    return lambda X: kernel((np.atleast_2d(X) - domain.lower) / side, centres) @ weights


def random_points(domain, n, seed=0):
    """Points of a domain, some of them several times."""
    rng = np.random.default_rng(seed)
    if isinstance(domain, pt.Box):
        unit = rng.random((n, domain.dim))
        unit[::3] = rng.integers(0, 9, unit[::3].shape) / 8  # faces, corners, lattice points
        return domain.from_unit(unit[rng.integers(0, n, n)])
    return domain.points[rng.integers(0, domain.size, n)]


class History:
    """A policy, and the raw record of all it was told."""

    def __init__(self, policy):
        self.policy = policy
        self.X, self.Y, self.pending = [], [], []
        #: The noise of each value, None where it is that of the policy.
        self.stds = []

    def ask(self):
        x = self.policy.ask()
        self.pending.append(x.copy())
        return x

    def tell(self, x, y, std=None):
        self.policy.tell(x, y, std=std)
        self._keep(x, y, std)

    def tell_many(self, X, Y, stds=None):
        self.policy.tell(X, Y, std=stds)
        for x, y, std in zip(X, Y, [None] * len(X) if stds is None else stds, strict=True):
            self._keep(x, y, std)

    def _keep(self, x, y, std):
        self._settle(x)
        self.X.append(np.array(x, dtype=float))
        self.Y.append(float(y))
        self.stds.append(std)

    def cancel(self, x):
        self.policy.cancel(x)
        self._settle(x)

    def _settle(self, x):
        for i, other in enumerate(self.pending):
            if np.array_equal(other, x):
                del self.pending[i]
                return


@dataclass
class TrueCell:
    """A cell as brute force has it: candidates (m, d), scaled, and their moments (m,)."""

    key: tuple
    count: int
    data: np.ndarray
    values: np.ndarray
    noises: np.ndarray
    pending: np.ndarray
    points: np.ndarray
    gain: float
    mean: np.ndarray
    std: np.ndarray
    plan_std: np.ndarray

    def __post_init__(self):
        self.places = {word: i for i, word in enumerate(row_words(self.points))}


class Oracle:
    """The policies' bounds by brute force. Reads the settings of a policy, never its state."""

    def __init__(self, policy):
        partition = policy._engine.partition
        self.policy, self.domain, self.dim = policy, policy.domain, policy.domain.dim
        self.kernel, self.alpha, self.delta = policy.kernel, policy.alpha, policy.delta
        self.B, self.L = policy.norm_bound, policy.sub_gaussian
        self.per_side, self.rule = partition.geometry.per_side, partition.rule
        self.lattice, self.index_slack = partition.lattice, policy._engine._index_slack
        self.closed = self.dim <= 6 if self.lattice is None else self.lattice.closed
        self.extra_limit = math.inf if self.rule.never else candidates_module.EXTRA_LIMIT
        self._known = {}
        self.arms = None if self.lattice else self.domain.unit_points * float(self.per_side)

    # -- geometry

    def scaled(self, X):
        """Points in the user's units to units of the first cells' sides, exact on faces."""
        X = np.reshape(np.array(X, dtype=float), (-1, self.dim))
        unit = (X - self.domain.lower) / (self.domain.upper - self.domain.lower)
        if self.arms is not None:
            distance = np.abs(unit[:, None, :] - self.domain.unit_points).max(axis=2)
            return self.arms[distance.argmin(axis=1)]
        scaled = unit * self.per_side
        nearest = np.rint(scaled * 2.0**26) / 2.0**26  # a point that was asked for
        same = (np.abs(scaled - nearest) < 1e-14 * self.per_side).all(axis=1, keepdims=True)
        return np.where(same, nearest, scaled)

    def holds(self, key, scaled):
        offset = scaled * 2.0 ** key[0] - np.array(key[1:])
        inside = (offset >= 0) & (offset <= 1)
        if not self.closed:
            last = np.array(key[1:]) + 1 == self.per_side * 2 ** key[0]
            inside &= (offset < 1) | last
        return inside.all(axis=1)

    def side(self, level):
        return 1.0 / (self.per_side * 2**level)

    def slack(self, level):
        if self.lattice is None:
            return 0.0
        scales = self.kernel.scales(self.dim)
        r = math.sqrt(sum((self.lattice.reach * self.side(level) / s) ** 2 for s in scales))
        return self.B * math.sqrt(max(0.0, 2 - 2 * float(self.kernel.radial(r))))

    # -- statistics

    def width(self, level, gain, t):
        d, nu = self.dim, self.kernel.nu
        if isinstance(self.policy, pt.IGPUCB):
            return self.B + self.L * math.sqrt(2 * (gain + 1 + math.log(1 / self.delta)))
        if self.policy.guarantee == "published":
            n_tilde = 4 * (t + 1) ** (d * (d + 1) / (d + 2 * nu))
            return self.B + self.L * math.sqrt(2 * (gain + 1 + math.log(n_tilde / self.delta)))
        first = self.per_side**d
        share = self.delta * 6 / math.pi**2 / ((level + 1) ** 2 * first * 2.0 ** (d * level))
        return math.sqrt(self.B**2 + 2 * self.L**2 / self.alpha * (gain + math.log(1 / share)))

    def noises(self, stds):
        """α(s/L)² for each value of noise s, or L where that is None; the least s is L/1000."""
        known = [self.L if s is None else max(s, 1e-3 * self.L) for s in stds]
        return self.alpha * (np.array(known, dtype=float) / self.L) ** 2

    def moments(self, data, values, where, noises):
        k = self.kernel(where / self.per_side, data / self.per_side)
        gram = self.kernel(data / self.per_side)
        inverse = np.linalg.inv(gram + np.diag(noises))
        weights = k @ inverse
        variance = 1.0 - (weights * k).sum(axis=1)
        return weights @ values, np.sqrt(np.maximum(variance, 0.0))

    def gain(self, data, noises):
        if not len(data):
            return 0.0
        return self._once(("gain", data.tobytes(), noises.tobytes()), self._gain, data, noises)

    def _gain(self, data, noises):
        gram = self.kernel(data / self.per_side) / np.sqrt(np.outer(noises, noises))
        return 0.5 * float(np.linalg.slogdet(np.eye(len(data)) + gram)[1])

    def _once(self, question, answer, *given):
        """The answer to a question, from memory if it was asked before."""
        if question not in self._known:
            self._known[question] = answer(*given)
        return self._known[question]

    def is_due(self, key, data, noises):
        level = key[0]
        if self.rule.never or not len(data):
            return False
        exact = float(self.per_side * 2**level) ** (
            (self.dim + 2 * self.kernel.nu) / (self.dim + 1)
        )
        threshold = round(exact) if abs(exact - round(exact)) < 1e-9 else exact
        if threshold >= len(data) + 1:
            return False
        if self.gain(data, noises) > self.rule.gain_limit:
            return True
        if len(np.unique(data, axis=0)) >= self.rule.point_limit:
            return True
        if self.lattice is None or not self.rule.fineness:
            return False
        nodes = (np.array(key[1:]) + self.lattice.offsets) / 2.0 ** key[0]
        std = self.moments(data, np.zeros(len(data)), nodes, noises)[1]
        return std.min() < self.rule.fineness * self.slack(level) / self.B

    def cells(self, X, Y, pending=(), stds=None):
        """Every cell of the cover that these observations must lead to, sorted by key."""
        S, Y, P = self.scaled(X), np.array(Y, dtype=float), self.scaled(pending)
        N = self.noises([None] * len(Y) if stds is None else stds)
        work = [
            ((0, *c), np.arange(len(S))) for c in product(range(self.per_side), repeat=self.dim)
        ]
        leaves = []
        while work:
            key, rows = work.pop()
            rows = rows[self.holds(key, S[rows])]
            if self.is_due(key, S[rows], N[rows]):
                work += [
                    ((key[0] + 1, *(2 * c + b for c, b in zip(key[1:], bits, strict=True))), rows)
                    for bits in product((0, 1), repeat=self.dim)
                ]
            else:
                given = key, S[rows], Y[rows], N[rows], P[self.holds(key, P)]
                question = key, *(array.tobytes() for array in given[1:])
                leaves.append(self._once(question, self._cell, *given))
        return sorted(leaves, key=lambda c: c.key)

    def _cell(self, key, data, values, noises, pending):
        if self.lattice is None:
            points = self.arms[self.holds(key, self.arms)]
        else:
            points = (np.array(key[1:]) + self.lattice.offsets) / 2.0 ** key[0]
            if self._is_crowded(points, data):
                nodes = set(row_words(points))
                pending = pending[[word in nodes for word in row_words(pending)]]
            else:
                points = np.concatenate([points, data, pending])
        mean, std = np.zeros(len(points)), np.ones(len(points))
        if len(data) and len(points):
            mean, std = self.moments(data, values, points, noises)
        plan_std = std
        if len(pending):
            both = np.concatenate([data, pending])
            planned = np.append(noises, np.full(len(pending), self.alpha))
            _, plan_std = self.moments(both, np.zeros(len(both)), points, planned)
        gain = self.gain(data, noises)
        return TrueCell(
            key, len(data), data, values, noises, pending, points, gain, mean, std, plan_std
        )

    def _is_crowded(self, nodes, data):
        """Whether points off the lattice are too many to be candidates: they are data only."""
        if len(data) < self.extra_limit:
            return False
        off = set(row_words(data)) - set(row_words(nodes))
        return len(off) >= self.extra_limit

    # -- answers

    def indices(self, cells, t, planning=False):
        """Highest index of each cell, −inf where it has no candidate."""
        best = []
        for c in cells:
            std = c.plan_std if planning else c.std
            width = self.width(c.key[0], c.gain, t)
            best.append((c.mean + width * std).max() if len(std) else -math.inf)
        addend = [self.slack(c.key[0]) if self.index_slack else 0.0 for c in cells]
        return np.array(best) + np.array(addend)

    def at_ceiling(self, cells, t):
        """The cells whose bounds on f, slack included, are the highest."""
        slack = [0.0 if self.index_slack else self.slack(c.key[0]) for c in cells]
        bounds = self.indices(cells, t) + slack
        return [c for c, b in zip(cells, bounds, strict=True) if b >= bounds.max() - 1e-8]

    def index_at(self, cells, x, t):
        """Planning index of one point, the highest over the cells that hold it."""
        at, best = self.scaled(x), -math.inf
        for c in cells:
            if not self.holds(c.key, at)[0]:
                continue
            i = c.places.get(row_words(at)[0])
            if i is not None:
                value = c.mean[i] + self.width(c.key[0], c.gain, t) * c.plan_std[i]
                best = max(best, value + (self.slack(c.key[0]) if self.index_slack else 0.0))
        return best

    def by_sets(self, cell, where):
        """Bounds at scaled points (n, d) from the confidence set of a cell (Flynn & Reeb 2024).

        By the values as they were told, one row each: `sets` has the means at points instead.
        """
        lower, upper = np.full(len(where), -np.inf), np.full(len(where), np.inf)
        if not cell.count or self.policy.guarantee == "published":
            return lower, upper
        level, gram = cell.key[0], self.kernel(cell.data / self.per_side)
        one_cell = isinstance(self.policy, pt.IGPUCB)
        first = self.per_side**self.dim * 2.0 ** (self.dim * level)
        share = self.delta if one_cell else self.delta * 6 / math.pi**2 / ((level + 1) ** 2 * first)
        whitened = self.alpha / cell.noises  # (L/s)² for each value
        K = gram * np.sqrt(np.outer(whitened, whitened))
        y, eye = np.sqrt(whitened) * cell.values, np.eye(len(K))
        fit = y @ np.linalg.solve(eye + K / self.alpha, y)
        radius = fit + 2 * self.L**2 * (cell.gain + math.log(1 / share))
        for ratio in (1 / 16, 1 / 4, 1, 4, 16):
            regulariser = ratio * self.alpha
            squared = (
                self.B**2 + (radius - y @ np.linalg.solve(eye + K / regulariser, y)) / regulariser
            )
            mean, std = self.moments(cell.data, cell.values, where, ratio * cell.noises)
            width = math.sqrt(max(squared, 0.0))
            lower, upper = (
                np.maximum(lower, mean - width * std),
                np.minimum(upper, mean + width * std),
            )
        return lower, upper

    def ceiling(self, cells, t):
        """The bound on max f on a finite domain: the highest in any cell, |f| ≤ B among them."""
        tops = []
        for c in cells:
            if len(c.points):
                plain = (c.mean + self.width(c.key[0], c.gain, t) * c.std).max()
                tops.append(min(plain, self.by_sets(c, c.points)[1].max()))
        return min(self.B, max(tops))

    def bounds(self, cells, X, t):
        """For each point: lower, upper, and the (mean, std) of each cell that holds it."""
        out = []
        for at in self.scaled(X):
            lower, upper, moments = -math.inf, math.inf, []
            for c in cells:
                if self.holds(c.key, at[None, :])[0]:
                    mean, std = 0.0, 1.0
                    if c.count:
                        m, s = self.moments(c.data, c.values, at[None, :], c.noises)
                        mean, std = float(m[0]), float(s[0])
                    width = self.width(c.key[0], c.gain, t)
                    lower, upper = max(lower, mean - width * std), min(upper, mean + width * std)
                    low, high = self.by_sets(c, at[None, :])
                    lower, upper = max(lower, low[0]), min(upper, high[0])
                    moments.append((mean, std))
            lower, upper = max(lower, -self.B), min(upper, self.B)
            out.append((lower, upper, moments))
        return out


def assert_best(oracle, history, x):
    """The point just asked has the highest planning index of all candidates of all cells."""
    earlier = history.pending[:-1] if history.pending else []
    cells = oracle.cells(history.X, history.Y, earlier, history.stds)
    t = len(history.X) + len(earlier) + 1
    every = oracle.policy._engine._ceiling_every
    if every and t % every == 0:
        if oracle.rule.never:
            return  # at the highest bound between candidates: test_certificates.py
        cells = oracle.at_ceiling(cells, t)
    top = oracle.indices(cells, t, planning=True).max()
    tolerance = 1e-8 * max(1.0, abs(top))
    assert abs(oracle.index_at(cells, x, t) - top) <= tolerance


def assert_table(oracle, history):
    """What the policy keeps for the choice is right in every cell, and no cell is missing from it.

    Reads private state: a wrong number there may take many steps to show in a choice.
    """
    engine = history.policy._engine
    partition, table = engine.partition, engine._table
    resolution = table._resolution
    planned = [partition.sites.x(s) for s, plays in engine._planned.items() for _ in range(plays)]
    levels = set()
    for cell in oracle.cells(history.X, history.Y, planned, history.stds):
        leaf = partition.leaves.get(cell.key)
        if leaf is None:
            assert cell.count == 0
            assert (cell.std == cell.plan_std).all()
            if len(cell.points):
                levels.add(cell.key[0])
            continue
        words = row_words(partition.candidates.points(leaf.layout))
        assert set(words) == set(cell.places)
        at = [cell.places[word] for word in words]
        mean, std = cell.mean[at], cell.std[at]
        scale = max(1.0, np.abs(mean).max())
        np.testing.assert_allclose(leaf.posterior.std, std, atol=1e-7)
        np.testing.assert_allclose(leaf.posterior.mean, mean, atol=1e-7 * scale)
        np.testing.assert_allclose(engine.planned_std(leaf), cell.plan_std[at], atol=1e-7)
        row = table._row_of[leaf]
        gain, _, addend, bound = table._numbers[row]
        assert gain == pytest.approx(cell.gain, abs=1e-7)
        if engine.width.drifts:  # bounds are loose, and evaluated again from copies of the moments
            start, size = table._places[row, :2]
            assert size == len(words)
            kept = table._moments[:, start : start + size]
            np.testing.assert_array_equal(kept, [leaf.posterior.mean, engine.planned_std(leaf)])
        else:
            width = width_of(engine.width, gain, cell.key[0], engine._t)
            index = (mean + width * cell.plan_std[at]).max() + addend
            assert bound == pytest.approx(index, abs=1e-7 * scale + 2 / resolution)
    assert {entrant for entrant in table._row_of if isinstance(entrant, int)} == levels
    assert len(table) == len(table._row_of) == len(partition.leaves) + len(levels)


def row_words(rows):
    """Each row of an array as its bytes."""
    return [row.tobytes() for row in rows + 0.0]


def assert_cover(oracle, history):
    """The policy's cover is, cell by cell, what the observations must lead to; told data only."""
    cells = oracle.cells(history.X, history.Y, stds=history.stds)
    cover = history.policy.cover
    t = len(history.X) + 1
    side = [oracle.side(c.key[0]) for c in cells]
    assert len(cover) == len(cells)
    assert [c.level for c in cover] == [c.key[0] for c in cells]
    assert [c.count for c in cover] == [c.count for c in cells]
    lower = np.array([c.key[1:] for c in cells]) * np.array(side)[:, None]
    np.testing.assert_allclose(np.array([c.lower for c in cover]), lower, rtol=1e-14)
    np.testing.assert_allclose([c.side for c in cover], side, rtol=1e-14)
    width = [oracle.width(c.key[0], c.gain, t) for c in cells]
    np.testing.assert_allclose(
        [c.information_gain for c in cover], [c.gain for c in cells], atol=1e-8
    )
    np.testing.assert_allclose([c.width for c in cover], width, rtol=1e-9)
    np.testing.assert_allclose(
        [c.index for c in cover], oracle.indices(cells, t), rtol=1e-8, atol=1e-8
    )


def assert_predictions(oracle, history, X):
    """Predictions at X are those of the cells that hold each point, combined as promised."""
    got = history.policy.predict(X)
    cells = oracle.cells(history.X, history.Y, stds=history.stds)
    for i, (lower, upper, moments) in enumerate(oracle.bounds(cells, X, len(history.X) + 1)):
        least = min(std for _, std in moments)
        assert got.std[i] == pytest.approx(least, abs=1e-7)
        assert got.lower[i] == pytest.approx(lower, abs=1e-7, rel=1e-7)
        assert got.upper[i] == pytest.approx(upper, abs=1e-7, rel=1e-7)
        close = [mean for mean, std in moments if std <= least + 1e-9]
        assert min(abs(got.mean[i] - mean) for mean in close) < 1e-7


def run(policy, steps, seed=0, f=None, noise=0.1):
    """Play with noise; the history."""
    f = f or bumps(policy.domain, seed)
    rng = np.random.default_rng(seed)
    history = History(policy)
    for _ in range(steps):
        x = history.ask()
        history.tell(x, float(f(x)[0]) + noise * rng.normal())
    return history


def asks(policy, n, f):
    """The next n points when each is told f(x)."""
    points = []
    for _ in range(n):
        x = policy.ask()
        points.append(x.copy())
        policy.tell(x, float(f(x)[0]))
    return np.array(points)


everywhere = pytest.mark.parametrize("where", DOMAINS)


every_kind = pytest.mark.parametrize("kind", KINDS)


every_ucb = pytest.mark.parametrize("kind", UCB_KINDS)
