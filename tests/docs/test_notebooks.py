"""The site's notebooks run as scripts, and are what Jupytext takes for notebooks."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).parents[2] / "docs" / "notebooks"
SCRIPTS = sorted(NOTEBOOKS.glob("*.nb.py"))
#: The same for all: which format this is, and which kernel runs it.
HEADER = """# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---
"""


def name_of(path):
    return path.name.removesuffix(".nb.py")


def run(path, folder):
    """Run a script as a user would, without a display."""
    return subprocess.run(
        [sys.executable, "-W", "error:::__main__", path],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "MPLBACKEND": "Agg", "OPENBLAS_NUM_THREADS": "1"},
        check=False,
    )


def cells(text):
    """The cells of a script in the percent format: whether each is text, and its lines."""
    assert text.startswith(HEADER)
    parts = re.split(r"^# %%(.*)\n", text.removeprefix(HEADER), flags=re.MULTILINE)
    assert not parts[0].strip(), "something stands before the first cell"
    for mark, body in zip(parts[1::2], parts[2::2], strict=True):
        assert mark in {"", " [markdown]"}
        yield bool(mark), body.strip().splitlines()


def test_there_are_notebooks():
    assert len(SCRIPTS) >= 3
    index = (NOTEBOOKS / "index.md").read_text(encoding="utf-8")
    listed = index.partition("```{toctree}")[2].partition("```")[0].split()
    assert set(map(name_of, SCRIPTS)) == set(listed) - {":maxdepth:", "1"}


@pytest.mark.parametrize("path", SCRIPTS, ids=name_of)
def test_its_cells_are_text_and_code(path):
    made = list(cells(path.read_text(encoding="utf-8")))
    assert made[0] == (True, made[0][1])
    assert re.match(r"# # \w", made[0][1][0]), "the first cell has the title"
    assert sum(not is_text for is_text, _ in made) >= 3
    for is_text, lines in made:
        assert lines
        if is_text:
            assert all(line == "#" or line.startswith("# ") for line in lines)


@pytest.mark.parametrize("path", SCRIPTS, ids=name_of)
def test_its_links_lead_somewhere(path):
    for link in re.findall(r"\]\(([^)#\s]+)", path.read_text(encoding="utf-8")):
        assert "://" in link or (NOTEBOOKS / link).is_file(), link


@pytest.mark.parametrize("path", SCRIPTS, ids=name_of)
def test_it_runs_as_a_script(path, tmp_path):
    pytest.importorskip("matplotlib")
    done = run(path, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "certificate" in done.stdout
    assert list(tmp_path.iterdir()) == []  # it leaves nothing behind


def test_one_that_fails_is_noticed(tmp_path):
    path = tmp_path / "broken.nb.py"
    path.write_text(HEADER + "\n# %%\nassert 1 == 2\n", encoding="utf-8")
    assert run(path, tmp_path).returncode == 1
