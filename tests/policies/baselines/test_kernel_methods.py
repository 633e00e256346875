"""GP-UCB, KernelUCB and BKB against plain NumPy that starts from the raw history at every step.

Nothing but the kernel and the tie-breaking priorities comes from the code under test: posteriors
are full solves with one row an observation, widths are the papers' formulas written out here.
"""

from __future__ import annotations

import copy
import math
from itertools import combinations_with_replacement

import numpy as np
import pytest
from support.common import DOMAINS, KERNEL, FloatArray, information_gain, synthetic

import partita as pt
from partita.partition.sites import arm_priorities

GRID, ARMS = DOMAINS["grid 2d"](), DOMAINS["arms 2d"]()
SMALL = pt.Grid(11)


class Naive:
    """A Gaussian process with prior covariance amplitude²·k on arms, and Gaussian noise."""

    def __init__(
        self, domain: pt.Grid | pt.Arms, noise: float, amplitude: float = 1.0, kernel=KERNEL
    ) -> None:
        self.prior = amplitude**2 * kernel(domain.unit_points)
        self.noise = noise
        self.arms: list[int] = []
        self.values: list[float] = []

    def posterior(self, pending: tuple[int, ...] = ()) -> tuple[FloatArray, FloatArray]:
        """Mean, and the standard deviation once the pending plays are in."""
        mean = self._solve(self.arms, np.array(self.values))[0]
        both = [*self.arms, *pending]
        return mean, self._solve(both, np.zeros(len(both)))[1]

    def _solve(self, arms: list[int], values: FloatArray) -> tuple[FloatArray, FloatArray]:
        across = self.prior[:, arms]
        gram = self.prior[np.ix_(arms, arms)] + self.noise**2 * np.eye(len(arms))
        weights = np.linalg.solve(gram, across.T)
        variance = np.diagonal(self.prior) - (across * weights.T).sum(axis=1)
        return values @ weights, np.sqrt(np.maximum(variance, 0.0))


def assert_chosen(index: FloatArray, priority: FloatArray, arm: int) -> None:
    """`arm` has the highest index, and the lowest priority among those equal to it by symmetry."""
    scale = max(1.0, float(np.abs(index).max()))
    top = index.max()
    assert index[arm] >= top - 1e-8 * scale
    close, equal = index > top - 5e-9 * scale, index > top - 1e-11 * scale
    if (close == equal).all():
        among = np.flatnonzero(equal)
        assert arm == among[np.argmin(priority[among])]


def follow(policy, naive, width, steps, size=1.0, noise=0.1, batch=1):
    """Play; every ask must be the naive choice, every prediction the naive posterior.

    `width(t)` is that of the t-th choice, `size` the norm of f. With `batch`, so many asks come
    before their tells.
    """
    domain = policy.domain
    rng = np.random.default_rng(0)
    f = synthetic(domain.dim, rng)
    truth = size / f.norm * f(domain.unit_points)
    priority = arm_priorities(policy.seed, domain.size)
    while len(naive.arms) < steps:
        points, pending = [], []
        for _ in range(batch):
            x = policy.ask()
            arm = int(domain.index_of(x[None, :])[0])
            mean, std = naive.posterior(tuple(pending))
            t = len(naive.arms) + len(pending) + 1
            assert_chosen(mean + width(t) * std, priority, arm)
            points.append(x)
            pending.append(arm)
        for x, arm in zip(points[::-1], pending[::-1], strict=True):
            y = float(truth[arm]) + noise * rng.normal()
            policy.tell(x, y)
            naive.arms.append(arm)
            naive.values.append(y)
        mean, std = naive.posterior()
        got = policy.predict(domain.points)
        beta = width(len(naive.arms) + 1)
        scale = max(1.0, beta)
        np.testing.assert_allclose(got.mean, mean, atol=1e-8)
        np.testing.assert_allclose(got.std, std, atol=1e-7)
        most = getattr(policy, "norm_bound", math.inf)  # |f| ≤ B
        upper, lower = np.minimum(mean + beta * std, most), np.maximum(mean - beta * std, -most)
        np.testing.assert_allclose(got.upper, upper, atol=1e-7 * scale)
        np.testing.assert_allclose(got.lower, lower, atol=1e-7 * scale)
    best = policy.recommend()
    assert best.lower == pytest.approx(lower.max(), abs=1e-7 * scale)
    assert policy.certificate() <= upper.max() - best.lower + 1e-7 * scale
    return naive


# -- GP-UCB ----------------------------------------------------------------------------------------


