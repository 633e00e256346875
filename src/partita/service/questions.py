"""What can be asked of a study without changing it, by the last part of the address."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from partita.errors import InvalidInput

from . import maps, wire

if TYPE_CHECKING:
    from partita.study import Study

#: Points that one request may predict.
MOST_POINTS = 10_000

Query = Mapping[str, str]


def recommend(study: Study, query: Query) -> dict[str, Any]:
    """The answer, its bounds and the certificate, for a context or with values fixed.

    For the worst context there is only the certificate.
    """
    worst = query.get("context") == "worst"
    context = None if worst else parsed(query, "context")
    fixed = wire.by_place(study, parsed(query, "fixed"))
    best = None if worst and study.contexts.names else study.recommend(context, fixed)
    return {
        **{
            name: None if best is None else getattr(best, name)
            for name in ("params", "mean", "lower", "upper")
        },
        "certificate": study.certificate(context, fixed),
        "guarantee": study.guarantee,
        "told": study.n_told,
    }


def predict(study: Study, params: Any, context: Any) -> dict[str, Any]:
    """The model at some points."""
    if not isinstance(params, list) or not 1 <= len(params) <= MOST_POINTS:
        raise InvalidInput(
            f"params={params!r:.80}: give a JSON list of 1 to {MOST_POINTS:,} points"
        )
    return study.predict(params, context)._asdict()


#: Questions whose answers are JSON.
QUESTIONS: dict[str, Callable[[Study, Query], Any]] = {
    "recommend": recommend,
    "predict": lambda study, query: predict(
        study, parsed(query, "params"), parsed(query, "context")
    ),
    "map": lambda study, query: maps.field(
        study, query.get("x"), query.get("y"), parsed(query, "at")
    ),
    "slices": lambda study, query: maps.slices(study, parsed(query, "at")),
}


def parsed(query: Query, name: str) -> Any:
    """A part of a query that is JSON, or None."""
    text = query.get(name)
    return None if text is None else read(text, name)


def read(text: str | bytes, what: str) -> Any:
    """JSON, refused with what it was to be if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{what} is not JSON: {error!s:.200}") from None
