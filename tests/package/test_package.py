"""What the package says of itself is true: version, extras, files, and the workflows' commands."""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

import partita

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

spec = importlib.util.spec_from_file_location("smoke", Path(__file__).with_name("smoke.py"))
smoke = importlib.util.module_from_spec(spec)
spec.loader.exec_module(smoke)


def test_the_version_is_stated_once():
    assert "version" in PROJECT["dynamic"]
    assert smoke.version() == partita.__version__
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {partita.__version__}\n" in citation


def test_the_pythons_are_those_allowed():
    oldest = PROJECT["requires-python"].removeprefix(">=")
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert named[0] == oldest
    assert (ROOT / "src" / "partita" / "py.typed").exists()


def test_extras_that_pages_name_exist():
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    named = {
        extra
        for page in pages
        for group in re.findall(r"(?:partita|\.)\[([a-z,]+)\]['\"`]", page.read_text("utf-8"))
        for extra in group.split(",")
    }
    assert {"plot", "dask", "ray"} <= named
    assert named <= set(PROJECT["optional-dependencies"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_runs_what_exists(path):
    yaml = pytest.importorskip("yaml")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    steps = [
        step
        for job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values()
        for step in job["steps"]
    ]
    assert steps
    for step in steps:
        if "uses" in step:
            assert re.fullmatch(r"(actions|pypa)/[\w-]+@(v\d+|release/v\d+)", step["uses"])
        for target in re.findall(r"make ([a-z-]+)", step.get("run", "")):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
        for file in re.findall(r"[\w./]+/[\w./]+\.py", step.get("run", "")):
            assert (ROOT / file).exists(), file


def test_there_are_workflows():
    assert {path.stem for path in WORKFLOWS} == {"release", "site", "tests"}


def test_the_smoke_test_wants_one_wheel(tmp_path):
    with pytest.raises(SystemExit, match=r"expected one wheel, found 0.*make package"):
        smoke.the_wheel(tmp_path)
    for name in ("a.whl", "b.whl"):
        (tmp_path / name).touch()
    with pytest.raises(SystemExit, match="found 2"):
        smoke.the_wheel(tmp_path)
    (tmp_path / "b.whl").unlink()
    assert smoke.the_wheel(tmp_path).name == "a.whl"


@pytest.mark.parametrize("page", smoke.PAGES)
def test_the_smoke_test_runs_the_quick_start_without_extras(page):
    code = smoke.quick_start(page)
    compile(code, page, "exec")
    assert "pt.minimize(" in code
    assert "plot" not in code
