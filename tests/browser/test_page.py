"""The page in a real browser: a study is made, values arrive, and nothing a study says is HTML."""

# ruff: noqa: E501
import json
import threading

import numpy as np
import pytest

pytest.importorskip("uvicorn")

from support import axe
from support.browser import CHROMIUM, DRIVER, MISSING, Browser
from support.service import Server

import partita as pt

pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason=MISSING)

EVIL = "<img src=x onerror=\"document.title='taken'\">"
SPACE = {"lr": (1e-4, 1e-1, "log"), "depth": (1, 12, "int"), "kind": ["a", EVIL]}

#: Faults that a check of accessibility would call serious: fields without a label, buttons without
#: a name, pictures without a text, headings and landmarks that are missing, text too faint.
CHECK = """
const faults = [];
const name = (e) => (e.getAttribute('aria-label') || e.textContent || e.title || '').trim();
for (const e of document.querySelectorAll('input, select, textarea'))
  if (!e.getAttribute('aria-label') && !e.closest('label')) faults.push('no label: ' + e.outerHTML);
for (const e of document.querySelectorAll('button, a')) if (!name(e)) faults.push('no name: ' + e.outerHTML);
for (const e of document.querySelectorAll('img, [role=img]'))
  if (!e.getAttribute('alt') && !e.getAttribute('aria-label')) faults.push('no text: ' + e.outerHTML);
if (!document.documentElement.lang || !document.querySelector('main')) faults.push('no language or main');
const light = (c) => { const [r, g, b] = c.match(/[\\d.]+/g).map(Number).map((v) => { v /= 255;
  return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const back = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
  if (!/, 0\\)$|transparent/.test(c)) return c; } return 'rgb(255, 255, 255)'; };
for (const e of document.querySelectorAll('p, h1, h2, td, th, button, .name, .big, .more, .state, label')) {
  if (!e.textContent.trim() || !e.offsetParent || e.disabled) continue;
  const [a, b] = [light(getComputedStyle(e).color), light(back(e))].sort((x, y) => y - x);
  if ((a + 0.05) / (b + 0.05) < 4.5) faults.push(`contrast ${((a + 0.05) / (b + 0.05)).toFixed(2)}: ` + e.outerHTML.slice(0, 120));
}
if (document.documentElement.scrollWidth > innerWidth + 1) faults.push('wider than the window');
return faults;
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Server(tmp_path_factory.mktemp("studies")) as server:
        yield server


@pytest.fixture(scope="module")
def browser():
    with Browser() as browser:
        yield browser


def evaluate(study, n, seed=0):
    rng = np.random.default_rng(seed)
    for _ in range(n):
        trial = study.ask()
        lr, depth = trial.params["lr"], trial.params["depth"]
        miss = (
            np.log10(lr / 0.003) ** 2
            + 0.02 * (depth - 6) ** 2
            + 0.2 * (trial.params["kind"] == "a")
        )
        study.tell(trial, float(miss + rng.normal(0, 0.1)))


def text(browser):
    return browser.run("return document.body.innerText")


def test_a_study_is_made_and_told_by_hand(server, browser):
    browser.open(server.url)
    browser.click("New study")
    browser.fill("[name=name]", "by-hand")
    browser.fill("[name=space]", json.dumps({"bounds": [[0, 1], [0, 1]]}))
    browser.click("Create")
    browser.click("Ask for a trial")
    browser.click("Ask")
    browser.fill("[name=value]", "0.75")
    browser.click("Tell")
    browser.until("return document.body.innerText.includes('0.75')")
    study = pt.connect(f"{server.url}/by-hand")
    assert study.trials.values.tolist() == [0.75]
    study.ask()
    browser.click("Cancel")
    assert study.n_pending == 1  # it asks first
    browser.click("Cancel the trial")
    browser.until("return document.body.innerText.includes('1 failed')")
    assert browser.log() == []


def test_values_arrive_and_nothing_is_taken_for_html(server, browser):
    study = pt.connect(f"{server.url}/watched", space=SPACE)
    browser.open(f"{server.url}/#/watched")
    browser.until("return document.body.innerText.includes('no values yet')")
    worker = threading.Thread(target=evaluate, args=(study, 60))
    worker.start()
    browser.until("return Number(document.querySelectorAll('.big')[2].textContent) >= 60")
    worker.join()
    browser.until("return document.querySelectorAll('.slices figure').length === 3")
    browser.until("return document.querySelectorAll('.bar').length === 3")
    assert EVIL in text(browser)
    assert browser.run("return document.title") == "watched – Partita"
    assert browser.run("return document.querySelectorAll('main img').length") == 0
    before = browser.until(
        "const m = document.querySelector('.slices').previousElementSibling; return m.textContent"
    )
    browser.run(
        "const c = document.querySelector('canvas.map'), f = c.getBoundingClientRect();"
        "c.dispatchEvent(new MouseEvent('click', {clientX: f.left + 100, clientY: f.top + 30}))"
    )
    browser.until(
        "return document.querySelector('.slices').previousElementSibling.textContent !== arguments[0]",
        before,
    )
    browser.click("Back to the answer")
    browser.click("Value")
    browser.until(
        "return document.querySelector('[aria-sort=ascending]')?.textContent.startsWith('Value')"
    )
    assert browser.log() == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_can_be_read_by_everybody(server, browser, dark, width):
    browser.show(width, 900, dark)
    for address, there in (("", "tr.link, p.note"), ("#/by-hand", ".figure")):
        browser.open("about:blank")
        browser.open(f"{server.url}/{address}")
        browser.until("return document.querySelector(arguments[0])", there)
        assert browser.run(CHECK) == []
    browser.show(1280, 1600)


@pytest.fixture(scope="module")
def axe_text(tmp_path_factory):
    text = axe.axe_script(tmp_path_factory.mktemp("axe"))
    if text is None:
        pytest.skip(axe.MISSING)
    return text


#: Serious and critical faults that axe-core finds, once it is done.
FAULTS = """
window.found ??= axe.run().then((told) => { window.faults = told.violations.filter((v) => ["serious", "critical"].includes(v.impact))
  .flatMap((v) => v.nodes.map((node) => `${v.id}: ${node.html.slice(0, 200)} ${node.failureSummary}`)); });
