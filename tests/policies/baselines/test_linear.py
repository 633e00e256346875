"""The linear model, OFUL and ConfidenceBall against plain formulas.

The slow twins here keep the raw observations and solve from scratch at every step, in the kernel's
form (k(x, x') = c² + xᵀx', n by n matrices) where the library works with features.
"""

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from support.linear import drive, failures, first_best, gp, linear_kernel, plane

import partita as pt
from partita.gp import linear
from partita.gp.linear import LinearPosterior, linear_features
from partita.partition.sites import arm_priorities
from partita.policies.baselines.confidence_ball import ConfidenceBall, barycentric_spanner
from partita.policies.baselines.oful import OFUL

NOISE = pt.Gaussian(0.3)
KINDS = {"oful": OFUL, "ball": ConfidenceBall}
every_kind = pytest.mark.parametrize("kind", KINDS)

TWINS = 0.5 + 1e-13 * np.arange(4)[:, None] * [
    1.0,
    0.0,
]  # four arms that features hardly tell apart
DOMAINS = {
    "grid1": pt.Grid(7),
    "grid2": pt.Grid(4, dim=2),
    "arms": pt.Arms(np.random.default_rng(1).uniform(-3, 5, (25, 3)), -3, 5),
    "one": pt.Arms([[0.25, 0.75]]),
    "same": pt.Arms(np.concatenate([TWINS, [[0.1, 0.9], [0.9, 0.1]]])),
    "flat": pt.Arms([[t, 1 - 2 * t, 0.5] for t in (0.0, 0.125, 0.25, 0.5)]),  # they span a plane
    "wide": pt.Arms(np.random.default_rng(2).uniform(0, 1, (3, 9))),  # more features than arms
    "box1": pt.Box([-1.0], [3.0]),
    "box3": pt.Box([0.0, -2.0, 1.0], [1.0, 2.0, 1.5]),
}
everywhere = pytest.mark.parametrize("where", DOMAINS)


def make(kind, domain, *, norm_bound=1.0, noise=NOISE, **more):
    return KINDS[kind](domain, norm_bound=norm_bound, noise=noise, **more)


def box_corners(domain):
    """Corners in the order of the policy: the first coordinate changes fastest."""
    sides = zip(domain.lower[::-1], domain.upper[::-1], strict=True)
    return np.array(list(itertools.product(*sides)))[:, ::-1]


def candidates(domain):
    return box_corners(domain) if isinstance(domain, pt.Box) else domain.points


# -- the model -------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [0.0, 1.0, 2.5])
@pytest.mark.parametrize("where", ["grid2", "arms", "one", "same", "flat", "wide"])
def test_model_is_the_gaussian_process_of_the_linear_kernel(where, intercept, monkeypatch):
    """With updates and fits from scratch; plays at arms, elsewhere, and in bulk."""
    monkeypatch.setattr(linear, "REFIT_AFTER", 50)
    rng = np.random.default_rng(0)
    domain, alpha, kernel = DOMAINS[where], 0.4, linear_kernel(intercept)
    arms = domain.points
    model = LinearPosterior(linear_features(arms, intercept), alpha)
    X, y = np.empty((0, domain.dim)), np.empty(0)
    for step in range(230):
        value = rng.normal()
        if step % 7 == 3:
            x = rng.uniform(-1, 1, domain.dim)
            model.observe_at(linear_features(x[None], intercept)[0], value)
        elif step == 150:
            more, values = rng.integers(0, len(arms), 20), rng.normal(size=20)
            model.observe_many(more, values)
            X, y = np.concatenate([X, arms[more]]), np.append(y, values)
            continue
        else:
            j = int(rng.integers(len(arms)))
            x = arms[j]
            model.observe(j, value)
        X, y = np.concatenate([X, x[None]]), np.append(y, value)
        if step % 20 == 0 or step in {48, 49, 50}:
            mean, std = gp(kernel, alpha, X, y, arms)
            np.testing.assert_allclose(model.mean, mean, atol=1e-9)
            np.testing.assert_allclose(model.std, std, atol=1e-7)
            gain = 0.5 * np.linalg.slogdet(np.eye(len(X)) + kernel(X, X) / alpha)[1]
            assert model.gain == pytest.approx(gain, abs=1e-9)
    at = rng.uniform(-2, 2, (8, domain.dim))
    np.testing.assert_allclose(
        model.at(linear_features(at, intercept)), gp(kernel, alpha, X, y, at), atol=1e-7
    )
    plan = model.plan()
    before = model.std.copy()
    for j in (0, len(arms) - 1, 0):
        plan.add(j)
        X, y = np.concatenate([X, arms[j : j + 1]]), np.append(y, 0.0)
        np.testing.assert_allclose(plan.std, gp(kernel, alpha, X, y, arms)[1], atol=1e-7)
    np.testing.assert_array_equal(model.std, before)


