"""Locks for objects that threads share, safe with forks and interrupts."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

#: Locks are taken by `with`, so that no interrupt can come between acquiring one and the block.
Lock = threading.RLock
Method = TypeVar("Method", bound=Callable[..., Any])

_making = Lock()
_LOCKS: weakref.WeakSet[Any] = weakref.WeakSet([_making])
_held: list[Any] = []
_at_fork: list[Callable[[], None]] = []


def new_lock() -> Any:
    """A re-entrant lock that is free after a fork."""
    with _making:  # held during a fork, so that the fork holds every lock
        lock = Lock()
        _LOCKS.add(lock)
        return lock


def in_turn(method: Method) -> Method:
    """Decorate a method so that threads call it one at a time, with the lock of `turn_of`."""

    def taken_alone(self: Any) -> Any:
        try:
            turn = self._turn
        except AttributeError:
            turn = turn_of(self)
        with turn:
            return method(self)

    def taken_ask(self: Any, count: Any = None, *, fixed: Any = None) -> Any:
        try:
            turn = self._turn
        except AttributeError:
            turn = turn_of(self)
        with turn:
            return method(self, count, fixed=fixed)

    def taken_tell(self: Any, x: Any, y: Any, *, std: Any = None, count: Any = None) -> Any:
        try:
            turn = self._turn
        except AttributeError:
            turn = turn_of(self)
        with turn:
            return method(self, x, y, std=std, count=count)

    def taken(self: Any, *args: Any, **settings: Any) -> Any:
        try:
            turn = self._turn
        except AttributeError:
            turn = turn_of(self)
        with turn:
            return method(self, *args, **settings)

    # Frequent signatures have their own wrappers: `*args, **settings` would cost twice as much.
    like: dict[str, Any] = {
        "(self)": taken_alone,
        "(self, count=None, *, fixed=None)": taken_ask,
        "(self, x, y, *, std=None, count=None)": taken_tell,
    }
    passed_on = like.get(_arguments(method), taken)
    return cast(Method, functools.wraps(method)(passed_on))


def _arguments(method: Callable[..., Any]) -> str:
    """The signature of a method as text, without types."""
    signature = inspect.signature(method)
    empty = inspect.Signature.empty
    plain = [p.replace(annotation=empty) for p in signature.parameters.values()]
    return str(inspect.Signature(plain))


def turn_of(owner: Any) -> Any:
    """The lock of an object, its attribute `_turn`, created when it is first needed.

    So every object has one, however it was made, copied or unpickled.
    """
    with _making:
        if not hasattr(owner, "_turn"):
            owner._turn = new_lock()
        return owner._turn


def is_under_way(method: Callable[..., Any], owner: Any) -> bool:
    """Whether a call of an object's method is in the stack above the caller's caller.

    The stack is searched because an interrupt could leave a flag set.
    """
    frame = sys._getframe(2).f_back
    while frame is not None:
        if frame.f_code is method.__code__ and frame.f_locals.get("self") is owner:
            return True
        frame = frame.f_back
    return False


# -- forks -----------------------------------------------------------------------------------------

# A forked process has only the thread that forked. What another thread was changing would stay half
# changed there, and locked forever. So a fork waits until no thread is changing anything.


def at_fork(function: Callable[[], None]) -> None:
    """Have a function called before each fork, while all locks are held."""
    _at_fork.append(function)


def acquire_all(locks: Sequence[Any]) -> None:
    """Acquire locks in any order without deadlock: no lock is held while waiting for another."""
    waited: Any = None
    while True:
        if waited is not None:
            waited.acquire()
        taken = [] if waited is None else [waited]
        for lock in locks:
            if lock is waited:
                continue
            if not lock.acquire(blocking=False):
                waited = lock
                break
            taken.append(lock)
        else:
            return
        for lock in taken:
            lock.release()


def _before_fork() -> None:
    while True:
        locks = list(_LOCKS)
        acquire_all(locks)
        # Not by its length: an interrupt may keep the set from dropping a lock that is gone.
        if set(_LOCKS) <= set(locks):
            break
        for lock in locks:  # some were created meanwhile
            lock.release()
    _held.extend(locks)
    for function in _at_fork:
        function()


def _after_fork() -> None:
    while _held:
        _held.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )
