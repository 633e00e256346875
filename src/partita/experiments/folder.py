"""The folder of results: what it holds, and that nothing in it is overwritten by something else."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from partita._version import __version__
from partita.errors import InvalidInput, PartitaError

from .paper import Plan
from .store import replace_file
from .trace import Store

#: Says what the folder holds. Its presence marks a folder as ours.
SETTINGS = "settings.json"
OUTPUTS = {
    "table1": ("table1.md",),
    "figure1": ("figure1.png", "figure1.svg"),
    "figure2": ("figure2.png", "figure2.svg"),
}


class OtherResults(PartitaError, ValueError):
    """A folder holds results of another version or other settings."""


class Folder:
    """Results of one version and horizon. It can grow by runs, dimensions and policies."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.store = Store(self.path / "runs")

    def claim(self, experiments: Iterable[str], plan: Plan) -> None:
        """Make the folder ready, or refuse before anything is changed.

        Refused are a folder that cannot be written, results of another version, horizon or
        --quick, and a plan with less than what an earlier one put there.
        """
        held = self._held()
        settings: dict[str, Any] = {
            "version": __version__,
            "horizon": plan.horizon,
            "quick": plan.quick,
            "experiments": {},
        }
        if held is not None:
            self._refuse_other(held, settings)
            settings["experiments"].update(held["experiments"])
        for experiment in experiments:
            content = {"runs": plan.runs, "policies": list(plan.policies)}
            if experiment == "table1":
                content["dims"] = list(plan.dims)
            before = settings["experiments"].get(experiment)
            if before is not None:
                self._refuse_less(experiment, before, content)
            settings["experiments"][experiment] = content
        if settings != held:
            text = json.dumps(settings, indent=2) + "\n"
            try:
                self.store.folder.mkdir(parents=True, exist_ok=True)
                replace_file(self.path / SETTINGS, text.encode())
            except OSError as error:
                raise InvalidInput(
                    f"--out {self.path}: cannot be written ({error.strerror or error})."
                ) from error

    def tidy(self) -> None:
        """Leave nothing of a command that finished no run."""
        if self.store.folder.is_dir() and not any(self.store.folder.iterdir()):
            (self.path / SETTINGS).unlink(missing_ok=True)
            self.store.folder.rmdir()
            if not any(self.path.iterdir()):
                self.path.rmdir()

    def write(self, name: str, content: bytes) -> Path:
        """Write an output, whole or not at all."""
        replace_file(self.path / name, content)
        return self.path / name

    def _held(self) -> dict[str, Any] | None:
        """What the folder says of itself; None for a folder without results."""
        path = self.path / SETTINGS
        try:
            held = json.loads(path.read_text(encoding="utf-8"))
            for content in held["experiments"].values():
                if not isinstance(content["runs"], int) or not content["policies"]:
                    raise ValueError("runs and policies are missing")
        except (FileNotFoundError, NotADirectoryError):
            ours = [*sum(OUTPUTS.values(), ()), "runs"]
            strange = next((name for name in ours if (self.path / name).exists()), None)
            if strange is not None:
                raise OtherResults(
                    f"{self.path / strange} is there, but not {path}: give another folder with "
                    "--out."
                ) from None
            return None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise OtherResults(
                f"{path} cannot be read ({error}): give another folder with --out."
            ) from error
        except OSError as error:
            raise InvalidInput(
                f"--out {self.path}: cannot be read ({error.strerror or error})."
            ) from error
        return dict(held)

    def _refuse_other(self, held: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
        """Refuse what a folder can hold one of only."""
        version, horizon, quick = (held.get(name) for name in ("version", "horizon", "quick"))
        if version != settings["version"]:
            raise self._other(f"results of Partita {version}, this is {__version__}")
        if horizon != settings["horizon"]:
            raise self._other(f"runs with --horizon {horizon}")
        if quick != settings["quick"]:
            raise self._other(f"results {'with' if quick else 'without'} --quick")

    def _refuse_less(
        self, experiment: str, before: Mapping[str, Any], content: Mapping[str, Any]
    ) -> None:
        """Refuse a plan with less than what is there."""
        if content["runs"] < before["runs"]:
            raise self._other(f"a {experiment} with --runs {before['runs']}")
        for name in ("dims", "policies"):
            was = before.get(name, [])
            if not set(was) <= set(content.get(name, was)):
                raise self._other(f"a {experiment} with --{name} {' '.join(map(str, was))}")

    def _other(self, held: str) -> OtherResults:
        return OtherResults(
            f"{self.path} holds {held}: give the same settings, or another folder with --out."
        )
