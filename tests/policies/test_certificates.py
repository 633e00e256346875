"""The certificate: it keeps falling on a box, depends on the data alone, and is at most 2B."""

from __future__ import annotations

import copy
import inspect
import math
import warnings

import numpy as np
import pytest

import partita as pt
from partita.partition import sets as sets_module
from partita.partition.contradiction import least_noise
from partita.policies.baselines import igp_ucb
from partita.problems import RKHSFunction

KERNEL = pt.Matern(1.5, 0.2)


def play(policy, f, steps, half_width, seed=0, each=None):
    """A run with uniform noise; `each(told)` is called after every value."""
    rng = np.random.default_rng(seed)
    for told in range(1, steps + 1):
        x = policy.ask()
        policy.tell(x, float(f(x[None, :])[0]) + half_width * rng.uniform(-1, 1))
        if each is not None:
            each(told)
    return policy


def made(domain, f, half_width, steps, **settings):
    noise = pt.Uniform(-half_width, half_width)
    return pt.PiGPUCB(
        domain, horizon=steps, kernel=f.kernel, norm_bound=f.norm, noise=noise, **settings
    )


def box(dim):
    return pt.Box([0.0] * dim, [1.0] * dim)


# -- convergence on a box -------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"index_slack": True}])
def test_cells_of_a_box_never_stop_refining(settings):
    """A fixed lattice never tells enough to reach an information threshold: cells split anyway."""
    f = RKHSFunction(pt.Matern(2.5, 0.5), np.array([[5.5 / 16]]), np.array([4.0]))
    policy = play(made(box(1), f, 0.3, 6000, **settings), f, 6000, 0.3)
    assert policy.cells > 1
    assert 4.0 - float(f(policy.recommend().x[None, :])[0]) < 0.008  # 0.013 on the first lattice
    assert policy.certificate() < 0.05


def test_igp_ucb_on_a_box_plays_between_its_candidates(monkeypatch):
    monkeypatch.setattr(igp_ucb, "BOX_CANDIDATES", 30)  # 5 × 5
    f = RKHSFunction(pt.Matern(2.5, 0.5), np.array([[0.4, 0.65]]), np.array([1.0]))
    policy = pt.IGPUCB(
        box(2), kernel=f.kernel, norm_bound=1.0, noise=pt.Uniform(-0.02, 0.02), seed=1
    )
    lattice = policy._engine.partition.lattice.offsets
    play(policy, f, 1200, 0.02)
    loss = 1.0 - float(f(policy.recommend().x[None, :])[0])
    assert loss < 0.5 * (1.0 - f(lattice).max())
    assert loss <= policy.certificate() < 0.2


def test_the_certificate_on_a_box_is_near_the_loss():
    """One slack for a whole cell would make it about 1."""
    f = RKHSFunction.sample(2, KERNEL, seed=0)
    policy = play(made(box(2), f, 0.1, 2000), f, 2000, 0.1)
    loss = f.maximum() - float(f(policy.recommend().x[None, :])[0])
    assert loss <= policy.certificate() < 0.3


def test_every_so_manyth_evaluation_is_in_the_cell_that_holds_the_ceiling():
    f = RKHSFunction.sample(2, KERNEL, seed=1)
    policy = made(box(2), f, 0.1, 400, ceiling_every=20)
    bounds, seen = policy._engine._bounds, 0
    rng = np.random.default_rng(0)
    for step in range(1, 241):
        top = bounds.highest(step)
        x = policy.ask()
        if step % 20 == 0 and not isinstance(top, int):
            scaled = policy._engine.partition.sites.to_scaled(x[None, :])
            assert policy._engine.partition.geometry.holds(top.key, scaled)[0]
            seen += 1
        policy.tell(x, float(f(x[None, :])[0]) + 0.1 * rng.uniform(-1, 1))
    assert seen > 5