def test_model_is_scikit_learns():
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import DotProduct

    rng = np.random.default_rng(3)
    arms = rng.uniform(-1, 1, (9, 2))
    model = LinearPosterior(linear_features(arms, 1.0), 0.7)
    plays, values = rng.integers(0, 9, 15), rng.normal(size=15)
    for j, value in zip(plays, values, strict=True):
        model.observe(j, value)
    theirs = GaussianProcessRegressor(DotProduct(1.0), alpha=0.7, optimizer=None)
    mean, std = theirs.fit(arms[plays], values).predict(arms, return_std=True)
    np.testing.assert_allclose(model.mean, mean, atol=1e-10)
    np.testing.assert_allclose(model.std, std, atol=1e-10)


def test_model_by_hand():
    """Two orthogonal arms, α = 1: each is a mean of its own values and a 0."""
    model = LinearPosterior(np.eye(2), 1.0)
    np.testing.assert_array_equal([model.mean, model.std], [[0, 0], [1, 1]])
    model.observe(0, 2.0)
    np.testing.assert_allclose([model.mean, model.std], [[1, 0], [math.sqrt(1 / 2), 1]])
    assert model.gain == pytest.approx(0.5 * math.log(2))
    model.observe(0, 4.0)
    model.observe(1, -1.0)
    np.testing.assert_allclose(model.mean, [2.0, -0.5])
    np.testing.assert_allclose(model.std, np.sqrt([1 / 3, 1 / 2]))
    assert model.gain == pytest.approx(0.5 * math.log(3 * 2))


def test_rounding_does_not_pile_up():
    """12,000 plays of arms of norm 1e4: updates against one fit."""
    rng = np.random.default_rng(0)
    features = linear_features(rng.uniform(0.9e4, 1e4, (12, 2)), 1.0)
    model, twin = LinearPosterior(features, 1.0), LinearPosterior(features, 1.0)
    plays, values = rng.integers(0, 12, 12_000), rng.normal(size=12_000)
    for j, value in zip(plays.tolist(), values.tolist(), strict=True):
        model.observe(j, value)
    twin.observe_many(plays, values)
    np.testing.assert_allclose(model.std, twin.std, rtol=1e-6)
    np.testing.assert_allclose(model.mean, twin.mean, rtol=1e-4, atol=1e-5)
    assert model.gain == pytest.approx(twin.gain, rel=1e-9)


def test_fits_from_scratch_are_rare(monkeypatch):
    fits = []
    refit = LinearPosterior.refit
    monkeypatch.setattr(LinearPosterior, "refit", lambda self: fits.append(step) or refit(self))
    model = LinearPosterior(np.eye(3), 1.0)
    for step in range(1, 1000):
        model.observe(step % 3, 0.1)
    assert fits == [256, 512, 768]


# -- the policies against slow twins ---------------------------------------------------------------


