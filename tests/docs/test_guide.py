"""The guide's Python runs as it stands, from top to bottom; what it links to exists."""

import re
from pathlib import Path

import pytest

from partita.commands import main as cli

PAGE = Path(__file__).parents[2] / "docs" / "guide.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_its_code_runs(capsys):
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert len(blocks) == 17
    names = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
        if "best" in names:
            assert names["best"].lower <= names["best"].mean <= names["best"].upper
    out = capsys.readouterr().out
    assert "certificate" in out
    assert "[(0.12, 0.05), (0.04, 0.0)]" in out


def test_its_first_answer_is_what_it_prints(capsys):
    exec(re.search(r"```python\n(.*?)```", TEXT, re.DOTALL)[1], names := {})
    shown = re.search(r"```text\n(.*?)```", TEXT, re.DOTALL)[1]
    labels = [line.partition(":")[0] for line in shown.splitlines()]
    printed = [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert [label.partition("=")[0] for label in printed] == [
        label.partition("=")[0] for label in labels
    ]
    assert names["result"].params["depth"] == 6
    assert names["result"].history.values.min() < names["result"].fun - 0.1


def test_its_links_lead_somewhere():
    headings = {
        re.sub(r"[^\w -]", "", line.lstrip("# ")).lower().replace(" ", "-")
        for line in TEXT.splitlines()
        if line.startswith("#")
    }
    links = re.findall(r"\]\(([^)]+)\)", TEXT)
    assert len(links) > 8
    for link in links:
        path, _, anchor = link.partition("#")
        assert (PAGE.parent / path).exists(), link
        assert path or anchor in headings, link


def test_its_options_are_those_of_the_command(capsys):
    with pytest.raises(SystemExit):
        cli.main(["minimize", "--help"])
    there = set(re.findall(r"--[a-z-]+", capsys.readouterr().out)) - {"--rate"}
    section = TEXT.partition("## The command line")[2].partition("\n## ")[0]
    named = set(re.findall(r"--[a-z-]+", section)) - {"--rate"}
    assert named <= there
    assert there - named <= {"--help", "--seed"}
