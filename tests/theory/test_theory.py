"""Exponents and bounds: formulas against their text, relations between them, gains, the command."""

import argparse
import itertools
import math
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import partita as pt
from partita import _optional as optional
from partita import theory
from partita.commands import theory as command
from partita.errors import InvalidInput
from partita.gp import rows as rows_module
from partita.partition import cover
from partita.partition.widths import PaperWidth
from partita.theory import figure
from partita.theory.registry import BALL

DOCS = Path(__file__).parents[2] / "docs"
KERNEL = pt.Matern(nu=1.5, lengthscale=0.2)
F = Fraction
HALF = F(1, 2)

dims = st.integers(1, 12)
#: Fractions in which equalities, such as 2ν = d², occur.
nus = st.builds(F, st.integers(1, 160), st.sampled_from([1, 2, 3, 4, 8]))


def exact(name, d, nu):
    return theory.get(name).exact(d, nu)


# -- formulas -----------------------------------------------------------------------------------


def evaluated(formula, d, nu):
    """The value of a formula as it is printed, by a reading of its own."""
    text = formula.replace("−", "-").replace("²", "**2").replace("{", "(").replace("}", ")")
    text = text.replace("ν", "v").replace("min", "M")
    text = re.sub(r"(?<=[0-9dv)])(?=[dvM(])", "*", text)
    text = re.sub(r"(?<![*\d])(\d+)", r"F(\1)", text)
    return eval(text, {"F": F, "M": min, "d": F(d), "v": nu})


def test_the_reading_of_formulas():
    assert evaluated("min{1, (3d²+2ν)/(2d²+4ν)}", 2, F(4)) == F(20, 24)
    assert evaluated("−d(2d+3)/2min(ν,1)", 3, HALF) == -F(27, 4)


@pytest.mark.parametrize("name", theory.names())
@settings(max_examples=25)
@given(d=dims, nu=nus)
def test_every_formula_says_what_is_computed(name, d, nu):
    exponent = theory.get(name)
    assert exponent.exact(d, nu) == evaluated(exponent.formula, d, nu)
    assert exponent(d, float(nu)) == pytest.approx(float(exponent.exact(d, nu)), rel=1e-14)


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
    assert exact("doo", d, nu) == exact("soo", d, nu) == -1 / near
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


# -- information gain ---------------------------------------------------------------------------


def gain(kernel, points, alpha):
    return 0.5 * np.linalg.slogdet(np.eye(len(points)) + kernel(points) / alpha)[1]


@pytest.mark.parametrize("alpha", [0.01, 1.0, 3.0])
def test_information_gain_and_effective_dimension(alpha):
    points = np.random.default_rng(1).uniform(size=(40, 2))
    points[7] = points[3]  # twice the same point
    kernel = pt.Matern(nu=2.5, lengthscale=[0.2, 0.5])
    gram = kernel(points)
    found = theory.information_gain(kernel, points, alpha)
    assert found == pytest.approx(gain(kernel, points, alpha), rel=1e-10)
    dimension = theory.effective_dimension(kernel, points, alpha)
    inverse = np.linalg.inv(gram + alpha * np.eye(40))
    assert dimension == pytest.approx(np.trace(gram @ inverse), rel=1e-8)
    # Calandriello et al. 2019, Proposition 5.
    largest = np.linalg.eigvalsh(gram)[-1]
    assert dimension <= 2 * found <= dimension * (1 + math.log(1 + largest / alpha))


def test_gains_of_domains():
    grid, arms = pt.Grid(5, dim=2), pt.Arms([[1.0], [2.0], [4.0]], 1.0, 4.0)
    for domain in (grid, arms):
        for compute in (theory.information_gain, theory.effective_dimension):
            assert compute(KERNEL, domain) == compute(KERNEL, domain.unit_points)
    assert arms.unit_points.ravel() == pytest.approx([0, 1 / 3, 1])
    one = theory.greedy_information_gain(KERNEL, grid, 1.0, 9)
    two = theory.greedy_information_gain(KERNEL, grid.points, 1.0, 9)
    assert all(map(np.array_equal, one, two))
    for compute in (theory.information_gain, theory.effective_dimension):
        assert compute(KERNEL, np.empty((0, 2))) == 0.0


