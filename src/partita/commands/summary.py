"""What is known of a study: the answer, the best candidates, progress, pending trials, cells."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from partita.optimize.result import Checkpoint, History, Result, answer
from partita.policies import optional
from partita.study.events import BEGINNINGS, Kind

from .named import constraints_json
from .shared import finite

if TYPE_CHECKING:
    from partita.study.study import Study

#: Candidates that are listed, and how many are considered: those with the best averages.
SHOWN, CONSIDERED = 5, 500
#: Pending trials that are listed, and cells, the latest and the most played.
LISTED = 20


def summary(study: Study) -> dict[str, Any]:
    """All that is known, as JSON has it; None for what is not known."""
    told, expired = study.n_told, len(study.expired)
    parts: dict[str, Any] = {
        "study": str(study.path),
        "direction": study.direction,
        "policy": type(study.policy).__name__,
        "guarantee": study.guarantee,
        "space": study.space.describe().splitlines(),
        "evaluations": told,
        "pending": study.n_pending,
        "failed": study.n_failed - expired,
        "expired": expired,
        "known_noise": _known_noise(study),
    }
    parts |= dict.fromkeys(("params", "value", "lower", "upper", "certificate", "constraints"))
    if told:
        best = study.recommend()
        parts |= {"params": _plain(best.params), "value": best.mean}
        parts |= {"lower": best.lower, "upper": best.upper, "certificate": study.certificate()}
        parts["constraints"] = constraints_json(study.constraints_at(best.params))
    parts["best"] = _best_candidates(study) if told else []
    parts["progress"] = [
        {"evaluations": c.evaluations, "value": c.mean, "lower": c.lower, "upper": c.upper}
        | {"certificate": c.certificate}
        for c in _checkpoints(study)
    ]
    parts["waiting"] = _waiting(study)
    parts["cells"] = _cells(study)
    return {name: finite(part) for name, part in parts.items()}


def _known_noise(study: Study) -> dict[str, Any] | None:
    """Of how many values the noise is known, and its least and greatest standard deviation."""
    stds = study.trials.finished.stds
    known = stds[~np.isnan(stds)]
    if not len(known):
        return None
    return {"values": len(known), "least": float(known.min()), "greatest": float(known.max())}


def as_result(study: Study) -> Result:
    """The study as the result of a run, to be drawn."""
    best, notes = study.recommend(), _checkpoints(study)
    return Result(
        **answer(best, study.space),
        certificate=notes[-1].certificate,
        guarantee=study.guarantee,
        constraints=study.constraints_at(best.params),
        success=True,
        status=0,
        message=f"The study {study.path}.",
        nfev=study.n_told,
        nfail=study.n_failed,
        nit=study.n_told,
        errors=[],
        seconds=notes[-1].seconds,
        history=History(study.trials.finished, notes),
        direction=study.direction,
        optimizer=study,
    )


def _best_candidates(study: Study) -> list[dict[str, Any]]:
    """Evaluated parameters with the best posterior means, best first.

    With constraints, those whose values met them.
    """
    done = study.trials.finished
    met = study.constraints.met(done.measured)
    if not met.any():
        return []
    told, values = done.units[met], done.values[met]
    sign = -1.0 if study.direction == "minimize" else 1.0
    units, which, counts = np.unique(told, axis=0, return_inverse=True, return_counts=True)
    averages = np.bincount(which.ravel(), weights=values) / counts
    order = np.argsort(-sign * averages, kind="stable")[:CONSIDERED]
    params = [study.space.decode(units[i]) for i in order]
    means = averages[order]
    lower = upper = np.full(len(order), math.nan)
    if optional.has_posterior(study.policy):
        prediction = study.predict(params if study.space.named else np.array(params))
        means, lower, upper = prediction.mean, prediction.lower, prediction.upper
    return [
        {
            "params": _plain(params[i]),
            "value": float(means[i]),
            "lower": float(lower[i]),
            "upper": float(upper[i]),
            "evaluations": int(counts[order[i]]),
        }
        for i in np.argsort(-sign * means, kind="stable")[:SHOWN]
    ]


def _checkpoints(study: Study) -> list[Checkpoint]:
    """What was known at some numbers of values, and what is known now."""
    start = min(study.times(BEGINNINGS).values(), default=0.0)
    notes = [note._replace(seconds=note.seconds - start) for note in study.notes()]
    told = study.n_told
    if told and (not notes or notes[-1].evaluations < told):
        best, now = study.recommend(), time.time() - start
        notes.append(Checkpoint(told, now, best.mean, best.lower, best.upper, study.certificate()))
    return notes


def _waiting(study: Study) -> list[dict[str, Any]]:
    """The latest pending trials, and for how many seconds each has been pending."""
    pending, now = study.trials.pending, time.time()
    if not len(pending):
        return []
    asked = study.times((Kind.ASK, Kind.EXPECT))
    latest = zip(pending.numbers[-LISTED:].tolist(), pending.units[-LISTED:], strict=True)
    return [
        {
            "number": n,
            "params": _plain(study.space.decode(unit)),
            "seconds": now - asked.get(n, now),
        }
        for n, unit in latest
    ]


def _cells(study: Study) -> list[dict[str, Any]]:
    """The most played cells of the cover in the unit cube, if the policy has one."""
    played = sorted(optional.cells(study.policy), key=lambda cell: -cell.count)[:LISTED]
    return [
        {
            "lower": np.asarray(cell.lower).tolist(),
            "upper": np.asarray(cell.upper).tolist(),
            "evaluations": int(cell.count),
        }
        for cell in played
        if cell.count
    ]


def _plain(params: Any) -> Any:
    return params.tolist() if isinstance(params, np.ndarray) else params