def bayesian(domain: pt.Grid | pt.Arms, delta: float):
    """√β_t, β_t = 2 log(|D| t² π²/(6δ)). Srinivas et al. 2010, Theorem 1."""
    return lambda t: math.sqrt(2 * math.log(domain.size * t**2 * math.pi**2 / (6 * delta)))


@pytest.mark.parametrize("domain", [GRID, ARMS], ids=["grid", "arms"])
@pytest.mark.parametrize(("amplitude", "noise"), [(1.0, 0.1), (3.0, 0.5), (0.2, 0.1)])
def test_gp_ucb_plays_as_the_theorem_says(domain, amplitude, noise):
    """f ~ GP(0, a²k): the posterior is that of the scaled kernel with noise L²."""
    policy = pt.GPUCB(
        domain, kernel=KERNEL, noise=pt.Gaussian(noise), delta=0.2, seed=3, amplitude=amplitude
    )
    assert policy.guarantee == "bayesian"
    follow(policy, Naive(domain, noise, amplitude), bayesian(domain, 0.2), 60, size=amplitude)


def test_gp_ucb_with_pending_points():
    policy = pt.GPUCB(GRID, kernel=KERNEL, noise=pt.Gaussian(0.3), seed=1, amplitude=2.0)
    follow(policy, Naive(GRID, 0.3, 2.0), bayesian(GRID, 0.1), 40, size=2.0, batch=4)


def test_gp_ucb_in_other_units_plays_the_same():
    plain = pt.GPUCB(ARMS, kernel=KERNEL, noise=pt.Gaussian(0.1), amplitude=1.0)
    scaled = pt.GPUCB(ARMS, kernel=KERNEL, noise=pt.Gaussian(100.0), amplitude=1000.0)
    f = synthetic(2, np.random.default_rng(1))
    for _ in range(40):
        x = plain.ask()
        np.testing.assert_array_equal(scaled.ask(), x)
        y = float(f((x - ARMS.lower)[None, :] / (ARMS.upper - ARMS.lower))[0])
        plain.tell(x, y)
        scaled.tell(x, 1000 * y)
    for a, b in zip(plain.predict(ARMS.points), scaled.predict(ARMS.points), strict=True):
        np.testing.assert_allclose(b, 1000 * a, rtol=1e-6, atol=1e-6)


def failures(amplitude: float, noise: float, runs: int) -> int:
    """How many runs see a bound fail, at any step and arm, when f is drawn with deviation 2."""
    domain = pt.Grid(15)
    factor = np.linalg.cholesky(KERNEL(domain.unit_points) + 1e-12 * np.eye(domain.size))
    failed = 0
    for seed in range(runs):
        rng = np.random.default_rng([seed, 7])
        truth = 2.0 * factor @ rng.normal(size=domain.size)
        policy = pt.GPUCB(
            domain, kernel=KERNEL, noise=pt.Gaussian(noise), amplitude=amplitude, seed=seed
        )
        held = True
        for _ in range(25):
            x = policy.ask()
            policy.tell(x, truth[domain.index_of(x[None, :])[0]] + 0.5 * rng.normal())
            got = policy.predict(domain.points)
            held = held and bool(((got.lower <= truth) & (truth <= got.upper)).all())
        best = policy.recommend()
        gap = truth.max() - truth[domain.index_of(best.x[None, :])[0]]
        held = held and gap <= policy.certificate() + 1e-9
        failed += not held
    return failed


@pytest.mark.filterwarnings("ignore::partita.TheoryWarning")
def test_gp_ucb_bounds_hold_when_f_is_drawn_from_the_prior():
    assert failures(2.0, 0.5, 200) <= 0.1 * 200
    assert failures(0.7, 0.5, 40) > 0.1 * 40  # a control: the same test with the wrong prior


def test_gp_ucb_counts_a_wide_prior_in_its_deviations():
    policy = pt.GPUCB(SMALL, kernel=KERNEL, noise=pt.Gaussian(0.1), amplitude=5.0)
    np.testing.assert_allclose(policy.predict(SMALL.points).std, 5.0)


REACHES = [
    (pt.Uniform(-0.7, 0.7), 0.7),
    (pt.Bounded(-1.0, 0.5), 1.5),
    (pt.Bernoulli(), 1.0),
]


