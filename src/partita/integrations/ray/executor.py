"""Evaluations as Ray tasks: `maximize(..., executor=RayExecutor())`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, wait
from typing import Any

import ray

#: Seconds that a cancelled task has to end by itself, before its worker is ended.
GRACE = 2.0
#: Seconds between two checks whether cancelled tasks have ended.
LOOK = 0.05


class RayExecutor(Executor):
    """A `concurrent.futures.Executor` whose tasks run on a Ray cluster.

    Parameters
    ----------
    **options
        Options of a Ray task, such as `num_cpus=2`, `num_gpus=1` or `max_retries=0`.

    Notes
    -----
    Connects to the cluster that `ray.init(...)` named, or starts a local one, as Ray tasks do. A
    task whose worker dies is run again by Ray, three times unless `max_retries` says otherwise.

    The first argument of `submit` (for `maximize`, the user's function) is sent to the cluster
    once, not with every task, so it may contain a data set. Later changes to it have no effect.

    Futures can be cancelled while their tasks run. Python code in a task then gets a
    `KeyboardInterrupt`. A task that has not ended two seconds later (such as a sleep, a wait for
    another program, or a long call into compiled code) is ended together with its worker, so that
    its processors are free again.
    """

    def __init__(self, **options: Any) -> None:
        if not ray.is_initialized():
            ray.init()
        self._needs = {
            "CPU": float(options.get("num_cpus", 1)),
            "GPU": float(options.get("num_gpus") or 0),
            **(options.get("resources") or {}),
        }
        self._remote = ray.remote(_call)
        if options:
            self._remote = self._remote.options(**options)
        self._sent: tuple[Any, Any] = (None, None)
        self._pending: set[Future[Any]] = set()
        self._ending = _Ending()
        self._closed = False

    @property
    def _max_workers(self) -> int:
        """The number of tasks that the cluster can run at the same time, as for pools."""
        there = ray.cluster_resources()
        rooms = [there.get(kind, 0.0) / need for kind, need in self._needs.items() if need > 0]
        return max(int(min(rooms, default=there.get("CPU", 1.0))), 1)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run `fn(*args, **kwargs)` as a task."""
        if self._closed:
            raise RuntimeError("cannot schedule new futures after shutdown")
        if args and callable(args[0]):
            if self._sent[0] is not args[0]:
                self._sent = (args[0], ray.put(args[0]))
            args = (self._sent[1], *args[1:])
        reference = self._remote.remote(fn, *args, **kwargs)
        future: Future[Any] = reference.future()
        self._pending.add(future)

        def ended(done: Future[Any]) -> None:
            self._pending.discard(done)
            if done.cancelled():  # Ray's future alone would leave the task running
                self._ending.end(reference)

        future.add_done_callback(ended)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more tasks. The cluster keeps running."""
        self._closed = True
        pending = list(self._pending)
        if cancel_futures:
            for future in pending:
                future.cancel()
        if wait:
            _wait([future for future in pending if not future.cancelled()])
            self._ending.wait()


class _Ending:
    """Cancelled tasks that have not ended yet."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._new: list[Any] = []
        self._thread: threading.Thread | None = None

    def end(self, reference: Any) -> None:
        """Ask a task to end, and make sure from another thread that it does."""
        ray.cancel(reference)
        with self._lock:
            self._new.append(reference)
            if self._thread is None:
                self._thread = threading.Thread(target=self._see_to_it, daemon=True)
                self._thread.start()

    def wait(self) -> None:
        """Return once all of them have ended."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def _see_to_it(self) -> None:
        while True:
            with self._lock:
                running, self._new = self._new, []
                if not running:
                    self._thread = None
                    return
            running = _still_running(running, GRACE)
            for reference in running:
                ray.cancel(reference, force=True)
            _still_running(running, GRACE)


def _still_running(references: list[Any], seconds: float) -> list[Any]:
    """The tasks that have not ended after some seconds; none if the cluster is gone.

    It checks repeatedly, since a wait within Ray never returns after `ray.shutdown()`.
    """
    deadline = time.monotonic() + seconds
    while references and ray.is_initialized():
        references = ray.wait(references, num_returns=len(references), timeout=0)[1]
        if time.monotonic() > deadline:
            return references
        time.sleep(LOOK)
    return []


#: `shutdown` has an argument of this name.
_wait = wait


def _call(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return fn(*args, **kwargs)
