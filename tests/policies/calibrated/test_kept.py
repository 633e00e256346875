"""The posterior that is kept for slices: row by row as at once, and the same choice as by all."""

import math

import numpy as np
import pytest

import partita as pt
from partita.gp import _loops
from partita.gp.settings import Settings
from partita.policies.calibrated import _loops as slice_loops
from partita.policies.calibrated import factors
from partita.policies.calibrated.candidates import Plan
from partita.policies.calibrated.factors import kernel_between
from partita.policies.calibrated.kept import Kept
from partita.policies.fixed import Fixing
from partita.study.packed import pack, unpack


@pytest.mark.parametrize("form", [1, 2])
def test_the_kernel_is_that_of_the_loops(form):
    random = np.random.default_rng(form)
    left, right = random.random((20, 3)) / 0.2, random.random((7, 3)) / 0.2
    left[0], left[1] = right[0], 1e60  # the same point, and one as far away as can be
    kernel = kernel_between(left, right, form)
    assert np.allclose(kernel, _loops.matern(left, right, form), rtol=1e-13, atol=1e-300)
    assert kernel[0, 0] == 1.0
    assert (kernel[1] == 0.0).all()


@pytest.fixture(params=["blocks", "rows"])
def kind(request, monkeypatch):
    """Both forms of a factor, whatever the number of data."""
    monkeypatch.setattr(factors, "COMPILED_FROM", 0 if request.param == "rows" else 10**9)
    return request.param


def _kept(base, room, seed=0):
    random = np.random.default_rng(seed)
    settings = Settings(np.array([0.3, 0.5]), 0.2, 2, 1.0, 2.0)
    points, targets = random.random((base, 2)), random.standard_normal(base)
    noise = random.uniform(0.05, 0.5, base)
    more = np.empty(room)
    kept = Kept(
        settings,
        np.arange(base),
        np.arange(base),
        np.concatenate([points, np.empty((room, 2))]),
        np.concatenate([targets, more]),
        np.concatenate([noise, more]),
        base,
        base,
    )
    return kept, random


def test_rows_added_one_by_one_give_the_posterior_of_all(kind):
    kept, random = _kept(12, 9)
    for i in range(9):
        site = 12 + i if i % 2 else i  # new points, and values more at points that there are
        point = random.random(2) if i % 2 else kept.points[i].copy()
        kept.add(site, point, float(random.standard_normal()), float(random.uniform(0.1, 1)))
    assert kept.full
    assert kept.sites.tolist() == [*range(12), 13, 15, 17, 19]
    scaled = kept.points / kept.settings.scales
    noisy = _loops.matern_among(scaled, 2) + np.diag(kept.noise)
    fresh = random.random((30, 2))
    across = _loops.matern(scaled, fresh / kept.settings.scales, 2)
    solved = np.linalg.solve(noisy, across)
    at = kept.moments(kept.across(fresh))
    assert np.allclose(at.mean, solved.T @ kept.targets, atol=1e-12)
    assert np.allclose(at.variance, 1 - (solved * across).sum(axis=0), atol=1e-12)
    assert np.allclose(kept.weights @ kept.across(fresh), at.mean, atol=1e-12)
    assert kept.compiled == (kind == "rows")
    sites = kept.points[kept.rows]
    assert np.allclose(kept.means(), kept.moments(kept.across(sites)).mean, atol=1e-12)


