"""States as plain data: a policy that was saved and restored goes on to the last bit."""

import functools
import warnings

import numpy as np
import pytest
from support.oracle import irregular_arms, random_points

import partita as pt
from partita._state import BadState
from partita.errors import InvalidInput
from partita.gp import planning
from partita.gp import warm as warm_module
from partita.model.assumptions import Assumptions
from partita.model.noise import Uniform
from partita.partition import candidates as candidates_module
from partita.policies import optional, registry
from partita.policies.calibrated import regions as regions_module
from partita.policies.construct import construct
from partita.study.packed import pack, unpack

ASSUMPTIONS = Assumptions(pt.Matern(1.5, 0.3), 2.0, Uniform(-0.5, 0.5), 0.1)
DOMAINS = {
    "grid": pt.Grid(9, dim=2),
    "arms": irregular_arms(),
    "box": pt.Box([0.0, -1.0], [1.0, 3.0]),
    "rows": pt.Grid(65, dim=2),  # too many arms for a full covariance
    "box1": pt.Box([0.0], [1.0]),
    "box5": pt.Box([0.0] * 5, [2.0] * 5),
}
EVERY = [(name, kind) for name in registry.names() for kind in registry.get(name).domains]
#: What the rest of the state machine needs besides: rows, deep covers, Sobol' candidates.
MORE = [
    *((name, "rows") for name in ("igp-ucb", "gp-ucb", "sup-kernel-ucb", "calibrated-ucb")),
    *((name, "box1") for name in ("pi-gp-ucb-paper", "pi-gp-ucb", "pi-gp-ucb-tight", "hoo")),
    *((name, "box5") for name in ("pi-gp-ucb", "pi-gp-ts", "igp-ucb", "direct", "calibrated-ucb")),
]


def make(name, kind, horizon=400):
    method = registry.get(name)
    settings = dict(method.settings)
    return construct(
        method.load(), DOMAINS[kind], ASSUMPTIONS, horizon=horizon, seed=3, settings=settings
    )


def restored(policy, fresh):
    """A new policy, once the state of another went through bytes into it."""
    data = pack(policy.state())
    fresh.restore(unpack(data))
    assert pack(fresh.state()) == data
    return fresh


def same(a, b):
    return np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True)


def answers(policy, points):
    yield from policy.recommend()
    yield optional.certificate(policy)
    if optional.has_posterior(policy):
        yield from policy.predict(points)


def check_walk(fresh, *, steps, seed, saves=0.1):
    """Play two policies alike; one of them is saved and restored now and then."""
    random = np.random.default_rng(seed)
    policy, twin = fresh(), fresh()
    domain = policy.domain
    points, pending = random_points(domain, 5, seed), []

    def tell(x, std=None):
        """Tell both a value, or values; pending points that they settle are pending no more."""
        values = (
            np.sin(3.0 * np.atleast_2d(x)).sum(axis=1) + 0.2 * random.normal(size=np.size(x))[0]
        )
        known = {} if std is None else {"std": std}
        for each in (policy, twin):
            each.tell(x, values if x.ndim == 2 else float(values[0]), **known)
        for row in np.atleast_2d(x):
            same_point = [i for i, p in enumerate(pending) if p.tobytes() == row.tobytes()]
            if same_point:
                del pending[same_point[0]]

    for step in range(steps):
        if random.random() < saves and can_be_saved(twin):
            twin = restored(twin, fresh())
        way = random.random()
        if way < 0.6 or not pending:
            x, y = policy.ask(), twin.ask()
            assert x.tobytes() == y.tobytes(), f"ask at step {step}"
            pending.append(x)
            if way < 0.45:
                known = policy.takes_std and random.random() < 0.2
                tell(pending[random.integers(len(pending))], 0.3 if known else None)
        elif way < 0.7:
            x = pending.pop(random.integers(len(pending)))
            policy.cancel(x), twin.cancel(x)
        elif way < 0.75:
            tell(random_points(domain, 3, step)[0])
        elif way < 0.78:
            tell(random_points(domain, int(random.integers(1, 9)), step))
        elif way < 0.9:
            tell(pending[0])
        else:
            ours, theirs = answers(policy, points), answers(twin, points)
            for a, b in zip(ours, theirs, strict=True):
                assert same(a, b), f"answers at step {step}: {a}, {b}"
    assert (policy.told, policy.pending) == (twin.told, twin.pending)
    if can_be_saved(policy):
        assert pack(policy.state()) == pack(twin.state())


