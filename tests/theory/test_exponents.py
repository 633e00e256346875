"""Exponents: values by hand, relations between them, limits, what is refused."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partita import theory
from partita.errors import InvalidInput
from partita.partition import cover
from partita.partition.widths import PaperWidth
from partita.theory.registry import BALL

F = Fraction
HALF = F(1, 2)

dims = st.integers(1, 12)
#: Fractions in which equalities, such as 2ν = d², occur.
nus = st.builds(F, st.integers(1, 160), st.sampled_from([1, 2, 3, 4, 8]))


def exact(name, d, nu):
    return theory.get(name).exact(d, nu)


# -- formulas -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "d", "nu", "value"),
    [
        # By hand, from the sources' own formulas.
        ("pi-gp-ucb", 3, F(3, 2), F(27 + 3, 30 + 6)),
        ("pi-gp-ucb", 1, F(3, 2), F(5 + 3, 6 + 6)),
        ("igp-ucb-printed", 2, F(5, 2), F(12 + 5, 8 + 10)),
        ("igp-ucb-printed", 3, F(3, 2), F(1)),
        ("igp-ucb", 1, F(5, 2), F(6 + 5, 4 + 10)),
        ("igp-ucb", 2, F(5, 2), F(1)),
        ("igp-ucb-janz", 2, F(5, 2), HALF + F(6, 8 + 5)),
        ("igp-ucb-vakili", 2, F(5, 2), HALF + F(2, 2 + 5)),
        ("lower-bound", 3, F(3, 2), F(3, 4)),
        ("simple-lower-bound", 3, F(3, 2), F(-1, 4)),
        ("gain-srinivas", 3, F(3, 2), F(12, 15)),
        ("gain-janz", 3, F(3, 2), F(12, 18)),
        ("gain-vakili", 3, F(3, 2), F(3, 6)),
        ("gp-ucb-whitehouse", 2, F(5, 2), F(13, 18)),
        ("gp-ucb-bayes", 2, F(5, 2), F(17, 22)),
        ("hoo", 3, HALF, F(7, 8)),
        ("hoo", 3, F(3, 2), F(4, 5)),
        ("hoo-interior", 2, F(3, 2), F(7, 10)),
        ("hoo-interior", 2, F(5, 2), F(4, 6)),
        ("doo", 2, HALF, F(-1, 4)),
        ("stosoo", 2, F(5, 2), F(-1, 2)),
        ("oful", 2, F(5, 2), HALF),
        ("uniform", 2, F(5, 2), F(1)),
        ("cell-exponent", 3, F(3, 2), F(4, 6)),
        ("cover-exponent", 3, F(3, 2), F(12, 18)),
        ("cell-count", 3, F(3, 2), F(2)),
    ],
)
def test_values_by_hand(name, d, nu, value):
    assert exact(name, d, nu) == value


def test_values_are_correctly_rounded_and_broadcast():
    exponent = theory.get("pi-gp-ucb")
    assert exponent(3, 1.5) == 5 / 6
    nu = np.array([[0.5, 1.5], [2.5, np.inf]])
    values = exponent(2, nu)
    assert values.shape == (2, 2)
    assert values.dtype == np.float64
    assert values.tolist() == [[exponent(2, v) for v in row] for row in nu.tolist()]
    assert exponent(2, [1.5, 2]).tolist() == [exponent(2, 1.5), exponent(2, 2)]
    assert exponent(2, np.array([])).shape == (0,)
    for same in (F(3, 2), np.float64(1.5), np.float32(1.5), np.array(1.5)):
        assert exponent(np.int64(3), same) == 5 / 6
        assert isinstance(exponent(3, same), float)
    assert exact("lower-bound", 1, np.int64(10**18)) == F(1 + 10**18, 1 + 2 * 10**18)


@pytest.mark.parametrize("dim", [0, -1, 1.5, 2.0, "2", None, True])
def test_dimensions_refused(dim):
    with pytest.raises(InvalidInput, match=r"dim=.*whole number of at least 1"):
        theory.get("pi-gp-ucb")(dim, 1.5)
    with pytest.raises(InvalidInput, match="dim="):
        theory.cover_exponent(dim, 1.5)


@pytest.mark.parametrize("nu", [0, -1.5, math.nan, "1.5", None, True, -math.inf])
def test_smoothness_refused(nu):
    with pytest.raises(InvalidInput, match=r"nu=.*positive number"):
        theory.get("pi-gp-ucb")(2, nu)
    with pytest.raises(InvalidInput, match="nu="):
        theory.cell_count_bound(3, 2, nu)


def test_arrays_refused():
    with pytest.raises(InvalidInput, match=r"nu=-1\.0"):
        theory.get("pi-gp-ucb")(2, [1.5, -1.0])
    with pytest.raises(InvalidInput, match="nu has entries"):
        theory.get("pi-gp-ucb")(2, ["a", "b"])


# -- the registry -------------------------------------------------------------------------------


def test_the_registry():
    assert theory.names() == tuple(theory.EXPONENTS)
    assert sum(len(theory.names(kind)) for kind in theory.KINDS) == len(theory.EXPONENTS)
    for name, each in theory.EXPONENTS.items():
        assert each.name == name
        assert each.kind in theory.KINDS
        assert each.title
        assert each.citation
    with pytest.raises(InvalidInput, match="'ucb': give one of lower-bound, "):
        theory.get("ucb")
    with pytest.raises(InvalidInput, match="kind='speed'"):
        theory.names("speed")
    with pytest.raises(TypeError):
        theory.EXPONENTS["mine"] = None
    with pytest.raises(AttributeError, match="nonsense"):
        theory.nonsense  # noqa: B018
    assert dir(theory) == sorted(theory.__all__)


def test_titles_tell_exponents_of_a_kind_apart():
    for kind in theory.KINDS:
        titles = [theory.get(name).title for name in theory.names(kind)]
        assert len(set(titles)) == len(titles)


def test_where_proofs_begin():
    holds = {name: theory.get(name).holds for name in theory.names()}
    assert not holds["pi-gp-ucb"](1)
    assert holds["pi-gp-ucb"](1.01)
    assert not holds["gp-ucb-whitehouse"](0.5)
    assert holds["sup-kernel-ucb-vakili"](0.51)
    assert not holds["gp-ucb-bayes-vakili"](2)
    assert holds["hoo"](0.01)
    assert holds["pi-gp-ucb"](math.inf)


# -- relations ----------------------------------------------------------------------------------


@given(d=dims, nu=nus)
def test_pi_gp_ucb(d, nu):
    value, q = exact("pi-gp-ucb", d, nu), exact("cover-exponent", d, nu)
    assert value == (1 + q) / 2 == exact("sup-kernel-ucb", d, nu)
    assert q == exact("gain-janz", d, nu)
    assert q < 1  # so the exponent is below 1 for every ν > 0, as far as the formula goes
    # But for ν < 1/2 the formula cannot be a bound.
    lower = exact("lower-bound", d, nu)
    assert (value < lower) == (nu < HALF)
    assert (value == lower) == (nu == HALF)


@given(d=dims, nu=nus)
def test_igp_ucb_printed_and_derived(d, nu):
    printed, derived = exact("igp-ucb-printed", d, nu), exact("igp-ucb", d, nu)
    assert derived == min(1, HALF + exact("gain-srinivas", d, nu))
    assert printed == min(1, HALF + F(d * d) / (d * d + 2 * nu))
    # The printed one is the smaller, but for where both say nothing.
    assert printed <= derived
    assert (printed == derived) == (2 * nu <= d * d)
    # "linear for 2ν ≤ d²" is true of the printed one, and of the paper's own gain in γ_T√T, but
    # the derived one is linear up to d(d+1).
    own = exact("igp-ucb-janz", d, nu)
    assert own == min(1, HALF + exact("gain-janz", d, nu))
    assert (printed == 1) == (own == 1) == (2 * nu <= d * d)
    assert (derived == 1) == (2 * nu <= d * (d + 1))
    assert printed <= own <= derived
    assert (printed < own) == (2 * nu > d * d)
    # Since 2021 the printed one is a bound all the same.
    later = exact("igp-ucb-vakili", d, nu)
    assert later <= printed
    if d == 1:
        assert later == printed
    elif printed < 1:
        assert later < printed


@given(d=dims, nu=nus)
def test_information_gains(d, nu):
    vakili, janz = exact("gain-vakili", d, nu), exact("gain-janz", d, nu)
    assert vakili == exact("gain-lower-bound", d, nu)
    assert 0 < janz < exact("gain-srinivas", d, nu) < 1  # "a strict improvement"
    assert (vakili <= janz) == (nu >= HALF)
    assert (vakili == janz) == (nu == HALF)


@pytest.mark.parametrize("name", theory.names("regret"))
@settings(max_examples=25)
@given(d=dims, nu=nus)
def test_no_bound_is_below_the_lower_bound(name, d, nu):
    exponent = theory.get(name)
    value = exponent.exact(d, nu)
    assert HALF <= value <= 1
    if exponent.setting == BALL and exponent.holds(nu):
        assert value >= exact("lower-bound", d, nu)


def test_which_bounds_are_for_the_whole_ball():
    elsewhere = {name for name in theory.names("regret") if theory.get(name).setting != BALL}
    assert elsewhere == {
        "gp-ucb-bayes",
        "gp-ucb-bayes-vakili",
        "hoo-interior",
        "confidence-ball",
        "oful",
        "sup-lin-ucb",
        "finite-arms",
        "uniform",
    }


@pytest.mark.parametrize("name", theory.names())
@settings(max_examples=8)
@given(d=dims)
def test_limits(name, d):
    exponent = theory.get(name)
    limit = exponent.exact(d, math.inf)
    assert abs(limit - exponent.exact(d, F(10**9))) < F(1, 10**6)
    if exponent.kind == "regret" and name not in {"hoo", "hoo-interior", "uniform"}:
        assert limit == HALF
    if "information gain" in exponent.kind:
        assert limit == 0


@settings(max_examples=40)
@given(d=dims, nu=nus)
def test_no_exponent_of_regret_grows_with_smoothness(d, nu):
    for name in (*theory.names("regret"), *theory.names("information gain")):
        assert exact(name, d, nu + F(1, 8)) <= exact(name, d, nu)
        assert exact(name, d + 1, nu) >= exact(name, d, nu)


@given(d=dims, nu=nus)
def test_whitehouse_is_the_best_regulariser(d, nu):
    """√T (γ + √(αγ)) with α = T^r and γ = (T/α)^(d/(d+2ν)), at the best r."""

    def at(r):
        gain = (1 - r) * F(d) / (d + 2 * nu)
        return HALF + max(gain, (r + gain) / 2)

    best, value = d / (2 * (d + nu)), exact("gp-ucb-whitehouse", d, nu)
    assert at(best) == value
    assert min(at(F(i, 60)) for i in range(61)) >= value
    assert at(F(0)) == HALF + exact("gain-vakili", d, nu)
    assert value < 1
    # π-GP-UCB's is the smaller one where 1/d + 1/ν > 1, the two are equal where it is 1.
    gap = exact("pi-gp-ucb", d, nu) - value
    assert (gap < 0) == (F(1, d) + 1 / nu > 1)
    assert (gap == 0) == (F(1, d) + 1 / nu == 1)


@given(d=dims, nu=nus)
def test_hoo(d, nu):
    value, inside = exact("hoo", d, nu), exact("hoo-interior", d, nu)
    near = d / min(nu, F(1))
    assert value == (near + 1) / (near + 2)
    assert exact("doo", d, nu) == 2 * exact("soo", d, nu) == -1 / near  # SOO of depth √T
    lower = exact("lower-bound", d, nu)
    assert (value == lower) == (nu <= 1)
    assert (inside == lower) == (nu <= 2)
    assert inside <= value
    # "hierarchical methods are better for problems with a low degree of smoothness"
    assert (value < exact("pi-gp-ucb", d, nu)) == (HALF < nu < 1 + F(d, 2))


@given(d=dims, nu=nus)
def test_sup_kernel_ucb_meets_the_lower_bound(d, nu):
    assert exact("sup-kernel-ucb-vakili", d, nu) == exact("lower-bound", d, nu)
    assert exact("simple-lower-bound", d, nu) == exact("lower-bound", d, nu) - 1


# -- the cover ----------------------------------------------------------------------------------


@given(d=dims, nu=st.floats(0.1, 20))
def test_the_cover_is_that_of_the_policies(d, nu):
    assert theory.cell_exponent(d, nu) == pytest.approx(cover.cell_exponent(d, nu), rel=1e-14)
    assert theory.cover_exponent(d, nu) == pytest.approx(cover.cover_exponent(d, nu), rel=1e-14)
    b = theory.cell_exponent(d, nu)
    assert theory.cover_exponent(d, nu) == pytest.approx(b * d / (b * d + 1), rel=1e-12)


def test_cell_count_bound():
    assert theory.cell_count_bound(2, 3, 1.5) == pytest.approx(36, rel=1e-14)
    assert theory.cell_count_bound(0, 3, F(3, 2)) == 4
    width = PaperWidth(1.0, 1.0, 0.1, 2, 2.5)
    assert theory.cell_count_bound(1000, 2, 2.5) == width.cell_count_bound(1000)
    slope = math.log(theory.cell_count_bound(10**9, 2, 2.5) / 4) / math.log(10**9 + 1)
    assert slope == pytest.approx(theory.get("cell-count")(2, 2.5), rel=1e-12)
    for t in (-1, 1.5, math.inf, None):
        with pytest.raises(InvalidInput, match=r"t=.*whole number"):
            theory.cell_count_bound(t, 3, 1.5)
