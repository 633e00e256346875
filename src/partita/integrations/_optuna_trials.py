"""Read the trials of an Optuna study: each one until it has ended, then never again."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from optuna.trial import TrialState

#: Up to this many trials are read one by one; more are read as a list, which is a single query for
#: SQL storages.
FEW = 4
#: A trial of another worker that was still running after m readings is read again after m divided
#: by this number. So a trial that never ends, because its worker died, costs less and less.
PATIENCE = 8


@dataclass(frozen=True, slots=True)
class Ended:
    """A trial of this process that has ended, so that it need not be read."""

    number: int
    params: dict[str, Any]
    distributions: dict[str, Any]
    system_attrs: dict[str, Any]
    user_attrs: dict[str, Any]
    state: TrialState
    value: float | None
    intermediate_values: dict[int, float]


@dataclass(slots=True)
class _Running:
    """A trial that has not ended: when it was first read, and when to read it next."""

    since: int
    due: int
    own: bool

    def wait(self, now: int) -> None:
        age = now - self.since
        self.due = now + (max(PATIENCE, age) if self.own else max(1, age // PATIENCE))


class TrialReader:
    """Reads the trials of one study in order; `news` returns those that changed.

    The reader knows the number of the first trial that it has never read, and the trials that have
    not ended. Trials are taken from the front of Optuna's queue, so only the first waiting one is
    checked.
    """

    def __init__(self, storage: Any, study_id: int) -> None:
        self.storage, self.study_id = storage, study_id
        self._next = 0
        self._running: dict[int, _Running] = {}
        self._waiting: deque[int] = deque()
        #: Trials from `_next` on that are already known, because they belong to this process.
        self._ahead: set[int] = set()
        self._hints: dict[int, Ended] = {}
        self._clock = 0

    def ended(self, trial: Ended) -> None:
        """Record that a trial of this process has ended."""
        self._hints[trial.number] = trial

    def started(self, number: int) -> None:
        """Record that this process has started a trial, whose end it will probably see."""
        self._running[number] = _Running(self._clock, self._clock + PATIENCE, True)
        if number >= self._next:
            self._ahead.add(number)

    def news(self, current: int, all_running: bool = False) -> Iterator[Any]:
        """The trials before the current one that are new or may have changed.

        Parameters
        ----------
        current
            The number of the trial that needs parameters, or of the next trial.
        all_running
            Whether to read all trials that have not ended, even if they are not due.
        """
        self._clock += 1
        if current in self._waiting:
            self._waiting.remove(current)
            self.started(current)
        hints, self._hints = self._hints, {}
        for number, hint in hints.items():
            self._running.pop(number, None)
            if number >= self._next:
                self._ahead.add(number)
            yield hint
        due = [n for n, entry in self._running.items() if all_running or entry.due <= self._clock]
        fresh = [n for n in range(self._next, current) if n not in self._ahead]
        self._ahead = {n for n in self._ahead if n >= current}
        self._next = max(self._next, current)
        for trial in self._read([*due, *fresh]):
            yield from self._sort(trial)
        yield from self._queue()

    def _sort(self, trial: Any) -> Iterator[Any]:
        number = trial.number
        if trial.state == TrialState.WAITING:
            self._waiting.append(number)
            return
        if trial.state.is_finished():
            self._running.pop(number, None)
        else:
            entry = self._running.setdefault(number, _Running(self._clock, 0, False))
            entry.wait(self._clock)
        yield trial

    def _queue(self) -> Iterator[Any]:
        """Trials that have left the queue."""
        while self._waiting:
            (trial,) = self._read([self._waiting[0]])
            if trial.state == TrialState.WAITING:
                return
            self._waiting.popleft()
            yield from self._sort(trial)

    def _read(self, numbers: list[int]) -> list[Any]:
        if len(numbers) > FEW:
            trials = self.storage.get_all_trials(self.study_id, deepcopy=False)
            return [trials[number] for number in numbers]
        number_to_id = self.storage.get_trial_id_from_study_id_trial_number
        return [self.storage.get_trial(number_to_id(self.study_id, number)) for number in numbers]
