"""Any policies on any problems: which runs that takes, and the table of what came out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from partita._text import aligned, step_time
from partita._version import __version__
from partita.errors import InvalidInput
from partita.policies import registry
from partita.policies.named import PolicySpec
from partita.problems import get, names

from .specs import SYNTHETIC, ProblemSpec, Task
from .summary import band, entry
from .table import REGRET_NOTE, estimate, runs_text
from .trace import Trace

POLICIES = ("igp-ucb", "pi-gp-ucb-paper", "pi-gp-ucb", "pi-gp-ts", "uniform")
PROBLEMS = (SYNTHETIC,)
HORIZON, RUNS = 1_000, 5
#: Arms per side of the grid by dimension; beyond, as many as make at most 4,096 arms.
SIDES = {1: 30, 2: 30, 3: 16, 4: 8, 5: 5, 6: 4}
#: Half-widths of the noise: of synthetic functions and of those scaled to [−1, 1]; and the guess
#: at the norm of the latter. Janz et al. 2020, "Empirical validation".
SYNTHETIC_NOISE, NOISE, NORM_BOUND = 1.0, 0.1, 1.0

Groups = dict[tuple[ProblemSpec, PolicySpec], list[Task]]


@dataclass(frozen=True)
class Plan:
    """What is compared: every policy on every problem, T steps, several runs."""

    policies: tuple[PolicySpec, ...]
    problems: tuple[ProblemSpec, ...]
    horizon: int = HORIZON
    runs: int = RUNS

    def __post_init__(self) -> None:
        """Refuse what could not be run."""
        for name, number in (("runs", self.runs), ("horizon", self.horizon)):
            if number < 1:
                raise InvalidInput(f"--{name} {number}: give at least 1.")
        if not self.policies or not self.problems:
            raise InvalidInput("--policies, --problems: give at least one.")

    def groups(self) -> Groups:
        """Runs of each problem with each policy that supports its domain."""
        return {
            (problem, policy): [Task(policy, problem, self.horizon, s) for s in range(self.runs)]
            for problem in self.problems
            for policy in self.policies
            if plays(policy, problem)
        }


def plays(policy: PolicySpec, problem: ProblemSpec) -> bool:
    """Whether a policy supports a problem's domain."""
    return not problem.continuous or "box" in policy.method.domains


def read_problem(
    text: str,
    *,
    side: int | None = None,
    noise: float | None = None,
    norm_bound: float | None = None,
    continuous: bool = False,
) -> ProblemSpec:
    """A problem by its name, optionally with a dimension: "synthetic-3d", "branin", "ackley-5d"."""
    parts = re.fullmatch(r"(.+?)-(\d+)d", text)
    name = text if parts is None else parts[1]
    given = None if parts is None else int(parts[2])
    if name == SYNTHETIC:
        dim = 2 if given is None else given
    elif name in names():
        dim = get(name, given).dim
        norm_bound = NORM_BOUND if norm_bound is None else norm_bound
    else:
        raise InvalidInput(
            f"problem {text!r} is unknown: give {SYNTHETIC} or one of {', '.join(names())}, "
            "optionally with a dimension, such as -3d."
        )
    if noise is None:
        noise = SYNTHETIC_NOISE if name == SYNTHETIC else NOISE
    if side is None:
        side = SIDES.get(dim, 2)
    if side < 2:
        raise InvalidInput(f"--side {side}: give at least 2 arms per side.")
    return ProblemSpec(name, dim, side, noise, norm_bound, continuous=continuous)


def title(problem: ProblemSpec) -> str:
    """What a problem is called in tables and figures."""
    if problem.name == SYNTHETIC:
        return f"synthetic, d = {problem.dim}"
    text = get(problem.name, problem.dim).title
    return text if problem.dim == 2 else f"{text}, d = {problem.dim}"


def label(policy: PolicySpec) -> str:
    """What a policy is called in tables and figures."""
    settings = ", ".join(f"{name}={value}" for name, value in policy.settings)
    return registry.get(policy.name).title + (f" [{settings}]" if settings else "")


def render(plan: Plan, traces: Mapping[tuple[ProblemSpec, PolicySpec], Sequence[Trace]]) -> str:
    """The table in Markdown, a line a problem and policy."""
    rows = [["problem", "policy", "regret", "best point’s regret", "time per evaluation"]]
    for problem in plan.problems:
        for policy in plan.policies:
            group = traces.get((problem, policy))
            cells = ["needs a finite domain", "", ""] if group is None else _cells(group)
            rows.append([title(problem), label(policy), *cells])
    first = plan.problems[0]
    where = "the unit box" if first.continuous else "a grid"
    lines = [
        f"Made by Partita {__version__}: T = {plan.horizon:,}, {runs_text(plan.runs)} each, on "
        f"{where}.",
        "",
        *aligned(rows),
        "",
        *(f"{title(problem)}: {_setting(problem)}." for problem in plan.problems),
        REGRET_NOTE,
        "Best point’s regret: the mean over runs of (f* − f(x̂)) / (f* − mean f), x̂ what the "
        "policy recommends at the end.",
        "Time per evaluation: the time to make the policy and of all its asks and tells over T, "
        "on one core.",
    ]
    return "\n".join(lines) + "\n"


def _cells(group: Sequence[Trace]) -> list[str]:
    of_group = entry(group)
    simple = band([[trace.simple_regret / trace.uniform_regret] for trace in group])
    return [
        estimate(of_group.regret.mean, of_group.regret.half_width),
        estimate(float(simple.mean[0]), float(simple.half_width[0])),
        step_time(of_group.seconds / of_group.horizon),
    ]


def _setting(problem: ProblemSpec) -> str:
    where = "" if problem.continuous else f"{problem.arms:,} arms, "
    told = (
        "the norm known"
        if problem.norm_bound is None
        else f"norm bound {problem.norm_bound:g}" + " (a guess)" * (problem.name != SYNTHETIC)
    )
    return f"{where}noise uniform on [−{problem.noise:g}, {problem.noise:g}], {told}"
