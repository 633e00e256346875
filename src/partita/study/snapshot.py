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
import math
from collections.abc import Callable

import numpy as np

from partita._state import BadState, Saved, wholes
from partita._state import State as Data
from partita.optimize.numbers import SAME_POINT
from partita.optimize.trials import FAILED, PENDING
from partita.policies import optional
from partita.policies.base import STATE_VERSION, Policy

from .packed import FORMAT, pack, unpack
from .state import Answer, State

_log = logging.getLogger(__name__)

#: The versions of the format and of policies' states that a snapshot must have to be used.
WRITTEN_BY = f"data {FORMAT}.{STATE_VERSION}"


def write(state: State) -> bytes | None:
    """A state as bytes, or None if its policy cannot save its state."""
    try:
        data = as_data(state)
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
        restore(state, content)
    except Exception as error:  # damage may cause any error
        _log.warning("the snapshot of the study cannot be used (%s): its log is replayed", error)
        return None
    return state


def digest_of(data: bytes) -> str:
    """A checksum."""
    return hashlib.sha256(data).hexdigest()


# -- a state as plain data -------------------------------------------------------------------------


def as_data(state: State) -> Data | None:
    """The whole state, for `restore`; None if the policy cannot save its state."""
    policy = optional.state(state.game.policy)
    if policy is None:
        return None
    answer = None if state.answer is None else dict(state.answer._asdict())
    return {
        "seq": state.seq,
        "ledger": state.game.ledger.as_data(),
        "reports": state.game.curves.as_data(),
        "policy_class": type(state.game.policy).__qualname__,
        "policy": policy,
        "asked": wholes(state.asked),
        "times": np.array(list(state.asked.values()), dtype=float),
        "owned": wholes(state.owners),
        "owners": wholes(state.owners.values()),
        "expired": wholes(sorted(state.expired)),
        "differing": state.differing,
        "answer": answer and {name: _number(value) for name, value in answer.items()},
    }


def restore(state: State, data: Data) -> None:
    """Restore what `as_data` returned, in a state made for the same settings."""
    saved, game = Saved(data, "snapshot"), state.game
    state.seq = saved.integer("seq")
    ledger, policy = game.ledger, game.policy
    ledger.restore(saved.part("ledger"))
    pending, trials = ledger.numbers(PENDING), len(ledger)
    game.curves.restore(saved.part("reports"), trials)
    saved.require(not set(pending) & set(game.curves), "reports of trials that have ended")
    _check_points(state, saved, pending)
    saved.expect("policy_class", type(policy).__qualname__)
    policy.restore(data["policy"])
    if isinstance(policy, Policy):
        saved.require(policy.told == ledger.evaluations, "a value of each finished trial")
        saved.require(policy.pending <= ledger.awaited, "a trial for each pending point")
    numbers = saved.numbers("asked", trials)
    saved.require(sorted(numbers) == pending, "a time for each pending trial")
    times = saved.floats("times", (len(numbers),)).tolist()
    state.asked = dict(zip(numbers, times, strict=True))
    owned = saved.numbers("owned", trials)
    owners = saved.wholes("owners", (len(owned),), -(2**62)).tolist()
    state.owners = dict(zip(owned, owners, strict=True))
    saved.require(state.owners.keys() <= state.asked.keys(), "owners of pending trials")
    state.expired = set(saved.numbers("expired", trials))
    saved.require(state.expired <= set(ledger.numbers(FAILED)), "expired trials that failed")
    state.differing = saved.integer("differing")
    if "answer" in saved:
        part = saved.part("answer")
        bounds = [part.real(name, -math.inf, math.inf) for name in Answer._fields[1:]]
        state.answer = Answer(part.integer("told"), *bounds)


def _check_points(state: State, saved: Saved, pending: list[int]) -> None:
    """Refuse trials outside the space, and pending ones that its constraint does not allow."""
    space, units = state.optimizer.space, state.game.ledger.units
    away = np.abs(space.snap(units) - units) if len(units) else units
    saved.require((away <= SAME_POINT * np.maximum(1.0, np.abs(units))).all(), "valid trials")
    saved.require(space.feasible(units[pending]).all(), "pending trials that are allowed")


def _number(value: float) -> float | int:
    """A Python number, whatever type a user's own policy returned."""
    return value if type(value) is int else float(value)
