"""The settings of a study: written once, when it is created, and compared when it is reopened.

Functions cannot be stored. For a constraint, or a user's own policy, the file only records that
there is one; it must be given again. Only built-in policies are looked up by a name in a file.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from partita._checks import (
    as_positive,
    check_choice,
    check_delta,
    check_flag,
    check_horizon,
    check_scale,
    check_seed,
)
from partita._version import __version__
from partita.errors import InvalidInput, StudyError
from partita.model import noise as noises
from partita.model.assumptions import Assumptions
from partita.model.kernels import Matern
from partita.model.noise import sub_gaussian_constant
from partita.model.outcomes import Outcomes
from partita.optimize.constraints import Constraints
from partita.optimize.contexts import read_contexts
from partita.optimize.making import check_maker
from partita.optimize.optimizer import Optimizer
from partita.policies.construct import name_of
from partita.space import Space, as_space

#: Noise models that are stored exactly; any other is stored as `SubGaussian` with its constant.
_NOISES = {
    name: getattr(noises, name)
    for name in ("Uniform", "Gaussian", "Bounded", "Bernoulli", "SubGaussian")
}
#: Settings that may differ when a study is reopened.
_FREE = ("n_evals",)


@dataclass(frozen=True)
class Settings:
    """The settings of a study, as JSON data.

    Attributes
    ----------
    space
        In the format of `Space.to_json`.
    constrained
        Whether there is a `feasible`, which is not stored.
    policy
        None for the default one, or a name of the registry, optionally with settings in brackets.
    own_policy
        The name of a user's own policy, which is not stored itself.
    outcomes
        The ends, with None for one that is not known; None if neither is.
    constraints
        Bounds on quantities that an evaluation shows, such as "cost <= 10".
    """

    space: str
    direction: str = "minimize"
    seed: int = 0
    n_evals: int | None = None
    norm_bound: float | None = None
    noise: dict[str, Any] | None = None
    kernel: dict[str, Any] | None = None
    delta: float = 0.1
    policy: str | None = None
    own_policy: str | None = None
    constrained: bool = False
    expire_after: float | None = None
    constraints: list[str] | None = None
    outcomes: list[float | None] | None = None
    #: Names of the parameters of the space that are contexts.
    context: list[str] | None = None
    #: Whether the function may change in time.
    drift: bool | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Settings:
        """The settings of a new study, checked, from the user's arguments."""
        return cls(**_as_json(given))

    def differences(self, given: Mapping[str, Any]) -> list[str]:
        """The differences between the arguments given now and these settings; None is not given."""
        lines = []
        for name, value in _as_json(given).items():
            own = getattr(self, name)
            if name in _FREE or value == own or (name == "drift" and value == bool(own)):
                continue
            if name == "space":
                lines.append(_other_space(Space.from_json(own), Space.from_json(value)))
            else:
                lines.append(f"{name} is {own!r} in the study, but {value!r} was given")
        return lines

    def build(
        self, feasible: Callable[..., Any] | None, policy: str | Callable[..., Any] | None
    ) -> Optimizer:
        """The optimizer at the beginning of the study."""
        return Optimizer(
            Space.from_json(self.space, feasible),
            direction=self.direction,  # type: ignore[arg-type]  # checked when it was given
            seed=self.seed,
            n_evals=self.n_evals,
            policy=policy if self.own_policy is not None else self.policy,
            context=self.context,
            drift=bool(self.drift),
            constraints=self.constraints,
            outcomes=None if self.outcomes is None else (self.outcomes[0], self.outcomes[1]),
            **self.assumptions.keywords(),
        )

    @property
    def assumptions(self) -> Assumptions:
        """The assumptions about the function."""
        return Assumptions(
            None if self.kernel is None else Matern(**self.kernel),
            self.norm_bound,
            None if self.noise is None else _noise(self.noise),
            self.delta,
        )

    def missing(self, feasible: object, policy: object) -> str | None:
        """What must be given again because it cannot be stored; None if nothing is missing."""
        if self.constrained and feasible is None:
            return "it has a constraint, which is not stored: give feasible again"
        if self.own_policy is not None and policy is None:
            return (
                f"it uses a policy of your own, {self.own_policy}, which is not stored: "
                "give policy again"
            )
        return None

    def check_same(self, given: Mapping[str, Any], path: object) -> None:
        """Refuse settings that differ, or that lack what cannot be stored; `path` is the study's.

        What is None is not given.
        """
        lines = self.differences(given)
        if lines:
            raise InvalidInput(
                f"{path} is a study with other settings: {'; '.join(lines)}. Leave them out to "
                "continue it, or give another file"
            )
        missing = self.missing(given["feasible"], given["policy"])
        if missing is not None:
            raise InvalidInput(f"{path} cannot be opened: {missing}")

    # -- as text -------------------------------------------------------------------------------

    def to_meta(self) -> dict[str, str]:
        """The settings as rows of the table `meta`, with a checksum."""
        fields = dataclasses.asdict(self)
        if self.context is None:
            del fields["context"]  # studies without one are as older versions wrote them
        if not self.drift:
            del fields["drift"]
        if self.constraints is None:  # an older Partita can open a study without any
            del fields["constraints"]
        text = json.dumps(fields, sort_keys=True)
        return {"settings": text, "checksum": _digest(text), "written_by": __version__}

    @classmethod
    def from_meta(cls, meta: Mapping[str, str], path: object) -> Settings:
        """The settings that `to_meta` wrote."""
        text = meta.get("settings", "")
        try:
            if _digest(text) != meta["checksum"]:
                raise ValueError("the checksum differs")
            settings = cls(**json.loads(text))
            settings._check()
        except (ArithmeticError, LookupError, AttributeError, TypeError, ValueError) as error:
            raise _edited(path, error) from error
        except RecursionError as error:  # deeply nested lists
            raise _edited(path, "they are nested too deeply") from error
        return settings

    def _check(self) -> None:
        """Refuse settings that a user could not have given: the file may come from a stranger."""
        for name, check in _STORED.items():
            value = getattr(self, name)
            if value is not None or name in _NEEDED:
                check(value)


