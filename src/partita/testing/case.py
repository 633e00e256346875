"""A policy under test: how the rules build it, run it, and report failures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from partita._types import FloatArray
from partita.model.assumptions import Assumptions
from partita.model.domains import Box
from partita.policies.construct import construct

from .problems import DELTA, KERNEL, Domain, Problem, odd_domain, problem_on
from .promises import Promises

#: What a refused call may raise. Partita's own errors are all of these.
REFUSALS = (ValueError, TypeError, LookupError)


class Departure(Exception):
    """A policy departs from what it promises: what was expected, what happened, what to do."""

    def __init__(self, expected: str, happened: str, advice: str) -> None:
        super().__init__(expected, happened, advice)
        self.expected, self.happened, self.advice = expected, happened, advice


class Move(NamedTuple):
    """A point as `ask` returned it, and the value to tell there."""

    x: Any
    y: float


@dataclass
class Game:
    """A policy that runs on a problem."""

    policy: Any
    problem: Problem

    def ask(self) -> FloatArray:
        """The next point, as an array of our own, (d,)."""
        return np.array(self.policy.ask(), dtype=np.float64).ravel()

    def tell(self, x: FloatArray) -> None:
        """Tell the value at a point, without noise."""
        self.policy.tell(x, self.problem.f(x))

    def moves(self, steps: int, stream: int = 0) -> Iterator[Move]:
        """Ask step by step; the caller tells the value of each move, or another."""
        for noise in self.problem.noise_values(steps, stream).tolist():
            x = self.policy.ask()
            yield Move(x, self.problem.f(x) + noise)

    def play(self, steps: int, stream: int = 0) -> FloatArray:
        """Ask and tell; the points asked, (steps, d)."""
        asks = np.empty((steps, self.problem.domain.dim))
        for i, (x, y) in enumerate(self.moves(steps, stream)):
            asks[i] = x
            self.policy.tell(x, y)
        return asks

    def check_count(self, name: str, expected: int, when: str) -> None:
        """Refuse a wrong `pending` or `told`, where the policy has that count."""
        count = getattr(self.policy, name, None)
        if count is not None and count != expected:
            raise Departure(
                f"policy.{name} is {expected} {when}",
                f"it is {count!r}",
                f"Keep account of every ask, tell and cancel, or leave `{name}` out.",
            )

    def check_inside(self, points: npt.ArrayLike, call: str) -> None:
        """Refuse points, (d,) or (n, d), outside the domain. Their form is for `ask-point`."""
        domain = self.problem.domain
        for point in np.atleast_2d(np.asarray(points, dtype=np.float64)):
            if not _contains(domain, point):
                raise Departure(
                    f"{call} is a point of {domain!r}",
                    f"it is {point.tolist()}",
                    "Return a point of the domain in the user's own units: between domain.lower "
                    "and domain.upper, and on a finite domain a row of domain.points.",
                )

    def check_point(self, x: object, call: str) -> None:
        """Refuse what is not a point of the domain as `ask` must return it: float64 (d,)."""
        dim = self.problem.domain.dim
        expected = f"{call} is a NumPy array of float64, shape ({dim},)"
        if not isinstance(x, np.ndarray):
            happened = f"it is a {type(x).__name__}: {x!r}"
            raise Departure(expected, happened, "Return np.array(point, dtype=float).")
        if x.dtype != np.float64 or x.shape != (dim,):
            raise Departure(
                expected,
                f"it has dtype {x.dtype} and shape {x.shape}",
                f"Return np.array(point, dtype=float).reshape({dim}).",
            )
        self.check_inside(x, call)

    def recommendation(self) -> Any:
        """The recommendation of a policy that has data, once checked to be one.

        Bounds may contradict each other: values may be beyond what the policy was told to expect.
        """
        answer = self.policy.recommend()
        if not hasattr(answer, "x") or not hasattr(answer, "mean"):
            raise Departure(
                "recommend() has the fields x and mean",
                f"it is a {type(answer).__name__}: {answer!r}",
                "Return partita.Recommendation(x, mean, lower, upper), bounds infinite if none "
                "hold.",
            )
        self.check_point(answer.x, "recommend().x")
        if not np.isscalar(answer.mean) or not np.isfinite(answer.mean):
            raise Departure(
                "recommend().mean is a finite number once there are data",
                f"it is {answer.mean!r}",
                "Return the mean of f at x by what is known, as a float.",
            )
        return answer


def _contains(domain: Domain, point: FloatArray) -> bool:
    if point.shape != (domain.dim,):
        return False
    if isinstance(domain, Box):
        return bool(((point >= domain.lower) & (point <= domain.upper)).all())
    return bool((domain.points == point).all(axis=1).any())


@dataclass(frozen=True, eq=False)
class Case:
    """A policy class or factory, what it promises, and the kind of domain it is tried on."""

    make: Callable[..., Any]
    promises: Promises
    kind: str

    @cached_property
    def problem(self) -> Problem:
        """The problem of most rules: two-dimensional, small, in odd units."""
        return self.problem_on(odd_domain(self.kind, 2))

    def problem_on(
        self, domain: Domain, *, scale: float = 1.0, stream: int | None = None
    ) -> Problem:
        """A problem of the kind that the policy is meant for, on a domain."""
        linear = self.promises.function == "linear"
        return problem_on(
            domain, linear=linear, noisy=self.promises.noisy, scale=scale, stream=stream
        )

    def start(
        self, problem: Problem | None = None, *, steps: int = 0, seed: int = 0, horizon: int = 1000
    ) -> Game:
        """A game with a new policy, after some steps."""
        problem = self.problem if problem is None else problem
        policy = construct(
            self.make,
            problem.domain,
            Assumptions(KERNEL, problem.scale, problem.noise_model, DELTA),
            horizon=horizon,
            seed=seed,
        )
        game = Game(policy, problem)
        game.play(steps)
        return game

    def check_same(
        self, expected: npt.ArrayLike, asks: npt.ArrayLike, what: str, advice: str
    ) -> None:
        """Refuse asks (n, d) that differ from those expected, if the policy is deterministic."""
        before, now = np.asarray(expected), np.asarray(asks)
        if not self.promises.deterministic or np.array_equal(before, now):
            return
        step = int(np.flatnonzero((before != now).any(axis=1))[0])
        raise Departure(
            what,
            f"ask {step + 1} of {len(now)} was {now[step].tolist()} instead of "
            f"{before[step].tolist()}",
            advice,
        )

    def check_same_answer(self, first: Game, second: Game, what: str, advice: str) -> None:
        """Refuse games with the same data whose policies recommend different points or means."""
        a, b = first.recommendation(), second.recommendation()
        same = np.array_equal(a.x, b.x) and abs(a.mean - b.mean) <= 1e-6 * first.problem.scale
        if self.promises.deterministic and not same:
            raise Departure(what, f"{a!r}, against {b!r}", advice)


def refused(call: Callable[..., object], *arguments: object) -> bool:
    """True if a call refuses its arguments, False if it goes through; other errors go on."""
    try:
        call(*arguments)
    except REFUSALS:
        return True
    return False


def takes_std(policy: Any) -> bool:
    """Whether a policy says that it uses the noise of single values, `tell(x, y, std=...)`."""
    return bool(getattr(policy, "takes_std", False))
