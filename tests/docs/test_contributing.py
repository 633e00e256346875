"""CONTRIBUTING.md draws the house as it is, and names what exists."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_the_plan_is_the_one_that_is_checked():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    *rooms, shared = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    plan = PAGE.partition("src/partita/\n")[2].partition("```")[0].splitlines()
    drawn = [re.sub(r"(/|\.py)$", "", line.split()[0]) for line in plan[1:]]
    assert drawn == rooms[::-1]
    assert set(shared.split(" : ")) <= set(plan[0].split())


def test_what_it_names_exists():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"make ([a-z-]+)[`; ]", PAGE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for path in re.findall(r"(?:tests|benchmarks|docs|policies|gp|partition)/[\w/]+\.\w+", PAGE):
        assert (ROOT / path).exists() or (ROOT / "src/partita" / path).exists(), path
