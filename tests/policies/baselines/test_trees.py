"""The hierarchical policies against naive twins, PyXAB, and what all of them promise."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
from support.trees import DOMAINS, anywhere, bumpy

import partita as pt
from partita.errors import NotPending
from partita.policies.baselines import tree as _tree
from partita.policies.baselines.direct import DIRECT
from partita.policies.baselines.hoo import HOO
from partita.policies.baselines.optimistic import DOO, SOO
from partita.policies.baselines.stosoo import StoSOO, default_evaluations

# -- naive cells: exact fractions, lists of arms, nothing shared with the code under test ----------


class Cell:
    """A cell with exact corners; `arms` is None on a box."""

    def __init__(self, domain, lower, levels, parts, depth=0, arms=None):
        self.domain, self.lower, self.levels = domain, lower, levels
        self.parts, self.depth, self.arms = parts, depth, arms
        self.x = self._representative()

    @classmethod
    def whole(cls, domain, parts):
        arms = list(range(domain.size)) if domain.finite else None
        return cls(domain, (Fraction(0),) * domain.dim, (0,) * domain.dim, parts, 0, arms)

    def side(self, axis):
        return Fraction(1, self.parts ** self.levels[axis])

    def _representative(self):
        centre = np.array([float(c + self.side(i) / 2) for i, c in enumerate(self.lower)])
        if self.arms is None:
            return self.domain.from_unit(centre[None])[0]
        away = ((self.domain.unit_points[self.arms] - centre) ** 2).sum(axis=1)
        return self.domain.points[self.arms[int(np.argmin(away))]]

    @property
    def radius(self):
        if self.arms is None:
            return 0.5 * math.sqrt(sum(float(self.side(i)) ** 2 for i in range(len(self.lower))))
        unit = self.domain.unit_points
        home = unit[int(self.domain.index_of(self.x[None])[0])]
        return max(float(np.linalg.norm(unit[a] - home)) for a in self.arms)

    @property
    def divisible(self):
        return self.arms is None or len(self.arms) > 1

    def children(self):
        axis = self.levels.index(min(self.levels))
        step = self.side(axis) / self.parts
        levels = tuple(k + (i == axis) for i, k in enumerate(self.levels))
        cuts = [self.lower[axis] + step * i for i in range(self.parts)]
        for i, cut in enumerate(cuts):
            arms = self.arms
            if arms is not None:
                unit = self.domain.unit_points[:, axis]
                arms = [
                    a
                    for a in arms
                    if (i == 0 or unit[a] >= float(cut))
                    and (i == self.parts - 1 or unit[a] < float(cuts[i + 1]))
                ]
                if not arms:
                    continue
            lower = (*self.lower[:axis], cut, *self.lower[axis + 1 :])
            yield Cell(self.domain, lower, levels, self.parts, self.depth + 1, arms)


every_domain = pytest.mark.parametrize("where", DOMAINS)


# -- HOO -------------------------------------------------------------------------------------------


class NaiveHOO:
    """Every U and B of the whole tree, afresh at each step."""

    def __init__(self, domain, constant, nu1, rho, horizon=None):
        self.constant, self.nu1, self.rho, self.horizon = constant, nu1, rho, horizon
        self.root = {"cell": Cell.whole(domain, 2), "values": [], "children": None}
        self.plays = 0
        self.limit = math.inf
        if horizon is not None:
            spare = math.log(horizon) / 2 - math.log(2 * constant / nu1)
            self.limit = math.ceil(spare / math.log(1 / rho))
        self.divide(self.root)  # it is in the tree from the start

    def divide(self, node):
        if node["cell"].depth < self.limit and node["cell"].divisible:
            cells = node["cell"].children()
            node["children"] = [{"cell": c, "values": [], "children": None} for c in cells]

    def bound(self, node):
        """B of a node, which it keeps, and those of all below it."""
        below = [self.bound(child) for child in node["children"] or ()]
        count, cell = len(node["values"]), node["cell"]
        n = self.horizon or max(2, 2 ** math.ceil(math.log2(max(self.plays, 1))))
        upper = math.inf
        if count:
            reach = self.nu1 * self.rho**cell.depth if cell.divisible else 0.0
            width = 2 * self.constant * math.sqrt(2 * math.log(n) / count)
            upper = math.fsum(node["values"]) / count + width + reach
        node["B"] = min(upper, max(below, default=math.inf))
        return node["B"]

    def step(self, x, y):
        """Check that x ends a walk along highest bounds, and take in y there."""
        self.bound(self.root)
        walks = [[self.root]]
        ends = []
        while walks:
            walk = walks.pop()
            children = walk[-1]["children"]
            if children is None:
                ends.append(walk)
                continue
            best = max(child["B"] for child in children)
            walks += [[*walk, c] for c in children if c["B"] >= best - 1e-9 or best == c["B"]]
        (walk,) = [walk for walk in ends if np.array_equal(walk[-1]["cell"].x, x)]
        for node in walk:
            node["values"].append(y)
        self.divide(walk[-1])
        self.plays += 1


@pytest.mark.parametrize("horizon", [None, 150])
@every_domain
def test_hoo_walks_along_the_highest_bounds(where, horizon):
    domain = DOMAINS[where]()
    f, rng = bumpy(domain), np.random.default_rng(0)
    for constant, nu1, rho in ((0.5, 1.0, None), (0.05, 0.7, 0.8)):
        policy = HOO(domain, horizon=horizon, noise=pt.SubGaussian(constant), nu1=nu1, rho=rho)
        naive = NaiveHOO(domain, constant, nu1, rho or 2 ** (-1 / domain.dim), horizon)
        for _ in range(150):
            x = policy.ask()
            y = f(x) + constant * rng.normal()
            naive.step(x, y)
            policy.tell(x, y)


class Upper:
    """Breaks all ties in favour of the upper child."""

    def random(self):
        return 0.0


@pytest.mark.parametrize("dim", [1, 2])
def test_hoo_agrees_with_pyxab(dim):
    pytest.importorskip("PyXAB")
    from PyXAB.algos.HOO import T_HOO
    from PyXAB.partition.Partition import Partition

    class Cycling(Partition):
        """PyXAB's own binary partition takes a random side; this one takes turns."""

        def make_children(self, parent, newlayer=False):
            axis = parent.get_depth() % dim
            low, high = parent.get_domain()[axis]
            nodes = []
            for ends in ([low, (low + high) / 2], [(low + high) / 2, high]):
                box = [*parent.get_domain()]
                box[axis] = ends
                number = 2 * parent.get_index() - 1 + len(nodes)
                nodes.append(self.node(parent.get_depth() + 1, number, parent, box))
            parent.update_children(nodes)
            if newlayer:
                self.node_list.append([*nodes])
                self.depth += 1
            else:
                self.node_list[parent.get_depth() + 1] += nodes

    rounds, rho = 120, 2 ** (-1 / dim)
    peer = T_HOO(nu=1, rho=rho, rounds=rounds, domain=[[0, 1]] * dim, partition=Cycling)
    domain = pt.Box([0.0] * dim, [1.0] * dim)
    policy = HOO(domain, horizon=rounds, noise=pt.Bernoulli())
    policy._random = Upper()
    policy._depth_limit += 1  # PyXAB divides cells of the last depth once more
    f, rng = bumpy(domain), np.random.default_rng(0)
    deepest = 0
    for t in range(1, rounds + 1):
        x = policy.ask()
        assert x.tolist() == peer.pull(t)
        y = f(x) + 0.1 * rng.normal()
        policy.tell(x, y)
        peer.receive_reward(t, y)
        deepest = max(deepest, *policy._tree.depth)
    assert deepest >= 5


