"""Ask and tell for a space of the user's own: numbered trials, in the user's units."""

from __future__ import annotations

import copy
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from partita._checks import as_floats, check_choice, check_delta, check_horizon, check_seed
from partita._locks import in_turn, is_under_way, new_lock, turn_of
from partita._types import FloatArray, Prediction
from partita.errors import HalfChanged, InvalidInput, NotPending, Settled
from partita.model.assumptions import Assumptions
from partita.model.kernels import Matern
from partita.model.noise import Noise
from partita.policies import optional
from partita.policies.base import Policy
from partita.space import Space, as_space

from .constraints import Constraints, Known
from .game import Game
from .making import check_lengthscales, domain_of, make_policy
from .trials import FAILED, FINISHED, PENDING, Trials
from .values import Observation, as_std, as_value

#: Rounding that is forgiven in a coordinate of the unit cube.
SAME_POINT = 1e-9


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

    Threads may share it: each call waits until those of other threads have returned. A call that
    Ctrl-C cuts short has either happened, as `trials` shows, or not. If it was in the middle of a
    change, the next call makes the policy anew from all values, which takes a moment; what it asks
    for from then on may differ from what it would have asked for.

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
    constraints : list of str, optional
        Bounds on other quantities that an evaluation shows, such as `["cost <= 10"]`. Values are
        then told as dicts, such as `{"loss": 0.3, "cost": 9.1}`.
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
        constraints: Sequence[str] | None = None,
    ) -> None:
        self.direction = check_choice("direction", direction, ("minimize", "maximize"))
        if n_evals is not None:
            n_evals = _check_evaluations(n_evals)
        self.space: Space = as_space(space, feasible)
        check_lengthscales(kernel, self.space)
        assumptions = Assumptions(kernel, norm_bound, noise, check_delta(delta))
        #: What the policy is made of; None if that could not be saved with the optimizer.
        self._recipe: tuple[Any, ...] | None = (
            domain_of(self.space),
            policy,
            assumptions,
            n_evals,
            check_seed(seed),
        )
        self.constraints = Constraints(constraints, self.space)
        #: The policy and its trials at points of the unit cube, which a study plays on.
        self.game = Game(self._new_policy(), self.space.dim, self.direction, self.constraints.names)
        self._turn = _lock_of(self.game.policy)
        #: The method that changes the policy, or did when it was cut short.
        self._changed_by: str | None = None

    def _new_policy(self) -> Policy:
        assert self._recipe is not None
        policy = make_policy(*self._recipe)
        self.constraints.constrain(policy)
        return policy

    # -- asking and telling --------------------------------------------------------------------

    def ask(self) -> Trial:
        """The next trial. Ask again before telling and this one stays pending."""
        with self._turn:
            return self._trial(self._play("ask"))

    def expect(self, params: Any) -> Trial:
        """A trial at parameters that were chosen elsewhere and are being evaluated.

        It is pending until it is told or cancelled, like one that was asked for.
        """
        with self._turn:
            return self._trial(self._play("expect", self.point_of(params, "expect")))

    def tell(self, trial: Trial | int, value: Any, std: float | None = None) -> None:
        """Report the value of a trial, given itself or its number.

        `std` is the standard deviation of this value's noise, if that is known: 0 means exact.
        With constraints the value is a dict, such as `{"loss": 0.3, "cost": 9.1}`. Nothing changes
        when the call is refused.
        """
        with self._turn:
            number = self.number_of(trial, "tell")
            self._play("tell", number, *self.observation(value, std, "tell"))

    def cancel(self, trial: Trial | int) -> None:
        """Give up a trial whose evaluation was dropped. It counts as failed.

        The policy knows no more than before, and may ask for the same parameters again.
        """
        with self._turn:
            self._play("cancel", self.number_of(trial, "cancel"))

    def fail(self, trial: Trial | int) -> None:
        """Give up a trial whose evaluation failed, so that it is learned where that happens.

        Failures that come by chance, anywhere, do not steer the choice much.
        """
        with self._turn:
            self._play("fail", self.number_of(trial, "fail"))

    def add(self, params: Any, value: Any, std: float | None = None) -> int:
        """Report a value known from elsewhere, at any time, and get the number of its trial.

        `value` and `std` are as for `tell`.
        """
        with self._turn:
            seen = self.observation(value, std, "add")
            number: int = self._play("add", self.point_of(params, "add"), *seen)
            return number

    def _play(self, verb: str, *args: Any) -> Any:
        """What a method of the game returns; the next call notices it if this one is cut short."""
        if self._changed_by is not None:
            self._mend(verb)
        self._changed_by = verb
        try:
            result = getattr(self.game, verb)(*args)
        except (MemoryError, SystemError):  # the latter is what Numba makes of an interrupt
            raise
        except Exception:  # refused, or failed as policies may; other errors come at any moment
            self._changed_by = None
            raise
        self._changed_by = None
        return result

    @property
    def torn(self) -> bool:
        """Whether the policy was left half changed, so that it must be made anew."""
        return self._changed_by is not None and not is_under_way(Optimizer._play, self)

    def _mend(self, verb: str) -> None:
        """Make the policy anew, from the ledger, after a call that was cut short."""
        if is_under_way(Optimizer._play, self):
            raise HalfChanged(
                f"{verb}() was called from within another call of the same optimizer, whose policy "
                "is in the middle of a change: `feasible` and objects given as values must not "
                "use it"
            )
        if self._recipe is None:
            raise HalfChanged(
                f"{verb}(): an earlier call was interrupted in the middle of a change, and the "
                "function that made the policy is not known any more, since the optimizer was "
                "pickled. Make a new Optimizer, and add() the values that `trials` has"
            )
        policy = self._new_policy()
        if isinstance(policy, Policy):
            policy._turn = self._turn  # others wait for this one
        self.game = self.game.anew(policy)
        self._changed_by = None

    # -- what runs and studies need besides ------------------------------------------------------

    #: Trials of killed runs that `ask` returns first: only a study has any.
    adopted: Sequence[Trial] = ()

    @in_turn
    def hold(self, trial: Trial) -> None:
        """Keep a trial pending that is not evaluated any more; only a study has to note that."""
        self.number_of(trial, "hold")

    @in_turn
    def trial(self, number: int) -> Trial:
        """The trial of a number, as `ask` or `expect` returned it."""
        return self._trial(number)

    def _trial(self, number: int) -> Trial:
        unit = self.game.ledger.unit(number)
        params = self.space.decode(unit)
        x = unit if self.space.named else params
        return Trial(number, params, x, (self.space.mark, unit.tobytes()))

    def point_of(self, params: Any, verb: str) -> FloatArray:
        """The point (D,) of parameters that may be evaluated; `verb` is for the error."""
        unit = self.space.encode(params)
        if not self.space.allows(self.space.decode(unit)):
            raise InvalidInput(
                f"{verb}({params!r}): feasible does not allow these parameters. Leave them out, or "
                "widen the constraint"
            )
        return unit

    def observation(self, value: Any, std: Any, verb: str) -> Observation:
        """What is told, checked; with constraints, by name. `verb` is for the error."""
        if self.constraints.names:
            seen = self.constraints.observation(value, std)
            return seen._replace(std=self.std_of(seen.std, verb))
        return Observation(as_value(value), self.std_of(std, verb))

    def std_of(self, std: Any, verb: str) -> float | None:
        """The noise of a value, checked, that the policy has a use for; `verb` is for the error."""
        number = as_std(std)
        if number is not None:
            self.game.check_takes_std(number, verb)
        return number

    def number_of(self, trial: Trial | int, verb: str, also: Container[int] = ()) -> int:
        """The number of a trial that is pending, or one of `also`; `verb` is for the error."""
        given = trial.number if isinstance(trial, Trial) else trial
        if isinstance(given, bool) or not isinstance(given, int | np.integer):
            raise InvalidInput(
                f"{verb}({trial!r}, ...): give the trial that ask() returned, or its number"
            )
        ledger = self.game.ledger
        number, last = int(given), len(ledger) - 1
        if not 0 <= number <= last:
            range_text = f"they go from 0 to {last}" if last >= 0 else "nothing has been asked yet"
            raise NotPending(f"{verb}({number}): there is no trial of this number, {range_text}")
        if isinstance(trial, Trial):
            self._check_origin(trial, verb)
        state = ledger.state(number)
        if state != PENDING and number not in also:
            what = "was told already" if state == FINISHED else "was cancelled"
            raise Settled(
                f"{verb}({number}): trial {number} {what}. Ask for a new trial, or use add(params, "
                "value) for a further value at its parameters"
            )
        return number

    def _check_origin(self, trial: Trial, verb: str) -> None:
        """Refuse a trial of another optimizer, which has the same numbers for other points."""
        ledger = self.game.ledger
        if trial._origin is not None:
            ours = trial._origin == (self.space.mark, ledger.mark(trial.number))
        else:  # made by hand
            unit = ledger.unit(trial.number)
            ours = float(np.abs(self.space.encode(trial.params) - unit).max()) <= SAME_POINT
        if not ours:
            raise InvalidInput(
                f"{verb}({trial!r}): trial {trial.number} has other parameters here. Give the "
                "trial that this optimizer's ask() returned, or use add(params, value)"
            )

    # -- answers -------------------------------------------------------------------------------

    def recommend(self) -> Suggestion:
        """The best parameters by what is known, not by the luckiest value."""
        with self._turn:
            unit, *bounds = self._play("recommend")
        params = self.space.decode(unit)
        return Suggestion(params, unit if self.space.named else params, *bounds)

    def constraints_at(self, params: Any) -> dict[str, Known]:
        """What is known of each constrained quantity at some parameters, by its name."""
        unit = self.space.encode(params)
        with self._turn:
            return self.constraints.known_at(self.policy, unit)

    def certificate(self) -> float:
        """How much better than the recommended parameters any others can still be.

        Infinite for a policy that cannot say, or before it can.
        """
        with self._turn:
            bound: float = self._play("certificate")
            return bound

    def predict(self, params: Sequence[Any] | FloatArray) -> Prediction:
        """The posterior of the function at n points: mean, std, lower, upper, each (n,).

        Parameters
        ----------
        params
            A list of dicts, or an array (n, d), as the function is given them.
        """
        if isinstance(params, dict):
            raise InvalidInput("predict takes several points: give a list of dicts")
        if not self.space.named:
            params = as_floats(params, "params")
        rows = [self.space.encode(point) for point in params]
        units = np.array(rows).reshape(len(rows), self.space.dim)
        with self._turn:
            posterior: Prediction = self._play("predict", units)
            return posterior

    # -- the record ----------------------------------------------------------------------------

    @property
    @in_turn
    def trials(self) -> Trials:
        """All trials so far: a sequence of records, with numbers, values and states as arrays."""
        return self.game.ledger.table(self.space)

    @property
    def n_told(self) -> int:
        """How many values have been told or added."""
        with self._turn:
            return self.game.ledger.counts[FINISHED]

    @property
    def n_failed(self) -> int:
        """How many trials have been cancelled."""
        with self._turn:
            return self.game.ledger.counts[FAILED]

    @property
    def n_pending(self) -> int:
        """How many trials are neither told nor cancelled."""
        with self._turn:
            return self.game.ledger.counts[PENDING]

    @property
    def policy(self) -> Policy:
        """The policy underneath, which maximises in the unit cube."""
        return self.game.policy

    @property
    def guarantee(self) -> str:
        """What stands behind the bounds, such as "proven" or "calibrated": see `Policy`."""
        return optional.guarantee(self.policy)

    # -- as an object --------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        """All but the lock, at a moment when nothing is half changed."""
        if self._changed_by is not None:
            self._mend("copy")
        return {k: v for k, v in self.__dict__.items() if k not in ("_turn", "_changed_by")}

    def __deepcopy__(self, memo: dict[int, Any]) -> Optimizer:
        made = type(self).__new__(type(self))
        memo[id(self)] = made
        with self._turn:
            made.__setstate__(copy.deepcopy(self._state(), memo))
        return made

    def __getstate__(self) -> dict[str, Any]:
        """A copy: other threads may change what is pickled while it is written."""
        with self._turn:
            state = self._state()
            recipe = state["_recipe"]
            if recipe is not None and not isinstance(recipe[1], str | type | None):
                state["_recipe"] = None  # a function is often one that cannot be pickled
            return copy.deepcopy(state, {id(self.space): self.space})

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({"_recipe": None, **state, "_changed_by": None})
        self._turn = _lock_of(self.game.policy)

    @in_turn
    def __repr__(self) -> str:
        return (
            f"Optimizer({self.space!r}, direction={self.direction!r}, "
            f"policy={type(self.policy).__name__}: {self.n_told} told, {self.n_pending} pending, "
            f"{self.n_failed} failed)"
        )


def _lock_of(policy: Any) -> Any:
    """The policy's own lock: who has one of the two never waits for the other."""
    return turn_of(policy) if isinstance(policy, Policy) else new_lock()


def _check_evaluations(n_evals: object) -> int:
    try:
        return check_horizon(n_evals)
    except InvalidInput:
        raise InvalidInput(
            f"n_evals={n_evals!r}: give the evaluations planned, a whole number of at least 1"
        ) from None
