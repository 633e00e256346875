"""Runs a function on many items, each in a process that may crash or hang without harm."""

import multiprocessing
import os
import signal
import sys
import time
import traceback
from multiprocessing import connection
from typing import Any, NamedTuple

_FORK = multiprocessing.get_context("fork")


class Outcome(NamedTuple):
    """What became of an item: what the function returned, or what went wrong, in words."""

    item: Any
    result: Any
    fault: str | None
    seconds: float


class Worker:
    """A process that works on one item at a time; a new one takes its place when it dies."""

    def __init__(self, function):
        self._function = function
        self._start()

    def _start(self):
        self.pipe, theirs = _FORK.Pipe()
        self._process = _FORK.Process(target=_serve, args=(theirs, self._function))
        self._process.start()
        theirs.close()

    def begin(self, item):
        self.item, self.started = item, time.monotonic()
        self.pipe.send(item)

    def outcome(self):
        """Of the item, which is done or whose process is dead."""
        try:
            result, fault = self.pipe.recv()
        except EOFError:
            self._process.join()
            result, fault = None, f"the process died with exit code {self._process.exitcode}"
            self._start()
        return Outcome(self.item, result, fault, time.monotonic() - self.started)

    def give_up(self, limit):
        """Kill the process, which hangs."""
        self.stop()
        self._start()
        return Outcome(
            self.item, None, f"no end after {limit:g} s", time.monotonic() - self.started
        )

    def stop(self):
        self._process.kill()  # the children of one that hangs, if any, end with their pipes
        self._process.join()
        self.pipe.close()


def _serve(pipe, function):
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one who started us hears it, and ends us
    sys.stdin.close()
    while True:
        try:
            item = pipe.recv()
        except EOFError:
            os._exit(0)
        try:
            pipe.send((function(item), None))
        except Exception as error:
            trace = "".join(traceback.format_exception(error)[-6:])
            pipe.send((None, f"{type(error).__name__}: {error}\n{trace}"))


def each(function, items, *, workers, limit):
    """Outcomes of the function on items, as they come; an item may take `limit` seconds."""
    crew = [Worker(function) for _ in range(workers)]
    idle, busy, items = list(crew), [], iter(items)
    try:
        while True:
            while idle:
                item = next(items, None)
                if item is None:
                    break
                idle[-1].begin(item)
                busy.append(idle.pop())
            if not busy:
                return
            ready = connection.wait([worker.pipe for worker in busy], timeout=0.5)
            for worker in list(busy):
                if worker.pipe in ready:
                    outcome = worker.outcome()
                elif time.monotonic() - worker.started > limit:
                    outcome = worker.give_up(limit)
                else:
                    continue
                busy.remove(worker)
                idle.append(worker)
                yield outcome
    finally:
        for worker in crew:
            worker.stop()