def test_width_of_hoo_is_that_of_the_paper_for_values_in_the_unit_interval():
    policy = HOO(pt.Box([0.0], [1.0]), horizon=100, noise=pt.Bounded(0, 1), nu1=0.3, rho=0.5)
    policy.tell(policy.ask(), 0.25)
    (played,) = (node for node in (1, 2) if policy._count[node])
    assert policy._bound[played] == pytest.approx(0.25 + math.sqrt(2 * math.log(100)) + 0.15)
    assert policy._bound[3 - played] == math.inf
    assert policy._depth_limit == math.ceil((math.log(100) / 2 - math.log(1 / 0.3)) / math.log(2))


def recomputed(policy):
    """B of every node from the statistics that HOO keeps, by the definition."""
    tree = policy._tree
    bound = [math.inf] * len(tree)
    for node in reversed(range(len(tree))):
        count, children = policy._count[node], range(tree.first[node], 0)
        if tree.first[node] >= 0:
            children = range(tree.first[node], tree.first[node] + tree.width[node])
        upper = math.inf
        if count:
            mean = policy._total[node] / count
            upper = mean + policy._scale / math.sqrt(count) + policy._reach[node]
        bound[node] = min(upper, max((bound[c] for c in children), default=math.inf))
    return bound


@every_domain
@pytest.mark.parametrize("horizon", [None, 500])
def test_bounds_of_hoo_survive_any_order_of_calls(where, horizon):
    domain = DOMAINS[where]()
    policy, f = HOO(domain, horizon=horizon, noise=pt.Gaussian(0.1)), bumpy(domain)
    rng, pending = np.random.default_rng(3), []
    for _ in range(150):
        pending.append(policy.ask())
        while len(pending) > rng.integers(0, 8):
            x = pending.pop(rng.integers(len(pending)))
            if rng.random() < 0.2:
                policy.cancel(x)
            elif rng.random() < 0.2:
                X = np.stack([x, x, *anywhere(domain, rng, 3)])
                policy.tell(X, np.array([f(row) for row in X]))
                forget(pending, X[1:])
            else:
                policy.tell(x, f(x) + 0.1 * rng.normal())
    pending += [policy.ask() for _ in range(5)]
    assert sum(map(len, policy._asked.values())) == len(pending) == policy.pending > 0
    for x in pending:
        policy.cancel(x)
    assert not any(policy._pending_count)
    assert not policy._asked
    policy._refresh(0)
    assert policy._count[0] == policy.told
    np.testing.assert_allclose(policy._bound, recomputed(policy), rtol=1e-12)


