"""Optional methods of policies: a user's own policy needs only ask, tell, cancel and recommend.

All other methods are called through these functions, which have a common fallback for each.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from partita._state import State
from partita._types import FloatArray, Prediction, Recommendation
from partita.errors import InvalidInput, PartitaError

from .checks import cannot_fix

#: The methods that every policy must have.
REQUIRED = ("ask", "tell", "cancel", "recommend")
#: Guarantees under which bounds that cross show that an assumption is wrong.
CERTAIN = ("proven", "published")


def is_policy(policy: Any) -> bool:
    """Whether an object has the methods that every policy must have."""
    return all(hasattr(policy, name) for name in REQUIRED)


def expect(policy: Any, x: FloatArray) -> None:
    """Mark a point (d,) that was chosen elsewhere as pending, if the policy supports that."""
    hear = getattr(policy, "expect", None)
    if hear is not None:
        hear(x)


def repeat(policy: Any, x: FloatArray, more: int) -> None:
    """Count `more` evaluations of a pending point (d,) as pending, fewer if negative.

    A point that is not pending for the policy, and a policy that does not plan, stay as they are.
    """
    hear = getattr(policy, "repeat", None)
    if hear is not None and more:
        hear(x, more)


def worth(policy: Any, x: FloatArray) -> float:
    """How many evaluations at a point (d,), just asked for, the posterior there is worth.

    That is the variance of one value's noise over the posterior's; NaN if it is not known.
    """
    known = getattr(policy, "worth", None)
    if known is not None:
        return float(known(x))
    try:
        std = float(np.asarray(policy.predict(x[None, :]).std)[0])
    except (AttributeError, PartitaError):  # it has no posterior, or none yet
        return math.nan
    return noise_std(policy) ** 2 / std**2 if std > 0 else math.inf


def ask_fixed(policy: Any, fixed: Mapping[int, float]) -> FloatArray:
    """The next point (d,) with coordinates fixed; an error if the policy cannot do that."""
    x: FloatArray = _fixing(policy).ask(fixed=fixed)
    return x


def recommend_fixed(policy: Any, fixed: Mapping[int, float]) -> Recommendation:
    """The best point with coordinates fixed; an error if the policy cannot do that."""
    answer: Recommendation = _fixing(policy).recommend_fixed(fixed)
    return answer


def recommend_fixed_each(policy: Any, fixed: Sequence[Mapping[int, float]]) -> list[Recommendation]:
    """The same for many, which share work where the policy can."""
    each = getattr(_fixing(policy), "recommend_fixed_each", None)
    if each is None:
        return [recommend_fixed(policy, one) for one in fixed]
    answers: list[Recommendation] = each(fixed)
    return answers


def certificate_fixed(policy: Any, fixed: Mapping[int, float]) -> float:
    """How much better than `recommend_fixed` any other point can be; infinite if unknown."""
    value = float(_fixing(policy).certificate_fixed(fixed))
    return math.inf if math.isnan(value) else value


def check_fixes(policy: Any) -> None:
    """Refuse a policy that cannot choose with coordinates fixed."""
    if not getattr(policy, "takes_fixed", False):
        raise cannot_fix(type(policy).__name__)


def _fixing(policy: Any) -> Any:
    check_fixes(policy)
    return policy


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
    """Whether the policy has a certificate."""
    return hasattr(policy, "certificate")


def certificate(policy: Any) -> float:
    """How much better than the recommended point any other can be; infinite if unknown."""
    bound = getattr(policy, "certificate", None)
    value = math.inf if bound is None else float(bound())
    return math.inf if math.isnan(value) else value


def has_posterior(policy: Any) -> bool:
    """Whether the policy can predict values at other points."""
    return hasattr(policy, "predict")


def predict(policy: Any, points: FloatArray) -> Prediction:
    """The posterior at points (n, d); an error for a policy that has none."""
    if not has_posterior(policy):
        raise InvalidInput(
            f"{type(policy).__name__} has no posterior to predict from: use another policy"
        )
    return Prediction(*policy.predict(points))


def cells(policy: Any) -> tuple[Any, ...]:
    """The cells or regions of the policy's cover; none if it has no cover."""
    return tuple(getattr(policy, "cover", ()))


def guarantee(policy: Any) -> str:
    """The kind of guarantee of the bounds: see `Policy.guarantee`."""
    return str(getattr(policy, "guarantee", "none"))


def noise_std(policy: Any) -> float:
    """The standard deviation of values' noise that the policy was given or has learned, or 0."""
    learned = getattr(policy, "settings", None)
    noise = learned.get("noise_std") if isinstance(learned, dict) else None
    if noise is None:
        noise = getattr(policy, "sub_gaussian", 0.0)
    return float(noise) if isinstance(noise, float | int) and math.isfinite(noise) else 0.0


def state(policy: Any) -> State | None:
    """The state of a policy as plain data; None if it cannot save or restore its state.

    A user's own policy has a state if it has the methods `state()`, which returns a dict of plain
    data, and `restore(state)`, which a new policy with the same settings can load.
    """
    save = getattr(policy, "state", None)
    if not callable(save) or not callable(getattr(policy, "restore", None)):
        return None
    saved = save()
    return saved if isinstance(saved, dict) else None
