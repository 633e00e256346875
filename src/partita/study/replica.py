"""The state of a study in memory, kept in step with its file.

Every change is one transaction: apply what other processes have logged since, make the change, log
it, commit. If anything fails or is interrupted in between, the state in memory is discarded at the
next use, and rebuilt from the log.
"""

from __future__ import annotations

import contextlib
import math
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
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

#: A snapshot is due after SNAPSHOT_EVENTS or more events that took SNAPSHOT_AFTER seconds, plus one
#: second per SNAPSHOT_BYTES of the snapshot. So snapshots are cheap, and replays are short.
SNAPSHOT_AFTER, SNAPSHOT_BYTES, SNAPSHOT_EVENTS = 1.0, 2_500_000, 100


class Change(NamedTuple):
    """An open transaction.

    Attributes
    ----------
    state
        The state, which may be changed after `begin` was called.
    begin
        To be called after all checks: from then on the state is ahead of the log.
    log
        Writes an event to the log.
    log_all
        Writes several events.
    """

    state: State
    begin: Callable[[], None]
    log: Callable[[Event], None]
    log_all: Callable[[Sequence[Event]], None]


class Replica:
    """One file, and the state that results from its log. Not thread-safe.

    Parameters
    ----------
    store
    settings
    feasible, policy
        The study's constraint and own policy, which settings cannot store.
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
        #: The digest of the last event in the state.
        self._digest = ORIGIN
        #: The time when the next pending trial expires, or an earlier time.
        self._due = -math.inf
        #: Whether the state is exactly the one after some event of the log.
        self._clean = True
        #: The version of the file when the state was last compared with it.
        self._version = (0, 0)
        #: Whether other processes have been found to change the study, too.
        self._shared = False
        #: Seconds that the events since the last snapshot took; that snapshot's event and size.
        self._spent, self._snapshot_seq, self._snapshot_size = 0.0, 0, 0
        #: The open transaction of `together`, and whether a change in it has begun and not ended.
        self._group: Change | None = None
        self._half = False

    def current(self) -> State:
        """The state after all events in the log, from all processes."""
        if self._group is not None:
            return self._group.state
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
        """Refuse a log that ends before the last event that was stored."""
        if head != head_of(state.seq, self._digest):
            seq = head.partition(" ")[0]
            if not seq.isdecimal() or len(seq) > 18 or int(seq) >= state.seq:
                what = f"its log ends at event {state.seq}, but should end at {seq:.20}"
                raise damaged(self.store.path, what)

    def _is_sound(self) -> bool:
        """Whether the state in memory, if any, is exactly the one after some event of the log."""
        return self._clean and not (self._state is not None and self._state.optimizer.torn)

    def _forget(self) -> None:
        """Discard the state after a call that failed or was interrupted during a change."""
        changing = (Replica._catch_up, Replica._worked, Replica._expire)
        if any(is_under_way(method, self) for method in changing):
            raise HalfChanged(
                f"{self.store.path}: the study was used from within another of its calls, while it "
                "was being changed: `feasible` must not use it"
            )
        self._state, self._clean = None, True

    def changed(self, work: Callable[[Change], T], stored: Callable[[T], None] | None = None) -> T:
        """Run `work` in one transaction and return its result; take a snapshot if it is due.

        `stored` is called with the result as soon as it is on the disk.
        """
        if self._group is not None:
            return self._joined(self._group, work)
        state = self._state
        if state is None or self._shared or not self._is_sound():
            # Before the file is locked, to hold the lock only briefly.
            state = self.current()
        self._expire(state)
        result = self.store.transact(lambda db: self._worked(db, state, work), stored=stored)
        self._clean = True
        if self._spent > SNAPSHOT_AFTER * self.store.patience:
            self._snapshot(state, self.store.patience)
        return result

    def tidy(self) -> None:
        """Do what a patient study has put off, if it is due: a snapshot, and moving the log."""
        if self._state is not None and self._is_sound():
            self._snapshot(self._state)
            self.store.tidy()

    def _worked(self, db: sqlite3.Connection, state: State, work: Callable[[Change], T]) -> T:
        first = state.seq
        self._catch_up(state, self.store.checked)
        self._shared = self._shared or state.seq > first
        start, first = time.perf_counter(), state.seq
        told = state.optimizer.n_told
        result = work(
            Change(
                state,
                self._begin,
                lambda event: self._insert(db, (event,)),
                lambda events: self._insert(db, events),
            )
        )
        if state.optimizer.n_told > told:
            self._note(state)
        if state.seq > first:
            self._write_head(db, state)
        self._spent += time.perf_counter() - start
        return result

    def _begin(self) -> None:
        self._clean = False

    # -- several changes in one transaction ------------------------------------------------------

    def together(
        self,
        pieces: Iterable[Callable[[], T]],
        stored: Callable[[list[T | Exception]], None] | None = None,
    ) -> list[T | Exception]:
        """Call functions that change the study, in one transaction: what each returned or raised.

        A change that is refused leaves the others as they are. If one fails half way, or the file
        does, nothing is stored and the error is raised. `stored` is called with the outcomes as
        soon as they are on the disk.
        """
        return self.changed(lambda change: self._each(change, pieces), stored)

    def _each(self, change: Change, pieces: Iterable[Callable[[], T]]) -> list[T | Exception]:
        outcomes: list[T | Exception] = []
        try:
            for piece in pieces:
                self._group, self._half = change, False
                try:
                    outcomes.append(piece())
                except Exception as error:
                    if self._half:
                        raise
                    outcomes.append(error)
        finally:
            self._group = None
        return outcomes

    def _joined(self, group: Change, work: Callable[[Change], T]) -> T:
        """Run `work` in the transaction of `together`."""

        def begin() -> None:
            self._half = True
            group.begin()

        state = group.state
        told = state.optimizer.n_told
        self._group = None  # a change from within this one is refused
        try:
            result = work(group._replace(begin=begin))
        finally:
            self._group = group
        if state.optimizer.n_told > told:
            self._note(state)
        self._half = False
        return result

    def _catch_up(self, state: State, version: tuple[int, int] | None = None) -> None:
        """Apply what other processes have logged; a transaction knows the file's version."""
        version = version or self.store.version()
        if version == self._version and state is self._state:
            return  # no other process has changed the file
        if self.store.head() == head_of(state.seq, self._digest):
            self._version = version
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
        self._version, self._clean = version, True

    def _expire(self, state: State) -> None:
        """Cancel trials that have been pending for too long."""
        limit = self.settings.expire_after
        if limit is None or time.time() < self._due:
            return
        if not state.overdue(time.time() - limit):
            self._due = min(state.asked.values(), default=math.inf) + limit
            return

        def give_up(db: sqlite3.Connection) -> None:
            self._catch_up(state, self.store.checked)
            now = time.time()
            for number in state.overdue(now - limit):
                self._clean = False
                self._insert(db, [state.expire(number, now)])
            self._write_head(db, state)

        self.store.transact(give_up)
        self._clean = True

    def _insert(self, db: sqlite3.Connection, events: Sequence[Event]) -> None:
        """Write events, each chained to the last one, in an open transaction.

        The head is written before the transaction ends.
        """
        limit = self.settings.expire_after
        for event in events:
            self._digest = digest_of(self._digest, event)
            if limit is not None:
                self._due = min(self._due, event.time + limit)
            db.execute(INSERT, (*event[:-1], self._digest))

    def _write_head(self, db: sqlite3.Connection, state: State) -> None:
        head = (head_of(state.seq, self._digest),)
        db.execute("UPDATE meta SET value = ? WHERE key = 'head'", head)

    def _note(self, state: State) -> None:
        """Write the recommendation, if it was just computed, in an open transaction."""
        answer = state.answer
        if answer is not None and answer.told == state.optimizer.n_told:
            query = "INSERT OR IGNORE INTO progress VALUES (?, ?, ?, ?, ?, ?)"
            self.store.rows(query, (answer.told, time.time(), *answer[1:]))

    # -- snapshots -----------------------------------------------------------------------------

    def _restored(self) -> State:
        """The state of the snapshot if it can be used, else the state before any event."""
        self._digest, self._due = ORIGIN, -math.inf
        # The snapshot must belong to this log: its event has the digest stored with the snapshot.
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
            if self.settings.own_policy is not None:  # a user's own policy may raise anything
                raise
            raise damaged(self.store.path, f"its settings cannot be used: {error}") from error

    def _snapshot(self, state: State, patience: float = 1.0) -> None:
        """Store a snapshot if it is due. If that fails nothing is lost: the log has everything."""
        due = patience * max(SNAPSHOT_AFTER, self._snapshot_size / SNAPSHOT_BYTES)
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
        """Whether another process has stored a newer snapshot, so that ours is not needed."""
        query = "SELECT seq FROM snapshot WHERE seq >= ? AND written_by = ?"
        values = (self._snapshot_seq + SNAPSHOT_EVENTS, snapshot.WRITTEN_BY)
        for (seq,) in self.store.rows(query, values):
            self._spent, self._snapshot_seq = 0.0, seq
            return True
        return False

    def close(self) -> None:
        """Close the file, after a snapshot if there are many events since the last one."""
        state = self._state if self._is_sound() else None
        if state is not None and self._spent > 0.1 * SNAPSHOT_AFTER:
            self._spent, self._snapshot_size = max(self._spent, SNAPSHOT_AFTER), 0
            self._snapshot(state)
        try:
            if state is not None:
                self.store.check_last(state.seq, self._digest)
        finally:
            self.store.close()