@pytest.mark.parametrize("value", [-1, 1.5, True, "20", None])
def test_ceiling_every_must_be_a_whole_number(value):
    f = RKHSFunction.sample(1, KERNEL, seed=1)
    with pytest.raises(pt.PartitaError, match="ceiling_every="):
        made(box(1), f, 0.1, 10, ceiling_every=value)


# -- the data alone --------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", [pt.Grid(12, dim=2), box(1), box(2)], ids=str)
@pytest.mark.parametrize("settings", [{}, {"index_slack": True}, {"width": "paper", "alpha": 1.0}])
def test_an_answer_does_not_depend_on_what_was_asked_before(domain, settings):
    f = RKHSFunction.sample(domain.dim, KERNEL, seed=3)
    asked, quiet = (made(domain, f, 0.2, 150, **settings) for _ in range(2))
    rng = np.random.default_rng(0)
    for step in range(100):
        x, other = asked.ask(), quiet.ask()
        np.testing.assert_array_equal(x, other)
        y = float(f(x[None, :])[0]) + 0.2 * rng.uniform(-1, 1)
        asked.tell(x, y)
        quiet.tell(x, y)
        gap = asked.certificate()
        if step % 4 == 0:
            fresh = copy.deepcopy(quiet)
            assert (gap, asked.recommend().lower) == (fresh.certificate(), fresh.recommend().lower)


def test_nor_does_the_calibrated_one():
    """Sites around a region inform it, so that their values count as a change of it."""
    f = RKHSFunction.sample(2, KERNEL, seed=2)
    asked, quiet = (pt.CalibratedUCB(box(2), seed=1) for _ in range(2))
    rng = np.random.default_rng(0)
    X = rng.random((300, 2))
    Y = f(X) + 0.1 * rng.normal(size=300)
    asked.tell(X, Y)
    quiet.tell(X, Y)
    assert len(quiet._regions) > 1
    for i in np.argsort(np.abs(X[:, 0] - 0.5))[:24]:
        asked.certificate()
        y = float(f(X[i : i + 1])[0]) + 1.0 * rng.normal()
        asked.tell(X[i], y)
        quiet.tell(X[i], y)
        assert asked.certificate() == copy.deepcopy(quiet).certificate()


# -- |f| ≤ B ---------------------------------------------------------------------------------------

TOLD = {
    "horizon": 100,
    "kernel": pt.Matern(1.5, 0.2),
    "norm_bound": 1.0,
    "noise": pt.Uniform(-0.5, 0.5),
    "seed": 0,
}


@pytest.mark.parametrize("domain", [pt.Grid(4, dim=4), box(4)], ids=["grid", "box"])
@pytest.mark.parametrize(
    "make",
    [pt.PiGPUCB, pt.PiGPUCB.paper, pt.PiGPTS, pt.IGPUCB, pt.KernelUCB, pt.SupKernelUCB, pt.BKB],
    ids=lambda make: make.__qualname__,
)
def test_no_bound_exceeds_the_norm(make, domain):
    names = inspect.signature(make).parameters
    given = {name: value for name, value in TOLD.items() if name in names}
    try:
        policy = make(domain, **given)
    except pt.PartitaError:
        pytest.skip("finite domains only")
    rng = np.random.default_rng(0)
    for told in range(30):
        if told in (0, 1, 29):
            got, answer = policy.predict(rng_points(domain, rng)), policy.recommend()
            assert (got.upper <= 1.0).all()
            assert (got.lower >= -1.0).all()
            assert -1.0 <= answer.lower <= answer.upper <= 1.0
            if hasattr(policy, "certificate"):
                assert policy.certificate() <= 2.0
        policy.tell(policy.ask(), 0.3 + 0.5 * rng.uniform(-1, 1))


def rng_points(domain, rng):
    return domain.points[rng.integers(0, domain.size, 5)] if domain.finite else rng.random((5, 4))


