"""What a notebook shows: no package needed, nothing of the user's is taken for HTML."""

import subprocess
import sys
import types
from html.parser import HTMLParser

import pytest

import partita as pt
from partita._status import StatusLine, in_notebook
from partita.study import Study

EVIL = "<script>alert('x')</script>\"&"
SPACE = {EVIL: [EVIL + "\u202e", "b"], "x": (0.0, 1.0)}
VOID = ("circle", "polyline")


class Reader(HTMLParser):
    """Tags, in balance, and the words between them."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.words = [], set(), []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        assert not any(name.startswith("on") or "http" in (value or "") for name, value in attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


def read(html):
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert not reader.open
    assert reader.tags <= {"div", "table", "tr", "td", "th", "svg", "g", "circle", "polyline"}
    return reader.words


def f(**params):
    return params["x"] + (params[EVIL] == "b")


@pytest.fixture(scope="module")
def result():
    return pt.minimize(f, SPACE, n_evals=25, seed=4)


def test_a_result_shows_its_answer(result):
    words = read(result._repr_html_())
    assert words[0] == f"Minimum {result.fun:.6g}"
    assert "seed" in words
    assert "4" in words
    assert any(EVIL[:8] in word for word in words)  # the name, as text
    assert "\u202e" not in "".join(words)
    assert type(result)(x=3)._repr_html_() is None  # made by hand


def test_histories_and_tables_show_their_ends(result):
    words = read(result.history._repr_html_())
    assert words[0] == "25 trials"
    assert {"0", "4", "20", "24", "⋮"} <= set(words)
    assert "10" not in words
    assert read(result.history[:3]._repr_html_())[0] == "3 trials"
    assert read(result.history[:7]._repr_html_()).count("finished") == 7
    assert read(pt.Optimizer([(0, 1)]).trials._repr_html_())[0] == "0 trials"
    many = pt.Optimizer([(0, 1)] * 40)
    many.tell(many.ask(), 1.0)
    assert "… 29 more" in read(many.trials._repr_html_())


@pytest.mark.parametrize("kind", ["optimizer", "study"])
def test_optimizers_and_studies_show_what_they_know(kind, tmp_path):
    place = () if kind == "optimizer" else (tmp_path / "<b>.db",)
    player = (pt.Optimizer if kind == "optimizer" else Study.open)(*place, SPACE)
    empty = "".join(read(player._repr_html_()))
    assert "0 values" in empty
    assert "0 to 1" in empty
    for _ in range(4):
        trial = player.ask()
        player.tell(trial, f(**trial.params))
    player.ask()
    words = read(player._repr_html_())
    assert "minimize, 4 values, 1 pending" in words
    assert f"{player.recommend().params['x']:.6g}" in words
    if kind == "study":
        assert words[0].endswith("<b>.db")


def test_arrays_and_many_parameters():
    result = pt.minimize(lambda x: float(x.sum()), [(0, 1)] * 12, n_evals=3, policy="uniform")
    assert any(
        word.startswith("[") and word.endswith(", …]") for word in read(result._repr_html_())
    )
    many = {f"p{i}": (0, 1) for i in range(33)}
    result = pt.minimize(lambda **p: p["p0"], many, n_evals=3, policy="uniform")
    assert "3 more" in read(result._repr_html_())


def test_nothing_but_what_partita_needs_is_imported():
    code = (
        "import sys, partita as pt\n"
        "sys.modules['matplotlib'] = sys.modules['pandas'] = sys.modules['IPython'] = None\n"
        "r = pt.minimize(lambda x: float(x[0]), [(0, 1)], n_evals=3, policy='uniform')\n"
        "assert r._repr_html_() and r.optimizer._repr_html_() and r.history._repr_html_()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


# -- the progress bar of a notebook ----------------------------------------------------------------


class Handle:
    def __init__(self, first):
        self.shown = [first]

    def update(self, text):
        self.shown.append(text)


@pytest.fixture
def notebook(monkeypatch):
    """IPython as a kernel has it: the handles of what was displayed."""
    handles = []

    def display(shown, display_id=False):
        assert display_id is True
        handles.append(Handle(shown))
        return handles[-1]

    ipython, module = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    module.display = display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    return handles


def test_a_run_in_a_notebook_has_a_bar_that_is_wiped(notebook, capsys):
    pt.minimize(lambda x: float(x[0]), [(0, 1)], n_evals=30)
    (handle,) = notebook
    texts = [repr(shown) for shown in handle.shown]
    assert "/30" in texts[0]
    assert texts[-1] == ""
    assert capsys.readouterr().err == ""
    words = "".join(read(handle.shown[0]._repr_html_()))
    assert words == texts[0]
    assert "best " in max(texts, key=len)


def test_a_bar_in_a_notebook_can_be_turned_off(notebook):
    pt.minimize(lambda x: float(x[0]), [(0, 1)], n_evals=5, progress=False)
    assert not notebook


def test_a_terminal_with_ipython_is_no_notebook(monkeypatch):
    assert not in_notebook()
    ipython = types.ModuleType("IPython")
    for shell in (None, types.SimpleNamespace()):
        ipython.get_ipython = lambda shell=shell: shell
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        assert not in_notebook()
        assert not StatusLine().shown


def test_constraints_and_what_ended_early_are_shown():
    def f(x, trial):
        trial.report(x, 0)
        if x > 0.9:
            raise pt.TrialPruned
        return {"loss": x, "cost": 1 - x}

    result = pt.minimize(f, {"x": (0.0, 1.0)}, n_evals=20, constraints=["cost <= 0.5"])
    assert result.npruned
    for shown in (result._repr_html_(), result.optimizer._repr_html_()):
        assert "cost &lt;= 0.5" in shown
        assert f"probability {result.constraints['cost'].probability:.3g}" in shown
        assert f", {result.npruned} pruned" in shown
    young = pt.Optimizer({"x": (0.0, 1.0)}, constraints=["cost <= 0.5"])
    young.tell(young.ask(), {"loss": 1.0, "cost": 1.0})
    assert "minimize, 1 value<" in young._repr_html_()
    assert "not known" in young._repr_html_()