@pytest.mark.parametrize("alpha", [0.05, 1.0, 4.0])
@pytest.mark.parametrize("seed", range(4))
def test_greedy_bounds_hold_the_largest_gain(alpha, seed):
    points = np.random.default_rng(seed).uniform(size=(5, 2)) * 0.4
    bounds = theory.greedy_information_gain(KERNEL, points, alpha, 5)
    gram = KERNEL(points)
    for t in range(1, 6):
        largest = max(
            0.5 * np.linalg.slogdet(np.eye(t) + gram[np.ix_(c, c)] / alpha)[1]
            for c in itertools.combinations_with_replacement(range(5), t)
        )
        assert bounds.lower[t - 1] <= largest + 1e-12
        assert bounds.upper[t - 1] >= largest - 1e-12
    assert bounds.upper[0] == pytest.approx(bounds.lower[0])  # one greedy point is the best one


@pytest.mark.parametrize("alpha", [0.1, 1.0])
def test_greedy_points_are_greedy(alpha):
    points = np.random.default_rng(2).uniform(size=(30, 2))
    lower, upper, chosen = theory.greedy_information_gain(KERNEL, points, alpha, 60)
    added = np.diff(lower, prepend=0.0)
    for t in range(60):
        options = [gain(KERNEL, points[[*chosen[:t], j]], alpha) for j in range(30)]
        assert lower[t] == pytest.approx(max(options), rel=1e-10)
    assert (np.diff(added) <= 1e-12).all()  # submodular
    assert (upper >= lower).all()
    assert (upper <= lower * math.e / (math.e - 1)).all()
    assert upper[-1] < 0.97 * lower[-1] * math.e / (math.e - 1)  # what is known is used


def test_many_candidates_take_the_other_posterior(monkeypatch):
    cases = (pt.Grid(6, dim=2), pt.Arms(np.random.default_rng(3).uniform(size=(30, 2))))
    dense = [theory.greedy_information_gain(KERNEL, domain, 0.5, 40) for domain in cases]
    monkeypatch.setattr(rows_module, "DENSE_LIMIT", 10)
    for domain, expected in zip(cases, dense, strict=True):
        found = theory.greedy_information_gain(KERNEL, domain, 0.5, 40)
        # Symmetric points may be taken in another order.
        assert found.lower == pytest.approx(expected.lower, rel=1e-8)
        assert found.upper == pytest.approx(expected.upper, rel=1e-8)


def test_one_point_for_a_long_time():
    bounds = theory.greedy_information_gain(KERNEL, [[0.5]], 2.0, 5000)
    t = np.arange(1, 5001)
    assert bounds.lower == pytest.approx(0.5 * np.log1p(t / 2.0), rel=1e-9)
    assert not bounds.chosen.any()


@pytest.mark.parametrize("nu", [0.5, 1.5])
def test_the_largest_gain_grows_as_the_theory_says(nu):
    bounds = theory.greedy_information_gain(pt.Matern(nu, 0.2), pt.Grid(501, dim=1), 1.0, 1000)
    slopes = [math.log2(bounds.lower[2 * t - 1] / bounds.lower[t - 1]) for t in (125, 250, 500)]
    assert slopes == sorted(slopes, reverse=True)
    assert theory.get("gain-vakili")(1, nu) < slopes[-1] < theory.get("gain-srinivas")(1, nu)