def test_a_prior_is_no_norm():
    """The Bayesian width knows an amplitude, which f may exceed."""
    policy = pt.GPUCB(pt.Grid(5, dim=1), kernel=KERNEL, noise=pt.Gaussian(0.1))
    assert policy.predict(policy.domain.points).upper.max() > 1.0


# -- confidence sets -------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", [pt.Grid(30, dim=1), box(2)], ids=["grid", "box"])
def test_more_regularisers_are_never_looser_and_hold(domain, monkeypatch):
    f = RKHSFunction.sample(domain.dim, KERNEL, seed=5)
    policy = play(made(domain, f, 0.3, 300), f, 300, 0.3)
    points = domain.points if domain.finite else np.random.default_rng(1).random((200, 2))
    got, gap = policy.predict(points), policy.certificate()
    assert (got.lower <= f(points)).all()
    assert (f(points) <= got.upper).all()
    monkeypatch.setattr(sets_module, "RATIOS", (1.0,))
    for cell in policy._engine.partition.leaves.values():
        policy._engine._bounds._sets.forget(cell)
    one = policy.predict(points)
    assert (one.upper >= got.upper - 1e-9).all()
    assert (one.lower <= got.lower + 1e-9).all()
    assert float((one.upper - got.upper).max()) > 1e-3
    assert gap <= policy.certificate() + 1e-3


def test_the_search_between_candidates_bounds_every_point():
    f = RKHSFunction.sample(2, KERNEL, seed=6)
    policy = play(made(box(2), f, 0.1, 400), f, 400, 0.1)
    partition, sets = policy._engine.partition, policy._engine._bounds._sets
    rng, looked = np.random.default_rng(0), 0
    for cell in partition.leaves.values():
        own = sets.of(cell)
        if own is None:
            continue
        lower, upper = own._corners
        inside = lower + (upper - lower) * rng.random((2000, 2))
        assert own.at(inside).upper.max() <= sets.highest(cell) + 1e-9
        looked += 1
    assert looked > 3


# -- norm and noise that are too small ------------------------------------------------------------


def said(policy):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        gap = policy.certificate()
    return gap, " ".join(str(w.message) for w in caught)