@dataclass
class Slow:
    """What was told and what is pending, and the choice of OFUL, all from scratch."""

    policy: object
    arms: np.ndarray
    told: list = field(default_factory=list)  # (x, value)
    pending: list = field(default_factory=list)  # x

    def data(self):
        X = np.array([x for x, _ in self.told]).reshape(-1, self.policy.domain.dim)
        return X, np.array([value for _, value in self.told])

    def ask(self):
        p = self.policy
        kernel = linear_kernel(p.intercept)
        X, y = self.data()
        mean, std = gp(kernel, p.alpha, X, y, self.arms)
        gain = 0.5 * np.linalg.slogdet(np.eye(len(X)) + kernel(X, X) / p.alpha)[1]
        planned = np.concatenate([X, np.reshape(self.pending, (-1, p.domain.dim))])
        std = gp(kernel, p.alpha, planned, np.zeros(len(planned)), self.arms)[1]
        noise = p.noise.sub_gaussian
        radius = noise * math.sqrt(2 * (gain + math.log(1 / p.delta))) + math.sqrt(p.alpha)
        index = mean + radius * std / math.sqrt(p.alpha)  # norm_bound is 1 in these tests
        return self.remember(first_best(index, arm_priorities(p.seed, len(self.arms))))

    def remember(self, j):
        self.pending.append(self.arms[j])
        return self.arms[j]

    def tell(self, x, value):
        self.cancel(x)
        self.told.append((np.array(x), value))

    def cancel(self, x):
        for i, other in enumerate(self.pending):
            if other.tobytes() == np.asarray(x).tobytes():
                del self.pending[i]
                return


class SlowBall(Slow):
    """ConfidenceBall in feature space, with pseudo-inverses."""

    def ask(self):
        p = self.policy
        features = linear_features(self.arms, p.intercept)
        basis = features[barycentric_spanner(features)[0]]
        X, y = self.data()
        rows = np.concatenate([basis, linear_features(X, p.intercept)])  # A is rowsᵀrows
        theta = np.linalg.pinv(rows, rcond=1e-8) @ np.concatenate([np.zeros(len(basis)), y])
        planned = np.concatenate([X, np.reshape(self.pending, (-1, p.domain.dim))])
        rows = np.concatenate([basis, linear_features(planned, p.intercept)])
        norms = np.linalg.norm(features @ np.linalg.pinv(rows, rcond=1e-8), axis=1)
        t, n = max(len(planned) + 1, 2), len(basis)
        log = math.log(t**2 / p.delta)
        beta = max(128 * n * math.log(t) * log, (8 / 3 * log) ** 2)
        reach = np.linalg.norm(features, axis=1).max() + p.noise.sub_gaussian
        index = features @ theta + reach * math.sqrt(beta) * norms
        return self.remember(first_best(index, arm_priorities(p.seed, len(self.arms))))


@everywhere
@pytest.mark.parametrize("intercept", [0.0, 1.0])
def test_oful_chooses_as_its_slow_twin(where, intercept):
    domain = DOMAINS[where]
    policy = make("oful", domain, alpha=0.7, intercept=intercept, seed=3)
    drive(policy, Slow(policy, candidates(domain)), plane(domain), 70)


@everywhere
@pytest.mark.parametrize("intercept", [0.0, 1.0])
def test_confidence_ball_chooses_as_its_slow_twin(where, intercept):
    domain = DOMAINS[where]
    policy = make("ball", domain, intercept=intercept, seed=3)
    drive(policy, SlowBall(policy, candidates(domain)), plane(domain), 70)


@every_kind
def test_equal_arms_are_all_played(kind):
    """f is 0 and the arms are symmetric: ties are broken by priority, and none is forgotten."""
    arms = pt.Arms(np.concatenate([np.eye(4), -np.eye(4)]), -1, 1)
    policy = make(kind, arms, intercept=0.0)
    played = set()
    for _ in range(4 if kind == "oful" else 8):
        x = policy.ask()
        played.add(int(np.flatnonzero(x)[0]))
        policy.tell(x, 0.0)
    assert played == set(range(4))


