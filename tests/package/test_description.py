"""The description that a package index shows has no link that leads nowhere."""

import importlib.util
import re
import sys
import types
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
HOME = "https://example.org/partita"
LINK = re.compile(r"\]\(([^)\s]+)\)")


def load(path, name):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def hook():
    """hatch_build.py. Hatchling is there only while a package is built: a stand-in will do."""
    name = "hatchling.metadata.plugin.interface"
    interface = types.ModuleType(name)
    interface.MetadataHookInterface = object
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, name, interface)
        yield load(ROOT / "hatch_build.py", "hatch_build")


smoke = load(Path(__file__).with_name("smoke.py"), "smoke_description")


def prose(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)


def test_links_lead_to_the_tag_in_the_repository(hook):
    text = hook.described(README, HOME, "1.2.3")
    relative = [link for link in LINK.findall(prose(README)) if "://" not in link]
    assert len(relative) > 15
    links = LINK.findall(prose(text))
    assert len(links) == len(LINK.findall(prose(README)))
    assert all("://" in link for link in links)
    for link in relative:
        kind = "raw" if link.endswith(".png") else "blob"
        assert f"]({HOME}/{kind}/v1.2.3/{link})" in text


def test_without_a_repository_links_become_text(hook):
    text = hook.described(README, None, "1.2.3")
    assert all("://" in link for link in LINK.findall(prose(text)))
    assert "docs/figures/quickstart.png" not in text
    assert "Your first run, a noisy simulation" in text


def test_footnotes_become_a_numbered_list(hook):
    text = hook.described(README, HOME, "1.2.3")
    assert "[^" not in text
    count = len(re.findall(r"^\[\^\w+\]: ", README, re.MULTILINE))
    notes = text.partition("\n## Notes\n\n")[2].splitlines()
    assert [note.partition(".")[0] for note in notes] == [str(i + 1) for i in range(count)]


def test_what_is_not_a_relative_link_stays(hook):
    text = "[a](https://x.org/b) [c](#d) `[e](f)`\n\n```python\ng = [h](i)\n```\n"
    assert hook.described(text, HOME, "1") == text
    assert hook.described(text, None, "1") == text


def test_the_words_of_the_readme_stay(hook):
    """Nothing but links, notes' marks and the new heading differ."""
    kept = re.sub(r"\[\^\w+\](: )?|!?\[([^\]]*)\]\([^)]*\)", r"\2", README)
    text = hook.described(README, None, "1")
    for word in set(re.findall(r"\w+", kept)):
        assert word in text


def test_the_hook_is_told_where_the_repository_is(hook):
    made = hook.Description()
    made.root = str(ROOT)
    project = {"version": "1.2.3", "urls": {"Repository": f"{HOME}/"}}
    made.update(project)
    assert project["readme"]["content-type"] == "text/markdown"
    assert f"({HOME}/blob/v1.2.3/docs/guide.md)" in project["readme"]["text"]
    made.update(project := {"version": "1.2.3"})
    assert "](docs/" not in project["readme"]["text"]


def wheel(folder, description):
    path = folder / "partita-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("partita-1.dist-info/METADATA", f"Name: partita\n\n{description}")
    return path


def test_the_smoke_test_finds_a_relative_link(tmp_path):
    smoke.check_links(wheel(tmp_path, "# Partita\n\n[a](https://x.org) and [b](#c)"))
    with pytest.raises(SystemExit, match=r"relative links.*docs/guide\.md"):
        smoke.check_links(wheel(tmp_path, "# Partita\n\n[the guide](docs/guide.md)"))
    with pytest.raises(SystemExit, match="no description"):
        smoke.check_links(wheel(tmp_path, ""))
