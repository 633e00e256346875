"""`Study`: ask and tell through a file."""

from __future__ import annotations

import contextlib
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, TypeVar, overload

from partita._checks import NotGiven, as_number, check_choice, check_count, seed_or_drawn
from partita._types import FloatArray, Prediction
from partita.errors import InvalidInput
from partita.model.assumptions import Assumptions
from partita.model.kernels import Matern
from partita.model.noise import Noise
from partita.optimize.aggregates import as_count, given_aggregate
from partita.optimize.bulk import is_many, read_batch
from partita.optimize.constraints import Constraints, Known
from partita.optimize.contexts import Contexts, Given
from partita.optimize.logs import log_added, log_begun, log_cancelled, log_pruned, log_told
from partita.optimize.optimizer import Optimizer, reports_of
from partita.optimize.plans import check_plans
from partita.optimize.result import Checkpoint
from partita.optimize.trial import Suggestion, Trial
from partita.optimize.trials import Trials
from partita.optimize.values import Observation
from partita.policies.base import Policy
from partita.space import Space

from . import owner as owners
from .events import FIRST_TIME, LAST_TIME, OWNERS, PROGRESS, Kind
from .owner import NOBODY, Owner
from .place import as_path
from .replica import Change, Replica
from .settings import Settings
from .store import Store
from .watching import marked

T = TypeVar("T")


