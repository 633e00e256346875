"""A policy under test on one kind of domain: how the checks build it, play it, and complain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from partita._types import FloatArray
from partita.model.assumptions import Assumptions
from partita.model.domains import Box
from partita.policies.construct import construct, name_of

from .problems import DELTA, KERNEL, Domain, Problem, odd_domain, problem
from .promises import Promises

#: What a refused call may raise. Partita's own errors are all of these.
REFUSALS = (ValueError, TypeError, LookupError)


class AskTell(Protocol):
    """What a policy must have. `cancel` only where promised; counts `pending`, `told` if it likes.

    A value belongs to the pending ask whose point equals the one it is told with.
    """

    def ask(self) -> FloatArray:
        """The next point to evaluate."""
        ...

    def tell(self, x: npt.ArrayLike, y: npt.ArrayLike) -> None:
        """Take in the value at a point."""
        ...

    def cancel(self, x: npt.ArrayLike) -> None:
        """Give up a pending point."""
        ...

    def recommend(self) -> Any:
        """The best point by what is known, with fields `x` and `mean`."""
        ...


class Departure(Exception):
    """A policy departs from what it promises: what was expected, what happened, what to do."""

    def __init__(self, expected: str, happened: str, advice: str) -> None:
        super().__init__(expected, happened, advice)
        self.expected, self.happened, self.advice = expected, happened, advice


@dataclass(frozen=True, eq=False)
class Case:
    """A policy class or factory, what it promises, and the kind of domain it is tried on."""

    make: Callable[..., AskTell]
    promises: Promises
    kind: str

    @property
    def name(self) -> str:
        """What the policy is called."""
        return name_of(self.make)

    def problem(self, *, dim: int = 2, scale: float = 1.0) -> Problem:
        """A small problem in odd units."""
        return self.problem_on(odd_domain(self.kind, dim), scale=scale)

    def problem_on(
        self, domain: Domain, *, scale: float = 1.0, stream: int | None = None
    ) -> Problem:
        """A problem of the kind that the policy is meant for, on a domain."""
        return problem(
            domain,
            linear=self.promises.function == "linear",
            noisy=self.promises.noisy,
            scale=scale,
            stream=stream,
        )

    def build(self, problem: Problem, *, seed: int = 0, horizon: int = 1000) -> AskTell:
        """The policy at its start."""
        return construct(
            self.make,
            problem.domain,
            Assumptions(KERNEL, problem.norm_bound, problem.noise_model, DELTA),
            horizon=horizon,
            seed=seed,
        )

    def same_asks(self, expected: FloatArray, asks: FloatArray, what: str, advice: str) -> None:
        """Refuse asks (n, d) that differ from those expected, if the policy is deterministic."""
        if not self.promises.deterministic or np.array_equal(expected, asks):
            return
        step = int(np.flatnonzero((expected != asks).any(axis=1))[0])
        raise Departure(
            what,
            f"ask {step + 1} of {len(asks)} was {asks[step].tolist()} instead of "
            f"{expected[step].tolist()}",
            advice,
        )

    def expect_count(self, policy: AskTell, name: str, expected: int, when: str) -> None:
        """Refuse a wrong `pending` or `told`, where the policy has that count."""
        found = getattr(policy, name, None)
        if found is not None and found != expected:
            raise Departure(
                f"policy.{name} is {expected} {when}",
                f"it is {found!r}",
                f"Keep account of every ask, tell and cancel, or leave `{name}` out.",
            )


def ask(policy: AskTell) -> FloatArray:
    """The next point, as an array of our own, (d,)."""
    return np.array(policy.ask(), dtype=np.float64).ravel()


def play(policy: AskTell, problem: Problem, steps: int, stream: int = 0) -> FloatArray:
    """Ask and tell; the points asked, (steps, d)."""
    noise = problem.noise_values(steps, stream)
    asks = np.empty((steps, problem.domain.dim))
    for i in range(steps):
        x = policy.ask()
        asks[i] = x
        policy.tell(x, problem.f(x) + float(noise[i]))
    return asks


def check_inside(x: npt.ArrayLike, domain: Domain, call: str) -> None:
    """Refuse a point outside the domain. Whether its form is right is for `ask-point` to say."""
    point = np.ravel(np.asarray(x, dtype=np.float64))
    if point.shape != (domain.dim,):
        inside = False
    elif isinstance(domain, Box):
        inside = bool(((point >= domain.lower) & (point <= domain.upper)).all())
    else:
        inside = bool((domain.points == point).all(axis=1).any())
    if not inside:
        raise Departure(
            f"{call} is a point of {domain!r}",
            f"it is {point.tolist()}",
            "Return a point of the domain in the user's own units: between domain.lower and "
            "domain.upper, and on a finite domain a row of domain.points.",
        )


def check_point(x: object, domain: Domain, call: str) -> FloatArray:
    """Refuse what is not a point of the domain as `ask` must return it: float64 (d,)."""
    expected = f"{call} is a NumPy array of float64, shape ({domain.dim},)"
    if not isinstance(x, np.ndarray):
        raise Departure(
            expected, f"it is a {type(x).__name__}: {x!r}", "Return np.array(point, dtype=float)."
        )
    if x.dtype != np.float64 or x.shape != (domain.dim,):
        raise Departure(
            expected,
            f"it has dtype {x.dtype} and shape {x.shape}",
            f"Return np.array(point, dtype=float).reshape({domain.dim}).",
        )
    check_inside(x, domain, call)
    return x


def check_recommendation(policy: AskTell, domain: Domain) -> Any:
    """The recommendation of a policy that has data, once it is known to be one.

    Bounds may contradict each other: values may be beyond what the policy was told to expect.
    """
    answer = policy.recommend()
    if not hasattr(answer, "x") or not hasattr(answer, "mean"):
        raise Departure(
            "recommend() has the fields x and mean",
            f"it is a {type(answer).__name__}: {answer!r}",
            "Return partita.Recommendation(x, mean, lower, upper), bounds infinite if none hold.",
        )
    check_point(answer.x, domain, "recommend().x")
    if not np.isscalar(answer.mean) or not np.isfinite(answer.mean):
        raise Departure(
            "recommend().mean is a finite number once there are data",
            f"it is {answer.mean!r}",
            "Return the mean of f at x by what is known, as a float.",
        )
    return answer


def refused(call: Callable[[], object]) -> Exception | None:
    """What a call raised to refuse its input, None if it went through; else the error goes on."""
    try:
        call()
    except REFUSALS as error:
        return error
    return None