def forget(pending, rows):
    """Take points that a bulk tell settled off a list of pending ones, each once."""
    for row in rows:
        for i, x in enumerate(pending):
            if np.array_equal(x, row):
                del pending[i]
                break


def test_pending_plays_of_hoo_count_as_visits():
    policy = HOO(pt.Box([0.0], [1.0]), horizon=1000, noise=pt.SubGaussian(0.5))
    points = [float(policy.ask()[0]) for _ in range(6)]
    # Both halves, then all four quarters, before a single value is known.
    assert sorted(points[:2]) == [0.25, 0.75]
    assert sorted(points[2:]) == [0.125, 0.375, 0.625, 0.875]
    policy.cancel(np.array([0.625]))
    assert policy.ask().tolist() == [0.625]


def test_rounds_of_hoo_without_a_horizon_are_a_power_of_two():
    for told, rounds in ((1, 2), (63, 64), (64, 64), (65, 128)):
        policy = HOO(pt.Box([0.0], [1.0]), noise=pt.SubGaussian(0.5), nu1=1e-9)
        policy.tell(np.linspace(0.1, 0.9, told)[:, None], np.zeros(told))
        found = policy.recommend()  # the whole domain, seen most often
        assert found.upper == pytest.approx(math.sqrt(2 * math.log(rounds) / told), abs=1e-8)


def test_hoo_recommends_the_highest_lower_bound():
    domain = pt.Box([0.0], [1.0])
    policy, f, rng = HOO(domain, noise=pt.Gaussian(0.1)), bumpy(domain), np.random.default_rng(0)
    naive = NaiveHOO(domain, 0.1, 1.0, 0.5)
    for _ in range(100):
        x = policy.ask()
        y = f(x) + 0.1 * rng.normal()
        naive.step(x, y)
        policy.tell(x, y)
    best, nodes = None, [naive.root]
    while nodes:
        node = nodes.pop()
        nodes += node["children"] or []
        count = len(node["values"])
        if count:
            slack = 0.2 * math.sqrt(2 * math.log(128) / count) + 0.5 ** node["cell"].depth
            mean = sum(node["values"]) / count
            row = (mean - slack, mean, mean + slack, node["cell"].x)
            best = row if best is None else max(best, row, key=lambda r: r[0])
    found = policy.recommend()
    assert (found.lower, found.mean, found.upper) == pytest.approx(best[:3])
    assert np.array_equal(found.x, best[3])


# -- DOO, SOO, StoSOO ------------------------------------------------------------------------------


class Known(dict):
    """Values by point."""

    def values_at(self, cell):
        return self.setdefault(cell.x.tobytes(), [])

    def mean(self, cell):
        values = self.values_at(cell)
        return math.fsum(values) / len(values)


def naive_doo(domain, constant, exponent):
    """Yields points and is sent their values. Scans all leaves for the highest bound."""
    root, known = Cell.whole(domain, 3), Known()
    known.values_at(root).append((yield root.x))
    leaves = [root]
    while leaves:
        best = max(leaves, key=lambda c: known.mean(c) + constant * c.radius**exponent)
        leaves.remove(best)
        if best.divisible:
            for child in best.children():
                if not known.values_at(child):
                    known.values_at(child).append((yield child.x))
                leaves.append(child)


