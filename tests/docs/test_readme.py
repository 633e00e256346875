"""The README's Python runs as it stands; what it links to exists."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "README.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_its_code_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    names = {}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    assert (tmp_path / "run.png").stat().st_size > 10_000
    assert names["result"].params["depth"] in (5, 6, 7)
    assert names["result"].lower <= names["result"].fun <= names["result"].upper
    assert "dropout" in capsys.readouterr().out


def test_its_links_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)\)", TEXT)
    assert len(links) > 8
    for link in links:
        assert "://" in link or (PAGE.parent / link).exists(), link
