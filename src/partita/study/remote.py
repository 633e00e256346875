"""`connect`: a study that a service keeps, with the methods of `Study`."""

from __future__ import annotations

import json
import math
import os
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal, overload

import numpy as np

from partita._checks import NotGiven, as_number, seed_or_drawn
from partita._types import FloatArray, Prediction
from partita.errors import InvalidInput
from partita.optimize.bulk import is_many
from partita.optimize.constraints import Constraints, Known
from partita.optimize.contexts import Contexts
from partita.optimize.result import Checkpoint
from partita.optimize.trial import Suggestion, Trial, by_place
from partita.optimize.trials import Trials
from partita.optimize.values import Observation
from partita.space import Space

from .http import Line, address_of, path_of
from .remote_values import as_float, as_plain, as_text, number_of, table_of
from .settings import Settings

#: Trials that are read at once, and points that are predicted at once.
PAGE, POINTS = 5000, 5000
#: Seconds for which counts of trials are taken as they were last seen.
COUNTED = 1.0


def connect(
    url: str,
    *,
    token: str | None = None,
    space: Any = None,
    patience: float = 60.0,
    **settings: Any,
) -> RemoteStudy:
    """A study that `partita serve` keeps on this or another machine, with the methods of `Study`.

    Several threads, processes and machines may use it at the same time. A request that was not
    answered, because the service was restarted or the network failed, is sent again under the same
    key, so that it happens once.

    Parameters
    ----------
    url
        Such as "http://host:8420/tune", with the name of the study at its end. Without a name it is
        the only study that the service has.
    token
        The one that `partita serve` printed, if it needs one. By default, that of the environment
        variable PARTITA_TOKEN.
    space, settings
        As for `Study.open`: the study is created if there is none of this name, and must have the
        same settings if there is.
    patience
        Seconds for which to send a request again while the service cannot be reached.

    Examples
    --------
    >>> import partita as pt
    >>> study = pt.connect("http://host:8420/tune", token="...")  # doctest: +SKIP
    >>> trial = study.ask()  # doctest: +SKIP
    >>> study.tell(trial, 0.31)  # doctest: +SKIP
    """
    parts, name = address_of(url)
    seconds = as_number(patience)
    if not 0.0 <= seconds < math.inf:
        raise InvalidInput(f"patience={patience!r}: give a number of seconds, at least 0")
    line = Line(parts, token or os.environ.get("PARTITA_TOKEN"), seconds)
    if space is not None:
        if name is None:
            raise InvalidInput(f"{url!r}: give the name of the new study, as in {url}/tune")
        line.post("/studies", _wanted(name, space, settings))
    elif settings:
        raise InvalidInput(f"{', '.join(settings)}: settings are for a new study, give its space")
    return RemoteStudy(line, name or _only(line))


