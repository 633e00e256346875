"""`Study`: ask and tell through a file."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, TypeVar, overload

from partita._checks import NotGiven, check_count
from partita.model.assumptions import Assumptions
from partita.model.kernels import Matern
from partita.model.noise import Noise
from partita.optimize.aggregates import as_count, given_aggregate
from partita.optimize.bulk import is_many, read_batch
from partita.optimize.contexts import Given
from partita.optimize.logs import (
    log_added,
    log_begun,
    log_cancelled,
    log_planned,
    log_pruned,
    log_told,
)
from partita.optimize.numbers import reports_of
from partita.optimize.plans import check_plans
from partita.optimize.trial import Trial
from partita.optimize.values import Observation
from partita.space import Space

from . import owner as owners
from . import runs
from . import tolerance as tolerances
from .answers import Answers
from .opening import opened, stored_at
from .owner import NOBODY, Owner
from .replica import Change, Replica
from .watching import marked

T = TypeVar("T")


class Study(Answers):
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
        super().__init__(replica)
        self._owner, self._key = owner, key
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
        store = stored_at(path, durability, timeout)
        return cls(opened(store, given, drawn=seed is None, must_be_new=must_be_new))

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

        begun = self.changed(begin)
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

        trial = self.changed(expected)
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
            for room in state.game.rows(n):
                begun = state.plan(room(), time.time(), self._owner.evaluates)
                change.log(begun.event)
                rows.append(begun.trial)
            return rows

        rows = self.changed(planned)
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

        number, seen = self.changed(told)
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

        return self.changed(pruned)

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

        log_cancelled(self.changed(cancelled))

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

        numbers, seen = self.changed(added)
        if seen is not None:
            log_added(numbers, params, seen.value, seen.std, seen.count)
        return numbers

    def changed(self, work: Callable[[Change], T]) -> T:
        """What some work on the state returns, in one transaction with what it logs."""
        with self._store.lock:
            key = self._key
            return self._replica.changed(
                work if key is None else lambda change: work(marked(change, key))
            )

    def together(
        self,
        pieces: Iterable[Callable[[], T]],
        stored: Callable[[list[T | Exception]], None] | None = None,
    ) -> list[T | Exception]:
        """Call functions that ask and tell, in one transaction: what each returned or raised.

        A call that is refused leaves the others as they are. If the file fails, nothing is stored
        and the error is raised. `stored` is called with the outcomes once they are on the disk.
        """
        with self._store.lock:
            return self._replica.together(pieces, stored)

    def put_off(self, patience: float) -> None:
        """Let what takes long wait for `tidy`, up to `patience` times longer than usual.

        That is: to store a snapshot, and to move SQLite's log into the file. Nothing depends on
        them but the time that the next process takes to open the study.
        """
        self._store.patience = patience

    def tidy(self) -> None:
        """Do what was put off, if it is due."""
        with self._store.lock:
            self._replica.tidy()

    def keyed(self, key: str) -> Study:
        """A view of the study whose events carry a key, by which a repeated request is known."""
        return Study(self._replica, self._owner, key)

    @property
    def tolerance(self) -> float | None:
        """The certificate that is small enough for you, which pages show; None if there is none.

        Set it to store it. It changes no choice, and ends no run.
        """
        with self._store.lock:
            return tolerances.stored(self._store)

    @tolerance.setter
    def tolerance(self, tolerance: float | None) -> None:
        number = tolerances.checked(tolerance)
        with self._store.lock:
            tolerances.store_in(self._store, number)

    # -- runs ----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def running(self) -> Iterator[Study]:
        """A view of the study for one run of this process, which owns the trials it asks for.

        The pending trials of killed runs come first. Each of several simultaneous runs gets its own
        view, on the same file and memory.
        """
        name = owners.begin()
        try:
            run = self.changed(lambda change: runs.begin(self._store, change, name))
            view = Study(self._replica, run.owner)
            view.adopted.extend(run.adopted)
            yield view
        finally:
            owners.end(name)

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

        self.changed(held)

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