def test_oful_by_hand():
    """Two orthogonal arms, α = 1, B = 1, L = 1/2, δ = 0.1."""
    policy = OFUL(pt.Arms(np.eye(2)), norm_bound=1.0, noise=pt.SubGaussian(0.5), intercept=0.0)
    start = 0.5 * math.sqrt(2 * math.log(10)) + 1
    assert policy._width(1) == pytest.approx(start)
    # |f| ≤ 1 is narrower than that, and is what is said of f.
    np.testing.assert_allclose(policy.predict(np.eye(2)), [[0, 0], [1, 1], [-1, -1], [1, 1]])
    assert policy.certificate() == pytest.approx(2.0)
    for _ in range(8):
        policy.tell([1.0, 0.0], 0.9)
    radius = 0.5 * math.sqrt(2 * (0.5 * math.log(9) + math.log(10))) + 1
    mean, std = 8 / 9 * 0.9, 1 / 3
    np.testing.assert_allclose(
        policy.predict([[1.0, 0.0]]), np.array([[mean, std, mean - radius * std, 1.0]]).T
    )
    assert mean - radius * std > 0.0  # so this arm has the better lower bound
    assert policy.recommend().x.tolist() == [1.0, 0.0]
    assert policy.certificate() == pytest.approx(1.0 - (mean - radius * std))
    np.testing.assert_array_equal(policy.ask(), [0.0, 1.0])  # radius > mean + radius/3


def test_confidence_ball_by_hand():
    """Two orthogonal arms are their own spanner, and A starts as the identity."""
    policy = ConfidenceBall(
        pt.Arms(np.eye(2)), norm_bound=2.0, noise=pt.Uniform(-1, 1), delta=0.5, intercept=0.0
    )
    for _ in range(3):
        policy.tell([0.0, 1.0], 1.0)
    beta = 128 * 2 * math.log(4) * math.log(16 / 0.5)
    assert beta > (8 / 3 * math.log(32)) ** 2
    assert policy._width(4) == pytest.approx(3 * math.sqrt(beta))  # |y| ≤ 2 + 1
    got = policy.predict(np.eye(2))
    np.testing.assert_allclose(got.mean, [0.0, 0.75], atol=1e-12)
    np.testing.assert_allclose(got.std, [1.0, 0.5])
    np.testing.assert_array_equal([got.lower, got.upper], [[-2, -2], [2, 2]])
    np.testing.assert_array_equal(policy.ask(), [1.0, 0.0])
    few = ConfidenceBall(pt.Arms([[1.0]]), norm_bound=1.0, noise=NOISE, delta=1e-9, intercept=0.0)
    assert few._width(2) == pytest.approx(1.3 * 8 / 3 * math.log(4e9))  # the other branch of β


@pytest.mark.parametrize(
    ("noise", "reach"),
    [
        (pt.Uniform(-2, 2), 2.0),
        (pt.Bounded(-1, 3), 4.0),
        (pt.Bernoulli(), 1.0),
        (pt.Gaussian(0.3), 0.3),
        (pt.SubGaussian(0.7), 0.7),
    ],
)
def test_confidence_ball_unit(noise, reach):
    policy = make("ball", pt.Arms([[1.0], [0.5]]), norm_bound=3.0, noise=noise, intercept=0.0)
    assert policy._unit == pytest.approx(3.0 + reach)
    assert reach >= noise.sub_gaussian  # on which its bounds rest


# -- the spanner -----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rank", [1, 2, 4, 6])
def test_spanner(seed, rank):
    """Independent rows, of full rank, from which every row is made with coefficients in [−1, 1]."""
    rng = np.random.default_rng(seed)
    vectors = rng.standard_cauchy((60, rank)) @ rng.normal(size=(rank, 6))
    rows, matrix = barycentric_spanner(vectors)
    assert len(set(rows.tolist())) == np.linalg.matrix_rank(vectors[rows]) == rank
    coefficients = np.linalg.lstsq(vectors[rows].T, vectors.T, rcond=None)[0].T
    np.testing.assert_allclose(vectors @ matrix, coefficients, atol=1e-6)
    assert np.abs(coefficients).max() <= 1 + 1e-5


def test_spanner_of_a_plain_set_needs_exchanges():
    """A set where the first choice of rows is not a spanner yet, by brute force over all pairs."""
    found = 0
    for seed in range(20):
        vectors = np.random.default_rng(seed).normal(size=(12, 2))
        good = set()
        for i, j in itertools.combinations(range(12), 2):
            coefficients = vectors @ np.linalg.inv(vectors[[i, j]])
            if np.abs(coefficients).max() <= 1 + 1e-6:
                good.add((i, j))
        assert tuple(sorted(barycentric_spanner(vectors)[0].tolist())) in good
        found += tuple(np.argsort(-np.linalg.norm(vectors, axis=1))[:2]) not in good
    assert found > 0


