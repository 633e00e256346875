"""What bad settings get: every policy that takes a setting refuses the same values of it."""

import inspect
import re
from fractions import Fraction

import numpy as np
import pytest

import partita as pt
from partita.errors import InvalidInput
from partita.model.assumptions import Assumptions
from partita.policies import registry

NAN, INF = float("nan"), float("inf")
KERNEL, NOISE = pt.Matern(1.5, 0.2), pt.Uniform(-0.1, 0.1)
GRID = pt.Grid(5, dim=2)
GOOD = {"horizon": 100, "kernel": KERNEL, "norm_bound": 1.0, "noise": NOISE}
#: All but the policy that learns what it is not told, which has tests of its own.
NAMES = [name for name in registry.names() if name != "calibrated-ucb"]


def build(name, domain=GRID, **changes):
    method = registry.get(name)
    make = method.load()
    takes = inspect.signature(make).parameters
    settings = {key: value for key, value in GOOD.items() if key in takes}
    return make(domain, **{**settings, **method.settings, **changes})


def parameter(name, key):
    return inspect.signature(registry.get(name).load()).parameters.get(key)


def takers(key):
    return [name for name in NAMES if parameter(name, key) is not None]


NOT_POSITIVE = (0, -1, -1.5, NAN, INF, None, "1", True, [1.0], np.array([1.0, 2.0]), 1j, 10**400)
BAD = {
    "horizon": (0, -1, 2.5, NAN, INF, True, "10", None, [10], 1j, np.array([3, 4])),
    "norm_bound": (*NOT_POSITIVE, 1e-300, 1e60),
    "alpha": NOT_POSITIVE,
    "delta": (0, 1, -0.1, 1.5, NAN, INF, None, "0.1", True, False, [0.1], 10**400),
    "seed": (-1, 1.0, 0.5, None, "0", True, NAN, [1], np.random.default_rng(0)),
    "noise": (0.1, 1, None, "gaussian", pt.Gaussian, True, np.float64(0.3)),
    "kernel": (None, "matern", 1.5, pt.Matern, lambda a, b: 1.0),
}
ADVICE = {"horizon": "at least 1", "delta": "between 0 and 1", "seed": "at least 0"}


@pytest.mark.parametrize(("key", "name"), [(key, name) for key in BAD for name in takers(key)])
def test_what_policies_share(key, name):
    for value in BAD[key]:
        if value is None and parameter(name, key).default is None:
            continue  # None asks for the default
        if name == "gp-ucb" and key == "norm_bound":
            continue  # for the other bound
        shown = "" if key in {"noise", "kernel"} else repr(value)
        with pytest.raises(InvalidInput, match=re.escape(f"{key}={shown}")) as caught:
            build(name, **{key: value})
        assert isinstance(caught.value, ValueError)
        assert ADVICE.get(key, "give") in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_domains(name):
    for value in (None, "grid", 3, [[0.0], [1.0]], pt.Grid, np.zeros((3, 2)), (0, 1)):
        with pytest.raises(InvalidInput, match=r"(?s)domain=.*Grid\(30, dim=2\)"):
            build(name, value)
    box = pt.Box([0.0, 0.0], [1.0, 1.0])
    if "box" in registry.get(name).domains:
        build(name, box)
    else:
        with pytest.raises(InvalidInput, match=r"needs a finite domain.*Grid\(30, dim=2\)"):
            build(name, box)


@pytest.mark.parametrize("name", takers("kernel"))
def test_kernels_that_do_not_fit(name):
    with pytest.raises(InvalidInput, match="3 lengthscales, but the points have dimension 2"):
        build(name, kernel=pt.Matern(1.5, [0.1, 0.2, 0.3]))


@pytest.mark.parametrize("name", [name for name in takers("noise") if name != "gp-ucb-rkhs"])
def test_noise(name):
    with pytest.raises(InvalidInput, match=r"SubGaussian\(0.1\)"):
        build(name, noise=0.1)
    for scale in (1e-300, 1e-60, 1e60):
        with pytest.raises(pt.PartitaError, match="in other units"):
            build(name, noise=pt.Gaussian(scale))