def naive_soo(domain, h_max):
    root, known = Cell.whole(domain, 3), Known()
    known.values_at(root).append((yield root.x))
    leaves = [root]
    while leaves:
        best, there, before = -math.inf, list(leaves), len(leaves)
        for depth in range(min(max(c.depth for c in there), h_max) + 1):
            level = [c for c in there if c.depth == depth]
            if not level:
                continue
            leaf = max(level, key=known.mean)
            if known.mean(leaf) >= best:
                best = known.mean(leaf)
                leaves.remove(leaf)
                if leaf.divisible:
                    for child in leaf.children():
                        if not known.values_at(child):
                            known.values_at(child).append((yield child.x))
                        leaves.append(child)
        if len(leaves) == before and leaves == there:
            return


def naive_stosoo(domain, k, h_max, width):
    known, leaves = Known(), [Cell.whole(domain, 3)]

    def index(cell):
        count = len(known.values_at(cell))
        return known.mean(cell) + width / math.sqrt(count) if count else math.inf

    while leaves:
        highest, there = -math.inf, list(leaves)
        for depth in range(min(max(c.depth for c in there), h_max) + 1):
            level = [c for c in there if c.depth == depth]
            if not level:
                continue
            leaf = max(level, key=index)
            if index(leaf) < highest:
                continue
            if len(known.values_at(leaf)) < k:
                known.values_at(leaf).append((yield leaf.x))
            else:
                highest = index(leaf)
                leaves.remove(leaf)
                if leaf.divisible and depth < h_max:
                    leaves += leaf.children()


def assert_same_points(policy, naive, f, steps):
    """The policy plays what the twin yields; how many points that were."""
    wanted = next(naive)
    for step in range(steps):
        x = policy.ask()
        assert np.array_equal(x, wanted), f"step {step}: {x}, but the twin {wanted}"
        y = f(x)
        policy.tell(x, y)
        try:
            wanted = naive.send(y)
        except StopIteration:
            return step + 1
    return steps


@every_domain
@pytest.mark.parametrize(("constant", "exponent"), [(1.0, 1.0), (0.2, 2.0), (5.0, 0.5)])
def test_doo_divides_the_highest_bound(where, constant, exponent):
    domain = DOMAINS[where]()
    policy = DOO(domain, constant=constant, exponent=exponent)
    played = assert_same_points(policy, naive_doo(domain, constant, exponent), bumpy(domain), 120)
    assert played == (min(120, domain.size) if domain.finite else 120)


@every_domain
@pytest.mark.parametrize("h_max", [None, 2])
def test_soo_divides_the_best_of_each_depth(where, h_max):
    domain = DOMAINS[where]()
    policy = SOO(domain, horizon=200, h_max=h_max)
    assert policy.h_max == (h_max or 15)
    assert_same_points(policy, naive_soo(domain, policy.h_max), bumpy(domain), 200)


@every_domain
@pytest.mark.parametrize(("k", "h_max"), [(None, None), (3, 2), (1, 9)])
def test_stosoo_is_the_papers_algorithm(where, k, h_max):
    domain, n, rng = DOMAINS[where](), 400, np.random.default_rng(2)
    policy = StoSOO(domain, horizon=n, noise=pt.SubGaussian(0.2), k=k, h_max=h_max)
    k = k or 2
    h_max = h_max or 15
    assert (policy.k, policy.h_max, policy.delta) == (k, h_max, 0.05)
    width = 0.4 * math.sqrt(math.log(n * k / 0.05) / 2)
    naive, f = naive_stosoo(domain, k, h_max, width), bumpy(domain)
    played = assert_same_points(policy, naive, lambda x: f(x) + 0.2 * rng.normal(), n)
    assert played == n or domain.finite or h_max == 2


def by_hand(x):
    return -abs(float(x[0]) - 0.2)


def played(policy, f, steps):
    points = []
    for _ in range(steps):
        x = policy.ask()
        points.append(float(x[0]))
        policy.tell(x, f(x))
    return points


def test_doo_by_hand():
    # Bounds: 1/2 → 0.2. 1/6 → 0.133, 1/2 → −0.133, 5/6 → −0.467. 1/18 → −0.089, 1/6 → 0.022,
    # 5/18 → −0.022. 7/54 → −0.052, 1/6 → −0.015, 11/54 → 0.015.
    expected = [1 / 2, 1 / 6, 5 / 6, 1 / 18, 5 / 18, 7 / 54, 11 / 54, 31 / 162, 35 / 162]
    assert played(DOO(pt.Box([0.0], [1.0])), by_hand, 9) == pytest.approx(expected, rel=1e-14)


