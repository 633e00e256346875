"""Trials as pages of a table, sorted and filtered before they are sent."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from partita.errors import InvalidInput, NotPending
from partita.optimize.trials import STATES

from .views import happenings_of

if TYPE_CHECKING:
    from partita.optimize.trials import Record, Trials
    from partita.study import Study

#: Trials on a page unless another number is asked for, and at most.
PAGE, MOST = 100, 5000


def table(study: Study, query: Mapping[str, str], prepared: Collection[int] = ()) -> dict[str, Any]:
    """A page of trials.

    The query may have `limit`, `after` (the `next` of the page before), `sort` ("number", "value"
    or a parameter), `order` ("asc" or "desc"), `state`, `least` and `most` (of values). Trials that
    were prepared are told from those that someone asked for.
    """
    known = ("limit", "after", "sort", "order", "state", "least", "most")
    unknown = [name for name in query if name not in known]
    if unknown:
        raise InvalidInput(f"{unknown[0]!r:.60} is not understood: give {', '.join(known)}")
    limit = min(_whole(query, "limit", PAGE), MOST)
    first = _whole(query, "after", 0)
    trials = study.trials
    places = _sorted(trials, _filtered(trials, query), query)
    shown = places[first : first + limit]
    following = first + len(shown)
    named = {**dict.fromkeys(study.expired, "expired"), **dict.fromkeys(prepared, "prepared")}
    return {
        "trials": [as_row(trials[int(place)], named) for place in shown],
        "next": following if following < len(places) else None,
        "total": len(places),
    }


def as_row(record: Record, named: Mapping[int, str]) -> dict[str, Any]:
    """A trial as the wire has it; `named` has more exact words for the states of some."""
    state = named.get(record.number, record.state)
    row = {"number": record.number, "params": record.params, "value": record.value, "state": state}
    if record.std is not None:
        row["std"] = record.std
    if record.count > 1:
        row["count"] = record.count
    return row if record.values is None else {**row, "values": record.values}


def detail(study: Study, number: int, prepared: Collection[int] = ()) -> dict[str, Any]:
    """All that is known of one trial."""
    trials = study.trials
    if not 0 <= number < len(trials):
        raise NotPending(f"there is no trial {number}: numbers go from 0 to {len(trials) - 1}")
    named = {**dict.fromkeys(study.expired, "expired"), **dict.fromkeys(prepared, "prepared")}
    row = as_row(trials[number], named)
    row["events"] = [
        {"kind": event.kind, "time": event.time, "value": event.value}
        for event in happenings_of(study, number)
    ]
    row["reports"] = study.reports(number) if row["state"] not in ("pending", "prepared") else {}
    same = (trials.units == trials.units[number]).all(axis=1)
    row["same"] = trials.numbers[same][:50].tolist()
    return row


def _whole(query: Mapping[str, str], name: str, usual: int) -> int:
    text = query.get(name)
    if text is None:
        return usual
    if not text.isascii() or not text.isdecimal() or len(text) > 15:
        raise InvalidInput(f"{name}={text!r:.60}: give a whole number of at least 0")
    return int(text)


def _number(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"{name}={text!r:.60}: give a number") from None


def _filtered(trials: Trials, query: Mapping[str, str]) -> Any:
    there = np.ones(len(trials), dtype=bool)
    state = query.get("state")
    if state is not None:
        if state not in STATES:
            raise InvalidInput(f"state={state!r:.60}: give one of {', '.join(STATES)}")
        there &= trials.codes == STATES.index(state)
    for name, compare in (("least", np.greater_equal), ("most", np.less_equal)):
        if name in query:
            bound = _number(query[name], name)
            there &= compare(trials.values, bound)
    return np.flatnonzero(there)


def _sorted(trials: Trials, places: Any, query: Mapping[str, str]) -> Any:
    sort, order = query.get("sort", "number"), query.get("order", "asc")
    if order not in ("asc", "desc"):
        raise InvalidInput(f'order={order!r:.60}: give "asc" or "desc"')
    if sort == "number":
        return places if order == "asc" else places[::-1]
    keys = trials.values[places] if sort == "value" else _keys(trials, places, sort)
    rising = np.argsort(keys if order == "asc" else -keys, kind="stable")  # NaN is last
    return places[rising]


def _keys(trials: Trials, places: Any, name: str) -> Any:
    """The coordinate by which a parameter is sorted: choices by their order in the space."""
    space = trials.space
    names = list(space.names or (f"x[{i}]" for i in range(len(space.parameters))))
    if name not in names:
        raise InvalidInput(
            f"sort={name!r:.60}: give number, value or a parameter: {', '.join(names)}"
        )
    number = names.index(name)
    widths = [parameter.width for parameter in space.parameters]
    first = sum(widths[:number])
    part = trials.units[places][:, first : first + widths[number]]
    if widths[number] == 0:
        return np.zeros(len(places))
    return part[:, 0] if widths[number] == 1 else part.argmax(axis=1).astype(float)
