"""Proven policies with a context: the choice is the best of the slice, and bounds hold in it."""

import math

import numpy as np
import pytest

import partita as pt
from partita.errors import InvalidInput
from partita.study.packed import pack, unpack

KERNEL, NOISE = pt.Matern(1.5, 0.3), pt.Uniform(-0.3, 0.3)
KNOWN = {"kernel": KERNEL, "norm_bound": 2.0, "noise": NOISE}
#: Contexts (first coordinate) × actions (second).
CONTEXTS, ACTIONS = np.linspace(0, 1, 5), np.linspace(0, 1, 13)
PRODUCT = pt.Arms(np.array([(c, a) for c in CONTEXTS for a in ACTIONS]))

MAKERS = {
    "pi-gp-ucb": lambda: pt.PiGPUCB(PRODUCT, horizon=150, **KNOWN, initial_cells=2),
    "from one cell": lambda: pt.PiGPUCB(PRODUCT, horizon=150, **KNOWN),
    "paper": lambda: pt.PiGPUCB.paper(PRODUCT, horizon=150, **KNOWN),
    "igp-ucb": lambda: pt.IGPUCB(PRODUCT, **KNOWN),
}


def f(x):
    return 0.8 * math.cos(3 * (x[1] - x[0])) + 0.2 * x[0]


def dense_upper(policy, points, values, rows):
    """Upper bounds at rows: in each closed cell that holds one, the exact process of its data."""
    best = np.full(len(rows), -np.inf)
    for cell in policy.cover:
        inside = [
            ((p >= cell.lower) & (p <= cell.lower + cell.side)).all(axis=1) for p in (points, rows)
        ]
        if not inside[1].any():
            continue
        X, y, at = points[inside[0]], values[inside[0]], rows[inside[1]]
        mean, variance = np.zeros(len(at)), np.ones(len(at))
        if len(X):
            weights = np.linalg.solve(KERNEL(X, X) + policy.alpha * np.eye(len(X)), KERNEL(X, at))
            mean, variance = weights.T @ y, 1.0 - (weights * KERNEL(X, at)).sum(axis=0)
        upper = mean + cell.width * np.sqrt(np.maximum(variance, 0.0))
        best[inside[1]] = np.maximum(best[inside[1]], upper)
    return best


@pytest.mark.parametrize("name", MAKERS)
def test_the_choice_is_the_highest_bound_of_the_slice_at_every_step(name):
    policy, random = MAKERS[name](), np.random.default_rng(0)
    points, values, elsewhere = np.empty((0, 2)), np.empty(0), 0
    for _ in range(120):
        context = float(CONTEXTS[random.integers(len(CONTEXTS))])
        rows = PRODUCT.points[PRODUCT.points[:, 0] == context]
        upper = dense_upper(policy, points, values, rows)
        everywhere = dense_upper(policy, points, values, PRODUCT.points)
        x = policy.ask(fixed={0: context})
        assert x[0] == context
        chosen = upper[np.flatnonzero((rows == x).all(axis=1))[0]]
        assert chosen == pytest.approx(upper.max(), abs=1e-7)
        elsewhere += chosen < everywhere.max() - 1e-3
        y = f(x) + float(random.uniform(-0.3, 0.3))
        policy.tell(x, y)
        points, values = np.vstack([points, x]), np.append(values, y)
    assert elsewhere > 30  # the control: without the context it would have chosen others


@pytest.mark.parametrize("name", MAKERS)
def test_bounds_and_certificates_hold_for_every_context(name):
    policy, random = MAKERS[name](), np.random.default_rng(1)
    truth = np.array([f(x) for x in PRODUCT.points])
    for t in range(150):
        context = float(CONTEXTS[random.integers(len(CONTEXTS))])
        x = policy.ask(fixed={0: context})
        policy.tell(x, f(x) + float(random.uniform(-0.3, 0.3)))
        if t % 30 == 29:
            for c in CONTEXTS.tolist():
                best = policy.recommend_fixed({0: c})
                highest = truth[PRODUCT.points[:, 0] == c].max()
                assert best.x[0] == c
                assert best.lower - 1e-9 <= f(best.x) <= best.upper + 1e-9
                assert highest - f(best.x) <= policy.certificate_fixed({0: c}) + 1e-9


