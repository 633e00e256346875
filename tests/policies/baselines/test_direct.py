"""DIRECT against SciPy, against its definition, and in parallel."""

import ctypes
import math
import os
import pickle

import numpy as np
import pytest
import scipy.optimize
from support.trees import DOMAINS, anywhere, bumpy

import partita as pt
from partita.policies.baselines.direct import DIRECT

# -- functions to minimise, without symmetries -----------------------------------------------------


def branin(x):
    a = x[1] - 5.1 / (4 * math.pi**2) * x[0] ** 2 + 5 / math.pi * x[0] - 6
    return a**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x[0]) + 10


def six_hump_camel(x):
    u, v = x
    return (4 - 2.1 * u**2 + u**4 / 3) * u**2 + u * v + (4 * v**2 - 4) * v**2


def wiggly(x):
    return math.sin(13 * x[0]) * math.sin(27 * x[0]) / 2 + 0.5


def skew(x):
    return sum((i + 1) * abs(v - 0.31 * (i + 1) / len(x)) ** 1.3 for i, v in enumerate(x))


def shifted(x):
    return skew(x) - 100.0  # a best value far from zero: ε matters


CASES = {
    "branin": (branin, [-5.0, 0.0], [10.0, 15.0]),
    "camel": (six_hump_camel, [-3.0, -2.0], [3.0, 2.0]),
    "wiggly": (wiggly, [0.0], [1.0]),
    "skew 3d": (skew, [0.0] * 3, [1.0] * 3),
    "skew 5d": (skew, [-0.5] * 5, [1.0] * 5),
    "shifted": (shifted, [0.0] * 2, [1.0] * 2),
}
every_case = pytest.mark.parametrize("name", CASES)


def keys(points, lower, upper):
    """Points on the lattice of thirds, as whole numbers."""
    unit = (np.array(points) - lower) / (np.array(upper) - lower)
    return {tuple(row) for row in np.rint(unit * 2 * 3**27).astype(int).tolist()}


def points_of(policy, f, count):
    points = []
    for _ in range(count):
        x = policy.ask()
        points.append(x.tolist())
        policy.tell(x, -f(x))
    return points


def is_boundary(policy):
    """Whether an iteration has just ended."""
    return not policy._queue and not policy._open


# -- SciPy -----------------------------------------------------------------------------------------


def scipy_points(f, lower, upper, iterations, epsilon, log):
    """What SciPy's compiled code evaluates; its log, if it writes one, goes nowhere."""
    compiled = pytest.importorskip("scipy.optimize._direct").direct
    points = []

    def watched(x, *_):
        points.append(list(x))
        return float(f(x))

    def run():
        low, high = np.array(lower), np.array(upper)
        limits = (10**6, iterations, 0, -np.inf, 0.0, 0.0, 0.0, None)
        compiled(watched, low, high, (), log, epsilon, *limits)

    if not log:
        run()
        return points
    nowhere, out = os.open(os.devnull, os.O_WRONLY), os.dup(1)
    os.dup2(nowhere, 1)
    try:
        run()
        ctypes.CDLL(None).fflush(None)
    finally:
        os.dup2(out, 1)
        os.close(out)
        os.close(nowhere)
    return points


@pytest.mark.skipif(os.name == "nt", reason="the log is silenced by POSIX means")
@pytest.mark.parametrize("epsilon", [1e-4, 0.0, 0.05])
@every_case
def test_points_are_scipys(name, epsilon):
    """SciPy's code with its log on is DIRECT as published: the same points after each iteration."""
    f, lower, upper = CASES[name]
    policy = DIRECT(pt.Box(lower, upper), epsilon=epsilon)
    ours = []
    for iterations in (1, 5, 12, 25):
        theirs = scipy_points(f, lower, upper, iterations, epsilon, log=True)
        ours += points_of(policy, f, len(theirs) - len(ours))
        assert is_boundary(policy)
        assert keys(ours, lower, upper) == keys(theirs, lower, upper)
    assert len(ours) == len(keys(ours, lower, upper))
    assert len(ours) > 60


