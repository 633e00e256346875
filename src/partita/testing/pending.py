"""Rules of the order of things: asks without tells, tells without asks, cancels."""

from __future__ import annotations

import numpy as np

from partita.model.domains import Arms, Grid

from .case import Case, Departure, refused
from .rules import RuleTests, rule


class PendingTests(RuleTests):
    """Asks before tells, tells out of order, unasked and in bulk, and cancels."""

    @rule(lambda promises: promises.pending)
    def test_many_pending(self, case: Case) -> None:
        """It can be asked many times, more often than there are arms, before it is told."""
        game = case.start()
        for steps in (0, 10):
            game.play(steps)
            asks = [game.ask() for _ in range(40)]
            game.check_inside(asks, "ask() with other points pending")
            game.check_count("pending", 40, "after 40 asks without a tell")
            for x in asks:
                game.tell(x)
            game.check_count("pending", 0, "after every ask was told")
        game.check_count("told", 90, "after 90 tells")
        game.recommendation()

    @rule(lambda promises: promises.pending)
    def test_tell_order(self, case: Case) -> None:
        """Pending points may be told in any order: each value goes to its own point."""
        for winner in range(5):  # a value that goes astray shows where it is told or was due
            forwards, backwards = case.start(), case.start()
            for game, order in ((forwards, 1), (backwards, -1)):
                asks = [game.ask() for _ in range(5)]
                for x in asks[::order]:
                    game.policy.tell(x, 0.5 if np.array_equal(x, asks[winner]) else 0.0)
                game.check_count("pending", 0, "after every ask was told")
            if case.promises.order_free:
                case.check_same_answer(
                    forwards,
                    backwards,
                    "pending points give the same recommendation in whatever order they are told",
                    "Match a value to its ask by its point, not by the last ask.",
                )

    @rule(lambda promises: promises.pending, kinds=("grid", "arms"))
    def test_pending_twice(self, case: Case) -> None:
        """The same point pending twice is two evaluations, which end one at a time."""
        few = Arms([[0.1, 0.2], [0.6, 0.9], [0.7, 0.1]]) if case.kind == "arms" else Grid(2, dim=2)
        game = case.start(case.problem_on(few))
        asks = [game.ask() for _ in range(9)]
        x = next(a for i, a in enumerate(asks) if any(np.array_equal(a, b) for b in asks[:i]))
        others = [other for other in asks if not np.array_equal(other, x)]
        plays = 9 - len(others)
        for left in reversed(range(plays)):
            if left % 2 and case.promises.cancel:
                game.policy.cancel(x)
            else:
                game.tell(x)
            when = f"once {plays - left} of 9 asks are settled"
            game.check_count("pending", len(others) + left, when)
        if case.promises.cancel and not refused(game.policy.cancel, x):
            raise Departure(
                f"a point asked {plays} times is pending no more once it was told or cancelled "
                f"{plays} times",
                "one more cancel(x) went through",
                "Count how often each point is pending.",
            )
        for other in others:
            game.tell(other)
        game.check_count("pending", 0, "after every ask was told or cancelled")
        game.play(10)

    @rule(lambda promises: bool(promises.unasked))
    def test_tell_unasked(self, case: Case) -> None:
        """Points that were never asked for can be told, before the first ask and between asks."""
        answers = []
        for sign in (1.0, -1.0):
            game = case.start()
            for x in game.problem.some_points(12):
                game.policy.tell(x, sign * game.problem.f(x))
            answers.append(game.recommendation())
            pending = game.ask()
            for x in game.problem.some_points(4, stream=1):
                if not np.array_equal(x, pending):
                    game.policy.tell(x, sign * game.problem.f(x))
            game.check_count("pending", 1, "after one ask, and tells of other points")
            game.policy.tell(pending, sign * game.problem.f(pending))
            game.check_count("pending", 0, "after the only ask was told")
            game.check_inside(game.play(5), "ask() after tells of other points")
        first, second = answers
        ignored = np.array_equal(first.x, second.x) and first.mean == second.mean
        if ignored and case.promises.unasked is True:
            raise Departure(
                "tells of points that were not asked for are taken into account",
                f"recommend() is {first!r} whether f or −f was told",
                'Record every tell, asked for or not; or promise unasked="accepted".',
            )

    @rule(lambda promises: promises.bulk)
    def test_tell_bulk(self, case: Case) -> None:
        """`tell(X, Y)` does what telling one by one does, and settles pending points among them."""
        singly, together = case.start(steps=5), case.start(steps=5)
        unasked = case.problem.some_points(10 if case.promises.unasked else 0)
        asks = [
            [game.ask() for _ in range(3 if case.promises.pending else 1)]
            for game in (singly, together)
        ]
        points, also = (np.concatenate([asked, unasked]) for asked in asks)
        values = case.problem.values(points)
        for x, y in zip(points, values, strict=True):
            singly.policy.tell(x, float(y))
        together.policy.tell(also, values)
        told = f"after 5 tells and {len(points)} at once"
        together.check_count("told", 5 + len(points), told)
        together.check_count("pending", 0, "after pending points were told in bulk")
        if np.array_equal(points, also):  # else not the same history: `same-seed` says why
            case.check_same_answer(
                singly,
                together,
                "tell(X, Y) gives the same recommendation as telling the rows one by one",
                "Treat every row of X as tell(x, y) would.",
            )

    @rule(lambda promises: promises.cancel)
    def test_cancel(self, case: Case) -> None:
        """A cancelled point is no longer pending, and the policy goes on."""
        game = case.start()
        for steps, asks in ((0, 1), (10, 1), (5, 6)):
            game.play(steps)
            pending = [game.ask() for _ in range(asks if case.promises.pending else 1)]
            for x in reversed(pending):
                game.policy.cancel(x)
            game.check_count("pending", 0, "after every ask was cancelled")
        game.check_count("told", 15, "after 15 tells and some cancels")
        game.check_inside(game.play(20), "ask() after cancels")
        game.recommendation()

    @rule(lambda promises: promises.cancel)
    def test_cancel_refused(self, case: Case) -> None:
        """Cancelling a point that is not pending is refused and changes nothing."""
        game = case.start()
        told = game.play(10)
        pending = game.ask()
        asked = np.vstack([told, pending])
        unasked = [x for x in game.problem.some_points(60) if not (x == asked).all(axis=1).any()]
        settled = [x for x in told if not np.array_equal(x, pending)]
        for which, points in (
            ("that was never asked for", unasked[:1]),
            ("outside the domain", [game.problem.domain.upper + 1.0]),
            ("of another shape", [np.append(pending, 0.5)]),
            ("that was told", settled[:1]),
        ):
            for x in points:
                if not refused(game.policy.cancel, x):
                    raise Departure(
                        f"cancel(x) of a point {which} raises LookupError or ValueError",
                        f"cancel({x.tolist()}) went through",
                        "Look the point up among the pending ones first, and raise if it is not "
                        "there.",
                    )
        game.check_count("pending", 1, "after cancels that were refused")
        twin = case.start(steps=10)
        game.tell(pending)
        twin.tell(twin.ask())
        case.check_same(
            twin.play(12),
            game.play(12),
            "a refused cancel changes nothing",
            "Check first, then change state.",
        )
