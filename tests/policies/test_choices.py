"""The policies against brute force: what they ask, predict, recommend and certify.

`Oracle` does everything the slow way: it rebuilds every cell from the raw observations, with
inverse matrices. The other tests of policies (pending points, bulk tells, state) use it too.
"""

import copy
import math
import warnings

import numpy as np
import pytest
from support.oracle import (
    DOMAINS,
    KINDS,
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
    row_words,
    run,
)

import partita as pt
from partita.gp import posterior as posterior_module
from partita.gp import rows as rows_module
from partita.gp import warm as warm_module
from partita.policies.baselines import igp_ucb

# -- asking ----------------------------------------------------------------------------------------


@everywhere
@every_kind
def test_ask_gives_a_new_point_of_the_domain(kind, where):
    domain = DOMAINS[where]
    policy, f = make(kind, domain), bumps(domain)
    arms = None if isinstance(domain, pt.Box) else {x.tobytes() for x in domain.points}
    for i in range(40):
        x = policy.ask()
        assert isinstance(x, np.ndarray)
        assert x.shape == (domain.dim,)
        assert x.dtype == np.float64
        assert x.flags.writeable
        if arms is None:
            assert ((x >= domain.lower) & (x <= domain.upper)).all()
        else:
            assert x.tobytes() in arms
        assert (policy.told, policy.pending) == (i, 1)
        policy.tell(x, float(f(x)[0]))
        assert (policy.told, policy.pending) == (i + 1, 0)


@everywhere
@every_kind
def test_arrays_that_change_hands_are_not_shared(kind, where):
    """Whatever a caller does to an array it got or gave, the policy goes on as its twin."""
    domain = DOMAINS[where]
    policy, twin, f = make(kind, domain), make(kind, domain), bumps(domain)
    for _ in range(25):
        x = policy.ask()
        mine = x.copy()
        x[:] = 1e9
        value = np.array(float(f(mine)[0]))
        policy.tell(mine, value)
        mine[:] = np.nan
        value[...] = np.nan
        policy.recommend().x[:] = 1e9
        other = twin.ask()
        twin.tell(other, float(f(other)[0]))
        if kind != "uniform":
            policy.cover[0].lower[:] = np.nan
            for array in policy.predict(other[None, :]):
                array[:] = np.nan
    X = random_points(domain, 5)
    Y = np.arange(5.0)
    policy.tell(X, Y)
    twin.tell(X.copy(), Y.copy())
    if isinstance(domain, pt.Box):
        X[:] = np.nan
    Y[:] = np.nan
    np.testing.assert_array_equal(asks(policy, 10, f), asks(twin, 10, f))


@everywhere
@every_kind
def test_same_seed_and_same_tells_give_the_same_asks(kind, where):
    """Also when one of the two is asked for all sorts of answers in between."""
    domain = DOMAINS[where]
    policy, twin, f = make(kind, domain, seed=3), make(kind, domain, seed=3), bumps(domain)
    for step in range(50):
        x, other = policy.ask(), twin.ask()
        np.testing.assert_array_equal(x, other)
        if step % 3 == 0:
            policy.recommend()
            if kind != "uniform":
                policy.certificate()
                policy.predict(x[None, :])
                assert policy.cover
                assert policy.cells_created
        policy.tell(x, float(f(x)[0]))
        twin.tell(other.tolist(), float(f(other)[0]))


@everywhere
@every_kind
def test_seeds_differ_from_the_first_ask_on(kind, where):
    domain = DOMAINS[where]
    firsts = {make(kind, domain, seed=seed).ask().tobytes() for seed in range(12)}
    assert len(firsts) > 3
    make(kind, domain, seed=2**70 + 1).ask()
    make(kind, domain, seed=np.int64(4)).ask()


@everywhere
@every_kind
def test_no_global_random_state_is_read_or_altered(kind, where):
    domain = DOMAINS[where]
    f, points = bumps(domain), []
    for global_seed in (1, 2):
        np.random.seed(global_seed)  # noqa: NPY002
        before = np.random.get_state()[1].copy()  # noqa: NPY002
        policy = make(kind, domain)
        points.append(asks(policy, 10, f))
        policy.recommend()
        np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002
    np.testing.assert_array_equal(*points)


