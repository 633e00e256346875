"""One study of the service: opened when it is needed, used by one request at a time."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import anyio

from partita.errors import InvalidInput, PartitaError
from partita.study import Study, watching
from partita.study.events import Kind

from . import wire
from .stock import Stock, is_plain

T = TypeVar("T")

#: Keys of requests that are remembered.
MOST_KEYS = 100_000
#: Calls whose time is remembered.
TIMED = 200
#: Seconds after an answer until something is prepared: the answer goes first, and the next request.
PAUSE = 0.001
#: What each act is in the log.
_KINDS = {"ask": (Kind.ASK, Kind.EXPECT, Kind.ADOPT), "tell": (Kind.TELL,)}
_KINDS["cancel"] = (Kind.CANCEL,)
_KINDS["add"] = (Kind.ADD,)
_ACTS = {"ask": wire.ask, "tell": wire.tell, "cancel": wire.cancel, "add": wire.add}


class Done(NamedTuple):
    """A request that was carried out: what it was, its body if that is known, and its answer."""

    act: str
    body: str | None
    answer: dict[str, Any]


class Desk:
    """A study's file, its study once it has been opened, and the requests that were repeated.

    Attributes
    ----------
    name, path
    seconds
        The times that the latest acts took.
    stock
        Suggestions that were prepared.
    """

    def __init__(self, name: str, path: Path, durability: Literal["process", "power"]) -> None:
        self.name, self.path, self._durability = name, path, durability
        self._turn = asyncio.Lock()
        self._opening = threading.Lock()
        self._study: Study | None = None
        self._done: OrderedDict[str, Done] | None = None
        self.seconds: deque[float] = deque(maxlen=TIMED)
        self.stock = Stock()
        self._waiting, self._closed = 0, False
        self._preparing: asyncio.Task[None] | None = None

    async def call(self, work: Callable[[Study], T]) -> T:
        """What some work on the study returns, in a thread, after the requests before it.

        A cancelled request is carried out all the same, so that the next one waits for it.
        """
        self._waiting += 1
        try:
            await self._turn.acquire()
        finally:
            self._waiting -= 1
        try:
            return await anyio.to_thread.run_sync(lambda: work(self.study()))
        finally:
            self._turn.release()

    def study(self) -> Study:
        """The study; what is wrong with its file is raised each time, until it is mended."""
        with self._opening:
            if self._study is None:
                self._study = Study.open(self.path, durability=self._durability)
            return self._study

    def take(self, study: Study) -> None:
        """Use a study that was just created."""
        with self._opening:
            self._study = study

    async def act(
        self, act: str, body: Any, key: str | None, counted: bool = False
    ) -> dict[str, Any]:
        """Carry out a request, or return its answer if it was carried out before.

        With `counted` the answer also says how many trials are in each state.
        """

        def work(study: Study) -> dict[str, Any]:
            answer = self._act(study, act, body, key)
            if counted:
                answer = {**answer, "counts": wire.counts(study, len(self.stock))}
            return answer

        answer = await self.call(work)
        if is_plain(act, body) and (self._preparing is None or self._preparing.done()):
            self._preparing = asyncio.create_task(self._prepare())
        return answer

    async def _prepare(self) -> None:
        """Prepare a suggestion, unless a request waits. The next ask takes it."""
        await asyncio.sleep(PAUSE)
        if self._waiting or self._turn.locked() or self._closed:
            return
        with contextlib.suppress(PartitaError):  # the next request gets the error
            await self.call(self._fill)

    def _fill(self, study: Study) -> None:
        if not self._closed:
            self.stock.fill(study)

    def _act(self, study: Study, act: str, body: Any, key: str | None) -> dict[str, Any]:
        start = time.perf_counter()
        if key is None:
            answer = self._done_now(study, act, body, key)
        else:
            text = json.dumps(body, sort_keys=True)
            before = self._before(study).get(key)
            if before is not None:
                return _same(before, act, text, body, key)
            answer = self._done_now(study, act, body, key)
            self._remember(key, Done(act, text, answer))
        self.seconds.append(time.perf_counter() - start)
        return answer

    def _done_now(self, study: Study, act: str, body: Any, key: str | None) -> dict[str, Any]:
        """The answer to a request that was not carried out before."""
        if is_plain(act, body):
            trial = self.stock.take(study, key)
            if trial is not None:
                return {"trials": [wire.trial_row(trial)]}
        return _ACTS[act](study if key is None else study.keyed(key), body)

    def _before(self, study: Study) -> OrderedDict[str, Done]:
        """The requests with keys that were carried out, those before a restart included."""
        if self._done is None:
            self._done = OrderedDict()
            for event in watching.keys(study):
                act = next(act for act, kinds in _KINDS.items() if event.kind in kinds)
                earlier = self._done.get(event.key)
                self._remember(event.key, Done(act, None, _answer(study, event, earlier)))
        return self._done

    def _remember(self, key: str, done: Done) -> None:
        assert self._done is not None
        self._done[key] = done
        if len(self._done) > MOST_KEYS:
            self._done.popitem(last=False)

    def close(self) -> None:
        """Cancel the suggestions that were not taken, and close the file."""
        self._closed = True
        with self._opening:
            if self._study is not None:
                with contextlib.suppress(PartitaError):
                    self.stock.discard(self._study)
                self._study.close()


def _answer(study: Study, event: watching.Keyed, earlier: Done | None) -> dict[str, Any]:
    """The answer to the request that an event of the log belongs to."""
    if event.kind == Kind.ADD:
        numbers = [] if earlier is None else earlier.answer["numbers"]
        return {"numbers": [*numbers, event.trial]}
    if event.kind not in _KINDS["ask"]:
        return {"number": event.trial}
    trials = [] if earlier is None else earlier.answer["trials"]
    names = study.settings.context or ()
    if event.kind == Kind.ADOPT:  # it was prepared before
        params = wire.plain(study.trials[event.trial].params)
        return {"trials": [{"number": event.trial, "params": params}]}
    params = event.params
    trial: dict[str, Any] = {"number": event.trial, "params": params}
    if names:
        trial["params"] = {name: params[name] for name in params if name not in names}
        trial["context"] = {name: params[name] for name in names}
    if event.times is not None:
        trial["count"] = event.times
    return {"trials": [*trials, trial]}


def _same(done: Done, act: str, text: str, body: Any, key: str) -> dict[str, Any]:
    """The answer to a repeated request; refused if it is another one under the same key."""
    same = done.act == act and done.body in (None, text)
    if same and act in ("tell", "cancel") and isinstance(body, dict):
        same = body.get("number") == done.answer["number"]
    if not same:
        raise InvalidInput(
            f"Idempotency-Key {key!r}: another request has used this key. Give each request a key "
            "of its own, and the same one only when it is sent again"
        )
    return done.answer
