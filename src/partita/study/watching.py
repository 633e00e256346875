"""What happened to a study lately, read from its file without replaying it; keys of requests."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from .events import BEGINNINGS, FIRST_TIME, LAST_TIME, Event, Kind, as_data

if TYPE_CHECKING:
    from .replica import Change
    from .study import Study

#: Events by which the pace of a study is measured.
PACED = 200
#: The newest events among which keys are looked for.
KEYED = 200_000
#: The longest key, in characters.
LONGEST_KEY = 200


class Pace(NamedTuple):
    """Values per second over the latest ones, and the time of the last event of any kind."""

    rate: float
    last: float | None


class Keyed(NamedTuple):
    """An event with a key: what happened to which trial, its parameters, how many times."""

    seq: int
    kind: str
    trial: int
    params: Any
    key: str
    times: int | None


class Happening(NamedTuple):
    """An event of one trial: its kind, its time in seconds since 1970, and its value."""

    seq: int
    kind: str
    time: float
    value: float | None


def marked(change: Change, key: str) -> Change:
    """A transaction whose events carry a key."""
    mark = as_data({"key": key}) or ""

    def with_key(event: Event) -> Event:
        data = mark if event.data is None else f"{event.data[:-1]},{mark[1:]}"
        return event._replace(data=data)

    return change._replace(
        log=lambda event: change.log(with_key(event)),
        log_all=lambda events: change.log_all([with_key(event) for event in events]),
    )


def head(study: Study) -> int:
    """The number of the last event in the file, from any process."""
    number = study.look(lambda store: store.head()).partition(" ")[0]
    return int(number) if number.isdecimal() else 0


def pace(study: Study) -> Pace:
    """How quickly values have come lately."""
    kinds = (Kind.TELL, Kind.ADD)
    rows = study.look(
        lambda store: store.rows(
            f"SELECT time, data FROM events WHERE kind IN (?, ?) ORDER BY seq DESC LIMIT {PACED}",
            kinds,
        )
    )
    events = [(time, _count(data)) for time, data in rows if isinstance(time, float)]
    times = [time for time, _ in events]
    latest = study.look(
        lambda store: store.rows("SELECT time FROM events ORDER BY seq DESC LIMIT 1")
    )
    last = latest[0][0] if latest and isinstance(latest[0][0], float) else None
    span = max(times) - min(times) if len(times) > 1 else 0.0
    number = sum(count for _, count in events[:-1])  # those after the oldest event
    return Pace(number / span if span > 0.0 else 0.0, last)


def n_values(study: Study, after: int = 0) -> int:
    """The number of values in the log after an event, read from the file and not by a replay.

    A mean of several, such as a part of a plan's row, counts as that many.
    """
    where = "FROM events WHERE seq > ? AND kind IN (?, ?)"
    means = "AND data LIKE '%\"count\":%'"
    given = (after, Kind.TELL, Kind.ADD)
    total = study.look(lambda store: store.rows(f"SELECT count(*) {where}", given))
    rows = study.look(lambda store: store.rows(f"SELECT data {where} {means}", given))
    return int(total[0][0]) + sum(_count(data) - 1 for (data,) in rows)


def _count(data: Any) -> int:
    """How many values the value of an event is the mean of, by the event's data."""
    if not isinstance(data, str) or '"count":' not in data:
        return 1
    try:
        count = json.loads(data).get("count", 1)
    except (ValueError, AttributeError):  # a damaged file: `check` says so
        return 1
    return count if type(count) is int and count >= 1 else 1


def happenings(study: Study, number: int) -> list[Happening]:
    """Every event of one trial, in order."""
    query = (
        f"SELECT seq, kind, min(max(time, {FIRST_TIME}), {LAST_TIME}), value FROM events "
        "WHERE trial = ? ORDER BY seq LIMIT 1000"
    )
    types = ((int,), (str,), (float,), (float, type(None)))
    rows = study.look(lambda store: store.typed(query, types, (number,)))
    return [Happening._make(row) for row in rows]


def keys(study: Study, latest: int = KEYED) -> list[Keyed]:
    """The events that carry keys, among the newest ones, in order."""
    query = (
        "SELECT seq, kind, trial, params, data FROM events "
        "WHERE seq > ? AND data LIKE '%\"key\":%' ORDER BY seq"
    )
    types = ((int,), (str,), (int,), (str, type(None)), (str,))
    first = max(head(study) - latest, 0)
    rows = study.look(lambda store: store.typed(query, types, (first,)))
    found = []
    for seq, kind, trial, params, data in rows:
        fields = json.loads(data)
        key, count = fields.get("key"), fields.get("count")
        if isinstance(key, str):
            begun = kind in BEGINNINGS and params is not None
            given = json.loads(params) if begun else None
            found.append(Keyed(seq, kind, trial, given, key, count))
    return found
