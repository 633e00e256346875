"""Ask and tell for a space of the user's own: numbered trials, in the user's units and direction.

Policies maximise on the unit cube. Signs and units are turned round here, once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from partita._checks import as_floats, check_choice, check_delta, check_horizon, check_seed
from partita._types import FloatArray, Prediction
from partita.errors import InvalidInput, NotPending
from partita.model.kernels import Matern
from partita.model.noise import Noise
from partita.policies.base import LARGEST_VALUE, Policy
from partita.space import Space, as_space

from .making import check_lengthscales, domain_of, make_policy
from .trials import FAILED, FINISHED, PENDING, Ledger, Trials

#: Rounding that is forgiven in a coordinate of the unit cube.
SAME_POINT = 1e-9
#: These have a `__float__`, some of them, but are no numbers to optimise.
_NO_NUMBERS = (str, bytes, complex, np.complexfloating, np.datetime64, np.timedelta64)


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """A numbered evaluation to make.

    Attributes
    ----------
    number
        From 0 on.
    params
        What the function is given: a dict, for `f(**trial.params)`, or an array, for
        `f(trial.params)`.
    x
        The array; for named parameters the point of the unit cube, (D,).
    """

    number: int
    params: Any
    x: FloatArray
    #: Where it was made, to tell it from a trial of another optimizer whatever becomes of `params`:
    #: the mark of the space, and the bytes of the point of the unit cube.
    _origin: tuple[int, bytes] | None = field(default=None, repr=False)


class Suggestion(NamedTuple):
    """What the optimiser would settle on, and what is known of the function there."""

    params: Any
    x: FloatArray
    mean: float
    lower: float
    upper: float


class Optimizer:
    """Chooses where to evaluate a noisy function next, in a space of any kinds of parameters.

    Parameters
    ----------
    space
        Bounds or named parameters: see `partita.space.as_space`.
    direction : "minimize" or "maximize"
    seed : int
        The same seed and the same tells give the same asks.
    n_evals : int, optional
        Evaluations planned, if known. A policy that must know is told 100,000 otherwise.
    norm_bound, noise, kernel : optional
        Given all three, the policy is `PiGPUCB`, whose bounds are proven. Otherwise it is
        `CalibratedUCB`, which uses those given and learns the rest. Lengthscales are in the unit
        cube that the space maps to.
    delta : float
        Probability that a bound may fail.
    policy : str, class or function, optional
        Another policy: a name that `partita.policies.registry` knows, with settings in brackets if
        need be, a class, or a function that makes one for a domain.
    feasible : function, optional
        Called as the function to optimise is; True where that may be evaluated.
    """

    def __init__(
        self,
        space: Any,
        *,
        direction: Literal["minimize", "maximize"] = "minimize",
        seed: int = 0,
        n_evals: int | None = None,
        norm_bound: float | None = None,
        noise: Noise | None = None,
        kernel: Matern | None = None,
        delta: float = 0.1,
        policy: str | Callable[..., Any] | None = None,
        feasible: Callable[..., Any] | None = None,
    ) -> None:
        self.direction = check_choice("direction", direction, ("minimize", "maximize"))
        if n_evals is not None:
            n_evals = _check_evaluations(n_evals)
        self.space: Space = as_space(space, feasible)
        check_lengthscales(kernel, self.space)
        self.policy: Policy = make_policy(
            domain_of(self.space),
            policy,
            n_evals=n_evals,
            kernel=kernel,
            norm_bound=norm_bound,
            noise=noise,
            delta=check_delta(delta),
            seed=check_seed(seed),
        )
        self._sign = -1.0 if direction == "minimize" else 1.0
        self._ledger = Ledger(self.space.dim)

    # -- asking and telling --------------------------------------------------------------------

    def ask(self) -> Trial:
        """The next trial. Ask again before telling and this one stays pending."""
        unit = self.policy.ask()
        return self._trial(self._ledger.append(unit, PENDING), unit)

    def expect(self, params: Any) -> Trial:
        """A trial at parameters that were chosen elsewhere and are being evaluated.

        It is pending until it is told or cancelled, like one that was asked for.
        """
        return self._expect_at(self._allowed(params, "expect"))

    def _expect_at(self, unit: FloatArray) -> Trial:
        """A pending trial at a valid point (D,) of the unit cube."""
        hear = getattr(self.policy, "expect", None)  # a policy of the user's own may lack it
        if hear is not None:
            hear(unit)
        return self._trial(self._ledger.append(unit, PENDING), unit)

    def _trial(self, number: int, unit: FloatArray) -> Trial:
        params = self.space.decode(unit)
        x = unit if self.space.named else params
        return Trial(number, params, x, (self.space.mark, unit.tobytes()))

    def tell(self, trial: Trial | int, value: Any) -> None:
        """Report the value of a trial, given itself or its number.

        Nothing changes when the call is refused.
        """
        number = self._pending_number(trial, "tell")
        told, unit = as_value(value), self._ledger.unit(number)
        self.policy.tell(unit, self._sign * told)
        self._ledger.settle(number, FINISHED, told)

    def cancel(self, trial: Trial | int) -> None:
        """Give up a trial, whose evaluation failed or was dropped. It counts as failed.

        The policy knows no more than before, and may ask for the same parameters again.
        """
        number = self._pending_number(trial, "cancel")
        # A value added at the same point has settled it for the policy.
        with suppress(NotPending):
            self.policy.cancel(self._ledger.unit(number))
        self._ledger.settle(number, FAILED)

    def add(self, params: Any, value: Any) -> int:
        """Report a value known from elsewhere, at any time; the number of the trial it becomes."""
        told = as_value(value)
        unit = self._allowed(params, "add")
        self.policy.tell(unit, self._sign * told)
        number = self._ledger.append(unit, PENDING)
        self._ledger.settle(number, FINISHED, told)
        return number

    def _allowed(self, params: Any, verb: str) -> FloatArray:
        """The point (D,) of parameters that may be evaluated."""
        unit = self.space.encode(params)
        if not self.space.allows(self.space.decode(unit)):
            raise InvalidInput(
                f"{verb}({params!r}): feasible does not allow these parameters. Leave them out, or "
                "widen the constraint"
            )
        return unit

    def _pending_number(self, trial: Trial | int, verb: str) -> int:
        given = trial.number if isinstance(trial, Trial) else trial
        if isinstance(given, bool) or not isinstance(given, int | np.integer):
            raise InvalidInput(
                f"{verb}({trial!r}, ...): give the trial that ask() returned, or its number"
            )
        number, last = int(given), len(self._ledger) - 1
        if not 0 <= number <= last:
            known = f"they go from 0 to {last}" if last >= 0 else "nothing has been asked yet"
            raise NotPending(f"{verb}({number}): there is no trial of this number, {known}")
        self._check_origin(trial, number, verb)
        state = self._ledger.state(number)
        if state != PENDING:
            what = "was told already" if state == FINISHED else "was cancelled"
            raise NotPending(
                f"{verb}({number}): trial {number} {what}. Ask for a new trial, or use add(params, "
                "value) for a further value at its parameters"
            )
        return number

    def _check_origin(self, trial: Trial | int, number: int, verb: str) -> None:
        """Refuse a trial of another optimizer, which has the same numbers for other points."""
        if not isinstance(trial, Trial):
            return
        unit = self._ledger.unit(number)
        if trial._origin is not None:
            ours = trial._origin == (self.space.mark, unit.tobytes())
        else:  # made by hand
            ours = float(np.abs(self.space.encode(trial.params) - unit).max()) <= SAME_POINT
        if not ours:
            raise InvalidInput(
                f"{verb}({trial!r}): trial {number} has other parameters here. Give the trial that "
                "this optimizer's ask() returned, or use add(params, value)"
            )

    # -- answers -------------------------------------------------------------------------------

    def recommend(self) -> Suggestion:
        """The best parameters by what is known, not by the luckiest value."""
        found = self.policy.recommend()
        unit = np.asarray(found.x)
        params = self.space.decode(unit)
        lower, upper = found.lower, found.upper
        if self._sign < 0:
            lower, upper = -upper, -lower
        return Suggestion(
            params,
            unit if self.space.named else params,
            self._sign * found.mean + 0.0,
            lower + 0.0,
            upper + 0.0,
        )

    def certificate(self) -> float:
        """How much better than the recommended parameters any others can still be.

        Infinite for a policy that cannot say, or before it can.
        """
        bound = getattr(self.policy, "certificate", None)
        value = math.inf if bound is None else float(bound())
        return math.inf if math.isnan(value) else value

    def predict(self, params: Sequence[Any] | FloatArray) -> Prediction:
        """What is known of the function at n points: mean, std, lower, upper, each (n,).

        Parameters
        ----------
        params
            A list of dicts, or an array (n, d), as the function is given them.
        """
        known = getattr(self.policy, "predict", None)
        if known is None:
            raise InvalidInput(
                f"{type(self.policy).__name__} has no posterior to predict from: use another policy"
            )
        if isinstance(params, dict):
            raise InvalidInput("predict takes several points: give a list of dicts")
        if not self.space.named:
            params = as_floats(params, "params")
        rows = [self.space.encode(point) for point in params]
        units = np.array(rows).reshape(len(rows), self.space.dim)
        found = known(units)
        if self._sign > 0:
            return Prediction(*found)
        return Prediction(-found.mean, found.std, -found.upper, -found.lower)

    # -- the record ----------------------------------------------------------------------------

    @property
    def trials(self) -> Trials:
        """All trials so far: a table of numbers, parameters, values and states."""
        return self._ledger.table(self.space)

    @property
    def n_told(self) -> int:
        """How many values have been told or added."""
        return self._ledger.counts[FINISHED]

    @property
    def n_failed(self) -> int:
        """How many trials have been cancelled."""
        return self._ledger.counts[FAILED]

    @property
    def n_pending(self) -> int:
        """How many trials are neither told nor cancelled."""
        return self._ledger.counts[PENDING]

    @property
    def guarantee(self) -> str:
        """What stands behind the bounds, such as "proven" or "calibrated": see `Policy`."""
        return str(getattr(self.policy, "guarantee", "none"))

    def __repr__(self) -> str:
        return (
            f"Optimizer({self.space!r}, direction={self.direction!r}, "
            f"policy={type(self.policy).__name__}: {self.n_told} told, {self.n_pending} pending, "
            f"{self.n_failed} failed)"
        )


def as_value(value: Any) -> float:
    """What a function returned as a float; an array of one number is a number, too."""
    number = value if type(value) is float else _as_float(value)
    if not math.isfinite(number):
        raise InvalidInput(
            f"the value is {number}: give a finite number, or cancel the trial if its evaluation "
            "failed"
        )
    if abs(number) > LARGEST_VALUE:
        raise InvalidInput(
            f"the value is {number}: give one of at most {LARGEST_VALUE:g} in size, in other units "
            "if need be, or cancel the trial"
        )
    return number


def _as_float(value: Any) -> float:
    if isinstance(value, np.ndarray):
        if value.size != 1 or value.dtype.kind not in "biuf" or np.ma.is_masked(value):
            raise InvalidInput(
                f"the value is an array of shape {value.shape} and type {value.dtype}: give one "
                "number"
            )
        return float(value.item())
    if hasattr(value, "__float__") and not isinstance(value, _NO_NUMBERS):
        try:
            return float(value)
        except OverflowError:
            return math.inf
        except Exception:  # an object of the user's, such as a tensor of several numbers
            pass
    raise InvalidInput(
        f"the value is {value!r}: give one number; if the evaluation failed, cancel the trial, or "
        "let the function raise"
    )


def _check_evaluations(n_evals: object) -> int:
    try:
        return check_horizon(n_evals)
    except InvalidInput:
        raise InvalidInput(
            f"n_evals={n_evals!r}: give the evaluations planned, a whole number of at least 1"
        ) from None