def test_uniform_sampling_plays_every_arm_alike():
    policy = pt.UniformSampling(pt.Grid(10), seed=1)
    plays = np.bincount([round(float(policy.ask()[0]) * 9) for _ in range(5000)], minlength=10)
    assert np.abs(plays - 500).max() < 5 * math.sqrt(450)
    box = pt.UniformSampling(DOMAINS["box2"], seed=1)
    unit = DOMAINS["box2"].to_unit(np.array([box.ask() for _ in range(4000)]))
    np.testing.assert_allclose(unit.mean(axis=0), 0.5, atol=5 / math.sqrt(12 * 4000))
    np.testing.assert_allclose(unit.var(axis=0), 1 / 12, atol=0.01)


# -- choosing, against brute force -----------------------------------------------------------------

VARIANTS = {
    "default": {},
    "paper width": {"width": "paper"},
    "count split": {"split": "count", "initial_cells": 2},
    "paper width, information split": {"width": "paper", "initial_cells": 2},
    "slack": {"index_slack": True},
    "slack, paper width, count split": {"index_slack": True, "width": "paper", "split": "count"},
    "early split": {"horizon": 2},
    "small alpha": {"alpha": 0.05},
}


def check_steps(policy, steps, every=1):
    """Play, comparing choice, cover and predictions with brute force."""
    oracle, history = Oracle(policy), History(policy)
    f, rng = bumps(policy.domain), np.random.default_rng(1)
    for step in range(steps):
        x = history.ask()
        if step % every == 0 or step > steps - 3:
            assert_best(oracle, history, x)
        history.tell(x, float(f(x)[0]) + 0.1 * rng.normal())
        if step in (0, 1, steps // 2, steps - 1):
            assert_table(oracle, history)
            assert_cover(oracle, history)
            assert_predictions(oracle, history, random_points(policy.domain, 12, step))
    return oracle, history


@everywhere
@every_ucb
def test_choice_is_brute_forces(kind, where):
    check_steps(make(kind, DOMAINS[where]), 45, every=4)


@pytest.mark.parametrize("where", ["grid2", "arms", "box1", "box2"])
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.filterwarnings("ignore:evaluation:partita.TheoryWarning")
def test_choice_of_variants_is_brute_forces(variant, where):
    check_steps(make("pi", DOMAINS[where], **{"horizon": 60, **VARIANTS[variant]}), 40, every=4)


@pytest.mark.parametrize("kind", ["pi", "paper"])
def test_choice_is_brute_forces_when_many_cells_split(kind):
    """A sharp optimum: hundreds of plays in one corner, cells of many levels."""
    domain = pt.Box([0.0, 0.0], [2.0, 4.0])
    policy = make(kind, domain, horizon=40, noise=pt.SubGaussian(0.02))
    oracle, history = Oracle(policy), History(policy)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pt.TheoryWarning)
        for step in range(160):
            x = history.ask()
            if step % 8 == 0:
                assert_best(oracle, history, x)
            history.tell(x, float(np.exp(-4 * np.abs(x - [0.1, 3.7]).sum())))
    assert max(c.level for c in policy.cover) >= 2
    assert_cover(oracle, history)
    assert_predictions(oracle, history, random_points(domain, 40, 3))


@everywhere
@every_ucb
def test_cover_tiles_the_cube(kind, where):
    policy = make(kind, DOMAINS[where], horizon=60)
    first = round(1 / policy.cover[0].side) ** policy.domain.dim
    run(policy, 60)
    cover = policy.cover
    assert math.fsum(c.side**policy.domain.dim for c in cover) == pytest.approx(1.0, abs=1e-12)
    lowers = {(c.level, *np.rint(c.lower / c.side).astype(int)) for c in cover}
    assert len(lowers) == len(cover)
    for level, *corner in lowers:  # no cell lies inside another
        for up in range(1, level + 1):
            assert (level - up, *(c >> up for c in corner)) not in lowers
    splits = (len(cover) - first) / (2**policy.domain.dim - 1)
    assert policy.cells_created == first + 2**policy.domain.dim * splits
    if kind != "igp":
        assert not any(oracle_due(policy, c) for c in cover)


def oracle_due(policy, view):
    rule, dim = policy._engine.partition.rule, policy.domain.dim
    exact = (1 / view.side) ** ((dim + 2 * policy.kernel.nu) / (dim + 1))
    return exact + 1e-6 < view.count + 1 and view.information_gain > rule.gain_limit + 1e-9


# -- told at points that nobody asked for ----------------------------------------------------------


