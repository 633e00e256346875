"""The page in a notebook: what its messages get, without a front end, and the bundle of modules."""

import re
import sys
import time

import numpy as np
import pytest

import partita as pt
from partita.service import bundle, notebook
from partita.service.notebook import Answerer
from partita.service.still import Still

SPACE = {"x": (0.0, 1.0), "k": ["a", "b"]}


def loss(x, k):
    return (x - 0.3) ** 2 + 0.1 * (k == "b")


def ok(told):
    assert "answer" in told, told
    return told["answer"]


def test_a_study_is_shown_and_used(tmp_path):
    study = pt.Study.open(tmp_path / "tune.db", SPACE)
    page = Answerer(study)
    shown = ok(page.answer("GET", "/events", {}))
    assert shown["answer"] is None
    assert not shown["read_only"]
    assert page.news() is None
    (trial,) = ok(page.answer("POST", "/studies/study/ask", {}))["trials"]
    ok(page.answer("POST", "/studies/study/tell", {"number": 0, "value": loss(**trial["params"])}))
    for _ in range(8):
        trial = study.ask()
        study.tell(trial, loss(**trial.params))
    assert page.news()["counts"]["told"] == 9
    assert ok(page.answer("GET", "/studies/study/trials", {"limit": "3"}))["total"] == 9
    assert ok(page.answer("GET", "/studies/study/trials/2", {}))["number"] == 2
    assert len(ok(page.answer("GET", "/studies/study/slices", {}))["curves"]) == 2
    assert ok(page.answer("GET", "/studies/study/map", {"x": "x", "y": "k"}))["mean"]
    assert ok(page.answer("GET", "/studies/study/importance", {}))["parameters"]
    assert ok(page.answer("GET", "/studies/study/recommend", {}))["params"]
    assert page.news() is None
    study.tolerance = 0.5  # as by another page
    assert page.news()["tolerance"] == 0.5
    ok(page.answer("POST", "/studies/study/tolerance", {"tolerance": 0.25}))
    assert study.tolerance == 0.25


def test_errors_are_problems(tmp_path):
    page = Answerer(pt.Study.open(tmp_path / "tune.db", SPACE))
    told = page.answer("POST", "/studies/study/tell", {"number": 5, "value": 1.0})
    assert "there is no trial 5" in told["problem"]["detail"]
    for path in ("/nothing", "/studies/../etc", None, 7):
        assert page.answer("GET", path, {})["problem"]["status"] == 404


def test_a_result_is_shown_as_it_is():
    result = pt.minimize(loss, SPACE, n_evals=40)
    page = Answerer(Still(result.optimizer, []))
    shown = ok(page.answer("GET", "/events", {}))
    assert shown["read_only"]
    assert shown["counts"]["told"] == 40
    assert shown["answer"]["params"] == result.params
    assert ok(page.answer("GET", "/studies/study/trials/2", {}))["events"] == []
    assert ok(page.answer("GET", "/studies/study/slices", {}))["curves"]
    told = page.answer("POST", "/studies/study/ask", {})
    assert "over" in told["problem"]["detail"]


def test_the_bundle_imports_nothing_and_has_every_module():
    text = bundle.script()
    assert not re.search(r"^import ", text, re.MULTILINE)
    assert re.findall(r"^export .*", text, re.MULTILINE) == ["export default widget_js.standard;"]
    for name in ("dom", "draw", "table", "acts", "study", "widget"):
        assert text.count(f"const {name}_js = ") == 1
    # The page's modules keep to the forms that the bundle reads.
    for path in bundle.PAGE.glob("*.js"):
        if path.name != "uplot.js":
            for line in path.read_text().splitlines():
                if line.startswith("import "):
                    assert bundle._IMPORT.match(line), (path.name, line)
                if line.startswith("export ") and "default" not in line:
                    assert bundle._EXPORT.match(line), (path.name, line)


def test_the_page_is_small():
    assert sum(path.stat().st_size for path in bundle.PAGE.iterdir()) < 300_000


def test_without_the_package_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    study = pt.Study.open(tmp_path / "tune.db", SPACE)
    with pytest.raises(ImportError, match=r"partita\[notebook\]"):
        study.view()


def test_the_widget_answers_messages_and_sends_news(tmp_path, monkeypatch):
    pytest.importorskip("anywidget")
    monkeypatch.setattr(notebook, "EVERY", 0.02)
    study = pt.Study.open(tmp_path / "tune.db", SPACE)
    widget = study.view()
    sent = []
    monkeypatch.setattr(widget, "send", sent.append)
    widget._handle_custom_msg({"id": "a", "method": "GET", "path": "/events"}, [])
    assert sent[0]["id"] == "a"
    assert sent[0]["answer"]["counts"]["told"] == 0
    study.tell(study.ask(), 0.5)
    end = time.monotonic() + 20
    while len(sent) < 2 and time.monotonic() < end:
        time.sleep(0.02)
    widget.stop()
    assert sent[-1]["event"]["counts"]["told"] in (0, 1)
    shown = pt.minimize(lambda x: float(np.sum(x)), [(0, 1)], n_evals=12).view()
    assert "standard" in shown._esm