class OffTheHull(DIRECT):
    """SciPy's rule without a log: rectangles off the hull are kept, and skip the test with ε."""

    def _potentially_optimal(self):
        corners = self._corners()  # the smallest size first
        goal = -self._best - self.epsilon * abs(self._best)
        kept = []
        for i, corner in enumerate(corners):
            larger = corners[i + 1 :]
            if any(other.loss <= corner.loss for other in larger):
                continue
            above = [(o.loss - corner.loss) / (o.size - corner.size) for o in larger]
            below = [(corner.loss - o.loss) / (corner.size - o.size) for o in kept]
            least = min(above, default=math.inf)
            if max(below, default=0.0) <= least and corner.loss - least * corner.size > goal:
                continue
            kept.append(corner)
        return [corner.depth for corner in kept]


@every_case
def test_what_scipys_function_does_otherwise_is_known(name):
    """`scipy.optimize.direct` divides rectangles off the hull, unless that has been mended."""
    f, lower, upper = CASES[name]
    theirs = []

    def watched(x):
        theirs.append(x.tolist())
        return float(f(x))

    bounds = list(zip(lower, upper, strict=True))
    settings = {"locally_biased": False, "maxiter": 20, "maxfun": 10**6, "vol_tol": 0, "len_tol": 0}
    scipy.optimize.direct(watched, bounds, **settings)
    found = []
    for rule in (DIRECT, OffTheHull):
        ours = points_of(rule(pt.Box(lower, upper)), f, len(theirs))
        found.append(keys(ours, lower, upper))
    assert keys(theirs, lower, upper) in found


# -- the definition --------------------------------------------------------------------------------


class Rectangle:
    def __init__(self, centre, level, loss):
        self.centre, self.level, self.loss = centre, level, loss
        self.size = 0.5 * math.sqrt(sum(9.0**-k for k in level))


def potentially_optimal(rectangles, epsilon):
    """By definition: some K > 0 makes the lower bound the least of all, and small enough."""
    least = min(r.loss for r in rectangles)
    found = []
    for r in rectangles:
        low, high = 0.0, math.inf
        for o in rectangles:
            if abs(o.size - r.size) < 1e-12:
                if o.loss < r.loss - 1e-13:
                    break
            elif o.size < r.size:
                low = max(low, (r.loss - o.loss) / (r.size - o.size))
            else:
                high = min(high, (o.loss - r.loss) / (o.size - r.size))
        else:
            bound = r.loss - high * r.size
            if low <= high and high > 0 and bound <= least - epsilon * abs(least):
                found.append(r)
    return found


def naive_direct(f, dim, epsilon, iterations):
    """DIRECT on the unit cube, from the paper: all points, by iteration."""
    root = Rectangle((0.5,) * dim, (0,) * dim, f([0.5] * dim))
    rectangles = [root]
    yield [root.centre]
    for _ in range(iterations):
        points = []
        for r in potentially_optimal(rectangles, epsilon):
            rectangles.remove(r)
            longest = [i for i in range(dim) if r.level[i] == min(r.level)]
            step = 3.0 ** -(min(r.level) + 1)
            beside = {}
            for i in longest:
                for sign in (-1, 1):
                    c = tuple(v + sign * step * (i == j) for j, v in enumerate(r.centre))
                    beside[i, sign] = (c, f(c))
                    points.append(c)
            level = list(r.level)
            for i in sorted(longest, key=lambda i: min(beside[i, -1][1], beside[i, 1][1])):
                level[i] += 1
                rectangles += [
                    Rectangle(c, tuple(level), v) for c, v in (beside[i, -1], beside[i, 1])
                ]
            rectangles.append(Rectangle(r.centre, tuple(level), r.loss))
        yield points