def test_gains_refuse():
    points = np.zeros((3, 2))
    functions = (theory.information_gain, theory.effective_dimension)
    for compute in (*functions, lambda *a: theory.greedy_information_gain(*a, 3)):
        with pytest.raises(InvalidInput, match="kernel=None"):
            compute(None, points, 1.0)
        with pytest.raises(InvalidInput, match="alpha=0"):
            compute(KERNEL, points, 0)
        with pytest.raises(InvalidInput, match="Give a Grid or Arms"):
            compute(KERNEL, pt.Box([0.0], [1.0]), 1.0)
        with pytest.raises(InvalidInput, match="3 lengthscales"):
            compute(pt.Matern(1.5, [1, 2, 3]), points, 1.0)
        with pytest.raises(InvalidInput, match="points has shape"):
            compute(KERNEL, [0.5, 0.2], 1.0)
    for steps in (0, 1.5, None, math.inf):
        with pytest.raises(InvalidInput, match=r"steps=.*at least 1"):
            theory.greedy_information_gain(KERNEL, points, 1.0, steps)
    with pytest.raises(InvalidInput, match="at least one point"):
        theory.greedy_information_gain(KERNEL, np.empty((0, 1)), 1.0, 3)


# -- the command --------------------------------------------------------------------------------


def run(*arguments):
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers(dest="command"))
    return command.run(parser.parse_args(["theory", *map(str, arguments)]))


def rows_of(text, heading):
    lines = text[text.index(heading) :].splitlines()[2:]
    table = itertools.takewhile(lambda line: line.startswith("|"), lines)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def test_table(capsys):
    assert run("table", "--dim", 1, 3, "--nu", "0.5", "3/2", "inf") == 0
    out = capsys.readouterr().out
    head, _, *rows = rows_of(out, "Regret:")
    assert head[1:] == [f"d={d}, ν={nu}" for d in (1, 3) for nu in ("1/2", "3/2", "∞")]
    values = dict(zip((row[0] for row in rows), (row[1:] for row in rows), strict=True))
    assert values["π-GP-UCB"] == ["–", "0.667", "0.500", "–", "0.833", "0.500"]
    assert values["HOO"] == ["0.750", "0.667", "0.667", "0.875", "0.800", "0.800"]
    assert len(rows) == len(theory.names("regret"))
    assert rows_of(out, "Simple regret lower bound:")[2][1:3] == ["−0.250", "−0.375"]


def test_exact_table(capsys):
    assert run("table", "--dim", 3, "--nu", "1.5", "--exact") == 0
    rows = dict(rows_of(capsys.readouterr().out, "Regret:"))
    assert rows["π-GP-UCB"] == "5/6"
    assert rows["uniform sampling"] == "1"


def test_list_has_everything(capsys):
    assert run("list") == 0
    out = capsys.readouterr().out
    for name in theory.names():
        each = theory.get(name)
        assert f"| `{name}`" in out
        assert each.formula in out
        assert each.note in out
    row = next(line for line in out.splitlines() if line.startswith("| `pi-gp-ucb`"))
    assert "‖f‖ ≤ B, ν > 1 " in row
    assert "Theorem 1" in row


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("table", "--nu", "x"), "smoothness 'x': give a positive number"),
        (("table", "--nu", "0"), "smoothness '0'"),
        (("table", "--nu", "1/0"), "smoothness '1/0'"),
        (("table", "--nu", "nan"), "smoothness 'nan'"),
        (("table", "--dim", "0"), "dim=0: give the dimension"),
        (("plot", "--dims", "0"), "dim=0: give the dimension"),
        (("plot", "--dims", *range(1, 14)), "13 dimensions: give from 1 to 12"),
        (("plot", "--nu-max", "1"), "nu_max=1.0: give a finite smoothness above 1"),
        (("plot", "--nu-max", "inf"), "nu_max=inf"),
        (("plot", "--out", "a.pdf"), "--out a.pdf: give a file that ends in .png or .svg"),
        (("plot", "--out", ""), "--out"),
        (("plot", "--out", "no/such/folder/a.png"), "no/such/folder/a.png: No such file"),
    ],
)
def test_refusals_are_one_line(arguments, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"partita: {message}")
    assert captured.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_without_matplotlib(monkeypatch, capsys, tmp_path):
    def missing(name):
        raise ImportError("none here")

    monkeypatch.setattr(optional, "import_module", missing)
    assert run("plot", "--out", tmp_path / "a.png") == 2
    assert "pip install 'partita[experiments]'" in capsys.readouterr().err


