"""Server-sent events: what a page shows now, sent again whenever it has changed.

An event holds the whole of what is shown, so a reader that was away needs only the newest one, and
one that is slow holds no memory: there is no queue.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable

#: Seconds between two looks, and the most; a comment is sent after so long a silence.
EVERY, SLOWEST, SILENCE = 0.5, 20.0, 15.0
#: The share of time that making events may take.
SHARE = 0.2


class Feed:
    """The newest event, and a task that makes it while there are readers.

    Parameters
    ----------
    version
        Returns a text that changes when there is something new; it must be quick.
    make
        Returns the JSON of the event.
    every
        Seconds between two looks.
    """

    def __init__(
        self,
        version: Callable[[], Awaitable[str]],
        make: Callable[[], Awaitable[bytes]],
        every: float = EVERY,
    ) -> None:
        self._version, self._make, self._every = version, make, every
        self._newest: tuple[str, bytes] | None = None
        self._changed = asyncio.Condition()
        self._readers, self._closed = 0, False
        self._task: asyncio.Task[None] | None = None

    async def follow(self, last: str | None) -> AsyncIterator[bytes]:
        """Events as bytes, from the first that differs from the one with the id `last`."""
        self._readers += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch())
        try:
            yield b"retry: 2000\n\n"
            while not self._closed:
                newest = self._newest
                if newest is not None and newest[0] != last:
                    last = newest[0]
                    yield b"id: %b\nevent: study\ndata: %b\n\n" % (last.encode(), newest[1])
                elif not await self._wait(last):
                    yield b": still here\n\n"
        finally:
            self._readers -= 1

    async def _wait(self, last: str | None) -> bool:
        """Wait for another event; False after a long silence."""

        def there() -> bool:
            return self._closed or (self._newest is not None and self._newest[0] != last)

        try:
            async with asyncio.timeout(SILENCE), self._changed:
                await self._changed.wait_for(there)
        except TimeoutError:
            return False
        return True

    async def _watch(self) -> None:
        while self._readers and not self._closed:
            start = time.perf_counter()
            version = await self._version()
            if self._newest is None or self._newest[0] != version:
                data = await self._make()
                self._newest = (version, data)
                async with self._changed:
                    self._changed.notify_all()
            took = time.perf_counter() - start
            await asyncio.sleep(min(max(self._every, took / SHARE), SLOWEST))

    async def close(self) -> None:
        """End all readers."""
        self._closed = True
        async with self._changed:
            self._changed.notify_all()