def test_pending_points_are_planned_for_and_states_go_on():
    policy, twin = MAKERS["pi-gp-ucb"](), MAKERS["pi-gp-ucb"]()
    random = np.random.default_rng(2)
    for _ in range(20):
        for one in (policy, twin):
            batch = [one.ask(fixed={0: 0.5}) for _ in range(4)]
        assert len({x.tobytes() for x in batch}) > 1
        fresh = MAKERS["pi-gp-ucb"]()
        fresh.restore(unpack(pack(twin.state())))
        twin = fresh
        for x in batch:
            y = f(x) + float(random.uniform(-0.3, 0.3))
            policy.tell(x, y)
            twin.tell(x, y)
    assert np.array_equal(policy.ask(fixed={0: 0.25}), twin.ask(fixed={0: 0.25}))
    assert pack(policy.state()) == pack(twin.state())


def test_all_fixed_and_what_cannot_be():
    policy = MAKERS["pi-gp-ucb"]()
    assert policy.ask(fixed={0: 0.5, 1: 1.0}).tolist() == [0.5, 1.0]
    with pytest.raises(InvalidInput, match="no point of the domain has these values"):
        policy.ask(fixed={0: 0.3})
    assert policy.pending == 1
    box = pt.IGPUCB(pt.Box([0, 0], [1, 1]), **KNOWN)
    with pytest.raises(InvalidInput, match="in a finite space"):
        box.ask(fixed={0: 0.5})
    box = pt.PiGPUCB(pt.Box([0, 0], [1, 1]), horizon=100, **KNOWN, tightening=True)
    with pytest.raises(InvalidInput, match="without tightening"):
        box.ask(fixed={0: 0.5})


# -- a box: contexts and actions are real numbers -------------------------------------------------


def lowest_upper(policy, points, values, rows):
    """Upper bounds at rows (n, 2): the smallest of the cells that hold them, by all their data."""
    upper = np.full(len(rows), policy.norm_bound)
    for cell in policy.cover:
        data, here = (
            ((p >= cell.lower) & (p <= cell.lower + cell.side)).all(axis=1) for p in (points, rows)
        )
        X, y, at = points[data], values[data], rows[here]
        mean, variance = np.zeros(len(at)), np.ones(len(at))
        if len(X):
            weights = np.linalg.solve(KERNEL(X, X) + policy.alpha * np.eye(len(X)), KERNEL(X, at))
            mean, variance = weights.T @ y, 1.0 - (weights * KERNEL(X, at)).sum(axis=0)
        bound = mean + cell.width * np.sqrt(np.maximum(variance, 0.0))
        upper[here] = np.minimum(upper[here], bound)
    return upper


def test_on_a_box_the_choice_is_the_highest_bound_of_the_slice_and_bounds_hold():
    policy = pt.PiGPUCB(pt.Box([0, 0], [1, 1]), horizon=150, **KNOWN, initial_cells=2)
    random, lost, by_chance = np.random.default_rng(0), [], []
    points, values = np.empty((0, 2)), np.empty(0)
    actions = np.linspace(0, 1, 2001)
    for t in range(150):
        context = float(random.random())  # never one that was there before
        rows = np.stack([np.full(257, context), np.arange(257) / 256], axis=1)
        upper = policy.predict(rows).upper
        assert (upper <= lowest_upper(policy, points, values, rows) + 1e-7).all()  # or sharper
        assert (upper >= [f(row) for row in rows]).all()
        x = policy.ask(fixed={0: context})
        assert x[0] == context
        chosen = upper[np.flatnonzero((rows == x).all(axis=1))[0]]
        assert chosen == pytest.approx(upper.max(), abs=1e-7)
        best = max(f((context, a)) for a in actions)
        lost.append(best - f(x))
        by_chance.append(best - np.mean([f(row) for row in rows]))
        if t % 30 == 29:
            answer = policy.recommend_fixed({0: context})
            assert answer.lower - 1e-9 <= f(answer.x) <= answer.upper + 1e-9
            assert best - f(answer.x) <= policy.certificate_fixed({0: context}) + 1e-9
        y = f(x) + float(random.uniform(-0.3, 0.3))
        policy.tell(x, y)
        points, values = np.vstack([points, x]), np.append(values, y)
    assert policy.cells > 4  # some have split
    assert np.mean(lost[100:]) < 0.5 * np.mean(by_chance[100:])  # an action at random