def test_plot_writes_what_was_asked(tmp_path, capsys):
    assert run("plot", "--dims", 2, "--out", tmp_path / "both") == 0
    assert run("plot", "--dims", 2, "--out", tmp_path / "one.SVG") == 0
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert set(files) == {"both.png", "both.svg", "one.SVG"}
    assert files["both.png"].startswith(b"\x89PNG")
    assert b"<svg" in files["one.SVG"]
    assert files["one.SVG"] == files["both.svg"]  # the same every time
    assert f"written to {tmp_path / 'one.SVG'}\n" in capsys.readouterr().out


@pytest.mark.parametrize(("dims", "nu_max"), [((1, 2, 3), 5), ((2,), 1.5), ((1, 4, 2, 6), 30)])
def test_the_figure(dims, nu_max, monkeypatch):
    kept = []
    monkeypatch.setattr(figure.style, "saved", saved_to(kept, figure.style.saved))
    figure.draw(dims, nu_max)
    (drawn,) = kept
    drawn.draw_without_rendering()
    panels = [axes for axes in drawn.axes if axes.axison]
    assert len(panels) == len(dims)
    texts = [text.get_window_extent() for text in drawn.texts]
    for panel, d in zip(panels, dims, strict=True):
        assert panel.get_title(loc="left") == f"d = {d}"
        check_lines(panel, d, nu_max)
        labels = [text.get_window_extent() for text in panel.texts]
        assert len(labels) == len(figure.LINES)
        # Names lie beside the panel, inside the figure, and apart from all else.
        frame = panel.get_window_extent()
        assert all(label.x0 > frame.x1 for label in labels)
        assert all(label.x1 < drawn.bbox.x1 for label in labels)
        everything = [
            *labels,
            *texts,
            *(other.get_tightbbox() for other in panels if other != panel),
        ]
        everything += [panel._left_title.get_window_extent()]
        for one, two in itertools.product(labels, everything):
            assert one is two or not shrunk(one).overlaps(shrunk(two))
        assert not any(panel._left_title.get_window_extent().overlaps(text) for text in texts)
    assert all(text.x1 < drawn.bbox.x1 for text in texts)


def saved_to(kept, save):
    def saved(drawn, title, text):
        kept.append(drawn)
        return save(drawn, title, text)

    return saved


def shrunk(box):
    """A box without the empty space that fonts keep above and below letters."""
    return box.padded(-0.12 * box.height)


def check_lines(panel, d, nu_max):
    """Every line is drawn where its proof holds, at its values."""
    drawn = [line for line in panel.lines if len(line.get_xdata()) > 1]
    for line, wanted in zip(drawn, figure.LINES, strict=True):
        exponent = theory.get(wanted.exponent)
        x, y = line.get_data()
        assert x[0] == pytest.approx(exponent.proven_above, abs=0.01)
        assert x[-1] == nu_max
        assert y == pytest.approx(exponent(d, x))
    (shade,) = panel.collections
    x, y = shade.get_paths()[0].vertices.T
    lower, best = theory.get("lower-bound"), [theory.get(n) for n in figure._OPTIMISTIC]
    for nu, value in zip(x[1:-1], y[1:-1], strict=True):
        known = min(e(d, nu) for e in best if e.proven_above <= nu)
        assert min(abs(value - lower(d, nu)), abs(value - known)) < 1e-9


# -- the page, and imports ----------------------------------------------------------------------


def test_the_page_has_what_the_command_prints(capsys):
    page = (DOCS / "theory.md").read_text(encoding="utf-8")
    for arguments in (("list",), ("table", "--dim", 1, 2, 3, "--nu", "1/2", "3/2", "5/2")):
        assert run(*arguments) == 0
        assert capsys.readouterr().out in page
        assert f"partita theory {' '.join(map(str, arguments))}" in page
    for target in re.findall(r"\]\((figures/[^)]*)\)", page):
        assert (DOCS / target).stat().st_size < 400_000


def test_the_command_is_light():
    script = "import sys, partita.commands.theory; print('numpy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
