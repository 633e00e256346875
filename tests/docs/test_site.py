"""The site: every public name is in the reference, every page in a table of contents, and what
checks a built site finds the faults it is for."""

import importlib.util
import re
from pathlib import Path

import pytest

import partita
from partita.commands import main as cli

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def load(path):
    """A module of docs/, which is not a package."""
    spec = importlib.util.spec_from_file_location(f"docs_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


check_site = load(DOCS / "check_site.py")
docstrings = load(DOCS / "_ext" / "docstrings.py")
prepared = docstrings.prepared


def test_every_public_name_is_in_the_reference():
    documented = check_site.documented(DOCS / "reference")
    public = check_site.public_names()
    assert len(public) > 60
    assert {"partita.minimize", "partita.errors.InvalidInput", "partita.theory.get"} <= public
    missing = {
        name
        for name in public
        if name not in documented and name.rpartition(".")[0] not in documented - {"partita"}
    }
    assert not missing


def test_the_reference_names_nothing_that_is_gone():
    for name in check_site.documented(DOCS / "reference"):
        if name.startswith("partita.integrations"):
            continue  # needs the packages
        module, _, last = name.rpartition(".")
        try:
            importlib.import_module(name)
        except ModuleNotFoundError:
            assert hasattr(importlib.import_module(module), last), name


def test_every_page_is_in_a_table_of_contents():
    listed = {DOCS / "index"}
    for page in DOCS.rglob("*.md"):
        for block in re.findall(r"```{toctree}\n(.*?)```", page.read_text("utf-8"), re.DOTALL):
            for line in block.splitlines():
                if line and not line.startswith(":"):
                    path = re.sub(r"^.* <(.+)>$", r"\1", line)
                    listed.add((page.parent / path).resolve())
    there = {page.with_suffix("") for page in DOCS.rglob("*.md")}
    there |= {page.with_name(page.name.removesuffix(".nb.py")) for page in DOCS.rglob("*.nb.py")}
    assert there == listed


def test_the_commands_are_those_of_the_parser():
    helps = load(DOCS / "_ext" / "commands.py").helps()
    assert {"partita", "partita minimize", "partita theory table"} <= set(helps)
    assert len(helps) > len(cli.COMMANDS)
    assert all(text.startswith("usage: partita") for text in helps.values())
    assert max(len(line) for text in helps.values() for line in text.splitlines()) <= 110


def site(folder, **pages):
    """A small site with an entry for every public name, and more pages."""
    (folder / "reference").mkdir(parents=True)
    entries = "".join(f'<dt id="{name}">' for name in sorted(check_site.public_names()))
    (folder / "reference" / "all.html").write_text(entries, encoding="utf-8")
    (folder / "searchindex.js").write_text("{}", encoding="utf-8")
    for name, text in pages.items():
        (folder / name.replace("_", ".")).write_text(text, encoding="utf-8")
    return folder


LOCAL = '<script src="_static/a.js"></script><a href="https://example.org">a link is not loaded</a>'


def test_a_sound_site_has_no_faults(tmp_path):
    assert list(check_site.faults(site(tmp_path, index_html=LOCAL, style_css="a{}"))) == []


@pytest.mark.parametrize(
    "page",
    [
        '<script async src="https://cdn.example.org/MathJax.js"></script>',
        '<link rel="stylesheet" href="//fonts.example.org/css">',
        '<img alt="" src="http://example.org/badge.svg">',
    ],
)
def test_what_a_page_loads_from_elsewhere_is_a_fault(page, tmp_path):
    (fault,) = check_site.faults(site(tmp_path, index_html=LOCAL + page))
    assert fault.startswith("index.html loads ")


@pytest.mark.parametrize(
    "sheet", ['@import "https://example.org/a.css";', "b{src:url(//example.org/f.woff2)}"]
)
def test_what_a_style_sheet_loads_from_elsewhere_is_a_fault(sheet, tmp_path):
    (fault,) = check_site.faults(site(tmp_path, style_css=sheet))
    assert fault.startswith("style.css loads ")


def test_a_missing_entry_and_a_missing_index_are_faults(tmp_path):
    folder = site(tmp_path)
    (folder / "searchindex.js").unlink()
    page = folder / "reference" / "all.html"
    page.write_text(page.read_text("utf-8").replace('"partita.minimize"', '""'), encoding="utf-8")
    assert list(check_site.faults(folder)) == [
        "there is no search index",
        "partita.minimize has no entry in the reference",
    ]


def test_a_folder_without_pages_is_refused(tmp_path, capsys):
    assert check_site.main([str(tmp_path)]) == 1
    assert "there is no page" in capsys.readouterr().out
    assert check_site.main([]) == 2


def test_the_pictures_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    load(DOCS / "figures" / "cells.py").main(tmp_path, moments=(10, 60))
    for name in ("cells.png", "certificate.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
        assert (DOCS / "figures" / name).exists()


def test_the_pictures_of_a_run_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    load(DOCS / "figures" / "looking.py").main(tmp_path, n_evals=16)
    for name in ("importance.png", "pairs.png", "timeline.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
        assert (DOCS / "figures" / name).exists()


DOCSTRING = """The sum |x| of `a | b`.

Parameters
----------
x : float
y
    The second.

With x, `f(y)` is
something else.

Values of known noise
---------------------
More.
""".splitlines()


def test_docstrings_are_prepared_for_napoleon():
    lines = prepared(DOCSTRING)
    assert lines[0] == r"The sum \|x\| of `a | b`."
    assert lines[2:7] == DOCSTRING[2:7]  # the section itself is left alone
    after = lines.index("With x, `f(y)` is")
    assert lines[after - 2 : after] == ["", ""]  # ends the section, for Napoleon
    heading = lines.index(".. rubric:: Values of known noise")
    assert lines[heading + 1 : heading + 3] == ["", "More."]
    assert "---------------------" not in lines


def test_docstrings_of_the_package_keep_their_words():
    for name in partita.__all__:
        text = getattr(getattr(partita, name), "__doc__", None) or ""
        before = re.findall(r"\w+", text)
        after = re.findall(
            r"\w+", "\n".join(prepared(text.splitlines())).replace(".. rubric::", "")
        )
        assert after == before, name


def test_signatures_are_readable():
    given = "(f: TypeAliasForwardRef('Callback') | None, catch=<class 'a.b.Exception'>, s='x')"
    assert docstrings.readable(given) == "(f: Callback | None, catch=Exception, s='x')"


def test_the_first_line_of_an_attribute_is_no_type():
    assert docstrings.without_type("What it is: a, b: c") == ["What it is:", "a, b: c"]
    assert docstrings.without_type("What it is") == ["What it is"]


def test_a_class_has_the_signature_of_its_own_constructor():
    class Stand:
        def __new__(cls, *args, **kwargs):
            return super().__new__(cls)

    class Ours(Stand):
        def __init__(self, a, *, b=1):
            pass

    assert docstrings.own_signature(Ours) == "(a, *, b=1)"
