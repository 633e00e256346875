"""Snapshots: the state of a study as bytes, which saves the replay of a long log.

A snapshot is plain data (`partita._state`, `packed`): a study may come from a stranger, and nothing
in it can name code to run. It does not contain what comes from the settings or the user, such as
the space and its constraint; it is restored into a state made from these. A snapshot that is
damaged, of another version, or inconsistent is not used, and the log is replayed in full.

A snapshot is unusable if the version of its format, or of its policy's state, differs. One written
by another release of Partita, NumPy or Python is used, since its values are the same. A replay of
the log could give a policy with other last digits, if its arithmetic has changed since, and so
other trials.
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

#: The versions of the format and of policies' states that a snapshot must have to be used.
WRITTEN_BY = f"data {FORMAT}.{STATE_VERSION}"


def write(state: State) -> bytes | None:
    """A state as bytes, or None if its policy cannot save its state."""
    try:
        data = state.as_data()
        return None if data is None else pack(data)
    except Exception as error:  # a user's own policy may raise anything
        _log.debug("no snapshot: %s", error)
        return None


def read(data: bytes, digest: str, written_by: str, make: Callable[[], State]) -> State | None:
    """The state that `write` wrote, restored into one from `make`; None if it cannot be used."""
    if written_by != WRITTEN_BY or type(data) is not bytes or digest != digest_of(data):
        return None
    state = make()
    try:
        content = unpack(data)
        if not isinstance(content, dict):
            raise BadState("it has no fields")
        state.restore(content)
    except Exception as error:  # damage may cause any error
        _log.warning("the snapshot of the study cannot be used (%s): its log is replayed", error)
        return None
    return state


def digest_of(data: bytes) -> str:
    """A checksum."""
    return hashlib.sha256(data).hexdigest()