@everywhere
@every_ucb
def test_tells_at_any_point_of_the_domain(kind, where):
    domain = DOMAINS[where]
    policy = make(kind, domain, horizon=60, norm_bound=20.0, noise=pt.Gaussian(1.0))
    oracle, history = Oracle(policy), History(policy)
    rng = np.random.default_rng(2)
    for i, x in enumerate(random_points(domain, 40, 7)):
        history.tell(x, rng.normal())
        if i % 8 == 7:
            assert_cover(oracle, history)
            y = history.ask()
            assert_best(oracle, history, y)
            history.tell(y, rng.normal())
    assert_predictions(oracle, history, np.array(history.X))
    assert (policy.told, policy.pending) == (45, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_grid_takes_linspace_values(kind):
    policy, twin = make(kind, pt.Grid(30, dim=2)), make(kind, pt.Grid(30, dim=2))
    sides = np.linspace(0, 1, 30)
    for i in range(30):
        near = np.array([sides[i], sides[29 - i] + 3e-10])
        policy.tell(near, i / 30)
        twin.tell(twin.domain.points[30 * i + 29 - i], i / 30)
    np.testing.assert_array_equal(policy.ask(), twin.ask())
    np.testing.assert_array_equal(policy.recommend().x, twin.recommend().x)


def corner_points(domain):
    """Corners, faces and centre, and points of no lattice."""
    unit = [np.zeros(domain.dim), np.ones(domain.dim), np.full(domain.dim, 0.5)]
    for axis in range(domain.dim):
        for value in (0.0, 1.0, 0.5, 0.25):
            x = np.full(domain.dim, 0.3717)
            x[axis] = value
            unit.append(x)
    unit.append(np.full(domain.dim, 1 / 3))
    return domain.from_unit(np.array(unit))


@pytest.mark.parametrize("where", ["box1", "box2", "box3", "box5"])
@every_ucb
def test_told_box_points_on_corners_and_faces(kind, where):
    domain = DOMAINS[where]
    policy = make(kind, domain, horizon=80, norm_bound=6.0)
    oracle, history = Oracle(policy), History(policy)
    for repeat in range(3):
        for x in corner_points(domain):
            history.tell(x, math.sin(float(x.sum())) + 0.01 * repeat)
    assert_cover(oracle, history)
    assert_best(oracle, history, history.ask())
    assert_predictions(oracle, history, corner_points(domain))


@pytest.mark.parametrize(
    "domain",
    [pt.Box([0.1], [0.4]), pt.Box([-3, -7], [1e3, 11]), pt.Box([-1, 0, 1, 2, 3], [1, 1, 3, 5, 7])],
    ids=["d1", "d2", "d5"],
)
@every_kind
def test_a_box_point_told_again_is_the_same_site(kind, domain):
    """Asked for, made up, rounded or recommended: the same array is the same point."""
    policy, f = make(kind, domain), bumps(domain)
    sites = policy._sites if kind == "uniform" else policy._engine.partition.sites
    seen = [np.clip(np.round(x, 3), domain.lower, domain.upper) for x in random_points(domain, 12)]
    for x in seen:
        policy.tell(x, float(f(x)[0]))
    for _ in range(25):
        x = policy.ask()
        policy.tell(x, float(f(x)[0]))
        seen.append(x)
    assert int((sites.count > 0).sum()) == len({x.tobytes() for x in seen})
    for x in seen[::3]:
        policy.tell(x, float(f(x)[0]))
        best = policy.recommend().x
        seen.append(best)
        policy.tell(best, float(f(best)[0]))
        policy.tell(best[None, :], f(best))
    assert int((sites.count > 0).sum()) == len({x.tobytes() for x in seen})
    assert int(sites.count.sum()) == policy.told


# -- predict ---------------------------------------------------------------------------------------


@everywhere
@every_ucb
def test_predict_before_any_tell_is_the_prior(kind, where):
    domain = DOMAINS[where]
    policy = make(kind, domain)
    got = policy.predict(random_points(domain, 9))
    width = policy.cover[0].width
    np.testing.assert_array_equal(got.mean, np.zeros(9))
    np.testing.assert_array_equal(got.std, np.ones(9))
    most = min(width, policy.norm_bound)  # |f| ≤ B
    np.testing.assert_allclose(got.lower, -most)
    np.testing.assert_allclose(got.upper, most)
    assert all(len(field) == 0 for field in policy.predict(np.empty((0, domain.dim))))


@pytest.mark.parametrize("where", ["box1", "box2", "box3", "box5", "arms"])
@every_ucb
def test_predict_at_played_points_and_between_them(kind, where):
    domain = DOMAINS[where]
    policy = make(kind, domain)
    history = run(policy, 50)
    played = np.array(history.X[::5])
    assert_predictions(Oracle(policy), history, played)
    assert (policy.predict(played).std < 1 / math.sqrt(1 + 1 / policy.alpha) + 1e-9).all()
    if isinstance(domain, pt.Box):
        between = domain.from_unit(np.random.default_rng(0).random((25, domain.dim)))
        assert_predictions(Oracle(policy), history, between)


@pytest.mark.parametrize("nu", [0.5, 0.7, 2.0, 2.5, 4.2, 25.0])
@pytest.mark.parametrize("where", ["grid2", "box2"])
@pytest.mark.filterwarnings("ignore:nu=:partita.TheoryWarning")
def test_any_smoothness_and_a_lengthscale_per_dimension(nu, where):
    kernel = pt.Matern(nu, [0.15, 0.6])
    for kind in ("pi", "igp") if where == "grid2" else ("pi",):
        check_steps(make(kind, DOMAINS[where], kernel=kernel, horizon=30), 18, every=5)


# -- recommend -------------------------------------------------------------------------------------


@everywhere
@every_ucb
@pytest.mark.parametrize("offset", [0.0, -3.0])
def test_recommendation_has_the_highest_lower_bound(kind, where, offset):
    """Also when all values are poor, and cells without data are the better bet."""
    domain = DOMAINS[where]
    policy = make(kind, domain, horizon=100, norm_bound=1.0 if offset == 0 else 12.0)
    oracle, history, f = Oracle(policy), History(policy), bumps(domain)
    for step in range(30):
        x = history.ask()
        history.tell(x, float(f(x)[0]) + offset)
        if step in (0, 3, 29):
            got = policy.recommend()
            cells = oracle.cells(history.X, history.Y)
            t = len(history.X) + 1
            candidates = max(
                float((c.mean - oracle.width(c.key[0], c.gain, t) * c.std).max())
                for c in cells
                if len(c.points)
            )
            tolerance = 1e-8 * max(1.0, abs(candidates))
            assert got.lower >= candidates - tolerance
            at = policy.predict(got.x[None, :])
            assert got.lower == pytest.approx(at.lower[0], rel=1e-9, abs=1e-9)
            assert got.upper == pytest.approx(at.upper[0], rel=1e-9, abs=1e-9)
            assert got.mean == pytest.approx(at.mean[0], rel=1e-9, abs=1e-9)
            if domain.finite:
                word = row_words(oracle.scaled(got.x))[0]
                plain = [
                    c.mean[c.places[word]]
                    - oracle.width(c.key[0], c.gain, t) * c.std[c.places[word]]
                    for c in cells
                    if word in c.places
                ]
                assert max(plain) == pytest.approx(candidates, rel=1e-9, abs=2e-9)
                assert (domain.points == got.x).all(axis=1).any()


@everywhere
@every_kind
def test_recommend_before_any_tell(kind, where):
    domain = DOMAINS[where]
    policy = make(kind, domain)
    got = policy.recommend()
    assert got.x.shape == (domain.dim,)
    domain.check(got.x[None, :])
    if domain.finite:
        domain.index_of(got.x[None, :])
    assert got.mean == 0.0
    assert got.lower < 0 < got.upper


def test_uniform_recommends_the_highest_average():
    policy = pt.UniformSampling(pt.Grid(5), seed=0)
    for x, y in [(0.0, 9.0), (0.0, -9.0), (0.5, 1.0), (0.5, 1.2), (1.0, 1.0)]:
        policy.tell([x], y)
    got = policy.recommend()
    assert got.x.tolist() == [0.5]
    assert got.mean == pytest.approx(1.1)
    assert (got.lower, got.upper) == (-math.inf, math.inf)
    box = pt.UniformSampling(DOMAINS["box2"], seed=0)
    x = box.ask()
    box.tell(x, -1.0)
    np.testing.assert_array_equal(box.recommend().x, x)
    box.tell(x, 2.0)
    assert box.recommend().mean == pytest.approx(0.5)


# -- certificate -----------------------------------------------------------------------------------


@everywhere
@every_ucb
def test_certificate_of_a_fresh_history_is_brute_forces(kind, where):
    """The highest upper bound in any cell − the recommended point's lower bound.

    On a box the bound between candidates is at least that at candidates, and no more than the slack
    above it.
    """
    domain = DOMAINS[where]
    for n in (0, 1, 40):
        policy = make(kind, domain, horizon=60)
        X, f = random_points(domain, n, 3), bumps(domain)
        Y = f(X) + 0.05 * np.random.default_rng(0).normal(size=n)
        policy.tell(X.reshape(n, domain.dim), Y)
        oracle = Oracle(policy)
        cells = oracle.cells(X, Y)
        t = n + 1
        upper = max(
            (c.mean + oracle.width(c.key[0], c.gain, t) * c.std).max() + oracle.slack(c.key[0])
            for c in cells
            if len(c.points)
        )
        gap, lower = policy.certificate(), policy.recommend().lower
        least = oracle.ceiling(cells, t) - lower
        assert least - 2e-8 <= gap <= min(upper, oracle.B) - lower + 2e-8
        if domain.finite:
            assert gap == pytest.approx(least, abs=2e-8)


@everywhere
@every_ucb
def test_certificate_holds_and_falls(kind, where):
    domain = DOMAINS[where]
    if domain.finite:
        everything = domain.points
    else:
        per_side = {1: 3001, 2: 81, 3: 25, 5: 7}[domain.dim]
        everything = domain.from_unit(pt.Grid(per_side, dim=domain.dim).points)
    for seed in range(2):
        f = bumps(domain, seed)
        best = f(everything).max()
        policy = make(kind, domain, horizon=100, seed=seed)
        rng = np.random.default_rng(seed)
        certified = []
        for step in range(100):
            x = policy.ask()
            policy.tell(x, float(f(x)[0]) + 0.1 * rng.normal())
            if step % 10 == 9 or step < 5:
                got = policy.recommend()
                gap = policy.certificate()
                assert gap >= best - float(f(got.x)[0])
                assert best <= gap + got.lower <= policy.norm_bound + 1e-9
                certified.append(gap)
        if domain.dim < 3:
            assert certified[-1] < certified[0]


@pytest.mark.parametrize("where", ["grid2", "box1"])
@every_ucb
def test_data_that_contradict_the_norm_are_reported(kind, where):
    """B a hundred times too small, as values show beyond doubt."""
    domain = DOMAINS[where]
    policy = make(kind, domain, norm_bound=0.01, noise=pt.SubGaussian(0.001))
    f = bumps(domain)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(60):
            x = policy.ask()
            policy.tell(x, 5 + 5 * float(f(x)[0]))
            assert policy.certificate() >= 0
    assert caught
    assert all(w.category is pt.TheoryWarning for w in caught)
    assert "too small" in str(caught[0].message)
    assert "norm_bound" in str(caught[0].message)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("where", ["grid2", "box2"])
def test_fair_data_never_warn(where):
    """TheoryWarning is an error in these tests."""
    policy = make("pi", DOMAINS[where])
    history = run(policy, 100)
    policy.predict(np.array(history.X))
    policy.certificate()


# -- warnings --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pi", "paper"])
def test_playing_past_the_horizon_warns_once_and_goes_on(kind):
    policy = make(kind, DOMAINS["grid2"], horizon=10)
    run(policy, 10)
    with pytest.warns(pt.TheoryWarning, match="evaluation 11 is past the horizon of 10"):
        x = policy.ask()
    policy.tell(x, 0.0)
    run(policy, 20)
    assert policy.told == 31


def test_pending_asks_count_towards_the_horizon():
    policy = make("pi", DOMAINS["grid2"], horizon=3)
    for _ in range(3):
        policy.ask()
    with pytest.warns(pt.TheoryWarning, match="past the horizon of 3"):
        policy.ask()


@pytest.mark.parametrize("nu", [0.5, 0.9, 1.0])
@pytest.mark.parametrize("kind", ["pi", "paper"])
def test_rough_kernels_work_with_a_warning(kind, nu):
    with pytest.warns(pt.TheoryWarning, match=r"nu > 1"):
        policy = make(kind, DOMAINS["grid1"], kernel=pt.Matern(nu, 0.2), horizon=40)
    check_steps(policy, 30, every=5)


def test_guarantees():
    domain = DOMAINS["grid1"]
    assert make("pi", domain).guarantee == "proven"
    assert make("pi", domain, width="paper").guarantee == "published"
    assert make("paper", domain).guarantee == "published"
    assert make("igp", domain).guarantee == "proven"
    assert make("uniform", domain).guarantee == "none"


def test_the_paper_preset_is_the_paper():
    policy = make("paper", pt.Grid(30, dim=2), horizon=1000)
    assert policy.alpha == 1 + 2 / 1000
    q = 2 * 3 / (2 * 4 + 3)
    assert len(policy.cover) == round(1000 ** (q / 2)) ** 2
    assert make("paper", pt.Grid(30), horizon=1000, alpha=2.5).alpha == 2.5


# -- shortcuts that must not show ------------------------------------------------------------------


@pytest.mark.parametrize("where", ["grid2", "arms", "box1", "box2", "box5"])
@pytest.mark.parametrize("kind", ["pi", "paper"])
@pytest.mark.parametrize("limit", [0, 3000])
def test_cold_cells_choose_the_same_points(kind, where, limit, monkeypatch):
    """Covariances given up at once, or half of them now and then."""
    domain, f = DOMAINS[where], bumps(DOMAINS[where])
    warm = asks(make(kind, domain, horizon=100), 100, f)
    monkeypatch.setattr(warm_module, "WARM_NUMBERS", limit)
    policy = make(kind, domain, horizon=100)
    np.testing.assert_array_equal(asks(policy, 100, f), warm)
    if limit == 0:
        cold = [c.posterior.cov is None for c in policy._engine.partition.leaves.values()]
        assert all(cold)
    check = History(policy)
    check.X, check.Y = list(warm), [float(f(x)[0]) for x in warm]
    check.stds = [None] * len(warm)
    assert_cover(Oracle(policy), check)


@pytest.mark.parametrize("limit", [0, 2000])
def test_cold_cells_with_pending_points(limit, monkeypatch):
    def batches(policy):
        points = []
        for _ in range(12):
            batch = [policy.ask() for _ in range(5)]
            points += batch
            for x in batch[::-1]:
                policy.tell(x, float(f(x)[0]))
        return np.array(points)

    for where in ("grid2", "box1", "box2"):
        domain, f = DOMAINS[where], bumps(DOMAINS[where])
        warm = batches(make("paper", domain))
        with monkeypatch.context() as patch:
            patch.setattr(warm_module, "WARM_NUMBERS", limit)
            np.testing.assert_array_equal(batches(make("paper", domain)), warm)


@pytest.mark.parametrize("where", ["grid2", "arms", "box1", "box5"])
@every_ucb
@pytest.mark.parametrize("updates", [0, 1, 7])
def test_posteriors_computed_afresh_choose_the_same_points(kind, where, updates, monkeypatch):
    domain, f = DOMAINS[where], bumps(DOMAINS[where])
    plain = asks(make(kind, domain), 60, f)
    monkeypatch.setattr(posterior_module, "REFRESH_AFTER", updates)
    np.testing.assert_array_equal(asks(make(kind, domain), 60, f), plain)


@pytest.mark.parametrize(
    ("where", "block"),
    [("grid2", 1), ("grid2", 64), ("arms", 2), ("arms", 64), ("box1", 2), ("box2", 64)],
)
def test_rows_choose_the_same_points_as_the_full_covariance(where, block, monkeypatch):
    """`RowPosterior` under IGPUCB, with plays repeated so often that rows are fitted afresh."""
    domain, f = DOMAINS[where], bumps(DOMAINS[where])
    dense = make("igp", domain)
    first = asks(dense, 40, f)
    monkeypatch.setattr(rows_module, "DENSE_LIMIT", 4)
    monkeypatch.setattr(rows_module, "BLOCK_ROWS", block)
    rows = make("igp", domain)
    np.testing.assert_array_equal(asks(rows, 40, f), first)
    cell = next(iter(rows._engine.partition.leaves.values()))
    assert isinstance(cell.posterior, rows_module.RowPosterior)
    for policy in (dense, rows):
        for x in first[:3]:
            for _ in range(20 * block if block < 64 else 5):
                policy.tell(x, float(f(x)[0]) + 0.01)
    np.testing.assert_array_equal(asks(rows, 15, f), asks(dense, 15, f))
    if block < 64:
        assert len(cell.posterior._memory) < rows.told / 1.5  # they were
    a, b = rows.predict(first), dense.predict(first)
    for left, right in zip(a, b, strict=True):
        np.testing.assert_allclose(left, right, atol=1e-8)
    assert rows.certificate() == pytest.approx(dense.certificate(), abs=1e-7)
    # extra points, pending plans, and a copy
    extra = random_points(domain, 6, 4)
    for policy in (dense, rows):
        for x in extra:
            policy.tell(x, 0.1)
    batch = [dense.ask() for _ in range(6)]
    np.testing.assert_array_equal([rows.ask() for _ in range(6)], batch)
    rows = copy.deepcopy(rows)
    for policy in (dense, rows):
        policy.cancel(batch[2])
        policy.tell(batch[4], 0.3)
        policy.tell(np.array(batch[:2]), [0.2, 0.1])
    np.testing.assert_array_equal(asks(rows, 10, f), asks(dense, 10, f))
    assert (rows.told, rows.pending) == (dense.told, dense.pending)


def test_a_box_with_many_told_points_under_igp_ucb(monkeypatch):
    """Lattice and told points together pass DENSE_LIMIT: the posterior is kept by rows."""
    monkeypatch.setattr(igp_ucb, "BOX_CANDIDATES", 1100)  # as users have it
    monkeypatch.setattr(rows_module, "DENSE_LIMIT", 1100)
    domain = pt.Box([0.0], [2.0])
    policy = make("igp", domain, kernel=pt.Matern(2.5, 0.3), norm_bound=10.0)
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 2, (100, 1))
    policy.tell(X, np.sin(4 * X[:, 0]) + 0.1 * rng.normal(size=len(X)))
    cell = next(iter(policy._engine.partition.leaves.values()))
    assert isinstance(cell.posterior, rows_module.RowPosterior)
    policy.tell([0.7654321], 0.0)
    want = policy.predict(domain.from_unit(policy._engine.partition.candidates.points(cell.layout)))
    np.testing.assert_allclose(cell.posterior.mean, want.mean, atol=1e-8)
    np.testing.assert_allclose(cell.posterior.std, want.std, atol=1e-8)
    x = policy.ask()
    assert policy.predict(x[None, :]).upper[0] == pytest.approx(want.upper.max(), abs=1e-8)


