"""The thread of one study: what it is given is done in order, and answered in the event loop.

One thread does all the work on a study, so that no request waits for a lock, and requests that have
come meanwhile can be carried out together.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

#: Called with what a job returned, or with the error that it raised.
Answer = Callable[[Any], None]


class Job(NamedTuple):
    """Something to do for a request.

    Attributes
    ----------
    what
        What to do, as the owner of the thread understands it.
    loop
        Where to call `answer`.
    answer
    """

    what: Any
    loop: asyncio.AbstractEventLoop
    answer: Answer


class Worker:
    """A thread that starts with the first job and ends with `stop`.

    Parameters
    ----------
    work
        Does some jobs that were waiting, in order, and calls `answered` for each.
    rests
        What to do when there is no job, each after a number of further seconds without one.
    """

    def __init__(
        self,
        work: Callable[[list[Job]], None],
        rests: Sequence[tuple[float, Callable[[], None]]],
    ) -> None:
        self._work, self._rests = work, rests
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def put(self, job: Job) -> None:
        """Do a job after those before it."""
        if self._thread is None:
            with self._starting:
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, daemon=True)
                    self._thread.start()
        self._jobs.put(job)

    def stop(self) -> None:
        """Do the jobs that are there, and end."""
        with self._starting:
            if self._thread is not None:
                self._jobs.put(None)
                self._thread.join()
                self._thread = None

    def _run(self) -> None:
        while True:
            jobs = [self._next()]
            with contextlib.suppress(queue.Empty):
                while jobs[-1] is not None:
                    jobs.append(self._jobs.get_nowait())
            self._work([job for job in jobs if job is not None])
            if jobs[-1] is None:
                return

    def _next(self) -> Job | None:
        """The next job, and what is done until it comes."""
        for seconds, rest in self._rests:
            try:
                return self._jobs.get(timeout=seconds)
            except queue.Empty:
                rest()
        return self._jobs.get()


def answered(pairs: Iterable[tuple[Job, Any]]) -> None:
    """Pass answers to the event loops of their jobs, each loop woken once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Answer, Any]]] = {}
    for job, outcome in pairs:
        by_loop.setdefault(job.loop, []).append((job.answer, outcome))
    for loop, answers in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop was closed: no client waits any more
            loop.call_soon_threadsafe(_call_all, answers)


def _call_all(answers: list[tuple[Answer, Any]]) -> None:
    for answer, outcome in answers:
        answer(outcome)


async def waited(put: Callable[[Job], None], what: Any) -> Any:
    """Put a job, and wait for what it returns. It is done also if the client has gone."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def settle(outcome: Any) -> None:
        if future.done():  # the client has gone
            return
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)

    put(Job(what, loop, settle))
    return await future
