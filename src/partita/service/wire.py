"""What requests and answers hold, read from JSON and written as JSON."""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from partita.errors import InvalidInput
from partita.model import noise as noises
from partita.model.kernels import Matern
from partita.policies.registry import METHODS
from partita.space import Space

if TYPE_CHECKING:
    from partita.optimize.trial import Trial
    from partita.study import Study

#: Settings of a new study, besides its name and its space.
SETTINGS = (
    *("direction", "seed", "n_evals", "norm_bound", "noise", "kernel", "outcomes", "delta"),
    *("policy", "context", "constraints", "expire_after"),
)
_NOISES = ("Uniform", "Gaussian", "Bounded", "Bernoulli", "SubGaussian")


def plain(value: Any) -> Any:
    """The value as JSON has it: lists for arrays, None for NaN and infinities."""
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


_ENCODE = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


def as_json(value: Any) -> bytes:
    """JSON text of a value."""
    try:
        text = _ENCODE(value)
    except (TypeError, ValueError):  # there are arrays, or numbers that JSON does not have
        text = _ENCODE(plain(value))
    return text.encode("utf-8", "replace")


def fields_of(body: Any, allowed: Collection[str], needed: Collection[str] = ()) -> dict[str, Any]:
    """The fields of a request's body, without those that are null."""
    if not isinstance(body, dict):
        raise InvalidInput(f"the body is {body!r:.80}: give a JSON object")
    unknown = [name for name in body if name not in allowed]
    if unknown:
        raise InvalidInput(
            f"{', '.join(map(repr, unknown[:5]))} is not a field of this request: it takes "
            f"{', '.join(allowed)}"
        )
    missing = [name for name in needed if body.get(name) is None]
    if missing:
        raise InvalidInput(f"the body lacks {', '.join(map(repr, missing))}")
    return {name: value for name, value in body.items() if value is not None}


# -- new studies -----------------------------------------------------------------------------------


def space_of(given: Any) -> Space:
    """A space from the JSON that studies store."""
    if isinstance(given, dict) and "format" not in given:
        given = {"format": 2, **given}
    if not isinstance(given, dict) or not {"parameters", "bounds", "grid", "arms"} & given.keys():
        raise InvalidInput(
            f"space={given!r:.200} is not a space: give "
            '{"parameters": [["lr", [0.0001, 0.1, "log"]], ["kind", {"choices": ["a", "b"]}]]} or '
            '{"bounds": [[0, 1], [-5, 5]]}, as Space.to_json() writes it'
        )
    return Space.from_json(json.dumps(given))


