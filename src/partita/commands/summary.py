"""A summary of a study: recommended point, best candidates, progress, pending trials, cells."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from partita.optimize.numbers import SAME_POINT
from partita.optimize.wording import such_held
from partita.policies import optional
from partita.study.events import Kind
from partita.study.looking import checkpoints

from .named import constraints_json
from .shared import finite

if TYPE_CHECKING:
    from partita.optimize.trial import Suggestion
    from partita.study.study import Study

#: The number of candidates listed, and the number considered: those with the best averages.
SHOWN, CONSIDERED = 5, 500
#: The numbers of latest pending trials, and of cells with the most evaluations, that are listed.
LISTED = 20


def summary(study: Study, context: dict[str, Any] | None = None) -> dict[str, Any]:
    """The whole summary as JSON data, of a context if there are some; None for unknown values."""
    told, expired = study.n_told, len(study.expired)
    parts: dict[str, Any] = {
        "study": str(study.path),
        "direction": study.direction,
        "policy": type(study.policy).__name__,
        "guarantee": study.guarantee,
        "seed": study.seed,
        "space": study.space.describe().splitlines(),
        "evaluations": told,
        "pending": study.n_pending,
        "failed": study.n_failed - expired,
        "pruned": study.n_pruned,
        "expired": expired,
        "known_noise": _known_noise(study),
        "contexts": list(study.contexts.names),
        "context": context,
    }
    unknown = ("params", "value", "lower", "upper", "certificate", "certificates_held")
    parts |= dict.fromkeys((*unknown, "constraints"))
    parts["best"] = []
    if told and (context is not None or not study.contexts.names):
        best = study.recommend(context)
        parts |= {"params": _plain(best.params), "value": best.mean}
        bound = study.certificate(context)
        parts |= {"lower": best.lower, "upper": best.upper, "certificate": bound}
        parts["certificates_held"] = such_held(bound, study.guarantee, study.space.dim)
        if context is None:
            parts["constraints"] = constraints_json(study.constraints_at(best.params))
            parts["best"] = _best_candidates(study, best)
    parts["progress"] = [
        {"evaluations": c.evaluations, "value": c.mean, "lower": c.lower, "upper": c.upper}
        | {"certificate": c.certificate}
        for c in checkpoints(study)
    ]
    parts["waiting"] = _waiting(study)
    parts["cells"] = _cells(study)
    return {name: finite(part) for name, part in parts.items()}


def _known_noise(study: Study) -> dict[str, Any] | None:
    """The number of values with known noise, and their smallest and largest standard deviation."""
    finished = study.trials.finished
    stds = finished.stds[finished.counts == 1]  # of means it is how values differ
    known = stds[~np.isnan(stds)]
    if not len(known):
        return None
    return {"values": len(known), "least": float(known.min()), "greatest": float(known.max())}


def _best_candidates(study: Study, answer: Suggestion) -> list[dict[str, Any]]:
    """The answer, then other evaluated parameters with the best means less one deviation.

    Where the policy has no posterior, those with the best averages. With constraints, those whose
    values met them.
    """
    done = study.trials.finished
    met = study.constraints.met(done.measured)
    if not met.any():
        return []
    told, values = done.units[met], done.values[met]
    sign = -1.0 if study.direction == "minimize" else 1.0
    units, which, counts = np.unique(told, axis=0, return_inverse=True, return_counts=True)
    averages = np.bincount(which.ravel(), weights=values) / counts
    first = study.space.encode(answer.params)
    own = np.asarray(np.abs(units - first).max(axis=1) <= SAME_POINT)
    rows = [_candidate(answer.params, answer[2:], int(counts[own].sum()))]
    order = np.argsort(-sign * averages, kind="stable")
    order = order[~own[order]][:CONSIDERED]
    params = [study.space.decode(units[i]) for i in order]
    means = averages[order]
    lower = upper = np.full(len(order), math.nan)
    worth = sign * means
    if len(order) and optional.has_posterior(study.policy):
        known = study.predict(params if study.space.named else np.array(params))
        means, lower, upper = known.mean, known.lower, known.upper
        worth = sign * means - known.std
    for i in np.argsort(-worth, kind="stable")[: SHOWN - 1]:
        bounds = (float(means[i]), float(lower[i]), float(upper[i]))
        rows.append(_candidate(params[i], bounds, int(counts[order[i]])))
    return rows


def _candidate(params: Any, known: Sequence[float], evaluations: int) -> dict[str, Any]:
    value, lower, upper = known
    return {
        "params": _plain(params),
        "value": value,
        "lower": lower,
        "upper": upper,
        "evaluations": evaluations,
    }


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
    """The cells of the policy's cover with the most evaluations, if it has a cover."""
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
