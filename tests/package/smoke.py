"""Install a built wheel into a new environment and use it: python tests/package/smoke.py dist.

It runs the first Python of the README and of the site, and the command, in an empty folder: nothing
of the source tree can be imported by accident. The description for the package index must have no
relative link, which would lead nowhere there.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/index.md")
#: What is run in the new environment before the pages' code: where Partita came from.
WHERE = "import partita, sys; assert partita.__file__.startswith(sys.prefix), partita.__file__"


def the_wheel(folder: Path) -> Path:
    """The one wheel of a folder."""
    wheels = sorted(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise SystemExit(
            f"{folder}: expected one wheel, found {len(wheels)}. Run `make package`, which empties "
            "the folder and builds one."
        )
    return wheels[0]


def version() -> str:
    """The version as the source has it."""
    text = (ROOT / "src/partita/_version.py").read_text(encoding="utf-8")
    return re.search(r'__version__ = "(.+)"', text)[1]


def quick_start(page: str) -> str:
    """The first Python of a page, without figures, which need an extra."""
    text = (ROOT / page).read_text(encoding="utf-8")
    code = re.search(r"```python\n(.*?)```", text, re.DOTALL)[1]
    return "\n".join(line for line in code.splitlines() if ".plot(" not in line)


def check_links(wheel: Path) -> None:
    """Refuse a wheel whose description is missing or has relative links."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        description = archive.read(name).decode().partition("\n\n")[2]
    if not description.strip():
        raise SystemExit(f"{wheel.name} has no description")
    links = re.findall(r"\]\((?![a-z]+:|#)([^)\s]+)\)", description)
    if links:
        raise SystemExit(f"{wheel.name}: relative links in the description: {', '.join(links)}")


def main(folder: Path) -> None:
    """Install the wheel of a folder and use it; raises if anything fails."""
    wheel = the_wheel(folder).resolve()
    check_links(wheel)
    with tempfile.TemporaryDirectory() as temporary:
        home, empty = Path(temporary, "environment"), Path(temporary, "empty")
        empty.mkdir()
        venv.create(home, with_pip=True)
        binaries = home / ("Scripts" if os.name == "nt" else "bin")
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

        def run(*command: object) -> str:
            done = subprocess.run(
                [str(part) for part in command],
                cwd=empty,
                env=clean,
                check=True,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
            )
            return done.stdout

        run(binaries / "python", "-m", "pip", "install", "--quiet", wheel)
        for page in PAGES:
            printed = run(binaries / "python", "-c", f"{WHERE}\n{quick_start(page)}")
            assert printed.strip(), page
            print(f"{page}:\n{printed}")
        told = run(binaries / "partita", "--version").strip()
        assert told == f"partita {version()}", told
        listed = run(binaries / "partita", "policies")
        assert "pi-gp-ucb" in listed
        print(f"{wheel.name}, {wheel.stat().st_size / 1e3:.0f} kB: {told} works")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
