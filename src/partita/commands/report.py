"""What `partita show` says of a study: the answer, the best candidates, progress, cells."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from partita.optimize.result import Checkpoint, History, Result, answer, value_text
from partita.study.events import BEGINNINGS, Kind

if TYPE_CHECKING:
    from partita.study.study import Study

#: Candidates that are shown, and how many are considered: those with the best averages.
SHOWN, CONSIDERED = 5, 500
#: Pending trials that are listed, and cells, the latest and the most played.
LISTED = 20


def summary(study: Study) -> dict[str, Any]:
    """All that is shown, as JSON has it; what is not known is None."""
    trials = study.trials
    policy = study.policy
    told = study.n_told
    found: dict[str, Any] = {
        "study": str(study.path),
        "direction": study.direction,
        "policy": type(policy).__name__,
        "guarantee": study.guarantee,
        "space": study.space.describe().splitlines(),
        "evaluations": told,
        "pending": study.n_pending,
        "failed": study.n_failed - len(study.expired),
        "expired": len(study.expired),
        "params": None,
        "value": None,
        "lower": None,
        "upper": None,
        "certificate": None,
    }
    if told:
        best = study.recommend()
        found |= {"params": _plain(best.params), "value": best.mean}
        found |= {"lower": best.lower, "upper": best.upper, "certificate": study.certificate()}
    now = time.time()
    found["best"] = best_candidates(study) if told else []
    found["progress"] = [
        {"evaluations": c.evaluations, "value": c.mean, "lower": c.lower, "upper": c.upper}
        | {"certificate": c.certificate}
        for c in checkpoints(study)
    ]
    asked = study.times((Kind.ASK, Kind.EXPECT)) if len(trials.pending) else {}
    waiting = trials.pending
    found["waiting"] = [
        {
            "number": n,
            "params": _plain(study.space.decode(unit)),
            "seconds": now - asked.get(n, now),
        }
        for n, unit in zip(waiting.numbers[-LISTED:].tolist(), waiting.units[-LISTED:], strict=True)
    ]
    found["cells"] = cells(study)
    return {name: _finite(value) for name, value in found.items()}


def best_candidates(study: Study) -> list[dict[str, Any]]:
    """Evaluated parameters with the best posterior means, best first."""
    done = study.trials.finished
    sign = -1.0 if study.direction == "minimize" else 1.0
    units, which, counts = np.unique(done.units, axis=0, return_inverse=True, return_counts=True)
    averages = np.bincount(which.ravel(), weights=done.values) / counts
    order = np.argsort(-sign * averages, kind="stable")[:CONSIDERED]
    params = [study.space.decode(units[i]) for i in order]
    means = averages[order]
    lower = upper = np.full(len(order), math.nan)
    if hasattr(study.policy, "predict"):
        known = study.predict(params if study.space.named else np.array(params))
        means, lower, upper = known.mean, known.lower, known.upper
    ranks = np.argsort(-sign * means, kind="stable")[:SHOWN]
    return [
        {
            "params": _plain(params[i]),
            "value": float(means[i]),
            "lower": _finite(float(lower[i])),
            "upper": _finite(float(upper[i])),
            "evaluations": int(counts[order[i]]),
        }
        for i in ranks
    ]


def checkpoints(study: Study) -> list[Checkpoint]:
    """What was known after so many values, and what is known now."""
    start = min(study.times(BEGINNINGS).values(), default=0.0)
    notes = [note._replace(seconds=note.seconds - start) for note in study.notes()]
    told = study.n_told
    if told and (not notes or notes[-1].evaluations < told):
        best = study.recommend()
        notes.append(
            Checkpoint(
                told, time.time() - start, best.mean, best.lower, best.upper, study.certificate()
            )
        )
    return notes


def cells(study: Study) -> list[dict[str, Any]]:
    """The most played cells of the cover in the unit cube, if the policy has one."""
    cover = getattr(study.policy, "cover", None)
    if cover is None:
        return []
    played = sorted(cover, key=lambda cell: -cell.count)[:LISTED]
    return [
        {
            "lower": np.asarray(cell.lower).tolist(),
            "upper": np.asarray(cell.upper).tolist(),
            "evaluations": int(cell.count),
        }
        for cell in played
        if cell.count
    ]


def result(study: Study) -> Result:
    """The study as the result of a run, to be drawn."""
    best, notes = study.recommend(), checkpoints(study)
    return Result(
        **answer(best, study.space),
        certificate=notes[-1].certificate,
        guarantee=study.guarantee,
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


def text(found: dict[str, Any]) -> str:
    """The summary for a reader."""
    states = [f"{found['evaluations']:,} evaluations"]
    states += [f"{found[k]:,} {k}" for k in ("pending", "failed", "expired") if found[k]]
    lines = [
        f"{found['study']}: {found['direction']}, {found['policy']}",
        ", ".join(states),
        "",
        *(f"  {line}" for line in found["space"]),
    ]
    if found["params"] is None:
        return "\n".join([*lines, "", "nothing has been told yet", ""])
    lines += ["", "recommended", f"  {_params(found['params'])}", f"  value {_known(found)}"]
    bound = found["certificate"]
    if bound is not None:
        lines.append(f"  certificate {bound:.4g}: nowhere is it better by more")
    lines += ["", "best candidates (posterior mean, bounds, evaluations)"]
    lines += [
        f"  {_known(row)}, {row['evaluations']} ×: {_params(row['params'])}"
        for row in found["best"]
    ]
    lines += ["", "progress (evaluations, value at the best point, certificate)"]
    for row in found["progress"][-8:]:
        bound = row["certificate"]
        shown = "" if bound is None or not math.isfinite(bound) else f", certificate {bound:.4g}"
        lines.append(f"  {row['evaluations']:>9,}  {_known(row)}{shown}")
    if found["cells"]:
        lines += ["", "most played cells of the unit cube (corners, evaluations)"]
        for cell in found["cells"][:SHOWN]:
            low, high = (", ".join(f"{v:.4g}" for v in cell[k]) for k in ("lower", "upper"))
            lines.append(f"  [{low}] to [{high}], {cell['evaluations']:,}")
    return "\n".join([*lines, ""])


def _known(row: dict[str, Any]) -> str:
    low, high = row["lower"], row["upper"]
    if low is None or high is None or not math.isfinite(high - low):
        return f"{row['value']:.6g}"
    return f"{row['value']:.6g}, between {low:.6g} and {high:.6g}"


def _params(params: Any) -> str:
    if isinstance(params, dict):
        return ", ".join(f"{name} = {value_text(value)}" for name, value in params.items())
    return f"[{', '.join(map(value_text, params))}]"


def _plain(params: Any) -> Any:
    return params.tolist() if isinstance(params, np.ndarray) else params


def _finite(value: Any) -> Any:
    """The same without infinities and NaN, which JSON does not have."""
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list):
        return list(map(_finite, value))
    return None if isinstance(value, float) and not math.isfinite(value) else value
