"""Rules of values that are large, small, equal or absurd: nothing may break."""

from __future__ import annotations

import numpy as np

from .case import REFUSALS, Case, Departure, refused, takes_std
from .problems import odd_domain
from .rules import RuleTests, rule


class ValueTests(RuleTests):
    """Values of every size."""

    @rule()
    def test_scales(self, case: Case) -> None:
        """Functions a million times larger or smaller work, or are refused when it is built."""
        for scale in (1e-6, 1e6):
            problem = case.problem_on(odd_domain(case.kind, 2), scale=scale)
            try:
                game = case.start(problem)
            except REFUSALS:  # it can see the scale by norm_bound and noise
                continue
            game.check_inside(game.play(40), f"ask() with values of about {scale:g}")
            game.recommendation()

    @rule()
    def test_constant(self, case: Case) -> None:
        """A constant function causes no error."""
        for value in (0.0, 0.5):
            game = case.start()
            for _ in range(40):
                x = game.policy.ask()
                game.check_inside(x, f"ask() when every value is {value}")
                game.policy.tell(x, value)
            mean = game.recommendation().mean
            if abs(mean - value) > 1.0:
                raise Departure(
                    f"recommend().mean is near {value} when every value is",
                    f"it is {mean!r}",
                    "Estimate the mean of f from the values.",
                )

    @rule()
    def test_extremes(self, case: Case) -> None:
        """Values far beyond what was announced are accepted, or refused; the policy goes on."""
        game = case.start(steps=5)
        for value in (1e30, -1e30, 5e-324, -0.0, 1e12, -1e12, 1e-12):
            x = game.policy.ask()
            game.check_inside(x, "ask() among extreme values")
            if refused(game.policy.tell, x, value):
                game.tell(x)
            game.recommendation()
        game.check_inside(game.play(20), "ask() after extreme values")
        game.recommendation()

    @rule()
    def test_own_std(self, case: Case) -> None:
        """Values of known noise are accepted; a `std` of `sub_gaussian` changes nothing."""
        twin, game = case.start(), case.start()
        if not takes_std(game.policy):
            return
        own = getattr(game.policy, "sub_gaussian", None)
        if own is not None:
            expected, asks = twin.play(20), []
            for x, y in game.moves(20):
                asks.append(np.array(x, dtype=float).ravel())
                game.policy.tell(x, y, std=own)
            case.check_same(
                expected,
                asks,
                "tell(x, y, std=policy.sub_gaussian) does what tell(x, y) does",
                "Weigh a value of noise s by (L/s)², L being the constant of those without.",
            )
        for i, (x, y) in enumerate(game.moves(20, stream=1)):
            game.check_inside(x, "ask() after values of known noise")
            std = game.problem.scale * (0.0, 1e-9, 0.1, 1e9)[i % 4]
            game.policy.tell(x, y if std else game.problem.f(x), std=std)
        game.recommendation()