return window.faults && {faults: window.faults};
"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_no_serious_fault(server, browser, axe_text, dark):
    study = pt.connect(f"{server.url}/for-axe", space=SPACE)
    if not study.n_told:
        evaluate(study, 30)
        study.ask()
    browser.show(1280, 1600, dark)
    for address, there in (
        ("", "tr.link"),
        ("#/for-axe", ".slices figure"),
        ("#/for-axe", "dialog"),
    ):
        browser.open("about:blank")
        browser.open(f"{server.url}/{address}")
        if there == "dialog":
            browser.click("Add a known value")
        browser.until("return document.querySelector(arguments[0])", there)
        if address:
            browser.until("return document.querySelectorAll('.bar').length === 3")
        browser.run(axe_text)
        assert browser.until(FAULTS, patience=60)["faults"] == []
    browser.show(1280, 1600)


def test_the_map_moves_by_keys_and_nothing_jumps(server, browser):
    study = pt.connect(f"{server.url}/keys", space={"a": (0.0, 1.0), "b": (0.0, 1.0)})
    study.add(
        [{"a": i / 30, "b": (i * 7 % 30) / 30} for i in range(30)], [i / 30 for i in range(30)]
    )
    browser.open(f"{server.url}/#/keys")
    text = "return document.querySelector('.slices').previousElementSibling.textContent"
    browser.until("return document.querySelectorAll('.slices figure').length === 2")
    before, tops = (
        browser.until(text),
        "return [...document.querySelectorAll('section')].map((s) => s.offsetTop)",
    )
    browser.run(
        "const c = document.querySelector('canvas.map'); c.focus();"
        "for (const key of ['ArrowUp', 'ArrowLeft', 'ArrowRight']) c.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}))"
    )
    browser.until(f"{text} !== arguments[0]", before)
    browser.click("Back to the answer")
    browser.until("return document.querySelectorAll('.bar').length === 2")
    places = browser.run(tops)
    study.add({"a": 0.5, "b": 0.5}, 0.25)
    browser.until("return document.querySelectorAll('.big')[2].textContent === '31'")
    assert browser.run(tops) == places


def test_the_tolerance_is_the_same_in_every_tab(server, browser):
    study = pt.connect(f"{server.url}/wanted", space={"a": (0.0, 1.0)})
    study.add([{"a": i / 30} for i in range(30)], [i / 30 for i in range(30)])
    browser.open(f"{server.url}/#/wanted")
    field = "const field = document.querySelector('[aria-label=Tolerance]');"
    browser.until(f"{field} return field")
    browser.run(f"{field} field.value = '0.125'; field.dispatchEvent(new Event('change'))")
    browser.until("return document.body.innerText.includes('Certificate')")
    with Browser() as other:
        other.open(f"{server.url}/#/wanted")
        other.until(f"{field} return field?.value === '0.125'")
        study.tolerance = 0.25
        for tab in (browser, other):
            tab.until(f"{field} return field.value === '0.25'")
    browser.run(f"{field} field.value = '-1'; field.dispatchEvent(new Event('change'))")
    browser.until("return document.body.innerText.includes('tolerance=-1')")
    assert study.tolerance == 0.25


