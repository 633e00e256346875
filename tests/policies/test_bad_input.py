"""What each bad input gets: a PartitaError that says what to do, and nothing changes."""

import pickle
import warnings
from contextlib import contextmanager

import numpy as np
import pytest
from support.oracle import DOMAINS, KINDS, asks, bumps, every_kind, make

import partita as pt
from partita.errors import InvalidInput, NotPending

NAN, INF = float("nan"), float("inf")
WHERE = ("grid2", "arms", "box1", "box5")


def busy(kind, where):
    """A policy with data and pending points."""
    domain = DOMAINS[where]
    policy = make(kind, domain, horizon=200)
    asks(policy, 12, bumps(domain))
    pending = [policy.ask() for _ in range(3)]
    return policy, pending


@contextmanager
def unchanged(policy):
    """Check that the whole state, to the last byte, is the same afterwards."""
    before = pickle.dumps(policy)
    yield
    assert pickle.dumps(policy) == before


def refused(policy, call, *words, error=InvalidInput):
    """Check that a call is refused, says each of `words`, and counts nothing."""
    counts = policy.told, policy.pending
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(error) as caught:
            call()
    assert isinstance(caught.value, pt.PartitaError)
    message = str(caught.value)
    for word in words:
        assert word in message, message
    assert (policy.told, policy.pending) == counts


# -- tell ------------------------------------------------------------------------------------------

BAD_VALUES = {
    "nan": NAN,
    "inf": INF,
    "-inf": -INF,
    "numpy nan": np.float32("nan"),
    "too large": 1e200,
    "a huge integer": 10**400,
    "text": "0.5",
    "text in an array": np.array("0.5"),
    "bytes": b"1",
    "None": None,
    "a list": [0.5],
    "an array": np.array([0.5, 0.6]),
    "an empty list": [],
    "complex": 1 + 2j,
    "numpy complex": np.complex128(1 + 2j),
    "an object": object(),
    "a dict": {"y": 1.0},
    "a date": np.datetime64("2020-01-01"),
}


@pytest.mark.parametrize("where", ["grid2", "box5"])
@every_kind
def test_values_that_are_not_one_finite_number(kind, where):
    policy, pending = busy(kind, where)
    for value in BAD_VALUES.values():
        with unchanged(policy):
            refused(policy, lambda value=value: policy.tell(pending[0], value))
            refused(policy, lambda value=value: policy.tell(policy.domain.lower, value))
            refused(policy, lambda value=value: policy.tell(np.array(pending), value))
    policy.tell(pending[0], 0.5)  # still pending, and goes on
    assert policy.pending == 2


def test_messages_of_bad_values_say_what_to_do():
    policy, pending = busy("pi", "grid2")
    refused(policy, lambda: policy.tell(pending[0], NAN), "nan", "finite", "cancel(x)")
    refused(policy, lambda: policy.tell(pending[0], 1e200), "1e+200", "1e+150")
    refused(policy, lambda: policy.tell(pending[0], [1.0, 2.0]), "(2,)", "(n, d)")
    refused(policy, lambda: policy.tell([0.0, 2.0], 1.0), "2.0", "not an arm", "nearest")
    refused(policy, lambda: policy.tell([0.0], 1.0), "(1,)", "2 dimensions", "(2,)")
    refused(policy, lambda: policy.tell([[0.0, 0.0]], [1.0, 2.0]), "1 points", "(2,)")
    rows = np.zeros((10, 2))
    values = np.zeros(10)
    values[7] = NAN
    refused(policy, lambda: policy.tell(rows, values), "7", "nan", "cancel")
    box, _ = busy("pi", "box2")
    refused(box, lambda: box.tell([0.0, 16.0], 1.0), "outside", "coordinate 1", "15.0")
    refused(box, lambda: box.cancel([0.1, 0.2]), "no pending ask", "ask()", error=NotPending)