class Study:
    """An `Optimizer` that keeps every ask, tell and cancel in a file. Use `Study.open` to make one.

    Several threads and processes of one machine may use the same file at the same time. Once a call
    has returned, its effect is stored and survives a crash of the process at any moment.

    Attributes
    ----------
    path
    settings
        The settings of the study.
    """

    def __init__(self, replica: Replica, owner: Owner = NOBODY, key: str | None = None) -> None:
        store, self._key = replica.store, key
        self.path, self.settings = store.path, replica.settings
        self._store, self._replica, self._owner = store, replica, owner
        #: Trials that a killed run was evaluating; `ask` returns them first.
        self.adopted: deque[Trial] = deque()

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        space: Any = None,
        *,
        direction: Literal["minimize", "maximize"] | None = None,
        seed: int | NotGiven | None = NotGiven.NOT_GIVEN,
        n_evals: int | None = None,
        norm_bound: float | None = None,
        noise: Noise | None = None,
        kernel: Matern | None = None,
        outcomes: tuple[float | None, float | None] | None = None,
        delta: float | None = None,
        policy: str | Callable[..., Any] | None = None,
        feasible: Callable[..., Any] | None = None,
        context: Mapping[str, Any] | Sequence[str] | None = None,
        drift: bool | None = None,
        constraints: Sequence[str] | None = None,
        expire_after: float | None = None,
        durability: Literal["process", "power"] = "process",
        timeout: float = 30.0,
        must_be_new: bool = False,
    ) -> Study:
        """Open a study, or create one if there is none and a space is given.

        Parameters
        ----------
        path
            The file, such as "tune.db".
        space, direction, seed, n_evals, norm_bound, noise, kernel, outcomes, delta
            As for `Optimizer`, with the same defaults when a study is created. When it is reopened,
            arguments that are left out keep their stored values. Those given must equal the stored
            ones, or an error lists the differences; only `n_evals` may change. A seed of None draws
            one when a study is created: `study.seed` has it.
        constraints, context, drift, policy, feasible
            Likewise. `feasible`, or a policy other than a built-in one by name, is not stored and
            must be given again.
        expire_after
            Seconds after which a pending trial is cancelled, at the next use of the study. Its
            value is still accepted if it comes later. By default trials never expire.
        durability
            What a call that has returned survives. "process": a crash of the process, `kill -9`
            included. "power": also a power cut or a crash of the system, which with "process" may
            lose the last seconds, but leaves the file intact.
        timeout
            Seconds to wait while another process has the file locked.
        must_be_new
            Refuse to open a study that already exists.
        """
        check_choice("durability", durability, ("process", "power"))
        seconds = as_number(timeout)
        if not 0.0 <= seconds < float("inf"):
            raise InvalidInput(f"timeout={timeout!r}: give a number of seconds, at least 0")
        if isinstance(space, Space) and feasible is None:
            feasible = space.constraint
        given = {
            "space": space,
            "direction": direction,
            "seed": None if isinstance(seed, NotGiven) else seed,
            "n_evals": n_evals,
            **Assumptions(kernel, norm_bound, noise, delta).keywords(),
            "outcomes": outcomes,
            "policy": policy,
            "feasible": feasible,
            "context": context,
            "drift": drift,
            "constraints": constraints,
            "expire_after": expire_after,
        }
        store = Store(as_path(path), durability, seconds)
        begun = False
        with store.lock:  # no other thread forks while the file is open
            if space is not None:
                drawn = {"seed": seed_or_drawn(None)} if seed is None else {}
                wanted = Settings.of({**given, **drawn})
                if store.is_new():
                    wanted.build(feasible, policy)  # refuse unusable settings before storing them
                    begun = store.create(wanted.to_meta())
            if must_be_new and not begun:
                raise InvalidInput(
                    f"{store.path} is already a study: open it, or give another name"
                )
            settings = Settings.from_meta(store.meta(), store.path)
        settings.check_same(given, store.path)
        return cls(Replica(store, settings, feasible, policy))

    def check(self, space: Any = None, **settings: Any) -> None:
        """Raise an error if a space, or settings of `open`, differ from those of the study."""
        given = {name: value for name, value in settings.items() if value is not None}
        functions = {"feasible": self._replica.feasible, "policy": self._replica.policy}
        self.settings.check_same({**functions, "space": space, **given}, self.path)

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
        """The next trial to evaluate, or a list of `count` trials: see `Optimizer.ask`."""
        number = 1 if count is None else check_count(count)

        def begin(change: Change) -> list[Trial]:
            given = change.state.optimizer.given(context, fixed, "ask")
            return [self._next_trial(change, given) for _ in range(number)]

        begun = self._changed(begin)
        for trial in begun:
            log_begun(trial.number, trial.params)
        return begun[0] if count is None else begun

    def _next_trial(self, change: Change, given: Given | None) -> Trial:
        state = change.state
        while self.adopted and given is None:  # others were not asked for these values
            trial = self.adopted.popleft()
            if trial.number in state.asked or trial.number in state.expired:
                return trial  # it is still pending
        change.begin()
        begun = state.ask(time.time(), self._owner.evaluates, given)
        change.log(begun.event)
        return begun.trial

    def expect(self, params: Any, context: Mapping[str, Any] | None = None) -> Trial:
        """A new trial at parameters that you chose and are evaluating."""

        def expected(change: Change) -> Trial:
            optimizer = change.state.optimizer
            joined = optimizer.contexts.joined(params, context, "expect")
            unit = optimizer.point_of(joined, "expect")
            change.begin()
            begun = change.state.expect(unit, time.time(), self._owner.evaluates)
            change.log(begun.event)
            return begun.trial

        trial = self._changed(expected)
        log_begun(trial.number, trial.params, "expected")
        return trial

    def plan(self, n: int) -> list[Trial]:
        """Trials to evaluate until the next answer, each `trial.count` times: see `Optimizer.plan`.

        Each row, and each part of it that is told, is stored.
        """
        n = as_count(n, "plan")

        def planned(change: Change) -> list[Trial]:
            state = change.state
            optimizer, rows = state.optimizer, []
            check_plans(optimizer.policy, optimizer.constraints.names, optimizer.contexts.names)
            change.begin()
            for most in state.game.rows(n):
                begun = state.plan(most(), time.time(), self._owner.evaluates)
                change.log(begun.event)
                rows.append(begun.trial)
            return rows

        rows = self._changed(planned)
        for trial in rows:
            log_begun(trial.number, trial.params, f"planned {trial.count} times")
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
        """Report the value of a trial, pending or expired: the trial itself, or its number.

        `std` is the standard deviation of this value's noise, if it is known; 0 means exact. With
        constraints the value is a dict, such as `{"loss": 0.3, "cost": 9.1}`. Tell every value:
        bounds are wrong for values that were selected by how they turned out.

        `count` and `values` are for several values at once: see `Optimizer.tell`.
        """

        def told(change: Change) -> tuple[int, Observation]:
            state = change.state
            number = state.optimizer.number_of(trial, "tell", also=state.expired)
            given = given_aggregate(value, std, count, values, "tell")
            seen = state.optimizer.observation(given[0], given[1], "tell", given[2])
            state.optimizer.check_part(number, seen, "tell")
            change.begin()
            change.log(state.tell(number, seen, time.time(), reports_of(trial)))
            return number, seen

        number, seen = self._changed(told)
        log_told(number, seen.value, seen.std, seen.count)

    def prune(self, trial: Trial | int) -> bool:
        """End a trial early, whose evaluation can hardly become the best: see `Optimizer`."""

        def pruned(change: Change) -> bool:
            state = change.state
            number = state.optimizer.number_of(trial, "prune", also=state.expired)
            state.optimizer.check_no_row(number, "prune")
            change.begin()
            event = state.prune(number, time.time(), reports_of(trial))
            change.log(event)
            log_pruned(number, len(reports_of(trial)))
            return '"expected"' in (event.data or "")

        return self._changed(pruned)

    def cancel(self, trial: Trial | int) -> None:
        """Cancel a trial whose evaluation was abandoned. An expired one stays expired."""
        self._give_up(trial, "cancel")

    def fail(self, trial: Trial | int) -> None:
        """Cancel a trial whose evaluation failed, so that it is learned where that happens."""
        self._give_up(trial, "fail")

    def _give_up(self, trial: Trial | int, verb: str) -> None:
        def cancelled(change: Change) -> int:
            state = change.state
            number = state.optimizer.number_of(trial, verb, also=state.expired)
            if number not in state.expired:
                change.begin()
                change.log(state.cancel(number, time.time(), failed=verb == "fail"))
            return number

        log_cancelled(self._changed(cancelled))

    def add(
        self,
        params: Any,
        value: Any,
        std: Any = None,
        context: Any = None,
        *,
        count: Any = None,
    ) -> Any:
        """Report a value known from elsewhere, or many in one transaction: see `Optimizer.add`.

        Returned is the number of the trial, or the list of their numbers. Add all values that you
        have, not only the best.
        """

        def added(change: Change) -> tuple[Any, Observation | None]:
            optimizer = change.state.optimizer
            given = params
            if context is not None:
                given = optimizer.contexts.joined(params, context, "add")
            if is_many(given, value, optimizer.space):
                optimizer.constraints.refuse_many()
                readers = optimizer.space, optimizer.point_of, optimizer.observation
                batch = read_batch(given, value, std, *readers, count)
                change.begin()
                events = change.state.add_many(batch, time.time())
                change.log_all(events)
                return [event.trial for event in events], None
            seen = optimizer.observation(value, std, "add", count)
            unit = optimizer.point_of(given, "add")
            change.begin()
            begun = change.state.add(unit, seen, time.time())
            change.log(begun.event)
            return begun.trial.number, seen

        numbers, seen = self._changed(added)
        if seen is not None:
            log_added(numbers, params, seen.value, seen.std, seen.count)
        return numbers

    def _changed(self, work: Callable[[Change], T]) -> T:
        with self._store.lock:
            key = self._key
            return self._replica.changed(
                work if key is None else lambda change: work(marked(change, key))
            )

    def keyed(self, key: str) -> Study:
        """A view of the study whose events carry a key, by which a repeated request is known."""
        return Study(self._replica, self._owner, key)

    def look(self, question: Callable[[Store], T]) -> T:
        """What a question to the file returns, while no other thread uses the file."""
        with self._store.lock:
            return question(self._store)

    # -- runs ----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def running(self) -> Iterator[Study]:
        """A view of the study for one run of this process, which owns the trials it asks for.

        The pending trials of killed runs come first. Each of several simultaneous runs gets its own
        view, on the same file and memory.
        """
        name = owners.begin()
        try:
            yield self._changed(lambda change: self._begun(change, name))
        finally:
            owners.end(name)

    def _begun(self, change: Change, name: str) -> Study:
        """A view of the study for a new run, with the pending trials of killed runs."""
        state = change.state
        dead = {key: other for key, other in self._store.typed(*OWNERS) if owners.is_dead(other)}
        owner = Owner(self._new_owner(name), self._new_owner(name + owners.HELD))
        run = Study(self._replica, owner)
        left = [(n, dead[key]) for n, key in state.owners.items() if key in dead]
        change.begin()
        for number, other in left:
            if not other.endswith(owners.HELD):
                change.log(state.adopt(number, time.time(), owner.evaluates))
                run.adopted.append(state.optimizer.trial(number))
        for number, other in left:
            if other.endswith(owners.HELD):  # failed, or skipped
                change.log(state.cancel(number, time.time()))
        return run

    def _new_owner(self, name: str) -> int:
        self._store.rows("INSERT INTO owners (name) VALUES (?)", (name,))
        return int(self._store.rows("SELECT max(id) FROM owners")[0][0])

    def hold(self, trial: Trial) -> None:
        """Keep a trial of a run pending although it is not being evaluated.

        If the run is killed, the next run does not evaluate the trial either.
        """

        def held(change: Change) -> None:
            state = change.state
            number = state.optimizer.number_of(trial, "hold", also=state.expired)
            if self._owner.holds is not None and number not in state.expired:
                change.begin()
                change.log(state.adopt(number, time.time(), self._owner.holds))

        self._changed(held)

    # -- answers -------------------------------------------------------------------------------

    @overload
    def recommend(
        self,
        context: Mapping[str, Any] | None = None,
        fixed: Mapping[Any, Any] | None = None,
    ) -> Suggestion: ...
    @overload
    def recommend(
        self, context: Sequence[Mapping[str, Any]], fixed: Mapping[Any, Any] | None = None
    ) -> list[Suggestion]: ...
    def recommend(self, context: Any = None, fixed: Any = None) -> Any:
        """The best parameters by what is known: see `Optimizer.recommend`."""
        return self._read(lambda optimizer: optimizer.recommend(context, fixed))

    def constraints_at(self, params: Any) -> dict[str, Known]:
        """What is known of each constrained quantity at some parameters, by its name."""
        return self._read(lambda optimizer: optimizer.constraints_at(params))

    def certificate(
        self,
        context: Mapping[str, Any] | None = None,
        fixed: Mapping[Any, Any] | None = None,
    ) -> float:
        """A bound on how much better others can be: see `Optimizer.certificate`."""
        return self._read(lambda optimizer: optimizer.certificate(context, fixed))

    def predict(self, params: Sequence[Any] | FloatArray, context: Any = None) -> Prediction:
        """The posterior of the function at n points: mean, std, lower, upper, each (n,)."""
        return self._read(lambda optimizer: optimizer.predict(params, context))

    @property
    def trials(self) -> Trials:
        """All trials so far: a sequence of records, with numbers, values and states as arrays."""
        return self._read(lambda optimizer: optimizer.trials)

    @property
    def n_told(self) -> int:
        """The number of values reported, by `tell` and `add`."""
        return self._read(lambda optimizer: optimizer.n_told)

    @property
    def n_failed(self) -> int:
        """The number of trials that were cancelled, or expired and have no value since."""
        return self._read(lambda optimizer: optimizer.n_failed)

    @property
    def n_pruned(self) -> int:
        """How many trials were ended early."""
        return self._read(lambda optimizer: optimizer.n_pruned)

    def reports(self, number: int) -> dict[int, float]:
        """What a trial that has ended had reported after each step."""
        return self._read(lambda optimizer: optimizer.reports(number))

    @property
    def n_pending(self) -> int:
        """The number of trials that have not ended."""
        return self._read(lambda optimizer: optimizer.n_pending)

    @property
    def policy(self) -> Policy:
        """The policy, for inspection only: values reported to it directly are not stored."""
        return self._read(lambda optimizer: optimizer.policy)

    @property
    def space(self) -> Space:
        """The search space."""
        return self._read(lambda optimizer: optimizer.space)

    @property
    def contexts(self) -> Contexts:
        """Which parameters of the space are the context."""
        return self._read(lambda optimizer: optimizer.contexts)

    @property
    def constraints(self) -> Constraints:
        """What other quantities must be."""
        return self._read(lambda optimizer: optimizer.constraints)

    @property
    def direction(self) -> str:
        """Either "minimize" or "maximize"."""
        return self.settings.direction

    @property
    def seed(self) -> int:
        """What random choices come from."""
        return self.settings.seed

    @property
    def guarantee(self) -> str:
        """The kind of guarantee of the bounds, such as "proven" or "calibrated"."""
        return self._read(lambda optimizer: optimizer.guarantee)

    @property
    def expired(self) -> tuple[int, ...]:
        """The numbers of the trials that expired and have no value since."""
        with self._store.lock:
            return tuple(sorted(self._replica.current().expired))

    @property
    def differing(self) -> int:
        """The number of asks in the log for which the policy would choose another point here.

        That may happen with another version or processor: see the guide.
        """
        with self._store.lock:
            return self._replica.current().differing

    def notes(self) -> list[Checkpoint]:
        """The recommendations recorded over time; `seconds` are since 1970."""
        with self._store.lock:
            rows = self._store.typed(*PROGRESS)
        return [Checkpoint._make(math.nan if v is None else v for v in row) for row in rows]

    def times(self, kinds: Sequence[Kind]) -> dict[int, float]:
        """The time of each trial's last event of the given kinds, in seconds since 1970."""
        places = ", ".join("?" * len(kinds))
        query = (
            f"SELECT trial, min(max(max(time), {FIRST_TIME}), {LAST_TIME}) FROM events "
            f"WHERE kind IN ({places}) GROUP BY trial ORDER BY trial"
        )
        with self._store.lock:
            return dict(self._store.typed(query, ((int,), (float,)), kinds))

    # -- looking -------------------------------------------------------------------------------

    def export(self, path: str | PathLike[str]) -> None:
        """Write all trials to a file that ends in .csv or .parquet, as `partita export` does.

        Parquet needs pyarrow: `pip install 'partita[tables]'`.
        """
        from .export import export

        export(self, path)

    def plot(
        self,
        path: str | PathLike[str] | None = None,
        kind: Literal["run", "importance", "slices", "pairs", "timeline"] = "run",
        *,
        along: str | None = None,
        context: Mapping[str, Any] | None = None,
    ) -> Any:
        """A Matplotlib figure of what is known, as `partita show --plot` draws it.

        See `Result.plot`, and `Optimizer.plot` for contexts; refused while there are no values.
        """
        if self.contexts.names or along is not None or context is not None:
            from partita.optimize.along import plot_along

            return plot_along(self, f"The study {self.path}", path, along, context)
        from .looking import as_result

        return as_result(self).plot(path, kind)

    def _read(self, question: Callable[[Optimizer], T]) -> T:
        with self._store.lock:
            return question(self._replica.current().optimizer)

    # -- as an object --------------------------------------------------------------------------

    def close(self) -> None:
        """Close the file; it is reopened at the next use.

        Calling it is optional: nothing is lost without it, but the next process to open the study
        may have a little more to replay.
        """
        with self._store.lock:
            self._replica.close()

    def __enter__(self) -> Study:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        store, replica = self._store, self._replica
        where = (str(store.file), replica.feasible, replica.policy)
        return _reopened, (*where, store.durability, store.timeout)

    def _repr_html_(self) -> str:
        from partita.optimize.html import player_html

        return player_html(self, f"Study {self.path}")

    def __repr__(self) -> str:
        return f"Study({str(self.path)!r}, direction={self.direction!r})"


def _reopened(
    path: str,
    feasible: Callable[..., Any] | None,
    policy: str | Callable[..., Any] | None,
    durability: Literal["process", "power"],
    timeout: float,
) -> Study:
    """A pickled study: the same file, opened where it is unpickled."""
    return Study.open(
        path, feasible=feasible, policy=policy, durability=durability, timeout=timeout
    )