def largest_gains(points: FloatArray, alpha: float, steps: int) -> list[float]:
    """The largest information gain of t plays, t = 0, …, steps, over all multisets."""
    best = [0.0]
    for t in range(1, steps + 1):
        choices = combinations_with_replacement(range(len(points)), t)
        best.append(max(information_gain(KERNEL, points[list(c)], alpha) for c in choices))
    return best


@pytest.mark.parametrize(("noise", "reach"), REACHES)
def test_gp_ucb_rkhs_width(noise, reach):
    """√(2B² + 300 γ_t log³(t/δ)), with γ_t between the true one and e/(e−1) times it."""
    domain = pt.Arms(np.array([[0.0], [0.15], [1.0]]))
    policy = pt.GPUCB(domain, kernel=KERNEL, noise=noise, norm_bound=1.5, bound="rkhs", delta=0.05)
    assert policy.guarantee == "published"
    gains = largest_gains(domain.unit_points, reach**2, 12)
    for t in range(1, 13):
        beta = policy.cover[0].width ** 2
        gain = (beta - 2 * 1.5**2) / (300 * math.log(t / 0.05) ** 3)
        assert gains[t] - 1e-9 <= gain <= math.e / (math.e - 1) * gains[t] + 1e-9
        policy.tell(policy.ask(), 0.3)


def test_gp_ucb_rkhs_width_forgets_points_that_were_cancelled():
    """t falls again, and the width with it."""
    policy = pt.GPUCB(
        SMALL, kernel=KERNEL, noise=pt.Uniform(-0.1, 0.1), norm_bound=1.0, bound="rkhs"
    )
    policy.tell(SMALL.points, np.zeros(SMALL.size))
    twin = copy.deepcopy(policy)
    for x in [policy.ask() for _ in range(30)]:
        policy.cancel(x)
    assert policy.cover[0].width == twin.cover[0].width
    got, want = policy.predict(SMALL.points), twin.predict(SMALL.points)
    np.testing.assert_allclose(got.upper, want.upper, rtol=1e-12)


def test_gp_ucb_rkhs_plays_the_highest_bound():
    policy = pt.GPUCB(ARMS, kernel=KERNEL, noise=pt.Uniform(-1, 1), norm_bound=2.0, bound="rkhs")
    naive = Naive(ARMS, 1.0)
    follow(policy, naive, lambda t: width_at(policy, t), 25, noise=0.3)


def width_at(policy: pt.GPUCB, t: int) -> float:
    """The width itself is checked above; here it is taken as it is."""
    from partita.gp.gains import GreedyGain

    bound = GreedyGain(KERNEL, policy.domain, 1.0)(t)
    return math.sqrt(2 * 2.0**2 + 300 * bound * math.log(t / 0.1) ** 3)


# -- KernelUCB -------------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", [GRID, ARMS], ids=["grid", "arms"])
@pytest.mark.parametrize("alpha", [1.0, 0.3])
def test_kernel_ucb_plays_as_the_paper_says(domain, alpha):
    """μ + (η/√α)σ of kernel ridge regression. Valko et al. 2013."""
    policy = pt.KernelUCB(
        domain,
        horizon=60,
        kernel=KERNEL,
        norm_bound=2.0,
        noise=pt.SubGaussian(0.4),
        delta=0.05,
        seed=5,
        alpha=alpha,
    )
    assert policy.guarantee == "none"
    eta = math.sqrt(alpha) * 2.0 + 0.4 * math.sqrt(2 * math.log(2 * 60 * domain.size / 0.05))
    assert policy.exploration == pytest.approx(eta, rel=1e-14)
    follow(policy, Naive(domain, math.sqrt(alpha)), lambda t: eta / math.sqrt(alpha), 60)


def test_kernel_ucb_with_its_own_exploration_and_pending_points():
    policy = pt.KernelUCB(
        GRID,
        horizon=100,
        kernel=KERNEL,
        norm_bound=1.0,
        noise=pt.Gaussian(0.1),
        alpha=0.5,
        exploration=1.5,
    )
    follow(policy, Naive(GRID, math.sqrt(0.5)), lambda t: 1.5 / math.sqrt(0.5), 40, batch=5)


# -- BKB -------------------------------------------------------------------------------------------


def bkb(domain, **settings):
    given = {"horizon": 200, "kernel": KERNEL, "norm_bound": 1.0, "noise": pt.Gaussian(0.1)}
    return pt.BKB(domain, **{**given, **settings})


