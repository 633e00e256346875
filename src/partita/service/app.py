"""The service: a Starlette application over a shelf of studies, which it does not own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import anyio
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Route

from partita._version import __version__
from partita.errors import PartitaError

from . import tables, wire
from .desk import Act, checked_key
from .guards import HEADERS, MOST_BYTES, Guard
from .openapi import description
from .problems import Refused, problem_of
from .questions import QUESTIONS, predict, read
from .shelf import Shelf
from .warming import load_loops
from .watch import Watch
from .worker import Job

if TYPE_CHECKING:
    from .quick import Answer, Head

_log = logging.getLogger(__name__)

#: The files of the page, and their types.
PAGE = Path(__file__).parent / "page"
_TYPES = {".html": "text/html", ".js": "text/javascript", ".css": "text/css"}
_TYPES |= {".svg": "image/svg+xml", ".txt": "text/plain"}
_DOWNLOADS = {".csv": "text/csv; charset=utf-8", ".parquet": "application/vnd.apache.parquet"}

Endpoint = Callable[[Request], Awaitable[Response]]


def create_app(shelf: Shelf, guard: Guard | None = None) -> Starlette:
    """The application: `partita serve` runs it, tests call it, and any ASGI server can."""
    service = _Service(shelf, guard or Guard())
    app = Starlette(routes=service.routes(), lifespan=service.lifespan)
    app.add_exception_handler(HTTPException, _not_there)
    app.state.service = service
    return app


class _Service:
    def __init__(self, shelf: Shelf, guard: Guard) -> None:
        self._shelf, self._guard = shelf, guard
        self._watch = Watch(shelf, read_only=guard.read_only)
        #: Set once an ask need not wait for code to be loaded.
        self.ready = asyncio.Event()

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Starlette) -> AsyncIterator[None]:
        """Open the latest studies at the start, behind the first requests; close all at the end."""
        warming = asyncio.create_task(self._warm())
        yield
        warming.cancel()
        await self.stop()
        await anyio.to_thread.run_sync(self._shelf.close)

    async def _warm(self) -> None:
        """Load code, and replay the studies that were used last: no request should wait for it."""
        if not self._guard.read_only:
            await anyio.to_thread.run_sync(load_loops)
        self.ready.set()
        for desk in await anyio.to_thread.run_sync(self._shelf.latest):
            with contextlib.suppress(PartitaError):  # the page says what is wrong with it
                await desk.call(desk.warm)

    async def stop(self) -> None:
        """End the streams of events, which would go on for as long as their readers stay."""
        await self._watch.close()

    def routes(self) -> list[Route]:
        """Everything that is answered. The page and its files need no token, data do."""
        one = "/studies/{id}"
        return [
            Route("/", self._guarded(self._file, "GET", free=True)),
            Route("/page/{name}", self._guarded(self._file, "GET", free=True)),
            Route("/openapi.json", self._guarded(self._openapi, "GET", free=True)),
            Route("/events", self._guarded(self._all_events, "GET")),
            Route("/studies", self._guarded(self._list, "GET")),
            Route("/studies", self._guarded(self._create, "POST"), methods=["POST"]),
            Route(one, self._guarded(self._show, "GET")),
            *(
                Route(f"{one}/{act}", self._guarded(self._act, "POST"), methods=["POST"])
                for act in wire.ACTS
            ),
            *(
                Route(f"{one}/{name}", self._guarded(self._question(name), "GET"))
                for name in QUESTIONS
            ),
            Route(f"{one}/predict", self._guarded(self._predict, "POST"), methods=["POST"]),
            Route(f"{one}/tolerance", self._guarded(self._tolerance, "POST"), methods=["POST"]),
            Route(f"{one}/trials", self._guarded(self._trials, "GET")),
            Route(f"{one}/trials/{{number:int}}", self._guarded(self._trial, "GET")),
            Route(f"{one}/trials.csv", self._guarded(self._download, "GET")),
            Route(f"{one}/trials.parquet", self._guarded(self._download, "GET")),
            Route(f"{one}/events", self._guarded(self._events, "GET")),
            Route(f"{one}/importance", self._guarded(self._importance, "GET")),
        ]

    def _guarded(self, endpoint: Endpoint, method: str, free: bool = False) -> Endpoint:
        """An endpoint behind all checks, whose errors become problem+json."""

        async def answer(request: Request) -> Response:
            try:
                self._guard.check(request.method, request.headers)
                if not free:
                    self._guard.check_token(request.headers)
                response = await endpoint(request)
            except ClientDisconnect:  # there is no one to answer
                return Response(status_code=499)
            except Exception as error:
                response = _problem(error, f"{request.method} {request.url.path}")
            response.headers.update(HEADERS)
            return response

        return answer

    # -- studies ---------------------------------------------------------------------------------

    async def _list(self, request: Request) -> Response:
        return _json(await self._watch.listed())

    async def _create(self, request: Request) -> Response:
        self._guard.check_change()
        body = await _body(request)
        desk, created = await anyio.to_thread.run_sync(self._shelf.create, body)
        return _json({"id": desk.name, "created": created}, 201 if created else 200)

    async def _show(self, request: Request) -> Response:
        desk = self._shelf.desk(request.path_params["id"])
        settings = await desk.call(lambda study: _settings(study, len(desk.stock)))
        return _json({"id": desk.name, **settings})

    async def _act(self, request: Request) -> Response:
        self._guard.check_change()
        desk = self._shelf.desk(request.path_params["id"])
        act = request.url.path.rpartition("/")[2]
        key = checked_key(request.headers.get("idempotency-key"))
        counted = "counts" in request.query_params
        answer = await desk.act(Act(act, await _body(request), key, counted))
        return Response(answer, media_type="application/json")

    async def _tolerance(self, request: Request) -> Response:
        self._guard.check_change()
        desk, body = self._shelf.desk(request.path_params["id"]), await _body(request)
        return _json(await desk.call(lambda study: wire.choose(study, body)))

    def take(self, head: Head, body: bytes, answer: Answer) -> None:
        """Carry out a request that `Quick` has read, as `_act` does, and call `answer`."""
        loop = asyncio.get_running_loop()

        def settle(outcome: bytes | Exception) -> None:
            if isinstance(outcome, Exception):
                problem = _problem_of(outcome, f"{head.act} of {head.name}")
                answer(problem["status"], "application/problem+json", wire.as_json(problem))
            else:
                answer(200, "application/json", outcome)

        try:
            self._guard.check("POST", head.headers)
            self._guard.check_token(head.headers)
            self._guard.check_change()
            desk = self._shelf.desk(head.name)
            key = checked_key(head.headers.get("idempotency-key"))
            act = Act(head.act, read(body or b"{}", "the body"), key, head.counted)
            desk.put(Job(act, loop, settle))
        except Exception as error:
            loop.call_soon(settle, error)  # not from here: the next request may fail as well

    # -- answers ---------------------------------------------------------------------------------

    def _question(self, name: str) -> Endpoint:
        async def answer(request: Request) -> Response:
            query = dict(request.query_params)
            return await self._answer(request, lambda study: QUESTIONS[name](study, query))

        return answer

    async def _predict(self, request: Request) -> Response:
        body = wire.fields_of(await _body(request), ("params", "context"), ("params",))
        params, context = body["params"], body.get("context")
        return await self._answer(request, lambda study: predict(study, params, context))

    async def _trials(self, request: Request) -> Response:
        query, desk = dict(request.query_params), self._shelf.desk(request.path_params["id"])
        return await self._answer(
            request, lambda study: tables.table(study, query, desk.stock.numbers)
        )

    async def _trial(self, request: Request) -> Response:
        number, desk = request.path_params["number"], self._shelf.desk(request.path_params["id"])
        return await self._answer(
            request, lambda study: tables.detail(study, number, desk.stock.numbers)
        )

    async def _download(self, request: Request) -> Response:
        """All trials as a file, written beside nothing that a request names."""
        desk = self._shelf.desk(request.path_params["id"])
        suffix = "." + request.url.path.rpartition(".")[2]
        with tempfile.NamedTemporaryFile(suffix=suffix, delete=False) as file:
            path = Path(file.name)
        try:
            # Not in the study's turn: a million trials take seconds, and asks must not wait.
            study = await desk.call(lambda study: study)
            await anyio.to_thread.run_sync(study.export, path)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        return FileResponse(
            path,
            media_type=_DOWNLOADS[suffix],
            filename=f"{desk.name}{suffix}",
            background=BackgroundTask(path.unlink, missing_ok=True),
        )

    async def _importance(self, request: Request) -> Response:
        desk = self._shelf.desk(request.path_params["id"])
        return _json(await self._watch.importance(desk))

    async def _answer(self, request: Request, question: Callable[[Any], Any]) -> Response:
        desk = self._shelf.desk(request.path_params["id"])
        answer = await desk.call(lambda study: wire.as_json(question(study)))
        return Response(answer, media_type="application/json")

    # -- streams and files -------------------------------------------------------------------------

    async def _events(self, request: Request) -> Response:
        desk = self._shelf.desk(request.path_params["id"])
        return _stream(self._watch.study(desk).follow(request.headers.get("last-event-id")))

    async def _all_events(self, request: Request) -> Response:
        return _stream(self._watch.studies().follow(request.headers.get("last-event-id")))

    async def _openapi(self, request: Request) -> Response:
        return _json(description(__version__))

    async def _file(self, request: Request) -> Response:
        """A file of the page: one of those there are, so that no other path is ever opened."""
        name = request.path_params.get("name", "index.html")
        files = {path.name: path for path in PAGE.iterdir() if path.suffix in _TYPES}
        if name not in files:
            raise Refused(404, "There is no such file", f"{quote(name)[:80]}: see /")
        data = files[name].read_bytes()
        return Response(data, media_type=_TYPES[files[name].suffix])


def _settings(study: Any, prepared: int) -> dict[str, Any]:
    """The settings of a study, as `POST /studies` takes them, and how many trials there are."""
    settings = study.settings
    named = {name: getattr(settings, name) for name in wire.SETTINGS}
    return {
        "space": json.loads(settings.space),
        **named,
        "policy": settings.policy,
        "policy_class": type(study.policy).__name__,
        "guarantee": study.guarantee,
        "tolerance": study.tolerance,
        "counts": wire.counts(study, prepared),
        "notes": [list(note) for note in study.notes()],
    }


def _stream(events: AsyncIterator[bytes]) -> Response:
    return StreamingResponse(
        events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
    )


def _json(value: Any, status: int = 200) -> Response:
    return Response(wire.as_json(value), status, media_type="application/json")


def _problem_of(error: Exception, what: str) -> dict[str, Any]:
    """An error as problem+json; one that is not Partita's own is also logged."""
    if not isinstance(error, PartitaError):
        _log.error("%s failed", what, exc_info=error)
    return problem_of(error)


def _problem(error: Exception, what: str) -> Response:
    problem = _problem_of(error, what)
    headers = {"WWW-Authenticate": "Bearer"} if problem["status"] == 401 else None
    return Response(
        wire.as_json(problem), problem["status"], headers, media_type="application/problem+json"
    )


def _not_there(request: Request, error: Exception) -> Response:
    """Addresses and methods that the service does not have."""
    status = getattr(error, "status_code", 404)
    title = "The method is not allowed" if status == 405 else "There is no such address"
    path = quote(request.url.path)[:120]
    refused = Refused(status, title, f"{request.method} {path}: see /openapi.json")
    response = _problem(refused, path)
    response.headers.update(HEADERS)
    return response


async def _body(request: Request) -> Any:
    """The JSON of a request, read no further than a body may be long."""
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > MOST_BYTES:
            raise Refused(
                413,
                "The body is too large",
                f"the body has more than {MOST_BYTES:,} bytes: send it in several requests",
            )
        parts.append(part)
    return read(b"".join(parts) or b"{}", "the body")