def test_soo_by_hand():
    expected = [
        *(1 / 2, 1 / 6, 5 / 6),  # the whole
        *(1 / 18, 5 / 18),  # the best third
        *(7 / 18, 11 / 18, 7 / 54, 11 / 54),  # the next third, and the best ninth
        *(13 / 18, 17 / 18, 13 / 54, 17 / 54, 31 / 162, 35 / 162),  # one of each depth
    ]
    policy = SOO(pt.Box([0.0], [1.0]), horizon=100)
    assert played(policy, by_hand, 15) == pytest.approx(expected, rel=1e-14)


def test_stosoo_defaults_are_those_of_the_paper():
    for n, k, h_max in ((1000, 4, 16), (100_000, 66, 39), (10, 1, 4)):
        policy = StoSOO(pt.Grid(9), horizon=n, noise=pt.Bernoulli())
        assert (policy.k, policy.h_max) == (k, h_max)
        assert policy.k == math.ceil(n / math.log(n) ** 3)
        assert policy.delta == pytest.approx(1 / math.sqrt(n))
    assert [default_evaluations(n) for n in (1, 2, 3)] == [1, 2, 3]
    policy.tell(policy.ask(), 0.5)
    # In the unit interval L is 1/2 and the width √(log(nk/δ)/(2T)).
    assert policy.recommend().upper == pytest.approx(0.5 + math.sqrt(math.log(10**1.5) / 2))


def test_stosoo_recommends_the_best_of_the_deepest_cells_divided():
    policy = StoSOO(pt.Box([0.0], [1.0]), horizon=100, noise=pt.Gaussian(0.01), k=1, h_max=9)
    values = {0.5: 0.0, 1 / 6: 0.3, 5 / 6: 0.2}
    for _ in range(3):
        x = policy.ask()
        policy.tell(x, values[min(values, key=lambda v: abs(v - x[0]))])
    assert policy.recommend().x.tolist() == [0.5]  # only the whole was divided
    x = policy.ask()  # divides the third around 1/6
    found = policy.recommend()
    assert found.x[0] == pytest.approx(1 / 6)
    assert found.mean == 0.3
    assert found.lower < 0.3 < found.upper


# -- what all of them promise ----------------------------------------------------------------------

MAKERS = {
    "hoo": lambda d, **k: HOO(d, **{"noise": pt.Gaussian(0.1), **k}),
    "truncated hoo": lambda d, **k: HOO(d, **{"noise": pt.Gaussian(0.1), "horizon": 500, **k}),
    "doo": DOO,
    "soo": lambda d, **k: SOO(d, **{"horizon": 500, **k}),
    "stosoo": lambda d, **k: StoSOO(d, **{"noise": pt.Gaussian(0.1), "horizon": 500, **k}),
    "direct": DIRECT,
}
every_policy = pytest.mark.parametrize("kind", MAKERS)
EXACT = ("doo", "soo", "direct")


def busy(kind, domain, seed=0, steps=60):
    """A policy in the middle of things, its pending points, and the noise it is told."""
    policy, f = MAKERS[kind](domain, seed=seed), bumpy(domain)
    rng, pending = np.random.default_rng(5), []
    for _ in range(steps):
        pending.append(policy.ask())
        while len(pending) > rng.integers(0, 6):
            x = pending.pop(rng.integers(len(pending)))
            if rng.random() < 0.2:
                policy.cancel(x)
            elif rng.random() < 0.1:
                X = np.stack([x, *anywhere(domain, rng, 2)])
                policy.tell(X, np.array([f(row) for row in X]))
                forget(pending, X[1:])
            else:
                policy.tell(x, f(x) + (0.0 if kind in EXACT else 0.1 * rng.normal()))
    return policy, pending, f


# HOO may well replay an arm, whose cell cannot be divided.
@pytest.mark.parametrize(
    ("kind", "where"), [(k, w) for k in MAKERS for w in DOMAINS if "box" in w or "hoo" not in k]
)
def test_asks_before_a_tell_differ_while_there_is_something_to_do(kind, where):
    policy, pending, f = busy(kind, DOMAINS[where](), steps=25)
    for x in pending:
        policy.tell(x, f(x))
    asked = {policy.ask().tobytes() for _ in range(4)}
    assert len(asked) == 4
    assert policy.pending == 4


