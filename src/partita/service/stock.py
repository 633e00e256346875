"""Suggestions prepared ahead, while no request waits, and given to the next client that asks.

A suggestion that was prepared does not know the values that came after it. With few values each of
them matters, and evaluations are usually slow. So nothing is prepared before there are `FROM`
values; until then a study asks exactly as it does without a service.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from partita.errors import NotPending
from partita.study import ahead

if TYPE_CHECKING:
    from partita.optimize.trial import Trial
    from partita.study import Study

#: Values before anything is prepared, and values after which what was prepared is too old.
FROM, OLD = 1000, 50


class Stock:
    """The suggestions of one study that were prepared and not taken yet."""

    def __init__(self) -> None:
        self._ready: deque[Trial] = deque()
        #: How many values the study had when the newest was prepared.
        self._told = 0
        #: Whether the log was searched for suggestions that a killed service had prepared.
        self._searched = False

    def __len__(self) -> int:
        return len(self._ready)

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of the trials that were prepared."""
        return frozenset(trial.number for trial in self._ready)

    def copy(self) -> Stock:
        """The same, to go back to if nothing was stored."""
        other = Stock()
        other._ready, other._told = self._ready.copy(), self._told
        other._searched = self._searched
        return other

    def take(self, study: Study, key: str | None) -> Trial | None:
        """A trial that was prepared, begun now under a request's key; None if there is none."""
        while self._ready:
            if study.n_told - self._told > OLD:
                self.discard(study)
                return None
            trial = self._ready.popleft()
            if ahead.take(study if key is None else study.keyed(key), trial):
                return trial
        return None

    def fill(self, study: Study) -> None:
        """Prepare a trial if there is none, and enough values."""
        if study.n_told < FROM or study.contexts.names:
            return
        if not self._searched:
            self._ready.extend(ahead.left(study))
            self._searched, self._told = True, study.n_told
        if not self._ready:
            self._ready.append(ahead.prepare(study))
            self._told = study.n_told

    def discard(self, study: Study) -> None:
        """Cancel the suggestions that were not taken."""
        while self._ready:
            trial = self._ready.popleft()
            try:
                study.cancel(trial)
            except NotPending:  # a client told or cancelled it by its number
                continue


def is_plain(act: str, body: Any) -> bool:
    """Whether a request asks for one trial, wherever the policy chooses."""
    if act != "ask" or not isinstance(body, dict):
        return False
    given = {name: value for name, value in body.items() if value is not None}
    count = given.get("count", 1)
    return given.keys() <= {"count"} and type(count) is int and count == 1