def test_the_balls_radius_is_enough():
    """It is never below the radius that Theorem 2 of Abbasi-Yadkori et al. 2011 asks for."""
    for n, delta, t in itertools.product(
        (1, 2, 5, 13, 100), (0.99, 0.5, 0.1, 1e-9), (2, 3, 4, 10, 100, 10**4, 10**8)
    ):
        log = math.log(t**2 / delta)
        beta = max(128 * n * math.log(t) * log, (8 / 3 * log) ** 2)
        coefficient = (1 + 1e-6) ** 2
        log_det = n * math.log(1 + (t - 1) * coefficient)
        assert math.sqrt(log_det + 2 * math.log(1 / delta)) + math.sqrt(n) < math.sqrt(beta)


# -- boxes -----------------------------------------------------------------------------------------


@every_kind
@pytest.mark.parametrize("where", ["box1", "box3"])
def test_the_index_on_a_box_is_highest_at_a_corner(kind, where):
    domain, rng = DOMAINS[where], np.random.default_rng(0)
    policy, f = make(kind, domain), plane(domain)
    X = rng.uniform(domain.lower, domain.upper, (9, domain.dim))
    policy.tell(X[:8], [f(x) for x in X[:8]])
    policy.tell(X[8], f(X[8]))
    for _ in range(12):
        x = policy.ask()
        assert all((x == domain.lower) | (x == domain.upper))
        inside = rng.uniform(domain.lower, domain.upper, (200, domain.dim))
        model, width = policy._model, policy._width(policy.told + 1)
        mean, std = model.at(policy._features(np.concatenate([x[None], inside])))
        assert (mean + width * std)[0] >= (mean + width * std).max() - 1e-8
        policy.tell(x, f(x) + rng.normal(scale=0.1))
    assert policy.recommend().x.tolist() in box_corners(domain).tolist()


@pytest.mark.parametrize("where", ["box1", "box3", "grid2", "arms"])
def test_oful_predictions(where):
    """Anywhere on a box, at the arms otherwise, from what was told wherever it was told."""
    domain, rng = DOMAINS[where], np.random.default_rng(0)
    policy, f = make("oful", domain, alpha=0.5), plane(domain)
    pool = candidates(domain)
    if isinstance(domain, pt.Box):
        pool = np.concatenate([pool, rng.uniform(domain.lower, domain.upper, (6, domain.dim))])
    X = pool[rng.integers(0, len(pool), 30)]
    y = np.array([f(x) for x in X]) + rng.normal(scale=0.3, size=30)
    for x, value in zip(X[:10], y[:10], strict=True):
        policy.tell(x, value)
    policy.tell(X[10:], y[10:])
    mean, std = gp(linear_kernel(1.0), 0.5, X, y, pool)
    gain = 0.5 * np.linalg.slogdet(np.eye(30) + linear_kernel(1.0)(X, X) / 0.5)[1]
    width = 0.3 * math.sqrt(2 * (gain + math.log(10)) / 0.5) + 1.0
    most = np.sqrt(1 + (pool**2).sum(axis=1))
    got = policy.predict(pool)
    np.testing.assert_allclose(got.mean, mean, atol=1e-9)
    np.testing.assert_allclose(got.std, std, atol=1e-9)
    np.testing.assert_allclose(got.lower, np.maximum(mean - width * std, -most), atol=1e-8)
    np.testing.assert_allclose(got.upper, np.minimum(mean + width * std, most), atol=1e-8)
    recommended = policy.recommend()
    at = policy.predict(candidates(domain))
    assert recommended.lower == pytest.approx(at.lower.max(), abs=1e-8)
    assert policy.certificate() == pytest.approx(at.upper.max() - at.lower.max(), abs=1e-8)
    assert len(policy.predict(pool[:0]).mean) == 0