def bad_points(domain):
    """x that are no point of the domain, by what is wrong with them."""
    inside = (domain.lower + domain.upper) / 2
    nan, inf = inside.copy(), inside.copy()
    nan[-1], inf[0] = NAN, INF
    return {
        "nan": nan,
        "inf": inf,
        "above": domain.upper + 1.0,
        "below": domain.lower - 1e-6 * (domain.upper - domain.lower),
        "too few coordinates": inside[:-1],
        "too many coordinates": np.append(inside, 0.5),
        "a number": 0.5,
        "three axes": inside[None, None, :],
        "empty": [],
        "text": "0.5",
        "texts": [str(c) for c in inside],
        "None": None,
        "Nones": [None] * domain.dim,
        "complex": inside + 1j,
        "complex list": [complex(c) for c in inside],
        "ragged": [[0.1], [0.1, 0.2]],
        "a dict": {"x": 1},
        "huge": [10**400] * domain.dim,
        "objects": [object()] * domain.dim,
    }


@pytest.mark.parametrize("where", WHERE)
@every_kind
def test_points_outside_the_domain(kind, where):
    policy, _ = busy(kind, where)
    domain = DOMAINS[where]
    good = policy.recommend().x
    for x in bad_points(domain).values():
        with unchanged(policy):
            refused(policy, lambda x=x: policy.tell(x, 0.5))
            refused(policy, lambda x=x: policy.cancel(x), error=pt.PartitaError)
            refused(policy, lambda x=x: policy.tell([good, x, good], [0.1, 0.2, 0.3]))
            if kind != "uniform":
                refused(policy, lambda x=x: policy.predict(x))
                refused(policy, lambda x=x: policy.predict([x]))
    twin, _ = busy(kind, where)
    f = bumps(domain)
    np.testing.assert_array_equal(asks(policy, 10, f), asks(twin, 10, f))


@pytest.mark.parametrize("where", ["grid2", "arms"])
@every_kind
def test_arms_that_do_not_exist(kind, where):
    policy, _ = busy(kind, where)
    domain = DOMAINS[where]
    between = domain.points[:2].mean(axis=0)
    refused(policy, lambda: policy.tell(between, 1.0), "not an arm", "nearest")
    X = np.concatenate([domain.points[:9], between[None, :]])
    refused(policy, lambda: policy.tell(X, np.zeros(10)), "X[9]", "not an arm")
    if kind != "uniform":
        refused(policy, lambda: policy.predict(X), "not an arm")


@pytest.mark.parametrize("where", WHERE)
@every_kind
def test_bulks_with_one_bad_row(kind, where):
    policy, pending = busy(kind, where)
    domain = DOMAINS[where]
    X = np.array([*pending, *pending, *pending, pending[0]])
    Y = np.arange(10.0)
    with unchanged(policy):
        for bad in (NAN, INF, -INF, 1e160):
            values = Y.copy()
            values[7] = bad
            refused(policy, lambda values=values: policy.tell(X, values), "7")
        for bad in (NAN, INF, 1e9):
            rows = X.copy()
            rows[7, -1] = bad
            refused(policy, lambda rows=rows: policy.tell(rows, Y), "X[7]")
        for values in (Y[:9], Y[:, None], np.zeros((10, 10)), 1.0, None, [], ["a"] * 10, Y + 1j):
            refused(policy, lambda values=values: policy.tell(X, values))
        refused(policy, lambda: policy.tell(X[:, :-1], Y), "shape")
        refused(policy, lambda: policy.tell(X[None], Y[None]), "shape")
        refused(policy, lambda: policy.tell(X, [*Y[:-1].tolist(), "1.0"]))
        refused(policy, lambda: policy.tell(X, [*Y[:-1].tolist(), 10**400]))
        refused(policy, lambda: policy.tell(X, [*Y[:-1].tolist(), None]))
        refused(policy, lambda: policy.tell(np.empty((0, domain.dim + 1)), []))
        refused(policy, lambda: policy.tell(np.empty((0, domain.dim)), [1.0]))
    with unchanged(policy):
        policy.tell(np.empty((0, domain.dim)), [])
        policy.tell(np.empty((0, domain.dim)), np.empty(0))