@pytest.mark.parametrize("factor", [1e6, 1e-6, 1e3, 0.5])
@pytest.mark.parametrize("where", ["grid1", "arms", "box2"])
@every_ucb
def test_scale_of_values_does_not_matter(kind, where, factor):
    """f, B and L multiplied together: the same asks, and answers multiplied as well."""
    domain = DOMAINS[where]
    f = bumps(domain, 4)
    rng = np.random.default_rng(3)
    plain = make(kind, domain)
    scaled = make(kind, domain, norm_bound=factor, noise=pt.SubGaussian(0.1 * factor))
    for _ in range(60):
        x, other = plain.ask(), scaled.ask()
        np.testing.assert_array_equal(x, other)
        y = float(f(x)[0]) + 0.1 * rng.normal()
        plain.tell(x, y)
        scaled.tell(other, factor * y)
    a, b = plain.recommend(), scaled.recommend()
    np.testing.assert_array_equal(a.x, b.x)
    np.testing.assert_allclose(np.array(a[1:]) * factor, b[1:], rtol=1e-6)
    assert scaled.certificate() == pytest.approx(factor * plain.certificate(), rel=1e-6)


@every_ucb
def test_one_arm(kind):
    policy = make(kind, pt.Arms([[0.5, 0.5]]))
    history = run(policy, 30)
    assert policy.recommend().x.tolist() == [0.5, 0.5]
    # a single arm is the best arm: what is left of the certificate is the width of its interval
    got = policy.recommend()
    assert policy.certificate() <= got.upper - got.lower + 1e-8
    assert_cover(Oracle(policy), history)


@every_ucb
def test_large_values(kind):
    """Far beyond B, as when B was wrong: nothing overflows, and asks stay in the domain."""
    for where in ("grid2", "box1"):
        policy = make(kind, DOMAINS[where])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", pt.TheoryWarning)
            for sign in (1, -1) * 15:
                policy.tell(policy.ask(), sign * 1e150)
            assert np.isfinite(policy.predict(random_points(DOMAINS[where], 5)).mean).all()
            assert policy.certificate() >= 0
            policy.recommend()