def _wanted(name: str, space: Any, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What is posted for a study, in the words of the wire."""
    given = {k: v for k, v in settings.items() if not isinstance(v, NotGiven)}
    if "seed" in given and given["seed"] is None:
        given["seed"] = seed_or_drawn(None)
    if given.get("feasible") is not None or callable(given.get("policy")):
        raise InvalidInput(
            "feasible, and a policy of your own, are functions, which cannot be sent to a "
            "service. Leave them out, or use a study in a file"
        )
    unknown = [k for k in given if k not in Settings.__dataclass_fields__ and k != "feasible"]
    if unknown:
        raise InvalidInput(f"{', '.join(unknown)}: there is no such setting of a study")
    context = given.get("context")
    if isinstance(context, Mapping):
        from partita.optimize.contexts import read_contexts
        from partita.space import as_space

        both = read_contexts(as_space(space), context)
        space, given["context"] = both.space, list(both.names)
    stored = Settings.of({"space": space, **given})
    names = [k for k, v in given.items() if v is not None and k != "feasible"]
    posted = {k: getattr(stored, k) for k in names}
    return {"name": name, "space": json.loads(stored.space), **posted}


def _only(line: Line) -> str:
    """The name of the only study of a service."""
    names = [row["id"] for row in line.get("/studies")["studies"]]
    if len(names) == 1:
        return str(names[0])
    there = f"it has {', '.join(names[:10])}" if names else "it has none: give a space as well"
    raise InvalidInput(f"{line.base}: give the name of a study, {line.base}/NAME; {there}")


@dataclass(frozen=True)
class RemotePolicy:
    """The policy of a study that a service keeps: its name and what its bounds promise."""

    name: str
    guarantee: str
    delta: float
    #: The service refuses means where its policy cannot use them.
    takes_count: bool = True

    def certificate(self) -> float:
        """Not here: the study has it."""
        raise InvalidInput("the policy is on the service: use study.certificate()")

    def fail(self, x: object) -> None:
        """Not here: the study has it."""
        raise InvalidInput("the policy is on the service: use study.fail(trial)")


class RemoteStudy:
    """A study that a service keeps. Use `connect` to get one.

    `prune` cancels a trial, and `should_prune` of its trials is always False: a service does not
    hand out what other trials reported.

    Attributes
    ----------
    path
        The address.
    settings
        The settings of the study.
    """

    def __init__(self, line: Line, name: str) -> None:
        self._line, self._name = line, name
        self.path = f"{line.base}/{name}"
        shown = line.get(path_of(name))
        fields = Settings.__dataclass_fields__
        kept = {k: v for k, v in shown.items() if k in fields and k != "space" and v is not None}
        self.settings = Settings(space=json.dumps(shown["space"]), **kept)
        self.space = Space.from_json(self.settings.space)
        self.contexts = Contexts(self.space, tuple(self.settings.context or ()))
        self.constraints = Constraints(self.settings.constraints, self.space)
        self.direction, self.seed = self.settings.direction, self.settings.seed
        self.guarantee = str(shown["guarantee"])
        self.policy: Any = RemotePolicy(
            str(shown["policy_class"]), self.guarantee, self.settings.delta
        )
        #: Nothing: trials of a client that was killed expire.
        self.adopted: tuple[Trial, ...] = ()
        self._counts: dict[str, int] = shown["counts"]
        self._counted = time.monotonic()

    # -- asking and telling --------------------------------------------------------------------

    def ask(
        self,
        count: int | None = None,
        *,
        context: Mapping[str, Any] | None = None,
        fixed: Mapping[Any, Any] | None = None,
    ) -> Any:
        """The next trial to evaluate, or a list of `count` trials: see `Optimizer.ask`."""
        body = {"count": 1 if count is None else count, "context": context, "fixed": fixed}
        trials = [self._trial(row) for row in self._act("ask", body)["trials"]]
        return trials[0] if count is None else trials

    def expect(self, params: Any, context: Mapping[str, Any] | None = None) -> Trial:
        """A new trial at parameters that you chose and are evaluating."""
        (row,) = self._act("ask", {"params": as_plain(params), "context": context})["trials"]
        return self._trial(row)

    def plan(self, n: int) -> list[Trial]:
        """Trials to evaluate until the next answer, each `trial.count` times: see `Optimizer`."""
        return [self._trial(row) for row in self._act("ask", {"plan": as_plain(n)})["trials"]]

    def tell(
        self,
        trial: Trial | int,
        value: Any = None,
        std: float | None = None,
        *,
        count: int | None = None,
        values: Any = None,
    ) -> None:
        """Report the value of a trial, pending or expired: the trial itself, or its number.

        `count` and `values` are for several values at once: see `Optimizer.tell`.
        """
        if isinstance(value, Observation):
            std = value.std if std is None else std
            count = value.count if value.count > 1 and count is None else count
            value = value.value if value.values is None else self._named(value)
        body = {
            "number": number_of(trial),
            "value": as_plain(value),
            "std": as_plain(std),
        }
        self._act("tell", {**body, "count": as_plain(count), "values": as_plain(values)})

    def _named(self, seen: Observation) -> dict[str, float]:
        """A value with those of constrained quantities, by name."""
        named = self.constraints.named(seen.values) or {}
        return {"loss" if "loss" not in named else "value": seen.value, **named}

    def cancel(self, trial: Trial | int) -> None:
        """Cancel a trial whose evaluation was abandoned. An expired one stays expired."""
        self._act("cancel", {"number": number_of(trial)})

    def fail(self, trial: Trial | int) -> None:
        """Cancel a trial whose evaluation failed, so that it is learned where that happens."""
        self._act("cancel", {"number": number_of(trial), "failed": True})

    def prune(self, trial: Trial | int) -> bool:
        """Cancel a trial that ended early; the model learns nothing from its reports."""
        self.cancel(trial)
        return False

    def add(
        self,
        params: Any,
        value: Any,
        std: Any = None,
        context: Any = None,
        *,
        count: Any = None,
    ) -> Any:
        """Report a value known from elsewhere, or many at once: see `Optimizer.add`."""
        body = {
            "params": as_plain(params),
            "value": as_plain(value),
            "std": as_plain(std),
        }
        body |= {"context": context, "count": as_plain(count)}
        numbers = self._act("add", body)["numbers"]
        return numbers if is_many(params, value, self.space) else numbers[0]

    def hold(self, trial: Trial) -> None:
        """Keep a trial pending although it is not being evaluated."""

    def _act(self, act: str, body: Mapping[str, Any]) -> Any:
        path = f"{path_of(self._name, act)}?counts"
        answer = self._line.post(path, body, uuid.uuid4().hex)
        self._counts, self._counted = answer["counts"], time.monotonic()
        return answer

    def _trial(self, row: Mapping[str, Any]) -> Trial:
        params, context = row["params"], row.get("context")
        if not self.space.named:
            params = np.array(params, dtype=float)
        whole = {**params, **context} if context else params
        unit, count = self.space.encode(whole), row.get("count", 1)
        return Trial(row["number"], params, unit, context=context, count=count)

    @contextmanager
    def running(self) -> Iterator[RemoteStudy]:
        """The study itself, for one run of this process."""
        yield self

    def check(self, space: Any = None, **settings: Any) -> None:
        """Raise an error if a space, or settings of `Study.open`, differ from the study's."""
        given = {name: value for name, value in settings.items() if value is not None}
        functions = {"feasible": None, "policy": None}
        self.settings.check_same({**functions, "space": space, **given}, self.path)

    # -- answers -------------------------------------------------------------------------------

    @overload
    def recommend(
        self, context: Mapping[str, Any] | None = None, fixed: Mapping[Any, Any] | None = None
    ) -> Suggestion: ...

    @overload
    def recommend(
        self, context: Sequence[Mapping[str, Any]], fixed: Mapping[Any, Any] | None = None
    ) -> list[Suggestion]: ...

    def recommend(self, context: Any = None, fixed: Mapping[Any, Any] | None = None) -> Any:
        """The best parameters by what is known: see `Optimizer.recommend`.

        For a list of contexts, a request each.
        """
        if isinstance(context, list | tuple):
            return [self.recommend(one, fixed) for one in context]
        shown = self._recommended(context, fixed)
        params = shown["params"]
        if not self.space.named:
            params = np.array(params, dtype=float)
        bounds = (as_float(shown[name]) for name in ("mean", "lower", "upper"))
        return Suggestion(params, by_place(params), *bounds)

    def certificate(
        self, context: Mapping[str, Any] | None = None, fixed: Mapping[Any, Any] | None = None
    ) -> float:
        """A bound on how much better others can be: see `Optimizer.certificate`."""
        if self.contexts.names and context is None and fixed is None:
            query = {"context": "worst"}
            shown = self._line.get(path_of(self._name, "recommend"), query)
            return as_float(shown["certificate"], math.inf)
        return as_float(self._recommended(context, fixed)["certificate"], math.inf)

    def _recommended(self, context: Any, fixed: Any) -> Any:
        query = {"context": as_text(context), "fixed": as_text(fixed)}
        return self._line.get(path_of(self._name, "recommend"), query)

    def constraints_at(self, params: Any) -> dict[str, Known]:
        """Nothing: what is known of constrained quantities stays on the service."""
        return {}

    def predict(self, params: Sequence[Any] | FloatArray, context: Any = None) -> Prediction:
        """The posterior of the function at n points: mean, std, lower, upper, each (n,)."""
        points = as_plain(params)
        parts = []
        if context is not None:
            points, context = self.contexts.joined_rows(points, context, "predict"), None
        for first in range(0, max(len(points), 1), POINTS):
            body = {"params": points[first : first + POINTS], "context": context}
            parts.append(self._line.post(path_of(self._name, "predict"), body))
        columns = (
            np.array([as_float(v) for part in parts for v in part[name]])
            for name in Prediction._fields
        )
        return Prediction(*columns)

    @property
    def trials(self) -> Trials:
        """All trials so far: a sequence of records, with numbers, values and states as arrays."""
        rows: list[Any] = []
        after: int | None = 0
        while after is not None:
            query = {"limit": PAGE, "after": after}
            page = self._line.get(path_of(self._name, "trials"), query)
            rows += page["trials"]
            after = page["next"]
        return table_of(self.space, rows, self.constraints.names)

    @property
    def n_told(self) -> int:
        """The number of values reported, by `tell` and `add`, at most a second ago."""
        return self._count("told")

    @property
    def n_values(self) -> int:
        """The same, with the values behind a mean counted one by one."""
        return self._count("values")

    @property
    def n_failed(self) -> int:
        """The number of trials that were cancelled, or expired and have no value since."""
        return self._count("failed")

    @property
    def n_pruned(self) -> int:
        """How many trials were ended early."""
        return self._count("pruned")

    @property
    def n_pending(self) -> int:
        """The number of trials that have not ended."""
        return self._count("pending")

    def _count(self, state: str) -> int:
        if time.monotonic() - self._counted > COUNTED:
            self._counts = self._line.get(path_of(self._name))["counts"]
            self._counted = time.monotonic()
        return int(self._counts[state])

    @property
    def tolerance(self) -> float | None:
        """The certificate that is small enough for you, which pages show: see `Study`."""
        shown = self._line.get(path_of(self._name))["tolerance"]
        return None if shown is None else float(shown)

    @tolerance.setter
    def tolerance(self, tolerance: float | None) -> None:
        self._line.post(path_of(self._name, "tolerance"), {"tolerance": as_plain(tolerance)})

    def notes(self) -> list[Checkpoint]:
        """The recommendations recorded over time; `seconds` are since 1970."""
        rows = self._line.get(path_of(self._name))["notes"]
        return [Checkpoint(row[0], *map(as_float, row[1:])) for row in rows]

    def plot(
        self,
        path: str | PathLike[str] | None = None,
        kind: Literal["run", "importance", "slices", "pairs", "timeline"] = "run",
    ) -> Any:
        """A Matplotlib figure of what is known: see `Study.plot`.

        When evaluations were under way is not known here, so there is no "timeline".
        """
        from partita.optimize.looking import check_drawable, result_of

        name = f"The study {self._name}"
        check_drawable(self, name)
        notes, best = self.notes(), self.recommend()
        start = notes[0].seconds if notes else 0.0
        notes = [note._replace(seconds=note.seconds - start) for note in notes]
        now = time.time() - start
        bounds = best.mean, best.lower, best.upper, self.certificate()
        notes.append(Checkpoint(self.n_told, now, *bounds))
        return result_of(self, name, notes).plot(path, kind)

    # -- as an object --------------------------------------------------------------------------

    def close(self) -> None:
        """Close the connection; it is opened again at the next use."""
        self._line.close()

    def __enter__(self) -> RemoteStudy:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _reconnected, (self.path, self._line.token, self._line.patience)

    def __repr__(self) -> str:
        return f"RemoteStudy({self.path!r}, direction={self.direction!r})"


def _reconnected(url: str, token: str | None, patience: float) -> RemoteStudy:
    return connect(url, token=token, patience=patience)