@every_policy
@pytest.mark.parametrize("where", ["box 2d", "arms 2d"])
def test_a_cancelled_point_comes_again(kind, where):
    policy, pending, f = busy(kind, DOMAINS[where](), steps=25)
    for x in pending:
        policy.tell(x, f(x))
    told = policy.told
    x = policy.ask()
    policy.cancel(x)
    assert (policy.told, policy.pending) == (told, 0)
    with pytest.raises(NotPending):
        policy.cancel(x)
    # At once, but for ties that HOO breaks at random, and sweeps of StoSOO that go on first.
    later = [policy.ask()]
    for _ in range(0 if kind in EXACT else 20):
        policy.tell(later[-1], f(later[-1]))
        later.append(policy.ask())
    assert any(np.array_equal(x, y) for y in later)


@every_policy
@pytest.mark.parametrize("where", ["box 2d", "grid 2d", "arms 3d"])
def test_bulk_tells_are_worth_as_much_as_single_ones(kind, where):
    domain = DOMAINS[where]()
    rng, f = np.random.default_rng(0), bumpy(domain)
    one, many = (MAKERS[kind](domain) for _ in range(2))
    X = anywhere(domain, rng, 50)
    Y = np.array([f(x) for x in X])
    for x, y in zip(X, Y, strict=True):
        one.tell(x, y)
    many.tell(X, Y)
    many.tell(X[:0], Y[:0])
    assert one.told == many.told == 50
    for _ in range(30):
        x = one.ask()
        assert np.array_equal(many.ask(), x)
        one.tell(x, f(x))
        many.tell(x[None], np.array([f(x)]))
    assert one.pending == many.pending == 0


@every_policy
@every_domain
def test_asked_points_lie_in_the_domain_and_are_told_as_themselves(kind, where):
    domain = DOMAINS[where]()
    policy, f = MAKERS[kind](domain), bumpy(domain)
    for _ in range(60):
        x = policy.ask()
        assert np.array_equal(domain.check(x[None])[0], x)
        site = int(policy._locate(x[None])[0])
        assert np.array_equal(policy._tree.sites.x(site), x)
        assert site in policy._pending_plays()
        policy.tell(x, f(x))
        assert int(policy._locate(x[None])[0]) == site


@every_policy
def test_one_arm_is_played_for_ever(kind):
    policy = MAKERS[kind](pt.Arms([[0.3, 0.4]]))
    for y in (0.1, 0.2, 0.3):
        x = policy.ask()
        assert x.tolist() == [0.3, 0.4]
        assert policy.ask().tolist() == [0.3, 0.4]
        policy.tell(x, y)
        policy.cancel(x)
    found = policy.recommend()
    assert found.x.tolist() == [0.3, 0.4]
    assert found.mean == pytest.approx(0.2)


@every_policy
@pytest.mark.parametrize("where", ["grid 1d", "grid 2d", "arms 2d", "arms 3d"])
def test_every_arm_of_a_small_domain_is_reached(kind, where):
    domain = DOMAINS[where]()
    small = {"noise": pt.Gaussian(1e-3), "nu1": 1e6} if "hoo" in kind else {}
    policy = MAKERS[kind](domain, **({"h_max": 30} if "soo" in kind else small))
    f, seen = bumpy(domain), set()
    for _ in range(480):
        x = policy.ask()
        seen.add(x.tobytes())
        policy.tell(x, f(x))
    assert len(seen) == domain.size
    values = [f(x) for x in domain.points]
    assert f(policy.recommend().x) >= max(values) - (0.0 if kind in EXACT else 0.02)


@every_policy
def test_arms_that_floats_hardly_tell_apart_are_still_separate(kind):
    middle = 0.3
    cluster = [middle]
    for _ in range(5):
        cluster.append(float(np.nextafter(cluster[-1], 1)))
    domain = pt.Arms(np.array([*cluster, 0.9])[:, None] * 1e-3, [0.0], [1e-3])
    small = {"noise": pt.Gaussian(1e-9), "nu1": 1e30, "rho": 0.9} if "hoo" in kind else {}
    policy = MAKERS[kind](domain, **({"h_max": 500} if "soo" in kind else small))
    seen = set()
    for _ in range(490):
        x = policy.ask()
        seen.add(x.tobytes())
        policy.tell(x, -float(x[0]))
    assert len(seen) == domain.size


@every_policy
def test_twenty_dimensions(kind):
    domain = pt.Box([-1.0] * 20, [2.0] * 20)
    policy, f, points = MAKERS[kind](domain), bumpy(domain), set()
    for _ in range(300):
        x = policy.ask()
        points.add(x.tobytes())
        policy.tell(x, f(x))
    assert len(points) > (60 if kind == "stosoo" else 250)
    assert f(policy.recommend().x) >= f(np.full(20, 0.5)) - 0.05


