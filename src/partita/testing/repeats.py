"""Checks that a policy can be repeated: seeds, instances, saved and copied states."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np

from partita._types import FloatArray

from .case import AskTell, Case, Departure, ask, play
from .problems import Problem
from .promises import Promises
from .rules import Rule

_STEPS = 30


def same_seed(case: Case) -> None:
    """The same seed and the same tells give the same asks."""
    problem = case.problem()
    for seed in (0, 123_456_789):
        first, second = (play(case.build(problem, seed=seed), problem, _STEPS) for _ in range(2))
        case.same_asks(
            first,
            second,
            f"two policies built with seed={seed} and told the same ask the same",
            "Draw all random numbers from np.random.default_rng(seed), made in the constructor.",
        )


def instances(case: Case) -> None:
    """Two policies in one process do not touch each other."""
    problem = case.problem()
    expected = play(case.build(problem), problem, _STEPS)
    policy, other = case.build(problem), case.build(problem, seed=1)
    noise, asks = problem.noise_values(_STEPS), []
    for i in range(_STEPS):
        asks.append(ask(policy))
        x = other.ask()
        other.tell(x, -problem.f(x))
        policy.tell(asks[i], problem.f(asks[i]) + float(noise[i]))
    case.same_asks(
        expected,
        np.array(asks),
        "a policy asks the same whether or not another is played beside it",
        "Keep all state in the instance: no class attributes, globals or mutable defaults.",
    )


def global_random(case: Case) -> None:
    """The global random states of NumPy and Python are neither read nor changed."""
    problem = case.problem()
    kept = _random_states()
    try:
        asks = []
        for seed in (1, 2):
            np.random.seed(seed)  # noqa: NPY002 — the state that policies must not touch
            random.seed(seed)
            before = pickle.dumps(_random_states())
            policy = case.build(problem)
            asks.append(play(policy, problem, _STEPS))
            policy.recommend()
            if pickle.dumps(_random_states()) != before:
                raise Departure(
                    "the global random state is left alone",
                    "building and playing the policy changed it",
                    "Draw from np.random.default_rng(seed), never from np.random or random.",
                )
        case.same_asks(
            asks[0],
            asks[1],
            "asks do not depend on the global random state",
            "Draw from np.random.default_rng(seed), never from np.random or random.",
        )
    finally:
        np.random.set_state(kept[0])  # noqa: NPY002
        random.setstate(kept[1])


def _random_states() -> tuple[Any, Any]:
    return np.random.get_state(), random.getstate()  # noqa: NPY002


# -- copies --------------------------------------------------------------------------------------


def pickling(case: Case) -> None:
    """A pickled policy goes on exactly as the original, pending points included."""
    _check_copies(case, _pickled, "pickle.loads(pickle.dumps(policy))")


def deep_copying(case: Case) -> None:
    """A deep copy of a policy goes on exactly as the original, and apart from it."""
    _check_copies(case, copy.deepcopy, "copy.deepcopy(policy)")


def _pickled(policy: AskTell) -> AskTell:
    try:
        return pickle.loads(pickle.dumps(policy))  # type: ignore[no-any-return]
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise Departure(
            "the policy can be pickled",
            f"{type(error).__name__}: {error}",
            "Define the class at the top level of a module, and keep no lambdas, open files or "
            "generators in the instance.",
        ) from error


def _check_copies(case: Case, copied: Callable[[AskTell], AskTell], what: str) -> None:
    """Copy at several moments; copy and original must each go on as a twin that was not copied."""
    problem = case.problem()
    pending = (0, 1, 4) if case.promises.pending else (0, 1)
    for steps in (0, 15):
        for open_asks in pending:
            when = f"after {steps} steps with {open_asks} pending"
            twin, asked = _moment(case, problem, steps, open_asks)
            expected = _go_on(case, twin, problem, asked)
            policy, asked = _moment(case, problem, steps, open_asks)
            duplicate = copied(policy)
            case.expect_count(duplicate, "pending", open_asks, f"in {what} {when}")
            advice = (
                "Keep random generators, pending points and data in the instance's state: what "
                "__getstate__ leaves out is lost."
            )
            case.same_asks(
                expected,
                _go_on(case, duplicate, problem, asked),
                f"{what} {when} goes on as the original would",
                advice,
            )
            case.same_asks(
                expected,
                _go_on(case, policy, problem, asked),
                f"{what} {when} leaves the original as it was",
                "The copy must share nothing that changes with the original.",
            )


def _moment(
    case: Case, problem: Problem, steps: int, open_asks: int
) -> tuple[AskTell, list[FloatArray]]:
    """A policy after some steps, and its pending points."""
    policy = case.build(problem)
    play(policy, problem, steps)
    return policy, [ask(policy) for _ in range(open_asks)]


def _go_on(case: Case, policy: AskTell, problem: Problem, asked: list[FloatArray]) -> FloatArray:
    """The next asks, once the pending points were told, all but the last, which is cancelled."""
    for i, x in enumerate(asked):
        if i and i == len(asked) - 1 and case.promises.cancel:
            policy.cancel(x)
        else:
            policy.tell(x, problem.f(x))
    case.expect_count(policy, "pending", 0, "after every ask was told or cancelled")
    return play(policy, problem, 12, stream=1)


def _deterministic(promises: Promises) -> bool:
    return promises.deterministic


RULES = (
    Rule("same-seed", same_seed, _deterministic),
    Rule("instances", instances, _deterministic),
    Rule("global-random", global_random, _deterministic),
    Rule("pickling", pickling),
    Rule("deep-copying", deep_copying),
)
