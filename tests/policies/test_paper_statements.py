"""What Janz, Burt & González (AISTATS 2020) say of their algorithm, checked on runs of ours.

Statements about one cell are checked for every cell of the cover and for the whole domain, on data
that the policy chose itself; gains, variances and memberships are computed afresh (`support`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from support.common import (
    CASES,
    DOMAINS,
    KERNEL,
    FloatArray,
    Run,
    build,
    cells_a_side,
    corner,
    holds,
    information_gain,
    play,
    run,
    synthetic,
    unit,
    variances,
    variances_before,
)

import partita as pt
from partita._types import CellView
from partita.partition.cell import Cell
from partita.partition.widths import MixtureWidth, PaperWidth, width_of

NU = KERNEL.nu
ROUNDING = 1e-9

every_case = pytest.mark.parametrize(("preset", "name"), CASES, ids=[" ".join(c) for c in CASES])
finite_cases = pytest.mark.parametrize(
    ("preset", "name"), [c for c in CASES if "box" not in c[1] and c[0] in {"paper", "few"}]
)


def count_threshold(view: CellView) -> float:
    """ρ^(−1/b), b = (d+1)/(d+2ν)."""
    d = len(view.lower)
    return cells_a_side(view) ** ((d + 2 * NU) / (d + 1))


def count_due(view: CellView, count: int) -> bool:
    """ρ^(−1/b) < n + 1; n is whole, so rounding matters only where the two are equal."""
    return count_threshold(view) < count + 1 - 1e-6


# -- the cover -------------------------------------------------------------------------------------


@every_case
def test_cells_tile_the_domain(preset: str, name: str) -> None:
    policy, points = run(preset, name)
    cover, d = policy.cover, policy.domain.dim
    assert sum(Fraction(1, cells_a_side(v)) ** d for v in cover) == 1

    finest = max(v.level for v in cover)
    scale = np.array([2 ** (finest - v.level) for v in cover])
    low = np.array([corner(v) for v in cover]) * scale[:, None]
    high = low + scale[:, None]
    overlap = ((low[:, None] < high) & (low < high[:, None])).all(axis=2)
    assert overlap.sum() == len(cover), "two cells share more than a face"

    if isinstance(policy.domain, pt.Box):
        arms = np.concatenate([np.random.default_rng(0).uniform(size=(300, d)), points])
    else:
        arms = policy.domain.unit_points
    inside = np.array([holds(v, arms) for v in cover])
    assert inside.any(axis=0).all()

    first = round(1 / cover[0].side / 2 ** cover[0].level) ** d
    splits = len(policy._engine.partition.split)
    assert policy.cells_created == first + 2**d * splits
    assert len(cover) == first + (2**d - 1) * splits
    if preset != "default":
        assert splits > 0


@every_case
def test_cells_split_when_their_rule_says_so(preset: str, name: str) -> None:
    """At every step no cell of the cover is due, and the cells that have gone were."""
    domain, steps = DOMAINS[name](), 150
    rng = np.random.default_rng(4)
    f = synthetic(domain.dim, rng)
    policy = build(preset, domain, steps, f.norm)
    rule = policy._engine.partition.rule
    alive = {(v.level, *corner(v)): v for v in policy.cover}
    gone = 0

    def due(view: CellView, points: FloatArray) -> bool:
        data = points[holds(view, points)]
        if not count_due(view, len(data)) or preset == "paper":
            return count_due(view, len(data))
        gain = information_gain(KERNEL, data, policy.alpha)
        return gain > rule.gain_limit or len(np.unique(data, axis=0)) >= rule.point_limit

    def watch(points: FloatArray) -> None:
        nonlocal alive, gone
        now = {(v.level, *corner(v)): v for v in policy.cover}
        for view in now.values():
            late = count_due(view, view.count)
            if preset != "paper":
                late &= view.information_gain > rule.gain_limit
            assert not late
        for key in alive.keys() - now.keys():
            gone += 1
            assert due(alive[key], points)
        touched = [v for v in now.values() if holds(v, points[-1:])[0]]
        assert touched
        for view in touched:
            assert view.count == holds(view, points).sum()
            assert not due(view, points)
        alive = now

    points = play(policy, f, steps, rng, watch)
    partition = policy._engine.partition
    for key in partition.split:  # also those made and split in one step, never seen alive
        side, lower = partition.geometry.side(key[0]), partition.geometry.lower(key)
        assert due(CellView(lower, side, key[0], 0, 0.0, 0.0, 0.0), points)
    assert gone <= len(partition.split)
    assert gone > 0 or preset == "default"


# -- Lemma 2: how many cells there can be ----------------------------------------------------------

DECADES = (10**2, 10**3, 10**4, 10**5)


def q(dim: int) -> float:
    return dim * (dim + 1) / (dim * (dim + 2) + 2 * NU)


def lattice(axis: FloatArray, dim: int) -> FloatArray:
    return np.stack([a.ravel() for a in np.meshgrid(*[axis] * dim, indexing="ij")], axis=1)


def costliest(dim: int, per_side: int, steps: int) -> FloatArray:
    """Points that split as many cells as they can: vertices, where 2^d cells meet, by level."""
    points, left, cells = [], steps, per_side
    vertices = lattice(np.arange(1, per_side + 1, 2) / per_side, dim)
    while left > 0:
        plays = math.ceil(cells ** ((dim + 2 * NU) / (dim + 1)) - 1e-9)
        paid = np.repeat(vertices, plays, axis=0)[:left]
        points.append(paid)
        left -= len(paid)
        vertices = lattice((np.arange(cells) + 0.5) / cells, dim)  # of the cells half as wide
        cells *= 2
    return np.concatenate(points)


def sequences(dim: int, per_side: int, steps: int) -> dict[str, FloatArray]:
    rng = np.random.default_rng(dim)
    anywhere = rng.uniform(size=(3000, dim))
    return {
        "uniform": anywhere[rng.integers(0, len(anywhere), size=steps)],
        "one point": np.full((steps, dim), 0.3),
        "centre": np.full((steps, dim), 0.5),
        "costliest": costliest(dim, per_side, steps),
    }


def cells_after(points: FloatArray, per_side: int | None, nu: float = NU) -> int:
    """|∪A_t| once a policy was told these points, from a first cover of per_side^d or T^q cells."""
    domain = pt.Arms(np.unique(points, axis=0))
    policy = pt.PiGPUCB(
        domain,
        horizon=len(points),
        kernel=pt.Matern(nu=nu, lengthscale=0.2),
        norm_bound=1.0,
        noise=pt.SubGaussian(1.0),
        width="paper",
        split="count",
        initial_cells=per_side,
    )
    policy.tell(points, np.zeros(len(points)))
    return policy.cells_created


def paper_side(dim: int, steps: int) -> int:
    return round(steps ** (q(dim) / dim))


def growth(ratios: list[float]) -> float:
    """Exponent a of the best fit ratio ~ T^a over the decades."""
    return float(np.polyfit(np.log(DECADES), np.log(ratios), 1)[0])


@pytest.mark.parametrize("first", ["{X}", "paper"])
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_the_number_of_cells_is_of_order_t_to_the_q(dim: int, first: str) -> None:
    """|∪A_t| ≤ C T^q on any sequence.

    All cells of level z are split by 2^{d(z−1)} vertices of 2^{z/b} plays each, which is T; then
    there are 2^{d(z+1)}·2^d/(2^d−1) cells in all, C = 2^{d(1+q)}·2^d/(2^d−1) times T^q.
    """
    constant = 2 ** (dim * (1 + q(dim))) * 2**dim / (2**dim - 1)
    worst = []
    for steps in DECADES:
        per_side = 1 if first == "{X}" else paper_side(dim, steps)
        made = {
            name: cells_after(points, per_side)
            for name, points in sequences(dim, per_side, steps).items()
        }
        assert max(made, key=made.__getitem__) == "costliest"
        worst.append(made["costliest"] / steps ** q(dim))
    assert max(worst) <= 1.05 * constant
    assert max(worst) >= 0.5 * constant, "the adversary is not trying"
    assert growth(worst) < 0.05


def test_control_cells_that_split_too_soon_are_too_many() -> None:
    """The same measure where cells split as if f were rougher, ν = 1/2, against ν = 3/2's T^q."""
    with pytest.warns(pt.TheoryWarning, match="nu=0.5"):
        made = [cells_after(costliest(1, 1, steps), 1, nu=0.5) for steps in DECADES]
    assert growth([n / steps ** q(1) for n, steps in zip(made, DECADES, strict=True)]) > 0.1


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_told_one_at_a_time_or_together_the_cells_are_the_same(dim: int) -> None:
    for points in sequences(dim, 2, 200).values():
        domain = pt.Arms(np.unique(points, axis=0))
        together, apart = (build("paper", domain, 200, 1.0) for _ in range(2))
        together.tell(points, np.zeros(200))
        for x in points:
            apart.tell(x, 0.0)
        ours, theirs = together._engine.partition, apart._engine.partition
        assert ours.split == theirs.split
        assert [v.count for v in together.cover] == [v.count for v in apart.cover]


