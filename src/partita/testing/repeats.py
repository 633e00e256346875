"""Rules of repetition: seeds, instances, saved and copied states."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from partita._types import FloatArray
from partita.errors import PartitaError
from partita.policies import optional
from partita.study.packed import pack, unpack

from .case import Case, Departure, Game
from .rules import RuleTests, rule

_STEPS = 30


class RepeatTests(RuleTests):
    """The same again: by its seed, beside another, pickled and copied."""

    @rule(lambda promises: promises.deterministic)
    def test_same_seed(self, case: Case) -> None:
        """The same seed and the same tells give the same asks."""
        for seed in (0, 123_456_789):
            case.check_same(
                case.start(seed=seed).play(_STEPS),
                case.start(seed=seed).play(_STEPS),
                f"two policies built with seed={seed} and told the same ask the same",
                "Draw all random numbers from np.random.default_rng(seed), made in the "
                "constructor.",
            )

    @rule(lambda promises: promises.deterministic)
    def test_instances(self, case: Case) -> None:
        """Two policies in one process do not touch each other."""
        expected = case.start().play(_STEPS)
        game, other = case.start(), case.start(seed=1)
        asks = []
        for x, y in game.moves(_STEPS):
            asks.append(np.array(x, dtype=float).ravel())
            elsewhere = other.policy.ask()
            other.policy.tell(elsewhere, -other.problem.f(elsewhere))
            game.policy.tell(x, y)
        case.check_same(
            expected,
            asks,
            "a policy asks the same whether or not another is used at the same time",
            "Keep all state in the instance: no class attributes, globals or mutable defaults.",
        )

    @rule(lambda promises: promises.deterministic)
    def test_global_random(self, case: Case) -> None:
        """The global random states of NumPy and Python are neither read nor changed."""
        advice = "Draw from np.random.default_rng(seed), never from np.random or random."
        states = _random_states()
        try:
            asks = []
            for seed in (1, 2):
                np.random.seed(seed)  # noqa: NPY002 — the state that policies must not touch
                random.seed(seed)
                before = pickle.dumps(_random_states())
                game = case.start()
                asks.append(game.play(_STEPS))
                game.policy.recommend()
                if pickle.dumps(_random_states()) != before:
                    raise Departure(
                        "the global random state is left alone",
                        "building and using the policy changed it",
                        advice,
                    )
            what = "asks do not depend on the global random state"
            case.check_same(asks[0], asks[1], what, advice)
        finally:
            np.random.set_state(states[0])  # noqa: NPY002
            random.setstate(states[1])

    @rule()
    def test_pickling(self, case: Case) -> None:
        """A pickled policy goes on exactly as the original, pending points included."""
        _check_copies(case, _pickled, "pickle.loads(pickle.dumps(policy))")

    @rule()
    def test_deep_copying(self, case: Case) -> None:
        """A deep copy of a policy goes on exactly as the original, and apart from it."""
        _check_copies(case, copy.deepcopy, "copy.deepcopy(policy)")

    @rule()
    def test_saving(self, case: Case) -> None:
        """A new policy goes on exactly from the state of another, if it can be saved."""
        if optional.state(case.start().policy) is not None:
            _check_copies(case, lambda policy: _restored(case, policy), "restore(state())")


def _random_states() -> tuple[Any, Any]:
    return np.random.get_state(), random.getstate()  # noqa: NPY002


def _pickled(policy: Any) -> Any:
    try:
        return pickle.loads(pickle.dumps(policy))
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise Departure(
            "the policy can be pickled",
            f"{type(error).__name__}: {error}",
            "Define the class at the top level of a module, and keep no lambdas, open files or "
            "generators in the instance.",
        ) from error


def _restored(case: Case, policy: Any) -> Any:
    """A new policy, once the state of another was written and read as a study does."""
    fresh = case.start().policy
    try:
        fresh.restore(unpack(pack(optional.state(policy))))
    except PartitaError as error:
        raise Departure(
            "the state is plain data that restore() takes",
            f"{type(error).__name__}: {error}",
            "Return None, booleans, numbers, strings, lists, dicts with strings for keys, and "
            "arrays of float64, int64, int8, uint64 or bool.",
        ) from error
    return fresh


def _check_copies(case: Case, copied: Callable[[Any], Any], call: str) -> None:
    """Copy at several moments; copy and original must each go on as a twin that was not copied."""
    for steps in (0, 15):
        for n in (0, 1, 4) if case.promises.pending else (0, 1):
            what = f"{call} after {steps} steps with {n} pending"
            twin, game = case.start(steps=steps), case.start(steps=steps)
            expected = _go_on(case, twin, [twin.ask() for _ in range(n)])
            pending = [game.ask() for _ in range(n)]
            duplicate = Game(copied(game.policy), game.problem)
            duplicate.check_count("pending", n, f"in {what}")
            case.check_same(
                expected,
                _go_on(case, duplicate, pending),
                f"{what} goes on as the original would",
                "Keep random generators, pending points and data in the instance's state: what "
                "__getstate__ leaves out is lost.",
            )
            case.check_same(
                expected,
                _go_on(case, game, pending),
                f"{what} leaves the original as it was",
                "The copy must share nothing that changes with the original.",
            )


def _go_on(case: Case, game: Game, pending: list[FloatArray]) -> FloatArray:
    """The next asks, once the pending points were told, all but the last, which is cancelled."""
    for i, x in enumerate(pending):
        if i and i == len(pending) - 1 and case.promises.cancel:
            game.policy.cancel(x)
        else:
            game.tell(x)
    game.check_count("pending", 0, "after every ask was told or cancelled")
    return game.play(12, stream=1)
