"""Ask and tell for a space of the user's own: numbered trials, in the user's units."""

from __future__ import annotations

import copy
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, Literal, overload

import numpy as np

from partita._checks import (
    as_floats,
    check_choice,
    check_count,
    check_delta,
    check_horizon,
    check_seed,
)
from partita._locks import in_turn, is_under_way, new_lock, turn_of
from partita._types import FloatArray, Prediction
from partita.errors import HalfChanged, InvalidInput, NotPending, Settled
from partita.model.assumptions import Assumptions
from partita.model.kernels import Matern
from partita.model.noise import Noise
from partita.policies import optional
from partita.policies.base import Policy
from partita.space import Space, as_space

from .bulk import is_many, read_batch
from .early import Progress, Rule
from .game import Game
from .making import check_lengthscales, domain_of, make_policy
from .trial import Suggestion, Trial, by_place
from .trials import FAILED, FINISHED, PENDING, PRUNED, Trials
from .values import Observation, as_std, as_value

#: Rounding that is forgiven in a coordinate of the unit cube.
SAME_POINT = 1e-9


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
        assumptions = Assumptions(kernel, norm_bound, noise, check_delta(delta))
        #: What the policy is made of; None if that could not be saved with the optimizer.
        self._recipe: tuple[Any, ...] | None = (
            domain_of(self.space),
            policy,
            assumptions,
            n_evals,
            check_seed(seed),
        )
        #: The policy and its trials at points of the unit cube, which a study plays on.
        self.game = Game(make_policy(*self._recipe), self.space.dim, self.direction)
        self._turn = _lock_of(self.game.policy)
        #: The method that changes the policy, or did when it was cut short.
        self._changed_by: str | None = None

    # -- asking and telling --------------------------------------------------------------------

    @overload
    def ask(self, count: None = None) -> Trial: ...
    @overload
    def ask(self, count: int) -> list[Trial]: ...
    def ask(self, count: int | None = None) -> Trial | list[Trial]:
        """The next trial, or a list of `count` trials to evaluate at the same time.

        Ask again before telling and those stay pending.
        """
        with self._turn:
            if count is None:
                return self._trial(self._play("ask"))
            begun: list[Trial] = []
            try:
                begun.extend(self._trial(self._play("ask")) for _ in range(check_count(count)))
            except Exception:  # all or none
                for trial in begun:
                    self._play("cancel", trial.number)
                raise
            return begun

    def expect(self, params: Any) -> Trial:
        """A trial at parameters that were chosen elsewhere and are being evaluated.

        It is pending until it is told or cancelled, like one that was asked for.
        """
        with self._turn:
            return self._trial(self._play("expect", self.point_of(params, "expect")))

    def tell(self, trial: Trial | int, value: Any, std: float | None = None) -> None:
        """Report the value of a trial, given itself or its number.

        `std` is the standard deviation of this value's noise, if that is known: 0 means exact.
        Nothing changes when the call is refused. What the trial has reported is kept.

        Tell every value that there is. Bounds hold for values that were not selected by how they
        turned out: who evaluates a point until it looks good, and tells that alone, breaks them.
        """
        with self._turn:
            number = self.number_of(trial, "tell")
            told = as_value(value), self.std_of(std, "tell")
            self._play("tell", number, *told, reports_of(trial))

    def prune(self, trial: Trial | int) -> bool:
        """End a trial early, whose evaluation can hardly become the best: see `should_prune`.

        The model learns what its last report says of its value, with the error of that, never the
        report as a value. It learns nothing if too few trials have finished to say, or if the
        bounds are proven ones, which nothing that is only expected may enter. Returned is whether
        it has learned anything.
        """
        with self._turn:
            number, reports = self.number_of(trial, "prune"), reports_of(trial)
            expected = self.expected(reports)
            self._play("prune", number, expected, reports)
            return expected is not None

    def cancel(self, trial: Trial | int) -> None:
        """Give up a trial, whose evaluation failed or was dropped. It counts as failed.

        The policy knows no more than before, and may ask for the same parameters again.
        """
        with self._turn:
            self._play("cancel", self.number_of(trial, "cancel"))

    def add(self, params: Any, value: Any, std: Any = None) -> Any:
        """Report a value known from elsewhere, at any time, and get the number of its trial.

        Or many at once, and get the list of their numbers. That is far quicker than one by one,
        and either all are taken in or, if one cannot be, none is.

        Parameters
        ----------
        params
            What the function was given: a dict, or an array (d,). For many, an array (n, d), a list
            of dicts, a dict of columns, or a data frame.
        value
            What it returned: a number; for many, n numbers.
        std
            As for `tell`: a number; for many, one for all or n numbers, None or NaN where it is not
            known.

        Notes
        -----
        Give all values that there are, or some chosen without looking at how they turned out. The
        bounds are wrong for data that were selected by their own values, such as the best hundred
        of a thousand.

        Examples
        --------
        >>> import partita as pt
        >>> optimizer = pt.Optimizer({"rate": (1e-4, 1e-1, "log"), "depth": (1, 12, "int")})
        >>> optimizer.add({"rate": 0.01, "depth": 3}, 0.42)
        0
        >>> optimizer.add({"rate": [0.02, 0.001], "depth": [4, 8]}, [0.37, 0.58])
        [1, 2]
        """
        with self._turn:
            if is_many(params, value, self.space):
                return self._add_many(params, value, std)
            told, noise = as_value(value), self.std_of(std, "add")
            number: int = self._play("add", self.point_of(params, "add"), told, noise)
            return number

    def _add_many(self, params: Any, values: Any, stds: Any) -> list[int]:
        batch = read_batch(params, values, stds, self.space, self.point_of, self.std_of)
        try:
            return list(self._play("add_many", batch))
        except Exception:
            if not isinstance(self.policy, Policy):  # one of the user's own may know some of them
                self._changed_by = "add"
            raise

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
        policy = make_policy(*self._recipe)
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
        origin = self.space.mark, unit.tobytes()
        return Trial(number, self.space.decode(unit), unit, origin, Progress(self._rule()))

    @in_turn
    def expected(self, reports: Mapping[int, float]) -> Observation | None:
        """What the reports of a trial say of its value, and the noise of that, if it is known."""
        expected: Observation | None = self._play("expected", reports) if reports else None
        return expected

    def _rule(self) -> Rule | None:
        """Which trials are hopeless by now; free of cost where nothing is reported."""
        rule: Rule | None = self._play("rule") if len(self.game.curves) else None
        return rule

    def point_of(self, params: Any, verb: str) -> FloatArray:
        """The point (D,) of parameters that may be evaluated; `verb` is for the error."""
        unit = self.space.encode(params)
        if not self.space.allows(self.space.decode(unit)):
            raise InvalidInput(
                f"{verb}({params!r}): feasible does not allow these parameters. Leave them out, or "
                "widen the constraint"
            )
        return unit

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
            ends = {FINISHED: "was told already", FAILED: "was cancelled", PRUNED: "was pruned"}
            what = ends[state]
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
        return Suggestion(params, by_place(params), *bounds)

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
    def n_pruned(self) -> int:
        """How many trials were ended early."""
        with self._turn:
            return self.game.ledger.counts[PRUNED]

    @in_turn
    def reports(self, number: int) -> dict[int, float]:
        """What a trial that has ended had reported after each step."""
        return self.game.curves.of(number)

    @property
    def n_pending(self) -> int:
        """How many trials have not ended."""
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
            f"{self.n_failed} failed{f', {self.n_pruned} pruned' if self.n_pruned else ''})"
        )


def _lock_of(policy: Any) -> Any:
    """The policy's own lock: who has one of the two never waits for the other."""
    return turn_of(policy) if isinstance(policy, Policy) else new_lock()


def reports_of(trial: Trial | int) -> dict[int, float]:
    """What a trial has reported; nothing is known of one that is given by its number."""
    return trial.reports if isinstance(trial, Trial) else {}


def _check_evaluations(n_evals: object) -> int:
    try:
        return check_horizon(n_evals)
    except InvalidInput:
        raise InvalidInput(
            f"n_evals={n_evals!r}: give the evaluations planned, a whole number of at least 1"
        ) from None