def test_the_papers_bound_on_the_number_of_cells_does_not_hold() -> None:
    """Ñ_t = 4(t+1)^{bd} is to bound all cells by step t; d = 3, ν = 3/2, A_1 = {X} refutes it."""
    policy = pt.PiGPUCB(
        pt.Grid(3, dim=3),
        horizon=100,
        kernel=KERNEL,
        norm_bound=1.0,
        noise=pt.SubGaussian(1.0),
        width="paper",
        split="count",
        initial_cells=1,
    )
    centre = np.full(3, 0.5)
    policy.tell(centre, 0.0)
    policy.tell(centre, 0.0)
    width = policy._engine.width
    assert isinstance(width, PaperWidth)
    assert width.cell_count_bound(2) == pytest.approx(36, rel=1e-12)
    assert policy.cells_created == 73
    assert len(policy.cover) == 64  # even the present cover is larger

    # And a first cover of T^q cells is larger than Ñ_1 from the start.
    preset = build("paper", pt.Grid(3, dim=3), 10_000, 1.0)
    assert preset.cells_created == 512
    assert width.cell_count_bound(1) == pytest.approx(16, rel=1e-12)


# -- information gain, variance, effective dimension -----------------------------------------------


@every_case
def test_information_gain_summed_step_by_step_is_the_log_determinant(
    preset: str, name: str
) -> None:
    policy, _ = played = run(preset, name)
    for view, data in played.groups():
        assert view.count == len(data)
        expected = information_gain(KERNEL, data, policy.alpha)
        assert view.information_gain == pytest.approx(expected, rel=1e-9, abs=1e-12)
    empty = [v.information_gain for v in policy.cover if v.count == 0]
    assert not any(empty)