@pytest.mark.parametrize("domain", [pt.Grid(60, dim=1), box(1)], ids=["grid", "box"])
def test_too_small_a_norm_is_noticed_and_what_it_takes_is_said(domain):
    noticed = 0
    for seed in range(4):
        f = RKHSFunction.sample(1, KERNEL, seed=seed)
        right = made(domain, f, 0.2, 300)
        assert said(play(right, f, 300, 0.2))[1] == ""
        wrong = pt.PiGPUCB(
            domain,
            horizon=300,
            kernel=KERNEL,
            norm_bound=0.4 * f.norm,
            noise=pt.Uniform(-0.2, 0.2),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            play(wrong, f, 300, 0.2)
        gap, message = said(wrong)
        if "norm_bound is too small" in message:
            noticed += 1
            assert gap == math.inf
            needed = float(message.split("at least ")[1].split(". ")[0])
            assert 0.4 * f.norm < needed <= f.norm
    assert noticed >= 3


@pytest.mark.parametrize("seed", [2, 6])
def test_a_contradiction_around_the_answer_leaves_no_certificate(seed):
    """The cells that hold the ceiling may fit a norm that those around the answer do not."""
    f = RKHSFunction.sample(2, KERNEL, seed=seed)
    policy = pt.PiGPUCB(
        pt.Grid(15, dim=2),
        horizon=600,
        kernel=KERNEL,
        norm_bound=0.5 * f.norm,
        noise=pt.Uniform(-0.1, 0.1),
    )
    play(policy, f, 30, 0.1)
    gap, message = said(policy)
    assert "norm_bound is too small" in message
    assert gap == math.inf


def test_a_contradiction_elsewhere_leaves_no_certificate_of_a_slice():
    """With a fifth of the norm, the bounds of this slice alone would give one of 0.08."""
    f = RKHSFunction.sample(2, KERNEL, seed=1)
    noise = pt.Uniform(-0.1, 0.1)
    policy = pt.PiGPUCB(
        pt.Grid(15, dim=2), horizon=300, kernel=KERNEL, norm_bound=0.2 * f.norm, noise=noise
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        play(policy, f, 300, 0.1)
    with pytest.warns(pt.TheoryWarning, match="norm_bound is too small"):
        gaps = [policy.certificate_fixed({0: x}) for x in policy.domain.points[::15, 0]]
    assert gaps == [math.inf] * 15


def test_too_small_a_noise_constant_is_noticed():
    f = RKHSFunction.sample(1, KERNEL, seed=1)
    domain = pt.Grid(30, dim=1)
    policy = pt.PiGPUCB(
        domain, horizon=300, kernel=KERNEL, norm_bound=f.norm, noise=pt.SubGaussian(0.05)
    )
    play(policy, f, 300, 0.5)
    gap, message = said(policy)
    assert gap == math.inf
    assert "noise constant of 0.05 is too small" in message


def test_the_scatter_is_that_of_values_around_their_means():
    rng = np.random.default_rng(0)
    domain = pt.Grid(5, dim=1)
    one, many = (
        pt.PiGPUCB(domain, horizon=99, kernel=KERNEL, norm_bound=9.0, noise=pt.Gaussian(1.0))
        for _ in range(2)
    )
    X, Y = domain.points[rng.integers(0, 5, 60)], rng.normal(size=60)
    stds = rng.uniform(0.5, 2.0, 60)
    for x, y, s in zip(X, Y, stds, strict=True):
        one.tell(x, float(y), std=float(s))
    many.tell(X[:20], Y[:20], std=stds[:20])
    many.tell(X[20:], Y[20:], std=stds[20:])
    weights, expected = stds**-2.0, 0.0
    for x in domain.points:
        at = np.equal(X, x).all(axis=1)
        mean = np.average(Y[at], weights=weights[at])
        expected += float((weights[at] * (Y[at] - mean) ** 2).sum())
    for policy in (one, many):
        sites = policy._engine.partition.sites
        assert sites.scatter == pytest.approx(expected)
        assert sites.repeats == 55
    assert least_noise(expected, 55, 0.1) < 1.0
    assert least_noise(100 * expected, 55, 0.1) > 1.0
    assert least_noise(0.0, 0, 0.1) == 0.0


# -- the optimal split -----------------------------------------------------------------------------


def local_gain(dim, nu, side, values):
    """The gain of that many values spread over a cube of a side, α = 1."""
    points = np.random.default_rng(0).random((150, dim)) * side
    gram = pt.Matern(nu, 0.5)(points)
    return 0.5 * float(np.linalg.slogdet(np.eye(150) + gram * values / 150)[1])


@pytest.mark.parametrize("dim", [1, 2])
@pytest.mark.parametrize("nu", [1.5, 2.5])
def test_a_cell_due_by_the_optimal_split_has_told_only_logarithmically_much(dim, nu):
    """Step 2 of the argument; with more values, ρ^(−3ν), the gain grows faster than log n."""
    sides = 2.0 ** -np.arange(2, 9)
    few = [local_gain(dim, nu, s, s ** (-2 * nu)) / math.log(s ** (-2 * nu)) for s in sides]
    many = [local_gain(dim, nu, s, s ** (-3 * nu)) / math.log(s ** (-3 * nu)) for s in sides]
    assert few[-1] <= 1.05 * few[2]
    assert many[-1] > 1.3 * many[2]


def test_the_optimal_split_is_later_and_its_bounds_hold():
    f = RKHSFunction.sample(1, KERNEL, seed=4)
    policy = made(box(1), f, 0.3, 400, split="optimal")
    rule = policy._engine.partition.rule
    assert rule.threshold(3) == 8.0**3.0
    play(policy, f, 400, 0.3)
    assert f.maximum() - float(f(policy.recommend().x[None, :])[0]) <= policy.certificate()