@every_policy
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (1e8, 1e8 + 1), (-1e-300, 1e-300), (-1e300, 1e299)])
def test_cells_stay_apart_however_deep(kind, bounds):
    """A sharp peak, no noise: the search goes as deep as it may."""
    domain = pt.Box([bounds[0]], [bounds[1]])
    settings = {"h_max": 1000} if kind in ("soo", "stosoo") else {}
    if "hoo" in kind:
        settings = {"noise": pt.Gaussian(1e-30), "nu1": 1e-6}
    policy, seen = MAKERS[kind](domain, **settings), {}
    side = bounds[1] - bounds[0]
    for _ in range(400):
        x = policy.ask()
        assert bounds[0] < x[0] < bounds[1]
        seen[float(x[0])] = seen.get(float(x[0]), 0) + 1
        policy.tell(x, -math.sqrt(abs((x[0] - bounds[0]) / side - 0.3)))
    tree = policy._tree
    centres = [float(tree.x(node)[0]) for node in range(len(tree))]
    if kind == "hoo":
        assert len(set(centres)) == len(centres)
    else:  # a middle child keeps its parent's
        middle = sum(tree.width[node] == 3 for node in range(len(tree)))
        assert len(set(centres)) == len(centres) - middle
    if kind in EXACT:
        best = policy.recommend().x[0]
        assert abs((best - bounds[0]) / side - 0.3) < 1e-6


@every_policy
def test_nothing_known_yet(kind):
    for domain in (pt.Box([0.0], [4.0]), pt.Grid(5)):
        found = MAKERS[kind](domain).recommend()
        assert found.x.tolist() == [2.0 if not domain.finite else 0.5]
        assert (found.mean, found.lower, found.upper) == (0.0, -math.inf, math.inf)
    assert MAKERS[kind](domain).guarantee == "none"


@pytest.mark.parametrize("kind", EXACT)
def test_exact_policies_average_repeated_values(kind):
    policy = MAKERS[kind](pt.Box([0.0], [1.0]))
    x = policy.ask()
    policy.tell(x, 1.0)
    policy.tell(x, 4.0)
    assert policy.recommend()[1:] == (2.5, -math.inf, math.inf)


@pytest.mark.parametrize("kind", EXACT)
def test_a_told_representative_is_not_asked_for(kind):
    domain = pt.Box([-2.0], [3.0])
    reference, ahead = MAKERS[kind](domain), MAKERS[kind](domain)
    f, points = bumpy(domain), []
    for _ in range(12):
        points.append(reference.ask())
        reference.tell(points[-1], f(points[-1]))
    for x in points[3:8]:
        ahead.tell(x, f(x))
    ahead.tell([0.1234], 0.0)  # no representative: changes nothing
    for x in [*points[:3], *points[8:]]:
        assert np.array_equal(ahead.ask(), x)
        ahead.tell(x, f(x))


def test_evaluations_told_ahead_count_for_stosoo():
    policy = StoSOO(pt.Box([0.0], [1.0]), horizon=500, noise=pt.Gaussian(1.0), k=3)
    centres = [[1 / 2], [1 / 6], [1 / 6], [1 / 6], [5 / 6]]
    policy.tell(centres, [0.5, 0.4, 0.4, 0.4, 0.3])
    assert played(policy, lambda x: 0.5, 4) == pytest.approx([1 / 2, 1 / 2, 5 / 6, 5 / 6])
    assert policy.recommend().x.tolist() == [0.5]


def test_a_leaf_told_before_its_sweep_is_not_asked_for_twice():
    policy, met = StoSOO(pt.Box([0.0], [1.0]), horizon=500, noise=pt.Gaussian(0.1), k=2), 0
    for _ in range(60):
        x = policy.ask()
        for leaf in policy._fresh[::2]:  # made in this sweep, to take part in the next
            policy.tell(policy._tree.x(leaf), -abs(policy._tree.x(leaf)[0] - 0.3))
            met += 1
        others = [policy.ask() for _ in range(3)]
        if len(policy._tree) > 13:
            assert len({y.tobytes() for y in (x, *others)}) == 4
        for y in (x, *others):
            policy.tell(y, -abs(y[0] - 0.3))
    assert met > 20


@pytest.mark.parametrize("kind", EXACT)
def test_told_points_that_are_no_representatives_can_be_recommended(kind):
    policy = MAKERS[kind](pt.Box([0.0], [1.0]))
    policy.tell(policy.ask(), 0.0)
    policy.tell([0.777], 5.0)
    found = policy.recommend()
    assert (found.x.tolist(), found.mean) == ([0.777], 5.0)