def test_boxes_of_many_dimensions():
    policy = make("oful", pt.Box(np.zeros(12), np.ones(12)))
    policy.tell(policy.ask(), 0.1)
    for kind in KINDS:
        with pytest.raises(pt.PartitaError, match=r"13 dimensions.*at most 12.*Arms"):
            make(kind, pt.Box(np.zeros(13), np.ones(13)))


# -- do the bounds hold? ---------------------------------------------------------------------------


def random_plane(kind, noise, **more):
    def build(seed, rng):
        domain = pt.Arms(rng.uniform(-1, 1, (10, 2)), -1, 1)
        policy = make(kind, domain, noise=noise, norm_bound=1.0, seed=seed, **more)
        return policy, plane(domain, seed)

    return build


def test_bounds_hold():
    assert failures(random_plane("oful", pt.Gaussian(1.0)), 200, 30, every=3) <= 20  # δ = 0.1


def test_bounds_fail_with_too_small_a_noise_constant():
    assert failures(random_plane("oful", pt.SubGaussian(0.1)), 50, 40) > 25


def test_contradictions_are_said():
    policy = make("oful", pt.Grid(3), noise=pt.SubGaussian(1e-3))
    for _ in range(50):
        policy.tell([1.0], 9.0)  # |f| ≤ √2
    with pytest.warns(pt.TheoryWarning, match="norm_bound or the noise constant is too small"):
        assert policy.certificate() == math.inf
    with pytest.warns(pt.TheoryWarning, match="lower bound"):
        policy.predict([[1.0]])
    with pytest.warns(pt.TheoryWarning, match="lower bound"):
        policy.recommend()


def regret_fraction(policy, steps, seed=0):
    """Regret of a run on a plane as a part of uniform sampling's, noise N(0, 0.3²)."""
    rng, f = np.random.default_rng(seed), plane(policy.domain, seed)
    truth = np.array([f(x) for x in policy.domain.points])
    total = 0.0
    for _ in range(steps):
        x = policy.ask()
        total += truth.max() - f(x)
        policy.tell(x, f(x) + rng.normal(scale=0.3))
    return total / steps / (truth.max() - truth.mean())


def test_regret_of_both():
    """OFUL finds the best arm soon; ConfidenceBall's constants keep it exploring."""
    for seed in range(2):
        assert regret_fraction(make("oful", pt.Grid(10, dim=2)), 1500, seed) < 0.2
        assert regret_fraction(make("ball", pt.Grid(10, dim=2)), 1500, seed) > 0.8


# -- behind the same few methods -------------------------------------------------------------------


@every_kind
def test_guarantee(kind):
    assert KINDS[kind].guarantee == "proven"


@every_kind
def test_seeds_break_ties(kind):
    arms = pt.Arms(np.eye(6))
    first = [make(kind, arms, seed=s, intercept=0.0).ask().tobytes() for s in range(9)]
    assert len(set(first)) > 2
    assert first == [make(kind, arms, seed=s, intercept=0.0).ask().tobytes() for s in range(9)]


@every_kind
@pytest.mark.parametrize("where", ["grid2", "arms", "box3"])
def test_asking_and_cancelling_leaves_no_trace(kind, where):
    f = plane(DOMAINS[where])
    policy, twin = make(kind, DOMAINS[where]), make(kind, DOMAINS[where])
    for _ in range(12):
        for x in [policy.ask() for _ in range(4)]:
            policy.cancel(x)
        x = policy.ask()
        np.testing.assert_array_equal(x, twin.ask())
        policy.tell(x, f(x))
        twin.tell(x, f(x))
    np.testing.assert_array_equal(
        policy.predict(candidates(policy.domain)), twin.predict(candidates(policy.domain))
    )


@every_kind
def test_pending_points_do_not_touch_what_is_said_of_f(kind):
    policy = make(kind, pt.Grid(4, dim=2))
    policy.tell(policy.domain.points, np.linspace(-0.5, 0.5, 16))
    before = np.ravel(policy.predict(policy.domain.points))
    certificate, lower = policy.certificate(), policy.recommend().lower
    for _ in range(6):
        policy.ask()
    np.testing.assert_array_equal(np.ravel(policy.predict(policy.domain.points)), before)
    assert (policy.certificate(), policy.recommend().lower) == (certificate, lower)
