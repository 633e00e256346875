"""The state of a study in memory, kept in step with its file.

Every change is one transaction: take in what other processes have logged since, make the change,
log it, commit. Should anything fail in between, or an interrupt come, the state in memory is thrown
away at the next use, and made from the log again.
"""

from __future__ import annotations

import contextlib
import math
import sqlite3
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from partita._locks import is_under_way
from partita.errors import HalfChanged, InvalidInput, NotPending, StudyError

from . import snapshot
from .events import INSERT, MORE, ORIGIN, WHOLE, Event, digest_of, head_of
from .failures import damaged
from .settings import Settings
from .state import State
from .store import Store

T = TypeVar("T")

#: A snapshot is due once there are SNAPSHOT_EVENTS since the last that took SNAPSHOT_AFTER seconds,
#: and a second for each SNAPSHOT_BYTES of it: its cost stays a small part, the replay short.
SNAPSHOT_AFTER, SNAPSHOT_BYTES, SNAPSHOT_EVENTS = 1.0, 2_500_000, 100


class Change(NamedTuple):
    """A transaction that is under way.

    Attributes
    ----------
    state
        To change, once `begin` has been called.
    begin
        Called when all is checked: from then on the state is ahead of the log.
    log
        Writes down an event of the state.
    log_all
        Writes down many.
    """

    state: State
    begin: Callable[[], None]
    log: Callable[[Event], None]
    log_all: Callable[[Sequence[Event]], None]