def nystrom(policy, arms, values):
    """Mean and σ̃² (the paper's times λ) at all arms, with pseudo-inverses of the dictionary.

    Calandriello et al. 2019, section 3: z(x) = (K_S^{1/2})⁺ k_S(x), V = ZᵀZ + λI,
    μ̃ = zᵀV⁻¹Zᵀy, λσ̃² = k(x, x) − zᵀZᵀZV⁻¹z.
    """
    points, chosen = policy.domain.unit_points, policy.dictionary
    eigenvalues, vectors = np.linalg.eigh(KERNEL(points[chosen]))
    kept = eigenvalues > 1e-9
    root = vectors[:, kept] / np.sqrt(eigenvalues[kept])
    z = KERNEL(points, points[chosen]) @ root  # (N, rank)
    Z = z[arms]
    V = Z.T @ Z + policy.alpha * np.eye(Z.shape[1])
    mean = z @ np.linalg.solve(V, Z.T @ values)
    variance = 1.0 - (z * np.linalg.solve(V, Z.T @ Z @ z.T).T).sum(axis=1)
    return mean, variance


def bkb_width(policy, arms, variance):
    """β̃_t/√λ by hand. Theorem 2 of the paper."""
    inflation = (1 + policy.accuracy) / (1 - policy.accuracy)
    played = sum(float(variance[arm]) / policy.alpha for arm in arms)
    inner = inflation * math.log(max(len(arms), 1)) * played + math.log(1 / policy.delta)
    beta = 2 * policy.noise.sub_gaussian * math.sqrt(inner)
    beta += (1 + 1 / math.sqrt(1 - policy.accuracy)) * math.sqrt(policy.alpha) * policy.norm_bound
    return beta / math.sqrt(policy.alpha)


@pytest.mark.parametrize("domain", [GRID, ARMS], ids=["grid", "arms"])
@pytest.mark.parametrize(("budget", "alpha"), [(1.5, 1.0), (0.2, 0.5), (40.0, 2.0)])
def test_bkb_is_the_nystrom_posterior_of_its_dictionary(domain, budget, alpha):
    policy = bkb(domain, budget=budget, alpha=alpha, delta=0.2, accuracy=0.3, seed=2)
    assert policy.guarantee == "none"
    rng = np.random.default_rng(4)
    truth = 0.15 * synthetic(2, rng)(domain.unit_points)
    priority = arm_priorities(2, domain.size)
    arms, values, sizes = [], [], []
    mean, variance = np.zeros(domain.size), np.ones(domain.size)
    for _ in range(60):
        x = policy.ask()
        arm = int(domain.index_of(x[None, :])[0])
        width = bkb_width(policy, arms, variance)
        assert policy.width == pytest.approx(width, rel=1e-7)
        assert_chosen(mean + width * np.sqrt(variance), priority, arm)
        arms.append(arm)
        values.append(float(truth[arm] + 0.1 * rng.normal()))
        policy.tell(x, values[-1])
        assert set(policy.dictionary.tolist()) <= set(arms)
        mean, variance = nystrom(policy, arms, np.array(values))
        np.testing.assert_allclose(policy.mean, mean, atol=1e-7)
        np.testing.assert_allclose(policy.std**2, variance, atol=1e-7)
        sizes.append(policy.dictionary_size / len(set(arms)))
    if budget < 2:
        assert min(sizes[5:]) < 1  # the sketch leaves arms out
    got, width = policy.predict(domain.points), bkb_width(policy, arms, variance)
    reach = width * np.sqrt(variance)
    np.testing.assert_allclose(got.upper, np.minimum(mean + reach, 1.0), atol=1e-6)
    np.testing.assert_allclose(got.lower, np.maximum(mean - reach, -1.0), atol=1e-6)
    best = policy.recommend()
    assert best.lower == pytest.approx(got.lower.max(), abs=1e-8)
    assert policy.certificate() == pytest.approx(got.upper.max() - best.lower, abs=1e-8)


@pytest.mark.parametrize("domain", [GRID, ARMS], ids=["grid", "arms"])
def test_bkb_with_every_played_arm_is_exact(domain):
    policy = bkb(domain, budget=1e12, alpha=0.7)
    assert policy.guarantee == "published"
    naive = Naive(domain, math.sqrt(0.7))
    rng = np.random.default_rng(1)
    for step in range(12):
        n = 1 + step % 3 * 4  # single tells and bulk tells
        arms = rng.integers(domain.size, size=n)
        values = rng.normal(size=n)
        policy.tell(domain.points[arms], values)
        naive.arms += arms.tolist()
        naive.values += values.tolist()
        assert sorted(policy.dictionary.tolist()) == sorted(set(naive.arms))
        mean, std = naive.posterior()
        np.testing.assert_allclose(policy.mean, mean, atol=1e-7)
        np.testing.assert_allclose(policy.std, std, atol=1e-7)


