"""The paper's experiments: which runs they consist of. Janz et al. 2020, "Empirical validation"."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from partita.errors import InvalidInput
from partita.policies.named import PolicySpec

from .specs import ProblemSpec, Task

EXPERIMENTS = ("table1", "figure1", "figure2")
#: What is compared unless asked otherwise: the paper's two, and our default.
COMPARED = ("igp-ucb", "pi-gp-ucb-paper", "pi-gp-ucb")
DIMS = (1, 2, 3)
#: Dimension of figure 1.
FIGURE_DIM = 2
HORIZON = 10_000
RUNS = 12
QUICK_RUNS = 5
#: With --quick, IGP-UCB in three dimensions: a run takes minutes otherwise.
QUICK_IGP_HORIZON, QUICK_IGP_RUNS = 1_000, 3

LABELS = {
    "igp-ucb": "IGP-UCB",
    "pi-gp-ucb-paper": "π-GP-UCB (paper’s preset)",
    "pi-gp-ucb": "π-GP-UCB (Partita’s default)",
    "uniform": "uniform sampling",
}
#: Figure 2's functions, by their name in `partita.problems`, and their titles.
FUNCTIONS = {
    "branin": "Branin",
    "camel": "Six-hump camel",
    "rosenbrock": "Rosenbrock",
    "eggholder": "Eggholder",
}


class Published(NamedTuple):
    """An entry of the paper's Table 1."""

    regret: str
    time: str


PUBLISHED = {
    (1, "igp-ucb"): Published("0.11", "82 min"),
    (2, "igp-ucb"): Published("0.71", "118 min"),
    (3, "igp-ucb"): Published("0.97", "30 h"),
    (1, "pi-gp-ucb-paper"): Published("0.09", "12 min"),
    (2, "pi-gp-ucb-paper"): Published("0.52", "97 s"),
    (3, "pi-gp-ucb-paper"): Published("0.77", "29 min"),
}


@dataclass(frozen=True)
class Plan:
    """How an experiment is made: T steps, several runs, of which dimensions and policies."""

    runs: int = RUNS
    horizon: int = HORIZON
    dims: tuple[int, ...] = DIMS
    policies: tuple[str, ...] = COMPARED
    quick: bool = False

    def __post_init__(self) -> None:
        """Refuse what could not be run."""
        for name, number in (("runs", self.runs), ("horizon", self.horizon)):
            if number < 1:
                raise InvalidInput(f"--{name} {number}: give at least 1.")
        for dim in self.dims:
            if dim not in DIMS:
                raise InvalidInput(f"--dims {dim}: Table 1 has dimensions 1, 2 and 3.")
        for name in self.policies:
            if name not in LABELS:
                raise InvalidInput(
                    f"policy {name!r} is not of the paper's experiments: give {', '.join(LABELS)}. "
                    "`partita compare` runs every other."
                )
        if not self.dims or not self.policies:
            raise InvalidInput("--dims, --policies: give at least one.")
        # Each once, in the order of the table, whatever order they were given in.
        object.__setattr__(self, "dims", tuple(d for d in DIMS if d in self.dims))
        object.__setattr__(self, "policies", tuple(p for p in LABELS if p in self.policies))


def synthetic(dim: int) -> ProblemSpec:
    """Functions of known norm with noise on [−1, 1]: m = 30d centres, Matérn 3/2, ℓ = 1/5."""
    return ProblemSpec("synthetic", dim=dim, side=30, noise=1.0)


def literature(name: str) -> ProblemSpec:
    """A function scaled to [−1, 1] with noise on [−0.1, 0.1], and the norm bound a guess of 1."""
    return ProblemSpec(name, dim=2, side=30, noise=0.1, norm_bound=1.0)


def table1(plan: Plan) -> dict[tuple[int, str], list[Task]]:
    """Runs of each dimension and policy."""
    return {(d, p): _runs(plan, p, synthetic(d)) for d in plan.dims for p in plan.policies}


def figure1(plan: Plan) -> dict[str, list[Task]]:
    """Runs of each policy in two dimensions: those of Table 1."""
    return {p: _runs(plan, p, synthetic(FIGURE_DIM)) for p in plan.policies}


def figure2(plan: Plan) -> dict[tuple[str, str], list[Task]]:
    """Runs of each function and policy."""
    return {(f, p): _runs(plan, p, literature(f)) for f in FUNCTIONS for p in plan.policies}


_GROUPS: dict[str, Callable[[Plan], Mapping[Any, list[Task]]]]
_GROUPS = {"table1": table1, "figure1": figure1, "figure2": figure2}


def tasks(experiment: str, plan: Plan) -> list[Task]:
    """All runs of an experiment."""
    return [task for group in _GROUPS[experiment](plan).values() for task in group]


def _runs(plan: Plan, policy: str, problem: ProblemSpec) -> list[Task]:
    horizon, runs = plan.horizon, plan.runs
    if plan.quick and policy == "igp-ucb" and problem.dim == 3:
        horizon, runs = min(horizon, QUICK_IGP_HORIZON), min(runs, QUICK_IGP_RUNS)
    return [Task(PolicySpec(policy), problem, horizon, seed) for seed in range(runs)]