def test_a_form_has_a_field_for_each_parameter(server, browser):
    study = pt.connect(f"{server.url}/forms", space=SPACE)
    browser.open(f"{server.url}/#/forms")
    browser.click("Add a known value")
    browser.until("return document.querySelectorAll('.fields input, .fields select').length === 3")
    browser.run(
        "const [lr, depth, kind] = document.querySelectorAll('.fields input, .fields select');"
        "lr.value = '0.01'; depth.value = '7'; kind.value = '1'"
    )
    browser.fill("[name=value]", "0.5")
    browser.click("Add")
    browser.until("return !document.getElementById('dialog').open")
    (row,) = study.trials
    assert (row.params, row.value) == ({"lr": 0.01, "depth": 7, "kind": EVIL}, 0.5)


def test_a_page_for_reading_has_no_acts(tmp_path):
    study = pt.Study.open(tmp_path / "still.db", SPACE)
    evaluate(study, 6)
    study.ask()
    study.close()
    with Server(tmp_path, "--read-only") as server, Browser() as browser:
        browser.open(f"{server.url}/#/still")
        browser.until("return document.querySelectorAll('.slices figure').length === 3")
        words = browser.run(
            "return [...document.querySelectorAll('button')].map((b) => b.textContent)"
        )
        assert not {"Ask for a trial", "Add a known value", "Tell", "Cancel"} & set(words)
        assert "Download Parquet" in words
        browser.open("about:blank")
        browser.open(server.url)
        browser.until("return document.querySelectorAll('tr.link').length === 1")
        assert browser.run("return document.querySelector('button.main').hidden")


WIDGET = """<!doctype html><meta charset="utf-8"><div id="cell"></div><script type="module">
import widget from "./bundle.js";
window.sent = []; window.heard = [];
const values = {name: "study", style: STYLE};
const model = {get: (name) => values[name], send: (message) => window.sent.push(message),
  on: (kind, f) => window.heard.push(f), off: () => {}};
widget.render({model, el: document.getElementById("cell")});
</script>"""


def test_the_widget_shows_the_page_in_a_notebook(tmp_path):
    """Without a notebook: what the widget sends is answered here, as the kernel would."""
    from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

    from partita.service import bundle
    from partita.service.notebook import Answerer

    study = pt.Study.open(tmp_path / "tune.db", SPACE)
    evaluate(study, 25)
    kernel = Answerer(study)
    (tmp_path / "bundle.js").write_text(bundle.script(), encoding="utf-8")
    page = WIDGET.replace("STYLE", json.dumps(bundle.style()))
    (tmp_path / "index.html").write_text(page, encoding="utf-8")
    handler = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    files = ThreadingHTTPServer(("127.0.0.1", 0), lambda *a: handler(*a, directory=tmp_path))
    threading.Thread(target=files.serve_forever, daemon=True).start()
    with Browser() as browser:
        browser.open(f"http://127.0.0.1:{files.server_port}/index.html")
        root = "const root = document.getElementById('cell').shadowRoot;"

        def answer():
            for message in browser.run("return (window.sent ?? []).splice(0)"):
                told = kernel.answer(message["method"], message["path"], message.get("content"))
                reply = {"id": message["id"], **told}
                browser.run("window.heard.forEach((f) => f(arguments[0]))", reply)

        for _ in range(100):
            answer()
            if browser.run(f"{root} return root.querySelectorAll('.bar').length === 3"):
                break
        assert browser.run(f"{root} return root.querySelectorAll('.slices .u-over').length") == 3
        evaluate(study, 1)
        browser.run("window.heard.forEach((f) => f(arguments[0]))", {"event": kernel.news()})
        assert browser.run(f"{root} return root.querySelectorAll('.big')[2].textContent") == "26"
        assert browser.run(f"{root} return root.querySelectorAll('img').length") == 0
        assert [line for line in browser.log() if "favicon" not in line] == []
    files.shutdown()
    files.server_close()


def test_a_restart_is_bridged(server, browser):
    browser.open(f"{server.url}/#/by-hand")
    browser.until("return document.getElementById('line').textContent === 'live'")
    server.restart()
    browser.until("return document.getElementById('line').textContent === 'live'")
    study = pt.connect(f"{server.url}/by-hand")
    study.add([0.5, 0.5], 0.125)
    browser.until("return document.body.innerText.includes('0.125')")


def test_a_token_is_asked_for_or_taken_from_the_address(tmp_path):
    with Server(tmp_path, PARTITA_TOKEN="token-for-the-test") as server, Browser() as browser:
        browser.open(server.url)
        browser.until("return document.body.innerText.includes('needs a token')")
        browser.open("about:blank")
        browser.open(f"{server.url}/#token=token-for-the-test")
        browser.until("return document.getElementById('line').textContent === 'live'")
        assert "token" not in browser.run("return location.href")