@pytest.mark.parametrize("epsilon", [1e-4, 0.0, 0.3])
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_points_are_those_of_the_definition(dim, epsilon):
    box = pt.Box([0.0] * dim, [1.0] * dim)
    f = bumpy(box)
    policy = DIRECT(box, epsilon=epsilon)
    total = 0
    for expected in naive_direct(lambda x: -f(x), dim, epsilon, 14):
        ours = points_of(policy, lambda x: -f(x), len(expected))
        assert keys(ours, box.lower, box.upper) == keys(expected, box.lower, box.upper)
        assert is_boundary(policy)
        total += len(expected)
    assert total > 30


def test_equal_rectangles_are_divided_together():
    """An even function: what is done on one side is done on the other."""
    policy, points = DIRECT(pt.Box([-1.0, -1.0], [1.0, 1.0])), set()
    for _ in range(12):
        batch = [policy.ask()]
        while policy._queue:
            batch.append(policy.ask())
        for x in batch:
            policy.tell(x, -(abs(x[0]) ** 1.1) - 2.3 * abs(x[1]) ** 1.3)
            points.add(tuple((np.round(x, 9) + 0.0).tolist()))
    assert len(points) > 40
    assert points == {(-a + 0.0, b) for a, b in points} == {(a, -b + 0.0) for a, b in points}


def test_tiny_values_are_not_all_equal():
    f, lower, upper = CASES["skew 3d"]
    box = pt.Box(lower, upper)
    plain = points_of(DIRECT(box), f, 300)
    tiny = points_of(DIRECT(box), lambda x: 2.0**-60 * f(x), 300)
    assert tiny == plain


# -- in parallel -----------------------------------------------------------------------------------


def batch_run(f, lower, upper, size, total, seed=0):
    """Asks `size` points at a time and tells them in random order."""
    policy, rng, points = DIRECT(pt.Box(lower, upper)), np.random.default_rng(seed), []
    while len(points) < total:
        batch = [policy.ask() for _ in range(size)]
        points += [x.tolist() for x in batch]
        for i in rng.permutation(size):
            policy.tell(batch[i], -f(batch[i]))
    return policy, points


@every_case
def test_an_iteration_can_be_pending_at_once(name):
    f, lower, upper = CASES[name]
    one = DIRECT(pt.Box(lower, upper))
    many = DIRECT(pt.Box(lower, upper))
    rng = np.random.default_rng(0)
    for _ in range(12):
        batch = [many.ask()]
        while many._queue:
            batch.append(many.ask())
        assert len({x.tobytes() for x in batch}) == len(batch) == many.pending
        alone = points_of(one, f, len(batch))
        assert keys(alone, lower, upper) == keys(batch, lower, upper)
        for i in rng.permutation(len(batch)):
            many.tell(batch[i], -f(batch[i]))
    assert is_boundary(one)
    assert is_boundary(many)


@every_case
def test_more_asks_than_an_iteration_has_go_on_elsewhere(name):
    f, lower, upper = CASES[name]
    policy, points = batch_run(f, lower, upper, 40, 400)
    distinct = keys(points, lower, upper)
    # The first batch can only be the centre, and the second only what is beside it.
    assert len(distinct) > 250
    alone = DIRECT(pt.Box(lower, upper))
    best = max(-f(x) for x in points_of(alone, f, 400))
    assert policy.recommend().mean > best - 0.1 * abs(best) - 0.05


def test_a_cancelled_point_holds_up_its_rectangle_alone():
    f, lower, upper = CASES["branin"]
    policy = DIRECT(pt.Box(lower, upper))
    points_of(policy, f, 1)
    batch = [policy.ask() for _ in range(4)]
    policy.cancel(batch[2])
    for i in (0, 1, 3):
        policy.tell(batch[i], -f(batch[i]))
    assert not is_boundary(policy)
    again = policy.ask()
    assert np.array_equal(again, batch[2])
    policy.tell(again, -f(again))
    assert is_boundary(policy)


