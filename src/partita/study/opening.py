"""Open a study, or create one: what `Study.open` does."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any, Literal

from partita._checks import as_number, check_choice, seed_or_drawn
from partita.errors import InvalidInput

from .place import as_path
from .replica import Replica
from .settings import Settings
from .store import Store


def stored_at(
    path: str | PathLike[str], durability: Literal["process", "power"], timeout: float
) -> Store:
    """The file of a study, by the arguments that a user gave."""
    check_choice("durability", durability, ("process", "power"))
    seconds = as_number(timeout)
    if not 0.0 <= seconds < float("inf"):
        raise InvalidInput(f"timeout={timeout!r}: give a number of seconds, at least 0")
    return Store(as_path(path), durability, seconds)


def opened(store: Store, given: Mapping[str, Any], *, drawn: bool, must_be_new: bool) -> Replica:
    """The study in a file; it is created if there is none and a space is among the settings given.

    With `drawn`, a new study gets a random seed.
    """
    feasible, policy = given["feasible"], given["policy"]
    begun = False
    with store.lock:  # no other thread forks while the file is open
        if given["space"] is not None:
            seed = {"seed": seed_or_drawn(None)} if drawn else {}
            wanted = Settings.of({**given, **seed})
            if store.is_new():
                wanted.build(feasible, policy)  # refuse unusable settings before storing them
                begun = store.create(wanted.to_meta())
        if must_be_new and not begun:
            raise InvalidInput(f"{store.path} is already a study: open it, or give another name")
        settings = Settings.from_meta(store.meta(), store.path)
    settings.check_same(given, store.path)
    return Replica(store, settings, feasible, policy)