def test_odd_but_good_values_are_taken():
    policy = make("pi", pt.Grid(5))
    for y in (1, np.int8(1), np.float32(0.5), np.float64(0.5), np.array(0.5), 10**18, -0.0):
        policy.tell([0.25], y)
    policy.tell([0], 0)
    policy.tell((0.25,), 1)
    policy.tell(np.array([0.25], dtype=np.float32), 1)
    policy.tell([[0], [1]], [1, 2])
    policy.tell(np.asfortranarray(np.array([[0.25], [0.5]])), (1.0, 2.0))
    assert policy.told == 14


# -- cancel ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", WHERE)
@every_kind
def test_cancelling_what_is_not_pending(kind, where):
    policy, pending = busy(kind, where)
    told = policy.ask()
    policy.tell(told, 0.1)
    while any(np.array_equal(told, x) for x in pending):  # asked twice: settle the other as well
        policy.cancel(told)
        pending = [x for x in pending if not np.array_equal(told, x)]
    refused(policy, lambda: policy.cancel(told), "no pending ask", error=NotPending)
    policy.cancel(pending[0])
    while any(np.array_equal(pending[0], x) for x in pending[1:]):
        policy.cancel(pending[0])
        pending = [pending[0], *[x for x in pending[1:] if not np.array_equal(pending[0], x)]]
    refused(policy, lambda: policy.cancel(pending[0]), "cancelled", error=NotPending)
    refused(policy, lambda: policy.cancel(pending[1][None, :]), error=pt.PartitaError)
    refused(policy, lambda: policy.cancel(pending[1] + 1e-9), error=NotPending)
    changed = pending[1].copy()
    changed[0] = 77.0
    refused(policy, lambda: policy.cancel(changed), "77", error=NotPending)
    assert isinstance(NotPending(""), LookupError)


def test_cancel_of_a_fresh_policy():
    for kind in KINDS:
        policy = make(kind, pt.Grid(5))
        refused(policy, lambda policy=policy: policy.cancel([0.25]), error=NotPending)


# -- constructors ----------------------------------------------------------------------------------


def test_kernel_settings():
    for value in (0, -1, NAN, INF, -INF, None, "1", True, [1.0], np.array([1.0, 2.0]), 1j):
        with pytest.raises(InvalidInput, match="nu="):
            pt.Matern(value)
        if not isinstance(value, list | np.ndarray):
            with pytest.raises(InvalidInput, match="lengthscale="):
                pt.Matern(1.5, value)
    for value in ([], [0.1, 0.0], [0.1, NAN], [0.1, -1], ["0.1"], [[0.1]], np.zeros((0,))):
        with pytest.raises(InvalidInput, match="lengthscale"):
            pt.Matern(1.5, value)


def test_bounds_and_arms():
    for lower, upper in [
        ([0.0], [0.0]),
        ([1.0], [0.0]),
        ([], []),
        ([0.0], [1.0, 2.0]),
        ([NAN], [1.0]),
        ([0.0], [INF]),
        (0.0, 1.0),
        (["0"], [1.0]),
        ([0.0], [None]),
        ([1e9], [1e9 + 1e-6]),  # too few floats for two points not to be the same
    ]:
        with pytest.raises(InvalidInput):
            pt.Box(lower, upper)
    with pytest.raises(InvalidInput, match=r"points\[0\] and points\[2\] are both"):
        pt.Arms([[0.5], [0.25], [0.5]])
    for points in ([], [[]], [[2.0]], [[NAN]], [0.5], [["a"]], [[0.1], [0.1, 0.2]]):
        with pytest.raises(InvalidInput):
            pt.Arms(points)
    for n, dim in [(1, 1), (0, 1), (2.5, 1), (3, 0), (True, 1), (10, 30)]:
        with pytest.raises(InvalidInput):
            pt.Grid(n, dim=dim)


def test_extreme_settings_that_are_allowed_work():
    for norm_bound, noise in ((1e-50, 1e50), (1e50, 1e-50), (1e-50, 1e-50)):
        settings = {"norm_bound": norm_bound, "noise": pt.Gaussian(noise), "horizon": 20}
        for domain in (pt.Grid(5), pt.Box([0.0], [1.0])):
            policy = pt.PiGPUCB(domain, kernel=pt.Matern(1.5, 1e-300), **settings)
            for _ in range(5):
                policy.tell(policy.ask(), 0.5 * norm_bound)
            assert np.isfinite(policy.certificate())