def test_bkb_plans_for_pending_points():
    policy = bkb(GRID, budget=1e12)
    naive = Naive(GRID, 1.0)
    priority = arm_priorities(0, GRID.size)
    rng = np.random.default_rng(0)
    arms = rng.integers(GRID.size, size=20)
    policy.tell(GRID.points[arms], np.sin(arms))
    naive.arms, naive.values = arms.tolist(), np.sin(arms).tolist()
    # the pending arm itself is not in the dictionary, so only pending plays of known arms are exact
    policy.tell(GRID.points[:100], np.zeros(100))
    policy.tell(GRID.points[100:], np.zeros(GRID.size - 100))
    naive.arms += list(range(GRID.size))
    naive.values += [0.0] * GRID.size
    pending = []
    for _ in range(8):
        x = policy.ask()
        arm = int(GRID.index_of(x[None, :])[0])
        mean, std = naive.posterior(tuple(pending))
        assert_chosen(mean + policy.width * std, priority, arm)
        pending.append(arm)
    policy.cancel(x)
    pending.pop()
    mean, std = naive.posterior(tuple(pending))
    assert_chosen(mean + policy.width * std, priority, int(GRID.index_of(policy.ask()[None])[0]))


def test_bkb_draws_each_play_by_itself():
    """An arm played n times is in with probability 1 − (1 − p)^n, p = min(1, q̄σ̃²/λ)."""
    counts = np.array([1, 2, 4, 8, 16, 32, 64])
    domain = pt.Grid(7)
    X = np.repeat(domain.points, counts, axis=0)
    runs, budget, alpha = 800, 0.06, 1.5
    first, second, expected = np.zeros(7), np.zeros(7), np.zeros(7)
    for seed in range(runs):
        policy = bkb(domain, budget=budget, alpha=alpha, seed=seed)
        policy.tell(X, np.zeros(len(X)))
        first[policy.dictionary] += 1
        p = np.minimum(1, budget * policy.std**2 / alpha)  # before the next observation
        policy.tell(domain.points[2], 0.0)
        second[policy.dictionary] += 1
        expected += 1 - (1 - p) ** (counts + np.eye(7)[2])
    chance = 1 - (1 - budget / alpha) ** counts
    deviation = np.sqrt(runs * chance * (1 - chance))
    assert (np.abs(first - runs * chance) < 4 * deviation).all()
    mean = expected / runs
    assert (np.abs(second - expected) < 4 * np.sqrt(runs * mean * (1 - mean)) + 1).all()
    assert first[0] < first[3] < first[6]


def accurate(policy, arms) -> bool:
    """Whether σ²/ᾱ ≤ σ̃² ≤ ᾱσ² at every arm. Calandriello et al. 2019, Theorem 1."""
    naive = Naive(policy.domain, math.sqrt(policy.alpha))
    naive.arms, naive.values = list(arms), [0.0] * len(arms)
    exact = naive.posterior()[1] ** 2
    ratio = policy.std**2 / exact
    inflation = (1 + policy.accuracy) / (1 - policy.accuracy)
    return bool(((ratio >= 1 / inflation - 1e-6) & (ratio <= inflation + 1e-6)).all())


def inaccurate_runs(runs, **settings) -> int:
    domain, wrong = pt.Grid(40), 0
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        truth = synthetic(1, rng)(domain.unit_points)
        policy = bkb(domain, seed=seed, alpha=0.05, horizon=60, **settings)
        arms, fine = [], True
        for _ in range(60):
            x = policy.ask()
            arms.append(int(domain.index_of(x[None, :])[0]))
            policy.tell(x, truth[arms[-1]] + 0.1 * rng.normal())
            fine = fine and accurate(policy, arms)
        wrong += not fine
    return wrong


def test_bkb_variances_are_as_accurate_as_the_theorem_says():
    assert inaccurate_runs(15) <= 1.5
    assert inaccurate_runs(5, budget=0.2) > 0.5  # a control: too small a dictionary is not


def test_bkb_default_budget():
    """6 ᾱ log(4T/δ)/ε²."""
    policy = bkb(SMALL, horizon=1000, delta=0.05, accuracy=0.25)
    alpha = 1.25 / 0.75
    assert policy.budget == pytest.approx(6 * alpha * math.log(4 * 1000 / 0.05) / 0.25**2)
    assert policy.guarantee == "published"
    assert bkb(SMALL, budget=policy.budget / 2, horizon=1000, accuracy=0.25).guarantee == "none"


