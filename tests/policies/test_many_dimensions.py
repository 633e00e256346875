"""Every policy in many dimensions: bounded in time and memory wherever it is told, or refused."""

import contextlib
import itertools
import signal
from pathlib import Path

import numpy as np
import pytest

import partita as pt
from partita.model.assumptions import Assumptions
from partita.policies import registry
from partita.policies.construct import construct
from partita.policies.ucb import UCBPolicy

KNOWN = Assumptions(pt.Matern(1.5, 0.3), norm_bound=2.0, noise=pt.Uniform(-0.2, 0.2), delta=0.1)
DIMS = (24, 30, 50, 100)
#: What one call may take: far more than any needs, and far less than 2^24 cells do.
SECONDS, BYTES = 10.0, 1 << 30
CASES = [
    (name, kind)
    for name in registry.names()
    for kind in ("box", "arms")
    if kind in registry.get(name).domains
]
#: Policies that refuse a box of many dimensions, and the most that they play.
MOST_DIMS = {"pi-gp-ucb-tight": 6, "pi-gp-ts": 6, "confidence-ball": 12, "oful": 12}


def build(name, domain):
    """A policy that is told what it must know."""
    method = registry.get(name)
    return construct(
        method.load(), domain, KNOWN, horizon=400, seed=0, settings={**method.settings}
    )


@contextlib.contextmanager
def bounded():
    """Fail what takes too long or too much memory, instead of taking the machine down with it."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_AS)
    most = before[0]
    memory = Path("/proc/self/statm")
    if memory.exists():
        most = int(memory.read_text().split()[0]) * resource.getpagesize() + BYTES

    def late(*_):
        raise TimeoutError(f"a call took more than {SECONDS:g} s")

    handler = signal.signal(signal.SIGALRM, late)
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        resource.setrlimit(resource.RLIMIT_AS, before)
        signal.signal(signal.SIGALRM, handler)


def places(dim, seed=0, count=3):
    """The centre, corners, points on edges and faces of every level, and points anywhere."""
    rng = np.random.default_rng([seed, dim])
    edge = np.zeros(dim)
    edge[0] = 0.5
    points = [np.full(dim, c) for c in (0.5, 0.0, 1.0, 0.25, 0.75)] + [edge, 1 - edge]
    points += [*rng.integers(0, 2, (count, dim)), *rng.integers(0, 9, (count, dim)) / 8]
    return np.array([*points, *rng.random((count, dim))], dtype=float)


def play(name, kind, dim, seed=0, count=3, asks=4):
    """Make a policy and call everything it has; how many cells it has at last, or None."""
    points = places(dim, seed, count)
    domain = pt.Box([0.0] * dim, [1.0] * dim) if kind == "box" else pt.Arms(points)
    policy = build(name, domain)
    values = np.sin(points.sum(axis=1))
    for x, y in zip(points, values, strict=True):
        with bounded():
            policy.tell(x, y)
    for x, y in itertools.islice(zip(points, values, strict=True), 3):  # so that cells split again
        with bounded():
            policy.tell(x, y)
    for i in range(asks):
        with bounded():
            x, other = policy.ask(), policy.ask()
            policy.cancel(other)
            policy.tell(x, 0.1 * i)
    with bounded():
        policy.tell(points, values)
    with bounded():
        assert (policy.recommend().x >= 0).all()
        if hasattr(policy, "predict"):
            assert np.isfinite(policy.predict(points).mean).all()
        if hasattr(policy, "certificate"):
            assert policy.certificate() >= 0
        if isinstance(policy, UCBPolicy):
            return look(policy)
    return None


def look(policy):
    """The cells of a policy: counted at once, and listed or refused."""
    assert 1 <= policy.cells <= policy.cells_created
    if policy.cells > 1_000_000:
        with pytest.raises(pt.errors.InvalidInput, match=r"at most 1,000,000 can be listed"):
            _ = policy.cover
    else:
        assert len(policy.cover) == policy.cells
    return policy.cells


@pytest.mark.filterwarnings("ignore::partita.TheoryWarning")
@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize(("name", "kind"), CASES, ids=["-".join(case) for case in CASES])
def test_a_policy_in_many_dimensions_is_quick_or_refused(name, kind, dim):
    if kind == "box" and name in MOST_DIMS:
        message = rf"the box has {dim} dimensions.* at most {MOST_DIMS[name]}.*(PiGPUCB|Arms)"
        with bounded(), pytest.raises(pt.errors.InvalidInput, match=message):
            play(name, kind, dim)
        return
    cells = play(name, kind, dim)
    if name == "pi-gp-ucb-paper":
        assert cells >= 2**dim  # it did split, where 2^d cells meet


def test_more_dimensions_than_a_sobol_set_has_are_refused():
    domain = pt.Box([0.0] * 22_000, [1.0] * 22_000)
    with bounded(), pytest.raises(pt.errors.InvalidInput, match=r"at most 21,201\. Leave out"):
        build("pi-gp-ucb", domain)


@pytest.mark.parametrize("dim", [12, 20, 50])
def test_a_proven_policy_says_what_can_be_expected_in_many_dimensions(dim):
    domain = pt.Box([0.0] * dim, [1.0] * dim)
    message = rf"the box has {dim} dimensions.*norm_bound less the best value.*CalibratedUCB"
    with pytest.warns(pt.TheoryWarning, match=message):
        policy = build("pi-gp-ucb", domain)
    for _ in range(30):
        x = policy.ask()
        policy.tell(x, 0.0)
    assert policy.certificate() >= KNOWN.norm_bound


def test_a_smooth_function_may_differ_less():
    smooth = pt.Matern(2.5, 10.0)
    with pytest.warns(pt.TheoryWarning, match=r"a certificate of about 0\.\d+\."):
        pt.PiGPUCB(
            pt.Box([0.0] * 20, [1.0] * 20),
            horizon=400,
            kernel=smooth,
            norm_bound=2.0,
            noise=pt.Uniform(-0.2, 0.2),
        )


def test_in_few_dimensions_and_on_arms_nothing_is_said(recwarn):
    build("pi-gp-ucb", pt.Box([0.0] * 8, [1.0] * 8))
    build("pi-gp-ucb", pt.Arms(np.random.default_rng(0).random((40, 30))))
    assert not [each for each in recwarn if each.category is pt.TheoryWarning]
