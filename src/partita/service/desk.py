"""One study of the service: opened when it is needed, used by one thread."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from partita.errors import InvalidInput, PartitaError
from partita.study import Study, watching
from partita.study.events import Kind

from . import wire
from .stock import Stock, is_plain
from .worker import Job, Worker, answered, waited

T = TypeVar("T")

#: Keys of requests that are remembered.
MOST_KEYS = 100_000
#: Calls whose time is remembered.
TIMED = 200
#: Seconds without a request after which something is prepared: an answer goes out first.
PAUSE = 0.001
#: Seconds without a request after which what was put off is done, and how much it may be put off.
QUIET, PATIENCE = 0.25, 4.0
#: Seconds of one transaction after which further requests are left for the next.
LONGEST = 0.01
#: What each act is in the log.
_KINDS = {"ask": (Kind.ASK, Kind.EXPECT, Kind.ADOPT), "tell": (Kind.TELL,)}
_KINDS["cancel"] = (Kind.CANCEL,)
_KINDS["add"] = (Kind.ADD,)
_ACTS = {"ask": wire.ask, "tell": wire.tell, "cancel": wire.cancel, "add": wire.add}


class Act(NamedTuple):
    """A request to change a study.

    Attributes
    ----------
    act
        Which change: "ask", "tell", "cancel" or "add".
    body
        The JSON of the request, as it was read.
    key
        The key by which a repeated request is known.
    counted
        Whether the answer also says how many trials are in each state.
    """

    act: str
    body: Any
    key: str | None = None
    counted: bool = False

    @property
    def is_light(self) -> bool:
        """Whether others may share its transaction, since it does not take long."""
        body = self.body
        if self.act == "ask":
            return is_plain(self.act, body)
        return self.act != "add" and isinstance(body, dict) and "values" not in body


class Done(NamedTuple):
    """A request that was carried out: what it was, its body if that is known, and its answer."""

    act: str
    body: str | None
    answer: bytes


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
        self._opening = threading.Lock()
        self._study: Study | None = None
        self._done: OrderedDict[str, Done] | None = None
        self.seconds: deque[float] = deque(maxlen=TIMED)
        self.stock = Stock()
        self._closed = False
        #: Whether a trial was asked for since the last one was prepared.
        self._asked = False
        self._worker = Worker(self._work, ((PAUSE, self._prepare), (QUIET, self._tidy)))

    async def call(self, work: Callable[[Study], T]) -> T:
        """What some work on the study returns, in its thread, after the requests before it.

        A cancelled request is carried out all the same.
        """
        result: T = await waited(self._worker.put, work)
        return result

    async def act(self, act: Act) -> bytes:
        """Carry out a request, or repeat its answer if it was carried out before: JSON."""
        answer: bytes = await waited(self._worker.put, act)
        return answer

    def put(self, job: Job) -> None:
        """Carry out an `Act` without waiting."""
        self._worker.put(job)

    def study(self) -> Study:
        """The study; what is wrong with its file is raised each time, until it is mended."""
        with self._opening:
            if self._study is None:
                self._study = Study.open(self.path, durability=self._durability)
                self._study.put_off(PATIENCE)
            return self._study

    def take(self, study: Study) -> None:
        """Use a study that was just created."""
        with self._opening:
            self._study = study
            study.put_off(PATIENCE)

    def warm(self, study: Study) -> None:
        """Read what the first request needs: the state, and the keys of earlier requests."""
        if study.n_told:
            self._before(study)

    # -- in the thread ---------------------------------------------------------------------------

    def _work(self, jobs: list[Job]) -> None:
        """Do the jobs in order: acts that are next to each other in one transaction."""
        while jobs:
            n = 0
            while n < len(jobs) and isinstance(jobs[n].what, Act) and jobs[n].what.is_light:
                n += 1
            try:
                if n or isinstance(jobs[0].what, Act):
                    n = self._carry_out(jobs[: max(n, 1)])
                else:
                    n = 1
                    answered([(jobs[0], jobs[0].what(self.study()))])
            except Exception as error:
                n = max(n, 1)
                answered((job, error) for job in jobs[:n])
            jobs = jobs[n:]

    def _carry_out(self, jobs: list[Job]) -> int:
        """Carry out acts in one transaction, until it has taken long enough; their number."""
        study, start = self.study(), time.perf_counter()
        if any(job.what.key is not None for job in jobs):
            self._before(study)
        new: dict[str, Done] = {}
        ready = self.stock.copy()

        def pieces() -> Iterator[Callable[[], bytes]]:
            for i, job in enumerate(jobs):
                if i and time.perf_counter() - start > LONGEST:
                    return
                yield partial(self._act, study, job.what, new)

        def stored(outcomes: list[bytes | Exception]) -> None:
            for key, done in new.items():
                self._remember(key, done)
            took = (time.perf_counter() - start) / len(outcomes)
            self.seconds.extend(took for _ in outcomes)
            answered(zip(jobs, outcomes, strict=False))

        try:
            return len(study.together(pieces(), stored))
        except Exception:
            # Nothing was stored. Each is carried out by itself, and gets its own error.
            self.stock = ready
            if len(jobs) == 1:
                raise
            for job in jobs:
                self._work([job])
            return len(jobs)

    def _act(self, study: Study, act: Act, new: dict[str, Done]) -> bytes:
        """The answer to a request, in an open transaction."""
        key = act.key
        before = None if key is None else new.get(key) or self._before(study).get(key)
        if before is not None:
            answer = _same(before, act)
        else:
            self._asked = self._asked or act.act == "ask"
            answer = wire.as_json(self._done_now(study, act))
            if key is not None:
                new[key] = Done(act.act, _text(act.body), answer)
        if act.counted:
            counts = wire.as_json(wire.counts(study, len(self.stock)))
            answer = b'%b,"counts":%b}' % (answer[:-1], counts)
        return answer

    def _done_now(self, study: Study, act: Act) -> dict[str, Any]:
        """The answer to a request that was not carried out before."""
        if is_plain(act.act, act.body):
            trial = self.stock.take(study, act.key)
            if trial is not None:
                return {"trials": [wire.trial_row(trial)]}
        return _ACTS[act.act](study if act.key is None else study.keyed(act.key), act.body)

    def _prepare(self) -> None:
        """Prepare a suggestion, while no request waits. The next ask takes it."""
        if self._asked and not self._closed:
            self._asked = False
            with contextlib.suppress(PartitaError):  # the next request gets the error
                self.stock.fill(self.study())

    def _tidy(self) -> None:
        """Do what takes long and was put off, while no request waits."""
        if self._study is not None and not self._closed:
            with contextlib.suppress(PartitaError):
                self._study.tidy()

    def _before(self, study: Study) -> OrderedDict[str, Done]:
        """The requests with keys that were carried out, those before a restart included."""
        if self._done is None:
            self._done = OrderedDict()
            answers: dict[str, dict[str, Any]] = {}
            for event in watching.keys(study):
                act = next(act for act, kinds in _KINDS.items() if event.kind in kinds)
                answer = _answer(study, event, answers.get(event.key))
                answers[event.key] = answer
                self._remember(event.key, Done(act, None, wire.as_json(answer)))
        return self._done

    def _remember(self, key: str, done: Done) -> None:
        assert self._done is not None
        self._done[key] = done
        if len(self._done) > MOST_KEYS:
            self._done.popitem(last=False)

    def close(self) -> None:
        """Cancel the suggestions that were not taken, and close the file."""
        self._closed = True
        self._worker.stop()
        with self._opening:
            if self._study is not None:
                with contextlib.suppress(PartitaError):
                    self.stock.discard(self._study)
                self._study.close()


def checked_key(key: str | None) -> str | None:
    """The key of a request; refused if it is too long to keep."""
    if key is not None and (not key or len(key) > watching.LONGEST_KEY or not key.isascii()):
        raise InvalidInput(
            f"Idempotency-Key {key!r:.60}: give 1 to {watching.LONGEST_KEY} ASCII characters"
        )
    return key


def _text(body: Any) -> str:
    return json.dumps(body, sort_keys=True)


def _answer(study: Study, event: watching.Keyed, earlier: dict[str, Any] | None) -> dict[str, Any]:
    """The answer to the request that an event of the log belongs to."""
    if event.kind == Kind.ADD:
        numbers = [] if earlier is None else earlier["numbers"]
        return {"numbers": [*numbers, event.trial]}
    if event.kind not in _KINDS["ask"]:
        return {"number": event.trial}
    trials = [] if earlier is None else earlier["trials"]
    names = study.settings.context or ()
    if event.kind == Kind.ADOPT:  # it was prepared before
        params = study.trials[event.trial].params
        return {"trials": [{"number": event.trial, "params": params}]}
    params = event.params
    trial: dict[str, Any] = {"number": event.trial, "params": params}
    if names:
        trial["params"] = {name: params[name] for name in params if name not in names}
        trial["context"] = {name: params[name] for name in names}
    if event.times is not None:
        trial["count"] = event.times
    return {"trials": [*trials, trial]}


def _same(done: Done, act: Act) -> bytes:
    """The answer to a repeated request; refused if it is another one under the same key."""
    same = done.act == act.act and done.body in (None, _text(act.body))
    if same and act.act in ("tell", "cancel") and isinstance(act.body, dict):
        same = act.body.get("number") == json.loads(done.answer)["number"]
    if not same:
        raise InvalidInput(
            f"Idempotency-Key {act.key!r}: another request has used this key. Give each request a "
            "key of its own, and the same one only when it is sent again"
        )
    return done.answer