def test_bkb_bounds_hold():
    domain, failed = pt.Grid(20), 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        f = synthetic(1, rng)
        truth = f(domain.unit_points)
        policy = bkb(domain, norm_bound=f.norm, noise=pt.Uniform(-1, 1), seed=seed, budget=2.0)
        held = True
        for _ in range(40):
            x = policy.ask()
            policy.tell(x, truth[domain.index_of(x[None, :])[0]] + rng.uniform(-1, 1))
            got = policy.predict(domain.points)
            held = held and bool(((got.lower <= truth) & (truth <= got.upper)).all())
            best = domain.index_of(policy.recommend().x[None, :])[0]
            held = held and truth.max() - truth[best] <= policy.certificate()
        failed += not held
    assert failed <= 4


def test_bkb_with_an_empty_dictionary():
    policy = bkb(SMALL, budget=1e-9)
    policy.tell(SMALL.points, np.ones(SMALL.size))
    assert policy.dictionary_size == 0
    np.testing.assert_array_equal(policy.mean, 0.0)
    np.testing.assert_array_equal(policy.std, 1.0)
    policy.tell(policy.ask(), 1.0)
    assert np.isfinite(policy.certificate())


# -- all of them -----------------------------------------------------------------------------------

MAKERS = {
    "gp-ucb": lambda domain, **kw: pt.GPUCB(
        domain, **{"kernel": KERNEL, "noise": pt.Gaussian(0.1), **kw}
    ),
    "rkhs": lambda domain, **kw: pt.GPUCB(
        domain,
        **{
            "kernel": KERNEL,
            "noise": pt.Uniform(-0.1, 0.1),
            "norm_bound": 1.0,
            "bound": "rkhs",
            **kw,
        },
    ),
    "kernel-ucb": lambda domain, **kw: pt.KernelUCB(
        domain,
        **{"horizon": 90, "kernel": KERNEL, "norm_bound": 1.0, "noise": pt.Gaussian(0.1), **kw},
    ),
    "bkb": lambda domain, **kw: bkb(domain, **{"budget": 3.0, **kw}),
}
every = pytest.mark.parametrize("name", MAKERS)


@every
@pytest.mark.parametrize("n", [1, 2])
def test_one_arm_and_two(name, n):
    policy = MAKERS[name](pt.Arms(np.array([[0.5, 0.5], [0.1, 0.9]])[:n]))
    for _ in range(20):
        x = policy.ask()
        policy.tell(x, float(x[0]))
    best = policy.recommend()
    assert best.lower <= best.mean <= best.upper
    if n == 1:
        assert policy.certificate() == pytest.approx(best.upper - best.lower, abs=1e-8)


@every
def test_bulk_tells_are_single_tells(name):
    """BKB draws once a tell, so its sketch differs; with a large budget nothing does."""
    more = {"budget": 1e12} if name == "bkb" else {}
    one, many = MAKERS[name](ARMS, **more), MAKERS[name](ARMS, **more)
    rng = np.random.default_rng(0)
    X, Y = ARMS.points[rng.integers(ARMS.size, size=50)], rng.normal(size=50)
    for x, y in zip(X, Y, strict=True):
        one.tell(x, y)
    many.tell(X[:20], Y[:20])
    many.tell(X[20:], Y[20:])
    for a, b in zip(one.predict(ARMS.points), many.predict(ARMS.points), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)
    assert one.told == many.told == 50
    np.testing.assert_array_equal(one.ask(), many.ask())


@every
def test_many_plays_of_few_arms(name):
    """Deviations stay those of replicate means; nothing is lost to rounding."""
    policy = MAKERS[name](pt.Grid(3, dim=2), alpha=0.01) if name in ("kernel-ucb", "bkb") else None
    if policy is None:
        policy = MAKERS[name](pt.Grid(3, dim=2))
    domain = policy.domain
    X = np.repeat(domain.points, 600, axis=0)
    policy.tell(X, np.tile([0.5, -0.5], len(X) // 2))
    x = domain.points[4]
    for _ in range(30):
        policy.tell(x, 0.0)
    at = policy.predict(x[None, :])
    alpha = policy.alpha
    assert at.std[0] == pytest.approx(math.sqrt(alpha / (630 + alpha)), rel=0.05)
    assert abs(at.mean[0]) < 5e-3
