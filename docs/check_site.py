"""Check a built site: python docs/check_site.py build/site.

Every public name has an entry, search has its index, and no page loads anything from elsewhere.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

#: Modules whose `__all__`, or whose classes, are public.
MODULES = (
    "partita",
    "partita.experiments",
    "partita.problems",
    "partita.testing",
    "partita.theory",
)
INTEGRATIONS = (
    "partita.integrations.optuna.PartitaSampler",
    "partita.integrations.ray.PartitaSearch",
    "partita.integrations.ray.RayExecutor",
)
#: What a browser fetches by itself: a tag, and its attribute with the address.
LOADED = {
    ("script", "src"),
    ("link", "href"),
    ("img", "src"),
    ("iframe", "src"),
    ("source", "src"),
    ("video", "src"),
}


def public_names() -> set[str]:
    """Every public name in full, modules and the version left out."""
    names = set(INTEGRATIONS)
    for module in MODULES:
        names |= {f"{module}.{name}" for name in importlib.import_module(module).__all__}
    names -= set(MODULES) | {"partita.errors", "partita.__version__"}
    errors = vars(importlib.import_module("partita.errors"))
    ours = {name for name, value in errors.items() if _is_ours(value)}
    at_top = {name.rpartition(".")[2] for name in names if name.count(".") == 1}
    return names | {f"partita.errors.{name}" for name in ours - at_top}


def _is_ours(value: object) -> bool:
    return isinstance(value, type) and value.__module__ == "partita.errors"


def documented(source: Path) -> set[str]:
    """The names that the pages of the reference ask autodoc for, modules by their name."""
    names = set()
    for page in sorted(source.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        for _, name in re.findall(
            r"^\.\. auto(class|function|exception):: (\S+)", text, re.MULTILINE
        ):
            names.add(name if name.startswith("partita.") else f"partita.{name}")
        names |= set(re.findall(r"^\.\. automodule:: (\S+)", text, re.MULTILINE))
    return names


class Loads(HTMLParser):
    """Collects the addresses that a page loads by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if (tag, name) in LOADED and value:
                self.addresses.append(value)


def foreign_loads(text: str) -> list[str]:
    """The addresses on other servers that a page of HTML loads by itself."""
    loads = Loads()
    loads.feed(text)
    return [address for address in loads.addresses if re.match(r"(https?:)?//", address)]


def foreign_imports(text: str) -> list[str]:
    """The addresses on other servers that a style sheet loads."""
    return re.findall(r"""(?:url\(|@import\s+)["']?((?:https?:)?//[^"')\s]+)""", text)


def faults(site: Path) -> Iterator[str]:
    """What is wrong with a built site, a line each."""
    if not (site / "searchindex.js").exists():
        yield "there is no search index"
    pages = sorted(site.rglob("*.html"))
    if not pages:
        yield f"there is no page in {site}"
    for page in pages:
        for address in foreign_loads(page.read_text(encoding="utf-8")):
            yield f"{page.relative_to(site)} loads {address}"
    for sheet in sorted(site.rglob("*.css")):
        for address in foreign_imports(sheet.read_text(encoding="utf-8")):
            yield f"{sheet.relative_to(site)} loads {address}"
    anchors = set()
    for page in sorted((site / "reference").glob("*.html")):
        anchors |= set(re.findall(r'id="(partita[\w.]+)"', page.read_text(encoding="utf-8")))
    for name in sorted(public_names() - anchors):
        yield f"{name} has no entry in the reference"


def main(arguments: list[str]) -> int:
    """Print what is wrong with the site; the exit code."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    wrong = list(faults(Path(arguments[0])))
    print("\n".join(wrong) if wrong else f"{len(public_names())} public names, nothing missing")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