def subsets(played: Run) -> Iterator[FloatArray]:
    """The data of every cell of the cover, and of the whole domain."""
    yield played.points
    for _, data in played.groups():
        yield data


@every_case
def test_variances_sum_to_at_most_four_alpha_gains(preset: str, name: str) -> None:
    """Lemma "variance bound": Σ σ²_{t−1}(x_t) ≤ 4αγ. Stated for α > 1, it holds for α ≥ 1."""
    played = run(preset, name)
    for alpha in {1.0, 1.0 + 2 / 300, max(1.0, played.policy.alpha)}:
        for data in subsets(played):
            total = variances_before(KERNEL, data, alpha).sum()
            assert total <= 4 * alpha * information_gain(KERNEL, data, alpha) + ROUNDING


def test_the_variance_bound_needs_alpha_of_one_or_so() -> None:
    """It rests on s ≤ 2 log(1 + s) at s = σ²/α, which fails from s = 2.52 on."""
    policy = build("default", pt.Grid(33), 100, 1.0, alpha=0.1)
    points = play(policy, synthetic(1, np.random.default_rng(0)), 4, np.random.default_rng(1))
    for alpha, holding in ((0.1, False), (1.0, True)):
        bound = 4 * alpha * information_gain(KERNEL, points, alpha)
        assert bool(variances_before(KERNEL, points, alpha).sum() <= bound) is holding


