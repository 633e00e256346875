"""`Study`: ask and tell through a file."""

from __future__ import annotations

import contextlib
import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from partita._checks import as_number, check_choice
from partita._types import FloatArray, Prediction
from partita.errors import InvalidInput
from partita.model.assumptions import Assumptions
from partita.model.kernels import Matern
from partita.model.noise import Noise
from partita.optimize.constraints import Constraints, Known
from partita.optimize.optimizer import Optimizer, Suggestion, Trial
from partita.optimize.result import Checkpoint
from partita.optimize.trials import Trials
from partita.policies.base import Policy
from partita.space import Space

from . import owner as owners
from .events import FIRST_TIME, LAST_TIME, OWNERS, PROGRESS, Kind
from .place import as_path
from .replica import Change, Replica
from .settings import Settings
from .store import Store

T = TypeVar("T")


class Owner(NamedTuple):
    """A run, by its two rows in the table `owners`.

    Attributes
    ----------
    evaluates
        Owns the trials that it evaluates.
    holds
        Owns those that it keeps pending without evaluating them.
    """

    evaluates: int | None = None
    holds: int | None = None


#: Asks for trials that are evaluated elsewhere.
NOBODY = Owner()


class Study:
    """An `Optimizer` whose every ask, tell and cancel is kept in a file. Made by `Study.open`.

    Several threads and processes of one machine may use the same file at once. A call that has
    returned is in the file: it survives the end of the process at any moment.

    Attributes
    ----------
    path
    settings
        What the study is about.
    """

    def __init__(self, replica: Replica, owner: Owner = NOBODY) -> None:
        store = replica.store
        self.path, self.settings = store.path, replica.settings
        self._store, self._replica, self._owner = store, replica, owner
        #: Trials that a killed run had under way, which `ask` returns before any other.
        self.adopted: deque[Trial] = deque()

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        space: Any = None,
        *,
        direction: Literal["minimize", "maximize"] | None = None,
        seed: int | None = None,
        n_evals: int | None = None,
        norm_bound: float | None = None,
        noise: Noise | None = None,
        kernel: Matern | None = None,
        delta: float | None = None,
        policy: str | Callable[..., Any] | None = None,
        feasible: Callable[..., Any] | None = None,
        constraints: Sequence[str] | None = None,
        expire_after: float | None = None,
        durability: Literal["process", "power"] = "process",
        timeout: float = 30.0,
        must_be_new: bool = False,
    ) -> Study:
        """Open a study, or begin one if there is none and a space is given.

        Parameters
        ----------
        path
            The file, such as "tune.db".
        space, direction, seed, n_evals, norm_bound, noise, kernel, delta, policy, feasible,
        constraints
            As for `Optimizer`, with the same defaults when a study begins. What is given when it is
            opened again must be as it was, but for `n_evals`; what is not given is as it was.
            `feasible`, or a policy that is not one of ours by name, must be given again.
        expire_after
            Seconds after which a pending trial is given up by whoever uses the study next. Its
            value is still welcome when it comes. Never, if not given.
        durability
            What a call that has returned survives: "process", the end of the process, `kill -9`
            included, and of other programs; "power", a power cut or a crash of the system as well.
            After one of those, a study of "process" may lack the last seconds, but is whole.
        timeout
            Seconds to wait while another process has the file locked.
        must_be_new
            Refuse to open a study that is there already.
        """
        check_choice("durability", durability, ("process", "power"))
        seconds = as_number(timeout)
        if not 0.0 <= seconds < float("inf"):
            raise InvalidInput(f"timeout={timeout!r}: give seconds, at least 0")
        if isinstance(space, Space) and feasible is None:
            feasible = space.constraint
        given = {
            "space": space,
            "direction": direction,
            "seed": seed,
            "n_evals": n_evals,
            **Assumptions(kernel, norm_bound, noise, delta).keywords(),
            "policy": policy,
            "feasible": feasible,
            "constraints": constraints,
            "expire_after": expire_after,
        }
        store = Store(as_path(path), durability, seconds)
        begun = False
        with store.lock:  # no other thread forks while the file is open
            if space is not None:
                wanted = Settings.of(given)
                if store.is_new():
                    wanted.build(feasible, policy)  # what cannot be played is refused, not stored
                    begun = store.create(wanted.to_meta())
            if must_be_new and not begun:
                raise InvalidInput(
                    f"{store.path} is a study already: open it, or give another name"
                )
            settings = Settings.from_meta(store.meta(), store.path)
        _check_same(settings, given, store.path)
        return cls(Replica(store, settings, feasible, policy))

    def check(self, space: Any = None, **settings: Any) -> None:
        """Refuse a space, or settings of `open`, that differ from those of the study."""
        given = {name: value for name, value in settings.items() if value is not None}
        functions = {"feasible": self._replica.feasible, "policy": self._replica.policy}
        _check_same(self.settings, {**functions, "space": space, **given}, self.path)

    # -- asking and telling --------------------------------------------------------------------

    def ask(self) -> Trial:
        """The next trial. Ask again before telling and this one stays pending."""

        def next_trial(change: Change) -> Trial:
            state = change.state
            while self.adopted:
                trial = self.adopted.popleft()
                if trial.number in state.asked or trial.number in state.expired:
                    return trial  # nobody has settled it since
            change.begin()
            begun = state.ask(time.time(), self._owner.evaluates)
            change.log(begun.event)
            return begun.trial

        return self._changed(next_trial)

    def expect(self, params: Any) -> Trial:
        """A trial at parameters that were chosen elsewhere and are being evaluated."""

        def expected(change: Change) -> Trial:
            unit = change.state.optimizer.point_of(params, "expect")
            change.begin()
            begun = change.state.expect(unit, time.time(), self._owner.evaluates)
            change.log(begun.event)
            return begun.trial

        return self._changed(expected)

    def tell(self, trial: Trial | int, value: Any, std: float | None = None) -> None:
        """Report the value of a trial, given itself or its number. One that expired is welcome.

        `std` is the standard deviation of this value's noise, if that is known: 0 means exact. With
        constraints the value is a dict, such as `{"loss": 0.3, "cost": 9.1}`.
        """

        def told(change: Change) -> None:
            state = change.state
            number = state.optimizer.number_of(trial, "tell", also=state.expired)
            seen = state.optimizer.observation(value, std, "tell")
            change.begin()
            change.log(state.tell(number, seen, time.time()))

        self._changed(told)

    def cancel(self, trial: Trial | int) -> None:
        """Give up a trial whose evaluation was dropped. One that expired stays so."""
        self._give_up(trial, "cancel")

    def fail(self, trial: Trial | int) -> None:
        """Give up a trial whose evaluation failed, so that it is learned where that happens."""
        self._give_up(trial, "fail")

    def _give_up(self, trial: Trial | int, verb: str) -> None:
        def given_up(change: Change) -> None:
            state = change.state
            number = state.optimizer.number_of(trial, verb, also=state.expired)
            if number not in state.expired:
                change.begin()
                change.log(state.cancel(number, time.time(), failed=verb == "fail"))

        self._changed(given_up)

    def add(self, params: Any, value: Any, std: float | None = None) -> int:
        """Report a value known from elsewhere, at any time, and get the number of its trial.

        `value` and `std` are as for `tell`.
        """

        def added(change: Change) -> int:
            optimizer = change.state.optimizer
            seen = optimizer.observation(value, std, "add")
            unit = optimizer.point_of(params, "add")
            change.begin()
            begun = change.state.add(unit, seen, time.time())
            change.log(begun.event)
            return begun.trial.number

        return self._changed(added)

    def _changed(self, work: Callable[[Change], T]) -> T:
        with self._store.lock:
            return self._replica.changed(work)

    # -- runs ----------------------------------------------------------------------------------

    @contextlib.contextmanager
    def running(self) -> Iterator[Study]:
        """The study as one run of this process sees it: what it asks for is the run's own.

        Trials of runs that ended without telling them, because they were killed, come first. Each
        of several runs at once has a study of its own here, on the same file and memory.
        """
        name = owners.begin()
        try:
            yield self._changed(lambda change: self._begun(change, name))
        finally:
            owners.end(name)

    def _begun(self, change: Change, name: str) -> Study:
        """The study as a new run sees it, with the trials that killed runs left."""
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
            if other.endswith(owners.HELD):  # failed, or passed over
                change.log(state.cancel(number, time.time()))
        return run

    def _new_owner(self, name: str) -> int:
        self._store.rows("INSERT INTO owners (name) VALUES (?)", (name,))
        return int(self._store.rows("SELECT max(id) FROM owners")[0][0])

    def hold(self, trial: Trial) -> None:
        """Keep a trial of a run pending that is not evaluated any more, if it was at all.

        Should the run be killed, another does not evaluate it either.
        """

        def held(change: Change) -> None:
            state = change.state
            number = state.optimizer.number_of(trial, "hold", also=state.expired)
            if self._owner.holds is not None and number not in state.expired:
                change.begin()
                change.log(state.adopt(number, time.time(), self._owner.holds))

        self._changed(held)

    # -- answers -------------------------------------------------------------------------------

    def recommend(self) -> Suggestion:
        """The best parameters by what is known, not by the luckiest value."""
        return self._read(Optimizer.recommend)

    def constraints_at(self, params: Any) -> dict[str, Known]:
        """What is known of each constrained quantity at some parameters, by its name."""
        return self._read(lambda optimizer: optimizer.constraints_at(params))

    def certificate(self) -> float:
        """How much better than the recommended parameters any others can still be."""
        return self._read(Optimizer.certificate)

    def predict(self, params: Sequence[Any] | FloatArray) -> Prediction:
        """The posterior of the function at n points: mean, std, lower, upper, each (n,)."""
        return self._read(lambda optimizer: optimizer.predict(params))

    @property
    def trials(self) -> Trials:
        """All trials so far: a sequence of records, with numbers, values and states as arrays."""
        return self._read(lambda optimizer: optimizer.trials)

    @property
    def n_told(self) -> int:
        """How many values have been told or added."""
        return self._read(lambda optimizer: optimizer.n_told)

    @property
    def n_failed(self) -> int:
        """How many trials have been cancelled, or expired and were not told since."""
        return self._read(lambda optimizer: optimizer.n_failed)

    @property
    def n_pending(self) -> int:
        """How many trials are neither told nor cancelled."""
        return self._read(lambda optimizer: optimizer.n_pending)

    @property
    def policy(self) -> Policy:
        """The policy, to look at: what it is told here does not reach the file."""
        return self._read(lambda optimizer: optimizer.policy)

    @property
    def space(self) -> Space:
        """What may vary."""
        return self._read(lambda optimizer: optimizer.space)

    @property
    def constraints(self) -> Constraints:
        """What other quantities must be."""
        return self._read(lambda optimizer: optimizer.constraints)

    @property
    def direction(self) -> str:
        """Either "minimize" or "maximize"."""
        return self.settings.direction

    @property
    def guarantee(self) -> str:
        """What stands behind the bounds, such as "proven" or "calibrated"."""
        return self._read(lambda optimizer: optimizer.guarantee)

    @property
    def expired(self) -> tuple[int, ...]:
        """Numbers of the trials that expired and were not told since."""
        with self._store.lock:
            return tuple(sorted(self._replica.current().expired))

    @property
    def differing(self) -> int:
        """Asks of the log at which the policy would choose another point here: see the guide."""
        with self._store.lock:
            return self._replica.current().differing

    def notes(self) -> list[Checkpoint]:
        """The answers that were noted as values came in; `seconds` are those since 1970."""
        with self._store.lock:
            rows = self._store.typed(*PROGRESS)
        return [Checkpoint._make(math.nan if v is None else v for v in row) for row in rows]

    def times(self, kinds: Sequence[Kind]) -> dict[int, float]:
        """When each trial had its last event of some kinds, by its number: seconds since 1970."""
        places = ", ".join("?" * len(kinds))
        query = (
            f"SELECT trial, min(max(max(time), {FIRST_TIME}), {LAST_TIME}) FROM events "
            f"WHERE kind IN ({places}) GROUP BY trial ORDER BY trial"
        )
        with self._store.lock:
            return dict(self._store.typed(query, ((int,), (float,)), kinds))

    def _read(self, question: Callable[[Optimizer], T]) -> T:
        with self._store.lock:
            return question(self._replica.current().optimizer)

    # -- as an object --------------------------------------------------------------------------

    def close(self) -> None:
        """Close the file; it is opened again at the next use.

        It need not be called: nothing is lost without, only the next to open it may have a little
        more to replay.
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


def _check_same(settings: Settings, given: dict[str, Any], path: Path) -> None:
    lines = settings.differences(given)
    if lines:
        raise InvalidInput(
            f"{path} is a study with other settings: {'; '.join(lines)}. Leave them out to go on "
            "with it, or give another file"
        )
    missing = settings.missing(given["feasible"], given["policy"])
    if missing is not None:
        raise InvalidInput(f"{path} cannot be opened so: {missing}")
