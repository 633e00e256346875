"""What a study knows, as JSON for the page: never more than a few hundred numbers a picture.

Values are summarised in bins of evaluations, so that a study of a million trials costs the page as
much as one of a thousand.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from partita.optimize.result import Checkpoint
from partita.optimize.trials import FINISHED, PENDING
from partita.optimize.wording import certificate_says, such_held
from partita.policies import optional
from partita.space import Categorical, Float, Integer, Stepped
from partita.study import watching
from partita.study.events import Kind

from .still import Still

if TYPE_CHECKING:
    from partita._types import FloatArray
    from partita.optimize.trials import Trials
    from partita.space import Space
    from partita.study import Study

#: Bins of evaluations, pending trials that are listed, trials among which replicates are counted.
BINS, WAITING, REPLICATED = 100, 20, 20_000
#: Answers that are kept of a study while it is watched.
SAMPLES = 300
#: The certificate is computed again once there are this many times the values, and not at all
#: while the page waits if there are this many cells: each takes some milliseconds.
AGAIN, MOST_CELLS = 1.05, 150
#: A study that was used within this many seconds is running.
RECENT = 60.0


def glance(study: Study, before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A study in a list: from its file, without replaying it.

    `before` is an earlier glance: only what came after it is counted.
    """
    pace, notes, seq = watching.pace(study), study.notes(), watching.head(study)
    fresh = before is None or before["seq"] > seq  # another file is in its place
    counted, told = (0, 0) if fresh or before is None else (before["seq"], before["told"])
    told += watching.n_values(study, counted)
    parts: dict[str, Any] = {
        "seq": seq,
        "direction": study.direction,
        "told": told,
        "state": state_of(told, study.settings.n_evals, pace),
        "rate": pace.rate,
        "last": pace.last,
        "answer": None,
        "certificate": None,
    }
    if notes:
        note = notes[-1]
        parts["answer"] = {"mean": note.mean, "lower": note.lower, "upper": note.upper}
        parts |= {"certificate": note.certificate, "answered": note.evaluations}
    return parts


def state_of(told: int, planned: int | None, pace: watching.Pace) -> str:
    """Whether a study is new, running, idle or finished."""
    if planned is not None and told >= planned:
        return "finished"
    if pace.last is None:
        return "new"
    return "running" if time.time() - pace.last < RECENT else "idle"


@dataclass
class Seen:
    """What is kept of a study while it is watched.

    Attributes
    ----------
    samples
        Answers that were computed, besides those that the study has noted.
    certified
        The number of values at which the certificate was last computed.
    certificate
    """

    samples: deque[Checkpoint] = field(default_factory=lambda: deque(maxlen=SAMPLES))
    certified: int = 0
    certificate: float = math.inf

    def bound(self, study: Study, told: int) -> float:
        """The certificate, computed again if there are many more values than the last time."""
        if not self.certified or not self.certified <= told < AGAIN * self.certified:
            if len(optional.cells(study.policy)) > MOST_CELLS:
                notes = study.notes()
                self.certified = notes[-1].evaluations if notes else 0
                self.certificate = notes[-1].certificate if notes else math.inf
            else:
                self.certified, self.certificate = told, study.certificate()
        return self.certificate


def overview(
    study: Study, seen: Seen, seconds: Sequence[float] = (), prepared: Collection[int] = ()
) -> Any:
    """All that the page of one study shows at once.

    Parameters
    ----------
    study
    seen
        What was kept when it was last shown; it is changed.
    seconds
        The times of the latest requests.
    prepared
        Trials that were prepared for the next client that asks.
    """
    settings, trials, pace = study.settings, study.trials, pace_of(study)
    told, expired = study.n_told, len(study.expired)
    shown: dict[str, Any] = {
        "seq": head_of(study),
        "direction": study.direction,
        "policy": type(study.policy).__name__,
        "guarantee": study.guarantee,
        "delta": settings.delta,
        "seed": study.seed,
        "n_evals": settings.n_evals,
        "tolerance": study.tolerance,
        "expire_after": settings.expire_after,
        "context": list(study.contexts.names),
        "constraints": settings.constraints or [],
        "space": parameters(study.space),
        "arms": study.space.arms is not None,
        "state": state_of(study.n_values, settings.n_evals, pace),
        "rate": pace.rate,
        "last": pace.last,
        "counts": {
            "told": told,
            "values": study.n_values,
            "pending": study.n_pending - len(prepared),
            "failed": study.n_failed - expired,
            "pruned": study.n_pruned,
            "expired": expired,
        },
        "step": float(np.median(seconds)) if seconds else None,
        "noise": noise(study, trials),
        "values": binned(trials, study.direction),
        "best": best_value(trials, study.direction),
        "waiting": waiting(study, trials, prepared),
    }
    return {**shown, **answer(study, seen)}


def pace_of(study: Study | Still) -> watching.Pace:
    """How quickly values come; a run that is over has no pace."""
    return study.pace if isinstance(study, Still) else watching.pace(study)


def head_of(study: Study | Still) -> int:
    """A number that grows with what has happened."""
    return study.head if isinstance(study, Still) else watching.head(study)


