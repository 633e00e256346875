"""Runs of a study: who evaluates which trial, and what becomes of the trials of killed runs."""

from __future__ import annotations

import time
from typing import NamedTuple

from partita.optimize.trial import Trial

from . import owner as owners
from .events import OWNERS
from .owner import Owner
from .replica import Change
from .store import Store


class Run(NamedTuple):
    """A run that has begun: its names in the log, and the trials that it takes over."""

    owner: Owner
    adopted: list[Trial]


def begin(store: Store, change: Change, name: str) -> Run:
    """Begin a run. It takes over the pending trials of killed runs; held ones are cancelled."""
    state = change.state
    dead = {key: other for key, other in store.typed(*OWNERS) if owners.is_dead(other)}
    run = Run(Owner(_stored(store, name), _stored(store, name + owners.HELD)), [])
    left = [(n, dead[key]) for n, key in state.owners.items() if key in dead]
    change.begin()
    for number, other in left:
        if not other.endswith(owners.HELD):
            change.log(state.adopt(number, time.time(), run.owner.evaluates))
            run.adopted.append(state.optimizer.trial(number))
    for number, other in left:
        if other.endswith(owners.HELD):  # failed, or skipped
            change.log(state.cancel(number, time.time()))
    return run


def _stored(store: Store, name: str) -> int:
    """The number of a new owner of trials."""
    store.rows("INSERT INTO owners (name) VALUES (?)", (name,))
    return int(store.rows("SELECT max(id) FROM owners")[0][0])
