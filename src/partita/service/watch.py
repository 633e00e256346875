"""What is watched: the feeds of the list and of each study, and what they keep in memory."""

from __future__ import annotations

import time
from typing import Any

import anyio

from partita.errors import PartitaError
from partita.study import Study, watching

from . import maps, views, wire
from .desk import Desk
from .feeds import Feed
from .problems import problem_of
from .shelf import Shelf

#: Importance is computed again once there are this many times the values.
FRESH = 1.2


class Watch:
    """The feeds, each made when it is first followed."""

    def __init__(self, shelf: Shelf, read_only: bool = False) -> None:
        self._shelf, self._read_only = shelf, read_only
        self._list: Feed | None = None
        self._feeds: dict[str, Feed] = {}
        self._seen: dict[str, views.Seen] = {}
        self._importance: dict[str, dict[str, Any]] = {}
        self._glances: dict[str, tuple[str, dict[str, Any]]] = {}

    # -- the list ----------------------------------------------------------------------------------

    def studies(self) -> Feed:
        """The feed of the list."""

        async def version() -> str:
            # Each look is numbered by what it saw, so that a tab that comes back catches up.
            rows = await self.listed()
            return str(abs(hash(wire.as_json(rows))))

        async def make() -> bytes:
            return wire.as_json(await self.listed())

        if self._list is None:
            self._list = Feed(version, make, every=1.0)
        return self._list

    @property
    def _creates(self) -> bool:
        """Whether new studies can be made here."""
        return self._shelf.folder is not None and not self._read_only

    async def listed(self) -> dict[str, Any]:
        """All studies, each with what its file says, or with what is wrong with it."""
        desks = await anyio.to_thread.run_sync(self._shelf.desks)
        rows = [await anyio.to_thread.run_sync(self._glance, desk) for desk in desks]
        return {"studies": rows, "creates": self._creates}

    def _glance(self, desk: Desk) -> dict[str, Any]:
        try:
            study = desk.study()
            seq = str(watching.head(study))
            kept = self._glances.get(desk.name)
            if kept is None or kept[0] != seq:
                kept = (seq, views.glance(study, None if kept is None else kept[1]))
                self._glances[desk.name] = kept
            shown = kept[1]
            pace = watching.Pace(shown["rate"], shown["last"])
            state = views.state_of(shown["told"], study.settings.n_evals, pace)
            return {"id": desk.name, **shown, "state": state}
        except PartitaError as error:
            return {"id": desk.name, "state": "error", "error": str(error)}

    # -- one study ---------------------------------------------------------------------------------

    def study(self, desk: Desk) -> Feed:
        """The feed of one study."""
        if desk.name not in self._feeds:
            self._feeds[desk.name] = self._feed(desk)
        return self._feeds[desk.name]

    def _feed(self, desk: Desk) -> Feed:
        async def version() -> str:
            return await anyio.to_thread.run_sync(_version, desk)

        async def make() -> bytes:
            try:
                return await desk.call(lambda study: self._overview(desk, study))
            except PartitaError as error:
                return wire.as_json({"id": desk.name, "problem": problem_of(error)})

        return Feed(version, make)

    def _overview(self, desk: Desk, study: Study) -> bytes:
        seen = self._seen.setdefault(desk.name, views.Seen())
        shown = views.overview(study, seen, tuple(desk.seconds), desk.stock.numbers)
        return wire.as_json({"id": desk.name, "read_only": self._read_only, **shown})

    async def importance(self, desk: Desk) -> dict[str, Any]:
        """The importance of parameters, from memory unless there are many more values."""
        kept = self._importance.get(desk.name)
        told = await desk.call(lambda study: study.n_told)
        if kept is None or told > FRESH * kept["told"] or told < kept["told"]:
            # Not in the study's turn: it takes seconds, and needs only a copy of the trials.
            study = await desk.call(lambda study: study)
            kept = await anyio.to_thread.run_sync(maps.importance, study)
            self._importance[desk.name] = kept
        return kept

    async def close(self) -> None:
        """End all streams."""
        for feed in (self._list, *self._feeds.values()):
            if feed is not None:
                await feed.close()


def _version(desk: Desk) -> str:
    """The last event, whether the study is at work, and the tolerance: all of it is shown."""
    try:
        study = desk.study()
        last = watching.pace(study).last
        recent = last is not None and time.time() - last < views.RECENT
        return f"{watching.head(study)}{'+' if recent else ''}/{study.tolerance}"
    except PartitaError as error:
        return f"!{abs(hash(str(error)))}"