# -- regret ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [1, 2])
def test_regret_of_hoo_is_sublinear(dim):
    domain, rng = pt.Box([0.0] * dim, [1.0] * dim), np.random.default_rng(0)
    policy = HOO(domain, horizon=8000, noise=pt.Gaussian(0.1), nu1=2.0**dim / 2)
    losses = np.empty(8000)
    for t in range(8000):
        x = policy.ask()
        losses[t] = np.abs(x - 0.3).max()
        policy.tell(x, -losses[t] + 0.1 * rng.normal())
    assert losses[-1000:].mean() < losses[:1000].mean() / 2
    uniform = np.abs(rng.random((8000, dim)) - 0.3).max(axis=1).mean()
    assert losses.mean() < uniform / 3
    assert np.abs(policy.recommend().x - 0.3).max() < 0.03


@pytest.mark.parametrize("dim", [1, 2])
def test_loss_of_stosoos_recommendation_falls(dim):
    domain, loss = pt.Box([0.0] * dim, [1.0] * dim), {}
    for n in (50, 5000):
        losses = []
        for seed in range(4):
            rng = np.random.default_rng(seed)
            peak = rng.random(dim)
            policy = StoSOO(domain, horizon=n, noise=pt.Gaussian(0.1))
            for _ in range(n):
                x = policy.ask()
                policy.tell(x, -np.abs(x - peak).max() + 0.1 * rng.normal())
            losses.append(np.abs(policy.recommend().x - peak).max())
        loss[n] = np.mean(losses)
    assert loss[5000] < loss[50] / 2
    assert loss[5000] < 0.05 * dim


def test_a_long_run_stays_shallow_and_flat():
    """The tree of truncated HOO stops growing; without a horizon it has two nodes a play."""
    policy = HOO(pt.Box([0.0], [1.0]), horizon=3000, noise=pt.Gaussian(0.1))
    free = HOO(pt.Box([0.0], [1.0]), noise=pt.Gaussian(0.1))
    rng = np.random.default_rng(0)
    for _ in range(3000):
        for each in (policy, free):
            x = each.ask()
            each.tell(x, -abs(x[0] - 0.3) + 0.1 * rng.normal())
    limit = math.ceil((math.log(3000) / 2 - math.log(0.2)) / math.log(2))
    assert max(policy._tree.depth) == limit
    assert len(policy._tree) < 1000
    assert len(free._tree) == 3 + 2 * 3000
    assert max(free._tree.depth) < 30


# -- the tree --------------------------------------------------------------------------------------


@every_domain
@pytest.mark.parametrize("parts", [2, 3])
def test_leaves_hold_what_exact_cells_hold(where, parts):
    domain = DOMAINS[where]()
    tree, rng = _tree.Tree(domain, parts), np.random.default_rng(0)
    twins = {0: Cell.whole(domain, parts)}
    for _ in range(30):
        leaves = [node for node in twins if tree.first[node] < 0]
        node = leaves[rng.integers(len(leaves))]
        children = tree.split(node)
        cells = list(twins[node].children()) if twins[node].divisible else []
        assert len(children) == len(cells)
        twins.update(zip(children, cells, strict=True))
    for node, cell in twins.items():
        assert np.array_equal(tree.x(node), cell.x)
        assert tree.radius(node) == pytest.approx(cell.radius, rel=1e-12, abs=1e-15)
        assert tree.divisible(node) == cell.divisible
        assert tree.depth[node] == cell.depth
    for x in anywhere(domain, rng, 100):
        leaf = tree.leaf(int(tree.locate(x[None])[0]))
        assert tree.first[leaf] < 0
        cell = twins[leaf]
        unit = (x - domain.lower) / (domain.upper - domain.lower)
        for axis, low in enumerate(cell.lower):
            assert float(low) <= unit[axis] <= float(low + cell.side(axis))
        if domain.finite:
            assert int(domain.index_of(x[None])[0]) in cell.arms


def test_the_tree_itself_pickles_and_refuses_to_split_what_it_cannot():
    tree = _tree.Tree(pt.Box([0.0], [1.0]), 3)
    node = 0
    while children := tree.split(node):
        node = children[0]
    assert tree.depth[node] == _tree.MAX_LEVEL[3]
    assert not tree.divisible(node)
    again = pickle.loads(pickle.dumps(tree))
    assert again.depth == tree.depth
    assert np.array_equal(again.x(node), tree.x(node))
    coarse = _tree.Tree(pt.Box([1e8], [1e8 + 1]), 2)
    assert coarse._max_depth < 24
