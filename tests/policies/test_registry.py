"""The registry: every method loads, names what exists, and is what the docs show."""

import inspect
import sys
from pathlib import Path

import pytest

import partita as pt
from partita import theory
from partita.errors import InvalidInput
from partita.policies import registry
from partita.policies.registry import METHODS
from partita.theory import catalogue

PAGE = Path(__file__).parents[2] / "docs" / "algorithms.md"


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
def test_a_method_loads_and_is_a_policy(method):
    maker = method.load()
    owner = maker if inspect.isclass(maker) else maker.__self__
    assert issubclass(owner, pt.Policy)
    assert getattr(pt, owner.__name__) is owner
    parameters = inspect.signature(maker).parameters
    assert set(method.settings) <= set(parameters)
    assert set(method.domains) <= {"grid", "arms", "box"}
    for name in method.exponents:
        assert theory.get(name).kind in {"regret", "simple regret"}


def test_every_public_policy_is_registered():
    public = {
        name
        for name in pt.__all__
        if inspect.isclass(getattr(pt, name)) and issubclass(getattr(pt, name), pt.Policy)
    } - {"Policy"}
    classes = {method.home.partition(":")[2].partition(".")[0] for method in METHODS.values()}
    assert classes == public


def test_names_are_stable_and_plain():
    assert registry.names() == tuple(METHODS)
    for name in METHODS:
        assert name == METHODS[name].name == registry.get(name).name
        assert name.replace("-", "").isalnum()
        assert name.islower()


def test_the_page_of_algorithms_is_made_from_the_registry():
    text = PAGE.read_text(encoding="utf-8")
    assert catalogue.page(text) == text, "run `make docs`"
    for method in METHODS.values():
        assert f"**{method.title}** (`{method.name}`" in text
    with pytest.raises(ValueError, match="has no"):
        catalogue.page("no marks")


def test_rows_of_the_table():
    rows = catalogue.table().splitlines()
    assert len(rows) == len(METHODS) + 2
    assert {row.count("|") for row in rows} == {7}
    tight = next(row for row in rows if "`pi-gp-ucb-tight`" in row)
    assert "`PiGPUCB(tightening=True)`" in tight
    assert "(d(2d+3)+2ν)/(d(2d+4)+4ν)" in tight
    assert "simple regret: −min(ν,1)/d" in next(row for row in rows if "`doo`" in row)


# -- policies of the user's own -----------------------------------------------------------------

OWN = """
import partita as pt


class Mine(pt.UniformSampling):
    pass


number = 3
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_policies_a.py").write_text(OWN)
    yield tmp_path
    sys.modules.pop("own_policies_a", None)


def test_a_policy_of_ones_own_is_found_in_the_present_folder(own):
    maker = registry.load("own_policies_a:Mine")
    assert maker.__name__ == "Mine"
    assert registry.get("own_policies_a:Mine").title == "Mine"
    assert registry.maker_of("own_policies_a:Mine") is maker
    assert str(own) not in sys.path


def test_a_changed_file_is_another_policy(own):
    before = registry.source_digest("own_policies_a:Mine")
    assert before == registry.source_digest("own_policies_a:Mine")
    (own / "own_policies_a.py").write_text(OWN + "# changed\n")
    assert registry.source_digest("own_policies_a:Mine") != before
    assert registry.source_digest("pi-gp-ucb") == ""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ucb", "unknown: give one of gp-ucb, .* or module:Class"),
        (":Mine", "give module:Class"),
        ("own_policies_a:", "give module:Class"),
        ("no_such_module_here:Mine", "cannot be imported"),
        ("own_policies_a:Yours", "has no Yours"),
        ("own_policies_a:number", "is not a class or function: 3"),
        ("own_policies_broken:Mine", "fails when it is imported .ZeroDivisionError"),
    ],
)
def test_what_cannot_be_found_is_refused(own, name, message):
    (own / "own_policies_broken.py").write_text("1 / 0\n")
    with pytest.raises(InvalidInput, match=message):
        registry.get(name)