@pytest.mark.parametrize("free", [(0,), (0, 1, 2, 3)])
@pytest.mark.parametrize("width", [1.5, 4.0])
def test_a_screen_has_the_variances_of_all_points_that_can_be_best(kind, free, width):
    """Against the textbook posterior: what is left out has a lower index than the best."""
    random, dim = np.random.default_rng(len(free)), 5
    settings = Settings(np.full(dim, 0.4), 0.2, 1 + len(free) % 2, 0.0, 1.0)
    points, noise = random.random((90, dim)), random.uniform(0.05, 0.5, 90)
    targets = np.sin(6 * points[:, 0]) + 0.2 * random.standard_normal(90)
    sites = np.arange(90)
    kept = Kept(settings, sites, sites, points, targets, noise, 90, 90)
    fixed = [i for i in range(dim) if i not in free]
    where = Fixing(np.array(fixed), points[3, fixed])
    fresh = where.moved(random.random((60, dim)))
    near = kept.hopeful(where, 6)
    away = (points[:, fixed] - points[3, fixed]) / 0.4
    assert np.allclose(near.toward, (away**2).sum(axis=1), atol=1e-12)
    mean, variance, across = kept.screen(fresh, where, near.toward, width, -math.inf)
    kernel = _loops.matern_among(points / 0.4, settings.form) + np.diag(noise)
    wanted = _loops.matern(points / 0.4, fresh / 0.4, settings.form)
    solved = np.linalg.solve(kernel, wanted)
    means, left = solved.T @ targets, 1 - (solved * wanted).sum(axis=0)
    assert np.allclose(across, wanted, atol=1e-12)
    assert np.allclose(mean, means, atol=1e-11)
    there = ~np.isnan(variance)
    assert np.allclose(variance[there], left[there], atol=1e-11)
    index = means + width * np.sqrt(left)
    assert there[np.argmax(index)]
    assert there[np.argmax(means)]
    assert not there.all()
    none = kept.screen(fresh, where, near.toward, width, float(index.max()) + 1e-6)
    assert np.isnan(none.variance).sum() > np.isnan(variance).sum()


def test_the_best_sites_near_a_slice(kind):
    kept, _ = _kept(40, 3)
    where = Fixing(np.array([1]), np.array([0.3]))
    near = kept.hopeful(where, 6)
    moved = where.moved(kept.points[:40])
    settings = kept.settings
    likeness = [
        _loops.matern(a[None] / settings.scales, b[None] / settings.scales, settings.form)[0, 0]
        for a, b in zip(kept.points[:40], moved, strict=True)
    ]
    hope = kept.means() - np.sqrt(np.maximum(2 - 2 * np.array(likeness), 0))
    best = np.argsort(-hope)[:6]
    assert np.array_equal(near.points, kept.points[best])
    assert np.allclose(near.hopes, hope[best], atol=1e-12)


def test_fresh_points_of_a_box_are_in_the_slice_and_all_over_it():
    random = np.random.default_rng(0)
    centres = np.array([[0.2, 0.5, 0.7], [0.2, 0.9, 0.7], [0.8, 0.1, 0.1]])
    numbers, values = np.array([1]), np.array([0.25])
    uniform, normal = random.random((70, 7)), random.standard_normal((40, 3))
    rows = slice_loops.draw(
        centres, numbers, values, np.ones(3), uniform, normal, 30, 0.004, 0.3, 2.0**30
    )
    assert rows.shape == (2 + 30 + 40, 3)  # the second centre is the first one, moved
    assert (rows[:, 1] == 0.25).all()
    assert ((rows >= 0) & (rows <= 1)).all()
    assert np.array_equal(rows * 2**30, np.rint(rows * 2**30))
    assert np.allclose(rows[2:32, ::2], uniform[:30, [0, 2]], atol=2**-30)
    from_centre = np.abs(rows[32:, None, ::2] - rows[None, :2, ::2]).max(axis=2)
    assert (from_centre.min(axis=1) > 0).all()  # each has moved
    near = np.sort(from_centre.min(axis=1))
    assert near[5] < 0.02
    assert near[-5] > 0.05
    inside = slice_loops.inside(rows, numbers, values, np.zeros(3), np.array([0.5, 1.0, 1.0]))
    assert np.array_equal(inside, np.flatnonzero(rows[:, 0] < 0.5))
    everything = slice_loops.draw(
        centres, np.arange(3), centres[0], np.ones(3), uniform, normal, 30, 0.004, 0.3, 2.0**30
    )
    assert np.array_equal(everything, centres[:1])


