"""What a soak has done, in a folder: a line of JSON a case, so that it can be interrupted."""

import json
import platform
from pathlib import Path

from partita import __version__

from .parts import PARTS, total


class Diary:
    """The cases of a part that are done, those of earlier runs with the same first seed as well."""

    def __init__(self, folder, part, seed):
        self.part, self.seed = part, seed
        self._path = Path(folder) / f"{part.name}-{seed}.jsonl"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self.lines = []
        if self._path.exists():
            text = self._path.read_text().splitlines()
            self.lines = [json.loads(line) for line in text if line.endswith("}")]

    def add(self, outcome):
        line = {
            "seed": outcome.item,
            "seconds": round(outcome.seconds, 3),
            "figures": outcome.result or {},
            "fault": outcome.fault,
        }
        self.lines.append(line)
        with self._path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    @property
    def done(self):
        return {line["seed"] for line in self.lines}

    @property
    def figures(self):
        return total(line["figures"] for line in self.lines)

    @property
    def faults(self):
        return [(line["seed"], line["fault"]) for line in self.lines if line["fault"]]

    @property
    def seconds(self):
        """Of all cases together; several run at once."""
        return sum(line["seconds"] for line in self.lines)

    def summary(self):
        return {
            "part": self.part.name,
            "title": self.part.title,
            "first seed": self.seed,
            "cases": len(self.lines),
            "seconds of work": round(self.seconds),
            "figures": self.figures,
            "faults": [
                {"seed": seed, "repeat": repeat(self.part, seed), "fault": fault}
                for seed, fault in self.faults
            ],
        }


def repeat(part, seed):
    """A command that works on one case again."""
    return f"python tests/soak {part.name} --only-case {seed}"


def write_summary(folder, diaries):
    """The figures so far, as JSON; parts of earlier runs are kept."""
    path = Path(folder) / "figures.json"
    parts = json.loads(path.read_text())["parts"] if path.exists() else {}
    parts |= {diary.part.name: diary.summary() for diary in diaries}
    facts = {
        "partita": __version__,
        "python": platform.python_version(),
        "system": platform.system(),
        "parts": {name: parts[name] for name in PARTS if name in parts},
    }
    path.write_text(json.dumps(facts, indent=1) + "\n")
    return facts


def table(facts):
    """The figures as a table in Markdown."""
    lines = ["| test | figures | faults |", "| --- | --- | --- |"]
    for part in facts["parts"].values():
        figures = ", ".join(f"{name} {value:,}" for name, value in part["figures"].items())
        cases = f"{part['cases']:,} cases: " if "cases" not in part["figures"] else ""
        lines.append(f"| {part['title']} | {cases}{figures} | {len(part['faults'])} |")
    return "\n".join(lines)
