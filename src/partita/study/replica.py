"""The state of a study in memory, kept in step with its file.

Every change is one transaction: take in what other processes have logged since, make the change,
log it, commit. Should anything fail in between, the state in memory is thrown away, and made from
the log again at the next use.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from partita.errors import InvalidInput, NotPending, StudyError

from . import snapshot
from .events import Event
from .settings import Settings
from .state import State
from .store import Store

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
    """

    state: State
    begin: Callable[[], None]
    log: Callable[[Event], None]


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
        #: Whether the state is that of some event of the log, no more and no less.
        self._clean = True
        #: Seconds that the events since the last snapshot took; its event and size.
        self._spent, self._snapshot_seq, self._snapshot_size = 0.0, 0, 0

    def current(self) -> State:
        """The state after all that has been logged by anybody."""
        if self._state is None:
            self._state, self._clean, self._spent = self._restored(), True, 0.0
            self._snapshot_seq = self._state.seq
        state = self._state
        with self._guarded():
            self._catch_up(state)
        return state

    @contextlib.contextmanager
    def change(self) -> Iterator[Change]:
        """One transaction, with a snapshot after it if that is due."""
        state = self.current()  # before the file is locked, so that it is for a moment only
        self._expire(state)
        with self._guarded(), self.store.transaction() as db:
            self._catch_up(state)
            start = time.perf_counter()
            told = state.optimizer.n_told
            yield Change(state, self._begin, lambda event: _insert(db, event))
            if state.optimizer.n_told > told:
                self._note(state)
            self._spent += time.perf_counter() - start
        if self._spent > SNAPSHOT_AFTER:
            self._snapshot(state)

    def _begin(self) -> None:
        self._clean = False

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        """Throw the state away if it may be ahead of the log, or half changed."""
        try:
            yield
        except BaseException:
            if not self._clean:
                self._state, self._clean = None, True
            raise
        self._clean = True

    def _catch_up(self, state: State) -> None:
        start, first = time.perf_counter(), state.seq
        for event in self.store.events(state.seq):
            self._clean = False
            try:
                state.replay(event)
            except (InvalidInput, NotPending) as error:
                raise StudyError(
                    f"{self.store.path}: the log is damaged at event {event.seq} ({event.kind} of "
                    f"trial {event.trial}): {error}. Restore the file from a copy"
                ) from error
        if state.seq > first:
            self._spent += time.perf_counter() - start
        self._clean = True

    def _expire(self, state: State) -> None:
        """Give up trials that have been pending for too long."""
        limit = self.settings.expire_after
        if limit is None or not state.overdue(time.time() - limit):
            return
        with self._guarded(), self.store.transaction() as db:
            self._catch_up(state)
            now = time.time()
            for number in state.overdue(now - limit):
                self._clean = False
                _insert(db, state.expire(number, now))

    def _note(self, state: State) -> None:
        """Write down the answer, if the state has looked just now. Within a transaction."""
        answer = state.answer
        if answer is not None and answer.told == state.optimizer.n_told:
            query = "INSERT OR IGNORE INTO progress VALUES (?, ?, ?, ?, ?, ?)"
            self.store.rows(query, (answer.told, time.time(), *answer[1:]))

    # -- snapshots -----------------------------------------------------------------------------

    def _restored(self) -> State:
        """The state of the snapshot if there is one of use, else the beginning."""
        last = self.store.rows("SELECT coalesce(max(seq), 0) FROM events")[0][0]
        query = "SELECT seq, written_by, digest, state FROM snapshot"
        for seq, written_by, digest, data in self.store.rows(query):
            stored = snapshot.read(data, digest, written_by, self._first)
            if stored is not None and stored.seq == seq <= last:
                return stored
        return self._first()

    def _first(self) -> State:
        """The state before any event."""
        return State(self.settings.build(self.feasible, self.policy))

    def _snapshot(self, state: State) -> None:
        """Store the state, if that is due. It is no loss if it fails: the log has everything."""
        due = max(SNAPSHOT_AFTER, self._snapshot_size / SNAPSHOT_BYTES)
        if self._spent < due or state.seq < self._snapshot_seq + SNAPSHOT_EVENTS:
            return
        if self._others_snapshot():
            return
        data = snapshot.write(state)
        if data is not None:
            row = (state.seq, snapshot.WRITTEN_BY, snapshot.digest_of(data), data)
            with contextlib.suppress(StudyError), self.store.transaction(len(data)) as db:
                db.execute("INSERT OR REPLACE INTO snapshot VALUES (1, ?, ?, ?, ?)", row)
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
        if self._state is not None and self._spent > 0.1 * SNAPSHOT_AFTER:
            self._spent, self._snapshot_size = max(self._spent, SNAPSHOT_AFTER), 0
            self._snapshot(self._state)
        self.store.close()


def _insert(db: sqlite3.Connection, event: Event) -> None:
    db.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", event)