@every_case
def test_effective_dimension(preset: str, name: str) -> None:
    """Tr(K(K+αI)⁻¹) = α⁻¹ Σ σ_T²(x_t), and d̃ ≤ 2γ ≤ d̃(1 + log(n/α + 1))."""
    played = run(preset, name)
    alpha = played.policy.alpha
    for data in subsets(played):
        n, K = len(data), KERNEL(data)
        effective = np.trace(np.linalg.solve(K + alpha * np.eye(n), K))
        last = variances(KERNEL, data, data, alpha)
        assert effective == pytest.approx(last.sum() / alpha, rel=1e-9)
        gain = information_gain(KERNEL, data, alpha)
        assert effective <= 2 * gain + ROUNDING
        assert 2 * gain <= effective * (1 + math.log(n / alpha + 1)) + ROUNDING


# -- the posterior as cells and data grow ----------------------------------------------------------


def children_of(policy: pt.PiGPUCB, cell: Cell) -> list[Cell]:
    partition = policy._engine.partition
    keys = (partition.geometry.child(cell.key, i) for i in range(2**policy.domain.dim))
    return [partition.leaves[key] for key in keys if key in partition.leaves]


@finite_cases
def test_standard_deviation_falls_with_data_and_with_a_larger_cell(preset: str, name: str) -> None:
    """σ^A_t(x) never rises with t; where A' ⊂ A, σ^{A'} ≥ σ^A (a cell against its parent)."""
    domain, steps = DOMAINS[name](), 200
    f = synthetic(domain.dim, np.random.default_rng(8))
    policy = build(preset, domain, steps, f.norm)
    partition = policy._engine.partition
    noise = np.random.default_rng(9)
    splits = raised = 0
    for _ in range(steps):
        x = policy.ask()
        arm = int(domain.index_of(x[None])[0])
        before = [(cell, cell.posterior.std.copy()) for cell, _ in partition.cells_at(arm)]
        policy.tell(x, f(unit(domain, x[None]))[0] + noise.uniform(-1, 1))
        for cell, std in before:
            after = cell.posterior.std
            assert (after <= std + ROUNDING).all()
            j = np.searchsorted(cell.layout.sites, arm)
            alpha = policy.alpha
            assert after[j] ** 2 == pytest.approx(std[j] ** 2 * alpha / (std[j] ** 2 + alpha))
            if cell.key in partition.split:
                splits += 1
                for child in children_of(policy, cell):
                    parent = after[np.searchsorted(cell.layout.sites, child.layout.sites)]
                    assert (child.posterior.std >= parent - ROUNDING).all()
                    raised += int((child.posterior.std > parent + 1e-3).any())
    assert splits > 0
    assert raised > 0, "no child lost any data"


@finite_cases
def test_standard_deviation_in_a_cell_is_no_less_than_in_the_whole_domain(
    preset: str, name: str
) -> None:
    policy, points = run(preset, name)
    whole = variances(KERNEL, points, policy.domain.unit_points, policy.alpha)
    for cell in policy._engine.partition.leaves.values():
        assert (cell.posterior.std**2 >= whole[cell.layout.sites] - ROUNDING).all()


# -- widths ----------------------------------------------------------------------------------------


def test_the_mixture_width_is_never_wider_than_the_sum_of_its_parts() -> None:
    """√(B² + (2L²/α)(γ + log 1/δ)) ≤ B + (L/√α) √(2γ + 2 log(1/δ)), each at one cell's δ."""
    rng = np.random.default_rng(0)
    for _ in range(2000):
        B, L, alpha = 10 ** rng.uniform(-3, 3, size=3)
        delta, gain = 10 ** rng.uniform(-6, -0.01), 10 ** rng.uniform(-3, 3)
        dim, level = int(rng.integers(1, 7)), int(rng.integers(0, 20))
        width = MixtureWidth(B, L, delta, alpha, dim, first_cells=int(rng.integers(1, 10**6)))
        share = -width.log_inverse_delta(level)
        parts = B + L / math.sqrt(alpha) * math.sqrt(2 * gain - 2 * share)
        value = width_of(width, gain, level, t=1)
        assert value <= parts * (1 + 1e-12)
        exact = B**2 + 2 * L**2 / alpha * (gain - share)
        assert value == pytest.approx(math.sqrt(exact), rel=1e-9)


