"""What a policy may lack: one of the user's own needs ask, tell, cancel and recommend alone.

Whoever plays a policy that it did not make asks here, so that each gap is filled in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from partita._state import State
from partita._types import FloatArray, Prediction
from partita.errors import InvalidInput

#: The methods that every policy must have.
REQUIRED = ("ask", "tell", "cancel", "recommend")


def is_policy(policy: Any) -> bool:
    """Whether an object has the methods that every policy must have."""
    return all(hasattr(policy, name) for name in REQUIRED)


def expect(policy: Any, x: FloatArray) -> None:
    """Count a point (d,) that was chosen elsewhere as pending, if the policy can do that."""
    hear = getattr(policy, "expect", None)
    if hear is not None:
        hear(x)


def learns_failures(policy: Any) -> bool:
    """Whether the policy learns where evaluations fail."""
    return hasattr(policy, "fail")


def fail(policy: Any, x: FloatArray) -> None:
    """Give up a pending point (d,) whose evaluation failed; the policy learns of that if it can."""
    getattr(policy, "fail", policy.cancel)(x)


def measure(policy: Any, x: FloatArray, values: Sequence[float]) -> None:
    """Report constrained quantities at a point (d,), before its value is told."""
    policy.measure(x, values)


def has_certificate(policy: Any) -> bool:
    """Whether the policy can say how much better another point can be."""
    return hasattr(policy, "certificate")


def certificate(policy: Any) -> float:
    """How much better than the recommended point any other can be; infinite if not known."""
    bound = getattr(policy, "certificate", None)
    value = math.inf if bound is None else float(bound())
    return math.inf if math.isnan(value) else value


def has_posterior(policy: Any) -> bool:
    """Whether the policy can predict values at other points."""
    return hasattr(policy, "predict")


def predict(policy: Any, points: FloatArray) -> Prediction:
    """The posterior at points (n, d); refused for a policy that has none."""
    if not has_posterior(policy):
        raise InvalidInput(
            f"{type(policy).__name__} has no posterior to predict from: use another policy"
        )
    return Prediction(*policy.predict(points))


def cells(policy: Any) -> tuple[Any, ...]:
    """The cells or regions of the policy's cover; none if it has no cover."""
    return tuple(getattr(policy, "cover", ()))


def guarantee(policy: Any) -> str:
    """What stands behind the bounds: see `Policy.guarantee`."""
    return str(getattr(policy, "guarantee", "none"))


def state(policy: Any) -> State | None:
    """What has happened to the policy, as plain data; None if it cannot say, or not go on from it.

    A policy of the user's own has a state if it has `state()`, which returns a dict of plain data,
    and `restore(state)`, which a new one goes on from.
    """
    save = getattr(policy, "state", None)
    if not callable(save) or not callable(getattr(policy, "restore", None)):
        return None
    saved = save()
    return saved if isinstance(saved, dict) else None