def test_a_saved_posterior_goes_on_to_the_last_bit(kind):
    from partita._state import Saved

    kept, random = _kept(12, 9)
    for i in range(4):
        kept.add(20 + i, random.random(2), 0.3 * i, 0.2)
    again = Kept.restored(Saved(unpack(pack(kept.state())), "kept"), 40, 2, 100, 64)
    for one in (kept, again):
        one.add(30, np.array([0.25, 0.5]), -0.7, 0.3)
    fresh = random.random((5, 2))
    for ours, theirs in zip(
        *(one.moments(one.across(fresh)) for one in (kept, again)), strict=True
    ):
        assert np.array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("points", np.full((12, 2), 2.0)),
        ("targets", np.zeros(11)),
        ("noise", np.zeros(12)),
        ("rows", np.full(12, 12)),
        ("sites", np.zeros(12, dtype=np.int64)),
        ("base", 13),
        ("room", 65),
    ],
)
def test_bad_states_are_refused(name, value):
    from partita._state import BadState, Saved

    kept, _ = _kept(12, 9)
    state = kept.state()
    Kept.restored(Saved(state, "kept"), 40, 2, 100, 64)
    with pytest.raises(BadState):
        Kept.restored(Saved({**state, name: value}, "kept"), 40, 2, 100, 64)


def _played(rounds, seed=0, dim=3):
    """A policy after some rounds, the first coordinates of which are the context."""
    random = np.random.default_rng(seed)
    policy = pt.CalibratedUCB(pt.Box([0] * dim, [1] * dim), seed=seed)
    for _ in range(rounds):
        fixed = {i: math.floor(8 * random.random()) / 8 + 1 / 16 for i in range(dim - 1)}
        x = policy.ask(fixed=fixed)
        value = math.exp(-(((x[-1] - 0.2 - 0.6 * x[0]) / 0.2) ** 2))
        policy.tell(x, value + 0.2 * random.standard_normal())
    return policy


def test_the_choice_by_few_variances_is_that_by_all(monkeypatch, kind):
    policy, differ = _played(60), 0
    part = policy._slices
    plan = Plan({}, policy._sites, policy._regions.home)
    whole = Kept.screen

    def all_of_them(self, points, where, toward, width, least):
        mean, _, across = whole(self, points, where, toward, width, least)
        return factors.Screened(mean, self.moments(across).variance, across)

    for i in range(20):
        where = policy._unit_slice({0: (i % 8) / 8 + 1 / 16, 1: (i % 3) / 8 + 1 / 16})
        quick = part.choose(np.random.default_rng(i), where, i % 4 == 3, plan)
        with monkeypatch.context() as patched:
            patched.setattr(Kept, "screen", all_of_them)
            slow = part.choose(np.random.default_rng(i), where, i % 4 == 3, plan)
        assert np.array_equal(quick, slow)
        differ += not np.array_equal(
            quick, part.choose(np.random.default_rng(i), where, False, plan)
        )
    assert differ  # a probe chooses otherwise


def test_values_since_are_in_the_posterior_and_the_policy_goes_on_from_its_state(kind):
    policy = _played(50)
    assert policy._slices._kept
    assert any(kept.used > kept.base for kept in policy._slices._kept.values())
    other = pt.CalibratedUCB(policy.domain, seed=0)
    other.restore(unpack(pack(policy.state())))
    for i in range(12):
        fixed = {0: i / 16 + 1 / 32, 1: 0.3125}
        x, y = policy.ask(fixed=fixed), other.ask(fixed=fixed)
        assert np.array_equal(x, y)
        for one in (policy, other):
            one.tell(x, float(x.sum()))
    assert pack(policy.state()) == pack(other.state())


def test_bulk_values_repeats_and_fits_make_posteriors_again():
    policy = _played(50)
    x = policy.ask(fixed={0: 0.3125, 1: 0.3125})
    number = policy._regions.number_at(x)
    assert number in policy._slices._kept
    policy.tell(x, 0.5, std=0.1, count=3)
    assert number not in policy._slices._kept
    policy.ask(fixed={0: 0.3125, 1: 0.3125})
    assert number in policy._slices._kept
    policy.tell(np.random.default_rng(0).random((5, 3)), np.zeros(5))
    assert number not in policy._slices._kept