def settings_of(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a new study from JSON, as keywords of `Study.open`, which checks the rest."""
    settings = {name: fields[name] for name in SETTINGS if fields.get(name) is not None}
    if "policy" in settings:
        settings["policy"] = _policy(settings["policy"])
    if "noise" in settings:
        settings["noise"] = _noise(settings["noise"])
    if "kernel" in settings:
        settings["kernel"] = _kernel(settings["kernel"])
    if isinstance(settings.get("outcomes"), list):
        settings["outcomes"] = tuple(settings["outcomes"])
    if isinstance(settings.get("context"), dict):  # in the form of a space's parameters
        raise InvalidInput(
            "context: give the names of those parameters of the space that are the context, "
            'such as ["hour"]'
        )
    return settings


def _policy(name: Any) -> str:
    """The name of a built-in policy: a request never imports anything."""
    if not isinstance(name, str) or name.partition("[")[0] not in METHODS:
        raise InvalidInput(f"policy={name!r:.100}: give one of {', '.join(METHODS)}")
    return name


def _noise(given: Any) -> Any:
    if not isinstance(given, dict) or given.get("kind") not in _NOISES:
        raise InvalidInput(
            f"noise={given!r:.100}: give an object such as "
            '{"kind": "SubGaussian", "constant": 0.1}'
        )
    fields = {name: value for name, value in given.items() if name != "kind"}
    return _made(getattr(noises, given["kind"]), fields, "noise", given)


def _kernel(given: Any) -> Matern:
    if not isinstance(given, dict):
        raise InvalidInput(
            f'kernel={given!r:.100}: give an object such as {{"nu": 1.5, "lengthscale": 0.2}}'
        )
    kernel: Matern = _made(Matern, given, "kernel", given)
    return kernel


def _made(kind: Any, fields: Mapping[str, Any], name: str, given: Any) -> Any:
    try:
        return kind(**fields)
    except TypeError as error:
        expected = ", ".join(inspect.signature(kind).parameters)
        raise InvalidInput(f"{name}={given!r:.100}: its fields are {expected or 'none'}") from error


# -- acts ------------------------------------------------------------------------------------------

#: Fields that each act takes.
ACTS = {
    "ask": ("count", "context", "fixed", "plan", "params"),
    "tell": ("number", "value", "std", "count", "values"),
    "cancel": ("number", "failed"),
    "add": ("params", "value", "std", "context", "count"),
}
#: Trials that one request may ask for, and evaluations that it may plan.
MOST_ASKED, MOST_PLANNED = 1000, 1_000_000


def ask(study: Study, body: Any) -> dict[str, Any]:
    """New trials: those that the policy chooses, a plan of `plan` evaluations, or one at `params`.

    The trials of a plan have a `count`, how often to evaluate each.
    """
    fields = fields_of(body, ACTS["ask"])
    trials: Any
    planned = "plan" in fields
    if "params" in fields:
        fields_of(fields, ("params", "context"))
        trials = [study.expect(fields["params"], fields.get("context"))]
    elif planned:
        fields_of(fields, ("plan",))
        _check_asked(fields["plan"], "plan", MOST_PLANNED)
        trials = study.plan(fields["plan"])
    else:
        count = fields.get("count", 1)
        _check_asked(count, "count", MOST_ASKED)
        fixed = by_place(study, fields.get("fixed"))
        trials = study.ask(count, context=fields.get("context"), fixed=fixed)
    return {"trials": [trial_row(trial, planned) for trial in trials]}


def _check_asked(number: Any, name: str, most: int) -> None:
    if isinstance(number, int) and number > most:
        raise InvalidInput(f"{name}={number}: ask for at most {most:,} at once")


def by_place(study: Study, fixed: Any) -> Any:
    """Fixed values by the numbers of parameters that have no names: JSON has only text as keys."""
    if isinstance(fixed, dict) and study.space.names is None:
        return {int(name) if name.isdecimal() else name: v for name, v in fixed.items()}
    return fixed


def tell(study: Study, body: Any) -> dict[str, Any]:
    """End a trial with a value, or a row of a plan with several, all at once or in parts."""
    fields = fields_of(body, ACTS["tell"], ("number",))
    if "values" not in fields:
        fields_of(fields, ACTS["tell"], ("value",))
    number = fields.pop("number")
    study.tell(number, **fields)
    return {"number": number}


def cancel(study: Study, body: Any) -> dict[str, Any]:
    """End a trial without a value."""
    fields = fields_of(body, ACTS["cancel"], ("number",))
    if fields.get("failed") is True:
        study.fail(fields["number"])
    else:
        study.cancel(fields["number"])
    return {"number": fields["number"]}


def add(study: Study, body: Any) -> dict[str, Any]:
    """Take in values known from elsewhere."""
    fields = fields_of(body, ACTS["add"], ("params", "value"))
    added = study.add(
        fields["params"],
        fields["value"],
        fields.get("std"),
        context=fields.get("context"),
        count=fields.get("count"),
    )
    return {"numbers": added if isinstance(added, list) else [added]}


def choose(study: Study, body: Any) -> dict[str, Any]:
    """Store the tolerance that was chosen; null removes it."""
    study.tolerance = fields_of(body, ("tolerance",)).get("tolerance")
    return {"tolerance": study.tolerance}


def counts(study: Study, prepared: int = 0) -> dict[str, int]:
    """How many trials are in each state, and how many values are behind those told.

    Those that were prepared are not yet pending.
    """
    return {
        "told": study.n_told,
        "values": study.n_values,
        "pending": study.n_pending - prepared,
        "failed": study.n_failed,
        "pruned": study.n_pruned,
    }


def trial_row(trial: Trial, planned: bool = False) -> dict[str, Any]:
    """A new trial as the wire has it; those of a plan have a count."""
    row = {"number": trial.number, "params": trial.params}
    if trial.context:
        row["context"] = trial.context
    return {**row, "count": trial.count} if planned else row