def test_values_told_twice_move_the_best():
    policy = DIRECT(pt.Box([0.0], [1.0]))
    for _ in range(9):
        x = policy.ask()
        policy.tell(x, -abs(x[0] - 0.3))
    best = policy.recommend()
    assert policy._best == best.mean
    policy.tell(best.x, -10.0)
    assert policy._best == policy.recommend().mean < best.mean
    assert not np.array_equal(policy.recommend().x, best.x)
    points = {policy.ask().tobytes() for _ in range(2)}
    assert best.x.tobytes() not in points


def test_the_same_value_told_again_changes_nothing():
    f, lower, upper = CASES["wiggly"]
    once, again = DIRECT(pt.Box(lower, upper)), DIRECT(pt.Box(lower, upper))
    for _ in range(8):
        batch = [once.ask() for _ in range(6)]
        assert [again.ask().tolist() for _ in range(6)] == [x.tolist() for x in batch]
        for x in batch:
            once.tell(x, -f(x))
            again.tell(x, -f(x))
            again.tell(x, -f(x))


def test_pickles_in_the_middle_of_a_division_go_on_alike():
    f, lower, upper = CASES["skew 5d"]
    policy = DIRECT(pt.Box(lower, upper))
    points_of(policy, f, 40)
    batch = [policy.ask() for _ in range(7)]
    policy.tell(batch[3], -f(batch[3]))
    saved = pickle.loads(pickle.dumps(policy))
    for each in (policy, saved):
        for x in (*batch[:3], *batch[4:]):
            each.tell(x, -f(x))
    assert points_of(policy, f, 60) == points_of(saved, f, 60)


# -- finite domains --------------------------------------------------------------------------------


@pytest.mark.parametrize("where", [name for name in DOMAINS if "box" not in name])
def test_each_arm_is_evaluated_once_and_the_best_found(where):
    domain = DOMAINS[where]()
    policy, f = DIRECT(domain), bumpy(domain)
    points = points_of(policy, lambda x: -f(x), domain.size)
    assert len(set(map(tuple, points))) == domain.size
    best = max(map(f, domain.points))
    assert policy.recommend().mean == best
    assert f(policy.ask()) == best  # nothing else is left


def test_a_fine_grid_is_searched_where_it_is_good():
    domain = pt.Grid(101, dim=2)
    f = bumpy(domain)
    policy = DIRECT(domain)
    points_of(policy, lambda x: -f(x), 400)
    values = np.array([f(x) for x in domain.points])
    assert (values > policy.recommend().mean).mean() < 2e-3


def test_told_points_are_used_where_they_are_representatives():
    f, lower, upper = CASES["wiggly"]
    box = pt.Box(lower, upper)
    whole = points_of(DIRECT(box), f, 60)
    policy = DIRECT(box)
    X = np.array(whole[1:40:2])
    policy.tell(X, np.array([-f(x) for x in X]))
    policy.tell(anywhere(box, np.random.default_rng(0), 5), np.zeros(5) - 9.0)
    rest = points_of(policy, f, 60 - len(X))
    assert keys([*rest, *X.tolist()], lower, upper) == keys(whole, lower, upper)
    assert not keys(rest, lower, upper) & keys(X, lower, upper)


@pytest.mark.parametrize(
    ("name", "optimum", "evaluations"),
    [("branin", 0.39788735772973816, 195), ("camel", -1.0316284534898774, 285)],
)
def test_evaluations_are_as_many_as_the_paper_reports(name, optimum, evaluations):
    """Jones et al. 1993: whole iterations until the error is below 0.01%."""
    f, lower, upper = CASES[name]
    policy = DIRECT(pt.Box(lower, upper))
    while not (policy.told and is_boundary(policy)) or -policy.recommend().mean > optimum + (
        1e-4 * abs(optimum)
    ):
        points_of(policy, f, 1)
    assert policy.told == evaluations