@pytest.mark.parametrize("first_cells", [1, 7, 4096])
@pytest.mark.parametrize("dim", [1, 2, 3, 6])
def test_the_cells_that_could_exist_share_delta(dim: int, first_cells: int) -> None:
    width = MixtureWidth(1.0, 1.0, 0.1, 1.0, dim, first_cells)
    shares = [
        first_cells * 2.0 ** (dim * level) * math.exp(-width.log_inverse_delta(level))
        for level in range(61)
    ]
    assert sum(shares) <= 0.1
    assert sum(shares) >= 0.098, "some of δ is given away"


# -- Lemma 1: a cell's information gain stays small ------------------------------------------------


def largest_gain(policy: pt.PiGPUCB | pt.IGPUCB, f: FloatArray, steps: int) -> float:
    """The largest information gain that any cell ever had; f at the arms (n,)."""
    partition = policy._engine.partition
    numbers = {x.tobytes(): arm for arm, x in enumerate(policy.domain.points)}
    largest = 0.0
    for error in np.random.default_rng(steps).uniform(-1, 1, size=steps).tolist():
        x = policy.ask()
        arm = numbers[x.tobytes()]
        cells = [cell for cell, _ in partition.cells_at(arm)]
        policy.tell(x, float(f[arm]) + error)
        for cell in cells:
            largest = max(largest, cell.posterior.gain)
            if isinstance(policy, pt.PiGPUCB):
                rule = partition.rule
                limit = rule.gain_limit + 0.5 * math.log1p(1 / policy.alpha)
                most = rule.threshold(cell.key[0])  # Lemma 1 of either split
                assert (
                    cell.key in partition.split
                    or cell.count <= most
                    or cell.posterior.gain <= limit
                )
    return largest


def of_order(steps: int) -> float:
    return math.log(steps) * math.log(math.log(steps))


@pytest.mark.parametrize(("n", "dim"), [(200, 1), (30, 2), (12, 3)])
def test_information_gain_of_a_cell_is_of_order_log_t_log_log_t(n: int, dim: int) -> None:
    """γ ≤ ½ log T log log T for every cell that ever lived, and the ratio falls with T."""
    domain = pt.Grid(n, dim=dim)
    f = synthetic(dim, np.random.default_rng(dim))
    ratios = []
    for steps in (10**2, 10**3, 10**4):
        policy = build("paper", domain, steps, f.norm)
        ratios.append(largest_gain(policy, f(domain.points), steps) / of_order(steps))
    assert max(ratios) <= 0.5
    assert ratios[0] > ratios[1] > ratios[2]


def test_control_without_cells_information_gain_is_larger() -> None:
    domain = pt.Grid(30, dim=2)
    f = synthetic(2, np.random.default_rng(2))
    policy = pt.IGPUCB(domain, kernel=KERNEL, norm_bound=f.norm, noise=pt.SubGaussian(1.0))
    assert largest_gain(policy, f(domain.points), 1000) > 2 * of_order(1000)


@pytest.mark.parametrize(("n", "dim"), [(33, 1), (13, 2), (7, 3)])
def test_a_cell_of_the_information_split_exceeds_its_limit_by_one_step(n: int, dim: int) -> None:
    """Its Lemma 1: n ≤ ρ^(−1/b), or γ is at most the limit and ½ log(1 + 1/α)."""
    domain = pt.Grid(n, dim=dim)
    f = synthetic(dim, np.random.default_rng(dim))
    policy = build("few", domain, 500, f.norm)
    largest_gain(policy, f(domain.points), 500)
    assert policy._engine.partition.split