def test_on_a_box_the_slack_is_what_f_can_change_by_between_points_of_the_lattice():
    from partita.policies.fixed import box_slice

    points, slack = box_slice({0: 3.0}, pt.Box([2, 0, 0], [4, 1, 5]), KERNEL, 2.0)
    assert (points[:, 0] == 3.0).all()
    steps = [np.unique(points[:, i]) for i in (1, 2)]
    assert [step[0] for step in steps] == [0.0, 0.0]
    assert [step[-1] for step in steps] == [1.0, 5.0]
    half = 0.5 / (len(steps[0]) - 1)
    away = KERNEL(np.zeros((1, 3)), np.array([[0.0, half, half]]))[0, 0]
    assert slack == pytest.approx(2.0 * math.sqrt(2 - 2 * away))
    everything, none = box_slice({0: 0.5, 1: 0.25}, pt.Box([0, 0], [1, 1]), KERNEL, 2.0)
    assert everything.tolist() == [[0.5, 0.25]]
    assert none == 0.0
    with pytest.raises(InvalidInput, match="outside the domain"):
        box_slice({0: 1.5}, pt.Box([0, 0], [1, 1]), KERNEL, 2.0)


def test_on_a_box_pending_points_cancelled_ones_and_states_go_on():
    def make():
        return pt.PiGPUCB(pt.Box([0, 0], [1, 1]), horizon=100, **KNOWN)

    policy, random = make(), np.random.default_rng(3)
    for i in range(40):
        batch = [policy.ask(fixed={0: float(c)}) for c in random.random(3)]
        policy.cancel(batch[1])
        if i % 10 == 0:
            again = make()
            again.restore(unpack(pack(policy.state())))
            policy = again
        for x in (batch[2], batch[0]):
            policy.tell(x, f(x) + float(random.uniform(-0.3, 0.3)))
    assert (policy.told, policy.pending) == (80, 0)
    assert policy.ask().shape == (2,)


def proven_optimizer(space, context):
    """An optimizer with proven bounds, for rewards that are at most 1."""
    optimizer = pt.Optimizer(
        space,
        context=context,
        direction="maximize",
        n_evals=200,
        norm_bound=2.0,
        noise=pt.Gaussian(0.1),
        kernel=pt.Matern(1.5, 0.5),
    )
    assert optimizer.guarantee == "proven"
    return optimizer


def test_an_optimizer_with_proven_bounds_sees_a_real_context_as_it_is():
    optimizer = proven_optimizer({"x": (0.0, 1.0)}, {"c": (0.0, 1.0)})
    random = np.random.default_rng(0)
    for c in random.random(60).tolist():
        trial = optimizer.ask(context={"c": c})
        assert trial.context == {"c": c}
        away = trial.params["x"] - c
        optimizer.tell(trial, 1.0 - away**2 + 0.1 * random.standard_normal())
    sites = optimizer.policy._engine.partition.sites
    seen = sites.points[np.flatnonzero(sites.count)]
    assert len(np.unique(seen[:, 1])) == 60  # each context is a coordinate of its own
    one = optimizer.recommend(context={"c": 0.4})
    assert one.lower <= 1.0 - (one.params["x"] - 0.4) ** 2 <= one.upper
    assert optimizer.certificate(context={"c": 0.4}) < math.inf


def test_an_optimizer_with_proven_bounds_takes_contexts():
    optimizer = proven_optimizer({"dose": (0.0, 1.0, 0.1)}, {"kind": ["a", "b"]})
    random = np.random.default_rng(0)
    for i in range(120):
        trial = optimizer.ask(context={"kind": "ab"[i % 2]})
        away = trial.params["dose"] - (0.2 if i % 2 == 0 else 0.8)
        optimizer.tell(trial, 1.0 - 2.0 * away**2 + 0.1 * random.standard_normal())
    best = [optimizer.recommend(context={"kind": kind}).params["dose"] for kind in "ab"]
    assert best == pytest.approx([0.2, 0.8], abs=0.15)
    each = [optimizer.certificate(context={"kind": kind}) for kind in "ab"]
    assert optimizer.certificate() == max(each) < 2.0
