"""The studies of a service: the files that were named, and those of one folder."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from partita.errors import InvalidInput
from partita.study import Study
from partita.study.place import as_path

from . import wire
from .desk import Desk
from .problems import Refused, no_study

#: What a study may be called over HTTP: no folder, no hidden file, nothing that a shell expands.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
SUFFIX = ".db"
#: Studies that are opened at the start.
LATEST = 4


class Shelf:
    """Studies by name. The name of a file is that of its study, without ".db".

    Parameters
    ----------
    places
        Files of studies and at most one folder, in which new ones are created.
    durability
        As for `Study.open`.
    """

    def __init__(
        self, places: Sequence[str | Path], durability: Literal["process", "power"] = "process"
    ) -> None:
        paths = [as_path(place) for place in places]
        folders = [path for path in paths if path.is_dir()]
        if len(folders) > 1:
            raise InvalidInput(
                f"{', '.join(map(str, folders))}: give one folder, in which new studies are created"
            )
        self.folder = folders[0] if folders else None
        self._durability = durability
        self._desks: dict[str, Desk] = {}
        for path in paths:
            if path != self.folder:
                self._add_file(path)

    def _add_file(self, path: Path) -> None:
        if not path.is_file():
            raise InvalidInput(f"{path}: there is no such file or folder")
        name = path.name.removesuffix(SUFFIX)
        if not NAME.fullmatch(name):
            raise InvalidInput(
                f"{path}: a study that is served needs a name of letters, digits, '.', '_' and "
                "'-'. Rename the file"
            )
        if name in self._desks:
            raise InvalidInput(f"{path}: there are two studies called {name}. Rename one")
        self._desks[name] = Desk(name, path, self._durability)

    def desks(self) -> list[Desk]:
        """All studies, by name; files that are new in the folder are among them."""
        if self.folder is not None:
            for path in sorted(self.folder.glob(f"*{SUFFIX}")):
                name = path.name.removesuffix(SUFFIX)
                if name not in self._desks and NAME.fullmatch(name) and path.is_file():
                    self._desks[name] = Desk(name, path, self._durability)
        return [self._desks[name] for name in sorted(self._desks)]

    def latest(self) -> list[Desk]:
        """The studies whose files were changed last, at most `LATEST` of them."""

        def changed(desk: Desk) -> float:
            with contextlib.suppress(OSError):
                return desk.path.stat().st_mtime
            return 0.0

        return sorted(self.desks(), key=changed, reverse=True)[:LATEST]

    def desk(self, name: str) -> Desk:
        """The study of this name. A name reaches the file system only after it was checked."""
        if not NAME.fullmatch(name):
            raise no_study(name)
        if name not in self._desks and self.folder is not None:
            path = self.folder / f"{name}{SUFFIX}"
            if path.is_file():
                self._desks[name] = Desk(name, path, self._durability)
        if name not in self._desks:
            raise no_study(name)
        return self._desks[name]

    def create(self, body: Any) -> tuple[Desk, bool]:
        """The study that a request describes, and whether it was created just now.

        If there is one with the same settings, it is that one.
        """
        fields = wire.fields_of(body, ("name", "space", *wire.SETTINGS), ("name", "space"))
        name = fields["name"]
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise InvalidInput(
                f"name={name!r:.120}: give a name of at most 100 letters, digits, '.', '_' and "
                "'-', the first a letter or a digit"
            )
        space, settings = wire.space_of(fields["space"]), wire.settings_of(fields)
        if name in self._desks or self.folder is None:
            return self._existing(name, space, settings), False
        path = self.folder / f"{name}{SUFFIX}"
        created = not path.exists()
        try:
            study = Study.open(path, space, durability=self._durability, **settings)
        except InvalidInput as error:
            if created:
                raise
            raise _other(error) from error
        desk = self._desks.setdefault(name, Desk(name, path, self._durability))
        desk.take(study)
        return desk, created

    def _existing(self, name: str, space: Any, settings: dict[str, Any]) -> Desk:
        if name not in self._desks:
            raise Refused(
                403,
                "New studies have no place",
                "this service was started with files, not with a folder, so it cannot create a "
                "study: start it with `partita serve FOLDER`",
            )
        desk = self._desks[name]
        try:
            desk.study().check(space, **settings)
        except InvalidInput as error:
            raise _other(error) from error
        return desk

    def close(self) -> None:
        """Close all files."""
        for desk in self._desks.values():
            desk.close()


def _other(error: Exception) -> Refused:
    return Refused(409, "There is another study of this name", str(error))
