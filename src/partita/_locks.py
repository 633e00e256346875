"""Locks for objects that threads share, and what forks and interrupts make of them."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

#: Threads take a lock by `with`: an interrupt cannot come between acquiring it and the block.
Lock = threading.RLock
Method = TypeVar("Method", bound=Callable[..., Any])

_making = Lock()
_LOCKS: weakref.WeakSet[Any] = weakref.WeakSet([_making])
_held: list[Any] = []
_at_fork: list[Callable[[], None]] = []


def new_lock() -> Any:
    """A lock that a thread may take again while it has it, and that is free after a fork."""
    with _making:  # held during a fork: there is no lock that it does not hold
        lock = Lock()
        _LOCKS.add(lock)
        return lock


def in_turn(method: Method) -> Method:
    """A method that one thread at a time is in; the lock is that of `turn_of`."""

    def taken_alone(self: Any) -> Any:
        try:
            turn = self._turn
        except AttributeError:
            turn = turn_of(self)
        with turn:
            return method(self)

    def taken_tell(self: Any, x: Any, y: Any, *, std: Any = None) -> Any:
        try:
            turn = self._turn
        except AttributeError:
            turn = turn_of(self)
        with turn:
            return method(self, x, y, std=std)

    def taken(self: Any, *args: Any, **settings: Any) -> Any:
        try:
            turn = self._turn
        except AttributeError:
            turn = turn_of(self)
        with turn:
            return method(self, *args, **settings)

    # The calls of every step are passed on as they are: any arguments would cost twice as much.
    like: dict[str, Any] = {"(self)": taken_alone, "(self, x, y, *, std=None)": taken_tell}
    passed_on = like.get(_arguments(method), taken)
    return cast(Method, functools.wraps(method)(passed_on))


def _arguments(method: Callable[..., Any]) -> str:
    """The arguments of a method as they are written, without types."""
    signature = inspect.signature(method)
    empty = inspect.Signature.empty
    plain = [p.replace(annotation=empty) for p in signature.parameters.values()]
    return str(inspect.Signature(plain))


def turn_of(owner: Any) -> Any:
    """The lock of an object, its attribute `_turn`, made when it is first needed.

    So it is there however the object was made, copied or unpickled, without a word in `__init__`.
    """
    with _making:
        if not hasattr(owner, "_turn"):
            owner._turn = new_lock()
        return owner._turn


def is_under_way(method: Callable[..., Any], owner: Any) -> bool:
    """Whether a method of an object is among the calls that led to the caller of the caller.

    It is looked for in the stack: a flag would stay raised if an interrupt came before it is
    lowered.
    """
    frame = sys._getframe(2).f_back
    while frame is not None:
        if frame.f_code is method.__code__ and frame.f_locals.get("self") is owner:
            return True
        frame = frame.f_back
    return False


# -- forks -----------------------------------------------------------------------------------------

# A forked process has no thread but the one that forked. What another was changing would stay half
# changed there, and locked for ever. So a fork waits until nobody changes anything.


def at_fork(function: Callable[[], None]) -> None:
    """Have a function called before each fork, while all locks are held."""
    _at_fork.append(function)


def acquire_all(locks: Sequence[Any]) -> None:
    """Acquire locks, in whatever order others do: who waits for one holds no other."""
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
        for lock in locks:  # some were made meanwhile
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
