"""Run the service: uvicorn, with an end that finishes what was accepted."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import sys
from types import FrameType
from typing import Any

import uvicorn

from partita.errors import InvalidInput

from .app import create_app
from .guards import Guard, is_loopback
from .quick import Quick
from .shelf import Shelf

#: Seconds that an end waits for requests under way.
GRACE = 30
#: Seconds for which one thread may keep others from running: answers must not wait for a fit.
SWITCH = 0.0005
#: Seconds that the line that says where it listens may wait for code to be loaded.
WARM = 5.0
#: The environment variable with a token.
TOKEN = "PARTITA_TOKEN"
#: The shortest token.
SHORTEST = 16


class _Server(uvicorn.Server):  # type: ignore[misc]  # its types are not read
    """Ends streams of events when it is told to end; uvicorn would wait for their readers."""

    app: Any = None
    should_exit: bool
    force_exit: bool

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # uvicorn would raise the signal again in the end; an end that was asked for is no failure.
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True
        asyncio.get_running_loop().call_soon_threadsafe(self._end_streams)

    def _end_streams(self) -> None:
        self._ending = asyncio.ensure_future(self.app.state.service.stop())


def token_for(host: str) -> str | None:
    """The token that requests must bear: from the environment, or drawn if one is needed."""
    given = os.environ.get(TOKEN)
    if given is not None and (len(given) < SHORTEST or not given.isascii()):
        raise InvalidInput(
            f"{TOKEN} has {len(given)} characters: give at least {SHORTEST}, all ASCII"
        )
    if given is None and not is_loopback(host):
        return secrets.token_urlsafe(24)
    return given


def serve(shelf: Shelf, host: str, port: int, guard: Guard, started: Any = None) -> int:
    """Run the service until it is told to end; `started` is called once it listens."""
    app = create_app(shelf, guard)
    sys.setswitchinterval(SWITCH)
    config = uvicorn.Config(
        app,
        http=type("Connection", (Quick,), {"take": staticmethod(app.state.service.take)}),
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
        timeout_keep_alive=75,
        ws="none",
    )
    server = _Server(config)
    server.app = app

    async def run() -> None:
        task = asyncio.create_task(server.serve())
        while not server.started and not task.done():
            await asyncio.sleep(0.01)
        ready = asyncio.create_task(app.state.service.ready.wait())
        await asyncio.wait({task, ready}, timeout=WARM, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if server.started and started is not None and not task.done():
            started(server.servers[0].sockets[0].getsockname()[1])
        await task

    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(run())
    return 0 if server.started else 1
