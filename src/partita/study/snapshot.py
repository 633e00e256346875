"""Snapshots: the state of a study as bytes, to save the replay of a long log.

A snapshot is plain data (`partita._state`, `packed`): a study may come from a stranger, and nothing
in it can name code to run. What the settings and the user give, such as the space and its
constraint, is not in it; it is put into a state that was made of these. A snapshot that is damaged,
of another version, or says what cannot be, is not used, and the log is replayed in full.

What makes a snapshot unusable is the version of its format, or of the state of its policy. One that
another release of Partita, NumPy or Python wrote is used: the values told are right whatever wrote
it. Had the log been replayed instead, a policy whose arithmetic has changed since might have
learned something else in the last digits, and asks that follow might differ.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable

from partita._state import BadState
from partita.policies.base import STATE_VERSION

from .packed import FORMAT, pack, unpack
from .state import State

_log = logging.getLogger(__name__)

#: The versions that a snapshot must have to be used: of its format, and of the states of policies.
WRITTEN_BY = f"data {FORMAT}.{STATE_VERSION}"


def write(state: State) -> bytes | None:
    """A state as bytes, or None if its policy cannot say what has happened to it."""
    try:
        data = state.as_data()
        return None if data is None else pack(data)
    except Exception as error:  # a policy of the user's own may do anything
        _log.debug("no snapshot: %s", error)
        return None


def read(data: bytes, digest: str, written_by: str, make: Callable[[], State]) -> State | None:
    """The state that `write` wrote, put into one that `make` makes; None if it cannot be used."""
    if written_by != WRITTEN_BY or type(data) is not bytes or digest != digest_of(data):
        return None
    state = make()
    try:
        content = unpack(data)
        if not isinstance(content, dict):
            raise BadState("it has no fields")
        state.restore(content)
    except Exception as error:  # what is wrong with it may show anywhere
        _log.warning("the snapshot of the study cannot be used (%s): its log is replayed", error)
        return None
    return state


def digest_of(data: bytes) -> str:
    """A checksum."""
    return hashlib.sha256(data).hexdigest()
