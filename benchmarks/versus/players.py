"""What a player is, and the ones that need no other library.

A player is made for a `Setting` and has `ask() -> x`, `tell(x, y)` and `recommend() -> x`, x in
[0, 1]^d; it maximises. `settings` says in a line what was chosen for it and why; results are kept
by that line and the library's version, so a run is made again when either changes.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import ClassVar

import numpy as np

import partita as pt
from partita.experiments.specs import Problem


@dataclass(frozen=True)
class Setting:
    """What a player may know. `problem` is for the few that are told the truth."""

    dim: int
    budget: int
    seed: int
    problem: Problem


class Player:
    """One adapter a player; the class attributes describe it.

    name : how the command line calls it
    title : how the report calls it
    packages : the libraries it needs, as pip calls them; the first gives its version
    module : what must be importable for it to play
    settings : what was chosen, in a line
    told_budget : it knows the budget, so that each budget is a run of its own
    told_truth : it knows norm and noise, which no user does; it is left out of the ranking
    follows : the largest budget that is tried unless more is asked for (None: any)
    """

    name: ClassVar[str]
    title: ClassVar[str]
    packages: ClassVar[tuple[str, ...]]
    module: ClassVar[str]
    settings: ClassVar[str] = "defaults"
    told_budget: ClassVar[bool] = False
    told_truth: ClassVar[bool] = False
    follows: ClassVar[int | None] = None

    def __init__(self, setting: Setting) -> None:
        raise NotImplementedError

    def ask(self) -> np.ndarray:
        """The next point, (d,)."""
        raise NotImplementedError

    def tell(self, x: np.ndarray, y: float) -> None:
        """The value y was seen at x, which was asked last."""
        raise NotImplementedError

    def recommend(self) -> np.ndarray:
        """The player's answer, (d,); must not change what it does next."""
        raise NotImplementedError

    @classmethod
    def missing(cls) -> str | None:
        """Why it cannot play here, or None."""
        if importlib.util.find_spec(cls.module) is None:
            return f"{cls.packages[0]} is not installed"
        return None

    @classmethod
    def version(cls) -> str:
        """Version of its library."""
        return metadata.version(cls.packages[0])

    @classmethod
    def key(cls) -> str:
        """What a stored run must agree with: version and settings, in eight digits."""
        text = f"{cls.version()} {cls.settings}"
        return hashlib.sha256(text.encode()).hexdigest()[:8]


class _OfPartita(Player):
    """A policy of ours, by the name that `import partita as pt` gives it."""

    packages = ("partita",)
    module = "partita"
    policy_name: ClassVar[str]

    def __init__(self, setting: Setting) -> None:
        self._policy = getattr(pt, self.policy_name)(
            setting.problem.domain, seed=setting.seed, **self._knobs(setting)
        )

    def _knobs(self, setting: Setting) -> dict[str, object]:
        return {}

    def ask(self) -> np.ndarray:
        return self._policy.ask()

    def tell(self, x: np.ndarray, y: float) -> None:
        self._policy.tell(x, y)

    def recommend(self) -> np.ndarray:
        return self._policy.recommend().x

    @classmethod
    def missing(cls) -> str | None:
        if not hasattr(pt, cls.policy_name):
            return f"this Partita has no {cls.policy_name}"
        return None

    @classmethod
    def key(cls) -> str:
        """Also of the code: between two releases the version stays and the policy does not."""
        home = getattr(pt, cls.policy_name).__module__
        text = f"{cls.version()} {cls.settings} {source_digest(home)}"
        return hashlib.sha256(text.encode()).hexdigest()[:8]


class Calibrated(_OfPartita):
    """The policy without knobs."""

    name = "partita"
    title = "**Partita, CalibratedUCB**"
    policy_name = "CalibratedUCB"
    settings = "defaults: given the box and a seed, nothing else"


class Told(_OfPartita):
    """Thompson sampling that is told what the others must find out."""

    name = "partita-told"
    title = "*Partita, PiGPTS, told norm and noise*"
    policy_name = "PiGPTS"
    settings = (
        "told the budget, the noise, kernel and norm of the RKHS functions; elsewhere "
        "Matérn 3/2, lengthscale 0.2, norm 1, a guess"
    )
    told_budget = True
    told_truth = True

    def _knobs(self, setting: Setting) -> dict[str, object]:
        truth = setting.problem
        return {
            "horizon": setting.budget,
            "kernel": truth.kernel,
            "norm_bound": truth.norm_bound,
            "noise": pt.Uniform(-truth.half_width, truth.half_width),
        }


class Uniform(_OfPartita):
    """The yardstick."""

    name = "uniform"
    title = "uniform sampling"
    policy_name = "UniformSampling"
    settings = "its answer is its highest value"


@cache
def source_digest(module: str) -> str:
    """Checksum of a module of Partita and of all of Partita that it imports."""
    total = hashlib.sha256()
    for name, text in sorted(sources(module).items()):
        total.update(name.encode() + b"\0" + text)
    return total.hexdigest()


def sources(module: str) -> dict[str, bytes]:
    """The text of a module of Partita and of all of Partita that it imports, early or late."""
    texts: dict[str, bytes] = {}
    left = [module]
    while left:
        name = left.pop()
        path = _source(name)
        if name not in texts and path is not None:
            texts[name] = path.read_bytes()
            package = name if path.name == "__init__.py" else name.rpartition(".")[0]
            left.extend(_imports(package, texts[name]))
    return texts


def _source(name: str) -> Path | None:
    """The file of a module of ours; `partita` itself only lists names."""
    if not name.startswith("partita."):
        return None
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:  # a name in a module, not a module
        return None
    return Path(spec.origin) if spec is not None and spec.origin else None


def _imports(package: str, text: bytes) -> Iterator[str]:
    """What a module of a package imports: modules, and names that may be modules."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            home = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            yield home
            yield from (f"{home}.{alias.name}" for alias in node.names)