def can_be_saved(policy):
    """Whether no plan is by a covariance that was given up since."""
    try:
        policy.state()
    except BadState:
        if warm_module.WARM_NUMBERS == 2**26:
            raise
        return False
    return True


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize(("name", "kind"), [*EVERY, *MORE])
def test_every_policy_goes_on_to_the_last_bit(name, kind):
    check_walk(functools.partial(make, name, kind), steps=40 if kind == "rows" else 60, seed=1)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("name", "kind"),
    [("pi-gp-ucb", "box"), ("pi-gp-ucb-paper", "box"), ("pi-gp-ts", "box1"), ("igp-ucb", "box1")],
)
def test_with_little_memory_and_silent_sites(name, kind, seed, monkeypatch):
    """Which covariance is given up next, and which sites are no candidates, is in the state."""
    monkeypatch.setattr(candidates_module, "EXTRA_LIMIT", 4)
    monkeypatch.setattr(warm_module, "WARM_NUMBERS", 60_000)
    check_walk(functools.partial(make, name, kind), steps=100, seed=seed)


@pytest.mark.parametrize("kind", ["box", "rows"])
def test_many_regions(kind, monkeypatch):
    monkeypatch.setattr(regions_module, "REGION_POINTS", 24)
    monkeypatch.setattr(regions_module, "MOST_DATA", 36)
    monkeypatch.setattr(regions_module, "AROUND", 8)
    check_walk(functools.partial(make, "calibrated-ucb", kind), steps=110, seed=2)


def test_mixed_spaces_with_a_constraint():
    space = pt.Space(
        {"rate": (1e-3, 1.0, "log"), "layers": (1, 30, "int"), "kind": ["a", "b", "c"]},
        feasible=lambda rate, layers, kind: layers < 20 or kind != "b",
    )
    for name in (None, "uniform"):
        optimizers = [pt.Optimizer(space, seed=2, policy=name) for _ in range(2)]
        for i in range(40):
            a, b = (optimizer.ask() for optimizer in optimizers)
            assert a.params == b.params
            if i % 7 != 3:
                for optimizer in optimizers:
                    optimizer.tell(a.number, a.params["rate"] + a.params["layers"] / 40)
            if i % 9 == 4:
                fresh = pt.Optimizer(space, seed=2, policy=name).policy
                optimizers[1].game.policy = restored(optimizers[1].policy, fresh)
        assert optimizers[0].recommend()[2:] == optimizers[1].recommend()[2:]


def test_the_order_of_pending_plays_is_kept(monkeypatch):
    """A plan is lowered by one play after the other: in another order the last bits differ."""
    seen = []
    real = planning.Planner.std

    def std(self, told, plan):
        result = real(self, told, plan)
        seen.append(result.tobytes())
        return result

    monkeypatch.setattr(planning.Planner, "std", std)
    policy = make("igp-ucb", "grid")
    for x in DOMAINS["grid"].points[::7]:
        policy.tell(x, float(x.sum()))
    pending = [policy.ask() for _ in range(12)]
    assert len({x.tobytes() for x in pending}) > 3
    twin = restored(policy, make("igp-ucb", "grid"))
    seen.clear()
    assert same(policy.ask(), twin.ask())
    (*_, theirs), ours = seen, seen[: len(seen) // 2]
    assert theirs == ours[-1]


def test_a_state_is_independent_of_the_policy():
    """What happens later does not change it."""
    policy = make("pi-gp-ucb", "box")
    for _ in range(10):
        x = policy.ask()
        policy.tell(x, float(x.sum()))
    state = policy.state()
    before = pack(state)
    for _ in range(10):
        x = policy.ask()
        policy.tell(x, float(x.sum()))
    assert pack(state) == before


@pytest.mark.parametrize("name", registry.names())
def test_a_policy_that_was_played_is_not_restored_into(name):
    kind = registry.get(name).domains[0]
    policy = make(name, kind)
    state = policy.state()
    assert state is not None
    policy.ask()
    with pytest.raises(InvalidInput, match="has already been used"):
        policy.restore(state)


def test_a_state_of_a_larger_domain_is_refused():
    state = make("pi-gp-ucb", "grid").state()
    with pytest.raises(BadState):
        make("pi-gp-ucb", "rows").restore(state)