#: What one policy alone takes, or refuses.
OWN = [
    ("pi-gp-ucb", "width", ("", "Mixture", None, 1, ["paper"], b"paper"), '"mixture" or "paper"'),
    ("pi-gp-ucb", "split", ("", "none", None, 1, ["count"]), '"information" or "count"'),
    ("pi-gp-ucb", "initial_cells", (0, -1, 1.5, 2.0, "2", True, NAN, [2]), "initial_cells="),
    ("pi-gp-ucb", "index_slack", ("no", 2, None, [False]), "index_slack="),
    ("pi-gp-ucb", "alpha", (1e-14,), "rounding"),
    ("pi-gp-ucb-paper", "alpha", (0.999, 0.1), 'alpha=0.*at least 1.*width="mixture"'),
    ("igp-ucb", "alpha", (0.999, 0.1), "alpha=0.*at least 1"),
    ("gp-ucb", "bound", ("RKHS", "", None, 1), "bound="),
    ("gp-ucb", "amplitude", (0.0, -1.0, NAN, INF, "1", 1e-60, 1e60), "amplitude="),
    ("gp-ucb", "amplitude", (1e7,), "scale of f"),
    ("gp-ucb", "noise", (pt.Gaussian(1e-7),), "larger constant"),
    ("gp-ucb-rkhs", "noise", (pt.Gaussian(0.1), pt.SubGaussian(0.1)), "noise that is bounded"),
    ("gp-ucb-rkhs", "noise", (pt.Uniform(-1e-7, 1e-7),), "larger constant"),
    ("kernel-ucb", "alpha", (1e-14,), "rounding"),
    ("kernel-ucb", "exploration", (0.0, -1.0, NAN, "1"), "exploration="),
    ("bkb", "alpha", (1e-14,), "rounding"),
    ("bkb", "accuracy", (0.0, 1.0, -0.5, NAN, None, "0.5"), "accuracy="),
    ("bkb", "budget", (0.0, -1.0, INF, NAN, "5"), "budget="),
    ("oful", "intercept", (-1.0, INF, None, True), "intercept="),
    ("confidence-ball", "intercept", (-1.0, INF, None, True), "intercept="),
    ("sup-lin-ucb", "intercept", (-1.0, INF, None, True), "intercept="),
    ("hoo", "nu1", (0.0, "1"), "nu1="),
    ("hoo", "rho", (1.0, 0, NAN), "rho="),
    ("doo", "constant", (-1,), "constant="),
    ("doo", "exponent", (0, INF), "exponent="),
    ("soo", "h_max", (0, 2.5), "h_max="),
    ("stosoo", "h_max", (NAN,), "h_max="),
    ("stosoo", "k", (0, 1.5), "k="),
    ("direct", "epsilon", (-1e-4, INF, "small"), "epsilon="),
]


@pytest.mark.parametrize(("name", "key", "values", "message"), OWN)
def test_what_one_policy_takes(name, key, values, message):
    for value in values:
        with pytest.raises(InvalidInput, match=message):
            build(name, **{key: value})


@pytest.mark.parametrize("name", ["oful", "confidence-ball", "sup-lin-ucb"])
def test_arms_on_which_a_linear_function_says_nothing(name):
    with pytest.raises(InvalidInput, match="the function is 0"):
        build(name, pt.Arms([[0.0, 0.0]]), intercept=0)
    with pytest.raises(InvalidInput, match="other units"):
        build(name, pt.Arms([[0.0], [1e80]], 0, 1e80))
    with pytest.raises(InvalidInput, match="other units"):
        build(name, pt.Arms([[0.0], [1e-80]]), intercept=0)


def test_an_alpha_too_small_for_the_coordinates():
    far = pt.Arms([[0.0], [1e8]], 0, 1e8)
    for name in ("oful", "sup-lin-ucb"):
        with pytest.raises(InvalidInput, match=r"alpha=1: too small beside .* at least 1e\+06"):
            build(name, far)
        build(name, far, alpha=2e6).ask()
    build("confidence-ball", far).ask()  # which has units of its own


def test_odd_but_good_settings_are_taken():
    for name in ("pi-gp-ucb", "pi-gp-ucb-paper", "igp-ucb"):
        for key in ("norm_bound", "alpha"):
            assert build(name, **{key: Fraction(3, 2)})
            assert build(name, **{key: np.float32(1.5)})
        assert build(name, delta=1e-300).certificate() > 0
    for value in (1, 10.0, np.int64(7), np.float64(12.0), 10**9):
        assert build("pi-gp-ucb", horizon=value).horizon == value
    assert len(build("pi-gp-ucb", initial_cells=np.int64(3)).cover) == 9
    assert build("pi-gp-ucb", alpha=0.5).alpha == 0.5


@pytest.mark.parametrize("name", takers("horizon"))
def test_past_the_horizon_it_warns_once_and_goes_on(name):
    policy = build(name, pt.Grid(3), horizon=5)
    asked = [policy.ask() for _ in range(5)]
    with pytest.warns(pt.TheoryWarning, match="evaluation 6 is past the horizon of 5"):
        asked.append(policy.ask())
    for x in [*asked, policy.ask()]:
        policy.tell(x, 0.1)
    policy.ask()


@pytest.mark.parametrize("name", [n for n in NAMES if hasattr(build(n, pt.Grid(3)), "predict")])
def test_predict_refuses_points_that_are_no_arms(name):
    policy = build(name, pt.Grid(3))
    policy.tell(policy.ask(), 0.1)
    for points in ([[0.3]], [0.5], [[0.5, 0.5]], [[NAN]]):
        with pytest.raises(InvalidInput):
            policy.predict(points)


def test_assumptions_are_kept_as_given():
    policy = build("pi-gp-ucb", norm_bound=2, delta=0.05)
    assert policy.assumptions == Assumptions(KERNEL, 2.0, NOISE, 0.05)
    assert policy.assumptions.complete
    assert (policy.kernel, policy.norm_bound, policy.noise) == (KERNEL, 2.0, NOISE)
    assert (policy.delta, policy.sub_gaussian) == (0.05, NOISE.sub_gaussian)
    assert not Assumptions(KERNEL).complete
