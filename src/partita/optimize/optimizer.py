"""Ask and tell for a user's search space: numbered trials, in the user's units."""

from __future__ import annotations

import copy
from collections.abc import Callable, Container, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, overload

from partita._checks import (
    NotGiven,
    check_choice,
    check_count,
    check_delta,
    check_flag,
    check_horizon,
    seed_or_drawn,
)
from partita._locks import in_turn, is_under_way, new_lock, turn_of
from partita._types import FloatArray
from partita.errors import HalfChanged, InvalidInput
from partita.model.assumptions import Assumptions
from partita.model.kernels import Matern
from partita.model.noise import Noise
from partita.model.outcomes import Outcomes
from partita.policies import optional
from partita.policies.base import Policy
from partita.space import Space, as_space

from .aggregates import as_aggregate, as_count, given_aggregate
from .answers import Answers
from .bulk import is_many, read_batch
from .constraints import Constraints
from .contexts import Given, read_contexts
from .early import Progress, Rule
from .game import Game
from .logs import log_added, log_begun, log_cancelled, log_planned, log_pruned, log_told
from .making import check_lengthscales, domain_of, make_policy
from .numbers import number_of, reports_of
from .plans import check_part, check_plans
from .trial import Trial
from .values import Observation, as_std, as_value


class Optimizer(Answers):
    """Chooses where to evaluate a noisy function next, in a space of any kinds of parameters.

    Threads may share it: each call waits until those of other threads have returned. A call that
    Ctrl-C interrupts has either happened or not; `trials` shows which. If the policy was being
    changed, the next call rebuilds it from all values, which may take a moment. The trials it asks
    for after that may differ from those it would have asked for without the interrupt.

    Parameters
    ----------
    space
        Bounds or named parameters: see `partita.space.as_space`.
    direction : "minimize" or "maximize"
    seed : int, optional
        The same seed and the same values give the same trials. None draws one: `seed` has it.
    n_evals : int, optional
        The planned number of evaluations, if known. A policy that needs it assumes 100,000 if it is
        not given.
    norm_bound, noise, kernel : optional
        If all three are given, the policy is `PiGPUCB`, whose bounds are proven. Otherwise it is
        `CalibratedUCB`, which uses those given and learns the rest. Lengthscales are measured in
        the unit cube that the space maps to.
    outcomes : (low, high), optional
        What the mean of the function can be, such as (0, 1) for an accuracy; None for an end that
        is not known. Answers respect it; it does not affect which trials are asked for.
    delta : float
        The probability with which a bound may fail.
    policy : str, class or function, optional
        Another policy: a name that `partita policies` lists, optionally with settings in brackets;
        a class; or a function that takes a domain and returns a policy.
    feasible : function, optional
        Takes the same arguments as the function to optimise, and returns True where that may be
        evaluated.
    constraints : list of str, optional
        Bounds on other quantities that an evaluation shows, such as `["cost <= 10"]`. Values are
        then told as dicts, such as `{"loss": 0.3, "cost": 9.1}`.
    context : dict or list of names, optional
        What is known before each trial and not to be chosen, such as the hour or the customer: a
        dict like a space, or names of parameters of the space. Each `ask` then needs a context, and
        the best parameters for it are learned. `feasible` gets the context, too.
    drift : bool
        Whether the function may change in time. If so, values that no longer hold are forgotten,
        and answers are about the function as it is now.

    Examples
    --------
    A price for each hour and kind of customer:

    >>> import partita as pt
    >>> context = {"hour": (0, 24), "segment": ["new", "old"]}
    >>> optimizer = pt.Optimizer({"price": (1, 9)}, direction="maximize", context=context)
    >>> trial = optimizer.ask(context={"hour": 13.5, "segment": "new"})
    >>> optimizer.tell(trial, 0.7)
    >>> trial.context
    {'hour': 13.5, 'segment': 'new'}
    >>> sorted(optimizer.recommend(context={"hour": 20, "segment": "old"}).params)
    ['price']
    """

    def __init__(
        self,
        space: Any,
        *,
        direction: Literal["minimize", "maximize"] = "minimize",
        seed: int | None = 0,
        n_evals: int | None = None,
        norm_bound: float | None = None,
        noise: Noise | None = None,
        kernel: Matern | None = None,
        outcomes: tuple[float | None, float | None] | None = None,
        delta: float = 0.1,
        policy: str | Callable[..., Any] | None = None,
        feasible: Callable[..., Any] | None = None,
        constraints: Sequence[str] | None = None,
        context: Mapping[str, Any] | Sequence[str] | None = None,
        drift: bool = False,
    ) -> None:
        self.direction = check_choice("direction", direction, ("minimize", "maximize"))
        if n_evals is not None:
            n_evals = _check_evaluations(n_evals)
        #: Which parameters of `space` are the context.
        self.contexts = read_contexts(as_space(space, feasible), context)
        self.space: Space = self.contexts.space
        check_lengthscales(kernel, self.space)
        assumptions = Assumptions(kernel, norm_bound, noise, check_delta(delta))
        #: What the mean of the function can be; None if that is not known.
        self.outcomes = Outcomes.of(outcomes)
        self._noise = noise
        self.seed = seed_or_drawn(seed)
        #: How to make the policy again; None if that could not be pickled with the optimizer.
        self._recipe: tuple[Any, ...] | None = (
            domain_of(self.space),
            policy,
            assumptions,
            n_evals,
            self.seed,
            check_flag("drift", drift),
        )
        self.constraints = Constraints(constraints, self.space)
        #: The policy and its trials at points of the unit cube. A study uses it directly.
        self.game = Game(
            self._new_policy(),
            self.space.dim,
            self.direction,
            self.constraints.names,
            self.outcomes,
            self.contexts,
        )
        if self.outcomes is not None:
            known = norm_bound if assumptions.complete else None
            self.outcomes.check_assumptions(noise, known)
        if self.contexts.names:
            self._check_fixes("Optimizer")
        self._turn = _lock_of(self.game.policy)
        #: The method that is changing the policy, or was when it was interrupted.
        self._changed_by: str | None = None

    def _new_policy(self) -> Policy:
        assert self._recipe is not None
        policy = make_policy(*self._recipe)
        self.constraints.constrain(policy)
        return policy

    # -- asking and telling --------------------------------------------------------------------

    @overload
    def ask(
        self,
        count: None = None,
        *,
        context: Mapping[str, Any] | None = None,
        fixed: Mapping[Any, Any] | None = None,
    ) -> Trial: ...
    @overload
    def ask(
        self,
        count: int,
        *,
        context: Mapping[str, Any] | None = None,
        fixed: Mapping[Any, Any] | None = None,
    ) -> list[Trial]: ...
    def ask(
        self,
        count: int | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        fixed: Mapping[Any, Any] | None = None,
    ) -> Trial | list[Trial]:
        """The next trial to evaluate, or a list of `count` trials to evaluate at the same time.

        They are pending until they are told, pruned or cancelled. `context` is the context that
        they are for. `fixed` are parameters that are not to be chosen, such as {"depth": 6}; in a
        space of arrays, by place: {0: 0.5}.
        """
        begun: list[Trial] = []
        with self._turn:
            number = 1 if count is None else check_count(count)
            given = self.given(context, fixed, "ask")
            args = () if given is None else (given.coordinates,)
            try:
                begun.extend(self._trial(self._play("ask", *args), given) for _ in range(number))
            except Exception:  # all or none
                for trial in begun:
                    self._play("cancel", trial.number)
                raise
        for trial in begun:
            log_begun(trial.number, trial.params)
        return begun[0] if count is None else begun

    def expect(self, params: Any, context: Mapping[str, Any] | None = None) -> Trial:
        """A new trial at parameters that you chose and are evaluating.

        It is pending until it is told or cancelled, like a trial from `ask`.
        """
        params = self.contexts.joined(params, context, "expect")
        with self._turn:
            trial = self._trial(self._play("expect", self.point_of(params, "expect")))
        log_begun(trial.number, trial.params, "expected")
        return trial

    def plan(self, n: int) -> list[Trial]:
        """Trials to evaluate until the next answer, each `trial.count` times, at most n in all.

        They are few, each repeated as often as is worth before the answers are looked at; while
        little is known a plan is short. Each is told by `tell(trial, mean, std, count=...)` or
        `tell(trial, values=[...])`, in parts if it suits, and pending until all of its values have
        come. What is pending is accounted for, so several plans may be out.
        """
        rows: list[Trial] = []
        with self._turn:
            n = as_count(n, "plan")
            check_plans(self.policy, self.constraints.names, self.contexts.names)
            try:
                for room in self.game.rows(n):
                    number = self._play("plan", room())
                    rows.append(self._trial(number))
            except Exception:  # all or none
                for trial in rows:
                    self._play("cancel", trial.number)
                raise
        log_planned(rows)
        return rows

    def tell(
        self,
        trial: Trial | int,
        value: Any = NotGiven.NOT_GIVEN,
        std: float | None = None,
        *,
        count: int | None = None,
        values: Any = None,
    ) -> None:
        """Report the value of a trial. `trial` is the trial itself, or its number.

        `std` is the standard deviation of this value's noise, if it is known; 0 means exact. With
        constraints the value is a dict, such as `{"loss": 0.3, "cost": 9.1}`. Nothing changes if
        the call raises an error. The trial's reports are kept.

        With a `count` above 1, the value is the mean of `count` values at these parameters, and
        `std` their sample deviation (ddof = 1): evidence of the noise, where 0 only means that they
        agreed. `values` are several values, of which mean, deviation and count are taken. Either
        does what single values would, at the cost of one.

        Tell every value. The bounds hold for values that were not selected by how they turned out:
        evaluating a point until it looks good, and telling only that value, makes them wrong.
        """
        with self._turn:
            number = self.number_of(trial, "tell")
            given = given_aggregate(value, std, count, values, "tell")
            seen = self.observation(given[0], given[1], "tell", given[2])
            self.check_part(number, seen, "tell")
            self._play("tell", number, *seen, reports_of(trial))
        log_told(number, seen.value, seen.std, seen.count)

    def prune(self, trial: Trial | int) -> bool:
        """End a trial early because it can hardly become the best: see `Trial.should_prune`.

        The model learns what its last report says about its value and how uncertain that is, never
        the report as a value. It learns nothing if too few trials have finished, or if the bounds
        are proven ones, which must not use predictions. Returns whether it has learned anything.
        """
        with self._turn:
            number, reports = self.number_of(trial, "prune"), reports_of(trial)
            self.check_no_row(number, "prune")
            expected = self.expected(reports)
            self._play("prune", number, expected, reports)
        log_pruned(number, len(reports))
        return expected is not None

    def cancel(self, trial: Trial | int) -> None:
        """Cancel a trial whose evaluation was abandoned. It counts as failed.

        The policy learns nothing from it, and may ask for the same parameters again.
        """
        with self._turn:
            number = self.number_of(trial, "cancel")
            self._play("cancel", number)
        log_cancelled(number)

    def fail(self, trial: Trial | int) -> None:
        """Cancel a trial whose evaluation failed, so that it is learned where that happens.

        Failures that come by chance, anywhere, hardly change the choice.
        """
        with self._turn:
            number = self.number_of(trial, "fail")
            self._play("fail", number)
        log_cancelled(number)

    def add(
        self,
        params: Any,
        value: Any,
        std: Any = None,
        context: Any = None,
        *,
        count: Any = None,
    ) -> Any:
        """Report a value known from elsewhere, and return the number of its new trial.

        Or many at once, and get the list of their numbers. That is far quicker than one by one,
        and either all are taken in or, if one cannot be, none is. Add all values that you have, not
        only the best: bounds and certificates do not hold for values selected by their own size.

        Parameters
        ----------
        params
            What the function was given: a dict, or an array (d,). For many, an array (n, d), a list
            of dicts, a dict of columns, or a data frame.
        value
            What it returned: a number; for many, n numbers. With constraints, a dict of numbers;
            for many, a list of dicts, a dict of columns, or a data frame.
        std
            As for `tell`: a number; for many, one for all or n numbers, None or NaN where it is not
            known.
        context
            The context of the value. For many, one for all, a list of n dicts, or a dict of
            columns; or it is given in `params`.
        count
            As for `tell`: of how many values the value is the mean; for many, one number for all or
            n numbers.

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
        if context is not None:
            params = self.contexts.joined(params, context, "add")
        with self._turn:
            if is_many(params, value, self.space):
                return self._add_many(params, value, std, count)
            seen = self.observation(value, std, "add", count)
            number: int = self._play("add", self.point_of(params, "add"), *seen)
        log_added(number, params, seen.value, seen.std, seen.count)
        return number

    def _add_many(self, params: Any, values: Any, stds: Any, count: Any) -> list[int]:
        batch = read_batch(params, values, stds, self.space, self.point_of, self.observation, count)
        try:
            return list(self._play("add_many", batch))
        except Exception:
            if not isinstance(self.policy, Policy):  # one of the user's own may know some of them
                self._changed_by = "add"
            raise

    def _play(self, verb: str, *args: Any) -> Any:
        """Call a method of the game, and leave a mark for the next call if it is interrupted."""
        if self._changed_by is not None:
            self._mend(verb)
        self._changed_by = verb
        try:
            result = getattr(self.game, verb)(*args)
        except (MemoryError, SystemError):  # Numba turns an interrupt into a SystemError
            raise
        except Exception:  # refused, or failed in the policy; other errors can come at any moment
            self._changed_by = None
            raise
        self._changed_by = None
        return result

    @property
    def torn(self) -> bool:
        """Whether the policy was left half changed, so that it must be rebuilt."""
        return self._changed_by is not None and not is_under_way(Optimizer._play, self)

    def _mend(self, verb: str) -> None:
        """Rebuild the policy from the ledger after a call that was interrupted."""
        if is_under_way(Optimizer._play, self):
            raise HalfChanged(
                f"{verb}() was called from within another call of the same optimizer, while its "
                "policy was being changed: `feasible` and objects given as values must not "
                "use it"
            )
        if self._recipe is None:
            raise HalfChanged(
                f"{verb}(): an earlier call was interrupted while it changed the policy. It cannot "
                "be rebuilt, because the function that makes it was lost when the optimizer was "
                "pickled. Make a new Optimizer, and add() the values of `trials`"
            )
        policy = self._new_policy()
        if isinstance(policy, Policy):
            policy._turn = self._turn  # others wait for this one
        self.game = self.game.anew(policy)
        self._changed_by = None

    # -- for runs and studies ----------------------------------------------------------------------

    #: Trials of killed runs, which `ask` returns first. Only a study has any.
    adopted: Sequence[Trial] = ()

    @in_turn
    def hold(self, trial: Trial) -> None:
        """Keep a trial pending although it is no longer evaluated; only a study records this."""
        self.number_of(trial, "hold")

    @in_turn
    def trial(self, number: int, given: Given | None = None) -> Trial:
        """The trial with this number, as `ask` or `expect` returned it."""
        return self._trial(number, given)

    def _trial(self, number: int, given: Given | None = None) -> Trial:
        unit = self.game.ledger.unit(number)
        origin = self.space.mark, unit.tobytes()
        whole = self.contexts.as_given(self.space.decode(unit), given)
        params, context = self.contexts.split(whole)
        count = self.game.ledger.left(number) or 1
        return Trial(number, params, unit, origin, Progress(self._rule()), context, count)

    @in_turn
    def expected(self, reports: Mapping[int, float]) -> Observation | None:
        """What the reports of a trial say of its value, and the noise of that, if it is known."""
        expected: Observation | None = self._play("expected", reports) if reports else None
        return expected

    def _rule(self) -> Rule | None:
        """Which trials are hopeless by now; free of cost where nothing is reported."""
        rule: Rule | None = self._play("rule") if len(self.game.curves) else None
        return rule

    def given(self, context: Any, fixed: Any, verb: str) -> Given | None:
        """What a context and fixed values give; `verb` is for the error message."""
        given = self.contexts.given(context, fixed, verb)
        if given is not None:
            self._check_fixes(verb)
        return given

    def _check_fixes(self, verb: str) -> None:
        """Refuse what cannot be done for a context or with values fixed."""
        if self.constraints.names:
            raise InvalidInput(
                f"{verb}: constraints cannot be combined with a context or with fixed values. "
                "Leave out one of them, or give what is known before a trial as `feasible`"
            )
        optional.check_fixes(self.game.policy)

    def point_of(self, params: Any, verb: str) -> FloatArray:
        """The point (D,) of feasible parameters; `verb` is for the error message."""
        unit = self.space.encode(params)
        if not self.space.allows(self.space.decode(unit)):
            raise InvalidInput(
                f"{verb}({params!r}): feasible does not allow these parameters. Leave them out, or "
                "widen the constraint"
            )
        return unit

    def observation(self, value: Any, std: Any, verb: str, count: Any = None) -> Observation:
        """What is told, checked; with constraints, by name. `verb` is for the error."""
        if count is not None and as_count(count, verb) > 1:
            if self.constraints.names:
                raise InvalidInput(
                    f"{verb}(..., count={count!r}): with constraints each value is told by itself, "
                    "as a dict"
                )
            mean = as_aggregate(value, std, count, verb)
            self.game.check_takes_count(mean, verb)
            seen = Observation(mean.mean, mean.std, None, mean.count)
            if self.outcomes is not None:
                self.outcomes.check(seen.value, None, self._noise, verb)
            return seen
        if self.constraints.names:
            seen = self.constraints.observation(value, std)
            seen = seen._replace(std=self.std_of(seen.std, verb))
        else:
            seen = Observation(as_value(value), self.std_of(std, verb))
        if self.outcomes is not None:
            self.outcomes.check(seen.value, seen.std, self._noise, verb)
        return seen

    def check_part(self, number: int, seen: Observation, verb: str) -> None:
        """Refuse more values of a plan's row than are left of it."""
        ledger = self.game.ledger
        planned = ledger.planned.get(number, 0)
        check_part(ledger.left(number), planned, seen.count, seen.std, verb)

    def check_no_row(self, number: int, verb: str) -> None:
        """Refuse to end a row of a plan early, which only cancel does."""
        if number in self.game.ledger.planned:
            raise InvalidInput(
                f"{verb}({number}): trial {number} is a row of a plan. Use cancel, which keeps "
                "what has been told of it"
            )

    def std_of(self, std: Any, verb: str) -> float | None:
        """The noise of a value, checked; `verb` is for the error message."""
        number = as_std(std)
        if number is not None:
            self.game.check_takes_std(number, verb)
        return number

    def number_of(self, trial: Trial | int, verb: str, also: Container[int] = ()) -> int:
        """The number of a trial that is pending or in `also`; `verb` is for the error message."""
        return number_of(trial, self.game.ledger, self.contexts, verb, also)

    def plot(
        self,
        path: str | PathLike[str] | None = None,
        kind: Literal["run", "importance", "slices", "pairs", "timeline"] = "run",
        *,
        along: str | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Any:
        """A Matplotlib figure of what is known: see `Result.plot`. Refused without values.

        When evaluations were under way is not known here, so there is no "timeline". With contexts,
        it is the best choice `along` one of them (the first, if not given) with its bounds, the
        others as in `context`. Of those not given, a choice of few values has a line for each, and
        the others are in the middle of their range.
        """
        if self.contexts.names or along is not None or context is not None:
            from .along import plot_along

            return plot_along(self, "The optimizer", path, along, context)
        from .looking import result_of

        return result_of(self, "The optimizer").plot(path, kind)

    # -- as an object --------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        """Everything but the lock, at a moment when nothing is half changed."""
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
        """A copy of the state, since other threads may change it while it is pickled."""
        with self._turn:
            state = self._state()
            recipe = state["_recipe"]
            if recipe is not None and not isinstance(recipe[1], str | type | None):
                state["_recipe"] = None  # many functions cannot be pickled
            return copy.deepcopy(state, {id(self.space): self.space})

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({"_recipe": None, "outcomes": None, **state, "_changed_by": None})
        self._turn = _lock_of(self.game.policy)

    @in_turn
    def _repr_html_(self) -> str:
        from .html import player_html

        return player_html(self, "Optimizer")

    @in_turn
    def __repr__(self) -> str:
        return (
            f"Optimizer({self.space!r}, direction={self.direction!r}, "
            f"policy={type(self.policy).__name__}: {self.n_told} values, {self.n_pending} pending, "
            f"{self.n_failed} failed{f', {self.n_pruned} pruned' if self.n_pruned else ''})"
        )


def _lock_of(policy: Any) -> Any:
    """The policy's own lock, shared so that no thread holds one and waits for the other."""
    return turn_of(policy) if isinstance(policy, Policy) else new_lock()


def _check_evaluations(n_evals: object) -> int:
    try:
        return check_horizon(n_evals)
    except InvalidInput:
        raise InvalidInput(
            f"n_evals={n_evals!r}: give the planned evaluations, a whole number of at least 1"
        ) from None