class Replica:
    """One file, and the state that its log amounts to. Not for several threads at once.

    Parameters
    ----------
    store
    settings
    feasible, policy
        What the settings cannot hold, if there is any.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        feasible: Callable[..., Any] | None,
        policy: str | Callable[..., Any] | None,
    ) -> None:
        self.store, self.settings, self.feasible, self.policy = store, settings, feasible, policy
        self._state: State | None = None
        #: The digest of the last event that is in the state.
        self._digest = ORIGIN
        #: When the next pending trial expires, or earlier.
        self._due = -math.inf
        #: Whether the state is that of some event of the log, no more and no less.
        self._clean = True
        #: Seconds that the events since the last snapshot took; its event and size.
        self._spent, self._snapshot_seq, self._snapshot_size = 0.0, 0, 0

    def current(self) -> State:
        """The state after all that has been logged by anybody."""
        if not self._is_sound():
            self._forget()
        if self._state is not None:
            self._catch_up(self._state)
            return self._state
        head = self.store.head().removesuffix(MORE).removesuffix(WHOLE) + WHOLE
        state = self._restored()
        self._spent, self._snapshot_seq = 0.0, state.seq
        self._catch_up(state)
        self._check_head(state, head)
        self._state = state
        return state

    def _check_head(self, state: State, head: str) -> None:
        """Refuse a log that ends before the event that was stored last."""
        if head != head_of(state.seq, self._digest):
            seq = head.partition(" ")[0]
            if not seq.isdecimal() or len(seq) > 18 or int(seq) >= state.seq:
                what = f"its log ends at event {state.seq}, but should at {seq:.20}"
                raise damaged(self.store.path, what)

    def _is_sound(self) -> bool:
        """Whether the state in memory, if there is one, is that of some event of the log."""
        return self._clean and not (self._state is not None and self._state.optimizer.torn)

    def _forget(self) -> None:
        """Throw the state away, after a call that failed or was cut short in a change."""
        changing = (Replica._catch_up, Replica._worked, Replica._expire)
        if any(is_under_way(method, self) for method in changing):
            raise HalfChanged(
                f"{self.store.path}: the study was used from within another call of it, in the "
                "middle of a change: `feasible` must not use it"
            )
        self._state, self._clean = None, True

    def changed(self, work: Callable[[Change], T]) -> T:
        """What `work` returns, in one transaction, with a snapshot after it if that is due."""
        state = self.current()  # before the file is locked, so that it is for a moment only
        self._expire(state)
        result = self.store.transact(lambda db: self._worked(db, state, work))
        self._clean = True
        if self._spent > SNAPSHOT_AFTER:
            self._snapshot(state)
        return result

    def _worked(self, db: sqlite3.Connection, state: State, work: Callable[[Change], T]) -> T:
        self._catch_up(state)
        start = time.perf_counter()
        told = state.optimizer.n_told
        result = work(
            Change(
                state,
                self._begin,
                lambda event: self._insert(db, [event]),
                lambda events: self._insert(db, events),
            )
        )
        if state.optimizer.n_told > told:
            self._note(state)
        self._spent += time.perf_counter() - start
        return result

    def _begin(self) -> None:
        self._clean = False

    def _catch_up(self, state: State) -> None:
        if self.store.head() == head_of(state.seq, self._digest):
            return  # nothing has been stored since
        start, first = time.perf_counter(), state.seq
        for event in self.store.events(state.seq, self._digest):
            self._clean = False
            try:
                state.replay(event)
            except (InvalidInput, NotPending) as error:
                where = f"event {event.seq} ({event.kind} of trial {event.trial})"
                raise damaged(self.store.path, f"the log is damaged at {where}: {error}") from error
            self._digest = event.digest or ORIGIN
            self._due = min(self._due, event.time + (self.settings.expire_after or math.inf))
        state.flush()
        if state.seq > first:
            self._spent += time.perf_counter() - start
        self._clean = True

    def _expire(self, state: State) -> None:
        """Give up trials that have been pending for too long."""
        limit = self.settings.expire_after
        if limit is None or time.time() < self._due:
            return
        if not state.overdue(time.time() - limit):
            self._due = min(state.asked.values(), default=math.inf) + limit
            return

        def give_up(db: sqlite3.Connection) -> None:
            self._catch_up(state)
            now = time.time()
            for number in state.overdue(now - limit):
                self._clean = False
                self._insert(db, [state.expire(number, now)])

        self.store.transact(give_up)
        self._clean = True

    def _insert(self, db: sqlite3.Connection, events: Sequence[Event]) -> None:
        """Write down events, each chained to the last. Within a transaction."""
        for event in events:
            self._digest = digest_of(self._digest, event)
            self._due = min(self._due, event.time + (self.settings.expire_after or math.inf))
            db.execute(INSERT, event._replace(digest=self._digest))
        head = (head_of(events[-1].seq, self._digest),)
        db.execute("UPDATE meta SET value = ? WHERE key = 'head'", head)

    def _note(self, state: State) -> None:
        """Write down the answer, if the state has looked just now. Within a transaction."""
        answer = state.answer
        if answer is not None and answer.told == state.optimizer.n_told:
            query = "INSERT OR IGNORE INTO progress VALUES (?, ?, ?, ?, ?, ?)"
            self.store.rows(query, (answer.told, time.time(), *answer[1:]))

    # -- snapshots -----------------------------------------------------------------------------

    def _restored(self) -> State:
        """The state of the snapshot if there is one of use, else the beginning."""
        self._digest, self._due = ORIGIN, -math.inf
        # Of the log that we have: its event has the digest that the snapshot was written after.
        query = (
            "SELECT seq, written_by, snapshot.digest, state, chain FROM snapshot "
            "JOIN events USING (seq) WHERE events.digest = chain LIMIT 1"
        )
        for seq, written_by, digest, data, chain in self.store.rows(query):
            if not (isinstance(data, bytes) and isinstance(chain, bytes)):
                continue
            stored = snapshot.read(data, digest, written_by, self._first)
            if stored is not None and stored.seq == seq:
                self._digest = chain
                return stored
        return self._first()

    def _first(self) -> State:
        """The state before any event."""
        try:
            return State(self.settings.build(self.feasible, self.policy))
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            if self.settings.own_policy is not None:  # it has its own reasons
                raise
            raise damaged(self.store.path, f"what it says cannot be played: {error}") from error

    def _snapshot(self, state: State) -> None:
        """Store the state, if that is due. It is no loss if it fails: the log has everything."""
        due = max(SNAPSHOT_AFTER, self._snapshot_size / SNAPSHOT_BYTES)
        if self._spent < due or state.seq < self._snapshot_seq + SNAPSHOT_EVENTS:
            return
        if self._others_snapshot():
            return
        data = snapshot.write(state)
        if data is not None:
            digest = snapshot.digest_of(data)
            row = (state.seq, snapshot.WRITTEN_BY, digest, data, self._digest)
            query = "INSERT OR REPLACE INTO snapshot VALUES (1, ?, ?, ?, ?, ?)"
            with contextlib.suppress(StudyError):
                self.store.transact(lambda db: db.execute(query, row), len(data))
            self._snapshot_size = len(data)
        self._spent, self._snapshot_seq = 0.0, state.seq

    def _others_snapshot(self) -> bool:
        """Whether another process has stored a state since we did; then it is as good as ours."""
        query = "SELECT seq FROM snapshot WHERE seq >= ? AND written_by = ?"
        values = (self._snapshot_seq + SNAPSHOT_EVENTS, snapshot.WRITTEN_BY)
        for (seq,) in self.store.rows(query, values):
            self._spent, self._snapshot_seq = 0.0, seq
            return True
        return False

    def close(self) -> None:
        """Close the file, with a snapshot if much has happened since the last."""
        state = self._state if self._is_sound() else None
        if state is not None and self._spent > 0.1 * SNAPSHOT_AFTER:
            self._spent, self._snapshot_size = max(self._spent, SNAPSHOT_AFTER), 0
            self._snapshot(state)
        try:
            if state is not None:
                self.store.check_last(state.seq, self._digest)
        finally:
            self.store.close()