def _other_space(own: Space, given: Space) -> str:
    """What differs between two spaces: both of them, and the parameters that are not the same."""
    text = f"space is {own!r} there, but {given!r} was given"
    ours, theirs = (
        [" ".join(line.split()) for line in space.describe().splitlines()] for space in (own, given)
    )
    more = [line for line in ours if line not in theirs]
    less = [line for line in theirs if line not in ours]
    parts = [f"only there: {', '.join(more)}"] if more else []
    parts += [f"only given: {', '.join(less)}"] if less else []
    return f"{text} ({'; '.join(parts) or 'in another order'})"


def _edited(path: object, why: object) -> StudyError:
    return StudyError(
        f"{path}: the settings of the study are damaged or were edited ({why!s:.300}). Restore the "
        "file from a backup"
    )


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# -- what users give, as JSON ----------------------------------------------------------------------


def _as_json(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that are not None, checked, in the form that is stored."""
    stored = {name: _AS_JSON[name](value) for name, value in given.items() if value is not None}
    policy = stored.pop("policy", None)
    if policy is not None:
        ours = ":" not in policy.partition("[")[0]
        stored["policy" if ours else "own_policy"] = policy
    context = stored.pop("context", None)
    if context is not None and "space" not in stored:
        if not isinstance(context, list):
            raise InvalidInput("context is given without a space: give both, or neither")
        stored["context"] = context
    if "space" in stored:
        space = stored["space"]
        if context is not None:
            contexts = read_contexts(space, context)
            space, stored["context"] = contexts.space, list(contexts.names)
        stored["space"] = space.to_json()
        if space.constraint is not None:
            stored["constrained"] = True
    if stored.pop("feasible", False):
        stored["constrained"] = True
    return stored


def _feasible(feasible: object) -> bool:
    if not callable(feasible):
        raise InvalidInput(f"feasible={feasible!r}: give a function that returns True or False")
    return True


def _outcomes_json(outcomes: Any) -> list[float | None] | None:
    checked = Outcomes.of(outcomes)
    return None if checked is None else checked.pair


def _noise_json(noise: Any) -> dict[str, Any]:
    kind = type(noise).__name__
    if _NOISES.get(kind) is type(noise):
        return {"kind": kind, **dataclasses.asdict(noise)}
    return {"kind": "SubGaussian", "constant": sub_gaussian_constant(noise)}


def _noise(stored: Mapping[str, Any]) -> Any:
    fields = {name: value for name, value in stored.items() if name != "kind"}
    return _NOISES[stored["kind"]](**fields)


def _kernel_json(kernel: object) -> dict[str, Any]:
    if not isinstance(kernel, Matern):
        raise InvalidInput(f"kernel={kernel!r}: give a kernel, such as Matern(1.5, 0.2)")
    scale = kernel.lengthscale
    return {"nu": kernel.nu, "lengthscale": list(scale) if isinstance(scale, tuple) else scale}


def _policy_text(policy: Any) -> str:
    if isinstance(policy, str):
        return policy
    return f"{getattr(check_maker(policy), '__module__', '')}:{name_of(policy)}"


def _check_ours(policy: str) -> None:
    """Refuse a stored policy that is not built in, so that a file cannot import modules."""
    from partita.policies.registry import METHODS

    _check_words(policy)
    if policy.partition("[")[0] not in METHODS:
        raise ValueError(f"there is no policy {policy!r}")


_AS_JSON: dict[str, Callable[[Any], Any]] = {
    "space": as_space,
    "direction": lambda value: check_choice("direction", value, ("minimize", "maximize")),
    "seed": check_seed,
    "n_evals": check_horizon,
    "norm_bound": lambda value: check_scale("norm_bound", value),
    "noise": _noise_json,
    "kernel": _kernel_json,
    "outcomes": _outcomes_json,
    "delta": check_delta,
    "policy": _policy_text,
    "feasible": _feasible,
    "expire_after": lambda value: as_positive("expire_after", value),
    "context": lambda value: value,
    "drift": lambda value: check_flag("drift", value),
    "constraints": lambda value: list(Constraints(value).texts) or None,
}


# -- what is stored, checked as when it was given --------------------------------------------------

_CHECKED_ALIKE = (
    "direction",
    "seed",
    "n_evals",
    "norm_bound",
    "outcomes",
    "delta",
    "expire_after",
    "drift",
)
_NEEDED = ("space", "direction", "seed", "delta", "constrained")


def _check_words(words: object) -> None:
    """Refuse anything but a string that could be a name."""
    if not isinstance(words, str) or len(words) > 1000:
        raise ValueError(f"{words!r:.100} is not a name")


def _check_all_words(words: object) -> None:
    """Refuse anything but a list of names."""
    if not isinstance(words, list) or not words:
        raise ValueError(f"{words!r:.100} is not a list of names")
    for word in words:
        _check_words(word)


def _check_constraints(texts: object) -> None:
    if not isinstance(texts, list):
        raise ValueError(f"{texts!r:.100} is not a list of constraints")
    Constraints(texts)


_STORED: dict[str, Callable[[Any], object]] = {
    **{name: _AS_JSON[name] for name in _CHECKED_ALIKE},
    "space": Space.from_json,
    "noise": _noise,
    "kernel": lambda kernel: Matern(**kernel),
    "policy": _check_ours,
    "own_policy": _check_words,
    "constrained": lambda value: check_flag("constrained", value),
    "context": _check_all_words,
    "constraints": _check_constraints,
}
