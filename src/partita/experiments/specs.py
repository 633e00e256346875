"""What is run: policies and problems as small values that can be sent anywhere and stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from partita._checks import as_positive, check_horizon, check_seed
from partita._types import FloatArray
from partita.errors import InvalidInput
from partita.model.assumptions import Assumptions
from partita.model.domains import Box, Grid
from partita.model.kernels import Matern
from partita.model.noise import SubGaussian, Uniform
from partita.policies import registry
from partita.policies.base import Policy
from partita.policies.construct import construct
from partita.policies.named import PolicySpec
from partita.problems import RKHSFunction, average, get

from .store import file_name

#: The problem whose function is drawn at random for each seed; every other name is a test function.
SYNTHETIC = "synthetic"


@dataclass(frozen=True, eq=False)
class Problem:
    """A function on a grid or on the unit box, and what the policies are told of it."""

    domain: Grid | Box
    kernel: Matern
    norm_bound: float
    half_width: float
    #: f at points of the unit cube, (n, d) → (n,).
    function: Callable[[FloatArray], FloatArray]
    #: The largest value, and the mean over the domain.
    best: float
    mean: float
    #: f at the arms of a grid, (N,); empty on a box.
    values: FloatArray

    @property
    def dim(self) -> int:
        """Dimension of the domain."""
        return self.domain.dim

    @property
    def uniform_regret(self) -> float:
        """What one evaluation of uniform sampling loses, in expectation: f* − mean f."""
        return self.best - self.mean


@dataclass(frozen=True)
class ProblemSpec:
    """A problem by name. The function is defined on [0, 1]^d and evaluated on a regular grid of it.

    Or, if `continuous`, on all of it.

    Parameters
    ----------
    name : str
        "synthetic" (m = 30d random bumps; Janz et al. 2020, "Synthetic functions") or a name that
        `partita.problems.get` knows, whose values on the grid are scaled to [−1, 1].
    dim : int
    side : int
        Arms a side.
    noise : float
        Noise is uniform on [−noise, noise].
    norm_bound : float, optional
        B. Default: the exact norm of a synthetic function.
    nu, lengthscale : float
        The Matérn kernel of the policies, and of a synthetic function.
    continuous : bool
        Whether the domain is the box itself, and `side` means nothing.
    """

    name: str
    dim: int = 2
    side: int = 30
    noise: float = 1.0
    norm_bound: float | None = None
    nu: float = 1.5
    lengthscale: float = 0.2
    continuous: bool = False

    def __post_init__(self) -> None:
        """Refuse what could not be built."""
        as_positive("noise", self.noise)
        if self.norm_bound is not None:
            as_positive("norm_bound", self.norm_bound)
        elif self.name != SYNTHETIC:
            raise InvalidInput(
                f"ProblemSpec({self.name!r}): only synthetic functions have a known norm. Give "
                "norm_bound, such as 1.0."
            )

    def build(self, seed: int) -> Problem:
        """The problem of one run: the same for every policy."""
        kernel = Matern(self.nu, self.lengthscale)
        norm_bound, drawn = self.norm_bound, None
        if self.name == SYNTHETIC:
            drawn = RKHSFunction.sample(self.dim, kernel, seed=seed)
            norm_bound = drawn.norm if norm_bound is None else norm_bound
        assert norm_bound is not None
        function: Callable[[FloatArray], FloatArray]
        function = get(self.name, self.dim).unit if drawn is None else drawn
        domain: Grid | Box
        if self.continuous:
            domain, values = Box(np.zeros(self.dim), np.ones(self.dim)), np.empty(0)
            best = 1.0 if drawn is None else drawn.maximum()
            mean = average(function, self.dim)
        else:
            domain = Grid(self.side, dim=self.dim)
            values = (
                get(self.name, self.dim).on_grid(self.side)
                if drawn is None
                else drawn(domain.points)
            )
            best, mean = float(values.max()), float(values.mean())
        return Problem(domain, kernel, float(norm_bound), self.noise, function, best, mean, values)

    @property
    def arms(self) -> int:
        """The number of arms there are."""
        return int(self.side**self.dim)


def policy_for(spec: PolicySpec, problem: Problem, horizon: int, seed: int) -> Policy:
    """The policy at the start of a run, told what its signature names.

    "igp-ucb" and "pi-gp-ucb-paper" are told what the paper's experiments tell them: α = 1, and the
    noise as SubGaussian(its half-width). All others are told that the noise is uniform.
    """
    method, width = spec.method, problem.half_width
    noise = SubGaussian(width) if method.sub_gaussian else Uniform(-width, width)
    maker: Callable[..., Policy] = registry.maker_of(spec.name)
    return construct(
        maker,
        problem.domain,
        Assumptions(problem.kernel, problem.norm_bound, noise),
        horizon=horizon,
        seed=seed,
        settings={**method.settings, **dict(spec.settings)},
    )


@dataclass(frozen=True)
class Task:
    """One run to be made: all that its trace depends on."""

    policy: PolicySpec
    problem: ProblemSpec
    horizon: int
    seed: int

    def __post_init__(self) -> None:
        """Refuse what could not be run."""
        object.__setattr__(self, "horizon", check_horizon(self.horizon))
        object.__setattr__(self, "seed", check_seed(self.seed))

    def as_json(self) -> str:
        """The task as text, the same for equal tasks."""
        content = asdict(self)
        digest = registry.source_digest(self.policy.name)
        if digest:
            content["source"] = digest
        return json.dumps(content, sort_keys=True)

    def file_name(self) -> str:
        """A readable name that no other task has."""
        problem = self.problem
        where = f"{problem.name}-{problem.dim}d{'-box' * problem.continuous}"
        name = "".join(c if c.isalnum() or c in "-_" else "-" for c in self.policy.name)
        return file_name(f"{where}_{name}_T{self.horizon}_seed{self.seed:02d}", self)
