"""A study as the result of a run: what it knows, to be drawn or shown."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from partita._types import FloatArray
from partita.optimize.looking import check_drawable, result_of
from partita.optimize.result import Checkpoint, Result
from partita.optimize.spans import Spans
from partita.optimize.trials import FAILED, PENDING

from .events import BEGINNINGS, ENDINGS, Kind

if TYPE_CHECKING:
    from .study import Study


def as_result(study: Study) -> Result:
    """The study as the result of a run; refused while there are no values."""
    name = f"The study {study.path}"
    check_drawable(study, name)
    return result_of(study, name, checkpoints(study), spans(study))


def checkpoints(study: Study) -> list[Checkpoint]:
    """What was known at some numbers of values, and what is known now."""
    start = min(study.times(BEGINNINGS).values(), default=0.0)
    notes = [note._replace(seconds=note.seconds - start) for note in study.notes()]
    told = study.n_told
    one_answer = not study.contexts.names
    if told and one_answer and (not notes or notes[-1].evaluations < told):
        best, now = study.recommend(), time.time() - start
        notes.append(Checkpoint(told, now, best.mean, best.lower, best.upper, study.certificate()))
    return notes


def spans(study: Study) -> Spans:
    """When the trials that were asked for or expected were under way; values added have no time."""
    begun, ended = study.times((Kind.ASK, Kind.EXPECT)), study.times(ENDINGS)
    trials = study.trials
    settled = trials.codes != PENDING
    numbers = trials.numbers[settled]
    start = min(study.times(BEGINNINGS).values(), default=0.0)

    def seconds(moments: Mapping[int, float]) -> FloatArray:
        return np.array([moments.get(n, np.nan) - start for n in numbers.tolist()], dtype=float)

    return Spans.of(numbers, seconds(begun), seconds(ended), trials.codes[settled] == FAILED)
