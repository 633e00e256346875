"""Functions that replicate: rows of plans, evaluated here or by an executor.

Workers are sent pieces of rows. A task ends after about a second, or when its pieces are done, and
sends sums back, so that millions of evaluations cost a few hundred messages. What it had no time
for is sent out again. A worker that dies loses its task alone, which is repeated with the same
seeds, and one that is slow gets fewer tasks; nothing waits for it but its own piece of a row.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import queue
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import Any, NamedTuple

from .aggregates import Aggregate
from .evaluate import Function, check_branches
from .loop import Run, Stop
from .parallel import TURN, checked, no_answer
from .trial import Trial
from .working import Manner, Piece, Sum, cut, key_of, manner_of, size_of, work

#: Values of one call of f, at most, unless the user says otherwise.
MOST_TOGETHER = 2**16
#: Evaluations under way, as a share of all that are planned, or of those that are known; and how
#: many times as many at most, where more workers than MESSAGES would have tasks too short.
SHARE_OF_PLANNED, SHARE_OF_KNOWN, MOST_TIMES = 100, 10, 5
#: Tasks for each worker at a time: one that it evaluates, one that waits. As many again stand by.
TASKS = 2
#: Seconds after which a task ends, and how many workers may send their sums in a second.
SECONDS, MESSAGES = 1.0, 200.0
#: How often a piece is sent out before it counts as failed, if its tasks are lost.
TRIES = 4
#: A task is late after as many times the longest so far, and at least as many seconds.
LATE, LATE_SECONDS = 4.0, 5.0


class Crew(NamedTuple):
    """Who evaluates: an executor and the number of its workers, or None for this thread.

    `in_flight` is the number of evaluations under way at a time, and `together` the largest number
    of values of one call; None for the default.
    """

    executor: Executor | None
    workers: int
    in_flight: int | None = None
    together: int | None = None

    def room(self, run: Run) -> int:
        """How many evaluations may be under way."""
        if self.in_flight is not None:
            return self.in_flight
        if run.limits.n_evals is not None:
            return room_for(run.limits.n_evals, self.workers)
        return max(2 * TASKS * self.workers, run.n_told // SHARE_OF_KNOWN)

    def pieces(self, run: Run, trial: Trial) -> list[Piece]:
        """The pieces of a row."""
        key = key_of(run.player.seed, trial.number, run.told_before(trial))
        size = size_of(trial.count, self.workers, self.together or MOST_TOGETHER)
        return cut(Piece(trial.number, trial.params, key, 0, trial.count), size)


def room_for(planned: int, workers: int) -> int:
    """How many of the planned evaluations may be under way at a time, by default.

    A task is a part of these, so with many workers there are more of them: else the process that
    decides would do nothing but send tasks.
    """
    times = min(max(1.0, workers / MESSAGES), MOST_TIMES)
    return max(2 * TASKS * workers, int(times * planned / SHARE_OF_PLANNED))


def in_rows(run: Run, f: Function, crew: Crew) -> Stop:
    """Evaluate rows of plans until there is a reason to stop."""
    manner = manner_of(f, run.player.space)
    also = {name: 1 for name, given in manner._asdict().items() if given}
    check_branches(f, run.player.space, also)
    if crew.executor is None:
        return _here(run, f, manner, crew)
    return _Rows(run, f, manner, crew, crew.executor).ended()


def _here(run: Run, f: Function, manner: Manner, crew: Crew) -> Stop:
    """Evaluate in this thread, one row after another."""
    while True:
        for trial in run.plan(run.wanted(crew.room(run))):
            sums = work(f, manner, crew.pieces(run, trial), run.seconds_left(), tick=run.tick)
            stop = None
            seen = _merged(each.seen for each in sums)
            if seen is not None:
                stop = run.settle_part(trial, seen)
            error = next((each.error for each in sums if each.error is not None), None)
            if error is not None and trial.number in run.pending:
                stop = run.settle_row(trial, error) or stop
            if stop is not None:
                return stop


def _merged(parts: Any) -> Aggregate | None:
    """What several sums give together; None if there are none."""
    whole: Aggregate | None = None
    for part in parts:
        if part is not None:
            whole = part if whole is None else whole.merged(part)
    return whole


class _Queue:
    """Pieces that wait for a worker, in order, and how many values they have together."""

    def __init__(self) -> None:
        self._pieces: deque[Piece] = deque()
        self.values = 0

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def append(self, piece: Piece) -> None:
        """Add a piece that comes last."""
        self._pieces.append(piece)
        self.values += piece.size

    def put_back(self, piece: Piece) -> None:
        """Add a piece that comes first."""
        self._pieces.appendleft(piece)
        self.values += piece.size

    def take(self) -> Piece:
        """Remove the first piece and return it."""
        piece = self._pieces.popleft()
        self.values -= piece.size
        return piece


class _Task(NamedTuple):
    """Pieces that an executor evaluates, and when they were sent."""

    future: Future[Any]
    pieces: Sequence[Piece]
    sent: float


class _Rows:
    """The rows under way, and the tasks of an executor that evaluates them.

    A piece is open from when its row is planned until its sum has come. It may be out twice, if it
    is late: the first sum counts.
    """

    def __init__(
        self, run: Run, f: Function, manner: Manner, crew: Crew, executor: Executor
    ) -> None:
        self._run, self._f, self._manner, self._crew = run, f, manner, crew
        self._executor = executor
        self._seconds = max(SECONDS, crew.workers / MESSAGES)
        self._open: dict[tuple[int, int], Piece] = {}
        self._queue = _Queue()
        self._losses: dict[tuple[int, int], int] = {}
        self._tasks: dict[int, _Task] = {}
        self._late: set[int] = set()
        #: Sums of rows that are not complete, told once a second, and when they last were.
        self._seen: dict[int, Aggregate] = {}
        self._told = time.monotonic()
        self._longest = 0.0
        self._numbers = itertools.count()
        #: Tasks put their numbers here when they end, so one wait serves all kinds of executors.
        self._ended: queue.SimpleQueue[int] = queue.SimpleQueue()

    def ended(self) -> Stop:
        """Evaluate until there is a reason to stop, and say which."""
        try:
            while True:
                stop = self._fill() or self._take_in(self._wait())
                self._run.tick()
                stop = stop or self._run.time_up()
                if stop is not None:
                    self._settle({}, all_of_them=True)
                    return stop
        finally:
            for task in self._tasks.values():
                with contextlib.suppress(Exception):
                    task.future.cancel()

    # -- sending -------------------------------------------------------------------------------

    def _fill(self) -> Stop | None:
        """Send tasks until every worker has one and another waits for it."""
        while len(self._tasks) < TASKS * self._crew.workers:
            pieces = self._next()
            if not pieces:
                stop = self._plan()
                if stop is not None:
                    return stop
                pieces = self._next() or self._overdue()
            if not pieces:
                return None
            number = next(self._numbers)
            try:
                future = checked(
                    self._executor.submit(
                        work, self._f, self._manner, pieces, self._seconds, number
                    )
                )
            except Exception as error:
                return self._run.broken(error)
            self._tasks[number] = _Task(future, pieces, time.monotonic())
            future.add_done_callback(lambda *_, number=number: self._ended.put(number))
        return None

    def _next(self) -> list[Piece]:
        """Pieces for a task; none if no more are planned.

        Half of the room is out at a time. Of a short plan, every worker gets a share.
        """
        workers = TASKS * self._crew.workers
        share = min(
            self._crew.room(self._run) // (2 * workers),
            math.ceil(self._queue.values / (workers - len(self._tasks))),
        )
        share = max(1, share)
        pieces: list[Piece] = []
        while share > 0 and self._queue:
            piece = self._queue.take()
            if self._is_open(piece):  # else its sum has come
                if not self._manner.count and piece.size > share:
                    piece = self._split(piece, share)
                pieces.append(piece)
                share -= piece.size
        return pieces

    def _split(self, piece: Piece, size: int) -> Piece:
        """The first values of a piece; the rest becomes another, next in the queue."""
        first, rest = cut(piece, size)[0], piece._replace(start=piece.start + size)
        self._add(first)
        self._queue.put_back(self._add(rest))
        return first

    def _is_open(self, piece: Piece) -> bool:
        """Whether the sum of a piece is still to come."""
        return self._open.get((piece.trial, piece.start)) is piece

    def _add(self, piece: Piece) -> Piece:
        self._open[piece.trial, piece.start] = piece
        return piece

    def _plan(self) -> Stop | None:
        """Begin new rows if there is room, once all that has come is told; or why to stop."""
        come = sum(each.count for each in self._seen.values())
        room = self._crew.room(self._run) - sum(self._run.awaited.values()) + come
        room = self._run.wanted(room)
        if room <= 0:
            return None
        stop = self._settle({}, all_of_them=True)
        if stop is None:
            for trial in self._run.plan(room):
                for piece in self._crew.pieces(self._run, trial):
                    self._queue.append(self._add(piece))
        return stop

    def _overdue(self) -> list[Piece]:
        """Pieces of a task that takes far too long, to be evaluated elsewhere as well."""
        limit = max(LATE_SECONDS, LATE * self._longest, LATE * self._seconds)
        now = time.monotonic()
        for number, task in self._tasks.items():
            if number not in self._late and now - task.sent > limit:
                pieces = [p for p in task.pieces if self._is_open(p)]
                self._late.add(number)
                if pieces:
                    return pieces
        return []

    # -- receiving -----------------------------------------------------------------------------

    def _wait(self) -> list[int]:
        """Numbers of the tasks that have ended: at least one, unless nothing ends for a while."""
        numbers = []
        with contextlib.suppress(queue.Empty):
            numbers.append(self._ended.get(timeout=max(min(TURN, self._run.seconds_left()), 0.0)))
            while True:
                numbers.append(self._ended.get_nowait())
        return numbers

    def _take_in(self, numbers: Sequence[int]) -> Stop | None:
        """Take in what tasks that have ended have sent, and tell what is due."""
        errors: dict[int, BaseException] = {}
        for number in numbers:
            task = self._tasks.pop(number, None)
            if task is None:  # its end was reported twice
                continue
            self._late.discard(number)
            sums: Any
            try:
                sums = task.future.result()
            except BrokenExecutor as error:
                return self._run.broken(error)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                self._lost(task, error, errors)
                continue
            if not isinstance(sums, list) or not all(isinstance(each, Sum) for each in sums):
                return self._run.broken(no_answer(sums, "the sums of its pieces"))
            self._longest = max(self._longest, time.monotonic() - task.sent)
            self._add_up(task, sums, errors)
        return self._settle(errors)

    def _lost(self, task: _Task, error: BaseException, errors: dict[int, BaseException]) -> None:
        """Send the pieces of a task again whose worker died; give up those that kill every one."""
        for piece in reversed(task.pieces):
            place = (piece.trial, piece.start)
            if not self._is_open(piece):
                continue
            self._losses[place] = self._losses.get(place, 0) + 1
            if self._losses[place] < TRIES:
                self._queue.put_back(piece)
            else:
                errors.setdefault(piece.trial, error)

    def _add_up(
        self,
        task: _Task,
        sums: Sequence[Sum],
        errors: dict[int, BaseException],
    ) -> None:
        """Add the sums of a task to those of their rows, and queue what it had no time for."""
        came = {(each.trial, each.start): each for each in sums}
        for piece in reversed(task.pieces):
            place = (piece.trial, piece.start)
            if not self._is_open(piece):
                continue
            each = came.get(place)
            if each is None:
                self._queue.put_back(piece)
                continue
            del self._open[place]
            self._losses.pop(place, None)
            if each.seen is not None:
                before = self._seen.get(piece.trial)
                after = each.seen if before is None else before.merged(each.seen)
                self._seen[piece.trial] = after
            if each.error is not None:
                errors.setdefault(piece.trial, each.error)
            elif each.stop < piece.stop:
                self._queue.put_back(self._add(piece._replace(start=each.stop)))

    def _settle(self, errors: dict[int, BaseException], all_of_them: bool = False) -> Stop | None:
        """Tell the sums of complete rows, once a second those of others, and failures.

        Before a plan is made those of others are told, too. All that are due are told, even if one
        of them ends the run.
        """
        run, ended = self._run, None
        now = time.monotonic()
        if all_of_them or now - self._told >= SECONDS:
            due, self._told = list(self._seen), now
        else:
            counts = run.awaited
            due = [n for n, s in self._seen.items() if n in errors or s.count >= counts.get(n, 0)]
        for number in due:
            part = self._seen.pop(number)
            if number in run.pending:
                stop = run.settle_part(run.pending[number], part)
                ended = ended or stop
        for number, error in errors.items():
            if number in run.pending:
                stop = run.settle_row(run.pending[number], error)
                ended = ended or stop
        for place in [place for place in self._open if place[0] not in run.pending]:
            del self._open[place]
        return ended
