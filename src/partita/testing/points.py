"""Rules of what a policy returns and takes: points, recommendations, types."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from partita.errors import PartitaError
from partita.model.domains import Arms

from .case import Case, Departure, Game
from .problems import odd_domain
from .rules import RuleTests, rule


class AskTellTests(RuleTests):
    """Ask, tell and recommend: what they return, and what they take."""

    @rule()
    def test_methods(self, case: Case) -> None:
        """It can be built from what is known of a problem, and has the methods it promises."""
        policy = case.start().policy
        for name in ("ask", "tell", "recommend", *(["cancel"] if case.promises.cancel else [])):
            if not callable(getattr(policy, name, None)):
                raise Departure(
                    f"the policy has a method {name}()",
                    f"{type(policy).__name__} has none",
                    "Write it, or subclass partita.Policy, which has most."
                    + (" Or promise cancel=False." if name == "cancel" else ""),
                )

    @rule()
    def test_ask_point(self, case: Case) -> None:
        """`ask` returns a float64 array of shape (d,) in the domain, in one dimension or more."""
        domains = [odd_domain(case.kind, dim) for dim in (1, 2, 3)]
        for domain in [*domains, Arms([[0.5, 0.25]])] if case.kind == "arms" else domains:
            game = case.start(case.problem_on(domain))
            for x, y in game.moves(20):
                game.check_point(x, "ask()")
                game.policy.tell(x, y)

    @rule()
    def test_own_arrays(self, case: Case) -> None:
        """Arrays that it returned or was told may be overwritten without harm to it."""
        expected = _play_with_arrays(case, case.start(), overwrite=False)
        game = case.start()
        asks = _play_with_arrays(case, game, overwrite=True)
        case.check_same(
            expected,
            asks,
            "overwriting arrays that ask, tell or recommend saw changes nothing",
            "Return a copy of what the policy keeps, and keep copies of its arguments.",
        )
        game.check_inside(asks, "ask() after arrays were overwritten")
        game.check_count("pending", 0, "after every ask was told, with an equal array")

    @rule()
    def test_tell_types(self, case: Case) -> None:
        """`tell` takes a point as a list or tuple too, and a value of any real type."""
        values: tuple[Any, ...] = (
            1,
            np.float32(0.25),
            np.int64(0),
            np.float64(0.5),
            np.array(0.75),
            0.125,
        )
        plain, game = case.start(), case.start()
        expected, asks = [], []
        for i, y in enumerate(3 * values):
            expected.append(plain.ask())
            plain.policy.tell(expected[i], float(y))
            asks.append(game.ask())
            point = asks[i].tolist()
            game.policy.tell(point if i % 2 else tuple(point), y)
        case.check_same(
            expected,
            asks,
            "tell(list(x), 1) does the same as tell(x, 1.0)",
            "Turn input into floats first: np.asarray(x, dtype=float), float(y).",
        )
        game.check_count("pending", 0, "after every ask was told, as a list or tuple")

    @rule()
    def test_recommend_first(self, case: Case) -> None:
        """`recommend` before any data gives a point, or an error that says why not."""
        game = case.start()
        try:
            answer = game.policy.recommend()
        except (PartitaError, ValueError, LookupError, RuntimeError) as error:
            if len(str(error)) < 10:
                raise Departure(
                    "the error says why there is no recommendation yet",
                    f"{type(error).__name__}({str(error)!r})",
                    "Say that there are no values yet, and what to do.",
                ) from error
        else:
            game.check_point(answer.x, "recommend().x before any data")
        game.check_inside(game.ask(), "ask() after recommend()")

    @rule()
    def test_recommend(self, case: Case) -> None:
        """`recommend` gives a point of the domain and a finite mean, the same each time."""
        game = case.start(steps=25)
        first, second = game.recommendation(), game.recommendation()
        lower, upper = getattr(first, "lower", -math.inf), getattr(first, "upper", math.inf)
        if not lower <= upper:
            raise Departure(
                "recommend().lower is at most recommend().upper",
                f"lower={lower!r}, upper={upper!r}",
                "Return bounds on f(x), -inf and inf if there are none.",
            )
        same = np.array_equal(first.x, second.x) and first.mean == second.mean
        if case.promises.deterministic and not same:
            raise Departure(
                "recommend() twice in a row gives the same",
                f"{first!r}, then {second!r}",
                "Settle ties by a rule, not by fresh random numbers.",
            )

    @rule()
    def test_recommend_reads(self, case: Case) -> None:
        """`recommend` only reads: it changes no later ask."""
        game, asks = case.start(), []
        for x, y in game.moves(30):
            asks.append(np.array(x, dtype=float).ravel())
            game.policy.tell(x, y)
            game.policy.recommend()
        case.check_same(
            case.start().play(30),
            asks,
            "calling recommend() changes no later ask",
            "Do not draw from the policy's random numbers in recommend(), nor store what ask "
            "reads.",
        )


def _play_with_arrays(case: Case, game: Game, *, overwrite: bool) -> list[Any]:
    """Run a policy, return its asks; optionally overwrite all arrays after each call."""
    asks, policy = [], game.policy
    for i, noise in enumerate(game.problem.noise_values(24)):
        x = policy.ask()
        point = np.array(x)
        asks.append(point.copy())
        if overwrite:
            _overwrite(x)
        policy.tell(point, game.problem.f(point) + float(noise))
        seen = [x, point, policy.recommend().x]
        if i == 8 and case.promises.bulk and case.promises.unasked:
            points = game.problem.some_points(5)
            values = game.problem.values(points)
            policy.tell(points, values)
            seen += [points, values]
        for array in seen if overwrite else ():
            _overwrite(array)
    return asks


def _overwrite(array: object) -> None:
    if isinstance(array, np.ndarray) and array.flags.writeable:  # read-only is harmless too
        array[...] = -987.5
