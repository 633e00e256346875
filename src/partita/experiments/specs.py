"""What is run: policies and problems as small values that can be sent anywhere and stored."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from partita._checks import as_positive
from partita.domains import Grid
from partita.errors import InvalidInput
from partita.kernels import Matern
from partita.noise import SubGaussian, Uniform
from partita.policies.base import Policy, check_horizon, check_seed

FloatArray = npt.NDArray[np.float64]
Setting = float | int | str | bool

#: The problem whose function is drawn anew for each seed; every other name is a test function.
SYNTHETIC = "synthetic"


@dataclass(frozen=True, eq=False)
class Problem:
    """A function on a grid, and what the policies are told of it."""

    domain: Grid
    kernel: Matern
    norm_bound: float
    half_width: float
    values: FloatArray

    @cached_property
    def uniform_regret(self) -> float:
        """What one play of uniform sampling loses, in expectation: f* − mean f."""
        return float(self.values.max() - self.values.mean())


@dataclass(frozen=True)
class ProblemSpec:
    """A problem by name. The function is defined on [0, 1]^d and played on a regular grid of it.

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
    """

    name: str
    dim: int = 2
    side: int = 30
    noise: float = 1.0
    norm_bound: float | None = None
    nu: float = 1.5
    lengthscale: float = 0.2

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
        domain = Grid(self.side, dim=self.dim)
        kernel = Matern(self.nu, self.lengthscale)
        norm_bound = self.norm_bound
        if self.name == SYNTHETIC:
            from partita.problems import RKHSFunction

            f = RKHSFunction.sample(self.dim, kernel, seed=seed)
            values = f(domain.points)
            norm_bound = f.norm if norm_bound is None else norm_bound
        else:
            from partita.problems.functions import get

            values = get(self.name, self.dim).on_grid(self.side)
        assert norm_bound is not None
        return Problem(domain, kernel, float(norm_bound), self.noise, np.asarray(values))

    @property
    def arms(self) -> int:
        """How many arms there are."""
        return int(self.side**self.dim)


Builder = Callable[[Problem, int, int, dict[str, Any]], Policy]


def _igp_ucb(problem: Problem, horizon: int, seed: int, settings: dict[str, Any]) -> Policy:
    from partita.policies.igp_ucb import IGPUCB

    given = {"alpha": 1.0, "noise": SubGaussian(problem.half_width), **settings}
    return IGPUCB(
        problem.domain, kernel=problem.kernel, norm_bound=problem.norm_bound, seed=seed, **given
    )


def _pi_gp_ucb_paper(problem: Problem, horizon: int, seed: int, settings: dict[str, Any]) -> Policy:
    from partita.policies.pi_gp_ucb import PiGPUCB

    given = {"alpha": 1.0, "noise": SubGaussian(problem.half_width), **settings}
    return PiGPUCB.paper(
        problem.domain,
        horizon=horizon,
        kernel=problem.kernel,
        norm_bound=problem.norm_bound,
        seed=seed,
        **given,
    )


def _pi_gp_ucb(problem: Problem, horizon: int, seed: int, settings: dict[str, Any]) -> Policy:
    from partita.policies.pi_gp_ucb import PiGPUCB

    given = {"noise": Uniform(-problem.half_width, problem.half_width), **settings}
    return PiGPUCB(
        problem.domain,
        horizon=horizon,
        kernel=problem.kernel,
        norm_bound=problem.norm_bound,
        seed=seed,
        **given,
    )


def _uniform(problem: Problem, horizon: int, seed: int, settings: dict[str, Any]) -> Policy:
    from partita.policies.uniform import UniformSampling

    return UniformSampling(problem.domain, seed=seed, **settings)


_BUILDERS: dict[str, Builder] = {
    "igp-ucb": _igp_ucb,
    "pi-gp-ucb-paper": _pi_gp_ucb_paper,
    "pi-gp-ucb": _pi_gp_ucb,
    "uniform": _uniform,
}
#: The names a policy can be given by.
POLICIES = tuple(_BUILDERS)


@dataclass(frozen=True)
class PolicySpec:
    """A policy by name, with the paper's settings unless others are given.

    "igp-ucb" and "pi-gp-ucb-paper" are told what the paper's experiments tell them: α = 1, and the
    noise as SubGaussian(its half-width). "pi-gp-ucb" is Partita's default, told that the noise is
    uniform. "uniform" is uniform sampling.

    Parameters
    ----------
    name : str
    settings : pairs of a name and a value
        Further arguments of the policy, such as (("delta", 0.05),).
    """

    name: str
    settings: tuple[tuple[str, Setting], ...] = ()

    def __post_init__(self) -> None:
        """Refuse what could not be built."""
        if self.name not in _BUILDERS:
            raise InvalidInput(f"policy {self.name!r} is unknown: give {_words(POLICIES)}.")

    def build(self, problem: Problem, horizon: int, seed: int) -> Policy:
        """The policy at the start of a run."""
        try:
            return _BUILDERS[self.name](problem, horizon, seed, dict(self.settings))
        except TypeError as error:
            raise InvalidInput(f"{self}: {error}.") from error


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
        return json.dumps(asdict(self), sort_keys=True)

    def file_name(self) -> str:
        """A readable name that no other task has."""
        problem, policy = self.problem, self.policy
        digest = hashlib.sha256(self.as_json().encode()).hexdigest()[:8]
        return (
            f"{problem.name}-{problem.dim}d_{policy.name}_T{self.horizon}_seed{self.seed:02d}_"
            f"{digest}.npz"
        )


def _words(names: tuple[str, ...]) -> str:
    return ", ".join(names[:-1]) + " or " + names[-1]