def answer(study: Study, seen: Seen) -> dict[str, Any]:
    """The answer now, and what it was over evaluations; nothing where each context has its own."""
    names = ("answer", "certificate", "certified", "certificate_says", "held")
    parts: dict[str, Any] = dict.fromkeys(names)
    parts["answers"] = []
    if not study.n_told or study.contexts.names:
        return parts
    best, told = study.recommend(), study.n_told
    bound = seen.bound(study, told)
    parts["answer"] = {
        "params": best.params,
        "mean": best.mean,
        "lower": best.lower,
        "upper": best.upper,
    }
    parts |= {"certificate": bound, "certified": seen.certified}
    parts["certificate_says"] = certificate_says(bound, study.guarantee)
    parts["held"] = such_held(bound, study.guarantee, study.space.dim)
    shown = bound if seen.certified == told else math.nan
    now = Checkpoint(told, time.time(), best.mean, best.lower, best.upper, shown)
    seen.samples.append(now)
    rows = {row[0]: row for row in (*seen.samples, *study.notes())}
    parts["answers"] = [[n, *row[2:]] for n, row in sorted(rows.items())]
    return parts


# -- values ----------------------------------------------------------------------------------------


def binned(trials: Trials, direction: str) -> dict[str, Any]:
    """Values in at most 100 bins of evaluations: last number, quantiles, and the best so far."""
    values = trials.values[trials.codes == FINISHED]
    n = len(values)
    if not n:
        return {"n": [], "low": [], "middle": [], "high": [], "best": []}
    edges = np.unique(np.linspace(0, n, min(n, BINS) + 1).round().astype(int))
    best = (np.minimum if direction == "minimize" else np.maximum).accumulate(values)
    parts = [values[a:b] for a, b in pairwise(edges)]
    quantiles = [np.quantile(part, [0.1, 0.5, 0.9]).tolist() for part in parts]
    low, middle, high = zip(*quantiles, strict=True)
    return {
        "n": edges[1:],
        "low": list(low),
        "middle": list(middle),
        "high": list(high),
        "best": best[edges[1:] - 1],
    }


def best_value(trials: Trials, direction: str) -> dict[str, Any] | None:
    """The trial with the best value observed, which may owe it to its noise."""
    finished = np.flatnonzero(trials.codes == FINISHED)
    if not len(finished):
        return None
    values = trials.values[finished]
    place = int(finished[values.argmin() if direction == "minimize" else values.argmax()])
    record = trials[place]
    return {"number": record.number, "value": record.value, "params": record.params}


def noise(study: Study, trials: Trials) -> dict[str, Any]:
    """The noise that the model has, and the spread of values at the same parameters."""
    parts: dict[str, Any] = {"learned": None, "spread": None, "replicated": 0}
    if study.n_told and not study.contexts.names:
        parts["learned"] = optional.noise_std(study.policy)
    finished = np.flatnonzero(trials.codes == FINISHED)[-REPLICATED:]
    if len(finished) > 1:
        units, values = trials.units[finished], trials.values[finished]
        _, which, counts = np.unique(units, axis=0, return_inverse=True, return_counts=True)
        which = which.ravel()
        means = np.bincount(which, weights=values) / counts
        free = int((counts - 1).sum())
        if free:
            parts["spread"] = math.sqrt(float(((values - means[which]) ** 2).sum()) / free)
            parts["replicated"] = int((counts > 1).sum())
    return parts


def happenings_of(study: Study | Still, number: int) -> list[watching.Happening]:
    """Every event of one trial; what is not in a file has none."""
    return [] if isinstance(study, Still) else watching.happenings(study, number)


def waiting(study: Study, trials: Trials, prepared: Collection[int]) -> list[dict[str, Any]]:
    """The latest pending trials."""
    places = np.flatnonzero(trials.codes == PENDING)[-WAITING - len(prepared) :].tolist()
    pending = [place for place in places if place not in prepared][-WAITING:]
    now = time.time()
    rows = []
    for place in pending:
        record = trials[place]
        events = happenings_of(study, record.number)
        begun = [e.time for e in events if e.kind in (Kind.ASK, Kind.EXPECT, Kind.ADOPT)]
        seconds = now - begun[-1] if begun else None
        rows.append({"number": record.number, "params": record.params, "seconds": seconds})
    return rows[::-1]


# -- the space -------------------------------------------------------------------------------------


def parameters(space: Space) -> list[dict[str, Any]]:
    """The parameters of a space, for forms and axes."""
    if space.arms is not None:
        return []
    names = space.names or [f"x[{i}]" for i in range(len(space.parameters))]
    rows = []
    for i, (name, parameter) in enumerate(zip(names, space.parameters, strict=True)):
        row: dict[str, Any] = {"name": name, "text": parameter.describe()}
        if isinstance(parameter, Categorical):
            row |= {"kind": "choice", "choices": list(parameter.choices)}
        elif isinstance(parameter, Float | Integer | Stepped):
            kinds = {Float: "real", Integer: "whole", Stepped: "step"}
            row |= {"kind": kinds[type(parameter)], "low": parameter.low, "high": parameter.high}
            row |= {"log": bool(getattr(parameter, "log", False))}
            row |= {"step": getattr(parameter, "step", None)}
        conditions = () if space.conditions is None else space.conditions.each[i]
        row["conditional"] = bool(conditions)
        rows.append(row)
    return rows


def middle(space: Space) -> Any:
    """Parameters in the middle of a space."""
    unit: FloatArray = space.snap(np.full((1, space.dim), 0.5))[0]
    return space.decode(unit)
