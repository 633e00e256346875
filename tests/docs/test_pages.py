"""The Python and the commands of the site's pages run as they stand; what they link to exists.

A block that opens with ```` ```python ```` is run. One with ```` ```py ```` is another library's
code, shown beside ours. A block whose first line is `# file: NAME` is saved under that name.
"""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [
    DOCS / "index.md",
    *sorted(
        path
        for part in ("tutorials", "howto", "explanation")
        for path in (DOCS / part).glob("*.md")
    ),
]
#: Run by tests/heavy, which starts a cluster.
HEAVY = {"cluster"}


def blocks(path, language):
    text = path.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def name_of(path):
    return str(path.relative_to(DOCS).with_suffix(""))


@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.stem not in HEAVY and blocks(page, "python")],
    ids=name_of,
)
def test_its_python_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    for block in blocks(page, "python"):
        first, _, rest = block.partition("\n")
        if first.startswith("# file: "):
            (tmp_path / first.removeprefix("# file: ")).write_text(rest, encoding="utf-8")
        else:
            exec(compile(block, str(page), "exec"), names)
    assert "Traceback" not in capsys.readouterr().out


def test_pages_are_found_and_have_code():
    found = {name_of(page): len(blocks(page, "python")) for page in PAGES}
    tutorials = {name for name in found if name.startswith("tutorials/")} - {"tutorials/index"}
    assert len(tutorials) >= 6
    assert all(found[name] for name in tutorials)


def test_what_is_not_run_is_not_ours():
    for page in PAGES:
        for block in blocks(page, "py"):
            assert "partita" not in block, page


def run(command, folder):
    """What a command of the command-line tutorial prints, run without a shell."""
    words = shlex.split(command)
    python = [sys.executable]
    words = [word for each in words for word in (python if each == "python" else [each])]
    assert words[0] == "partita"
    done = subprocess.run(
        [sys.executable, "-m", "partita", *words[1:]],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_command_line_tutorial_runs(tmp_path):
    page = DOCS / "tutorials" / "command-line.md"
    (program,) = blocks(page, "python")
    (tmp_path / "bench.py").write_text(program, encoding="utf-8")
    commands = [line for block in blocks(page, "sh") for line in block.splitlines()]
    first, as_json, shown, table = (run(command, tmp_path) for command in commands)
    expected = re.findall(r"^  (\w+)  ", blocks(page, "text")[0], re.MULTILINE)
    assert expected == ["threads", "block", "value", "certificate", "unexplored", "bounds"]
    assert re.findall(r"^  (\w+)  ", first, re.MULTILINE) == expected
    assert re.search(r"^40 evaluations", first)
    threads = int(re.search(r"^  threads +(\d+)$", first, re.MULTILINE)[1])
    assert 2 <= threads <= 8  # on average 1.55 at 4, 1.9 at 2, 3.2 at 1 and 3.4 at 16
    answer = json.loads(as_json)
    assert answer["evaluations"] == 15
    assert set(answer["params"]) == {"threads", "block"}
    assert answer["lower"] <= answer["value"] <= answer["upper"]
    assert "threads" in shown
    assert len(table.splitlines()) > 15


def anchors(path):
    """The anchors of a page's headings, as code hosts and MyST make them."""
    text = re.sub(
        r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    return {
        re.sub(r"[^\w -]", "", heading.replace("`", "")).strip().lower().replace(" ", "-")
        for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    }


@pytest.mark.parametrize("page", [*PAGES, *sorted((DOCS / "reference").glob("*.md"))], ids=name_of)
def test_its_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_file(), f"{page.name}: {link}"
        if anchor:
            assert anchor in anchors(target), f"{page.name}: {link}"


def test_the_first_run_prints_what_the_tutorial_shows(capsys):
    page = DOCS / "tutorials" / "first-run.md"
    names = {}
    for block in blocks(page, "python")[:3]:
        exec(compile(block, str(page), "exec"), names)
    printed, shown = capsys.readouterr().out, blocks(page, "text")[0]

    def labels(text):
        return [re.split(r"[:=]", line)[0].strip() for line in text.splitlines()]

    assert labels(printed) == labels(shown)
    assert names["result"].params["depth"] == 6
    assert 0.002 < names["result"].params["lr"] < 0.0045
